"""Refines one stage: checks the request, hands shards to an engine, and commits the manifest last and once."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pipeline_tasks.errors import (
    BudgetExceeded,
    ContractError,
    DeterminismViolation,
    JobLost,
    RecipeError,
    RowsVanished,
    SchemaBroken,
)
from pipeline_tasks.manifest import (
    ABANDONED,
    Manifest,
    canonical,
    commit_slots,
    digest_of,
    dump,
    fingerprint_of,
    load,
    manifest_path,
    schema_pairs,
    stage_prefix,
    total,
)
from pipeline_tasks.profiles.columns import merge
from pipeline_tasks.profiles.removals import notable
from pipeline_tasks.recipe import bind, stage_card
from pipeline_tasks.run.history import History, read_history
from pipeline_tasks.run.task import Place, repoint
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Engine, Shard, Shards, Stage
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.reading import read_manifest


@dataclass(frozen=True, slots=True)
class Budget:
    """How many quarantined records a partition bears: it fails above both `share` and `rows`."""

    share: float = 0.01
    rows: int = 20


@dataclass(frozen=True, slots=True)
class Work:
    """One stage over one input: everything that its identity follows from, and where its root is.

    `parent` and `history` are manifest paths relative to `root`; `history` lists this stage's
    manifests of earlier snapshots, oldest first. `landing` is where the snapshot's files lie; it,
    `budget` and `batch_rows` say how to run and are no part of identity.
    """

    root: str
    stage: str
    params: Mapping[str, Any]
    parent: str
    history: tuple[str, ...] = ()
    landing: str = ""
    budget: Budget = field(default_factory=Budget)
    batch_rows: int = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """A `Work` made concrete: its card, checked params, parent, history and fingerprint."""

    work: Work
    card: Stage[Any]
    params: Any
    parent: Manifest
    history: tuple[Manifest, ...]
    resources: Mapping[str, str]
    fingerprint: str

    @property
    def home(self) -> str:
        """Prefix of this stage's output, relative to the root."""
        return stage_prefix(self.card.name, self.fingerprint)

    @property
    def path(self) -> str:
        """Path of the manifest that commits the whole stage."""
        return manifest_path(self.card.name, self.fingerprint)


class RunningEngine(Engine, Protocol):
    """What the runner needs of an engine beside its two verbs: the tasks it ran, and the history it saved."""

    tracker: Tracker
    saved: Mapping[str, Shards]


EngineFactory = Callable[[Tracker, History], RunningEngine]
"""Makes an engine for one run of a stage, with the history of earlier snapshots."""


@dataclass(slots=True)
class Meter:
    """What an attempt cost: seconds of wall clock and of CPU in the workers, and shards run or found done.

    `recalled` counts what lookups in remembered shards read: rows, pages, bytes and requests.
    """

    wall: float = 0.0
    cpu: float = 0.0
    ran: int = 0
    found: int = 0
    recalled: Mapping[str, int] = field(default_factory=dict)


def plan(work: Work) -> Plan:
    """Check the request and compute the fingerprint; nothing is read but manifests and resource files."""
    card = stage_card(work.stage)
    params = bind(card, work.params)
    parent = read_manifest(work.root, work.parent)
    history = tuple(read_manifest(work.root, path) for path in work.history) if card.reads_history else ()
    _check_reads(card, parent)
    params, resources = _resources(card, params)
    parents = [parent.fingerprint, *(one.fingerprint for one in history)]
    identity = _identity(params, resources)
    print_ = fingerprint_of(card.name, card.version, identity, parents, _by_name(resources))
    return Plan(work, card, params, parent, history, resources, print_)


def _check_reads(card: Stage[Any], parent: Manifest) -> None:
    there = dict(parent.schema)
    missing = [one.name for one in card.reads if parent.schema and one.name not in there]
    if missing:
        message = (
            f"{card.name} reads columns {missing} that {parent.stage}/{parent.fingerprint} does not have; "
            "put the stage that writes them before it in the recipe"
        )
        raise SchemaBroken(message)


