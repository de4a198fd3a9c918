"""How a whole run grows with its input, and what a second core gains on Spark and on Ray.

    python benchmarks/scale.py [--input SNAPSHOT] [--sizes 100 400 1600] [--shards 1000 10000] [--place FOLDER] [--json]

`varied_crawl.py` writes a crawl of each size (MB of HTML) from the pages of the snapshot. `whole_run.py` refines it in
a process of its own, from landing to published version: every size on `local` with one core, the largest on Spark and
on Ray with two. Then:

- `spark_efficiency`, `ray_efficiency`: seconds on one core / (2 x seconds on two cores)
- `ceiling`: the same of the machine itself: two independent runs at once, each on one core, against a run alone
- `exponent`: growth of processor time over the sizes (slope of the logarithms, least squares)
- `worker_mb`: largest memory of a process that runs tasks, of either engine; `worker_growth`: that of `local`, largest
  size against the smallest
- `driver_mb`, `jvm_mb`: memory of Spark's driver for so many shards, of Python and of its JVM: landed files of one page
  each, up to `filter_quality`
- `bytes_ratio`: everything below the root / the text as `extract` stores it

Memory is the proportional set size (own pages, and a share of common ones). `load` and `waited` (seconds in which some
process waited for a processor) tell how busy the machine was with other work.
"""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import processes
import varied_crawl

HERE = Path(__file__).parent
MEGABYTE = 10**6
CORES = 2
SMALL = 20_000
"""Bytes of the pages of which each is a file of its own."""

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a run may run: an engine, and the processors from `first` on; what it runs: a recipe, up to a stage."""

    engine: str
    cores: int = 1
    first: int = 0
    until: str = ""
    recipe: str = "web"


def refine(snapshot: Path, root: Path, machine: Machine) -> Facts:
    """Refine a snapshot in a process of its own; return what it measured, with its peaks of memory."""
    where = ["--engine", machine.engine, "--cores", str(machine.cores), "--first", str(machine.first)]
    command = [sys.executable, str(HERE / "whole_run.py"), "--input", str(snapshot), "--root", str(root), *where]
    command += ["--recipe", machine.recipe]
    if machine.until:
        command += ["--until", machine.until]
    environ = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    peaks = processes.Peaks()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent, env=environ) as running:
        watcher = threading.Thread(target=peaks.watch, args=(running.pid,))
        watcher.start()
        out, _ = running.communicate()
        peaks.ended.set()
        watcher.join()
    if running.returncode:
        raise subprocess.CalledProcessError(running.returncode, command)
    memory = {"driver_mb": peaks.driver, "worker_mb": peaks.worker, "jvm_mb": peaks.jvm}
    facts: Facts = json.loads(out.splitlines()[-1])
    return facts | {name: round(value) for name, value in memory.items()} | measure(root, facts)


def measure(root: Path, facts: Facts) -> Facts:
    """Return the bytes and objects below a root."""
    sizes = {entry: entry.stat().st_size for entry in root.rglob("*") if entry.is_file()}
    total, text = sum(sizes.values()), facts["steps"]["extract"]["bytes"]
    receipts = [size for entry, size in sizes.items() if entry.parent.name == "receipts"]
    manifests = [size for entry, size in sizes.items() if entry.name == "manifest.json"]
    kinds = {"receipts": len(receipts), "receipt_bytes": sum(receipts), "largest_manifest": max(manifests)}
    return {"bytes": total, "objects": len(sizes), "bytes_ratio": round(total / text, 3)} | kinds


@contextmanager
def refined(snapshot: Path, machine: Machine) -> Iterator[Facts]:
    """Refine a snapshot into a root beside it, which is removed at the end."""
    root = snapshot.parent / f"root-{machine.engine}-{machine.first}"
    try:
        yield refine(snapshot, root, machine)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def once(snapshot: Path, machine: Machine) -> Facts:
    """Refine a snapshot, and show what it took."""
    with refined(snapshot, machine) as facts:
        show(f"{snapshot.name} on {machine.engine}, {machine.cores} core(s)", facts)
        return facts


def ceiling(snapshot: Path, alone: Facts) -> Facts:
    """Return what two independent runs at once take, each on a core of its own, against one alone."""
    machines = [Machine("local", first=number) for number in range(CORES)]
    with ThreadPoolExecutor(CORES) as pool:
        both = list(pool.map(lambda machine: once(snapshot, machine), machines))
    wall = sum(facts["total"]["wall"] for facts in both) / CORES
    return {"ceiling": round(alone["total"]["wall"] / wall, 3), "ceiling_runs": both}


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the slope of log(cost) over log(size) by least squares."""
    across, up = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    middle, level = sum(across) / len(across), sum(up) / len(up)
    joint = sum((x - middle) * (y - level) for x, y in zip(across, up, strict=True))
    return joint / sum((x - middle) ** 2 for x in across)


