"""Checks what only a later run reads: compactions of history, manifests of partitions, receipts.

All of these can be made again, so the way to heal each is to remove it.
"""

from collections.abc import Container, Iterator, Mapping
from functools import partial

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.objects import Expected
from pipeline_tasks.inspect.verify.rows import shard_below
from pipeline_tasks.manifest import ABANDONED, Manifest, load, stage_prefix
from pipeline_tasks.run.history import saved_digests
from pipeline_tasks.run.runner import POISON, partition_name
from pipeline_tasks.run.tasks.task import load_receipt
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Entry
from pipeline_tasks.store.reading import read_manifest, require_place
from pipeline_tasks.store.shards.segment import COMPACTED


def check_compactions(root: str, known: Mapping[str, Committed], findings: Findings) -> Iterator[tuple[Manifest, str]]:
    """Check the manifest of every compaction; yield each with the way to heal its segments.

    `known` are the manifests of all versions by fingerprint.
    """
    store = storage.connect(root)
    for entry in store.list(COMPACTED):
        folder, name = entry.path.split("/")[1:3]
        if not name.startswith("manifest.") or entry.bytes in (0, len(ABANDONED)):
            continue
        heal = f"remove the folder {root}/{COMPACTED}/{folder}: its parts are still there and are read instead"
        where = f"{root}/{entry.path}"
        with findings.guarded(where, heal):
            manifest = load(store.read(entry.path), where)
            findings.count("compactions")
            require_place(manifest, entry.path, where)
            _check_parts(where, manifest, known, heal, findings)
            yield manifest, heal


def _check_parts(where: str, merged: Manifest, known: Mapping[str, Committed], heal: str, findings: Findings) -> None:
    """Check that a compaction was merged from its parts as they are, and has all their rows."""
    parts = [known[parent] for parent in merged.parents if parent in known]
    if len(parts) < len(merged.parents):
        return  # a part is damaged, or no version names it any more: no run uses this compaction
    sections = {
        name: sum(shard.rows for part in parts for shard in part.manifest.history.get(name, ()))
        for name in parts[0].manifest.history
    }
    expected = {
        "parent_digests": tuple(part.digest for part in parts),
        "covers": tuple(digest for part in parts for digest in saved_digests(part.manifest)),
        "rows by section": sections,
        "rows_in": sum(sections.values()),
    }
    actual = {
        "parent_digests": merged.parent_digests,
        "covers": merged.covers,
        "rows by section": {name: sum(shard.rows for shard in shards) for name, shards in merged.history.items()},
        "rows_in": merged.rows_in,
    }
    for name, value in expected.items():
        if actual[name] != value:
            problem = f"is not the merged history of its parts: {name}"
            findings.add(Problem(where, problem, str(value)[:200], str(actual[name])[:200], heal))


def compacted_segments(root: str, manifest: Manifest, heal: str) -> Iterator[Expected]:
    """Yield the segments of a compaction."""
    for shard in manifest.history_shards:
        yield Expected(f"{root}/{shard.path}", "compacted segments", (shard.bytes,), (shard.digest,), heal, root=root)


def check_leftovers(root: str, referred: str, damaged: Container[str], findings: Findings) -> None:
    """Check the manifests of partitions, and the receipts, beside the manifest of a stage; `damaged` are paths."""
    store, manifest = storage.connect(root), read_manifest(root, referred)
    prefix = stage_prefix(manifest.stage, manifest.fingerprint)
    shared = sorted({"/".join(shard.path.split("/")[:2]) for shard in manifest.below} - {prefix})
    folders = [f"{prefix}/partitions", f"{prefix}/receipts", *(f"{name}/receipts" for name in shared)]
    entries = [entry for folder in folders for entry in store.list(folder) if entry.bytes]  # an empty one is no commit
    found = storage.each(store, partial(_leftover, root, manifest, findings), entries)
    parts = {f"{root}/{entry.path}": part for entry, part in zip(entries, found, strict=True) if part}
    _check_below(root, manifest, parts, damaged, findings)


def _leftover(root: str, manifest: Manifest, findings: Findings, entry: Entry) -> Manifest | None:
    where = f"{root}/{entry.path}"
    with findings.guarded(where, _unread(where)):
        return _check_leftover(root, manifest, entry, findings)
    return None


def _unread(where: str) -> str:
    """Return how to heal what only a run reads that has not committed."""
    return f"remove {where}: nothing that is committed reads it"


def _check_below(
    root: str, manifest: Manifest, parts: Mapping[str, Manifest], damaged: Container[str], findings: Findings
) -> None:
    """Check that partitions name the shards that their layers rest on: a run that seals them takes no others.

    Files are read only where the partitions together name fewer than the sealed manifest does.
    """
    lacking = {shard.path for shard in manifest.below} - {shard.path for part in parts.values() for shard in part.below}
    for where, part in parts.items() if lacking else ():
        layers = [shard for shard in part.stored if shard.below and shard.path not in damaged]
        with findings.guarded(where, _unread(where)):
            if below := sorted(lacking.intersection(shard_below(root, layer) for layer in layers)):
                problem = "does not name the shards that its layers rest on"
                named = f"{len(part.below)} named, not this one"
                findings.add(Problem(where, problem, below[0], named, _unread(where)))


def _check_leftover(root: str, manifest: Manifest, entry: Entry, findings: Findings) -> Manifest | None:
    """Check one object; return the manifest of a partition."""
    body, where = storage.connect(root).read(entry.path), f"{root}/{entry.path}"
    heal = _unread(where)
    if "/receipts/" in entry.path:
        findings.count("receipts", len(body))
        key = load_receipt(body, where).key
        if entry.path.rpartition("/")[2] != f"{key}.json":
            findings.add(Problem(where, "is the receipt of another task", entry.path.rpartition("/")[2], key, heal))
        return None
    findings.count("partitions", len(body))
    part = load(body, where)
    if stage_prefix(part.stage, part.fingerprint) != stage_prefix(manifest.stage, manifest.fingerprint):
        expected, actual = manifest.fingerprint, part.fingerprint
        findings.add(Problem(where, "is a partition of another stage", expected, actual, heal))
    elif _was_sealed(part, manifest) and not {shard.path for shard in part.stored} <= {
        shard.path for shard in manifest.stored
    }:
        findings.add(Problem(where, "names shards that the sealed manifest does not", heal=heal))
    elif entry.path.rpartition("/")[2] != f"{partition_name(part.covers)}{POISON if part.poison else ''}.json":
        findings.add(Problem(where, "is the manifest of another partition", partition_name(part.covers), "", heal))
    elif (named := _rows_named(part)) != (counted := _rows_counted(part)):
        findings.add(Problem(where, "names other rows than it counts", str(counted), str(named), heal))
    return part


def _rows_named(part: Manifest) -> tuple[int, ...]:
    """Return the rows of the shards that a partition names: kept, rejected and quarantined."""
    return tuple(sum(shard.rows for shard in shards) for shards in (part.shards, part.rejects, part.quarantine))


def _rows_counted(part: Manifest) -> tuple[int, ...]:
    """Return the rows that a partition says it has: kept, rejected and quarantined. Offspring are due, too."""
    rejected, quarantined = sum(part.rejected.values()), sum(part.quarantined.values())
    return part.rows_due - rejected - quarantined, rejected, quarantined


def _was_sealed(part: Manifest, manifest: Manifest) -> bool:
    """Return whether a manifest has a partition in this form: quarantined, or refined."""
    return set(part.poison) == set(part.covers) & set(manifest.poison)
