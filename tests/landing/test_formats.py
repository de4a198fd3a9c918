"""Landed files of every format are read record by record, and damage costs only what it damaged."""

import gzip
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotlicffi
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks import schema
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.stages.ingest import DAMAGE
from tests.archives import PAGE, covers, http, lz4, read, response, sha1, three, warc, zipped
from tests.examples import fewest_examples

FIRST, LAST = "https://example.org/first", "https://example.org/last"


def outcome(rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(row["kind"], row["error"]) for row in rows]


# --- sound files ----------------------------------------------------------------------------------------------


def test_a_record_has_its_place_and_its_parts() -> None:
    records = three(warc("request", b"GET / HTTP/1.1\r\n\r\n", FIRST))
    members = zipped(records)
    rows = read(b"".join(members))
    assert covers(rows, sum(map(len, members)))
    assert [row["length"] for row in rows] == [len(member) for member in members]
    first = rows[0]
    assert first["payload"] == PAGE
    assert (first["url"], first["status"], first["kind"]) == (FIRST, 200, "response")
    assert first["content_type"] == "text/html; charset=utf-8"
    assert first["payload_digest"] == sha1(PAGE)
    assert first["crawled_at"] == "2026-11-20T00:00:00Z"
    assert rows[1]["payload"] is None


@pytest.mark.parametrize("wrap", ["plain", "one gzip", "zstd", "frames of zstd", "lz4", "gzip blocks"])
def test_any_wrapping_gives_the_same_records(wrap: str) -> None:
    records = [response(f"https://example.org/{at}") for at in range(40)]
    whole = b"".join(records)
    wrapped = {
        "plain": whole,
        "one gzip": gzip.compress(whole),
        "zstd": zstandard.ZstdCompressor().compress(whole),
        "frames of zstd": b"".join(zstandard.ZstdCompressor().compress(record) for record in records),
        "lz4": lz4(whole),
        "gzip blocks": b"".join(gzip.compress(whole[at : at + 700]) for at in range(0, len(whole), 700)),
    }[wrap]
    rows = read(wrapped, "misnamed.bin")
    assert [row["url"] for row in rows] == [f"https://example.org/{at}" for at in range(40)]
    assert covers(rows, len(whole))
    assert {row["payload"] for row in rows} == {PAGE}


def test_line_feeds_alone_and_old_versions_are_read() -> None:
    record = b"WARC/0.18\nWARC-Type: conversion\nWARC-Target-URI: https://example.org/\nContent-Length: 4\n\nText\n\n"
    rows = read(record * 3, "old.wet")
    assert [row["text"] for row in rows] == ["Text"] * 3


def test_arc_records_are_read() -> None:
    body = http()
    head = b"filedesc://a.arc 127.0.0.1 20140216050221 text/plain 7\n1 0 Arc\n\n"
    arc = head + b"http://example.org/a b 1.2.3.4 20140216050221 text/html %d\n%s\n" % (len(body), body)
    rows = read(arc, "a.arc")
    assert [row["kind"] for row in rows] == ["warcinfo", "response"]
    assert (rows[1]["url"], rows[1]["crawled_at"]) == ("http://example.org/a b", "2014-02-16T05:02:21Z")
    assert rows[1]["payload"] == PAGE


def arc(url: str) -> bytes:
    body = http()
    return b"%s 1.2.3.4 20140216050221 text/html %d\n%s\n" % (url.encode(), len(body), body)


ODD_STARTS = {
    "none": b"",
    "an odd date": b"filedesc://a.arc 127.0.0.1 2014 text/plain 7\n1 0 Arc\n\n",
    "no length": b"filedesc://a.arc 127.0.0.1 20140216050221 text/plain\n1 0 Arc\n\n",
    "rubbish": b"this is no header\n",
}


