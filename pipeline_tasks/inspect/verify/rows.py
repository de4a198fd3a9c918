"""Compares the rows of shards with what their manifest says of them: counts, columns, reasons and profiles."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import pyarrow.parquet as pq

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import REFINE_AGAIN, Committed
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.profiles.columns import merge, profile
from pipeline_tasks.recipe import stage_card
from pipeline_tasks.stage import LANDING, Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.shard_rows import Facts, facts_of


def check_rows(root: str, read: Committed, findings: Findings, known: Mapping[str, Committed]) -> None:
    """Re-read the rows of a manifest and compare them with what it says; `known` has all manifests by fingerprint.

    A landed snapshot has no rows yet, and where a shard is damaged, the rows of all layers over it say nothing.
    """
    manifest = read.manifest
    lineage = tuple(_lineage(manifest, known))
    stored = [shard for earlier in lineage for shard in earlier.stored]
    if manifest.landed or any(findings.is_damaged(f"{root}/{shard.path}") for shard in stored):
        return
    if lineage[-1].landed:  # else an earlier manifest is a problem of its own
        _check_below(root, read, {shard.path for shard in stored}, findings)
    for name, schema, shards in _parts(read.manifest):
        for shard in shards:
            with findings.guarded(f"{root}/{shard.path}", REFINE_AGAIN):
                _check_shard(root, read, (name, schema, shard), findings)
    with findings.guarded(read.where, REFINE_AGAIN):
        _check_reasons(root, read, findings)
        _check_profiles(root, read, findings)


def _lineage(manifest: Manifest, known: Mapping[str, Committed]) -> Iterator[Manifest]:
    """Yield a manifest, its parent, and so on."""
    earlier: Committed | None
    while manifest.parents and (earlier := known.get(manifest.parents[0])):
        yield manifest
        manifest = earlier.manifest
    yield manifest


def _check_below(root: str, read: Committed, named: Container[str], findings: Findings) -> None:
    """Check that each layer rests on a shard that its own manifest or an earlier one names: a vacuum keeps no other."""
    manifest = read.manifest
    for shard in (*manifest.shards, *manifest.rejects, *manifest.quarantine):
        where = f"{root}/{shard.path}"
        with findings.guarded(where, REFINE_AGAIN):
            facts = _facts(root, shard)
            if facts and facts.below.path not in named:
                problem = "rests on a shard that neither its manifest nor an earlier one names"
                findings.add(Problem(where, problem, f"a shard below {read.path}", facts.below.path, REFINE_AGAIN))


def _facts(root: str, shard: Shard) -> Facts | None:
    with storage.connect(root).open(shard.path) as stream:
        return facts_of(pq.read_schema(stream))


Columns = tuple[tuple[str, str], ...]


def _parts(manifest: Manifest) -> Iterator[tuple[str, Columns, Iterable[Shard]]]:
    """Yield the parts of a manifest with their columns (none: they are not stated) and shards."""
    yield "shards", manifest.schema, manifest.shards
    declared = stage_card(manifest.stage).history
    for section, shards in manifest.history.items():
        yield f"history {section}", schema_pairs(declared[section].schema) if section in declared else (), shards
    yield "rejects", (), manifest.rejects
    yield "quarantine", (), manifest.quarantine


def _check_shard(root: str, read: Committed, part: tuple[str, Columns, Shard], findings: Findings) -> None:
    """Check a shard's rows and columns."""
    name, schema, shard = part
    rows, columns = _measured(root, shard)
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


def _measured(root: str, shard: Shard) -> tuple[int, Columns]:
    """Return the rows and the columns of a shard."""
    if shard.index_digest:
        batches = list(read_shards(root, [shard]))
        return sum(batch.num_rows for batch in batches), schema_pairs(batches[0].schema)
    with storage.connect(root).open(shard.path) as stream:
        file = pq.ParquetFile(stream)
        facts = facts_of(file.schema_arrow)
        return file.metadata.num_rows, facts.columns if facts else schema_pairs(file.schema_arrow)


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


def _check_profiles(root: str, read: Committed, findings: Findings) -> None:
    """Profile the columns again and compare: all but those that a manifest has in part only."""
    manifest = read.manifest
    profiled = stage_card(manifest.stage).profiled
    for part, shards in (("kept", manifest.shards), ("rejects", (*manifest.rejects, *manifest.quarantine))):
        again = merge(_profiles(root, shards, profiled))
        said = manifest.metrics.get(part, {})
        for column in sorted(again):
            if column in said and not _equal(said[column], again[column]):
                values = (str(said[column])[:200], str(again[column])[:200])
                problem = f"its profile of {column} ({part}) is not that of its rows"
                findings.add(Problem(read.where, problem, *values, REFINE_AGAIN))


def _profiles(root: str, shards: Iterable[Shard], profiled: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for shard in shards:
        if shard.path.startswith(LANDING) or shard.index_digest:
            continue
        columns = [name for name, _ in _measured(root, shard)[1] if name in profiled]
        for batch in read_shards(root, (shard,), columns) if columns else ():
            if batch.num_rows:
                yield profile(batch, columns)


def _equal(said: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    return (said.get("count"), said.get("sum"), said.get("bins")) == (
        again["count"],
        again.get("sum"),
        again["bins"],
    )
