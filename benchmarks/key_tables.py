"""Measures a group of keys on local and on Spark: as rows with named columns, and as bytes.

    python benchmarks/key_tables.py [--rows 1000000 ...] [--buckets 64] [--ways local bytes columns] [--json]

Rows are (id, hash, priority, place), 72 bytes each. Of `key`, a tenth has one hash; `template` is one band: all rows
have one hash. The kernel keeps the first row of each hash by priority and id. Each way runs in a process of its own,
with two cores, after a small group that starts the engine. For each: seconds of processor time and of wall clock, MB of
the largest worker and of the JVM (proportional; of `local`, of its one process), and the MB that Spark's shuffle wrote
(of `local`, that its scratch has). Shards must have the same digests.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import peers
import processes
import pyarrow as pa
from refinery_spark import spark

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.run.history import History
from pipeline_tasks.run.runner import RunningEngine
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Shards
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.testing.refining import commit_parent
from pipeline_tasks.text.base.tables import run_starts, unchanged

MEGABYTE = 10**6
CORES = 2
FILES = 16
KINDS = {"key": 0.1, "template": 1.0}
"""Share of the rows that have one hash."""

SCHEMA = pa.schema([("id", pa.string()), ("hash", pa.int64()), ("priority", pa.int64()), ("place", pa.string())])


def keep_first(rows: Batches) -> Batches:
    """Keep the first row of each hash."""
    last = None
    for batch in rows:
        starts = run_starts(batch["hash"])
        if batch.num_rows and batch["hash"][0].as_py() == last:
            starts = starts[1:]
        last = batch["hash"][batch.num_rows - 1].as_py() if batch.num_rows else last
        yield batch.take(pa.array(starts))


def table(rows: int, share: float, number: int) -> pa.Table:
    """Return the rows of one file."""
    draw, at = np.random.default_rng(number), range(number * rows, (number + 1) * rows)
    hashes = np.where(draw.random(rows) < share, 12345, draw.integers(-(2**62), 2**62, rows))
    ids = [f"{one:016x}{place:016x}" for one, place in zip(draw.integers(0, 2**62, rows).tolist(), at, strict=True)]
    places = [f"crawl/{number:05d}.warc.gz:{place}" for place in at]
    return pa.table([ids, hashes, draw.integers(0, 10**9, rows), places], schema=SCHEMA)


def given(on: RunningEngine, root: Path, rows: int, share: float) -> Shards:
    """Return rows that a verb of the stage made."""
    parent = commit_parent(root, [table(rows // FILES, share, number) for number in range(FILES)], f"given-{rows}")
    return on.map(unchanged, read_manifest(str(root), parent).shards)


def grouped(on: RunningEngine, rows: Shards, buckets: int) -> Shards:
    """Run the group."""
    return on.group(keep_first, rows, by="hash", order=("priority", "id"), buckets=buckets)


def counted_scratch() -> list[int]:
    """Return the bytes of each object that scratch gets from now on."""
    sizes: list[int] = []
    put: Callable[..., Any] = LocalStore.put_scratch

    @wraps(put)
    def noted(store: LocalStore, path: str, file: Path) -> None:
        sizes.append(file.stat().st_size)
        put(store, path, file)

    setattr(LocalStore, "put_scratch", noted)  # noqa: B010 -- a method of the class, which mypy lets nobody assign
    return sizes


def shuffled_bytes(folder: Path, buckets: int) -> int:
    """Return the bytes that the shuffle of a group wrote, by Spark's event log."""
    logged: list[dict[str, Any]] = []
    for path in folder.rglob("events_*"):
        with pa.input_stream(str(path), compression="zstd") as log:
            logged += [json.loads(line) for line in log.read().splitlines()]
    described = {
        event["Stage Info"]["Stage ID"]: event["Properties"]["spark.job.description"]
        for event in logged
        if event["Event"] == "SparkListenerStageSubmitted"
    }
    return sum(
        event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
        for event in logged
        if event["Event"] == "SparkListenerTaskEnd" and f" {buckets} buckets" in described[event["Stage ID"]]
    )


def measure(way: str, kind: str, rows: int, buckets: int) -> dict[str, Any]:
    """Run one way once."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with tempfile.TemporaryDirectory(prefix="refinery-keys-") as name:
        root, events = Path(name), Path(name, "events")
        events.mkdir()
        os.environ[spark.EVENTS] = events.as_uri()
        if way == "bytes":
            setattr(spark, "key_columns", lambda *_: ())  # noqa: B010 -- as it was for all rows
        where = ("local", "") if way == "local" else ("spark", f"local[{CORES}]")

        def running(prefix: str) -> RunningEngine:
            return engine(*where)(Tracker(StageIO(str(root), prefix)), History())

        warm = running("warm/f")
        grouped(warm, given(warm, root, FILES * 100, 0.1), 2)
        on, scratch = running("stage/f"), counted_scratch()
        shards = given(on, root, rows, KINDS[kind])
        peaks = processes.Peaks()
        threading.Thread(target=peaks.watch, args=(os.getpid(),), daemon=True).start()
        wall, cpu = time.perf_counter(), processes.processor_seconds()
        made = grouped(on, shards, buckets)
        wall, cpu = time.perf_counter() - wall, processes.processor_seconds() - cpu
        peaks.ended.set()
        if way != "local":
            spark.stop()
        moved = sum(scratch) or shuffled_bytes(events, buckets)
    digest = hashlib.sha256("".join(shard.digest for shard in made).encode()).hexdigest()[:12]
    python = peaks.driver if way == "local" else peaks.worker  # the driver of Spark wrote the input
    facts = {"cpu_s": cpu, "wall_s": wall, "worker_mb": python, "jvm_mb": peaks.jvm, "shuffled_mb": moved / MEGABYTE}
    return {name: round(value, 1) for name, value in facts.items()} | {"digest": digest}


def main() -> None:
    """Print a line per kind, number of rows and way; with --json the last line is one JSON object."""
    if sys.argv[1:2] == ["--measure"]:
        way, kind, rows, buckets = sys.argv[2:]
        print(json.dumps(measure(way, kind, int(rows), int(buckets))), flush=True)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--buckets", type=int, default=64)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--ways", nargs="*", default=["local", "bytes", "columns"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    for kind in options.kinds:
        for rows in options.rows:
            for way in options.ways:
                asked = (way, kind, str(rows), str(options.buckets))
                figures[f"{kind} {rows} {way}"] = facts = peers.run("key_tables.py", "--measure", *asked)
                shown = "  ".join(f"{name} {value}" for name, value in facts.items())
                print(f"{kind:<9} {rows:>10,} {way:<8} {shown}", flush=True)
            digests = {figures[f"{kind} {rows} {way}"]["digest"] for way in options.ways}
            assert len(digests) == 1, "the ways give other rows"
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
