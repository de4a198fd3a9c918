"""Rows become a part with equal bytes for equal batches, in groups that bound memory."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_sources.budget import Stopped
from refinery_sources.parquet_part import GROUP_BYTES, GROUP_ROWS, require_columns, write_part
from refinery_sources.source import Flow, Part, Received

from pipeline_tasks.errors import ContractError, RecipeError
from tests.sources.pulling import on_loopback

SCHEMA = pa.schema([pa.field("text", pa.string(), metadata={"b": "1", "a": "2"}), pa.field("n", pa.int64())])
PART = Part("a.parquet", "/in/a.csv")


def batches(count: int, rows: int, text: str = "kelp") -> Iterator[pa.RecordBatch]:
    for at in range(count):
        numbers = list(range(at * rows, (at + 1) * rows))
        yield pa.RecordBatch.from_pydict({"text": [f"{text} {n}" for n in numbers], "n": numbers})


def written(path: Path, given: Iterator[pa.RecordBatch], schema: pa.Schema = SCHEMA) -> Received:
    with on_loopback() as on:
        return write_part(given, schema, PART, path, on, Flow())


def test_equal_batches_have_equal_bytes_and_their_digest(tmp_path: Path) -> None:
    first = written(tmp_path / "a", batches(25, 1_000))
    again = written(tmp_path / "b", batches(25, 1_000), SCHEMA.with_metadata({"c": "3"}))
    assert first == again
    assert first.sha256 == hashlib.sha256((tmp_path / "b").read_bytes()).hexdigest()
    assert (first.rows, first.bytes) == (25_000, (tmp_path / "a").stat().st_size)
    assert pq.read_table(tmp_path / "a")["n"].to_pylist() == list(range(25_000))


def test_groups_end_at_rows_or_bytes(tmp_path: Path) -> None:
    written(tmp_path / "rows", batches(25, 1_000))
    groups = pq.ParquetFile(tmp_path / "rows").metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [GROUP_ROWS, GROUP_ROWS, 5_000]
    written(tmp_path / "bytes", batches(6, 2, "x" * (GROUP_BYTES // 4)))
    assert pq.ParquetFile(tmp_path / "bytes").num_row_groups == 3


def test_no_rows_are_a_file_with_its_columns(tmp_path: Path) -> None:
    assert written(tmp_path / "a", iter(())).rows == 0
    assert pq.read_schema(tmp_path / "a").names == ["text", "n"]


@pytest.mark.parametrize("other", [{"text": ["a"]}, {"text": ["a"], "n": ["one"]}])
def test_a_batch_of_other_columns_is_refused(other: dict[str, list[str]], tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"/in/a\.csv"):
        written(tmp_path / "a", iter([pa.RecordBatch.from_pydict(other)]))


def test_a_pull_that_ends_ends_the_file(tmp_path: Path) -> None:
    with on_loopback() as on:
        ended = replace(on, stop=threading.Event())
        ended.stop.set()
        with pytest.raises(Stopped):
            write_part(batches(25, 1_000), SCHEMA, PART, tmp_path / "a", ended, Flow())


@pytest.mark.parametrize(
    ("schema", "fields", "named"),
    [
        (pa.schema([("body", pa.string())]), {}, "the fields are body"),
        (pa.schema([("text", pa.string())]), {"url": "link"}, "no url: looked for link"),
        (pa.schema([("text", pa.string()), ("text", pa.string())]), {}, "twice"),
        (pa.schema([("doc", pa.struct([("body", pa.string())]))]), {"text": "doc.text"}, r"doc\.body"),
    ],
)
def test_columns_that_are_not_there_are_refused_with_those_that_are(
    schema: pa.Schema, fields: dict[str, str], named: str
) -> None:
    with pytest.raises(RecipeError, match=named):
        require_columns(schema, fields, "/in/a")
