"""Compares near-duplicate removal: signatures with datatrove and rensa, the whole stage with datatrove.

    python benchmarks/dedup.py [--documents N] [--doublings D] [--runs R] [--json]
    python benchmarks/dedup.py --cases [--engine local|spark|ray]

All sides get the same documents (sentences of ../shared/data/text or of the demo, a fifth of them edited copies),
bands, rows and n-gram. Each runs in a separate process on one pinned core, in turns. Values are medians of processor
seconds.
`signature`: texts in memory to band keys and shingle sets, against `MinhashDedupSignature` and against rensa's fastest
batch of whole-set MinHash with the cheapest tokens (`rensa_hashing_ratio`: against its hashing alone, tokens given).
`whole`: documents in id order to stored kept rows, rejected rows with evidence, and history, against datatrove's four
steps (which verify nothing, and store no evidence and no history). Kernels are loaded before; that time is separate.
`exponent`: the slope of log(seconds) over log(documents) at 1x, 2x, 4x, ... of the documents.
`--cases` runs the hard inputs of planted.py, and prints the shuffled rows and bytes and peak memory.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import peers
import planted
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import EngineFactory, refine
from pipeline_tasks.stage import Kernel, Shards

MEGABYTE = 1e6
STAGE = "dedup_minhash"
NGRAM, BANDS, ROWS = 5, 14, 8
BUCKETS = 2
"""A bucket may hold a million documents (1 kB each), and each costs a few milliseconds per step: 2 for so few."""

PASSES = 3
WARMING = 200
"""Documents that load the compiled kernels before anything is measured."""

CASES: dict[str, tuple[Callable[[], list[str]], Mapping[str, Any]]] = {
    "template": (lambda: planted.template(100_000), {}),
    "chain": (lambda: planted.chain(10_000), {}),
    "chain, by stars": (lambda: planted.chain(10_000), {"edges_in_memory": 0}),
    "boilerplate": (lambda: planted.boilerplate(20_000), {"rows": 4}),
}


def pinned() -> None:
    """Keep this process on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)


def commit(root: Path, texts: list[str]) -> str:
    """Store texts as documents in id order, as `dedup_exact` leaves them; return its manifest."""
    from tests.documents import documents
    from tests.refining import commit_parent

    parent = commit_parent(root, [documents(texts)])
    path, _, _ = refine(RefineRequest(str(root), "dedup_exact", {"buckets": BUCKETS}, parent), engine("local"))
    return path


def signature(source: str) -> dict[str, float]:
    """Return the seconds of signing every text of a file in memory."""
    from pipeline_tasks.text.near import minhash

    pinned()
    texts = pq.read_table(source).column("text").combine_chunks()
    batches = [texts.slice(start, 4096) for start in range(0, len(texts), 4096)]
    family = minhash.Family(NGRAM, BANDS, ROWS)
    times = []
    for _ in range(1 + PASSES):
        started = time.process_time()
        for batch in batches:
            minhash.sign(batch, family)
        times.append(time.process_time() - started)
    return {"signature_s": statistics.median(times[1:])}


def whole(root: str, warming: str, parent: str) -> dict[str, float]:
    """Return the seconds of the stage over committed documents, and of loading its kernels; peak memory of both."""
    pinned()
    started = time.process_time()
    refine(work(Path(root), warming, {}), engine("local"))
    loaded = time.process_time()
    _, manifest, _ = refine(work(Path(root), parent, {}), engine("local"))
    ended = time.process_time()
    seconds = {"start_up_s": loaded - started, "whole_s": ended - loaded}
    return {**seconds, "documents": manifest.rows_in, "kept": manifest.rows, "peak_mb": peak_megabytes()}


