"""Runs a stage by its plan: an engine runs the kernels, and the manifest is committed last and once."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from pipeline_tasks.errors import (
    BudgetExceeded,
    ContractError,
    JobLost,
    KernelFailed,
    RecipeError,
    RefineryError,
    RowsVanished,
    SchemaBroken,
)
from pipeline_tasks.landing.damaged_files import COLUMNS, damaged_files
from pipeline_tasks.landing.landed import schema_version_of
from pipeline_tasks.manifest import (
    Manifest,
    folded,
    identified,
    load,
    manifest_path,
    schema_pairs,
    stage_prefix,
    total,
)
from pipeline_tasks.profiles.field_types import FIELDS, summed
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.removals import notable
from pipeline_tasks.profiles.signals import with_quantiles
from pipeline_tasks.profiles.spread import joined
from pipeline_tasks.run.finished import below_of, kept_profile, schema_of, spread_of
from pipeline_tasks.run.history import History, forget_shared, read_history, shared_history
from pipeline_tasks.run.plan import Plan, numbered, plan
from pipeline_tasks.run.quarantine import quarantined, without_poison
from pipeline_tasks.run.request import RefineRequest, Span
from pipeline_tasks.run.tasks.poison import PoisonedRow, RowsPoisoned
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.schema import N_GENERATED
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import BY_ROW, Engine, Shard, Shards, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import commit_manifest, not_stored
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.reading import commit_slot, read_shards
from pipeline_tasks.store.s3.waits import NO_WAITS, Waits

log = logging.getLogger("refinery")


class RunningEngine(Engine, Protocol):
    """What others need of an engine beyond its two verbs: the tasks it ran, the history it saved, and any tasks."""

    tracker: Tracker
    saved: Mapping[str, Shards]

    def each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:
        """Run tasks, which read about `weight` bytes together; yield their results in order, and raise a refusal."""


EngineFactory = Callable[[Tracker, History], RunningEngine]
"""Makes an engine for one run of a stage, with the history of earlier snapshots."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an attempt cost: seconds of wall clock, and of CPU and GPUs in the workers, tasks run, and tasks reused.

    `history_reads` counts what lookups in history read: rows, pages, bytes and requests. `s3_waits` are requests to S3
    that workers sent again, because it was too busy, and the seconds until then. `states` is what kernels with a state
    took.
    """

    wall: float = 0.0
    cpu: float = 0.0
    ran: int = 0
    reused: int = 0
    history_reads: Mapping[str, int] = field(default_factory=dict)
    s3_waits: Waits = NO_WAITS
    gpu: float = 0.0
    states: StateCost = NO_STATES


class Refined(NamedTuple):
    """A committed manifest, its path, and what this attempt cost."""

    path: str
    manifest: Manifest
    cost: Cost


def refine(request: RefineRequest, engine: EngineFactory) -> Refined:
    """Run a stage over a span of its parent's shards (all, without a span) and commit its manifest.

    A manifest that is already committed is returned as it is: retry, resume, backfill and cache are this one line.
    """
    planned = plan(request)
    store = storage.connect(request.root)
    path = (
        commit_slot(store, planned.card.name, planned.fingerprint)
        if request.span is None
        else partition_path(planned, request.span)
    )
    if store.size(path):  # an empty object is no commit
        try:
            return Refined(path, _verified(store, path, planned, request.span), Cost())
        except ContractError:
            if request.span is None:
                raise
            store.delete(path)  # nothing but `seal` reads a partition's manifest: it is made again
    try:
        manifest, cost, trackers = _run(planned, engine)
    except RefineryError as error:
        if isinstance(error, JobLost):
            forget_shared()
        if request.span is not None or not store.size(path):
            raise
        # Another attempt has committed meanwhile, and removed the intermediate shards that this one reads.
        return Refined(path, _verified(store, path, planned), Cost())
    del planned  # with the shards of its parent: the manifest is written as bytes now
    manifest = commit_manifest(store, path, manifest)
    if request.span is None:
        for tracker in trackers:
            tracker.remove_intermediate({shard.path for shard in manifest.stored})
    return Refined(path, manifest, cost)


def quarantine(request: RefineRequest) -> Refined:
    """Commit a partition that failed every try, each row quarantined for `PARTITION`; needs no engine.

    RecipeError for a request of a whole stage: nothing would be left of it.
    """
    planned = plan(request)
    if request.span is None:
        message = f"{planned.card.name} is refined whole, and not by partitions: it cannot be quarantined"
        raise RecipeError(message)
    started = time.perf_counter()
    shards = planned.inputs(request.span)
    tracker = quarantined(planned, shards)
    manifest = _manifest(planned, shards, (), tracker, {})
    poison = identified(replace(manifest, poison=manifest.covers))
    check_conservation(planned.card, planned.parent, poison)
    path = partition_path(planned, request.span, POISON)
    poison = commit_manifest(storage.connect(request.root), path, poison)
    return Refined(path, poison, Cost(time.perf_counter() - started, tracker.cpu, tracker.ran, tracker.reused))


POISON = ".poison"
"""What the name of a quarantined partition's manifest ends in: the partition itself may still be refined."""