@pytest.mark.parametrize("members", [True, False])
@pytest.mark.parametrize("start", ODD_STARTS)
@pytest.mark.parametrize("count", [1, 3])
def test_an_arc_file_with_an_odd_first_line_or_none_loses_that_alone(start: str, members: bool, count: int) -> None:
    records = [arc(f"http://example.org/{at}") for at in range(count)]
    parts = [part for part in (ODD_STARTS[start], *records) if part]
    rows = read(b"".join(zipped(parts) if members else parts), "a.arc")
    damaged = [("damage", "bad_header")] if ODD_STARTS[start] else []
    assert outcome(rows) == damaged + [("response", None)] * count
    assert [row["payload"] for row in rows[len(damaged) :]] == [PAGE] * count
    assert covers(rows, sum(map(len, zipped(parts) if members else parts)))


def test_a_cut_member_that_another_one_follows_is_corrupt_and_the_rest_is_read() -> None:
    first, middle, last = zipped(three(response("https://example.org/x")))
    rows = read(first + middle[:-20] + last)
    assert outcome(rows) == [("response", None), ("damage", "gzip_corrupt"), ("response", None)]
    assert covers(rows, len(first + middle[:-20] + last))


def test_what_fails_its_digest_keeps_its_content_and_says_what_was_declared() -> None:
    fields = {"WARC_Payload_Digest": sha1(b"other")}
    text = warc("conversion", b"words", FIRST, WARC_Block_Digest=sha1(b"other"))
    rows = [*read(response(FIRST, None, **fields), "a.warc"), *read(text, "a.wet")]
    assert [row["error"] for row in rows] == ["digest"] * 2
    assert (rows[0]["payload"], rows[1]["text"]) == (PAGE, "words")
    assert [row["payload_digest"] for row in rows] == [sha1(PAGE), sha1(b"words")]
    facts = [json.loads(row["metadata"]) for row in rows]
    assert [fact["digest_mismatch"] for fact in facts] == ["payload digest differs", "block digest differs"]
    assert facts[0]["digest_declared"] == sha1(b"other")


@pytest.mark.parametrize("batch_bytes", [1, 2000, 1 << 20])
def test_batches_change_nothing(batch_bytes: int) -> None:
    data = b"".join(zipped([response(f"https://example.org/{at}") for at in range(20)]))
    assert read(data, batch_bytes=batch_bytes) == read(data)


def test_errors_of_the_stream_itself_pass_through() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError(size)

    with pytest.raises(ConnectionResetError):
        list(read_records("a.warc", Broken(), snapshot="s"))


# --- HTTP -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(PAGE)),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", zlib.compress(PAGE)[2:-4]),
        ("br", brotlicffi.compress(PAGE)),
        ("zstd", zstandard.ZstdCompressor().compress(PAGE)),
        ("gzip", PAGE),
        ("br", PAGE),
        ("identity", PAGE),
    ],
)
def test_content_codings_and_lies_about_them(coding: str, body: bytes) -> None:
    rows = read(response(FIRST, http(body, headers=f"Content-Encoding: {coding}")), "a.warc")
    assert rows[0]["payload"] == PAGE
    assert rows[0]["payload_digest"] == sha1(body)


BROKEN_BODIES = {
    "chunked": http(b"5\r\nabc", headers="Transfer-Encoding: chunked"),
    "content_encoding": http(gzip.compress(PAGE)[:-30], headers="Content-Encoding: gzip"),
    "bomb": http(zlib.compress(bytes(40 << 20), 9), headers="Content-Encoding: deflate"),
    "http_header": b"\x00\x01 no status line",
}


@pytest.mark.parametrize("reason", BROKEN_BODIES)
@pytest.mark.parametrize("members", [True, False])
def test_a_broken_body_is_the_fault_of_its_record_alone(reason: str, members: bool) -> None:
    records = three(response("https://example.org/x", BROKEN_BODIES[reason]))
    rows = read(b"".join(zipped(records) if members else records))
    assert outcome(rows) == [("response", None), ("response", reason), ("response", None)]
    assert rows[1]["payload"] is None
    assert len(rows[1]["error_detail"]) <= 200


