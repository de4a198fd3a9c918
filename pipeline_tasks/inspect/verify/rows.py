"""Compares the rows of shards with what their manifest says of them: counts, columns, reasons and profiles."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import pyarrow.parquet as pq

from pipeline_tasks.cards import stage_card
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import REFINE_AGAIN, Committed
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.profiles.columns import merge, profile
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erased_by_path
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.shards.file import successor_of
from pipeline_tasks.store.shards.rows import Columns, facts_of


def check_rows(root: str, read: Committed, findings: Findings, known: Mapping[str, Committed]) -> None:
    """Re-read the rows of a manifest and compare them with what it says; `known` has all manifests by fingerprint.

    A landed snapshot has no rows yet, and those of a composition are checked where they were refined. Where a shard
    is damaged, the rows of all layers over it say nothing.
    """
    manifest = read.manifest
    lineage = tuple(_lineage(manifest, known))
    stored = [shard for earlier in lineage for shard in earlier.stored]
    if (
        manifest.landed
        or manifest.stage == COMPOSE
        or any(findings.is_damaged(f"{root}/{shard.path}") for shard in stored)
    ):
        return
    named = {shard.path for shard in stored}
    measured: dict[str, Measured] = {}
    for name, schema, shards in _parts(read.manifest):
        for shard in shards:
            with findings.guarded(f"{root}/{shard.path}", REFINE_AGAIN):
                measured[shard.path] = _measured(root, shard)
                _check_shard(root, read, (name, schema, shard), measured[shard.path], findings)
                if _is_whole(lineage, known):  # else an earlier manifest is a problem of its own
                    _check_below(root, read, (shard, measured[shard.path].below), named, findings)
    with findings.guarded(read.where, REFINE_AGAIN):
        _check_reasons(root, read, findings)
        gone = erased_by_path(root)
        if any(shard.path in gone for shard in stored):
            findings.note("profiles of rows of which some were erased since are not computed again")
        else:
            _check_profiles(root, read, measured, findings)


class Measured(NamedTuple):
    """What a shard's file says of its rows: their number, their columns, and the path of the shard below a layer."""

    rows: int
    columns: Columns
    below: str = ""


def _lineage(manifest: Manifest, known: Mapping[str, Committed]) -> Iterator[Manifest]:
    """Yield a manifest, its parent (all of them for a composition), and so on."""
    yield manifest
    for fingerprint in _inputs(manifest):
        if fingerprint in known:
            yield from _lineage(known[fingerprint].manifest, known)


def _inputs(manifest: Manifest) -> tuple[str, ...]:
    """Return the fingerprints of the manifests whose rows a stage read."""
    return manifest.parents if manifest.stage == COMPOSE else manifest.parents[:1]


def _is_whole(lineage: Iterable[Manifest], known: Mapping[str, Committed]) -> bool:
    """Return whether no manifest is missing between a stage and what landed."""
    return all(known.keys() >= set(_inputs(manifest)) for manifest in lineage)


def _check_below(
    root: str, read: Committed, layer: tuple[Shard, str], named: Container[str], findings: Findings
) -> None:
    """Check that a layer rests on a shard that its own manifest or an earlier one names: a vacuum keeps no other."""
    shard, below = layer
    if below and below not in named:
        problem = "rests on a shard that neither its manifest nor an earlier one names"
        findings.add(Problem(f"{root}/{shard.path}", problem, f"a shard below {read.path}", below, REFINE_AGAIN))


def _parts(manifest: Manifest) -> Iterator[tuple[str, Columns, Iterable[Shard]]]:
    """Yield the parts of a manifest with their columns (none: they are not stated) and shards."""
    yield "shards", manifest.schema, manifest.shards
    declared = stage_card(manifest.stage).history
    for section, shards in manifest.history.items():
        yield f"history {section}", schema_pairs(declared[section].schema) if section in declared else (), shards
    yield "rejects", (), manifest.rejects
    yield "quarantine", (), manifest.quarantine


