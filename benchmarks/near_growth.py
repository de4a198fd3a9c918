"""Measures what grows in deduplication: memory with a template's pages, processor time of a day with its history.

    python benchmarks/near_growth.py [--pages N ...] [--others N] [--buckets B] [--json]
    python benchmarks/near_growth.py --first N ... [--shares S ...] [--template T] [--sentences N] [--json]

`--pages` documents have one signature, so that a band of so many equal keys is in each of 14 places, and `--others`
have signatures of their own. They are made, not read from texts: 800 bytes of shingles each, one address and date. Each
task of `near_duplicates.graph.keep_first` runs in a process of its own, forked from one that has loaded everything by a
run of 1,000 pages: `base` is what that one has. `peak` is the largest resident size of a verb's tasks, scatters and
gathers of a group apart.
`--first` documents (web-like ones of planted.py, 1.9 kB each or, with `--sentences`, shorter; a share `--template` are
pages of one template) are a first snapshot of `dedup_exact` and `dedup_minhash`. Behind it comes a day of each share of
new ones, all of which are new texts. Seconds are of processor time of the whole process, kernels loaded before; `share`
is a day's of those of the first. What the day read of history are counts.
"""

import argparse
import json
import os
import pickle
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import history
import numpy as np
import planted
import pyarrow as pa

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.near_duplicates.graph import keep_first
from pipeline_tasks.near_duplicates.history import sections
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.near_duplicates.tables import SIGNATURES
from pipeline_tasks.run.history import History
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker, guarded, results_of
from pipeline_tasks.stage import Batches, Shards
from pipeline_tasks.stages.dedup_minhash.params import SHINGLES, Params, likeness_of
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near import shingle_sets
from pipeline_tasks.text.near.ranking import nodes

BANDS, SET = 14, 200
"""Bands of a signature, and shingles of a document."""

WARMING = 1000
"""Pages of the run that loads everything."""

BATCH = 4096

DOCUMENTS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("snapshot", pa.string()),
        pa.field("url", pa.string()),
        pa.field("crawled_at", pa.string()),
        pa.field("number", pa.int64()),  # 0 of a page of the template
    ]
)


def documents(root: str, pages: int, others: int, buckets: int) -> Shards:
    """Store documents in buckets by id, in order of id; return their shards."""
    count, draws = pages + others, np.random.default_rng(1)
    digits = draws.bytes(16 * count).hex().encode()
    ids = pa.StringArray.from_buffers(
        count, pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32)), pa.py_buffer(digits)
    )
    numbers = np.maximum(np.arange(count) - pages + 1, 0)
    shards, places = [], bucket_of(ids, buckets)
    for bucket in range(buckets):
        rows = np.flatnonzero(places == bucket)
        some = ids.take(pa.array(rows))
        order = pa.compute.array_sort_indices(some)
        named, numbered = some.take(order), pa.array(numbers[rows]).take(order)
        writer = ShardWriter(DOCUMENTS)
        for start in range(0, len(named), BATCH):
            part = named.slice(start, BATCH)
            constant = {"snapshot": "crawl", "crawled_at": "2026-01-01T00:00:00Z"}
            columns = {name: pa.repeat(value, len(part)) for name, value in constant.items()}
            urls = pa.compute.binary_join_element_wise("https://example.org", part, "/")
            writer.write(batch_of(DOCUMENTS, id=part, url=urls, number=numbered.slice(start, BATCH), **columns))
        shards.append(writer.store(root, "documents"))
    return tuple(shards)


def sign(batches: Batches, *, likeness: Likeness) -> Batches:
    """Yield `SIGNATURES` of documents: one of all pages of the template, another of each other document."""
    for batch in batches:
        numbers = batch.column("number").to_numpy()
        bands = numbers[:, None] * BANDS + np.arange(BANDS) + (1 << 40)
        hashes = (numbers[:, None].astype(np.uint64) << np.uint64(32)) + np.arange(SET, dtype=np.uint64) + np.uint64(1)
        ends = np.arange(batch.num_rows + 1, dtype=np.int64)
        sets = shingle_sets.pack(np.ascontiguousarray(hashes << np.uint64(24)).ravel(), ends * SET)
        yield batch_of(
            SIGNATURES,
            id=batch.column("id"),
            node=nodes(batch, likeness.order),
            keys=pa.ListArray.from_arrays(pa.array(ends * BANDS, pa.int32()), pa.array(bands.ravel())),
            compared=sets,
            size=pa.array(shingle_sets.sizes(sets)),
            history_version=pa.repeat(pa.scalar(likeness.history_version, pa.int64()), batch.num_rows),
        )


class Forked(LocalEngine):
    """The local engine, with a process for each task; notes the peak and the seconds of each verb's."""

    def __init__(self, root: str, saved: History) -> None:
        super().__init__(Tracker(StageIO(root, "near/run")), saved)
        self.peaks: dict[str, float] = defaultdict(float)
        self.seconds: dict[str, float] = defaultdict(float)

    def _each(self, tasks: Sequence[partial[Any]], weight: int) -> Iterator[Any]:  # noqa: ARG002 -- of the engine
        for task in tasks:
            result, peak, seconds = in_a_fork(task)
            name = named(task)
            self.peaks[name] = max(self.peaks[name], peak)
            self.seconds[name] += seconds
            yield from results_of([result])


