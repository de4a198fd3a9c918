"""What a day reads of the days before it: rows, pages and bytes counted, at 1x, 2x, 4x, ... of the same history.

    python benchmarks/history.py [--documents N] [--new N] [--doublings D] [--json]

Each history is one day of `--documents` random documents at 1x, two such days at 2x and so on, deduplicated by
dedup_exact and dedup_minhash on one core and compacted; then the same new day of `--new` documents, of which one in ten
is a near duplicate of the first day, is deduplicated against it, and a day of twice as many. Counters, not seconds:
they are the same on every engine and machine. `scan` is what reading all that is remembered would take.
"""

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.manifest import Manifest, dump, manifest_path
from pipeline_tasks.publish import version_log
from pipeline_tasks.run.runner import Work, refine
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shard_file import ShardWriter
from pipeline_tasks.text.page.identity import identities
from pipeline_tasks.upkeep import compact

STAGES = ("dedup_exact", "dedup_minhash")
RECIPE = "history"
WORDS = 60


def main() -> None:
    """Grow the history, measure the new days, and print a table or one JSON line."""
    parser = argparse.ArgumentParser(description="What a day reads of the days before it")
    parser.add_argument("--documents", type=int, default=5000, help="documents of one day of history")
    parser.add_argument("--new", type=int, default=20, help="documents of the new day")
    parser.add_argument("--doublings", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    compact.FANOUT = 2  # so that 1, 2, 4, ... days are one place each
    with tempfile.TemporaryDirectory() as root:
        found = list(measured(root, options))
    print(json.dumps(found) if options.json else "\n".join(told(found)))


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


def refined(root: str, name: str, these: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Deduplicate a day against all that are published; return its manifests, and what it read of history."""
    path, made, read = given(root, name, these), {}, Counter[str]()
    for stage in STAGES:
        before = tuple(version.manifests[stage] for version in version_log.earlier(root, RECIPE, name))
        path, _, meter = refine(Work(root, stage, {}, path, before), engine("local"))
        made[stage] = path
        read.update(meter.recalled)
    return made, dict(read)


def given(root: str, name: str, these: Sequence[str]) -> str:
    """Commit documents as the output of a made-up stage; return its manifest's path."""
    ids = identities(pa.array(these, pa.large_string()))
    columns: dict[str, Iterable[object]] = {
        "text": these,
        "id": ids,
        "snapshot": [name] * len(these),
        "file": ["a"] * len(these),
    }
    columns |= {"offset": range(len(these)), "chars": map(len, these)}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    writer = ShardWriter(DOCUMENT)
    for batch in pa.Table.from_pylist(rows, DOCUMENT).to_batches():
        writer.write(batch)
    shard = writer.store(root, f"given/{name}")
    schema = tuple((one.name, str(one.type)) for one in DOCUMENT)
    made = Manifest("given", 1, name, {}, (), (), schema, (shard,), {}, (), (), len(these), 0, {}, {}, {})
    storage.commit(storage.connect(root), manifest_path("given", name), dump(made))
    return manifest_path("given", name)


def publish(root: str, name: str, manifests: dict[str, str]) -> None:
    """Make a day history."""
    facts = {"recipe": RECIPE, "snapshot": name, "landing": "", "verdicts": {}, "prefix": "", "documents": 0}
    version_log.append(root, {**facts, "manifests": manifests, "tokens": 0, "sequences": 0})


def scan(root: str) -> dict[str, int]:
    """Return rows and bytes of all that the published days remember."""
    versions = version_log.earlier(root, RECIPE, "z")
    made = [read_manifest(root, path) for version in versions for path in version.manifests.values()]
    shards = [shard for manifest in made for shard in manifest.history_shards]
    return {"rows": sum(one.rows for one in shards), "bytes": sum(one.bytes for one in shards)}


def told(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the measurements as lines for a person."""
    yield f"{'history: documents':>18} {'rows':>11} {'MB':>6} | {'day: rows':>16} {'pages':>7} {'MB':>7} | twice a day"
    for one in found:
        history = f"{one['documents']:>18,} {one['scan']['rows']:>11,} {one['scan']['bytes'] / 1e6:>6.1f}"
        reads = (one["day"], one["twice"])
        yield " | ".join(
            [history, *(f"{read['rows']:>16,} {read['pages']:>7,} {read['bytes'] / 1e6:>7.2f}" for read in reads)]
        )


if __name__ == "__main__":
    main()