def partition_path(planned: Plan, span: Span, kind: str = "") -> str:
    """Return the path of a partition's manifest, named by the input that it covers and not by its number."""
    name = partition_name(shard.identity for shard in planned.inputs(span))
    return f"{planned.io.prefix}/partitions/{name}{kind}.json"


def partition_name(covers: Iterable[str]) -> str:
    """Return the name of the partition that covers the shards of these identities."""
    return digest_of(list(covers))


def _verified(store: Store, path: str, planned: Plan, span: Span | None = None) -> Manifest:
    """Load a committed manifest; check that it is the planned one and that its shards are stored with their sizes."""
    manifest = _planned(store, path, planned, span)
    _require_stored(store, {path: manifest}, planned.io.prefix if span is None else "")
    return manifest


def _planned(store: Store, path: str, planned: Plan, span: Span | None) -> Manifest:
    """Load a committed manifest; ContractError unless it is the planned one."""
    manifest = load(store.read(path), f"{store.root}/{path}")
    covers = tuple(shard.identity for shard in planned.inputs(span))
    digests = planned.parent_digests if span is None else folded(planned.parent_digests, len(planned.parent_digests[0]))
    expected = (planned.io.prefix, covers, digests)
    if (stage_prefix(manifest.stage, manifest.fingerprint), manifest.covers, manifest.parent_digests) != expected:
        message = (
            f"{store.root}/{path} was made from other input than {planned.card.name}/{planned.fingerprint} reads: "
            "a manifest that it names was changed; restore that one, or remove this one and run again"
        )
        raise ContractError(message)
    return manifest


def _require_stored(store: Store, manifests: Mapping[str, Manifest], prefix: str) -> None:
    """Raise ContractError if a shard of a stage's manifests, by their paths, is missing or cut short.

    `prefix` is that of the stage, which is listed, for manifests of the whole of it.
    """
    shards = [shard for manifest in manifests.values() for shard in manifest.stored]
    if shard := next(not_stored(store, shards, prefix), None):
        path = next(path for path, manifest in manifests.items() if shard in manifest.stored)
        message = (
            f"{store.root}/{path} names {store.root}/{shard.path}, which is missing or cut short; "
            f"remove {path} (not its data) and run again: only missing shards are written again"
        )
        raise ContractError(message)


