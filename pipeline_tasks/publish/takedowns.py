"""Takedowns: an append-only log of documents, URLs and sites that must not be used, and the lists that stages read."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import has_param, has_sequences, reads_landed, refines
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.manifest import Manifest, in_order
from pipeline_tasks.publish.datasets.origin import DIGEST
from pipeline_tasks.recipe import COMPOSE, LAND, TAKEDOWN
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.tasks.sorted_runs import merged
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.sealed import split_reference
from pipeline_tasks.stage import Shard
from pipeline_tasks.store.erasures import begun, completed
from pipeline_tasks.store.log_chain import append, next_number, read_chain
from pipeline_tasks.store.once import Once
from pipeline_tasks.store.reading import read_once, read_shards, whole_line
from pipeline_tasks.store.shards.segment import Segment
from pipeline_tasks.store.shards.segment_writer import store_segment
from pipeline_tasks.store.taken_down import (
    BATCH_ROWS,
    FEW,
    LOG,
    SEGMENTS,
    Run,
    Takedown,
    freed,
    held_behind,
    replayed,
    rows_named,
    runs_of,
    takedown_of,
    takedowns,
    taken_down,
    without,
)
from pipeline_tasks.store.taken_down_lists import Pinned, is_of, lacks, list_path, pinned_by, store_list
from pipeline_tasks.text.base.tables import last_of_runs
from pipeline_tasks.text.urls.takedown import (
    KEYED,
    MATCHING,
    ORDER,
    Entry,
    changes,
    counts_of,
    evidence,
    kinds_of,
    names_of,
    rows_of,
)

pc: Any = pyarrow.compute

PINNED = "taken_down"
"""Key of a landing's and of a composition's resources: the digest of the list that held when it was committed."""

LEAST_ROWS = 4096
"""Rows that a run weighs at least: so many are written again with a takedown, and lookups have few runs to ask."""

TOGETHER = 1 << 20
"""Entries of a takedown whose rows are in memory together."""

_FEW = 3
"""Lost entries that an error names."""


def record(root: str, entries: Sequence[Entry], reason: str, *, undo: bool = False) -> Takedown | None:
    """Append those of `entries` that change something; None, and no entry, if all hold already.

    RecipeError for the undoing of what was never taken down, or was erased since. The rows of the entry are stored
    before it: a try that is killed in between, or that another process overtakes, leaves a segment that nothing names.
    """
    keys = names_of(entries)
    while True:
        chain = read_chain(root, LOG)
        log = [takedown_of(root, entry) for entry in chain]
        known = _known(root, log, keys)
        if undo:
            _require_undoable(root, entries, keys, known)
        held = {key for key, row in known.items() if not row["undo"]}
        changing: dict[str, Entry] = {}
        for key, entry in zip(keys, entries, strict=True):
            if (key in held) == undo:
                changing.setdefault(key, entry)
        if not changing:
            return None
        now = datetime.now(UTC).isoformat(timespec="seconds")
        takedown = _stored(root, log, Takedown(next_number(chain), tuple(changing.values()), reason, now, undo))
        if append(root, LOG, chain, takedown.stored):
            return takedown


def _known(root: str, log: Sequence[Takedown], keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return what a log said last of keys, by those that it ever named."""
    rows = held_behind(root, log).known(pa.array(keys, pa.string()))
    return {row["key"]: row for row in rows.to_pylist()}


def require_ever(root: str, entries: Sequence[Entry]) -> None:
    """Raise RecipeError for an entry that was never taken down, or was erased since: there is nothing to undo."""
    keys = names_of(entries)
    _require_undoable(root, entries, keys, _known(root, takedowns(root), keys))


