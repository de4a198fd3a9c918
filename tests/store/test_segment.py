"""Segments: the rows of a few keys from a few pages, the same bytes for the same rows, and damage that is noticed."""

import hashlib
import os
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, DigestMismatch, JobLost, NoSpace, StorageBusy
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.shards import segment_writer
from pipeline_tasks.store.shards.rows import read_shard
from pipeline_tasks.store.shards.segment import Segment, Segments
from pipeline_tasks.store.shards.segment_writer import SegmentWriter, compact
from pipeline_tasks.store.shards.table import open_table, own_rows
from pipeline_tasks.text.base.key_pages import KeyedFile
from tests.descriptors import descriptors
from tests.faulty_s3 import FaultyS3
from tests.store.test_storage import small_files


def table(keys: Sequence[Any], kind: pa.DataType | None = None) -> pa.Table:
    """Return rows sorted by key and number, with a text that is sometimes null and a list."""
    numbers = list(range(len(keys)))
    columns = {
        "key": pa.array(sorted(keys), kind or pa.int64()),
        "number": pa.array(numbers, pa.int64()),
        "text": pa.array([None if number % 5 == 0 else f"text {number}" for number in numbers], pa.large_string()),
        "many": pa.array([list(range(number % 4)) for number in numbers], pa.list_(pa.int32())),
    }
    return pa.table(columns)


def stored(root: str | Path, rows: pa.Table, batch_rows: int = 1000) -> Shard:
    writer = SegmentWriter(rows.schema, ("key", "number"))
    for batch in rows.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    return writer.store(str(root), "days/data")


def read(root: str | Path, shard: Shard) -> pa.Table:
    return pa.Table.from_batches(list(Segment(str(root), shard))).combine_chunks()


def of(rows: pa.Table, keys: Sequence[Any]) -> pa.Table:
    kind = rows.schema.field("key").type
    return rows.filter(pc.is_in(rows.column("key"), value_set=pa.array(keys, kind))).combine_chunks()


# --- Rows are read from few pages ------------------------------------------------------------------------


@given(
    keys=st.lists(st.integers(0, 40), max_size=300),
    wanted=st.lists(st.lists(st.integers(-3, 43), max_size=12), max_size=4),
    page=st.sampled_from([2, 3, 128]),
    batches=st.tuples(*[st.sampled_from([1, 7, 10_000])] * 2),
    text=st.booleans(),
)
def test_any_keys_give_the_rows_that_a_filter_gives(
    keys: list[int], wanted: list[list[int]], page: int, batches: tuple[int, int], *, text: bool
) -> None:
    rows = table([f"ż{key:03}" for key in keys] if text else keys, pa.string() if text else pa.int64())
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "PAGE_ROWS", page)
        shard, again = (stored(root, rows, size) for size in batches)
        assert shard == again
        assert shard.rows == len(keys)
        assert read(root, shard).equals(rows)
        segment = Segment(root, shard)
        for numbers in wanted:
            chosen: list[Any] = [f"ż{key:03}" for key in numbers] if text else numbers
            array = pa.array(chosen, rows.schema.field("key").type)
            assert segment.rows(array).combine_chunks().equals(of(rows, chosen))
            assert KeyedFile(f"{root}/{shard.path}").rows(array).combine_chunks().equals(of(rows, chosen))
        assert segment.first("text") == (rows.column("text")[0].as_py() if keys else None)


def test_keys_that_are_longer_than_the_end_that_is_fetched_first_are_found(tmp_path: Path) -> None:
    """The root has the first and the last key of each page: it is fetched again where it is longer."""
    draws = random.Random(4)
    rows = table([f"{number:05}{draws.randbytes(20_000).hex()}" for number in range(12)], pa.string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment_writer, "PAGE_ROWS", 10)
        shard = stored(tmp_path, rows)
    assert read(tmp_path, shard).equals(rows.combine_chunks())
    segment = Segment(str(tmp_path), shard)
    wanted = rows.column("key").take(pa.array([0, 5, 11]))
    assert segment.rows(wanted.combine_chunks()).equals(rows.take(pa.array([0, 5, 11])))
    assert segment.cost["requests"] > 2


def test_a_small_segment_is_read_with_its_root(tmp_path: Path) -> None:
    rows = table(range(50))
    segment = Segment(str(tmp_path), stored(tmp_path, rows))
    assert segment.rows(pa.array([3, 7])).combine_chunks().equals(of(rows, [3, 7]))
    assert segment.cost["requests"] == 1


def test_a_file_that_is_no_segment_is_named(tmp_path: Path) -> None:
    (tmp_path / "list.parquet").write_bytes(b"PAR1" * 9)
    with pytest.raises(ContractError, match=r"list\.parquet is no list by key"):
        KeyedFile(str(tmp_path / "list.parquet"))