# --- digests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"WARC_Payload_Digest": sha1(PAGE)}, None),
        ({"WARC_Payload_Digest": sha1(b"other")}, "digest"),
        ({"WARC_Payload_Digest": sha1(b"other"), "WARC_Block_Digest": sha1(http())}, None),
        ({"WARC_Payload_Digest": sha1(b"other"), "WARC_Block_Digest": sha1(b"other")}, "digest"),
        ({"WARC_Payload_Digest": "sha1:NOT-ONE"}, None),
        ({"WARC_Payload_Digest": "md5:abc"}, None),
    ],
)
def test_a_digest_is_believed_where_it_leaves_no_choice(fields: dict[str, str], error: str | None) -> None:
    assert read(response(FIRST, None, **fields), "a.warc")[0]["error"] == error


def test_a_revisit_keeps_the_digest_that_it_declares() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    rows = read(warc("revisit", head, FIRST, Content_Type="application/http", WARC_Payload_Digest=sha1(PAGE)), "a.warc")
    assert (rows[0]["error"], rows[0]["payload_digest"], rows[0]["status"]) == (None, sha1(PAGE), 200)


# --- damaged archives -----------------------------------------------------------------------------------------


def test_a_flipped_byte_costs_one_member() -> None:
    members = zipped([response(f"https://example.org/{at}") for at in range(5)])
    data = bytearray(b"".join(members))
    data[len(members[0]) + len(members[1]) // 2] ^= 0xFF
    rows = read(bytes(data))
    assert outcome(rows) == [("response", None), ("damage", "gzip_corrupt"), *[("response", None)] * 3]
    assert (rows[1]["offset"], rows[1]["length"]) == (len(members[0]), len(members[1]))
    assert covers(rows, len(data))


def test_a_broken_first_member_does_not_hide_the_rest() -> None:
    members = zipped(three(response("https://example.org/x")))
    data = b"".join(members)
    rows = read(data[:4] + b"\xff\xff\xff\xff\xff\xff\xff\xff" + data[12:])
    assert outcome(rows)[-2:] == [("response", None), ("response", None)]
    assert covers(rows, len(data))


@pytest.mark.parametrize("cut", [1, 8, 100])
def test_a_truncated_tail_is_reported(cut: int) -> None:
    members = zipped(three(response("https://example.org/x")))
    data = b"".join(members)[:-cut]
    rows = read(data)
    assert outcome(rows)[2] == ("damage", "gzip_truncated")
    assert len(rows) == 3
    assert covers(rows, len(data))


@pytest.mark.parametrize("length", ["-1", "abc", "", "100000000000000", "99999999999999999999", "\u0661"])
@pytest.mark.parametrize("members", [True, False])
def test_a_length_that_is_none_costs_one_record(length: str, members: bool) -> None:
    records = three(warc("response", http(), "https://example.org/x", length=length))
    stored = zipped(records) if members else records
    rows = read(b"".join(stored))
    assert outcome(rows) == [("response", None), ("damage", "bad_length"), ("response", None)]
    assert rows[1]["url"] == "https://example.org/x"
    assert covers(rows, sum(map(len, stored)))


@pytest.mark.parametrize("off", [-30, 30, 400, 5000, 40 << 20])
@pytest.mark.parametrize("members", [True, False])
def test_a_length_that_lies_costs_one_record(off: int, members: bool) -> None:
    block = http()
    records = three(warc("response", block, "https://example.org/x", length=str(len(block) + off)))
    rows = read(b"".join(zipped(records) if members else records))
    assert outcome(rows) == [("response", None), ("damage", "bad_length"), ("response", None)]


def test_a_damaged_separator_costs_nothing_and_rubbish_is_one_row() -> None:
    first, middle, last = three(response("https://example.org/x"))
    rows = read(first[:-1] + b"\xff" + middle + b"\0" * 5000 + last, "a.warc")
    assert outcome(rows) == [("response", None), ("response", None), ("damage", "bad_header"), ("response", None)]
    assert rows[2]["length"] == 5000


def test_a_plain_file_cut_short_is_reported() -> None:
    data = b"".join(three(response("https://example.org/x")))[:-60]
    rows = read(data, "a.warc")
    assert outcome(rows)[2] == ("damage", "truncated")
    assert covers(rows, len(data))


def test_bombs_and_giants_are_passed_without_being_held() -> None:
    bomb = gzip.compress(response("https://example.org/x", http(bytes(64 << 20))))
    members = zipped(three(b""))
    rows = read(members[0] + bomb + members[2])
    assert outcome(rows) == [("response", None), ("damage", "bomb"), ("response", None)]
    assert (rows[1]["offset"], rows[1]["length"], rows[1]["url"]) == (
        len(members[0]),
        len(bomb),
        "https://example.org/x",
    )
    giant = warc("resource", b"x" * (33 << 20), "https://example.org/x")
    rows = read(b"".join(three(giant)), "a.warc")
    assert outcome(rows) == [("response", None), ("damage", "oversize"), ("response", None)]
    assert rows[1]["length"] == len(giant)


def test_damage_in_a_whole_file_gzip_ends_in_a_row_that_says_where() -> None:
    data = gzip.compress(
        b"".join(response(f"https://example.org/{at}", http(bytes(range(256)) * at)) for at in range(99))
    )
    rows = read(data[: len(data) // 2])
    assert rows[-1]["error"] == "gzip_truncated"
    assert len(rows) > 5
    assert "compressed byte" in rows[-1]["error_detail"]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", "empty_file"),
        (gzip.compress(b""), "empty_file"),
        (b"<html><body>404 Not Found</body></html>", "not_an_archive"),
        (gzip.compress(b"<html>404</html>"), "not_an_archive"),
        (b"\x1f\x8b", "gzip_truncated"),
        (b"\x1f\x8b\x08 nonsense", "gzip_corrupt"),
        (b"\x28\xb5\x2f\xfd nonsense", "zstd_corrupt"),
        (zstandard.ZstdCompressor().compress(PAGE * 9)[:-5], "zstd_truncated"),
        (b"\x04\x22\x4d\x18 nonsense", "lz4_corrupt"),
        (b"PAR1 nonsense", "parquet"),
        (b"PAR1", "parquet"),
        (bytes(100_000), "not_an_archive"),
    ],
)
@pytest.mark.parametrize("name", ["a.warc.gz", "a.parquet", "a"])
def test_a_file_that_is_none_is_one_row(data: bytes, error: str, name: str) -> None:
    rows = read(data, name)
    assert outcome(rows) == [("damage", error)]
    assert rows[0]["offset"] == 0
    assert rows[0]["length"] <= len(data)


SMALL = b"".join(zipped([response(f"https://example.org/{at}", http(b"<p>%d</p>" % at)) for at in range(6)]))
FIRST_MEMBER = zipped([response("https://example.org/0", http(b"<p>0</p>"))])[0]
LOOSE = gzip.decompress(SMALL)


@given(st.data(), st.sampled_from([SMALL, LOOSE, gzip.compress(LOOSE)]))
def test_no_mutation_raises_and_all_bytes_stay_accounted_for(draw: st.DataObject, original: bytes) -> None:
    data = bytearray(original)
    for _ in range(draw.draw(st.integers(0, 3))):
        at = draw.draw(st.integers(0, len(data) - 1))
        what = draw.draw(st.sampled_from(["flip", "cut", "drop", "insert"]))
        if what == "flip":
            data[at] ^= draw.draw(st.integers(1, 255))
        elif what == "cut":
            del data[max(at, 1) :]
        elif what == "drop":
            del data[at : at + draw.draw(st.integers(1, 50))]
        else:
            data[at:at] = draw.draw(st.binary(max_size=50))
        data = data or bytearray(b"x")
    rows = read(bytes(data), "a.warc.gz" if original is SMALL else "a.warc")
    assert rows
    starts = [row["offset"] for row in rows]
    assert starts == sorted(starts)
    if original is LOOSE:
        assert covers(rows, len(data))
    elif original is SMALL and data.startswith(FIRST_MEMBER):
        places = {
            row["offset"]: row for row in rows
        }  # records that a mutation brought into one member share its offset
        assert covers(list(places.values()), len(data))


@given(st.integers(1, 5))
@fewest_examples
def test_a_lost_member_leaves_all_others(lost: int) -> None:
    members = zipped([response(f"https://example.org/{at}") for at in range(6)])
    members[lost] = members[lost][:20] + bytes(20) + members[lost][40:]
    urls = [row["url"] for row in read(b"".join(members)) if row["error"] is None]
    assert urls == [f"https://example.org/{at}" for at in range(6) if at != lost]


@given(st.binary(max_size=400), st.sampled_from(["a.warc.gz", "a.jsonl", "a.parquet", "a"]))
def test_no_bytes_raise(data: bytes, name: str) -> None:
    starts = [
        b"",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0",
        b"WARC/1.0\r\n",
        b"PAR1",
        b"filedesc://",
        b"{",
        b"\x28\xb5\x2f\xfd",
        b"\x04\x22\x4d\x18",
    ]
    assert [start for start in starts if not read(start + data, name)] == []


ARC_FILE = (
    b"filedesc://a.arc 1.2.3.4 20140216050221 text/plain 7\n1 0 Arc\n\n" + arc("http://a.b/") + arc("http://c.d/")
)
LINES = b'{"text": "a", "url": "u"}\n{"text": "b", "x": [1, {"y": null}]}\n'
KINDS = {
    "a.warc": LOOSE,
    "a.warc.gz": SMALL,
    "a.arc": ARC_FILE,
    "a.arc.gz": b"".join(zipped([ARC_FILE[:65], arc("http://a.b/")])),
    "a.jsonl": LINES,
    "a.jsonl.gz": gzip.compress(LINES) * 2,
    "a.jsonl.zst": zstandard.ZstdCompressor().compress(LINES),
    "a.wet.lz4": lz4(warc("conversion", b"words", FIRST) * 3),
}


@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_no_mutation_of_any_kind_of_file_raises(draw: st.DataObject, name: str) -> None:
    data = bytearray(KINDS[name])
    for _ in range(draw.draw(st.integers(1, 4))):
        at, size = draw.draw(st.integers(0, len(data) - 1)), draw.draw(st.integers(0, 9))
        data[at : at + size] = draw.draw(st.binary(max_size=9))
        data = data or bytearray(b"x")
    errors = {row["error"] for row in read(bytes(data), name)}
    assert errors
    assert errors <= {None, *DAMAGE}


# --- JSON lines -----------------------------------------------------------------------------------------------


def lines(*each: bytes) -> list[dict[str, Any]]:
    return read(b"\n".join(each), "a.jsonl")


def test_json_lines_map_their_fields() -> None:
    data = b'\xef\xbb\xbf{"id": 7, "url": "https://example.org/", "text": "T\\u2028\xe2\x80\xa8x", "date": "2026", "k": [1]}\r\n\r\n{"content":"c"}'
    rows = read(data, "a.jsonl")
    assert [row["text"] for row in rows] == ["T\u2028\u2028x", "c"]
    assert (rows[0]["record_id"], rows[0]["url"], rows[0]["crawled_at"]) == ("7", "https://example.org/", "2026")
    assert json.loads(rows[0]["metadata"]) == {"k": [1]}
    assert data[rows[1]["offset"] :][: rows[1]["length"]] == b'{"content":"c"}'
    assert read(gzip.compress(data), "a.jsonl.gz")[1]["offset"] == rows[1]["offset"]
    assert rows[1]["record_id"] == f"a.jsonl:{rows[1]['offset']}"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"text": "a"', "json"),
        (b'{"text": NaN}', "no_text"),
        (b'{"text": "a", "x": nan}', "json"),
        (b'{"text": "a", "x": NaN "b": 1}', "json"),
        (b'{"text": "\xff"}', "json"),
        (b"[1]", "json"),
        (b'"text"', "json"),
        (b'{"text": "a", "text": "b"}', "dup_key"),
        (b'{"text": "a", "x": {"y" : 1, "y"\t: 2}}', "dup_key"),
        (b'{"text": "a", "te\\u0078t": "b"}', "dup_key"),
        (b'{"text": "a", "x": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "json_depth"),
        (b'{"text": "a", "x": ' + b"[" * 900 + b"]" * 900 + b"}", "json_depth"),
        (b'{"text": 5}', "field_type"),
        (b'{"id": 5}', "no_text"),
        (b'{"text": "' + b"x" * (33 << 20) + b'"}', "oversize"),
    ],
)
def test_a_bad_line_costs_itself(line: bytes, error: str) -> None:
    good = b'{"text": "before \\": after"}'
    rows = lines(good, line, good)
    assert [row["error"] for row in rows] == [None, error, None]
    assert rows[1]["offset"] == len(good) + 1


