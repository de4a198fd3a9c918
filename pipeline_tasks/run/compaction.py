"""Merges what several snapshots remembered into one segment each, so that a lookup costs a few pages, not one a day.

A compaction is a cache: it holds the rows of its parts in their order and nothing else, is chosen only where exactly
its parts, in a row, are a run's history, and is no part of any fingerprint. A stage gives the same bytes with and
without it.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RowsVanished
from pipeline_tasks.manifest import ABANDONED, Manifest, canonical, commit_slots, digest_of, dump, load, stage_prefix
from pipeline_tasks.publish import version_log
from pipeline_tasks.recipe import stage_card
from pipeline_tasks.run.task import Place
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Kernel, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.segment import COMPACTED, Segment
from pipeline_tasks.store.storage import Entry

pc: Any = pyarrow.compute

FORMAT = 1
"""Version of a compaction's layout: part of its name."""

FANOUT = 8
"""So many neighbors of one size are merged: n snapshots are at most 7 segments per power of 8, and a row is written
anew once per power."""


FILE_ROWS = 1 << 24
"""Rows of a segment that stands for what was remembered per file: each is one look-up more, and one task to merge."""


class Pager(Protocol):
    """What compaction needs of an engine."""

    def page(self, kernel: Kernel, *inputs: Shards, by: Sequence[str]) -> Shards:
        """Run `kernel` once per shard of zipped inputs and store what it keeps as segments sorted by `by`."""


PagerFactory = Callable[[Tracker, Shards], Pager]
"""Makes an engine at a bench, with the memory of earlier snapshots."""


@dataclass(frozen=True, slots=True)
class Run:
    """Snapshots in a row whose memory is, or is to become, one segment per shard: `parts` are their manifests."""

    parts: tuple[Manifest, ...]

    @property
    def name(self) -> str:
        """The home's name: what is merged, and how it is written."""
        return digest_of([FORMAT, pa.__version__, self.fingerprints, [_digests(one) for one in self.parts]])

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """The parts by name."""
        return tuple(one.fingerprint for one in self.parts)


def _digests(made: Manifest) -> list[str]:
    return [shard.digest for shard in made.memory]


Known = Mapping[tuple[str, ...], Manifest]
"""Committed compactions by the fingerprints of their parts."""


def committed(root: str, among: Callable[[Entry], bool] = lambda _: True) -> dict[tuple[str, ...], Manifest]:
    """Return every committed compaction under `root`, of those whose manifest is `among`."""
    store = storage.connect(root)
    found = {}
    for entry in store.list(COMPACTED):
        name = entry.path.split("/")[2]
        if name.startswith("manifest.") and entry.bytes not in (0, len(ABANDONED)) and among(entry):
            with contextlib.suppress(FileNotFoundError):  # swept since it was listed
                made = load(store.read(entry.path), f"{store.root}/{entry.path}")
                found[made.parents] = made
    return found


def cover(history: Sequence[Manifest], known: Known) -> list[tuple[Run, Shards]]:
    """Cut history, oldest first, into the longest runs that are compacted, and single snapshots between them."""
    covered, start = [], 0
    longest = max(map(len, known), default=1)
    while start < len(history):
        for length in range(min(longest, len(history) - start), 0, -1):
            run = Run(tuple(history[start : start + length]))
            made = known.get(run.fingerprints)
            if length == 1 or (made is not None and made.fingerprint == run.name):
                covered.append((run, run.parts[0].memory if length == 1 or made is None else made.memory))
                start += length
                break
    return covered


def memory(root: str, history: Sequence[Manifest]) -> Shards:
    """Return what earlier snapshots remembered, oldest first, in as few shards as compaction has left."""
    lookups = all(shard.root for one in history for shard in one.memory)
    known = committed(root) if lookups and len(history) > 1 else {}
    return tuple(shard for _, shards in cover(history, known) for shard in shards)


def due(root: str) -> list[Run]:
    """Return the runs of neighbors that are to be merged now, over all recipes: `FANOUT` of one size, alike in form."""
    known = committed(root)
    runs = {run.name: run for history in histories(root) for run in _due(history, known)}
    return [runs[name] for name in sorted(runs)]


def histories(root: str) -> list[list[Manifest]]:
    """Return, for each recipe and each stage that remembers by key, the manifests of all snapshots, oldest first."""
    found = []
    for recipe in version_log.recipes(root):
        versions = version_log.latest_by_snapshot(root, recipe)
        stages = versions[-1].manifests if versions else {}
        for stage in sorted(name for name, path in stages.items() if _remembers_by_key(root, path)):
            paths = [version.manifests[stage] for version in versions if stage in version.manifests]
            found.append([_read(root, path) for path in paths if _remembers_by_key(root, path)])
    return found


def _read(root: str, path: str) -> Manifest:
    store = storage.connect(root)
    return load(store.read(path), f"{store.root}/{path}")


def _remembers_by_key(root: str, path: str) -> bool:
    made = _read(root, path)
    return bool(made.memory) and all(shard.root for shard in made.memory)


def _due(history: Sequence[Manifest], known: Known) -> Iterator[Run]:
    covered = [run for run, _ in cover(history, known)]
    for _, alike in groupby(covered, key=_form):
        runs = list(alike)
        for start in range(0, len(runs) - len(runs) % FANOUT, FANOUT):
            yield Run(tuple(part for run in runs[start : start + FANOUT] for part in run.parts))


def _form(run: Run) -> tuple[object, ...]:
    """Return what neighbors must share to be merged: their size, and how what they remember was made."""
    tier = 0
    while FANOUT ** (tier + 1) <= len(run.parts):
        tier += 1
    first = run.parts[0]
    shards = 0 if _by_file(first) else len(first.memory)
    return (tier, first.stage, first.version, canonical(first.params), shards)


