"""Types of fields are counted exactly, in any order and for any cut, and what breaks a reader is told from what does not."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.json_lines import names_of
from pipeline_tasks.profiles.field_types import (
    FIRST_BYTES,
    MOST_SHAPES,
    ONE_IN,
    FieldCounts,
    ShapeCounter,
    differences_from,
    shape_of,
    summed,
)
from pipeline_tasks.profiles.record_schema import MOST_FIELDS

Records = Sequence[Mapping[str, Any]]


def counted(records: Records, fields: Mapping[str, str] | None = None) -> FieldCounts:
    counter = ShapeCounter(names_of(fields or {}))
    for record in records:
        counter.add(shape_of(record))
    return counter.counts()


def counted_in(name: str, data: bytes, fields: Mapping[str, str] | None = None) -> FieldCounts:
    counter = ShapeCounter(names_of(fields or {}))
    for _ in read_records(name, io.BytesIO(data), snapshot="s", fields=fields or {}, shapes=counter):
        pass
    return counter.counts()


def lines(records: Records) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records)


def table(**columns: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


def test_fields_that_are_read_are_counted_by_our_names_and_others_with_those_of_objects() -> None:
    records = [
        {"content": "a", "id": 7, "score": 1, "meta": {"n": 1.5, "deeper": {"x": 1}}, "tags": ["a"], "ok": True},
        {"content": "b", "id": "8", "score": None, "meta": {}},
    ]
    counts = counted_in("a.jsonl", lines(records))
    assert counts["records"] == 2
    assert counts["read"] == {"text string": 2, "id integer": 1, "id string": 1}
    assert counts["rest"] == {
        "score integer": 1,
        "score null": 1,
        "meta object": 2,
        "meta.n number": 1,
        "meta.deeper object": 1,
        "tags array": 1,
        "ok boolean": 1,
    }


def test_a_text_at_a_path_is_read() -> None:
    counts = counted_in("a.jsonl", lines([{"doc": {"body": "x", "n": 1}}]), {"text": "doc.body"})
    assert counts["read"] == {"text string": 1}
    assert counts["rest"] == {"doc object": 1, "doc.n integer": 1}


def test_records_without_a_text_are_counted_too() -> None:
    assert counted_in("a.jsonl", lines([{"text": 7}, {"url": "u"}]))["read"] == {"text integer": 1, "url string": 1}


def test_damaged_lines_and_archives_have_none() -> None:
    assert counted_in("a.jsonl", b"{nonsense\n[1]\n") == {}
    assert counted_in("a.warc", b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n") == {}


names = st.sampled_from([f"f{at}" for at in range(MOST_FIELDS + 30)] + ["text", "a.b", "*"])
values = st.one_of(st.none(), st.integers(), st.text(), st.dictionaries(names, st.integers(), max_size=4))
records_of = st.lists(st.dictionaries(names, values, max_size=60), max_size=12)


@given(records_of, records_of, records_of)
def test_counts_add_up_in_any_order_and_for_any_cut(first: Records, second: Records, third: Records) -> None:
    whole = counted([*first, *second, *third])
    parts = [counted(part) for part in (third, first, second)]
    assert summed(parts) == whole
    assert summed([parts[0], summed(parts[1:])]) == whole


def test_an_object_of_many_names_is_a_map_and_does_not_hide_what_is_read() -> None:
    wide = [{"text": "a", **{f"column {at}": at for at in range(MOST_FIELDS + 1)}}]
    counts = counted(wide)
    assert counts["read"] == {"text string": 1}
    assert counts["rest"] == {"* integer": MOST_FIELDS + 1}
    nested = [{"text": "a", "views": {f"day {at}": at}} for at in range(MOST_SHAPES + MOST_FIELDS)]
    assert counted(nested)["rest"] == {
        "views object": MOST_SHAPES + MOST_FIELDS,
        "views.* integer": MOST_SHAPES + MOST_FIELDS,
    }


def test_behind_the_beginning_of_a_file_some_records_are_looked_at_wherever_it_is_cut() -> None:
    record = {"text": "x" * 200, "score": 1}
    size = len(lines([record])) + 1
    many = 3 * FIRST_BYTES // size
    data = lines([record] * many)
    counts = counted_in("a.jsonl", data)
    behind = many - FIRST_BYTES // size
    assert 0.7 * behind / ONE_IN < counts["records"] - FIRST_BYTES // size < 1.3 * behind / ONE_IN
    cut = size * (many // 2)
    pieces = []
    for start, part in ((0, data[:cut]), (cut, data[cut:])):
        counter = ShapeCounter(names_of({}))
        for _ in read_records("a.jsonl", io.BytesIO(part), snapshot="s", start=start, shapes=counter):
            pass
        pieces.append(counter.counts())
    assert summed(pieces) == counts


# --- Against earlier snapshots ------------------------------------------------------------------------------------

TEXT = {"text": "a", "url": "u", "score": 1}


def test_an_integer_that_became_text_is_named_with_its_share() -> None:
    found = differences_from([counted([TEXT] * 4)], counted([{**TEXT, "score": "1"}] * 3 + [TEXT]))
    assert (found.share, found.changed) == (0.75, ["score was integer and is integer or string"])
    assert not (found.gone)
    assert not (found.new)
    assert not (found.left)


def test_a_read_field_that_changed_or_vanished_is_named() -> None:
    before = counted([{**TEXT, "id": 7}] * 3)
    found = differences_from([before], counted([{"text": "a", "id": "7", "score": 1}]))
    assert found.changed == ["id was integer and is string"]
    assert found.gone == ["url was in 3 of 3 records"]


def test_a_read_field_of_few_records_may_be_absent() -> None:
    before = counted([TEXT, *[{"text": "a", "score": 1}] * 9])
    assert not differences_from([before], counted([{"text": "a", "score": 1}])).gone


def test_new_and_left_fields_are_no_change() -> None:
    found = differences_from([counted([{**TEXT, "old": 1}])], counted([{**TEXT, "meta": {"n": 1}}]))
    assert (found.share, found.changed, found.gone) == (0.0, [], [])
    assert (found.new, found.left) == (["meta", "meta.n"], ["old"])


def test_null_only_then_integers_is_no_change_but_a_new_field() -> None:
    found = differences_from([counted([{**TEXT, "rank": None}])], counted([{**TEXT, "rank": 3}]))
    assert (found.share, found.new) == (0.0, ["rank"])
    assert differences_from([counted([TEXT])], counted([{**TEXT, "score": None}])).share == 0.0


def test_numbers_stand_for_integers_and_widths_are_no_types() -> None:
    text, small, large = pa.array(["a"]), pa.array([1], pa.int32()), pa.array([1], pa.int64())
    narrow = counted_in("a.parquet", table(text=text, n=small))
    for wide in (large, pa.array([1.5])):
        found = differences_from([narrow], counted_in("a.parquet", table(text=text, n=wide)))
        assert (found.share, found.new, found.left) == (0.0, [], [])
    found = differences_from([narrow], counted_in("a.parquet", table(text=text, n=pa.array(["1"]))))
    assert found.changed == ["n was integer and is string"]


def test_a_type_of_any_compared_snapshot_is_known() -> None:
    integers, texts = counted([TEXT]), counted([{**TEXT, "score": "1"}])
    assert differences_from([integers, texts], texts).share == 0.0
    assert differences_from([integers], texts).share == 1.0


def test_a_map_is_compared_as_one() -> None:
    days = [{"text": "a", "views": {f"day {at}": at for at in range(60)}}]
    other = [{"text": "a", "views": {f"day {at}": str(at) for at in range(60, 120)}}]
    found = differences_from([counted(days)], counted(other))
    assert found.changed == ["views.* was integer and is string"]
    assert not (found.new)
    assert not (found.left)
