"""Merges the history of several snapshots into one segment per bucket, so that a lookup reads fewer pages.

Snapshots that were saved in other numbers of buckets are brought into those of the newest on the way. What a compaction
is, and when a run uses it, is in `run.history`.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby

import pyarrow as pa

from pipeline_tasks.cards import is_stage, stage_card
from pipeline_tasks.counted import counted
from pipeline_tasks.engines import choose
from pipeline_tasks.errors import ContractError, RowsVanished
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.manifest import Manifest, dump, stage_prefix
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import LOCAL, is_trial
from pipeline_tasks.run.alignment import overlapping
from pipeline_tasks.run.history import Compactions, History, Run, compactions, cover, has_keys, saved_digests
from pipeline_tasks.run.runner import EngineFactory, RunningEngine
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.run.tasks.sorted_runs import merged
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.stage import Section, Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.committing import commit_manifest
from pipeline_tasks.store.erasures import newest
from pipeline_tasks.store.protocol import Entry
from pipeline_tasks.store.reading import commit_slot, read_manifest
from pipeline_tasks.store.shards.segment import COMPACTED

FANOUT = 8
"""So many neighbors of one size are merged: n snapshots are at most 7 entries per power of 8, and a row is written
anew once per power."""

BATCH_ROWS = 1 << 16
"""Rows of a batch of merged history, at most."""

FILE_ROWS = 1 << 24
"""Rows of a merged segment of history that is saved per landed file: each is one more lookup, and one task to merge."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root."""
    add_root(parser)
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Merge all runs that are due and print them."""
    merged = compact(options.root, choose.engine(LOCAL))
    facts = {manifest.fingerprint: list(manifest.parents) for manifest in merged}
    print_result(options, facts, [*lines(merged)] or ["nothing to compact"])
    return 0


def due(root: str) -> list[Run]:
    """Return the runs that are to be merged now, over all recipes: `FANOUT` neighbors of one size, alike in form.

    A snapshot is also a run by itself, where its history is saved per landed file and merging leaves an eighth of the
    segments: every lookup asks for all of them.
    """
    known = compactions(root)
    runs = {run.name: run for history in histories(root) for run in _due(history, known)}
    return [runs[name] for name in sorted(runs)]


def histories(root: str) -> list[list[Manifest]]:
    """Return, for each recipe and each stage whose history has keys, the manifests of all snapshots, oldest first.

    Only a stage that is installed here says how its history is merged.
    """
    by_stage = []
    for recipe in version_log.recipes(root):
        if is_trial(recipe):
            continue  # nothing reads the history of a trial
        versions = version_log.latest_by_snapshot(root, recipe)
        for stage, path in sorted(versions[-1].manifests.items()) if versions else ():
            if is_stage(stage) and has_keys(read_manifest(root, path)):
                paths = [version.manifests[stage] for version in versions if stage in version.manifests]
                by_stage.append([manifest for path in paths if has_keys(manifest := read_manifest(root, path))])
    return by_stage


def _due(history: Sequence[Manifest], known: Compactions) -> Iterator[Run]:
    covered = cover(history, known)
    yield from (run for run, saved in covered if saved is run.parts[0] and _is_in_pieces(run))
    for _, alike in groupby((run for run, _ in covered), key=_form):
        runs = list(alike)
        for start in range(0, len(runs) - len(runs) % FANOUT, FANOUT):
            run = Run(tuple(part for run in runs[start : start + FANOUT] for part in run.parts))
            if _fits(run):
                yield run


def _is_in_pieces(run: Run) -> bool:
    """Return whether a snapshot by itself has `FANOUT` times the segments that its history needs."""
    saved = run.parts[0].history.values()
    return _by_file(run.parts[0]) and any(len(shards) >= FANOUT * _segments(shards) for shards in saved)


def _segments(shards: Sequence[Shard]) -> int:
    """Return how many segments the history of landed files is merged into."""
    return -(-sum(shard.rows for shard in shards) // FILE_ROWS) or 1


def _form(run: Run) -> tuple[object, ...]:
    """Return the properties that neighbors must share to be merged: size, and what their history is."""
    tier = 0
    while FANOUT ** (tier + 1) <= len(run.parts):
        tier += 1
    first = run.parts[0]
    params = {name: value for name, value in first.params.items() if name != "buckets"}
    saved = [] if _by_file(first) else [name for name, shards in first.history.items() if shards]
    return (tier, first.stage, first.version, canonical(params), canonical(saved))


def _fits(run: Run) -> bool:
    """Return whether each number of buckets of a run divides the newest, or is a multiple of it."""
    if _by_file(run.parts[0]):
        return True
    counts = [{len(shards) for shards in part.history.values() if shards} for part in run.parts]
    newest = max(counts[-1])
    return all(newest % count == 0 or count % newest == 0 for part in counts for count in part)


def _by_file(manifest: Manifest) -> bool:
    """Return whether a stage saves history per landed file, so that no shard belongs to a shard of another snapshot."""
    return stage_card(manifest.stage).splits


def compact(root: str, factory: EngineFactory) -> list[Manifest]:
    """Merge all runs that are due; return the new compactions. If it is killed, no partial compaction is committed."""
    storage.require_root(root)
    merged: list[Manifest] = []
    while runs := due(root):
        made = {manifest.fingerprint for manifest in merged}
        if all(run.name in made for run in runs):
            message = f"{root}: {runs[0].name} was compacted and is due again. This is a defect: report it"
            raise ContractError(message)
        merged += [_compacted(root, run, factory) for run in runs]
    return merged


def _compacted(root: str, run: Run, factory: EngineFactory) -> Manifest:
    parts = [manifest.history for _, manifest in cover(run.parts, compactions(root))]
    sections = stage_card(run.parts[0].stage).history
    stage_io = StageIO(root=root, prefix=stage_prefix(COMPACTED, run.name), erasures=newest(root))
    engine = factory(Tracker(stage_io), History(sections))
    merging = _by_files if _by_file(run.parts[0]) else _by_buckets
    saved = {}
    for name, section in sections.items():
        shards = [history.get(name, ()) for history in parts]
        saved[name] = merging(engine, name, _keys(section), shards) if any(shards) else ()
        _require_all(run, shards, saved[name])
    manifest = _manifest(run, saved)
    store = storage.connect(root)
    slot = commit_slot(store, COMPACTED, run.name)
    return commit_manifest(store, slot, manifest)


def _keys(section: Section) -> tuple[str, ...]:
    return (section.key, *section.order)


def _by_files(engine: RunningEngine, section: str, keys: Sequence[str], parts: Sequence[Shards]) -> Shards:
    """Merge as many files as fit into one segment."""
    shards = [shard for part in parts for shard in part]
    count = _segments(shards)
    lists = [tuple(shards[rank::count]) for rank in range(count)]
    for _, alike in groupby(lists, key=len):
        engine.save_history(section, *zip(*alike, strict=True), kernel=partial(merge, keys=keys))
    return engine.saved[section]


def _by_buckets(engine: RunningEngine, section: str, keys: Sequence[str], parts: Sequence[Shards]) -> Shards:
    """Merge bucket by bucket, in as many buckets as the newest part has.

    A shard of a part with fewer buckets has the rows of several: of its `factor` buckets at most, a turn takes one.
    """
    count = len(parts[-1])
    factor = max(1, *(count // len(part) for part in parts))
    for turn in range(factor):
        lists = [[shard for part in parts for shard in overlapping(part, bucket, count)] for bucket in range(count)]
        only = {"only": (turn, factor, count)} if factor > 1 else {}
        streams = zip(*lists[turn::factor], strict=True)
        engine.save_history(section, *streams, kernel=partial(merge, keys=keys, **only))
    saved, turns = engine.saved[section], count // factor
    return tuple(saved[bucket % factor * turns + bucket // factor] for bucket in range(count))


def _require_all(run: Run, parts: Sequence[Shards], merged: Shards) -> None:
    read, written = sum(shard.rows for part in parts for shard in part), sum(shard.rows for shard in merged)
    if read != written:
        message = (
            f"{stage_prefix(COMPACTED, run.name)}: {read} rows went in and {written} came out; nothing was committed. "
            "This is a defect: report it"
        )
        raise RowsVanished(message)


def _manifest(run: Run, merged: Mapping[str, Shards]) -> Manifest:
    first = run.parts[0]
    return Manifest(
        stage=first.stage,
        version=first.version,
        fingerprint=run.name,
        params=first.params,
        parents=run.fingerprints,
        covers=tuple(digest for part in run.parts for digest in saved_digests(part)),
        schema=(),
        shards=(),
        history={name: merged.get(name, ()) for name in first.history},
        rejects=(),
        quarantine=(),
        rows_in=sum(shard.rows for shards in merged.values() for shard in shards),
        bytes_in=sum(shard.bytes for part in run.parts for shard in part.history_shards),
        rejected={},
        quarantined={},
        parent_digests=tuple(sha256(dump(part)) for part in run.parts),
        resources=run.resources,
    )


def in_use(root: str, old: Callable[[Entry], bool]) -> frozenset[str]:
    """Return the prefixes of the compactions that a run over all of some recipe's snapshots may use.

    These are the compactions that it would choose now, and those that it would choose if only `old` ones existed.
    """
    known = [compactions(root), compactions(root, old)]
    covers = (entry for history in histories(root) for choice in known for entry in cover(history, choice))
    return frozenset(stage_prefix(COMPACTED, run.name) for run, merged in covers if merged is not run.parts[0])


def lines(merged: Iterable[Manifest]) -> Iterator[str]:
    """Yield compactions as lines for a person."""
    for manifest in merged:
        size = sum(shard.bytes for shard in manifest.history_shards)
        snapshots = counted(len(manifest.parents), "snapshot")
        yield f"{size:>14,} bytes of history of {snapshots} of {manifest.stage} merged"


# --- Merging --------------------------------------------------------------------------------------------------


def merge(
    *streams: Iterable[pa.RecordBatch], keys: Sequence[str], only: tuple[int, int, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Merge streams that are each sorted by `keys` into one sorted stream; holds one batch of each stream.

    With `only` (turn, factor, count) of the rows whose bucket among `count`, modulo `factor`, is `turn`.
    """
    iterators = [iter(stream) if only is None else _of_bucket(stream, keys[0], *only) for stream in streams]
    first = next(iterators[0])
    yield first.slice(0, 0)
    yield from merged([chain([first], iterators[0]), *iterators[1:]], keys, BATCH_ROWS)


def _of_bucket(
    stream: Iterable[pa.RecordBatch], key: str, turn: int, factor: int, count: int
) -> Iterator[pa.RecordBatch]:
    for batch in stream:
        yield batch.filter(pa.array(bucket_of(batch.column(key), count) % factor == turn))
