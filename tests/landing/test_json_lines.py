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


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"a": 1, "a": 2}', "dup_key"),
        (b'{"a": {"b": 1, "b": 1}}', "dup_key"),
        (b"[" * 5000 + b"]" * 5000, "json_depth"),
        (b"{", "json"),
        (b'{"a": nan}', "json"),
        (b'{"a": NaN "b": 1}', "json"),
        (b'{"a": "\xff"}', "json"),
    ],
)
def test_lines_that_are_no_json(line: bytes, error: str) -> None:
    assert parse(line)[:2] == (None, error)


def test_lone_surrogates_are_replaced_and_counted() -> None:
    assert parse(b'{"a\\ud800": ["\\udc00x", "\\ud83d\\ude00"]}') == (
        {"a\ufffd": ["\ufffdx", "\U0001f600"]},
        None,
        None,
        2,
    )


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


@pytest.mark.parametrize(("fields", "error"), [({}, "no_text"), ({"text": 1}, "field_type")])
def test_objects_without_text(fields: dict[str, object], error: str) -> None:
    assert object_row(fields, 0, 1, "f", "json").error == error


def test_lines_have_their_places() -> None:
    data = b'\xef\xbb\xbf{"text": "a"}\n\n{"text": "b"}\r\n[1]\n{"text": "c"}'
    rows = list(read_lines(Reader(BytesSource(data)), "f"))
    assert [row.text for row in rows] == ["a", "b", None, "c"]
    assert [row.error for row in rows] == [None, None, "json", None]
    assert [data[row.offset : row.offset + row.length].strip() for row in rows] == [
        b'{"text": "a"}', b'{"text": "b"}', b"[1]", b'{"text": "c"}',
    ]  # fmt: skip


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
