"""Seconds per stage, end-to-end MB of HTML per second and core, peak memory; start-up costs are separate.

    python benchmarks/stages.py --input SNAPSHOT [--engine local|spark|ray] [--recipe web] [--json]

Every stage of the recipe runs over the snapshot in a fresh root, in one process. `local` uses one core, so its
MB/s is per core; for `spark` and `ray` the wall time is divided by the cores in use. Without --input the demo's
own crawl is written first. Kernels are compiled over a small crawl beforehand; that time is separate.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.landing import listing
from pipeline_tasks.recipe import ErrorBudget, Recipe, load_recipe
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import EngineFactory, refine
from pipeline_tasks.run.tasks.task import StageIO, read_input
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest

MEGABYTE = 1e6


@dataclass(slots=True)
class Timing:
    """Time, rows and bytes of one stage."""

    stage: str
    wall: float
    cpu: float
    rows_in: int
    rows: int
    bytes: int


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def start_up(name: str) -> dict[str, float]:
    """Start what the engine needs, and import what each run imports once; seconds of each."""
    costs: dict[str, float] = {}
    if name == "spark":
        from refinery_spark import spark

        costs["spark session"] = timed(lambda: spark.session("local[*]"))
    if name == "ray":
        from refinery_ray import ray

        costs["ray"] = timed(lambda: ray.connect("local"))
    code = "import great_expectations"
    costs["import great_expectations"] = timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))
    return costs


def run(root: str, uri: str, recipe: Recipe, factory: EngineFactory) -> list[Timing]:
    """Run every stage over the snapshot at `uri`; return the timing of each."""
    path, _, _ = listing.land(root, uri)
    landing, timings = listing.landing_of(uri), []
    for step in recipe.steps:
        work = RefineRequest(root, step.stage, step.params, path, landing=landing, error_budget=ErrorBudget(share=1.0))
        path, manifest, cost = refine(work, factory)
        timings.append(Timing(step.stage, cost.wall, cost.cpu, manifest.rows_in, manifest.rows, manifest.bytes))
    return timings


def html_bytes(root: str, ingest: str, landing: str) -> int:
    """Return the bytes of HTML that `ingest` kept."""
    stage_io, total = StageIO(root, "ingest", landing=landing), 0
    for shard in read_manifest(root, ingest).shards:
        for batch in read_input(stage_io, shard):
            total += sum(len(page) for page in batch.column("payload").to_pylist() if page)
    return total


def peak_megabytes() -> float:
    """Return the largest resident size of this process or of any child it has waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) * 1024 / MEGABYTE


def main() -> None:
    """Print the table, and with --json one JSON object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", default="")
    parser.add_argument("--engine", default="local", choices=("local", "spark", "ray"))
    parser.add_argument("--recipe", default="web")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="refinery-bench-"))
    try:
        from pipeline_tasks.demo.crawl import write_crawl

        write_crawl(folder / "crawl")
        warm = folder / "crawl" / "2026-11-20"
        recipe, factory = load_recipe(options.recipe), engine(options.engine)
        costs = start_up(options.engine)
        costs["compile kernels (or load them)"] = timed(lambda: run(str(folder / "warm"), str(warm), recipe, factory))
        uri = options.input or str(folder / "crawl" / "2026-11-19")
        timings = run(str(folder / "root"), uri, recipe, factory)
        ingest = next(
            entry.path
            for entry in storage.connect(str(folder / "root")).list("ingest")
            if entry.path.endswith("manifest.json")
        )
        show(timings, html_bytes(str(folder / "root"), ingest, listing.landing_of(uri)), costs, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def show(timings: list[Timing], html: int, costs: dict[str, float], options: argparse.Namespace) -> None:
    """Print the measurements."""
    cores = 1 if options.engine == "local" else (os.cpu_count() or 1)
    wall = sum(timing.wall for timing in timings)
    speed = html / MEGABYTE / wall / cores
    print(f"{'stage':<16}{'seconds':>9}{'rows in':>10}{'kept':>9}{'MB kept':>9}")
    for timing in timings:
        rows = f"{timing.rows_in:>10,}{timing.rows:>9,}"
        print(f"{timing.stage:<16}{timing.wall:>9.2f}{rows}{timing.bytes / MEGABYTE:>9.1f}")
    print(f"{'all':<16}{wall:>9.2f}   {html / MEGABYTE:.1f} MB of HTML, {speed:.2f} MB/s per core on {options.engine}")
    print(f"peak memory of a process {peak_megabytes():.0f} MB")
    for name, seconds in costs.items():
        print(f"start-up: {name} {seconds:.1f} s")
    if options.json:
        stages = {timing.stage: round(timing.wall, 3) for timing in timings}
        facts = {"engine": options.engine, "html_mb": round(html / MEGABYTE, 1), "wall_s": round(wall, 2)}
        facts |= {"mb_s_per_core": round(speed, 3), "peak_mb": round(peak_megabytes()), "stages_s": stages}
        facts["start_up_s"] = {name: round(cost, 2) for name, cost in costs.items()}
        print(json.dumps(facts, sort_keys=True))


if __name__ == "__main__":
    main()
