"""Headers of WARC and ARC records, and where a record ends."""

import pytest

from pipeline_tasks.landing.archives.record_header import (
    HEAD_CAP,
    LENGTH_CAP,
    is_archive,
    read_head,
    separator,
    starts_record,
)

ARC = b"http://example.org/ 192.0.2.1 20261120010203 text/html; charset=x 42\n"


def test_a_warc_header() -> None:
    data = b"xxWARC/1.0\r\nWARC-Type: response\r\nX-Long: a\r\n b\r\nContent-Length: 12\r\n\r\nblock"
    head = read_head(data, 2)
    assert head is not None
    assert head.fields == {"warc-type": "response", "x-long": "a b", "content-length": "12"}
    assert (data[2 + head.size :], head.length, head.arc) == (b"block", 12, False)


@pytest.mark.parametrize("fold", [b"\r\n 105", b"\r\n\t105 ", b" 105\r\n ", b"\n 105"])
def test_a_value_may_begin_or_end_on_a_line_of_its_own(fold: bytes) -> None:
    head = read_head(b"WARC/1.0\r\nContent-Length:" + fold + b"\r\nWARC-Type: resource\r\n\r\n", 0)
    assert head is not None
    assert (head.length, head.fields["warc-type"]) == (105, "resource")


@pytest.mark.parametrize("block", [b"", b"block", b"block\r\n\r\nmore\n\nof it"])
@pytest.mark.parametrize(
    "header", [b"WARC/1.0\r\n\r\n", b"WARC/1.0\n\n", b"WARC/1.0\nA: b\n\n", b"WARC/1.0\nA: b\n\r\n"]
)
def test_a_header_ends_with_its_first_empty_line(header: bytes, block: bytes) -> None:
    head = read_head(b"xx" + header + block, 2)
    assert head is not None
    assert (head.size, head.fields) == (len(header), {"a": "b"} if b"A:" in header else {})


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_a_header_that_ends_too_late_is_none(end: bytes) -> None:
    begin, room = b"WARC/1.0" + end + b"A: ", HEAD_CAP - len(b"WARC/1.0A: " + 3 * end)
    assert read_head(begin + b"b" * room + 2 * end, 0) is not None
    assert read_head(begin + b"b" * (room + 1) + 2 * end, 0) is None


@pytest.mark.parametrize(
    ("value", "length"),
    [
        *(("0", 0), ("007", 7), (str(LENGTH_CAP - 1), LENGTH_CAP - 1), (str(LENGTH_CAP), -1), ("9" * 5000, -1)),
        *(("", -1), ("-1", -1), ("1e3", -1), ("\u0661\u0662", -1), ("\u00b2", -1), ("1 2", -1)),
    ],
)
def test_a_length_is_a_number_below_a_bound(value: str, length: int) -> None:
    head = read_head(f"WARC/1.0\r\nContent-Length: {value}\r\n\r\n".encode(), 0)
    assert head is not None
    assert head.length == length


@pytest.mark.parametrize("data", [b"", b"WARC/1.0\r\nA: b", b"HTTP/1.1 200\r\n\r\n", b"WARC/x\r\n\r\n"])
def test_what_is_no_header(data: bytes) -> None:
    assert read_head(data, 0) is None


def test_starts() -> None:
    assert is_archive(b"WARC/1.1\r\n")
    assert is_archive(b"filedesc://x")
    assert is_archive(ARC)
    assert not is_archive(b"<html>")
    assert starts_record(b"ab" + ARC, 2)
    assert not starts_record(ARC, 8)


@pytest.mark.parametrize(
    ("rest", "size"),
    [
        (b"\r\n\r\nWARC/1.0\r\n", 4),
        (b"\nWARC/1.0\r\n", 1),
        (b"\r\n" * 6 + b"WARC/1.0\r\n", 12),
        (b"\n" * 13 + b"WARC/1.0\r\n", 2),
        (b"\r\n\r\n", 4),
        (b"", 0),
        (b"\r\n\r\nrubbish", 4),
        (b"\n\nrubbish", 2),
        (b"xxxxWARC/1.0\r\n", 4),
        (b"more of the block", None),
    ],
)
def test_separators(rest: bytes, size: int | None) -> None:
    assert separator(b"block" + rest, 5, arc=False) == size
