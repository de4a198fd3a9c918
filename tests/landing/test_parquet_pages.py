"""What the headers of pages say bounds what the decoder of a chunk holds, closely enough that sound files are decoded."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.landing.parquet import pages as parquet_pages
from pipeline_tasks.landing.parquet.footer import read_footer
from pipeline_tasks.landing.parquet.pages import Chunk, bound_chunk
from pipeline_tasks.landing.parquet.thrift import BadThriftError

ROWS = 1000
TEXTS = [f"text {row} " + "word " * (row % 50) for row in range(ROWS)]
LONGEST = max(map(len, TEXTS))
COLUMNS: dict[str, tuple[pa.Array, int]] = {
    "text": (pa.array(TEXTS), LONGEST),
    "long": (pa.array(range(ROWS), pa.int64()), 8),
    "flag": (pa.array([row % 3 == 0 for row in range(ROWS)]), 1),
    "single": (pa.array([row / 3 for row in range(ROWS)], pa.float32()), 4),
    "double": (pa.array([row / 3 for row in range(ROWS)]), 8),
    "fixed": (pa.array([f"{row:013}".encode() for row in range(ROWS)], pa.binary(13)), 13),
    "code": (pa.array([f"code {row % 7}" for row in range(ROWS)]), len("code 0")),
}
"""Columns, and the bytes of the longest value."""


def chunks(table: pa.Table, **options: Any) -> list[Chunk]:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    footer = read_footer(sink, sink.tell())
    return [
        bound_chunk(sink, column, leaf)
        for group in footer.groups
        for column, leaf in zip(group.columns, footer.leaves, strict=True)
    ]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_row_of_a_plain_column_is_bounded_by_its_longest_value_or_its_page(
    kind: str, version: str, dictionary: bool
) -> None:
    column, longest = COLUMNS[kind]
    table = pa.table({kind: column})
    (chunk,) = chunks(table, data_page_version=version, use_dictionary=dictionary, compression="zstd")
    assert (chunk.column, chunk.error) == (kind, None)
    values = sum(len(value.as_py()) if kind in ("text", "code", "fixed") else longest for value in column)
    if kind in ("text", "code"):
        assert chunk.per_row * ROWS >= values
        assert chunk.per_row <= (values + 4 * ROWS + 100 if dictionary else values // ROWS + 20)
    else:
        assert longest < chunk.per_row <= longest + 4
    assert 0 < chunk.fixed <= 2 * (values + 8 * ROWS)


def test_a_page_of_a_dictionary_is_held_beside_the_largest_page() -> None:
    table = pa.table({"text": TEXTS})
    (plain,) = chunks(table, use_dictionary=False)
    (coded,) = chunks(table, use_dictionary=True)
    assert plain.fixed < coded.fixed <= 2 * plain.fixed


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_chunk_in_which_a_row_has_many_values_is_bounded_as_a_whole(dictionary: bool) -> None:
    values = [TEXTS[row % 40 : row % 40 + row % 9] for row in range(ROWS)]
    (chunk,) = chunks(pa.table({"x": values}), use_dictionary=dictionary, compression="zstd")
    assert (chunk.error, chunk.per_row) == (None, 0)
    assert chunk.fixed >= sum(len(text) for row in values for text in row)


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_values_of_a_small_dictionary_are_bounded_by_the_longest_of_them(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the dictionary as a whole a row of a few thousand values would be too large."""
    table = pa.table({"x": [[TEXTS[at % 700] for at in range(6000)]]})
    monkeypatch.setattr(parquet_pages, "REPEATED_FLOOR", 6000 * (LONGEST + 5))
    monkeypatch.setattr(parquet_pages, "REPEATED_RATIO", 0)
    (chunk,) = chunks(table, compression=codec)
    assert chunk.error is None
    assert sum(len(TEXTS[at % 700]) for at in range(6000)) <= chunk.fixed
    monkeypatch.setattr(parquet_pages, "REPEATED_FLOOR", 6000 * (LONGEST - 20))
    (chunk,) = chunks(table, compression=codec)
    assert chunk.error == "oversize"


def test_what_is_above_a_bound_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": TEXTS})
    (held,) = (chunk.fixed for chunk in chunks(table))
    for cap, error in ((held, None), (held - 1, "oversize")):
        monkeypatch.setattr(parquet_pages, "PAGE_CAP", cap)
        assert [chunk.error for chunk in chunks(table)] == [error]


def test_a_page_that_decodes_to_far_more_than_it_has_is_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": ["x" * 10_000] * 20})
    options = {"use_dictionary": False, "compression": "zstd"}
    assert [chunk.error for chunk in chunks(table, **options)] == [None]
    monkeypatch.setattr(parquet_pages, "RATIO_FLOOR", 1000)
    assert [chunk.error for chunk in chunks(table, **options)] == ["bomb"]
    assert [chunk.error for chunk in chunks(table, use_dictionary=False, compression="none")] == [None]


def test_more_pages_than_are_looked_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": TEXTS})
    options = {"use_dictionary": False, "data_page_size": 1, "write_batch_size": 100}
    monkeypatch.setattr(parquet_pages, "PAGES", 10)
    assert len(chunks(table, **options)) == 1
    monkeypatch.setattr(parquet_pages, "PAGES", 9)
    with pytest.raises(BadThriftError):
        chunks(table, **options)