def _run(planned: Plan, factory: EngineFactory) -> tuple[Manifest, Cost, list[Tracker]]:
    """Run the stage; return its manifest, the cost, and the tracker of each time that it ran.

    Records on which a kernel raises are quarantined first, and the stage runs again as if they had never been there.
    """
    started = time.perf_counter()
    if planned.request.span is not None and not planned.card.splits:
        message = f"{planned.card.name} cannot be split into partitions; run it whole"
        raise RecipeError(message)
    read = read_history if planned.request.span is None else shared_history
    history = read(planned.request.root, planned.card.history, planned.history)
    shards, poisoned, trackers = planned.inputs(planned.request.span), dict[PoisonedRow, None](), list[Tracker]()
    while True:
        trackers.append(Tracker(planned.io))
        engine = factory(trackers[-1], history)
        try:
            sound = without_poison(shards, tuple(poisoned), planned.card.name, engine)
            _require_rows(sound, poisoned)
            kept = planned.card.run(sound, planned.params, engine)
            break
        except RowsPoisoned as error:
            if planned.card.conserves not in BY_ROW or poisoned.keys() >= set(error.rows):
                raise
            log.warning("%s; quarantined", error)
            poisoned.update(dict.fromkeys(error.rows))
    for earlier in trackers[:-1]:
        engine.tracker.charge(earlier)
    manifest = _manifest(planned, shards, kept, engine.tracker, engine.saved)
    manifest = replace(manifest, offspring_in=_offspring_in(planned.card, sound, engine.tracker))
    _check(planned, manifest)
    _check_history(planned.card, engine)
    tracker = engine.tracker
    wall = time.perf_counter() - started
    reads = dict(sorted(tracker.history_reads.items()))
    gpu = tracker.states.tasks * planned.request.resources.gpus
    spent = (wall, tracker.cpu, tracker.ran, tracker.reused, reads, tracker.s3_waits, gpu, tracker.states)
    return manifest, Cost(*spent), trackers


def _offspring_in(card: Stage[Any], sound: Shards, tracker: Tracker) -> int:
    """Return how many generated texts the rows brought that a stage read, each of which it makes a row of."""
    if card.conserves != "offspring":
        return 0
    if unread := [shard.path for shard in sound if shard.identity not in tracker.offspring_in]:
        message = (
            f"{card.name} conserves offspring, and no kernel of it read `{N_GENERATED}` of {unread[0]}: it maps each "
            "shard of its input, and reads that column (`reads` of its card and of its layers)"
        )
        raise SchemaBroken(message)
    return sum(tracker.offspring_in[shard.identity] for shard in sound)


def _require_rows(sound: Shards, poisoned: Mapping[PoisonedRow, None]) -> None:
    """Raise KernelFailed if a kernel raises on every record: none of them is to blame then."""
    if poisoned and not any(shard.rows for shard in sound):
        message = (
            f"a kernel raises on each of its {len(poisoned)} records ({next(iter(poisoned)).error}): the kernel is at "
            "fault, and not its rows. Report it with one of them"
        )
        raise KernelFailed(message)


def _manifest(planned: Plan, shards: Shards, kept: Shards, tracker: Tracker, saved: Mapping[str, Shards]) -> Manifest:
    finished, tallies = tracker.finished, tracker.rejected
    landed_rows = sum(tracker.landed_rows.values())
    return Manifest(
        stage=planned.card.name,
        version=planned.card.version,
        fingerprint=planned.fingerprint,
        params=planned.identity,
        parents=planned.parents,
        covers=tuple(shard.identity for shard in shards),
        schema=schema_of(finished, kept[:1])[kept[0].path] if kept else (),
        shards=kept,
        history={name: saved.get(name, ()) for name in planned.card.history},
        rejects=_in_order(shard for done in finished for shard in done.rejects),
        quarantine=_in_order(shard for done in finished for shard in done.quarantine),
        rows_in=landed_rows if planned.parent.landed else sum(shard.rows for shard in shards),
        bytes_in=sum(shard.bytes for shard in shards),
        rejected={reason: rows for reason, rows in tallies.items() if not reason.startswith("error:")},
        quarantined={reason: rows for reason, rows in tallies.items() if reason.startswith("error:")},
        metrics=_metrics(kept, tracker, is_whole=planned.request.span is None)
        | ({"spread": joined(spread_of(finished, kept))} if planned.card.spread else {})
        | _fields(planned, tracker),
        parent_digests=planned.parent_digests,
        resources=numbered(planned.resources.values()),
        libraries=planned.libraries,
        below=_below(tracker, kept),
    )


def _metrics(kept: Shards, tracker: Tracker, *, is_whole: bool) -> dict[str, Any]:
    """Return what was counted of kept and rejected rows; partitions keep the histograms that their quantiles need."""
    rejects = merge(done.rejects_profile for done in tracker.finished)
    metrics = notable({"kept": kept_profile(tracker.io.root, tracker.finished, kept), "rejects": rejects})
    return with_quantiles(metrics) if is_whole else metrics


