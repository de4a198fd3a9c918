"""Records that follow each other in a stream: every byte belongs to one row, and damage costs only itself."""

import gzip
import io
import random

import pytest

from pipeline_tasks.landing.decompression import BytesSource, GzipSource, PlainSource, Reader
from pipeline_tasks.landing.record import Row
from pipeline_tasks.landing.record_stream import read_stream
from tests.archives import response

URLS = [f"https://example.org/{number}" for number in (1, 2, 3)]
ONE, TWO, THREE = map(response, URLS)


def rows(data: bytes) -> list[Row]:
    read_rows = list(read_stream(Reader(BytesSource(data)), "f"))
    at = 0
    for row in read_rows:
        assert row.offset == at
        at += row.length
    assert at == len(data)
    return read_rows


def test_sound_records() -> None:
    assert [row.url for row in rows(ONE + TWO + THREE)] == URLS


def test_rubbish_between_records_is_one_row() -> None:
    read_rows = rows(ONE + b"rubbish\r\n\r\n" + TWO)
    assert [row.error for row in read_rows] == [None, "bad_header", None]


@pytest.mark.parametrize("length", ["5", "99999999", "x"])
def test_a_wrong_length_costs_its_record(length: str) -> None:
    read_rows = rows(ONE + response(URLS[1], length=length) + THREE)
    assert [row.url for row in read_rows if row.error is None] == [URLS[0], URLS[2]]
    assert "bad_length" in {row.error for row in read_rows}


def test_a_record_that_is_cut_short() -> None:
    read_rows = rows(ONE + TWO[:-30])
    assert [row.error for row in read_rows] == [None, "truncated"]
    assert read_rows[1].url == URLS[1]


def test_a_record_too_large_to_hold_is_skipped_to_its_end() -> None:
    giant = response(URLS[1], b"HTTP/1.1 200 OK\r\n\r\n" + bytes(33 << 20))
    read_rows = rows(ONE + giant + THREE)
    assert [row.error for row in read_rows] == [None, "oversize", None]


def test_a_giant_without_a_separator_ends_where_it_says() -> None:
    giant = response(URLS[1], b"HTTP/1.1 200 OK\r\n\r\n" + bytes(33 << 20) + b"\r\n\r\n").removesuffix(b"\r\n\r\n")
    assert [row.error for row in rows(ONE + giant + THREE)] == [None, "oversize", None]


def test_damage_inside_a_record_is_one_row_and_the_next_member_is_read() -> None:
    long = response(URLS[1], b"HTTP/1.1 200 OK\r\n\r\n" + random.Random(1).randbytes(1 << 20))
    wrong_check = gzip.compress(ONE + long)[:-8] + b"\xff" * 8
    stored = Reader(PlainSource(io.BytesIO(wrong_check + gzip.compress(THREE))))
    read_rows = list(read_stream(Reader(GzipSource(stored)), "f"))
    assert [row.url for row in read_rows] == URLS
    assert [row.error for row in read_rows] == [None, "gzip_corrupt", None]
