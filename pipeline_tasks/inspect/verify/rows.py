"""Compares the rows of shards with what their manifest says of them: counts, columns, reasons and profiles."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline_tasks.cards import stage_card
from pipeline_tasks.engines.each import Work
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.findings import Findings, Problem, found, is_sound
from pipeline_tasks.inspect.verify.manifests import REFINE_AGAIN, Committed
from pipeline_tasks.manifest import PARTITION, Manifest, schema_pairs
from pipeline_tasks.profiles import file_types
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.distributions import profiled_by
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erased_by_path
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.shards.file import successor_of
from pipeline_tasks.store.shards.rows import Columns, facts_of

REJECTED = ("rejects", "quarantine")
"""Parts of a manifest whose rows have reasons."""


def check_rows(work: Work, reads: Iterable[Committed], findings: Findings, known: Mapping[str, Committed]) -> None:
    """Re-read the rows of manifests where the work runs, and compare them with what these say.

    `known` has all manifests by fingerprint. A landed snapshot has no rows yet, and those of a composition are checked
    where they were refined. Where a shard is damaged, the rows of all layers over it say nothing.
    """
    try:
        gone = erased_by_path(work.place)
    except ContractError:  # the log of erasures is damaged, a problem of its own: until then nobody reads a row
        return
    lineages = {read.path: (read, tuple(_lineage(read.manifest, known))) for read in reads if _has_rows(read.manifest)}
    sound = [each for each in lineages.values() if not _is_damaged(work.place, each[1], findings)]
    parts = [part for read, lineage in sound for part in _parts(read, profiled=not _is_erased(lineage, gone))]
    measured = work.each(
        "rows",
        partial(_measured_part, work.place),
        parts,
        key=lambda part: [part.shard.path, part.shard.digest, part.profiled],
        weight=lambda part: part.shard.bytes,
        keeps=is_sound,
    )
    by_manifest = groupby(zip(parts, measured, strict=True), key=lambda pair: pair[0].manifest)
    together = {path: list(pairs) for path, pairs in by_manifest}
    for read, lineage in sound:
        _check_manifest(work.place, (read, lineage), together.get(read.path, []), findings, known)
        if _is_erased(lineage, gone):
            findings.note("profiles of rows of which some were erased since are not computed again")


def _has_rows(manifest: Manifest) -> bool:
    return not manifest.landed and manifest.stage != COMPOSE


def _is_damaged(root: str, lineage: Iterable[Manifest], findings: Findings) -> bool:
    return any(findings.is_damaged(f"{root}/{shard.path}") for earlier in lineage for shard in earlier.stored)


def _is_erased(lineage: Iterable[Manifest], gone: Container[str]) -> bool:
    return any(shard.path in gone for earlier in lineage for shard in earlier.stored)


class Part(NamedTuple):
    """A shard of a manifest: what it is there, and the columns that are profiled again, of rejects with reasons."""

    manifest: str
    name: str
    schema: Columns
    shard: Shard
    profiled: tuple[str, ...] | None


def _measured_part(root: str, part: Part) -> dict[str, Any]:
    """Return what the rows of a shard are, and what is wrong with them, in a worker."""
    measured: dict[str, Any] = {}

    def check(findings: Findings) -> None:
        shard = part.shard
        with findings.guarded(f"{root}/{shard.path}", REFINE_AGAIN):
            rows, columns, below = _measured(root, shard)
            reasons: Counter[str] = Counter()
            if part.name in REJECTED:
                for batch in read_shards(root, [shard], ["reason"]):
                    reasons.update(batch.column("reason").to_pylist())
            named = (*part.profiled, *file_types.NEEDS) if part.profiled else ()
            profiled = [name for name, _ in columns if name in named and not shard.index_digest]
            batches = read_shards(root, (shard,), profiled) if profiled else iter(())
            profiles = merge(profile(each, profiled) for each in map(_profiled_rows, batches) if each.num_rows)
            measured.update(rows=rows, columns=columns, below=below, reasons=reasons, profile=profiles)

    return {**found(check), "measured": measured}


def _profiled_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that a manifest profiles: not those that were quarantined unread, with their partition."""
    if "reason" not in batch.schema.names:
        return batch
    return batch.filter(pc.fill_null(pc.not_equal(batch["reason"], PARTITION), fill_value=True))