def _fields(planned: Plan, tracker: Tracker) -> dict[str, Any]:
    """Return what fields landed records have, and the version that their landing says their schema to be of."""
    version = schema_version_of(planned.parent)
    return {FIELDS: {**tracker.fields, "version": version}} if tracker.fields else {}


def _below(tracker: Tracker, kept: Shards) -> Shards:
    """Return the shards of this stage that layers among the kept and the rejected rows rest on, by path."""
    needed: dict[str, Shard] = {}
    below_paths = below_of(tracker.finished)
    if not below_paths:
        return ()
    layers = [*kept, *(done.shards[rank] for done in tracker.finished for rank in done.rejecting)]
    while layers:
        below = below_paths.get(layers.pop().path)
        if below and below.path not in needed:
            needed[below.path] = below
            layers.append(below)
    named = {shard.path for shard in kept}
    return _in_order(shard for path, shard in needed.items() if path not in named)


def _in_order(shards: Iterable[Shard | None]) -> Shards:
    """Return shards by path: their order does not depend on how the input was cut."""
    return tuple(sorted((shard for shard in shards if shard), key=lambda shard: shard.path))


def _check(planned: Plan, manifest: Manifest) -> None:
    """Raise the error of a manifest that breaks a promise: columns, conservation, error budget."""
    _check_writes(planned, manifest)
    check_conservation(planned.card, planned.parent, manifest)
    damaged, budget = sum(manifest.quarantined.values()), planned.request.error_budget
    if damaged > budget.rows and damaged > budget.share * manifest.rows_in:
        message = (
            f"{planned.card.name}: {damaged} of {manifest.rows_in} records of this partition are damaged "
            f"{dict(manifest.quarantined)}: "
            f"{damaged_files(read_shards(planned.request.root, manifest.quarantine, COLUMNS))}; the "
            f"budget is {budget.rows:g} rows or {budget.share:.1%}. Land the files again; or, in the recipe, name "
            "their fields under `fields:` if those are not found, or raise `run: error_budget:` if they are as good as "
            "they get"
        )
        raise BudgetExceeded(message)


def _check_writes(planned: Plan, manifest: Manifest) -> None:
    written, promised = dict(manifest.schema), planned.card.written(planned.params)
    wrong = [column.name for column in promised if written and written.get(column.name) != str(column.type)]
    if wrong:
        message = f"{planned.card.name} promised columns {wrong} and wrote {written}; its card or its kernel is wrong"
        raise SchemaBroken(message)
    if unknown := sorted(set(manifest.rejected) - set(planned.card.reasons)):
        message = f"{planned.card.name} rejects for {unknown}, not in the `reasons` of its card; add them there"
        raise SchemaBroken(message)


def _check_history(card: Stage[Any], engine: RunningEngine) -> None:
    """Raise SchemaBroken where a stage saved other columns than it declares for a section."""
    for name, shards in engine.saved.items():
        declared = schema_pairs(card.history[name].schema)
        for columns in schema_of(engine.tracker.finished, shards).values():
            if columns != declared:
                message = (
                    f"{card.name} declares {dict(declared)} for its history section {name} and saved "
                    f"{dict(columns)}; its card or its kernel is wrong"
                )
                raise SchemaBroken(message)


def check_conservation(card: Stage[Any], parent: Manifest, manifest: Manifest) -> None:
    """Raise RowsVanished unless every input row (copy, token; and its offspring) is kept, rejected or quarantined."""
    total_in, total_out = manifest.due(card.conserves, parent), manifest.accounted(card.conserves)
    lost = _offspring_lost(card, parent, manifest)
    if lost or total_in != total_out:
        unit = "rows and offspring" if card.conserves == "offspring" else card.conserves
        message = (
            f"{card.name}/{manifest.fingerprint}: {total_in + lost} {unit} came in and {total_out} "
            f"are accounted for ({manifest.rows} kept, rejected {dict(manifest.rejected)}, "
            f"quarantined {dict(manifest.quarantined)}); "
            "nothing was committed. This is a defect of the stage: report it with the manifest's parent"
        )
        raise RowsVanished(message)