def named(task: partial[Any]) -> str:
    """Return the verb of a task: its kernel, behind what moves its rows."""
    if not task.args:
        return ""
    if task.func.__name__ == "scatter_to_store":
        return f"scatter by {task.args[2]} of {DOING[0]}"
    if not hasattr(task.args[0], "kernel"):
        return task.func.__name__
    kernel = task.args[0].kernel
    kernel = kernel.func if isinstance(kernel, partial) else kernel
    moved = "gather: " if task.func.__name__ == "gather_from_store" else ""
    return f"{moved}{kernel.__name__}"


DOING = [""]
"""The kernel of the last map: its rows are what a scatter moves."""


def in_a_fork(task: partial[Any]) -> tuple[Any, float, float]:
    """Return the result of a task, the MB that its process had at most, and its seconds of processor time."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        code = 1
        try:
            body = pickle.dumps((guarded(task), peak_megabytes()))
            with os.fdopen(writer, "wb") as stream:
                stream.write(body)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        body = stream.read()
    _, status, used = os.wait4(child, 0)
    if status:
        message = f"{named(task)} ended with {status}"
        raise SystemExit(message)
    result, peak = pickle.loads(body)  # noqa: S301 -- of the fork
    if not task.func.__name__.startswith(("scatter", "index")):
        DOING[0] = named(task)
    return result, peak, used.ru_utime + used.ru_stime


def peak_megabytes() -> float:
    """Return this process's largest resident size since it was forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM"))


def measured(pages: int, others: int, buckets: int) -> dict[str, Any]:
    """Return what near duplicates of so many pages of one template cost."""
    likeness = likeness_of(Params(buckets=buckets))
    pa.set_cpu_count(1)
    saved = History(sections(SHINGLES))
    reads = ("id", "snapshot", "url", "crawled_at", "number")
    signing = partial(sign, likeness=likeness)
    with tempfile.TemporaryDirectory(prefix="near-") as root:
        shards = documents(root, WARMING, 0, 1)
        keep_first(
            shards,
            signing,
            reads,
            likeness_of(Params(buckets=1)),
            LocalEngine(Tracker(StageIO(root, "near/warm")), saved),
        )
    base = in_a_fork(partial(int))[1]
    with tempfile.TemporaryDirectory(prefix="near-") as root:
        shards, _, _ = in_a_fork(partial(documents, root, pages, others, buckets))
        on = Forked(root, saved)
        started = time.perf_counter()
        keep_first(shards, signing, reads, likeness, on)
        wall = time.perf_counter() - started
        rejected = on.rejected
    return {
        "pages": pages,
        "others": others,
        "buckets": buckets,
        "rejected": sum(rejected.values()),
        "base_mb": round(base),
        "peak_mb": round(max(on.peaks.values())),
        "cpu_s": round(sum(on.seconds.values()), 1),
        "wall_s": round(wall, 1),
        "verbs": {name: [round(on.peaks[name]), round(seconds, 1)] for name, seconds in on.seconds.items()},
    }


# --- Days behind a first snapshot -----------------------------------------------------------------------------


def days(count: int, shares: Sequence[float], template: float, most: int) -> dict[str, Any]:
    """Return what days of some shares of new documents take behind a first one of `count`."""
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="near-") as root:
        deduplicated(root, "warm", planted.web(200, seed=2), ())
    figures: dict[str, Any] = {"documents": count, "template": round(count * template), "days": []}
    with tempfile.TemporaryDirectory(prefix="near-") as root:
        first, manifests = deduplicated(root, "first", crawled(0, count, template, most), ())
        figures["first"] = first
        start = count
        for share in shares:
            size = round(count * share)
            day, _ = deduplicated(root, f"day-{share}", crawled(start, size, template, most), manifests)
            figures["days"].append({"documents": size, **{stage: _beside(day[stage], first[stage]) for stage in first}})
            start += size
    return figures


def crawled(start: int, size: int, template: float, most: int) -> Iterator[str]:
    """Yield documents of at most `most` sentences by their numbers from `start`, of a share pages of one template."""
    same = round(size * template)
    yield from planted.numbered(range(start, start + size - same), most)
    yield from planted.template(same, start)


def _beside(day: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    return {**day, "share": round(day["cpu_s"] / first["cpu_s"], 4)}


def deduplicated(
    root: str, name: str, texts: Iterable[str], before: Sequence[Mapping[str, str]]
) -> tuple[dict[str, Any], Sequence[Mapping[str, str]]]:
    """Deduplicate a day behind others; return what each stage took, and the manifests with those of this day."""
    path, took, manifests = history.given(root, name, texts), {}, {}
    for stage in history.STAGES:
        started = time.process_time()
        earlier = tuple(day[stage] for day in before)
        path, manifest, cost = refine(RefineRequest(root, stage, {}, path, earlier), engine("local"))
        seconds = time.process_time() - started
        took[stage] = {"cpu_s": round(seconds, 2), "kept": manifest.rows, **cost.history_reads}
        manifests[stage] = path
    return took, (*before, manifests)


def main() -> None:
    """Print the figures of each size; with --json each line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[])
    parser.add_argument("--others", type=int, default=20_000)
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--first", type=int, nargs="+", default=[])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1])
    parser.add_argument("--template", type=float, default=0.0)
    parser.add_argument("--sentences", type=int, default=planted.SENTENCES.stop)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for count in options.first:
        print(json.dumps(days(count, options.shares, options.template, options.sentences)), flush=True)
    for pages in options.pages:
        figures = measured(pages, options.others, options.buckets)
        if options.json:
            print(json.dumps(figures), flush=True)
            continue
        verbs = figures.pop("verbs")
        print(figures)
        for name, (peak, seconds) in verbs.items():
            print(f"{name:<60}{peak:>8} MB{seconds:>8} s", flush=True)


if __name__ == "__main__":
    main()
