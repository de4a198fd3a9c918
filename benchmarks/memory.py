"""Peak memory of each text stage over one shard that has one enormous document among ordinary ones.

    python benchmarks/memory.py [--size 1000] [--largest 200] [--kind jsonl|parquet] [--json]

Writes a shard of `size` MB of text whose middle document is a single line of `largest` MB, once as JSON lines, which
are read with the bounds that recipes have, and once as Parquet with `ingest: max_bytes` raised, so that the document
passes through every stage. The stages of each shard run one after the other in a separate process, after all is
imported and compiled. The output has the largest resident size of that process during each stage, its size before, and
the largest size of the sandbox. Sizes are read from Linux's /proc.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peers
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.landing import listing
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.recipe import ErrorBudget
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine

MEGABYTE = 1e6
DOCUMENT, GROUP = 10_000, 1_000  # bytes of an ordinary document, rows of a row group
KINDS = ("jsonl", "parquet")
STAGES = ("ingest", "extract", "filter_url", "filter_language", "filter_quality")
SENTENCES = (
    "The river was low that summer, and the children of village {0} walked across it on stones to the mill.",
    "In {0} years nobody had seen so many boats at the landing below the old market square.",
    "What the miller of house {0} said about the weather was rarely right, but it was always kind.",
    "They counted {0} lamps along the road before the last of them went out in the wind.",
)


def prose(number: int, size: int, between: str) -> str:
    """Return `size` characters of sentences; another number gives other sentences."""
    count = size // min(map(len, SENTENCES)) + 1
    first = number * 1_000_000
    return between.join(SENTENCES[nth % len(SENTENCES)].format(first + nth) for nth in range(count))[:size]


def texts(size: int, largest: int) -> Iterator[str]:
    """Yield ordinary documents of several lines, and in their middle one line of `largest` bytes."""
    count = max((size - largest) // DOCUMENT, 1)
    for number in range(count):
        if number == count // 2:
            yield prose(number, largest, " ")
        yield prose(number, DOCUMENT, "\n")


def write(folder: Path, kind: str, size: int, largest: int) -> None:
    """Write the shard as `jsonl` or `parquet`."""
    folder.mkdir(parents=True)
    rows = ({"url": f"https://example.org/{at}", "text": text} for at, text in enumerate(texts(size, largest)))
    if kind == "jsonl":
        with (folder / "shard.jsonl").open("w", encoding="ascii") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in rows)
        return
    schema = pa.schema([("url", pa.string()), ("text", pa.large_string())])
    with pq.ParquetWriter(folder / "shard.parquet", schema) as out:
        held: list[dict[str, str]] = []
        for row in rows:
            held.append(row)
            if len(held) == GROUP or len(row["text"]) > DOCUMENT:
                out.write_table(pa.Table.from_pylist(held, schema))
                held = []
        out.write_table(pa.Table.from_pylist(held, schema))


def run(folder: str, kind: str, largest: int) -> list[dict[str, Any]]:
    """Refine every stage over the written shard; return per stage its kept and rejected rows, and its memory."""
    from pipeline_tasks.text.page import sandbox_pair

    root, crawl = f"{folder}/root", f"{folder}/{kind}"
    measurements: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="refinery-compile-") as compiling:
        write(Path(compiling, "crawl"), "jsonl", 2 * DOCUMENT, DOCUMENT)
        refined(f"{compiling}/root", f"{compiling}/crawl", {})
    for stage, manifest, before in refined(root, crawl, {"max_bytes": 2 * largest} if kind == "parquet" else {}):
        child = max((peak(Path(f"/proc/{process}")) for process in sandbox_pair.idle_children()), default=0)
        measurements.append(
            {"stage": stage, "rows": manifest.rows, "rejected": {**manifest.rejected, **manifest.quarantined}}
        )
        measurements[-1] |= {"peak": peak(), "before": before, "sandbox": child}
    return measurements


def refined(root: str, crawl: str, ingest: dict[str, Any]) -> Iterator[tuple[str, Manifest, int]]:
    """Land the crawl and refine it stage by stage; with each stage, its manifest and the size before it.

    The peak is that of the last stage when it is yielded.
    """
    path, _, _ = listing.land(root, crawl)
    for stage in STAGES:
        params = ingest if stage == "ingest" else {}
        pa.default_memory_pool().release_unused()
        before = peak(anew=True)
        work = RefineRequest(root, stage, params, path, landing=crawl, error_budget=ErrorBudget(share=1.0))
        path, manifest, _ = refine(work, engine("local"))
        yield stage, manifest, before


def peak(process: Path = Path("/proc/self"), *, anew: bool = False) -> int:
    """Return the largest resident size of a process in bytes (Linux), from now on if `anew`."""
    if anew:
        (process / "clear_refs").write_text("5")
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def main() -> None:
    """Print a table per kind of shard; with --json the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1000, help="MB of text in the shard")
    parser.add_argument("--largest", type=int, default=200, help="MB of its largest document")
    parser.add_argument("--kind", choices=KINDS, action="append", help="which shards; all if none is named")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        folder, kind, largest = options.run
        print(json.dumps(run(folder, kind, int(largest))))
        return
    measurements = {}
    for kind in options.kind or KINDS:
        with tempfile.TemporaryDirectory(prefix="refinery-memory-") as folder:
            largest = options.largest * 10**6
            write(Path(folder, kind), kind, options.size * 10**6, largest)
            measurements[kind] = peers.run("memory.py", "--run", folder, kind, str(largest))
        print(f"{kind:<16}{'peak MB':>9}{'before':>9}{'sandbox':>9}{'rows':>9}  rejected")
        for measurement in measurements[kind]:
            sizes = "".join(f"{measurement[name] / MEGABYTE:>9.0f}" for name in ("peak", "before", "sandbox"))
            print(f"{measurement['stage']:<16}{sizes}{measurement['rows']:>9,}  {measurement['rejected']}")
    if options.json:
        print(json.dumps({"largest_mb": options.largest, "size_mb": options.size, "stages": measurements}))


if __name__ == "__main__":
    main()