def _resources(card: Stage[Any], params: Any) -> tuple[Any, dict[str, str]]:  # noqa: ANN401 -- the card's Params
    """Return the params with absolute paths, and {path: SHA-256} of every file that they name."""
    listed = card.resources(params) if card.resources else ()
    params = repoint(params, {path: _absolute(path) for path in listed})
    digests = {}
    for path in map(_absolute, listed):
        try:
            digests[path] = storage.digest_of_file(path)[1]
        except FileNotFoundError as error:
            message = f"{card.name}: cannot read {path}; correct the path in the recipe"
            raise RecipeError(message) from error
    return params, digests


def _absolute(path: str) -> str:
    if storage.is_absolute(path):
        return path
    from pathlib import Path

    return str(Path(path).absolute())


def _identity(params: Any, resources: Mapping[str, str]) -> Any:  # noqa: ANN401 -- the card's Params
    """Return the params with every resource path replaced by its digest: the content is identity, not the place."""
    return _replace_paths(json.loads(canonical(params)), resources)


def _replace_paths(value: Any, resources: Mapping[str, str]) -> Any:  # noqa: ANN401 -- JSON
    if isinstance(value, dict):
        return {key: _replace_paths(item, resources) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_paths(item, resources) for item in value]
    return f"sha256:{resources[value]}" if isinstance(value, str) and value in resources else value


def _by_name(resources: Mapping[str, str]) -> dict[str, str]:
    return {str(rank): digest for rank, digest in enumerate(sorted(resources.values()))}


# --- Running --------------------------------------------------------------------------------------------------


def tracker_for(plan_: Plan) -> Tracker:
    """Return the bench an engine works at: where shards go, what is profiled, how input is read."""
    landing = plan_.parent.params if plan_.parent.stage == "land" else {}
    place = Place(
        root=plan_.work.root,
        home=plan_.home,
        profiled=plan_.card.profiled,
        batch_rows=plan_.work.batch_rows,
        snapshot=str(landing.get("snapshot", "")),
        landing=plan_.work.landing,
        files=tuple(plan_.resources.items()),
    )
    return Tracker(place)


def refine(work: Work, engine: EngineFactory, span: tuple[int, int] | None = None) -> tuple[str, Manifest, Meter]:
    """Run a stage over shards [start, stop) of its parent (all, when `span` is None) and commit.

    Returns the manifest's path, the manifest, and what this attempt cost. Work already committed
    is found and returned as it is: retry, resume, backfill and cache are this one line.
    """
    plan_ = plan(work)
    store = storage.connect(work.root)
    path = _slot(store, plan_) if span is None else partition_path(plan_, span)
    if store.size(path):  # an empty object is no commit
        return path, _verified(store, path), Meter()
    made, meter = _run(plan_, engine, span)
    _commit(store, path, made)
    return path, made, meter


def _slot(store: Store, plan_: Plan) -> str:
    """Return where the stage commits, or has committed: past slots that a sweep has fenced off."""
    return next(path for path in commit_slots(plan_.card.name, plan_.fingerprint) if store.size(path) != len(ABANDONED))


def _commit(store: Store, path: str, made: Manifest) -> None:
    try:
        storage.commit(store, path, dump(made))
    except DeterminismViolation as error:
        if store.read(path) != ABANDONED:
            raise
        message = f"{store.root}/{path}: this attempt was given up and swept while it ran; it is refined anew"
        raise JobLost(message) from error


def partition_path(plan_: Plan, span: tuple[int, int]) -> str:
    """Return the path of a partition's manifest, named by the input that it covers and not by its number."""
    covered = [shard.digest for shard in plan_.parent.shards[slice(*span)]]
    return f"{plan_.home}/partitions/{digest_of(covered)}.json"


