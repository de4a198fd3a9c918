"""Counts the rows, pages and bytes that a day reads of its history, at 1x, 2x, 4x, ... of the same history.

    python benchmarks/history.py [--documents N] [--new N] [--doublings D] [--json]

Each history is one day of `--documents` random documents at 1x, two such days at 2x and so on, deduplicated by
dedup_exact and dedup_minhash on one core and compacted; then the same new day of `--new` documents, of which one in ten
is a near duplicate of the first day, is deduplicated against it, and a day of twice as many. Counters, not seconds:
they are the same on every engine and machine. `scan` is the cost of reading all of the history.
"""

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.manifest import Manifest, dump, identified, manifest_path
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.text.page.identity import identities
from pipeline_tasks.upkeep import compact

STAGES = ("dedup_exact", "dedup_minhash")
BATCH, SHARD = 1 << 12, 1 << 16
"""Documents of a batch and of a shard."""

RECIPE = "history"
WORDS = 60


def main() -> None:
    """Grow the history, measure the new days, and print a table or one JSON line."""
    parser = argparse.ArgumentParser(description="Count what a day reads of its history")
    parser.add_argument("--documents", type=int, default=5000, help="documents of one day of history")
    parser.add_argument("--new", type=int, default=20, help="documents of the new day")
    parser.add_argument("--doublings", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    compact.FANOUT = 2  # so that 1, 2, 4, ... days are one segment each
    with tempfile.TemporaryDirectory() as root:
        measurements = list(measured(root, options))
    print(json.dumps(measurements) if options.json else "\n".join(lines(measurements)))


def measured(root: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield, for each size of history, its documents and bytes, and what a day and a day twice as large read."""
    days = 0
    for doubling in range(options.doublings + 1):
        for number in range(days, 2**doubling):
            publish(root, f"d{number:04}", refined(root, f"d{number:04}", texts(number, options.documents))[0])
        days = 2**doubling
        compact.compact(root, engine("local"))
        counted = {}
        for name, size in (("day", options.new), ("twice", 2 * options.new)):
            old = [near(text) for text in texts(0, size // 10)]
            new = [*texts(10**6 + size, size - len(old)), *old]
            counted[name] = refined(root, f"new-{doubling}-{size}", new)[1]
        yield {"days": days, "documents": days * options.documents, "scan": scan(root), **counted}


def texts(seed: int, count: int) -> list[str]:
    """Return random texts, the same for the same seed."""
    draws = random.Random(seed)  # noqa: S311 -- planted data
    return [" ".join(f"w{draws.randrange(10**6)}" for _ in range(WORDS)) for _ in range(count)]


def near(text: str) -> str:
    """Return the text with another last word."""
    return f"{text.rpartition(' ')[0]} other"


def refined(root: str, name: str, documents: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Deduplicate a day against all published days; return its manifests, and what it read of history."""
    path, manifests, read = given(root, name, documents), {}, Counter[str]()
    for stage in STAGES:
        before = tuple(version.manifests[stage] for version in version_log.earlier(root, RECIPE, name))
        path, _, cost = refine(RefineRequest(root, stage, {}, path, before), engine("local"))
        manifests[stage] = path
        read.update(cost.history_reads)
    return manifests, dict(read)


def given(root: str, name: str, documents: Iterable[str]) -> str:
    """Commit documents as the output of an invented stage, in shards of `SHARD`; return its manifest's path."""
    shards: list[Shard] = []
    batches = _as_documents(name, documents)
    while first := next(batches, None):
        writer = ShardWriter(DOCUMENT)
        for batch in (first, *islice(batches, SHARD // BATCH - 1)):
            writer.write(batch)
        shards.append(writer.store(root, f"given/{name}"))
    rows = sum(shard.rows for shard in shards)
    schema = tuple((column.name, str(column.type)) for column in DOCUMENT)
    whole = Manifest("given", 1, "", {"name": name}, (), (), schema, tuple(shards), {}, (), (), rows, 0, {}, {}, {})
    manifest = identified(whole)
    path = manifest_path("given", manifest.fingerprint)
    storage.commit(storage.connect(root), path, dump(manifest))
    return path


def _as_documents(name: str, documents: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Yield documents as rows of `DOCUMENT`; what they lack is null."""
    given, offset = iter(documents), 0
    while texts := list(islice(given, BATCH)):
        columns: dict[str, Any] = {
            "text": texts,
            "id": identities(pa.array(texts, pa.large_string())),
            "snapshot": [name] * len(texts),
            "file": ["a"] * len(texts),
            "offset": range(offset, offset + len(texts)),
            "chars": [len(text) for text in texts],
        }
        nothing = [None] * len(texts)
        yield pa.record_batch([pa.array(columns.get(field.name, nothing), field.type) for field in DOCUMENT], DOCUMENT)
        offset += len(texts)


def publish(root: str, name: str, manifests: dict[str, str]) -> None:
    """Publish a day, so that later days see it as history."""
    facts = {"recipe": RECIPE, "snapshot": name, "landing": "", "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(root, {**facts, "manifests": manifests, "tokens": 0, "sequences": 0})


def scan(root: str) -> dict[str, int]:
    """Return rows and bytes of the history of all published days."""
    versions = version_log.earlier(root, RECIPE, "z")
    manifests = [read_manifest(root, path) for version in versions for path in version.manifests.values()]
    shards = [shard for manifest in manifests for shard in manifest.history_shards]
    return {"rows": sum(shard.rows for shard in shards), "bytes": sum(shard.bytes for shard in shards)}


def lines(measurements: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the measurements as lines for a person."""
    yield f"{'history: documents':>18} {'rows':>11} {'MB':>6} | {'day: rows':>16} {'pages':>7} {'MB':>7} | twice a day"
    for measurement in measurements:
        scan = measurement["scan"]
        history = f"{measurement['documents']:>18,} {scan['rows']:>11,} {scan['bytes'] / 1e6:>6.1f}"
        reads = (measurement["day"], measurement["twice"])
        yield " | ".join(
            [history, *(f"{read['rows']:>16,} {read['pages']:>7,} {read['bytes'] / 1e6:>7.2f}" for read in reads)]
        )


if __name__ == "__main__":
    main()
