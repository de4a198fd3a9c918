"""Rows of Parquet files: odd values and types are rows with reasons, and no file takes more memory than its bounds."""

import datetime as dt
import decimal
import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.parquet.footer import read_footer
from pipeline_tasks.stages.ingest import DAMAGE
from tests.archives import read


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True, **options)
    return sink.getvalue()


def rows_of(columns: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return read(parquet(pa.table(columns), **options), "a.parquet")


def metadata(column: pa.Array) -> list[dict[str, Any]]:
    rows = rows_of({"text": ["some text"] * len(column), "x": column})
    assert [row["error"] for row in rows] == [None] * len(rows)
    return [json.loads(row["metadata"]) if row["metadata"] else {} for row in rows]


# --- values and types -----------------------------------------------------------------------------------------


def test_a_value_that_python_cannot_hold_costs_its_field_alone() -> None:
    days = pa.array([0, 2**62, -(2**62), None], pa.timestamp("us"))
    unreadable = {"unreadable_fields": ["x"]}
    assert metadata(days) == [{"x": "1970-01-01T00:00:00"}, unreadable, unreadable, {"x": None}]
    assert metadata(pa.array([2**31 - 1, 0], pa.date32())) == [unreadable, {"x": "1970-01-01"}]


NO_NUMBERS: dict[str, tuple[pa.Array, list[object]]] = {
    "double": (pa.array([float("nan"), float("inf"), 1.5, None]), [..., ..., 1.5, None]),
    "float": (pa.array([float("-inf"), 0.5], pa.float32()), [..., 0.5]),
    "half": (pa.array(np.array([np.nan, 0.5], np.float16)), [..., 0.5]),
    "list": (pa.array([[1.0, float("nan")], [2.0], [], None]), [..., [2.0], [], None]),
    "fixed list": (pa.array([[1.0, float("nan")], [2.0, 3.0]], pa.list_(pa.float64(), 2)), [..., [2.0, 3.0]]),
    "struct": (pa.array([{"a": {"b": [float("nan")]}}, {"a": {"b": [0.5]}}]), [..., {"a": {"b": [0.5]}}]),
    "map": (pa.array([[("k", float("inf"))], [("k", 1.0)]], pa.map_(pa.string(), pa.float64())), [..., [["k", 1.0]]]),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_a_number_that_json_has_not_is_named_and_not_null(kind: str) -> None:
    column, wanted = NO_NUMBERS[kind]
    assert metadata(column) == [{"unreadable_fields": ["x"]} if value is ... else {"x": value} for value in wanted]


def test_a_missing_text_that_pandas_wrote_as_a_number_is_missing() -> None:
    (row,) = rows_of({"text": ["a"], "url": [float("nan")]})
    assert (row["error"], row["url"]) == (None, None)
    (row,) = rows_of({"text": [float("nan")], "url": ["https://example.org/"]})
    assert row["error"] == "no_text"


def test_a_date_column_that_cannot_be_read_is_a_row_with_a_reason() -> None:
    rows = rows_of({"text": ["a", "b"], "date": pa.array([2**62, 0], pa.timestamp("us"))})
    assert [(row["error"], row["error_detail"]) for row in rows] == [
        ("field_type", "date has a value that cannot be read"),
        (None, None),
    ]
    assert [(row["offset"], row["length"]) for row in rows] == [(0, 1), (1, 1)]
    assert rows[1]["crawled_at"] == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "+99:99", "", "\x00", "Europe/Berlin"])
def test_a_zone_is_a_name_only_and_times_are_utc(zone: str) -> None:
    rows = rows_of({"text": ["a"], "date": pa.array([1], pa.timestamp("s", zone))})
    assert [row["error"] for row in rows] == [None]
    assert rows[0]["crawled_at"] == "1970-01-01T00:00:01Z"