def test_lone_surrogates_are_replaced_and_counted() -> None:
    (row,) = lines(b'{"text": "a\\ud800b \\ud83d\\ude00", "k\\udc00": 1}')
    assert row["text"] == "a\ufffdb \U0001f600"
    assert json.loads(row["metadata"])["surrogates_replaced"] == 2


def test_a_damaged_gzip_of_lines_keeps_what_came_before() -> None:
    data = gzip.compress(b"".join(b'{"text": "%d"}\n' % at for at in range(5000)))
    rows = read(data[:-2000], "a.jsonl.gz")
    assert rows[-1]["error"] == "gzip_truncated"
    assert [row["text"] for row in rows[:-1]] == [str(at) for at in range(len(rows) - 1)]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_lines_behind_damage_are_read_from_the_next_member_on(compress: Callable[[bytes], bytes]) -> None:
    parts = [compress(b"".join(b'{"text": "%d %d"}\n' % (part, at) for at in range(9000))) for part in range(3)]
    rows = read(parts[0] + parts[1][:-3000] + parts[2], "a.jsonl.gz")
    errors = [row["error"] for row in rows if row["error"]]
    assert len(errors) == 1
    assert errors[0].endswith("_corrupt")
    texts = [row["text"] for row in rows if row["error"] is None]
    assert [text for text in texts if text[0] != "1"] == [f"{part} {at}" for part in (0, 2) for at in range(9000)]


