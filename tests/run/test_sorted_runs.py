"""Rows that do not fit memory come in the order of those that do, and memory follows the bound and not the rows."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.run.tasks import sorted_runs
from pipeline_tasks.run.tasks.sorted_runs import in_order, row_order

ROOT = Path(__file__).parents[2]

NODE = pa.struct({"rank": "string", "known": "bool"})

KEYS = (
    ("number",),
    ("number", "name"),
    ("number", "node"),
    ("name", "number"),
    ("name",),
    ("node", "share"),
    ("share", "number"),
    ("number", "number"),
)


@given(
    numbers=st.lists(st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=80),
    names=st.lists(st.none() | st.text(max_size=2), min_size=80, max_size=80),
)
def test_rows_are_in_the_order_of_sort_indices(numbers: list[int | None], names: list[str | None]) -> None:
    names = names[: len(numbers)]
    node = pa.array([{"rank": name, "known": False} for name in names], pa.struct({"rank": "string", "known": "bool"}))
    columns = {"number": pa.array(numbers, pa.int64()), "name": pa.array(names, pa.string()), "node": node}
    rows = pa.table(columns)
    joined = pa.concat_tables([rows.slice(0, 5), rows.slice(5)]).combine_chunks()
    choices = (("number",), ("number", "name"), ("number", "node"), ("name", "number"), ("number", "number"))
    sort_keys = [[(name, "ascending") for name in dict.fromkeys(keys)] for keys in choices]
    expected = [pc.sort_indices(rows, sort_keys=keys).to_pylist() for keys in sort_keys]
    assert [row_order(rows, *keys).tolist() for keys in choices] == expected
    assert [row_order(joined, *keys).tolist() for keys in choices] == expected


def cut(rows: pa.Table, sizes: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of these sizes, over and over; an empty one has the schema."""
    yield pa.RecordBatch.from_pylist([], schema=rows.schema)
    start = 0
    while start < rows.num_rows:
        for size in sizes:
            yield from rows.slice(start, size).combine_chunks().to_batches()
            start += size


values = st.tuples(
    st.none() | st.integers(-2, 2) | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.sampled_from(["", "a", "ab", "b", "ż"]),
    st.none() | st.sampled_from([0.0, -1.5, float("nan"), float("inf")]),
)


@given(
    drawn=st.lists(values, max_size=60),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    keys=st.sampled_from(KEYS),
    run=st.sampled_from([1, 200, 600]),
    block=st.integers(1, 5),
    most=st.sampled_from([2, 64]),
    batch_rows=st.sampled_from([1, 7, 1000]),
)
def test_merged_runs_have_the_order_of_rows_in_memory(
    drawn: list[tuple[Any, ...]],
    sizes: list[int],
    keys: tuple[str, ...],
    run: int,
    block: int,
    most: int,
    batch_rows: int,
) -> None:
    """Ties stay in the order in which they came, as in memory: `row` is of none of the keys."""
    numbers, names, shares = zip(*drawn, strict=True) if drawn else ((), (), ())
    rows = pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "name": pa.array(names, pa.string()),
            "share": pa.array(shares, pa.float64()),
            "node": pa.array([{"rank": name, "known": False} for name in names], NODE),
            "row": pa.array(range(len(numbers)), pa.int64()),
        }
    )
    whole = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in dict.fromkeys(keys)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "BLOCK_ROWS", block)
        patch.setattr(sorted_runs, "MOST_RUNS", most)
        merged = list(in_order(cut(rows, sizes), keys, batch_rows, run))
    assert pa.Table.from_batches(merged).column("row").to_pylist() == whole.column("row").to_pylist()
    assert pa.Table.from_batches(merged).schema == rows.schema
    assert max(batch.num_rows for batch in merged) <= batch_rows


def test_a_run_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = pa.table({"number": list(range(100))[::-1]})
    batches = in_order(cut(rows, [10]), ["number"], 7, 100)
    assert next(batches).num_rows == 7
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_no_space(tmp_path: Path) -> None:
    """A run that finds no space is tried again, and is no defect of the kernel."""
    program = """
import resource, signal
import pyarrow as pa
from pipeline_tasks.run.tasks import sorted_runs
from pipeline_tasks.run.tracker import guarded
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
batch = pa.record_batch({"text": [f"{n * 7919 % 100_003:08}" * 30 for n in range(10_000)]})
print(type(guarded(lambda: list(sorted_runs.in_order(iter([batch, batch]), ["text"], 1000, 1 << 20)))).__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "NoSpace\n", done.stderr


@pytest.mark.parametrize(("memory", "size"), [(0, 16 << 20), (0.5, 64 << 20), (1.5, 192 << 20), (64, 512 << 20)])
def test_a_task_of_little_memory_sorts_little_in_it(memory: float, size: int) -> None:
    assert sorted_runs.run_bytes(memory) == size


HOT = """
import sys
import pyarrow as pa
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.run import shuffle
from pipeline_tasks.run.tasks import sorted_runs
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stages.dedup_exact import keep_first
from pipeline_tasks.store.shards.file import ShardWriter
from tests.peak import peak_kb

root, megabytes = sys.argv[1], int(sys.argv[2])
shuffle.SCATTER_BYTES, sorted_runs.BLOCK_BYTES = 4 << 20, 1 << 20
PAGES = 500  # of 2 KB each


def page(number):
    place = ("crawl", f"{number % 7}.warc", number, f"record {number}", f"https://a.example/{number}", None, "digest")
    names = ("snapshot", "file", "offset", "record_id", "url", "crawled_at", "payload_digest")
    return {**dict(zip(names, place)), "id": "template", "text": f"{number:08} " * 222}


shards = []
for first in range(0, megabytes * 500, PAGES * 8):
    writer = None
    for start in range(first, first + PAGES * 8, PAGES):
        batch = pa.RecordBatch.from_pylist([page(number) for number in range(start, start + PAGES)])
        batch = batch.set_column(5, "crawled_at", batch.column("crawled_at").cast(pa.string()))
        writer = writer or ShardWriter(batch.schema)
        writer.write(batch)
    shards.append(writer.store(root, "given/data"))
engine = LocalEngine(Tracker(StageIO(root, "stage/f", batch_rows=500, run_bytes=16 << 20)))
order = ("crawled_at", "snapshot", "file", "offset")
kept = engine.group(keep_first, tuple(shards), by="id", order=order, buckets=2)
print(sum(shard.rows for shard in kept), sum(engine.rejected.values()))
print(peak_kb() / 1024)
"""
"""Groups so many MB of pages that are one page, with runs of 16 MB."""


def hot(root: Path, megabytes: int) -> tuple[int, int, float]:
    """Return the rows that are kept and rejected, and the most memory that the process had, in MB."""
    done = subprocess.run(
        [sys.executable, "-c", HOT, str(root), str(megabytes)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kept, rejected, peak = done.stdout.split()
    return int(kept), int(rejected), float(peak)


def test_a_page_that_is_most_of_a_crawl_takes_no_more_memory_than_a_run(tmp_path: Path) -> None:
    """Eight seconds: only here a group has more rows of one key than it may have in memory."""
    few, many = hot(tmp_path / "few", 40), hot(tmp_path / "many", 160)
    assert (few[:2], many[:2]) == ((1, 19_999), (1, 79_999))
    assert many[2] - few[2] < 40