def _offspring_lost(card: Stage[Any], parent: Manifest, manifest: Manifest) -> int:
    """Return by how much the offspring that a parent counted are more than those that came in of all of its shards.

    Those of rows that were quarantined before they became rows are not lost: their source is in quarantine.
    """
    is_whole = manifest.covers == tuple(shard.identity for shard in parent.shards)
    if card.conserves != "offspring" or parent.offspring is None or not is_whole:
        return 0
    lost = parent.offspring - manifest.offspring_in
    return 0 if lost > 0 and manifest.quarantined else lost


def seal(request: RefineRequest, spans: Sequence[Span], poison: Sequence[Span] = ()) -> Refined:
    """Concatenate the committed partitions of a stage into its manifest; every input shard must be covered once.

    With `poison`, which are those of the spans that were quarantined, the manifest is partial, unless the whole one is
    committed already.
    """
    planned = plan(request)
    store = storage.connect(request.root)
    path = commit_slot(store, planned.card.name, planned.fingerprint)
    if store.size(path):  # an empty object is no commit
        return Refined(path, _verified(store, path, planned), Cost())
    named = [_partition(store, planned, span, POISON if span in poison else "") for span in sorted(spans)]
    parts = [part for _, part in named]
    covered = tuple(identity for part in parts for identity in part.covers)
    if covered != tuple(shard.identity for shard in planned.parent.shards):
        shards = len(planned.parent.shards)
        message = f"{planned.io.prefix}: its {len(parts)} partitions do not cover the {shards} input shards once"
        raise RowsVanished(message)
    if len(poison) == len(parts):
        message = (
            f"{planned.card.name}: every one of its {len(parts)} partitions failed every try, and nothing is left; "
            "the logs of their tasks have the errors. Mend what they name, then run it again"
        )
        raise ContractError(message)
    _require_stored(store, dict(named), planned.io.prefix)
    sealed = replace(_concatenate(parts), parents=planned.parents, parent_digests=planned.parent_digests)
    check_conservation(planned.card, planned.parent, sealed)
    if sealed.poison:
        path = manifest_path(sealed.stage, sealed.fingerprint)
    return Refined(path, commit_manifest(store, path, sealed), Cost())


def _partition(store: Store, planned: Plan, span: Span, kind: str) -> tuple[str, Manifest]:
    path = partition_path(planned, span, kind)
    try:
        return path, _planned(store, path, planned, span)
    except FileNotFoundError as error:
        message = (
            f"{store.root}/{path}: no such manifest; refine that partition first, or all of the stage again if another "
            "release or other libraries were installed since"
        )
        raise RecipeError(message) from error


def _concatenate(parts: Sequence[Manifest]) -> Manifest:
    sealed = replace(
        parts[0],
        schema=next((part.schema for part in parts if part.schema), ()),
        covers=tuple(digest for part in parts for digest in part.covers),
        shards=tuple(shard for part in parts for shard in part.shards),
        history=_joined(part.history for part in parts),
        rejects=_in_order(shard for part in parts for shard in part.rejects),
        quarantine=_in_order(shard for part in parts for shard in part.quarantine),
        below=_in_order(shard for part in parts for shard in part.below),
        rows_in=sum(part.rows_in for part in parts),
        offspring_in=sum(part.offspring_in for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        rejected=total(part.rejected for part in parts),
        quarantined=total(part.quarantined for part in parts),
        metrics=_joined_metrics([part.metrics for part in parts]),
        poison=tuple(identity for part in parts for identity in part.poison),
        writer=max(part.writer for part in parts),
    )
    return identified(sealed) if sealed.poison else sealed


def _joined_metrics(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add the metrics of partitions up."""
    fields = summed(each.get(FIELDS, {}) for each in metrics)
    joined = with_quantiles({key: merge(each[key] for each in metrics) for key in ("kept", "rejects")})
    return joined | ({FIELDS: fields} if fields else {})


def _joined(histories: Iterable[Mapping[str, Shards]]) -> dict[str, Shards]:
    """Concatenate the history of partitions, section by section."""
    joined: dict[str, Shards] = {}
    for history in histories:
        for name, shards in history.items():
            joined[name] = (*joined.get(name, ()), *shards)
    return joined