def _by_file(made: Manifest) -> bool:
    """Tell whether a stage remembers per landed file, so that no shard belongs to one of another snapshot."""
    return stage_card(made.stage).splits


def compact(root: str, factory: PagerFactory) -> list[Manifest]:
    """Merge what is due until nothing is; returns the compactions made. Killed at any point, it leaves no half one."""
    made = []
    while runs := due(root):
        made += [_compacted(root, run, factory) for run in runs]
    return made


def _compacted(root: str, run: Run, factory: PagerFactory) -> Manifest:
    known = committed(root)
    lists = _lists(run, [shards for _, shards in cover(run.parts, known)])
    place = Place(root=root, home=stage_prefix(COMPACTED, run.name))
    engine = factory(Tracker(place), ())
    keys = [Segment(root, shards[0]).root.keys for shards in lists]
    merged: list[Any] = []
    for (by, _), alike in groupby(zip(keys, lists, strict=True), key=lambda pair: (pair[0], len(pair[1]))):
        parts = [tuple(column) for column in zip(*[shards for _, shards in alike], strict=True)]
        merged += engine.page(partial(merge, keys=by), *parts, by=by)
    _require_all(run, lists, merged)
    made = _manifest(run, tuple(merged))
    store = storage.connect(root)
    slot = next(path for path in commit_slots(COMPACTED, run.name) if store.size(path) != len(ABANDONED))
    storage.commit(store, slot, dump(made))
    return made


def _lists(run: Run, parts: Sequence[Shards]) -> list[Shards]:
    """Return the shards that become one: those of one bucket, or of so many files that one segment can hold."""
    if not _by_file(run.parts[0]):
        return list(zip(*parts, strict=True))
    shards = [shard for part in parts for shard in part]
    count = -(-sum(shard.rows for shard in shards) // FILE_ROWS) or 1
    return [tuple(shards[rank::count]) for rank in range(count)]


def _require_all(run: Run, lists: Sequence[Shards], merged: Sequence[Any]) -> None:
    rows = [sum(shard.rows for shard in one) for one in lists]
    if rows != [shard.rows for shard in merged]:
        message = (
            f"{stage_prefix(COMPACTED, run.name)}: {sum(rows)} rows went in and "
            f"{sum(shard.rows for shard in merged)} came out; nothing was committed. This is a defect: report it"
        )
        raise RowsVanished(message)


def _manifest(run: Run, merged: Shards) -> Manifest:
    first = run.parts[0]
    return Manifest(
        stage=first.stage,
        version=first.version,
        fingerprint=run.name,
        params=first.params,
        parents=run.fingerprints,
        covers=tuple(digest for part in run.parts for digest in _digests(part)),
        schema=(),
        shards=(),
        memory=merged,
        rejects=(),
        quarantine=(),
        rows_in=sum(shard.rows for shard in merged),
        bytes_in=sum(shard.bytes for part in run.parts for shard in part.memory),
        rejected={},
        quarantined={},
    )


def in_use(root: str, old: Callable[[Entry], bool]) -> frozenset[str]:
    """Return the homes of the compactions that a run over all of some recipe's snapshots may use.

    Those that it would choose now, and those that it would have chosen before the ones that are not `old` were made.
    """
    made = [committed(root), committed(root, old)]
    runs = (run for history in histories(root) for known in made for run, _ in cover(history, known))
    return frozenset(stage_prefix(COMPACTED, run.name) for run in runs if len(run.parts) > 1)


def told(made: Iterable[Manifest]) -> Iterator[str]:
    """Yield compactions as lines for a person."""
    for one in made:
        size = sum(shard.bytes for shard in one.memory)
        yield f"{size:>14,} bytes remembered by {len(one.parents):>4} snapshots of {one.stage} in one place now"


# --- Merging --------------------------------------------------------------------------------------------------


def merge(*streams: Iterable[pa.RecordBatch], keys: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Merge streams that are each sorted by `keys` into one that is; holds one batch of each stream."""
    waiting = [iter(one) for one in streams]
    held = [next(one) for one in waiting]
    yield held[0].slice(0, 0)
    while True:
        for rank, stream in enumerate(waiting):
            while not held[rank].num_rows and (after := next(stream, None)) is not None:
                held[rank] = after
        live = [rank for rank, batch in enumerate(held) if batch.num_rows]
        if not live:
            return
        # The lowest last row of all bounds what can still come: up to it, everything is here.
        bound = min(tuple(held[rank].column(name)[-1].as_py() for name in keys) for rank in live)
        cuts = {rank: _up_to(held[rank], keys, bound) for rank in live}
        parts = pa.Table.from_batches([held[rank].slice(0, cut) for rank, cut in cuts.items()])
        held = [batch.slice(cuts.get(rank, 0)) for rank, batch in enumerate(held)]
        ordered = parts.take(pc.sort_indices(parts, sort_keys=[(name, "ascending") for name in keys]))
        yield from ordered.combine_chunks().to_batches()


def _up_to(batch: pa.RecordBatch, keys: Sequence[str], bound: Sequence[Any]) -> int:
    """Return how many rows of a sorted batch are not above `bound`."""
    inside = pa.array(np.ones(batch.num_rows, bool))
    for name, value in reversed(list(zip(keys, bound, strict=True))):
        column, limit = batch.column(name), pa.scalar(value, batch.schema.field(name).type)
        inside = pc.or_(pc.less(column, limit), pc.and_(pc.equal(column, limit), inside))
    return int(pc.sum(inside).as_py())