ODD = {
    "list": (pa.array([[1, None], [], None]), [[1, None], [], None]),
    "large_list": (pa.array([["a"]], pa.large_list(pa.string())), [["a"]]),
    "list of timestamps": (pa.array([[0]], pa.list_(pa.timestamp("s"))), [["1970-01-01T00:00:00"]]),
    "struct": (pa.array([{"a": 1, "b": {"c": "d"}}]), [{"a": 1, "b": {"c": "d"}}]),
    "map": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), [[["k", 1]]]),
    "dictionary": (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    "decimal": (pa.array([decimal.Decimal("1.50")]), ["1.50"]),
    "duration": (pa.array([dt.timedelta(seconds=90)]), ["0:01:30"]),
    "binary": (pa.array([b"\xff\x00"]), ["2 bytes"]),
    "large_binary": (pa.array([b"\xff\x00"], pa.large_binary()), ["2 bytes"]),
    "binary in lists": (pa.array([[b"abc"]]), [["3 bytes"]]),
    "string_view": (pa.array(["a"], pa.string_view()), ["a"]),
    "large_string": (pa.array(["a"], pa.large_string()), ["a"]),
    "extension": (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\0" * 16], pa.binary(16))), ["16 bytes"]),
    "nanoseconds": (pa.array([1_500_000_000_000_000_001], pa.timestamp("ns")), ["2017-07-14T02:40:00"]),
    "half": (pa.array([np.float16(1.5)]), [1.5]),
    "nan": (pa.array([float("nan"), float("inf")]), [None, None]),
    "null": (pa.nulls(2), [None, None]),
    "big numbers": (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_types_become_metadata(kind: str) -> None:
    column, wanted = ODD[kind]
    assert [fields.get("x") for fields in metadata(column)] == wanted


def test_text_without_its_annotation_is_text() -> None:
    """Hive, Impala and others write strings as plain bytes: every row was `field_type`."""
    columns = {"text": pa.array(["Die Brücke".encode(), b"page"]), "url": pa.array([b"https://a.example.org", None])}
    rows = read(parquet(pa.table(columns)), "a.parquet")
    assert [(row["text"], row["url"], row["error"]) for row in rows] == [
        ("Die Brücke", "https://a.example.org", None),
        ("page", None, None),
    ]


@pytest.mark.parametrize("name", ["text", "url", "date"])
@pytest.mark.parametrize("value", [["a"], {"a": "b"}, b"\xff bytes"])
def test_a_wrong_type_in_a_column_of_a_record_is_a_row_with_a_reason(name: str, value: Any) -> None:
    columns = {"text": ["sound"] * 2} | {name: [value, value]}
    rows = rows_of(columns)
    assert [row["error"] for row in rows] == ["field_type"] * 2
    assert rows[0]["error_detail"] == f"{name} is a {type(value).__name__}"


def test_a_row_that_is_too_large_is_oversize() -> None:
    rows = rows_of({"text": ["x" * (33 << 20), "fits"]}, compression="none")
    assert [(row["offset"], row["error"]) for row in rows] == [(0, "oversize"), (1, None)]


# --- files ----------------------------------------------------------------------------------------------------


def test_a_table_without_rows_has_no_rows() -> None:
    empty = parquet(pa.table({"text": pa.array([], pa.string())}))
    assert list(read(empty, "a.parquet")) == []


def test_a_file_without_columns_or_with_one_twice_is_one_row() -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    found = [
        [(row["error"], row["error_detail"]) for row in read(parquet(table), "a.parquet")]
        for table in (pa.table({}), twice)
    ]
    assert found == [[("no_text", "no columns")], [("dup_key", "a column is given twice")]]


def test_an_encrypted_file_says_so() -> None:
    data = parquet(pa.table({"text": ["a"]}))
    (row,) = read(b"PARE" + data[4:-4] + b"PARE", "a.parquet")
    assert (row["error"], row["error_detail"]) == ("parquet", "its footer is encrypted; land the file decrypted")


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_codec_page_version_and_encoding_is_bounded_and_read(codec: str, version: str) -> None:
    texts = [f"text {at} " + "word " * (at % 50) for at in range(3000)]
    table = {"text": texts, "tags": [["a", str(at)] for at in range(3000)]}
    encoding = {"text": "DELTA_BYTE_ARRAY"} if version == "2.0" else {"text": "DELTA_LENGTH_BYTE_ARRAY"}
    kinds: list[dict[str, Any]] = [{}, {"use_dictionary": False, "column_encoding": encoding}]
    read_rows = [
        rows_of(table, compression=codec, data_page_version=version, row_group_size=1000, **kind) for kind in kinds
    ]
    assert [[row["text"] for row in rows] for rows in read_rows] == [texts] * 2
    assert [json.loads(rows[2999]["metadata"]) for rows in read_rows] == [{"tags": ["a", "2999"]}] * 2


def test_columns_with_dots_in_their_names_are_read() -> None:
    (row,) = rows_of({"text": ["a"], "meta.text": ["b"], "meta": [{"text": "c"}]})
    assert (row["text"], json.loads(row["metadata"])) == ("a", {"meta": {"text": "c"}, "meta.text": "b"})


# --- memory ---------------------------------------------------------------------------------------------------


def repeated(value: str, times: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(times, np.int32)), pa.array([value]))


def list_of(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


MILLION = 1 << 20
BOMBS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str | None, int]]] = {
    "a value of a dictionary, repeated": (
        {"text": repeated("x" * MILLION, 4500)},
        {},
        {None: 1025, "bomb": 1},
    ),
    "a page": ({"text": ["x" * (300 << 20)]}, {"use_dictionary": False}, {"bomb": 1}),
    "a list in a row": ({"text": ["a"], "x": list_of(repeated("y" * 1000, 40 * MILLION))}, {}, {None: 1}),
    "shared prefixes": (
        {"text": ["x" * MILLION] * 300},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
        {None: 300},
    ),
}