def _verified(store: Store, path: str) -> Manifest:
    """Load a committed manifest and see that every shard it names is there with its size."""
    found = load(store.read(path), f"{store.root}/{path}")
    for shard in found.stored:
        if store.size(shard.path) != shard.bytes:
            message = (
                f"{store.root}/{path} names {shard.path}, which is missing or cut short; "
                f"remove {path} (not its data) and run again: only what is missing is made anew"
            )
            raise ContractError(message)
    return found


def _run(plan_: Plan, factory: EngineFactory, span: tuple[int, int] | None) -> tuple[Manifest, Meter]:
    started = time.perf_counter()
    shards = plan_.parent.shards if span is None else plan_.parent.shards[slice(*span)]
    if span is not None and not plan_.card.splits:
        message = f"{plan_.card.name} cannot be split into partitions; run it whole"
        raise RecipeError(message)
    engine = factory(tracker_for(plan_), read_history(plan_.work.root, plan_.card.history, plan_.history))
    kept = plan_.card.run(shards, plan_.params, engine)
    made = _manifest(plan_, shards, kept, engine.tracker, engine.saved)
    _check(plan_, made)
    _check_history(plan_.card, engine)
    tracker = engine.tracker
    wall = time.perf_counter() - started
    return made, Meter(wall, tracker.cpu, tracker.ran, tracker.found, dict(sorted(tracker.recalled.items())))


def _manifest(plan_: Plan, shards: Shards, kept: Shards, tracker: Tracker, saved: Mapping[str, Shards]) -> Manifest:
    receipts = [tracker.by_path[shard.path] for shard in kept]
    tallies = tracker.rejected
    landed = plan_.parent.stage == "land"
    rows_in = sum(tracker.landed.values()) if landed else sum(shard.rows for shard in shards)
    return Manifest(
        stage=plan_.card.name,
        version=plan_.card.version,
        fingerprint=plan_.fingerprint,
        params=_identity(plan_.params, plan_.resources),
        parents=(plan_.parent.fingerprint, *(one.fingerprint for one in plan_.history)),
        covers=tuple(shard.digest for shard in shards),
        schema=receipts[0].schema if receipts else (),
        shards=kept,
        history={name: shards for name, shards in saved.items() if shards},
        rejects=_in_order(one.rejects for one in tracker.receipts),
        quarantine=_in_order(one.quarantine for one in tracker.receipts),
        rows_in=rows_in,
        bytes_in=sum(shard.bytes for shard in shards),
        rejected={why: count for why, count in tallies.items() if not why.startswith("error:")},
        quarantined={why: count for why, count in tallies.items() if why.startswith("error:")},
        metrics=notable(
            {
                "kept": merge(one.kept_profile for one in receipts),
                "rejects": merge(one.rejects_profile for one in tracker.receipts),
            }
        ),
    )


def _in_order(shards: Iterable[Shard | None]) -> Shards:
    """Return shards by path, so that their order does not tell how the work was cut."""
    return tuple(sorted((one for one in shards if one), key=lambda one: one.path))


def _check(plan_: Plan, made: Manifest) -> None:
    """Refuse to commit what broke a promise: columns, conservation, error budget."""
    _check_writes(plan_.card, made)
    check_conservation(plan_.card, plan_.parent, made)
    bad, budget = sum(made.quarantined.values()), plan_.work.budget
    if bad > budget.rows and bad > budget.share * max(made.rows_in, 1):
        message = (
            f"{plan_.card.name}: {bad} of {made.rows_in} records of this partition are damaged "
            f"{dict(made.quarantined)}; the budget is {budget.rows} rows or {budget.share:.1%}. Land the files again, "
            "or raise `run: error_budget:` in the recipe if they are as good as they get"
        )
        raise BudgetExceeded(message)