def test_a_line_that_is_whole_before_damage_is_read() -> None:
    rows = read(gzip.compress(b'{"text": "whole"}\n') + bytes(512), "a.jsonl.gz")
    assert [(row["text"], row["error"]) for row in rows] == [("whole", None), (None, "gzip_corrupt")]


# --- Parquet --------------------------------------------------------------------------------------------------


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=10, write_page_checksum=True)
    return sink.getvalue()


def test_parquet_rows_map_like_lines() -> None:
    table = pa.table({"text": [f"text {at}" for at in range(25)] + [None], "url": ["u"] * 26, "n": range(26)})
    rows = read(parquet(table), "a.parquet")
    assert [row["offset"] for row in rows] == list(range(26))
    assert rows[3]["text"] == "text 3"
    assert json.loads(rows[3]["metadata"]) == {"n": 3}
    assert rows[25]["error"] == "no_text"


def test_parquet_with_a_flipped_bit_loses_that_row_group() -> None:
    data = bytearray(parquet(pa.table({"text": ["some text of a row " * 50] * 100})))
    data[60] ^= 1
    rows = read(bytes(data), "a.parquet")
    assert [row["error"] for row in rows] == ["parquet", *[None] * 90]
    assert [(row["offset"], row["length"]) for row in rows] == [(0, 10), *((at, 1) for at in range(10, 100))]