def growth(source: varied_crawl.Source, place: Path, options: argparse.Namespace) -> Facts:
    """Return the runs of every size on one core, and those of the largest on two."""
    runs: dict[str, Facts] = {}
    for size in sorted(options.sizes):
        crawl = place / f"crawl-{size}"
        volume = varied_crawl.Volume(size * MEGABYTE, options.file * MEGABYTE)
        varied_crawl.write(crawl, varied_crawl.exchanges(source, options.seed), volume)
        runs[f"local-{size}"] = once(crawl, Machine("local"))
        if size == max(options.sizes):
            runs |= {engine: once(crawl, Machine(engine, CORES)) for engine in options.engines}
        if size == options.pair:
            runs["pair"] = ceiling(crawl, runs[f"local-{size}"])
        shutil.rmtree(crawl)
    return runs


def shards(source: varied_crawl.Source, place: Path, options: argparse.Namespace) -> Facts:
    """Return the memory of Spark's driver for snapshots of so many files."""
    peaks: Facts = {}
    for count in options.shards:
        crawl = place / f"shards-{count}"
        pages = (page for page in varied_crawl.exchanges(source, options.seed) if len(page.body) < SMALL)
        varied_crawl.write(crawl, islice(pages, count), varied_crawl.Volume(html=1 << 60, file=1, files=count))
        facts = once(crawl, Machine("spark", CORES, until="filter_quality"))
        names = ("driver_mb", "jvm_mb", "worker_mb", "total", "largest_manifest", "receipts", "receipt_bytes")
        peaks[str(count)] = {name: facts[name] for name in names}
        shutil.rmtree(crawl)
    return peaks


def summary(sizes: Sequence[int], runs: Mapping[str, Facts], drivers: Mapping[str, Facts]) -> Facts:
    """Return the figures of all runs."""
    local = [runs[f"local-{size}"] for size in sizes]
    facts: Facts = {"bytes_ratio": local[-1]["bytes_ratio"]}
    for engine in ("spark", "ray"):
        if engine in runs:
            facts[f"{engine}_efficiency"] = local[-1]["total"]["wall"] / (CORES * runs[engine]["total"]["wall"])
    if len(sizes) > 1:
        facts["exponent"] = exponent(sizes, [run["total"]["cpu"] for run in local])
        facts["worker_growth"] = local[-1]["driver_mb"] / local[0]["driver_mb"]
    workers = [runs[engine]["worker_mb"] for engine in ("spark", "ray") if engine in runs]
    facts["worker_mb"] = max(workers, default=local[-1]["driver_mb"])
    if "pair" in runs:
        facts["ceiling"] = runs["pair"]["ceiling"]
    facts["driver_mb"] = {count: drivers[count]["driver_mb"] for count in drivers}
    facts["jvm_mb"] = {count: drivers[count]["jvm_mb"] for count in drivers}
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in facts.items()}


def show(title: str, facts: Facts) -> None:
    """Print the steps of a run."""
    print(f"{title}\n{'':<16}{'wall s':>9}{'cpu s':>9}{'tasks s':>9}{'rows':>11}{'MB':>9}")
    for name, step in [*facts["steps"].items(), ("total", facts["total"])]:
        seconds = "".join(f"{step[key]:>9.2f}" for key in ("wall", "cpu", "tasks"))
        kept = f"{step['rows']:>11,.0f}{step['bytes'] / MEGABYTE:>9.1f}" if name != "total" else ""
        print(f"{name:<16}{seconds}{kept}")
    memory = ", ".join(f"{name[:-3]} {facts[name]} MB" for name in ("driver_mb", "worker_mb", "jvm_mb"))
    print(f"{memory}; root {facts['bytes'] / MEGABYTE:.0f} MB in {facts['objects']:,} objects")
    print(f"load {facts['load']}, waited {facts['waited']} s\n", flush=True)


def main() -> None:
    """Print a table per run, and with --json one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 400, 1600], help="MB of HTML")
    parser.add_argument("--engines", nargs="*", default=["spark", "ray"])
    parser.add_argument("--pair", type=int, default=400, help="the size whose run alone is compared with two at once")
    parser.add_argument("--shards", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--file", type=int, default=varied_crawl.FILE_BYTES // MEGABYTE, help="MB of HTML in a file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--place", help="where crawls and roots are written for a while (default: TMPDIR)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    source = varied_crawl.read_source(varied_crawl.source_of(options.input))
    with tempfile.TemporaryDirectory(prefix="refinery-scale-", dir=options.place) as name:
        runs = growth(source, Path(name), options)
        drivers = shards(source, Path(name), options)
    varied_crawl.remove_demo()
    facts = summary(sorted(options.sizes), runs, drivers) if options.sizes else {"drivers": drivers}
    for key, value in facts.items():
        print(f"{key:<20}{value}")
    if options.json:
        print(json.dumps(facts | {"runs": runs, "drivers": drivers}, sort_keys=True))


if __name__ == "__main__":
    main()