def _check_writes(card: Stage[Any], made: Manifest) -> None:
    there = dict(made.schema)
    wrong = [one.name for one in card.writes if made.schema and there.get(one.name) != str(one.type)]
    if wrong:
        message = f"{card.name} promised columns {wrong} and wrote {there}; its card or its kernel is wrong"
        raise SchemaBroken(message)


def _check_history(card: Stage[Any], engine: RunningEngine) -> None:
    """Raise SchemaBroken where a stage saved other columns than it declares for a section."""
    for name, shards in engine.saved.items():
        declared = schema_pairs(card.history[name].schema)
        for shard in shards:
            receipt = engine.tracker.by_path.get(shard.path)
            if receipt is not None and receipt.schema != declared:
                message = (
                    f"{card.name} declares {dict(declared)} for its history section {name} and saved "
                    f"{dict(receipt.schema)}; its card or its kernel is wrong"
                )
                raise SchemaBroken(message)


def check_conservation(card: Stage[Any], parent: Manifest, made: Manifest) -> None:
    """Raise RowsVanished unless everything that came in is kept, rejected or quarantined."""
    aside = sum(made.rejected.values()) + sum(made.quarantined.values())
    if card.conserves == "rows":
        came, went = made.rows_in, made.rows + aside
    else:
        came = parent.metrics["kept"].get("n_tokens", {"sum": 0})["sum"]
        went = made.metrics["kept"].get("n_tokens", {"sum": 0})["sum"]
    if came != went:
        message = (
            f"{card.name}/{made.fingerprint}: {came} {card.conserves} came in and {went} are accounted for "
            f"({made.rows} kept, rejected {dict(made.rejected)}, quarantined {dict(made.quarantined)}); "
            "nothing was committed. This is a defect of the stage: report it with the manifest's parent"
        )
        raise RowsVanished(message)


def seal(work: Work, spans: Sequence[tuple[int, int]]) -> tuple[str, Manifest]:
    """Concatenate the committed partitions of a stage into its manifest; every input shard must be covered once."""
    plan_ = plan(work)
    store = storage.connect(work.root)
    path = _slot(store, plan_)
    if store.size(path):  # an empty object is no commit
        return path, _verified(store, path)
    parts = [_partition(store, plan_, span) for span in sorted(spans)]
    covered = tuple(digest for part in parts for digest in part.covers)
    if covered != tuple(shard.digest for shard in plan_.parent.shards):
        shards = len(plan_.parent.shards)
        message = f"{plan_.home}: its {len(parts)} partitions do not cover the {shards} input shards once"
        raise RowsVanished(message)
    whole = _concatenate(parts)
    check_conservation(plan_.card, plan_.parent, whole)
    _commit(store, path, whole)
    return path, whole


def _partition(store: Store, plan_: Plan, span: tuple[int, int]) -> Manifest:
    path = partition_path(plan_, span)
    read_manifest(store.root, path)
    return _verified(store, path)


def _concatenate(parts: Sequence[Manifest]) -> Manifest:
    return replace(
        parts[0],
        schema=next((part.schema for part in parts if part.schema), ()),
        covers=tuple(one for part in parts for one in part.covers),
        shards=tuple(one for part in parts for one in part.shards),
        history=_joined(part.history for part in parts),
        rejects=_in_order(one for part in parts for one in part.rejects),
        quarantine=_in_order(one for part in parts for one in part.quarantine),
        rows_in=sum(part.rows_in for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        rejected=total(part.rejected for part in parts),
        quarantined=total(part.quarantined for part in parts),
        metrics={key: merge(part.metrics[key] for part in parts) for key in ("kept", "rejects")},
    )


def _joined(histories: Iterable[Mapping[str, Shards]]) -> dict[str, Shards]:
    """Concatenate the history of partitions, section by section."""
    joined: dict[str, Shards] = {}
    for history in histories:
        for name, shards in history.items():
            joined[name] = (*joined.get(name, ()), *shards)
    return joined
