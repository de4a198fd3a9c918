"""JSON lines: strict parsing, the columns of an object, and lines that cannot be read."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.archives.record import sha1
from pipeline_tasks.landing.decompression import BytesSource, Reader
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.json_lines import object_row, parse, read_lines
from tests.archives import read

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_json_writes_is_parsed(value: object) -> None:
    assert parse(json.dumps(value).encode()) == (value, None, None, 0)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_a_number_that_json_does_not_have_costs_its_field_only(number: bytes) -> None:
    value, error, _, _ = parse(b'{"text": "x", "a": [1, %b], "b": {"c": %b}}' % (number, number))
    assert (value, error) == ({"text": "x", "a": [1, None], "b": {"c": None}}, None)


@pytest.mark.parametrize("digits", ["9223372036854775808", "18446744073709551616", "-9223372036854775809", "1" * 30])
def test_a_long_integer_does_not_depend_on_the_text_beside_it(digits: str) -> None:
    """Beside a lone surrogate it was an integer that JSON cannot write, and its line `json_depth`."""
    rows = []
    for text in ("words", r"words \ud800", 'words \\"a\\": '):
        value, error, _, _ = parse(f'{{"text": "{text}", "n": {digits}}}'.encode())
        assert error is None
        rows.append(object_row(value, 0, 9, "f", "json"))
    assert len({row.metadata for row in rows}) == 1
    assert [row.error for row in rows] == [None] * 3


@pytest.mark.parametrize("date", ["03/04/2026", "soon"])
def test_a_date_that_is_none_or_may_be_two_stays_in_metadata(date: str) -> None:
    row = object_row({"text": "words", "date": date, "n": 1}, 3, 9, "f", "json")
    assert (row.crawled_at, row.metadata, row.error) == (None, f'{{"date":"{date}","n":1}}', None)


def test_fields_go_to_columns_and_the_rest_to_metadata() -> None:
    row = object_row(
        {"content": "words", "url": "u", "id": 7, "timestamp": "5 May 2026", "source": "s", "n": 1}, 3, 9, "f", "json"
    )
    assert (row.text, row.url, row.record_id, row.crawled_at, row.source) == ("words", "u", "7", "2026-05-05", "s")
    assert (row.metadata, row.payload_digest, row.offset, row.length) == ('{"n":1}', sha1(b"words"), 3, 9)
    assert object_row({"text": "x"}, 3, 9, "f", "json").record_id == "f:3"


def test_a_file_of_blank_lines_is_empty() -> None:
    (row,) = read_lines(Reader(BytesSource(b"\n \n")), "f")
    assert (row.error, row.offset, row.length) == ("empty_file", 0, 3)


def test_a_line_of_too_many_values_is_oversize() -> None:
    rows = read(b'{"text": "a"}\n{"text": "a", "x": [' + b"{}," * (1 << 22) + b"{}]}\n", "a.jsonl")
    assert [row["error"] for row in rows] == [None, "oversize"]


def test_batches_are_bounded_by_all_that_a_row_has() -> None:
    lines = b"".join(b'{"text": "a", "%s": "%s"}\n' % (name, b"x" * 1000) for name in (b"url", b"id", b"x") * 10)
    batches = list(read_records("a.jsonl", io.BytesIO(lines), snapshot="s", batch_bytes=8000))
    assert sum(batch.num_rows for batch in batches) == 30
    assert max(batch.num_rows for batch in batches) <= 6


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_lines_in_utf_16_are_called_so(encoding: str) -> None:
    for line in '{"text": "雨"}\n{"text": "b"}\n'.encode(encoding).split(b"\n")[:2]:
        assert parse(line)[2] == "not UTF-8: every second byte is NUL, as in UTF-16"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\x8f\0\xe2\x11\0\0\x93\0", "not UTF-8 at byte 0"),
        (b'{"text": "a\0\xff"}', "not UTF-8 at byte 12"),
        (b'{"text": "a\0b"}', "control character"),
    ],
)
def test_a_nul_byte_alone_is_not_called_utf_16(line: bytes, why: str) -> None:
    assert why in str(parse(line)[2])
