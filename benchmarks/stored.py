"""Bytes that each stage stores of its rows, beside what it would store with all columns of them.

    python benchmarks/stored.py [--input SNAPSHOT ...] [--recipe web] [--json]

The snapshots are refined into a fresh root, one after the other, by the command `refinery run`. `stored` is what lies
under `data/`, `rejects/` and `quarantine/` of a stage. `whole` is what its shards would have if each had all columns of
its rows: they are read and written so, in this run. History counts in both. Below the stages are the exported files and
everything else (manifests, receipts, verdicts with their pages, the ledger). All is divided by what `extract` keeps:
the text as stored once. Without --input the demo's own two crawls are written first.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.tasks.task import StageIO, read_input
from pipeline_tasks.sealed import path_of
from pipeline_tasks.stage import Shards
from pipeline_tasks.stages import NAMES
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.file import ShardWriter

MEGABYTE = 1e6
PARTS = ("data", "rejects", "quarantine")


class Stored(NamedTuple):
    """Bytes of one stage over all snapshots: on disk, of the kept rows, and as if shards had all columns."""

    stage: str
    disk: int
    kept: int
    whole: int


def main() -> None:
    """Print the table, and with --json one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--recipe", default="web")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refinery-bench-") as name:
        folder = Path(name)
        snapshots = options.input or demo_snapshots(folder / "crawl")
        root = str(folder / "root")
        for snapshot in snapshots:
            refine(snapshot, root, options.recipe)
        show(measure(root, folder), folder / "root", options)


def demo_snapshots(crawl: Path) -> list[str]:
    """Write the demo's crawl; return the folders of its snapshots, oldest first."""
    write_crawl(crawl)
    return sorted(str(place) for place in crawl.iterdir() if place.name.startswith("20"))


def refine(snapshot: str, root: str, recipe: str) -> None:
    """Refine a snapshot in a process of its own."""
    how = ["--recipe", recipe, "--engine", "local"]
    command = [sys.executable, "-m", "pipeline_tasks.cli", "run", "--input", snapshot, "--output", root, *how]
    subprocess.run(command, check=True, stdout=sys.stderr)


def measure(root: str, scratch: Path) -> list[Stored]:
    """Return what every stage stores, in the order of stages."""
    versions = [version for recipe in version_log.recipes(root) for version in version_log.versions(root, recipe)]
    stored = []
    for stage in NAMES:
        named = [version for version in versions if stage in version.manifests]
        manifests = {path_of(version.manifests[stage]): version.landing for version in named}
        if not manifests:
            continue
        read = [(read_manifest(root, path), landing) for path, landing in manifests.items()]
        folders = [(Path(root) / path).parent / part for path in manifests for part in PARTS]
        disk = sum(map(bytes_under, folders))
        whole = sum(as_whole(root, manifest, landing, scratch) for manifest, landing in read)
        stored.append(Stored(stage, disk, sum(manifest.bytes for manifest, _ in read), whole))
    return stored


def bytes_under(folder: Path) -> int:
    """Return the bytes of all files under a folder."""
    return sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())


def as_whole(root: str, manifest: Manifest, landing: str, scratch: Path) -> int:
    """Return the bytes of a manifest's shards if each had all columns of its rows."""
    stage_io = StageIO(root, manifest.stage, landing=landing)
    written = sum(rewritten(stage_io, part, scratch) for part in (manifest.shards, manifest.rejects))
    return written + sum(shard.bytes for shard in (*manifest.quarantine, *manifest.history_shards))


def rewritten(stage_io: StageIO, shards: Shards, scratch: Path) -> int:
    """Return the bytes of shards that have all columns of the rows of these."""
    total = 0
    for shard in shards:
        writer: ShardWriter | None = None
        for batch in read_input(stage_io, shard):
            writer = writer or ShardWriter(batch.schema)
            writer.write(batch)
        if writer:
            copied = writer.store(str(scratch / "whole"), "data")
            (scratch / "whole" / copied.path).unlink()
            total += copied.bytes
    return total


def show(stored: Sequence[Stored], root: Path, options: argparse.Namespace) -> None:
    """Print the measurements."""
    text = next(part.kept for part in stored if part.stage == "extract")
    exported = bytes_under(root / "publish")
    other = bytes_under(root) - exported - sum(part.disk for part in stored)
    rows = [*stored, Stored("exported files", exported, 0, exported), Stored("all else", other, 0, other)]
    print(f"{'':<16}{'stored MB':>11}{'whole MB':>11}{'stored / text':>15}")
    for part in [*rows, Stored("all", sum(row.disk for row in rows), 0, sum(row.whole for row in rows))]:
        print(f"{part.stage:<16}{part.disk / MEGABYTE:>11.2f}{part.whole / MEGABYTE:>11.2f}{part.disk / text:>15.2f}")
    if options.json:
        disk, whole = (sum(getattr(row, name) for row in rows) for name in ("disk", "whole"))
        facts = {"text_mb": text / MEGABYTE, "bytes_ratio": disk / text, "bytes_ratio_whole": whole / text}
        print(json.dumps({name: round(value, 3) for name, value in facts.items()}, sort_keys=True))


if __name__ == "__main__":
    main()
