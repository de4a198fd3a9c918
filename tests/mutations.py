"""Mutations of stored objects: bytes that change, and well-formed edits of JSON with and without a new seal."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_tasks.engines.each import On
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.sealed import SEAL, canonical, path_of, seal
from pipeline_tasks.store.reading import read_manifest
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot

IN_ONE_THREAD = Scope(on=On(workers=Workers()))
"""To hand hundreds of tiny objects around takes longer than to read them."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one object: `body` is what it becomes, None if it is removed; of an edit, `field` is what differs."""

    kind: str
    name: str
    path: Path
    body: bytes | None
    field: str = ""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Change one object, and bring it back."""
    before = mutation.path.read_bytes()
    if mutation.body is None:
        mutation.path.unlink()
    else:
        mutation.path.write_bytes(mutation.body)
    try:
        yield
    finally:
        mutation.path.write_bytes(before)


def misnamed(root: str, tried: Iterable[Mutation], is_unnamed: Callable[[Mutation], bool]) -> list[tuple[str, ...]]:
    """Return the mutations after which `verify` names another object than the changed one, or not that.

    After those that are unnamed it has to name nothing. Each has its name and the problems.
    """
    wrong = []
    for mutation in tried:
        has_to_name = set() if is_unnamed(mutation) else {str(mutation.path)}
        with applied(mutation):
            problems = verify(root, IN_ONE_THREAD).findings.problems
        is_healed = all(problem.heal and "snapshot build" not in problem.heal for problem in problems)
        if {problem.object for problem in problems} != has_to_name or not is_healed:
            wrong.append((mutation.name, mutation.field, *map(str, problems)))
    return wrong


def of_bytes(kind: str, path: Path, sibling: Path | None) -> Iterator[Mutation]:
    """Yield the changes of bytes: flips, cuts, an empty object, a longer one, a removal, and another of its kind."""
    body = path.read_bytes()
    for at in sorted({0, len(body) // 2, len(body) - 1}):
        flipped = bytearray(body)
        flipped[at] ^= 0x10
        yield Mutation(kind, "flip", path, bytes(flipped))
    yield Mutation(kind, "truncate", path, body[: len(body) // 2])
    yield Mutation(kind, "truncate", path, body[:-1])
    yield Mutation(kind, "append", path, body + body[-1:])
    yield Mutation(kind, "empty", path, b"")
    yield Mutation(kind, "delete", path, None)
    if sibling is not None and sibling.read_bytes() != body:
        yield Mutation(kind, "swap", path, sibling.read_bytes())


def of_json(kind: str, path: Path) -> Iterator[Mutation]:
    """Yield well-formed edits of every field, under the old seal and under a new one."""
    raw = json.loads(path.read_bytes())
    for name in raw:
        if name != SEAL:
            edited = {**raw, name: changed(raw[name])}
            yield Mutation(kind, "edit", path, canonical(edited) + b"\n", name)
            yield Mutation(kind, "sealed edit", path, seal(edited), name)


def changed(value: Any) -> Any:
    """Return another value of the same type, as near as it gets."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return _changed_text(value)
    if isinstance(value, list):
        return value[:-1] if value else ["more"]
    if isinstance(value, dict):
        return _changed_mapping(value)
    return "something"


def _changed_text(value: str) -> str:
    """Change the last letter or digit, so that digests stay digests."""
    if not value:
        return "other"
    last = value[-1]
    return value[:-1] + ("0" if last != "0" else "1")


def _changed_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    if not value:
        return {"more": 1}
    first = min(value)
    return {**value, first: changed(value[first])}


def objects(small: SmallRoot) -> dict[str, list[Path]]:
    """Return objects of every kind that a root has, of several versions and stages."""
    root = Path(small.root)
    versions = version_log.versions(small.root, RECIPE)
    kinds: dict[str, list[Path]] = {
        "log entry": sorted((root / "datasets" / RECIPE).glob("*.json")),
        "log head": sorted((root / "datasets" / RECIPE / "heads").iterdir()),
    }
    for stage in ("land", *STAGES):
        kinds[f"manifest of {stage}"] = [root / path_of(version.manifests[stage]) for version in versions]
    named = [read_manifest(small.root, version.manifests[stage]) for stage in STAGES for version in versions]
    for kind, shards in {
        "kept shard": [shard for manifest in named for shard in manifest.shards],
        "history": [shard for manifest in named for shard in manifest.history_shards],
        "rejects": [shard for manifest in named for shard in manifest.rejects],
        "quarantine": [shard for manifest in named for shard in manifest.quarantine],
    }.items():
        kinds[kind] = [root / shard.path for shard in shards]
    kinds["verdict"] = [root / path_of(referred) for referred in versions[0].verdicts.values()]
    kinds["Data Docs page"] = [path.parent / "docs" / "index.html" for path in kinds["verdict"]]
    kinds["superseded.parquet"] = [root / version.superseded_path for version in versions if version.superseded_path]
    kinds["report"] = [root / version.report for version in versions]
    kinds["compaction"] = sorted(root.glob("compacted/*/manifest.json"))
    kinds["compacted segment"] = sorted(root.glob("compacted/*/data/*"))
    kinds["partition"] = sorted(root.glob("ingest/*/partitions/*"))
    kinds["receipt"] = sorted(root.glob("dedup_exact/*/receipts/*"))
    kinds["landed file"] = [small.landing / day / name for day in DAYS for name in ("a.jsonl", "b.jsonl")]
    return kinds


CHECKS: Mapping[str, tuple[str, ...]] = {
    "an entry of a log, and its link": ("log entry",),
    "the head of an entry": ("log head",),
    "a manifest that an entry names": (
        "manifest of dedup_minhash",
        "manifest of land",
        "manifest of ingest",
        "manifest of extract",
        "manifest of dedup_exact",
    ),
    "an object that a manifest or an entry names": (
        "kept shard",
        "history",
        "rejects",
        "quarantine",
        "superseded.parquet",
        "report",
        "compacted segment",
    ),
    "a verdict": ("verdict",),
    "the page of a verdict": ("Data Docs page",),
    "a compaction": ("compaction",),
    "the manifest of a partition": ("partition",),
    "a receipt": ("receipt",),
    "a landed file": ("landed file",),
}
"""Kinds of objects by the check of `verify` that reads them: a change of any is found by the same lines."""

EDITED = (
    "log entry",
    "manifest of land",
    "manifest of dedup_minhash",
    "verdict",
    "compaction",
    "partition",
    "receipt",
)
"""Kinds of JSON whose fields are edited one by one; the manifests of other stages have the same fields."""

SHORT = ("flip", "truncate", "delete", "swap", "sealed edit")
"""The mutations of a check in the short form: one of each name."""


def mutations(kind: str, paths: list[Path]) -> Iterator[Mutation]:
    """Yield mutations of an object of a kind; of the log also those of the last entry, and of its head."""
    yield from of_bytes(kind, paths[0], next((other for other in paths[1:]), None))
    if kind.startswith("log "):
        yield from of_bytes(kind, paths[-1], paths[0])
    if kind in EDITED:
        yield from of_json(kind, paths[0])
    if kind == "log entry":
        yield from of_json(kind, paths[-1])


def shortened(every: Iterable[Mutation], *, first: bool) -> list[Mutation]:
    """Return one mutation of each name in `SHORT` and of each object; a flip alone for all but the `first` of a check.

    Of the edits of a field, the last is taken: the first fields are counts, which fewer lines read.
    """
    names = SHORT if first else SHORT[:1]
    chosen = {(mutation.path, mutation.name): mutation for mutation in every if mutation.name in names}
    return list(chosen.values())