def _check_manifest(
    root: str,
    of: tuple[Committed, Sequence[Manifest]],
    pairs: Sequence[tuple[Part, Mapping[str, Any]]],
    findings: Findings,
    known: Mapping[str, Committed],
) -> None:
    """Compare the rows of a manifest's shards with what it says; where one cannot be read, not what it says of all."""
    read, lineage = of
    named, whole = {shard.path for earlier in lineage for shard in earlier.stored}, _is_whole(lineage, known)
    for part, facts in pairs:
        findings.take(facts)
        if measured := facts["measured"]:
            _check_shard(root, read, part, measured, findings)
            if whole:  # else an earlier manifest is a problem of its own
                _check_below(root, read, (part.shard, measured["below"]), named, findings)
    if all(facts["measured"] for _, facts in pairs):
        _check_reasons(read, pairs, findings)
        _check_profiles(read, pairs, findings)


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


def _parts(read: Committed, *, profiled: bool) -> Iterator[Part]:
    """Yield the shards of a manifest with their columns (none: they are not stated)."""
    manifest, card = read.manifest, stage_card(read.manifest.stage)
    columns = profiled_by(card) if profiled else ()
    yield from (Part(read.path, "shards", manifest.schema, shard, columns) for shard in manifest.shards)
    for section, shards in manifest.history.items():
        schema = schema_pairs(card.history[section].schema) if section in card.history else ()
        yield from (Part(read.path, f"history {section}", schema, shard, None) for shard in shards)
    for name, shards in zip(REJECTED, (manifest.rejects, manifest.quarantine), strict=True):
        yield from (Part(read.path, name, (), shard, columns) for shard in shards)


def _check_shard(root: str, read: Committed, part: Part, measured: Mapping[str, Any], findings: Findings) -> None:
    """Check a shard's rows and columns."""
    rows, columns, shard = measured["rows"], tuple((name, kind) for name, kind in measured["columns"]), part.shard
    where = f"{root}/{shard.path}"
    if rows != shard.rows:
        problem = f"has another number of rows than {read.path} says"
        findings.add(Problem(where, problem, f"{shard.rows} rows", f"{rows} rows", REFINE_AGAIN))
    if part.schema and _plain(columns) != _plain(part.schema):
        problem = f"has other columns than {read.path} says of its {part.name}"
        findings.add(Problem(where, problem, str(dict(part.schema)), str(dict(columns)), REFINE_AGAIN))


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


def _check_reasons(read: Committed, pairs: Sequence[tuple[Part, Mapping[str, Any]]], findings: Findings) -> None:
    """Compare the reasons of the stored rejects with the tallies."""
    for name, verb, tally in zip(
        REJECTED, ("rejected", "quarantined"), (read.manifest.rejected, read.manifest.quarantined), strict=True
    ):
        counted: Counter[str] = Counter()
        for facts in (facts for part, facts in pairs if part.name == name):
            counted.update(facts["measured"]["reasons"])
        if counted != Counter(tally):
            values = (str(dict(sorted(tally.items()))), str(dict(sorted(counted.items()))))
            findings.add(Problem(read.where, f"{verb} rows have other reasons than it counts", *values, REFINE_AGAIN))


def _check_profiles(read: Committed, pairs: Sequence[tuple[Part, Mapping[str, Any]]], findings: Findings) -> None:
    """Compare the profiles of columns: all but those that a manifest has in part only."""
    for part, names in (("kept", ("shards",)), ("rejects", REJECTED)):
        again = merge(facts["measured"]["profile"] for each, facts in pairs if each.name in names)
        said = read.manifest.metrics.get(part, {})
        for column in sorted(again):
            if column in said and not _equal(said[column], again[column]):
                values = (str(said[column])[:200], str(again[column])[:200])
                problem = f"its profile of {column} ({part}) is not that of its rows"
                findings.add(Problem(read.where, problem, *values, REFINE_AGAIN))


def _equal(said: Mapping[str, Any], again: Mapping[str, Any]) -> bool:
    return (said.get("count"), said.get("sum"), said.get("bins")) == (
        again["count"],
        again.get("sum"),
        again["bins"],
    )