def peak_megabytes() -> float:
    """Return this process's largest resident size since it began; getrusage would return that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / MEGABYTE for line in lines if line.startswith("VmHWM"))


def work(root: Path, parent: str, params: Mapping[str, Any]) -> RefineRequest:
    """Return the stage's run over a committed parent, with the peers' signatures."""
    signatures = {"ngram": NGRAM, "bands": BANDS, "rows": ROWS, "buckets": BUCKETS}
    return RefineRequest(str(root), STAGE, {**signatures, **params}, parent)


def exponent(documents: list[int], seconds: list[float]) -> float:
    """Return the slope of log(seconds) over log(documents), by least squares."""
    xs, ys = [math.log(count) for count in documents], [math.log(second) for second in seconds]
    middle, level = statistics.fmean(xs), statistics.fmean(ys)
    squares = sum((x - middle) ** 2 for x in xs)
    return sum((x - middle) * (y - level) for x, y in zip(xs, ys, strict=True)) / squares if squares else 0.0


def compare(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Measure every side in turns; return the medians."""
    counts = [options.documents << doubling for doubling in range(options.doublings + 1)]
    texts = planted.web(counts[-1])
    first = texts[: options.documents]
    lines = folder / "documents.jsonl"
    lines.write_text("".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(first)))
    pq.write_table(pa.table({"text": pa.array(first, pa.large_string())}), folder / "documents.parquet")
    warming, *parents = (commit(folder / "root", texts[:count]) for count in (WARMING, *counts))
    size = sum(len(text.encode()) for text in first) / MEGABYTE
    del texts, first
    python = peers.install()
    shape = [str(NGRAM), str(BANDS), str(ROWS)]
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "rensa": [], "datatrove": []}
    growth: list[list[dict[str, float]]] = [[] for _ in counts]
    for _ in range(options.runs):
        runs["ours"].append(peers.run("dedup.py", "--measure", "signature", str(folder / "documents.parquet")))
        runs["rensa"].append(peers.run("peer_rensa.py", str(lines), str(NGRAM), str(BANDS * ROWS), python=python))
        for parent, seen in zip(parents, growth, strict=True):
            with tempfile.TemporaryDirectory(prefix="root-", dir=folder) as root:
                Path(root).rmdir()
                seen.append(peers.run("dedup.py", "--measure", "whole", linked(folder / "root", root), warming, parent))
        with tempfile.TemporaryDirectory(prefix="datatrove-", dir=folder) as room:
            runs["datatrove"].append(peers.run("peer_dedup.py", str(lines), room, *shape, python=python))
    middle = {who: median(each) for who, each in runs.items()}
    return {"mb": size, **middle, "growth": [median(each) for each in growth]}