def test_several_segments_are_read_as_one_after_the_other(tmp_path: Path) -> None:
    parts = [table([]), table([1, 1, 4]), table([1, 2, 3, 9])]
    shards = [stored(tmp_path, part) for part in parts]
    segments = Segments(str(tmp_path), shards)
    assert pa.Table.from_batches(list(segments)).equals(pa.concat_tables(parts))
    whole = segments.cost.copy()
    assert (whole["rows"], segments.first("number")) == (7, 0)
    found = segments.rows(pa.array([1, 9]))
    assert found.equals(pa.concat_tables([of(part, [1, 9]) for part in parts]))
    assert segments.cost["bytes"] == whole["bytes"], "of a few segments, what was read is not read again"
    assert Segments(str(tmp_path), shards[:1]).first("number") is None


NODE = pa.struct({"rank": pa.large_string(), "known": pa.bool_()})
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "whole": (pa.int64(), st.integers(0, 9)),
    "text": (pa.string(), st.text(max_size=3)),
    "packed": (pa.large_binary(), st.binary(max_size=20)),
    "flag": (pa.bool_(), st.booleans()),
    "keys": (pa.list_(pa.int64()), st.lists(st.integers(0, 9), max_size=3)),
    "node": (NODE, st.fixed_dictionaries({"rank": st.text(max_size=2), "known": st.none() | st.booleans()})),
}


@given(draws=st.data(), rows=st.integers(1, 40))
def test_a_page_has_the_bytes_of_its_rows_copied_one_by_one(draws: st.DataObject, rows: int) -> None:
    values = {
        name: pa.array(draws.draw(st.lists(st.none() | each, min_size=rows, max_size=rows)), kind)
        for name, (kind, each) in COLUMNS.items()
    }
    starts = draws.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=3))
    slices = [pa.table(values).slice(start, draws.draw(st.integers(1, rows - start))) for start in starts]
    group = pa.concat_tables(slices)
    copied = group.take(pa.array(np.arange(group.num_rows))).combine_chunks().to_batches()[0]
    assert compact(group.to_batches()).serialize().equals(copied.serialize())


def test_a_key_costs_a_page_and_one_of_each_index_level(tmp_path: Path) -> None:
    draws = random.Random(1)
    rows = table(draws.sample(range(2**40), 40_000))
    shard = stored(tmp_path, rows)
    keys = draws.sample(rows.column("key").to_pylist(), 5) + draws.sample(range(2**40), 5)
    segment = Segment(str(tmp_path), shard)
    assert segment.root.depth == 1
    assert segment.rows(pa.array(keys)).combine_chunks().equals(of(rows, keys))
    assert segment.cost["rows"] <= 10 * segment_writer.PAGE_ROWS
    assert segment.cost["pages"] <= 10 + 3 + 1  # rows, index (40,000 / 128 / 128 pages), root
    assert segment.cost["requests"] <= segment.cost["pages"]
    assert segment.cost["bytes"] < shard.bytes / 5
    spent = dict(segment.cost)
    segment.rows(pa.array(keys))
    assert segment.cost == spent


def test_pages_side_by_side_come_in_one_request(tmp_path: Path) -> None:
    rows = table(range(10_000))
    segment = Segment(str(tmp_path), stored(tmp_path, rows))
    assert segment.rows(rows.column("key")).combine_chunks().equals(rows)
    assert segment.cost == {"rows": 10_000, "pages": 80, "bytes": segment.cost["bytes"], "requests": 2}


def test_a_reader_caches_little_however_much_it_reads(tmp_path: Path) -> None:
    rows = table(range(100_000))
    shard = stored(tmp_path, rows)
    segment, before, most = Segment(str(tmp_path), shard), pa.total_allocated_bytes(), 0
    for start in range(0, 100_000, 500):
        assert segment.rows(rows.column("key").slice(start, 500)).num_rows == 500
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < rows.nbytes / 5
    assert segment.cost["rows"] == 100_000
    assert segment.cost["pages"] == 782 + 7 + 2, "the filter and the root"


def test_large_rows_make_small_pages(tmp_path: Path) -> None:
    rows = table(range(50)).set_column(2, "text", pa.array([os.urandom(9000).hex() for _ in range(50)]))
    segment = Segment(str(tmp_path), stored(tmp_path, rows))
    assert segment.rows(pa.array([7])).combine_chunks().equals(of(rows, [7]))
    assert segment.cost["rows"] == 1