MEASURE = """
import json, sys
from collections import Counter
from pipeline_tasks.landing.formats import read_records
from tests.peak import peak_kb
import pyarrow.parquet

before = peak_kb()
errors = Counter()
with open(sys.argv[1], "rb") as stream:
    for batch in read_records(sys.argv[2], stream, snapshot="s"):
        errors.update(batch["error"].to_pylist())
print(json.dumps([list(errors.items()), peak_kb() - before]))
"""


def measured(path: Path, name: str) -> tuple[dict[str | None, int], int]:
    """Read a file in a process of its own; return its errors and by how many MiB the process grew."""
    out = subprocess.run([sys.executable, "-c", MEASURE, str(path), name], check=True, capture_output=True).stdout
    errors, kilobytes = json.loads(out)
    return dict(errors), kilobytes >> 10


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_takes_bounded_memory(bomb: str, tmp_path: Path, workers_find_tests: None) -> None:
    columns, options, wanted = BOMBS[bomb]
    (tmp_path / "bomb").write_bytes(parquet(pa.table(columns), compression="zstd", **options))
    assert (tmp_path / "bomb").stat().st_size < 20_000
    errors, grown = measured(tmp_path / "bomb", "a.parquet")
    assert errors == wanted
    assert grown < 600


def test_a_column_that_is_left_out_is_named() -> None:
    columns, options, _ = BOMBS["a list in a row"]
    (row,) = rows_of(columns, compression="zstd", **options)
    assert (row["text"], json.loads(row["metadata"])) == ("a", {"unreadable_fields": ["x"]})


# --- any bytes ------------------------------------------------------------------------------------------------

SOUND = [
    parquet(pa.table({"text": [f"text {at}" for at in range(30)], "n": range(30)}), row_group_size=10),
    parquet(
        pa.table(
            {
                "text": pa.array(["a", "b", None]).dictionary_encode(),
                "date": pa.array([0, 1, 2], pa.timestamp("ns", "Asia/Tokyo")),
                "x": [{"a": [1, 2], "b": b"c"}, {"a": [], "b": None}, None],
                "m": pa.array([[("k", 1.5)], [], None], pa.map_(pa.string(), pa.float64())),
            }
        ),
        compression="gzip",
        data_page_version="2.0",
    ),
]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SOUND)))
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for _ in range(draw(st.integers(1, 4))):
        in_footer = draw(st.booleans())
        at = draw(st.integers(max(len(data) - footer, 0) if in_footer else 0, len(data) - 1))
        what = draw(st.sampled_from(["flip", "set", "drop", "insert", "cut"]))
        if what == "flip":
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif what == "set":
            data[at] = draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
        elif what == "drop":
            del data[at : at + draw(st.integers(1, 8))]
        elif what == "insert":
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        else:
            del data[max(at, 8) :]
        data = data if len(data) > 8 else bytearray(b"PAR1PAR1")
    return b"PAR1" + bytes(data[4:])


@given(mutated())
def test_no_mutation_of_a_file_raises(data: bytes) -> None:
    errors = Counter(row["error"] for row in read(data, "a.parquet"))
    assert errors
    assert errors.keys() <= {None, *DAMAGE}


def test_no_row_is_lost_whatever_bit_of_the_footer_is_wrong() -> None:
    data, counted = SOUND[-1], 0
    for at in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
        wrong = bytearray(data)
        wrong[at] ^= 1
        try:
            groups = read_footer(io.BytesIO(wrong), len(wrong)).groups
        except ValueError:
            groups = ()
        if [group.rows for group in groups] == [3]:
            rows = read(bytes(wrong), "a.parquet")
            counts = [row["length"] if row["kind"] == "damage" else 1 for row in rows]
            is_whole_file = [row["kind"] for row in rows] == ["damage"] and not rows[0]["length"]
            assert is_whole_file or sum(counts) == 3, (at, rows)
            counted += sum(counts) == 3
    assert counted > 100