def _require_undoable(
    root: str, entries: Sequence[Entry], keys: Sequence[str], known: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise RecipeError for an entry that was never taken down, or that an erasure has completed.

    Blank rows of the latter would come back in its place.
    """
    until = completed(root)
    for (kind, value), key in zip(entries, keys, strict=True):
        if key not in known:
            message = f"{root}: {kind} {value} was not taken down; there is nothing to undo"
            raise RecipeError(message)
        if not known[key]["undo"] and known[key]["takedown"] <= until:
            message = (
                f"{root}: {kind} {value} was erased, and what is left of its rows is blank: it stays taken down. "
                "Refine its snapshots into another root to have it again"
            )
            raise RecipeError(message)


# --- Runs -----------------------------------------------------------------------------------------------------


def _stored(root: str, log: Sequence[Takedown], takedown: Takedown) -> Takedown:
    """Return a takedown behind a log with its run, which is stored; one of many entries names a segment with them."""
    entries, undo = takedown.entries, takedown.undo
    cut = [entries[start : start + TOGETHER] for start in range(0, len(entries), TOGETHER)]
    parts = [changes(part, [takedown.number] * len(part), undo=undo) for part in cut]
    run = _run(root, log, parts, undo=undo)
    if len(entries) <= FEW:
        return replace(takedown, run=run)
    listed = _segment(root, [part.to_batches() for part in parts])
    return replace(takedown, entries=(), many=len(entries), listed=listed, run=run)


def _run(root: str, log: Sequence[Takedown], parts: Sequence[pa.Table] = (), *, undo: bool = False) -> Run:
    """Store the rows of an entry behind a log together with those of the last runs that are not larger.

    So a row is written again as often as its run has doubled, and of n rows there are log2(n / 4096) runs and one more.
    """
    runs, streams = runs_of(log), [part.to_batches() for part in parts]
    counts: Mapping[str, int] = runs[-1].counts if runs else {}
    if runs is None:
        before = replayed(root, log)
        runs, counts, streams = (), counts_of(before), [before.to_batches(), *streams]
    rows, keeps = sum(part.num_rows for part in parts), len(runs)
    while keeps and runs[keeps - 1].segment.rows <= max(rows, LEAST_ROWS):
        keeps -= 1
        rows += runs[keeps].segment.rows
    segments = [Segment(root, run.segment, BATCH_ROWS) for run in runs[keeps:]]
    return Run(keeps, _segment(root, [*segments, *streams]), MATCHING, _added(counts, parts, undo=undo))


def _added(counts: Mapping[str, int], parts: Iterable[pa.Table], *, undo: bool) -> dict[str, int]:
    """Return how many entries hold, by kind, behind parts of a takedown, of which every row changes something."""
    added = Counter(counts)
    for part in parts:
        (added.subtract if undo else added.update)(kinds_of(part))
    return dict(sorted(added.items()))


def _segment(root: str, streams: Iterable[Iterable[pa.RecordBatch]]) -> Shard:
    """Store the newest row of each key of sorted streams as a segment."""
    rows = merged(map(iter, streams), (*ORDER, "takedown"), BATCH_ROWS)
    return store_segment(root, SEGMENTS, KEYED, ORDER, last_of_runs(rows, *ORDER))


# --- Lists ----------------------------------------------------------------------------------------------------


def current_rows(root: str) -> list[dict[str, Any]]:
    """Return what is taken down now as rows of `LIST`, for who lists it: all of it is read."""
    return rows_of(taken_down(root))


def pinned_list(root: str) -> dict[str, str]:
    """Store the list that holds now, and return it as the resources of a manifest: nothing if it is empty.

    No row of it is read: it names the runs of the log's last entry. Where that is of an earlier release these are made.
    """
    chain = read_chain(root, LOG)
    log = [takedown_of(root, entry) for entry in chain]
    if (runs := runs_of(log)) is None:
        runs = (_run(root, log),)
    if not runs or not any(runs[-1].counts.values()):
        return {}
    return {PINNED: store_list(root, chain[-1], (run.segment for run in runs), runs[-1].counts)}


def pinned(root: str, resources: Mapping[str, str]) -> Pinned:
    """Return the list that a manifest's resources pin; ContractError if it is damaged or gone."""
    return pinned_by(root, resources[PINNED])


def holds(root: str, resources: Mapping[str, str]) -> bool:
    """Return whether all that the list of a manifest's resources names is taken down now, as nothing does without one.

    ContractError if the list is damaged or gone.
    """
    if PINNED not in resources:
        return True
    listed = pinned(root, resources)
    if is_of(listed, read_chain(root, LOG)):
        return not any(rows.num_rows for rows in freed(root, listed.number))
    return next(lacks(root, listed), None) is None


def unrecorded(root: str, landing: Manifest) -> str:
    """Return what the log of takedowns lacks of the list that a landing pins, "" if it has all of it.

    A list that is gone is only evidence that there was some takedown. Where the log has not the entry that the list is
    of, as a log that was made again has not, all rows of the list are looked up.
    """
    if PINNED not in landing.resources:
        return ""
    chain = read_chain(root, LOG)
    try:
        listed = pinned(root, landing.resources)
        rows = iter(()) if is_of(listed, chain) else lacks(root, listed, ever=True)
        lost = [f"{row['key'].partition(' ')[0]} {row['value']} of entry {row['takedown']}" for row in rows]
    except ContractError:
        return "" if chain else "every entry"
    return ", ".join(lost[:_FEW]) + (f" and {len(lost) - _FEW} more" if lost[_FEW:] else "")


def pins_of(manifest: Manifest) -> dict[str, str]:
    """Return the list that a landing, a composition or a stage was made with, as resources; nothing without one."""
    digest = manifest.resources.get(PINNED) or str(manifest.params.get(PINNED) or "").removeprefix(DIGEST)
    return {PINNED: digest} if digest else {}


def list_of(root: str, resources: Mapping[str, str]) -> str:
    """Return the URI of the list that a manifest's resources pin, "" for none."""
    return f"{root}/{list_path(root, resources[PINNED])}" if PINNED in resources else ""


def taken_down_of(root: str, by_stage: Mapping[str, Manifest]) -> str:
    """Return the evidence for a document of a build, or of a snapshot, that is taken down now, "" if it has none."""
    documents, taken = documents_of(by_stage), taken_down(root)
    if taken.is_empty or _has_all(root, pins_of(by_stage.get(LAND, documents))):
        return ""  # all that is on the list now was on the one that each document was compared with
    for batch in read_shards(root, documents.shards, KNOWN_BY):
        proofs = evidence(taken, batch).drop_null()
        if len(proofs):
            return str(proofs[0].as_py())
    return ""


def _has_all(root: str, resources: Mapping[str, str]) -> bool:
    """Return whether nothing was taken down since the list was stored that a manifest's resources pin."""
    if PINNED not in resources:
        return False
    listed = pinned(root, resources)
    later = takedowns(root)[listed.number :]
    return is_of(listed, read_chain(root, LOG)) and all(takedown.undo for takedown in later)


def documents_of(by_stage: Mapping[str, Manifest]) -> Manifest:
    """Return the manifest with the documents that leave: those that a build packs, or of a refined snapshot."""
    ordered = in_order(by_stage)
    if COMPOSE in by_stage:
        return [manifest for stage, manifest in ordered.items() if not has_sequences(stage)][-1]
    return [manifest for stage, manifest in ordered.items() if stage != LAND and refines(stage)][-1]


def with_taken_down(request: RefineRequest) -> RefineRequest:
    """Return a request with the list of what was taken down as its param, for a stage that reads one.

    `ingest` and `extract` read that of their landing, `select` that of its composition: all tasks of a run read the
    same. `takedown` reads the one that holds now. A request that names a list, or "" for none, is left as it is.
    """
    if PINNED in request.params:
        return request
    if request.stage == TAKEDOWN:
        resources: Mapping[str, str] = pinned_list(request.root)
    elif has_param(request.stage, PINNED):
        resources = beginning(request.root, request.parent).resources
    else:
        return request
    path = list_of(request.root, resources)
    return replace(request, params={**request.params, PINNED: path}) if path else request


def require_current(request: RefineRequest) -> None:
    """Raise ContractError for a stage that reads landed files by a list without what an erasure has completed.

    It would write what was erased: no erasure reaches landed files. Later stages read what it left of its rows.
    """
    until = begun(request.root)
    if not until or not reads_landed(request.stage):
        return
    resources = beginning(request.root, request.parent).resources
    if any(_since(request.root, resources, until)):
        message = (
            f"{request.root}: this run landed before documents were taken down that have been erased since (takedown "
            f"{until}), and {request.stage} would write them again. Start the snapshot's run again from its landing"
        )
        raise ContractError(message)


def _since(root: str, resources: Mapping[str, str], until: int) -> Iterator[bool]:
    """Yield whether something is taken down by an entry up to `until` that the list of a manifest does not have."""
    listed = pinned(root, resources) if PINNED in resources else None
    number = listed.number if listed and is_of(listed, read_chain(root, LOG)) else 0
    later, now = takedowns(root)[number:until], replace(taken_down(root), until=until)
    known = listed.taken() if listed and later else None
    for takedown in later:
        for batch in rows_named(root, takedown) if not takedown.undo else ():
            rows = now.held(batch["key"])
            yield bool((without(rows, known.held(rows["key"])) if known else rows).num_rows)


_BEGINNINGS: Once[Manifest] = Once(lambda beginning: 1 + len(beginning.history_shards), 1 << 16)
"""Manifests that begin runs, without their shards, by root and the reference of what was made of them."""


def beginning(root: str, referred: str) -> Manifest:
    """Return the landing or composition, without its shards, that begins the run of a stage which has this parent.

    RecipeError if it is gone. A process looks for it once.
    """

    def found() -> Manifest:
        return replace(whole_line(root, read_once(root, referred)[0])[-1], covers=(), shards=())

    return _BEGINNINGS.get((root, referred), found) if split_reference(referred)[1] else found()