def test_a_root_that_is_larger_than_the_tail_is_read_whole(tmp_path: Path) -> None:
    keys = [os.urandom(300).hex() for _ in range(60)]
    rows = table(keys, pa.string())
    segment = Segment(str(tmp_path), stored(tmp_path, rows))
    assert segment.rows(pa.array(keys[:3])).combine_chunks().equals(of(rows, keys[:3]))
    assert read(tmp_path, stored(tmp_path, rows)).equals(rows)


@pytest.mark.parametrize(
    "keys", [[3, 2], [1, 1, 1, 0], [1, None], [*range(200), 0]], ids=["falls", "falls late", "null", "next batch"]
)
def test_rows_that_are_not_sorted_are_refused(keys: list[int | None], tmp_path: Path) -> None:
    rows = table(range(len(keys))).set_column(0, "key", pa.array(keys, pa.int64()))
    with pytest.raises(ContractError, match=" key, number "):
        stored(tmp_path, rows, 100)
    tied = table([1, 1]).set_column(1, "number", pa.array([5, 4], pa.int64()))
    with pytest.raises(ContractError, match=" key, number "):
        stored(tmp_path, tied)


# --- Damage ----------------------------------------------------------------------------------------------------------


def is_refused(root: str | Path, shard: Shard, rows: pa.Table) -> bool:
    """Read some keys and then all rows, which are right; return whether a read was refused."""
    try:
        assert Segment(str(root), shard).rows(pa.array([3, 150, 151])).combine_chunks().equals(of(rows, [3, 150, 151]))
        assert read(root, shard).equals(rows)
    except DigestMismatch as error:
        assert shard.path in str(error)  # noqa: PT017 -- either is right
        return True
    return False


def test_no_changed_byte_gives_a_wrong_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "PAGE_ROWS", 40)
    rows = table(range(300))
    shard = stored(tmp_path, rows)
    path = tmp_path / shard.path
    body = path.read_bytes()
    for at in range(0, len(body), 7):
        path.write_bytes(body[:at] + bytes([body[at] ^ 16]) + body[at + 1 :])
        assert is_refused(tmp_path, shard, rows), at
    path.write_bytes(body)
    assert not is_refused(tmp_path, shard, rows)


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (lambda body: body[:-20] + bytes(12) + body[-8:], ", root: "),
        (lambda body: body[:-8] + (2**40).to_bytes(8, "little"), ", root: "),
        (lambda body: body[:-8] + bytes(8), ", root: "),
        (lambda body: b"x" * 500 + body[500:], ", page at byte 0: "),
        (lambda body: body[:-900], " "),
        (lambda _: b"", " "),
    ],
    ids=["root", "length", "no length", "page", "cut", "empty"],
)
def test_damage_is_named_with_its_part(damage: Any, part: str, any_root: str) -> None:
    shard = stored(any_root, table(range(300)))
    store = storage.connect(any_root)
    body = damage(store.read(shard.path))
    store.delete(shard.path)
    store.create(shard.path, body)
    with pytest.raises(DigestMismatch, match=re.escape(f"{any_root}/{shard.path}{part}")):
        Segment(any_root, shard).rows(pa.array([3]))


def test_damage_of_pages_that_are_not_read_does_no_harm(tmp_path: Path) -> None:
    rows = table(range(1000))
    shard = stored(tmp_path, rows)
    path = tmp_path / shard.path
    path.write_bytes(b"x" * 100 + path.read_bytes()[100:])
    assert Segment(str(tmp_path), shard).rows(pa.array([999])).combine_chunks().equals(of(rows, [999]))
    with pytest.raises(DigestMismatch, match=re.escape(f"{tmp_path}/{shard.path}, page at byte 0: ")):
        list(Segment(str(tmp_path), shard))


def test_another_segment_in_its_place_is_noticed(tmp_path: Path) -> None:
    shard, other = stored(tmp_path, table(range(300))), stored(tmp_path, table(range(1, 301)))
    (tmp_path / shard.path).write_bytes((tmp_path / other.path).read_bytes().ljust(shard.bytes, b"\0")[: shard.bytes])
    with pytest.raises(DigestMismatch, match=re.escape(f"{tmp_path}/{shard.path}, root: ")):
        Segment(str(tmp_path), shard).rows(pa.array([3]))


def test_a_missing_segment_is_named(any_root: str) -> None:
    shard = stored(any_root, table(range(300)))
    storage.connect(any_root).delete(shard.path)
    with pytest.raises(ContractError, match=re.escape(f"{any_root}/{shard.path}: ")):
        Segment(any_root, shard).rows(pa.array([3]))


WAYS_OUT = {
    "dedup_minhash/f00/history/a.segment": "or remove its stage's manifest and refine",
    "compacted/f00/data/a.segment": "remove {root}/compacted/f00: ",
    "takedowns/segments/a.segment": "what was taken down would be used again",
}
"""What is to be done by where a segment is."""


