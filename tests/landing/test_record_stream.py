"""Records that follow each other in a stream: every byte belongs to one row, and damage costs only itself."""

import gzip
import io
import random

import pytest

from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.archives.record_stream import read_stream
from pipeline_tasks.landing.decompression import BytesSource, GzipSource, PlainSource, Reader
from tests.archives import response, warc

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


def test_a_giant_without_a_separator_ends_where_it_says() -> None:
    giant = response(URLS[1], b"HTTP/1.1 200 OK\r\n\r\n" + bytes(33 << 20) + b"\r\n\r\n").removesuffix(b"\r\n\r\n")
    assert [row.error for row in rows(ONE + giant + THREE)] == [None, "oversize", None]


def test_an_empty_block_is_sound() -> None:
    empty = warc("resource", b"", URLS[1])
    assert [(row.url, row.error) for row in rows(ONE + empty + THREE)] == [(url, None) for url in URLS]


@pytest.mark.parametrize("length", ["", "-1", "1e3", "0x10", "12 34", "99"])
def test_a_length_that_is_none_costs_its_record_alone(length: str) -> None:
    lying = warc("resource", b"a block", URLS[1], length=length)
    assert [(row.url, row.error) for row in rows(ONE + lying + THREE)] == [
        (URLS[0], None),
        (URLS[1], "bad_length"),
        (URLS[2], None),
    ]


FORGED = response("https://victim.example.org/")


@pytest.mark.parametrize("behind", [THREE, b""])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_page_too_large_to_hold_forges_no_record(behind: bytes, is_packed: bool) -> None:
    """The header in its block was believed, although its declared length is right."""
    page = b"HTTP/1.1 200 OK\r\n\r\n" + bytes(20 << 20) + b"\r\n\r\n" + FORGED + bytes(20 << 20)
    data = ONE + response(URLS[1], page) + behind
    if is_packed:
        read_rows = list(read_stream(Reader(GzipSource(Reader(BytesSource(gzip.compress(data))))), "f"))
    else:
        read_rows = rows(data)
    assert [row.error for row in read_rows] == [None, "oversize", *[None for _ in range(bool(behind))]]
    assert FORGED not in {row.payload for row in read_rows}
    assert "https://victim.example.org/" not in {row.url for row in read_rows}


@pytest.mark.parametrize("behind", [b"", bytes(50 << 20)])
def test_records_inside_of_a_wrong_length_above_the_cap_are_read(behind: bytes) -> None:
    lying = response(URLS[1], length=str(40 << 20))
    read_rows = rows(ONE + lying + THREE + lying + THREE + behind)
    assert [row.url for row in read_rows if row.error is None] == [URLS[0], URLS[2], URLS[2]]
    assert [row.error for row in read_rows if row.error][:2] == ["bad_length"] * 2


def test_any_number_of_wrong_lengths_is_looked_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each put what it had passed before a source of its own, and reading went through all of them."""
    monkeypatch.setattr("pipeline_tasks.landing.archives.record_stream.CAP", 1 << 12)
    lying = response(URLS[1], length=str(1 << 13))
    read_rows = rows((lying + THREE) * 1500 + bytes(1 << 14))
    assert [row.url for row in read_rows if row.error is None] == [URLS[2]] * 1500


def test_wrong_lengths_are_looked_behind_until_a_file_has_cost_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_tasks.landing.decompression.REPLAY_CAP", 60 << 20)
    lying = response(URLS[1], length=str(33 << 20))
    read_rows = rows(ONE + (lying + THREE) * 3 + bytes(40 << 20))
    assert [row.url for row in read_rows if row.error is None] == [URLS[0], URLS[2]]


def test_damage_inside_a_record_is_one_row_and_the_next_member_is_read() -> None:
    long = response(URLS[1], b"HTTP/1.1 200 OK\r\n\r\n" + random.Random(1).randbytes(1 << 20))
    wrong_check = gzip.compress(ONE + long)[:-8] + b"\xff" * 8
    stored = Reader(PlainSource(io.BytesIO(wrong_check + gzip.compress(THREE))))
    read_rows = list(read_stream(Reader(GzipSource(stored)), "f"))
    assert [row.url for row in read_rows] == URLS
    assert [row.error for row in read_rows] == [None, "gzip_corrupt", None]
