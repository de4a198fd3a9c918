"""A table's filter never denies a row that it has, whatever the row is known by; what says nothing may have every row."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_rights.erasing.documents import Documents

from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.stage import LANDING, Shard
from pipeline_tasks.store.shards import name_index, table
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE
from pipeline_tasks.store.shards.name_index import NameIndex
from pipeline_tasks.store.shards.names import asked_names, names_of
from pipeline_tasks.store.shards.rows import Facts, metadata_of
from pipeline_tasks.store.shards.segment_writer import SegmentWriter
from pipeline_tasks.text.base.key_pages import NAMES
from pipeline_tasks.text.urls.takedown import DOC, SITE, URL, evidence, of_entries

HOSTS = ("a.example", "www.a.example", "b\u00fccher.example", "[::1]", "127.0.0.1", "localhost", "user:x@c.a.example.")
PATHS = (
    "",
    "/",
    "/x",
    "/x/?utm_source=y",
    "/of/jane@corp.example/page",
    "/of/<EMAIL>/page",
    "//z:80",
    "?q=http://d/:1",
)
FORMS = [f"{scheme}://{host}{path}" for scheme in ("http", "HTTPS", "ftp") for host in HOSTS for path in PATHS]
ADDRESSES = st.one_of(st.sampled_from([*FORMS, "", " ", "no address"]), st.text(max_size=12), st.none())
IDS = st.sampled_from([f"{number:032x}" for number in range(4)])
ENTRIES = st.one_of(
    st.tuples(st.just(DOC), IDS),
    st.tuples(st.just(URL), st.sampled_from(FORMS)),
    st.tuples(st.just(SITE), st.sampled_from(HOSTS)),
)
ROWS = st.tuples(
    IDS,
    ADDRESSES,
    st.sampled_from("pq"),
    st.integers(0, 2),
    st.sampled_from(["r", "s"]),
    st.sampled_from("de"),
    st.one_of(st.none(), IDS),
)
COLUMNS = ("id", "url", "file", "offset", "record_id", "payload_digest", "parent")


def batch_of(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> pa.RecordBatch:
    """Rows with those of their columns that a table has."""
    values = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(COLUMNS, ())
    values["snapshot"] = ["2026-11-20"] * len(rows)
    kinds = {name: pa.int64() if name == "offset" else pa.string() for name in values}
    return pa.record_batch({name: pa.array(values[name], kinds[name]) for name in columns})


@given(st.lists(ROWS, max_size=8), st.lists(ENTRIES, min_size=1, max_size=3))
def test_a_row_that_is_taken_down_has_a_name_that_is_asked_for(rows: list[Any], entries: list[tuple[str, str]]) -> None:
    taken = of_entries(entries)
    asked = asked_names(taken)
    for row in rows:
        batch = batch_of([row], KNOWN_BY)
        if evidence(taken, batch)[0].is_valid:
            assert np.isin(names_of(batch), asked).any()


def test_every_form_of_an_address_asks_for_every_other_and_for_what_scrubbing_left_of_it() -> None:
    rows = pa.record_batch({"url": FORMS})
    names = [names_of(rows.slice(at, 1)) for at in range(len(FORMS))]
    scrubbed = 0
    for form in FORMS:
        taken = of_entries([(URL, form)])
        same = evidence(taken, rows.select(["url"])).is_valid().to_pylist()
        assert all(np.isin(names[at], asked_names(taken)).any() for at in range(len(FORMS)) if same[at])
        scrubbed += "jane" in form and any(same[at] for at in range(len(FORMS)) if "EMAIL" in FORMS[at])
    assert scrubbed >= len(HOSTS)


TABLES = [
    ("id", "url", "snapshot", "file", "offset", "record_id", "payload_digest", "parent"),
    ("id", "parent"),
    ("id", "url", "snapshot", "file", "offset", "record_id", "payload_digest"),
    ("url", "snapshot", "file", "offset", "record_id", "payload_digest"),
    ("url", "payload_digest"),
    ("id",),
    ("id", "snapshot", "file", "offset", "record_id"),
]
"""Columns of documents, of pages, and of what has less."""


@given(st.lists(ROWS, min_size=1, max_size=6), st.lists(ENTRIES, min_size=1, max_size=2))
def test_what_is_known_of_a_document_finds_its_rows_in_every_table(rows: list[Any], entries: list[Any]) -> None:
    """Rows without a URL are known by their place, and by what was there: all that is erased is asked for."""
    documents = Documents(of_entries(entries))
    for columns in TABLES:
        documents.learn(batch_of(rows, columns))
    for columns in TABLES:
        for row in rows:
            batch = batch_of([row], columns)
            if documents.matched(batch)[0].is_valid:
                assert np.isin(names_of(batch), documents.names).any()


# --- Tables -----------------------------------------------------------------------------------------------------


def documents_of(count: int, host: str = "a.example") -> pa.Table:
    draws = random.Random(5)
    ids = [f"{draws.getrandbits(128):032x}" for _ in range(count)]
    urls = [f"https://www{at % 9}.{host}/{at}" for at in range(count)]
    return pa.table({"id": ids, "url": urls, "text": pa.array([draws.randbytes(900).hex() for _ in ids])})


def stored(root: Path, rows: pa.Table, below: Facts | None = None) -> Shard:
    writer = ShardWriter(rows.schema, metadata_of(below) if below else None)
    for batch in rows.to_batches(max_chunksize=100):
        writer.write(batch)
    return writer.store(str(root), "data")


def layer(root: Path, below: Shard, rows: int, **columns: pa.Array) -> Shard:
    own = pa.table({ROW: pa.array(range(rows), pa.int64()), **columns})
    names = (("id", "string"), ("url", "string"), ("text", "string"))
    return stored(root, own, Facts(below, names))


def having(root: Path, shards: Sequence[Shard], *entry: str) -> set[str]:
    index = NameIndex(str(root), {shard.path: (root / shard.path).stat().st_size for shard in shards})
    kind, value = entry
    return set(index.having(asked_names(of_entries([(kind, value)]))))


def test_a_table_is_asked_for_a_thousandth_of_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard, read = stored(tmp_path, documents_of(4000)), list[int]()
    last = table.End.last
    monkeypatch.setattr(table.End, "last", lambda end, count: read.append(count) or last(end, count))
    assert having(tmp_path, [shard], SITE, "nowhere.example") == set()
    assert max(read) <= 0.01 * shard.bytes
    for found in ((SITE, "a.example"), (URL, "http://www4.a.example/4/"), (DOC, documents_of(1)["id"][0].as_py())):
        assert having(tmp_path, [shard], *found) == {shard.path}
    assert having(tmp_path, [shard], URL, "https://www4.a.example/5") == set()


def test_a_layer_rests_on_what_is_below_it(tmp_path: Path) -> None:
    rows = documents_of(20)
    lowest = stored(tmp_path, rows)
    middle = layer(tmp_path, lowest, 20, added=pa.array(range(20)))
    addresses = pa.array([{VALUE: "http://elsewhere.example/"}, *[None] * 19], pa.struct({VALUE: pa.string()}))
    top = layer(tmp_path, middle, 20, **{f"{CHANGED}url": addresses})
    every = [lowest, middle, top]
    assert having(tmp_path, every, SITE, "a.example") == {shard.path for shard in every}
    assert having(tmp_path, every, SITE, "elsewhere.example") == {top.path}
    assert having(tmp_path, every, SITE, "nowhere.example") == set()
    assert having(tmp_path, [middle, top], SITE, "nowhere.example") == {middle.path, top.path}, "one is gone"
    landed = layer(tmp_path, replace(lowest, path=f"{LANDING}a.jsonl"), 20)
    cut = layer(tmp_path, replace(lowest, bytes=lowest.bytes + 1), 20)
    assert having(tmp_path, [*every, landed, cut], SITE, "nowhere.example") == {landed.path, cut.path}


def test_a_segment_has_the_names_of_its_rows(tmp_path: Path) -> None:
    writer = SegmentWriter(pa.schema([("key", pa.string()), ("id", pa.string()), ("url", pa.string())]), ["key"])
    writer.write(pa.record_batch({"key": ["a"], "id": ["0" * 32], "url": ["http://a.example/"]}))
    named = writer.store(str(tmp_path), "data")
    writer = SegmentWriter(pa.schema([("key", pa.string())]), ["key"])
    writer.write(pa.record_batch({"key": ["a.example"]}))
    nameless = writer.store(str(tmp_path), "data")
    for entry in ((SITE, "a.example"), (DOC, "0" * 32), (URL, "https://a.example")):
        assert having(tmp_path, [named, nameless], *entry) == {named.path}
    assert having(tmp_path, [named, nameless], SITE, "b.example") == set()


def old(path: Path) -> None:
    """Write a table as a release without filters did."""
    rows = pq.read_table(path)
    pq.write_table(rows.replace_schema_metadata(), path)


def flipped(at: Callable[[bytes, int], int]) -> Callable[[Path], None]:
    """Change one bit of a table, in a byte that follows from its bytes and the end of its filter."""

    def flip(path: Path) -> None:
        body = bytearray(path.read_bytes())
        start, size, _ = json.loads(pq.read_metadata(path).metadata[NAMES.encode()])
        body[at(bytes(body), start + size)] ^= 1
        path.write_bytes(body)

    return flip


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no filter": old,
    "a bit of the filter": flipped(lambda _, end: end - 9),
    "the name of a column": flipped(lambda body, end: body.index(b"url", end)),
    "the last byte but nine": flipped(lambda body, _: len(body) - 9),
    "bytes in front": lambda path: path.write_bytes(b"PAR1" + path.read_bytes()),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty but for four bytes": lambda path: path.write_bytes(b"PAR1"),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_does_not_say_for_sure_may_have_everything(tmp_path: Path, damage: str) -> None:
    shard = stored(tmp_path, documents_of(20))
    size = (tmp_path / shard.path).stat().st_size
    DAMAGES[damage](tmp_path / shard.path)
    size = (tmp_path / shard.path).stat().st_size if damage != "gone" else size
    index = NameIndex(str(tmp_path), {shard.path: size})
    assert index.having(asked_names(of_entries([(SITE, "nowhere.example")]))) == {shard.path}


def test_ids_that_are_no_texts_are_not_told(tmp_path: Path) -> None:
    for rows in (pa.table({"id": [1, 2]}), pa.table({"url": [b"http://a.example/"]})):
        shard = stored(tmp_path, rows)
        assert having(tmp_path, [shard], SITE, "nowhere.example") == {shard.path}


def test_the_same_rows_have_the_same_filter_however_they_were_batched(tmp_path: Path) -> None:
    rows = documents_of(300)
    whole = ShardWriter(rows.schema)
    whole.write(rows.combine_chunks().to_batches()[0])
    assert whole.store(str(tmp_path), "data") == stored(tmp_path, rows)


def test_the_filters_that_an_index_does_not_keep_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_index, "KEPT_BYTES", 0)
    shard = stored(tmp_path, documents_of(20))
    index = NameIndex(str(tmp_path), {shard.path: shard.bytes})
    for _ in range(2):
        assert index.having(asked_names(of_entries([(SITE, "a.example")]))) == {shard.path}
        assert index.having(asked_names(of_entries([(SITE, "b.example")]))) == frozenset()