@pytest.mark.parametrize("path", WAYS_OUT)
@pytest.mark.parametrize("damage", [lambda body: body[:-20] + bytes(20), lambda body: body[:-900], lambda _: b""])
def test_whoever_opens_a_damaged_segment_is_told_the_way_out(path: str, damage: Any, tmp_path: Path) -> None:
    shard = stored(tmp_path, table(range(300)))
    storage.connect(str(tmp_path)).create(path, damage((tmp_path / shard.path).read_bytes()))
    with pytest.raises(DigestMismatch, match=re.escape(WAYS_OUT[path].format(root=tmp_path))) as refusal:
        Segment(str(tmp_path), replace(shard, path=path)).rows(pa.array([3]))
    assert ("manifest" in str(refusal.value)) == path.startswith("dedup_minhash")


def test_damage_of_a_compaction_says_that_its_parts_are_there(tmp_path: Path) -> None:
    shard = stored(tmp_path, table(range(300)))
    body = (tmp_path / shard.path).read_bytes()
    moved = Shard("compacted/f00/data/a.segment", shard.rows, shard.bytes, shard.digest, shard.index_digest)
    with pytest.raises(JobLost, match=re.escape(f"{tmp_path}/{moved.path} ")):
        Segment(str(tmp_path), moved).rows(pa.array([3]))
    storage.connect(str(tmp_path)).create(moved.path, body[:-20] + bytes(20))
    with pytest.raises(DigestMismatch, match=re.escape(f"remove {tmp_path}/compacted/f00: ")):
        Segment(str(tmp_path), moved).rows(pa.array([3]))


@pytest.mark.slow
def test_ranges_that_fail_are_requested_again(s3_root: str, faults: FaultyS3) -> None:
    rows = table(range(3000))
    shard = stored(s3_root, rows)
    for fault in ("short_body", "lost_answer", "lost_request", (503, "SlowDown"), (500, "InternalError")):
        faults.coming += [("GET", fault)] * 2
        segment = Segment(s3_root, shard).rows(pa.array([3, 1500, 2999]))
        assert segment.combine_chunks().equals(of(rows, [3, 1500, 2999]))
    assert len(faults.happened) == 10
    faults.coming += [("GET", (503, "SlowDown"))] * 9
    with pytest.raises(StorageBusy, match=re.escape(f"{s3_root}/{shard.path}: ")):
        Segment(s3_root, shard).rows(pa.array([3]))


def test_a_writer_of_segments_leaves_no_temporary_file_and_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer.tempfile, "tempdir", str(tmp_path))
    stored(tmp_path / "root", table(range(200)))
    given_up = SegmentWriter(table([]).schema, ("key", "number"))
    given_up.discard()
    given_up.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    assert descriptors(tmp_path) == []


def test_a_full_disk_stops_a_segment(tmp_path: Path) -> None:
    rows = table(range(200)).set_column(2, "text", pa.array([os.urandom(900).hex() for _ in range(200)]))
    with small_files(), pytest.raises(NoSpace, match="TMPDIR"):
        stored(tmp_path, rows)
    assert not list(tmp_path.rglob("*.segment"))


def test_the_format_is_what_it_was(tmp_path: Path) -> None:
    """A change of how rows are stored is a new FORMAT of compactions, and new versions of stages whose history has keys."""
    shard = stored(tmp_path, table(range(300)))
    assert hashlib.sha256((tmp_path / shard.path).read_bytes()).hexdigest() == shard.digest
    assert shard.digest[:12] == "a7c7f63d1d82"
    assert shard.index_digest[:12] == "5d72bfb6e147"
    assert shard.bytes == 4440


def test_a_segment_is_read_as_a_shard_with_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    rows = table(range(300))
    shard = stored(tmp_path, rows)
    choices = (None, ["key", "many"], ["text"])
    tables = [pa.Table.from_batches(list(read_shard(str(tmp_path), shard, columns=columns))) for columns in choices]
    assert tables == [rows.select(columns or rows.column_names) for columns in choices]


@pytest.mark.parametrize("count", [0, 3, 20_000])
def test_a_segment_is_opened_by_its_path_alone(tmp_path: Path, count: int) -> None:
    rows = table(range(count))
    shard = stored(tmp_path, rows)
    opened = open_table(str(tmp_path), shard.path)
    assert opened.is_segment
    assert (opened.shard, opened.schema) == (shard, rows.schema)
    assert pa.Table.from_batches(own_rows(str(tmp_path), opened), rows.schema).combine_chunks() == rows.combine_chunks()