# --- real files -----------------------------------------------------------------------------------------------

DAMAGED_HTML = {
    # warcio 1.8.1 hands out the damaged record as if it were whole; Refinery makes it one `damage` row
    "chatnoir-resiliparse__clipped.warc.gz": "gzip_truncated",
    "warcio.js__example-bad-length.warc": "bad_length",  # Content-Length is larger than the block
    "warcio__example-space-in-url.arc": "truncated",  # the file ends 12 bytes before the record does
    "warcio__example-trunc.warc": "bad_length",  # the block is shorter than Content-Length
    # its second response begins `HTTPX/1.1`, which no HTTP reader should take for a status line
    "pywb__example-extra.warc": "http_header",
}


def is_html(row: dict[str, Any]) -> bool:
    media = (row["content_type"] or "").lower()
    return row["kind"] == "response" and media.startswith(("text/html", "application/xhtml"))


def test_real_archives_give_no_less_than_other_readers(shared_data: Path) -> None:
    index = {
        entry["file"]: entry["records"] for entry in json.loads((shared_data / "warc-real/INDEX.json").read_text())
    }
    names = sorted(path.name for path in (shared_data / "warc-real").iterdir() if path.name != "INDEX.json")
    assert len(names) > 60
    for name in names:
        data = (shared_data / "warc-real" / name).read_bytes()
        rows = read(data, name)
        assert rows
        expected = index.get(name, {}).get("html", 0)
        html = sum(map(is_html, rows))
        if html < expected:
            print(f"{name}: {html} HTML responses, warcio has {expected}")
            assert DAMAGED_HTML[name] in {row["error"] for row in rows}
        if rows[-1]["offset"] + rows[-1]["length"] == len(data):
            assert covers(rows, len(data)) or len({row["offset"] for row in rows}) < len(rows)