def linked(root: Path, copy: str) -> str:
    """Create a root with the same parents and none of the stage's earlier output."""
    Path(copy).mkdir()
    for child in root.iterdir():
        (Path(copy) / child.name).symlink_to(child)
    return copy


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def summary(compared: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures that have goals."""
    ours, rensa, theirs, growth = compared["ours"], compared["rensa"], compared["datatrove"], compared["growth"]
    counts, seconds = [run["documents"] for run in growth], [run["whole_s"] for run in growth]
    signed = ours["signature_s"]
    return {
        "signature_ratio": round(theirs["signature_s"] / signed, 1),
        "rensa_ratio": round((rensa["tokens_s"] + rensa["digests_s"]) / signed, 1),
        "rensa_hashing_ratio": round(rensa["digests_s"] / signed, 2),
        "signature_mb_s": round(compared["mb"] / signed, 1),
        "whole_ratio": round(theirs["whole_s"] / seconds[0], 1),
        "exponent": round(exponent(counts, seconds), 3),
        "peak_mb": round(max(run["peak_mb"] for run in growth)),
    }


# --- Cases ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Shuffled:
    """Rows and stored bytes that went into an engine's `group`, and the largest bucket that came out."""

    rows: int = 0
    bytes: int = 0
    largest: int = 0

    def watched(self, factory: EngineFactory) -> EngineFactory:
        """Return the factory of engines whose shuffles are counted here."""

        def make(*arguments: Any) -> Any:  # noqa: ANN401 -- an engine
            built: Any = factory(*arguments)
            group = built.group

            def counted(kernel: Kernel, rows: Shards, **how: Any) -> Shards:  # noqa: ANN401 -- as `group` takes it
                self.rows += sum(shard.rows for shard in rows)
                self.bytes += sum(shard.bytes for shard in rows)
                shards: Shards = group(kernel, rows, **how)
                self.largest = max([self.largest, *(shard.rows for shard in shards)])
                return shards

            built.group = counted
            return built

        return make


@contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """Sample the resident memory of this process and its children: the sum's and the largest Python process's peak."""
    peak, done = {"sum_mb": 0.0, "python_mb": 0.0}, threading.Event()

    def sample() -> None:
        while not done.wait(0.2):
            sizes = []
            for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
                try:
                    sizes.append((process.name(), process.memory_info().rss / MEGABYTE))
                except psutil.NoSuchProcess:
                    continue
            peak["sum_mb"] = max(peak["sum_mb"], sum(size for _, size in sizes))
            peak["python_mb"] = max(peak["python_mb"], *(size for name, size in sizes if "java" not in name))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def case(name: str, on: str, folder: str) -> dict[str, Any]:
    """Run one case on an engine."""
    make, params = CASES[name]
    root = Path(folder)
    warming, parent = commit(root, planted.web(WARMING)), commit(root, make())
    refine(work(root, warming, params), engine(on))
    shuffled = Shuffled()
    started = time.perf_counter()
    with watched_memory() as peak:
        _, manifest, cost = refine(work(root, parent, params), shuffled.watched(engine(on)))
    wall = time.perf_counter() - started
    counted = {"rows": shuffled.rows, "mb": shuffled.bytes / MEGABYTE, "largest": shuffled.largest}
    return {"documents": manifest.rows_in, "kept": manifest.rows, "wall_s": wall, "cpu_s": cost.cpu, **counted, **peak}


def cases(on: str) -> None:
    """Print the cost of each case."""
    print(f"{'case':<18}{'documents':>10}{'kept':>8}{'wall s':>8}{'cpu s':>8}", end="")
    print(f"{'rows shuffled':>15}{'MB':>8}{'bucket':>10}{'process MB':>12}{'all MB':>9}")
    for name in CASES:
        with tempfile.TemporaryDirectory(prefix="refinery-case-") as folder:
            figures = peers.run("dedup.py", "--measure", "case", name, on, folder)
        print(
            f"{name:<18}{figures['documents']:>10,}{figures['kept']:>8,}{figures['wall_s']:>8.1f}{figures['cpu_s']:>8.1f}",
            end="",
        )
        print(f"{figures['rows']:>15,}{figures['mb']:>8.1f}{figures['largest']:>10,}", end="")
        print(f"{figures['python_mb']:>12.0f}{figures['sum_mb']:>9.0f}", flush=True)


def main() -> None:
    """Print the measurements; with --json the last line is one JSON object."""
    if sys.argv[1:2] == ["--measure"]:
        measures: dict[str, Callable[..., Any]] = {"signature": signature, "whole": whole, "case": case}
        print(json.dumps(measures[sys.argv[2]](*sys.argv[3:])))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--doublings", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--engine", default="local", choices=("local", "spark", "ray"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.cases:
        cases(options.engine)
        return
    with tempfile.TemporaryDirectory(prefix="refinery-dedup-") as name:
        compared = compare(Path(name), options)
    ours = compared["growth"]
    print(f"{ours[0]['documents']:,.0f} documents, {compared['mb']:.1f} MB; {NGRAM}-grams, {BANDS} x {ROWS}")
    for who in ("ours", "rensa", "datatrove"):
        print(f"{who:<11}" + ", ".join(f"{key} {value:,.2f}" for key, value in compared[who].items()))
    for run in ours:
        print(f"{'ours':<11}" + ", ".join(f"{key} {value:,.2f}" for key, value in run.items()))
    figures = summary(compared)
    for key, value in figures.items():
        print(f"{key:<22}{value:>10}")
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