def _check_shard(
    root: str, read: Committed, part: tuple[str, Columns, Shard], measured: Measured, findings: Findings
) -> None:
    """Check a shard's rows and columns."""
    name, schema, shard = part
    rows, columns, _ = measured
    where = f"{root}/{shard.path}"
    if rows != shard.rows:
        problem = f"has another number of rows than {read.path} says"
        findings.add(Problem(where, problem, f"{shard.rows} rows", f"{rows} rows", REFINE_AGAIN))
    if schema and _plain(columns) != _plain(schema):
        problem = f"has other columns than {read.path} says of its {name}"
        findings.add(Problem(where, problem, str(dict(schema)), str(dict(columns)), REFINE_AGAIN))


def _plain(columns: Columns) -> Columns:
    """Return columns with one name for the items of lists: Parquet has its own, which the next stage reads."""
    return tuple((name, kind.replace("<element: ", "<item: ")) for name, kind in columns)


def _measured(root: str, shard: Shard) -> Measured:
    """Return what a shard's file says of its rows."""
    if shard.index_digest:
        batches = list(read_shards(root, [shard]))
        return Measured(sum(batch.num_rows for batch in batches), schema_pairs(batches[0].schema))
    with _opened(root, shard) as stream:
        file = pq.ParquetFile(stream)
        facts = facts_of(file.schema_arrow)
        if facts:
            return Measured(file.metadata.num_rows, facts.columns, facts.below.path)
        return Measured(file.metadata.num_rows, schema_pairs(file.schema_arrow))


def shard_below(root: str, layer: Shard) -> str:
    """Return the path of the shard that a layer rests on, as its file says it."""
    return _measured(root, layer).below


def _opened(root: str, shard: Shard) -> BinaryIO:
    """Open the file of a shard, or of the one that an erasure put in its place."""
    try:
        return storage.connect(root).open(shard.path)
    except FileNotFoundError:
        successor = successor_of(root, shard)
        if successor is None:
            raise
    return _opened(root, successor)


def _check_reasons(root: str, read: Committed, findings: Findings) -> None:
    """Count the reasons of the stored rejects and compare them with the tallies."""
    manifest = read.manifest
    for name, tally, shards in (
        ("rejected", manifest.rejected, manifest.rejects),
        ("quarantined", manifest.quarantined, manifest.quarantine),
    ):
        counted: Counter[str] = Counter()
        for batch in read_shards(root, shards, ["reason"]):
            counted.update(batch.column("reason").to_pylist())
        if counted != Counter(tally):
            values = (str(dict(sorted(tally.items()))), str(dict(sorted(counted.items()))))
            findings.add(Problem(read.where, f"{name} rows have other reasons than it counts", *values, REFINE_AGAIN))


def _check_profiles(root: str, read: Committed, measured: Mapping[str, Measured], findings: Findings) -> None:
    """Profile the columns again and compare: all but those that a manifest has in part only."""
    manifest = read.manifest
    profiled = stage_card(manifest.stage).profiled
    for part, shards in (("kept", manifest.shards), ("rejects", (*manifest.rejects, *manifest.quarantine))):
        files = [(shard, measured.get(shard.path) or _measured(root, shard)) for shard in shards]
        again = merge(_profiles(root, files, profiled))
        said = manifest.metrics.get(part, {})
        for column in sorted(again):
            if column in said and not _equal(said[column], again[column]):
                values = (str(said[column])[:200], str(again[column])[:200])
                problem = f"its profile of {column} ({part}) is not that of its rows"
                findings.add(Problem(read.where, problem, *values, REFINE_AGAIN))


def _profiles(
    root: str, files: Iterable[tuple[Shard, Measured]], profiled: Container[str]
) -> Iterator[Mapping[str, Any]]:
    for shard, measured in files:
        columns = [name for name, _ in measured.columns if name in profiled and not shard.index_digest]
        for batch in read_shards(root, (shard,), columns) if columns else ():
            if batch.num_rows:
                yield profile(batch, columns)


def _equal(said: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    return (said.get("count"), said.get("sum"), said.get("bins")) == (
        again["count"],
        again.get("sum"),
        again["bins"],
    )