@pytest.mark.parametrize(
    "name", ["dolma__sample-0000.warc.gz", "pywb__iana.warc.gz", "chatnoir-resiliparse__warcfile.warc.lz4"]
)
def test_sound_real_archives_are_read_without_an_error(shared_data: Path, name: str) -> None:
    rows = read((shared_data / "warc-real" / name).read_bytes(), name)
    assert {row["error"] for row in rows} == {None}


def test_a_snapshot_is_read_to_the_last_page(shared_data: Path) -> None:
    places = {}
    for line in gzip.decompress((shared_data / "snapshots/dev-2026-45/manifest.jsonl.gz").read_bytes()).splitlines():
        entry = json.loads(line)
        places[entry["file"], entry["offset"]] = entry["url"]
    urls: dict[tuple[str, int], str] = {}
    for path in sorted((shared_data / "snapshots/dev-2026-45").glob("*.warc.gz")):
        rows = read(path.read_bytes(), path.name)
        assert covers(rows, path.stat().st_size)
        assert {row["error"] for row in rows} == {None}
        urls |= {(path.name, row["offset"]): row["url"] for row in rows if is_html(row)}
    assert len(urls) == 1811
    assert urls == places


@pytest.mark.parametrize(
    ("name", "count"), [("dev-2026-45-all.warc.wet.gz", 1807), ("dev-2026-46-all.warc.wet.gz", 977)]
)
def test_wet_files_give_their_texts(shared_data: Path, name: str, count: int) -> None:
    rows = read((shared_data / "wet" / name).read_bytes(), name)
    texts = [row["text"] for row in rows if row["kind"] == "conversion"]
    assert len(texts) >= count
    assert all(texts)
    assert {row["error"] for row in rows} == {None}


@pytest.mark.parametrize(("name", "count"), [("ededup__sample1.parquet", 5), ("lang_id__test_02.parquet", 200)])
def test_real_parquet_is_read(shared_data: Path, name: str, count: int) -> None:
    rows = read((shared_data / "parquet" / name).read_bytes(), name)
    assert [bool(row["text"]) for row in rows] == [True] * count
    assert pa.Table.from_pylist(rows, schema.RECORD).num_rows == count
