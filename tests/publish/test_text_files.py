"""Texts are cut into files by their bytes alone, and every format has all of them in their order."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.text import text_files
from refinery_exports.text.text_files import cut_tables

from tests.own_formats import TEXT_FORMATS

TEXTS = st.lists(st.none() | st.text("aß", max_size=30), max_size=30)


def table(texts: list[str | None], start: int = 0) -> pa.Table:
    return pa.table(
        {"text": pa.array(texts, pa.large_string()), "number": pa.array(range(start, start + len(texts)), pa.int64())}
    )


def plainly(texts: list[str | None], most: int) -> Iterator[list[str | None]]:
    """The files, text by text."""
    waiting: list[str | None] = []
    for text in texts:
        waiting.append(text)
        if sum(len((each or "").encode()) for each in waiting) >= most:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


@given(texts=TEXTS, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), most=st.integers(1, 90))
def test_a_file_ends_with_the_text_that_reaches_its_bytes(texts: list[str | None], sizes: list[int], most: int) -> None:
    whole, tables, start = table(texts), [], 0
    while start < len(texts):
        tables.append(whole.slice(start, sizes[len(tables) % len(sizes)]))
        start += tables[-1].num_rows
    files = [pa.concat_tables(parts) for parts in cut_tables(iter(tables), most)]
    assert [file["text"].to_pylist() for file in files] == list(plainly(texts, most))
    assert [number for file in files for number in file["number"].to_pylist()] == list(range(len(texts)))


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_file_has_every_document_in_order(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "GROUP_BYTES", 20)
    tables = [table(["one", None, "three" * 9]), table([], 3), table(["ß"] * 30, 3)]
    path = tmp_path / "file"
    TEXT_FORMATS[name].write(iter(tables), path)
    if name == "text-parquet":
        rows = pq.read_table(path).to_pylist()
        groups = pq.ParquetFile(path).metadata
        assert [groups.row_group(rank).num_rows for rank in range(groups.num_row_groups)] == [3, 10, 10, 10]
    else:
        body = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(path.read_bytes())).read()
        rows = [json.loads(line) for line in body.decode().splitlines()]
    assert rows == pa.concat_tables(tables).to_pylist()
