"""HTTP messages: status, headers, chunks, content codings and their bounds."""

import gzip
import random
import zlib
from collections.abc import Callable

import brotlicffi
import pytest
import zstandard

from pipeline_tasks.landing.archives import http_body
from pipeline_tasks.landing.archives.http_body import dechunk, decompress, read_message


def message(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


@pytest.mark.parametrize("block", [b"", b"<html>", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 99\r\n\r\n", b"HTTP/1.1"])
def test_a_message_without_status_is_an_error(block: bytes) -> None:
    read = read_message(block)
    assert (read.status, read.error) == (None, "http_header")


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (b"3;x=y\r\nabc\r\n2\r\nde\r\n", b"abcde"),
        (b"3\nabc\n0\n\n", b"abc"),
        (b"0000000000000000000003\r\nabc\r\n000\r\n\r\n", b"abc"),
        (b"fffffffffffffffffffff\r\nabc", b"fffffffffffffffffffff\r\nabc"),  # no body is so long: a text
        (b"5\r\nabc", None),
        (b"3\r\nabc\r\nx\r\n", None),
        (b"x\r\nabc", b"x\r\nabc"),
        (b"\r\n3\r\nabc\r\n\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"0\r\nX: trailer\r\n\r\n", b""),
        (b"0\r\nis no size here", b"0\r\nis no size here"),
        (b"4\r\nmen in a boat\r\n", b"4\r\nmen in a boat\r\n"),
        (b"", b""),
    ],
)
def test_chunks(raw: bytes, body: bytes | None) -> None:
    assert dechunk(raw) == body


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (b"2023\n\nWhat the tide had left on the stones.", ()),
        (b"ad\r\n" + b"What the tide had left on the stones. " * 9, ()),
        (b"1984\r\n" + b"What the tide had left on the stones. " * 9, ()),
        (b"2023\r\n\r\nWhat the tide had left on the stones.", ("Content-Length: 45",)),
    ],
)
def test_a_joined_body_that_begins_with_digits_is_taken_as_it_is(text: bytes, headers: tuple[str, ...]) -> None:
    read = read_message(message(text, "Transfer-Encoding: chunked", *headers))
    assert (read.body, read.error) == (text, None)


@pytest.mark.parametrize("codings", ["gzip,aws-chunked", "aws-chunked,gzip", "aws-chunked, x-gzip"])
def test_a_coding_of_an_upload_is_none_of_what_the_store_gives_back(codings: str) -> None:
    read = read_message(message(gzip.compress(b"page"), f"Content-Encoding: {codings}"))
    assert (read.body, read.error) == (b"page", None)


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("X: plain", b"page"),
        ("Transfer-Encoding: chunked", b"2\r\npa\r\n9\r\nge"),
        ("Content-Encoding: gzip", zlib.compress(b"page" * 99, wbits=31)[:-10]),
        ("Content-Encoding: deflate", zlib.compress(b"page" * 99)[:-6]),
        ("Content-Encoding: br", brotlicffi.compress(bytes(range(256)) * 999)[:-9]),
        ("Content-Encoding: zstd", zstandard.compress(b"page" * 99_999)[:-4]),
    ],
)
def test_a_body_that_its_crawler_cut_is_what_there_is_of_it(header: str, body: bytes) -> None:
    """Only a plain one was kept; one that was cut without a word is damage still."""
    read = read_message(message(body, header), is_cut=True)
    assert read.error is None
    assert len(read.body) >= len(b"page")
    assert (read_message(message(body, header)).error is None) == header.startswith("X")


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(b"page")),
        ("x-gzip", gzip.compress(b"pa") + gzip.compress(b"ge")),
        ("gzip", gzip.compress(b"page") + b"rubbish"),
        ("gzip", gzip.compress(b"page")[:-8]),
        ("gzip", gzip.compress(b"page")[:-3]),
        ("gzip", b"\x1f\x8b\x08\x08" + bytes(6) + b"page.html\0" + zlib.compress(b"page", wbits=-15)),
        ("deflate", zlib.compress(b"page")),
        ("deflate", zlib.compress(b"page")[2:-4]),
    ],
)
def test_content_codings(coding: str, data: bytes) -> None:
    assert decompress(coding, data) == (b"page", None)


def test_codings_that_fail() -> None:
    assert decompress("gzip", b"\x1f\x8b\x08broken") == (b"", "content_encoding")
    assert decompress("gzip", gzip.compress(b"page")[:-8] + b"checksum") == (b"", "content_encoding")
    assert decompress("zstd", zstandard.compress(bytes(40 << 20))) == (b"", "bomb")
    assert decompress("compress", b"x") == (b"", "content_encoding")
    assert decompress("gzip", gzip.compress(bytes(40 << 20))) == (b"", "bomb")


def test_a_body_that_was_stored_decoded_is_taken_as_it_is() -> None:
    read = read_message(message(b"<html>page</html>", "Content-Encoding: gzip"))
    assert (read.body, read.error) == (b"<html>page</html>", None)
    for text in ("Die Brücke".encode(), "Мост".encode("koi8-r"), "Die Brücke".encode("utf-16")):
        read = read_message(message(text, "Content-Type: text/plain", "Content-Encoding: gzip"))
        assert (read.body, read.error) == (text, None)
    read = read_message(message(b"\x00\x01\x02", "Content-Encoding: br"))
    assert (read.body, read.error) == (b"", "content_encoding")


def test_folded_headers_are_joined() -> None:
    message = read_message(
        b"HTTP/1.1 200 OK\r\n x\r\nContent-Type:\r\n text/html;\r\n\tcharset=x\r\nA: b\r\nA: c\r\n d\r\n\r\n"
    )
    assert message.headers == {"content-type": "text/html; charset=x", "a": "b"}


def test_folds_take_linear_time() -> None:
    """Two million of them, 4 kB of gzip, took 22 s: each was joined to all before it."""
    folds = b"\r\n x" * (1 << 19)
    read = read_message(b"HTTP/1.1 200 OK\r\nA: b" + folds + b"\r\n\r\npage")
    assert (len(read.headers["a"]), read.body) == (1 + 2 * (1 << 19), b"page")


@pytest.mark.parametrize(
    "coding",
    ['"gzip"', "gzip;q=1.0", "GZIP", "gzip, identity", "gzip\r\nContent-Encoding: gzip"],
)
def test_a_sloppy_content_encoding_is_understood(coding: str) -> None:
    read = read_message(message(gzip.compress(b"page"), f"Content-Encoding: {coding}"))
    assert (read.body, read.error) == (b"page", None)


@pytest.mark.parametrize("header", ["Transfer-Encoding: gzip, chunked", "Content-Encoding: gzip, chunked"])
def test_a_coding_beside_chunked_is_undone(header: str) -> None:
    packed = gzip.compress(b"page")
    read = read_message(message(b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed), header))
    assert (read.body, read.error) == (b"page", None)


@pytest.mark.parametrize("line", ["HTTP/1.1 200OK", "http/1.1 200 OK", "HTTP/2 200", "HTTP/1.1  200\tOK", "ICY 200 OK"])
def test_a_sloppy_status_line_is_understood(line: str) -> None:
    read = read_message(f"{line}\r\nA: b\r\n\r\npage".encode())
    assert (read.status, read.body, read.headers) == (200, b"page", {"a": "b"})


def test_an_interim_response_is_passed_over() -> None:
    block = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + message(b"page", "C: d")
    read = read_message(block)
    assert (read.status, read.body, read.headers) == (200, b"page", {"c": "d"})
    alone = read_message(b"HTTP/1.1 100 Continue\r\n\r\npage")
    assert (alone.status, alone.body) == (100, b"page")


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip without its trailer": lambda plain: gzip.compress(plain)[:-8],
    "deflate": zlib.compress,
    "bare deflate": lambda plain: zlib.compress(plain)[2:-4],
    "br": brotlicffi.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize(
    ("random_bytes", "zeros", "error"),
    [
        (10_000, 0, None),
        (10_001, 0, "oversize"),
        (0, 1_000, None),
        (0, 1_001, "bomb"),
        (500, 3_500, None),
        (1_500, 12_000, "oversize"),
        (500, 9_000, "bomb"),
    ],
)
def test_each_coding_has_the_same_bounds(
    coding: str, random_bytes: int, zeros: int, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the cap, or the floor, a body is whole; above, it is a bomb by its ratio, and else too large."""
    monkeypatch.setattr(http_body, "CAP", 10_000)
    monkeypatch.setattr(http_body, "RATIO_FLOOR", 1_000)
    monkeypatch.setattr(http_body, "RATIO", 10)
    plain = random.Random(5).randbytes(random_bytes) + bytes(zeros)
    body, reason = decompress(
        coding.rsplit(maxsplit=1)[-1] if coding.startswith("bare") else coding.split(maxsplit=1)[0],
        CODINGS[coding](plain),
    )
    assert reason == error
    assert body == (b"" if error else plain)


@pytest.mark.parametrize("coding", [coding for coding in CODINGS if "trailer" not in coding])
def test_of_a_body_that_its_crawler_cut_what_is_there_is_decoded(coding: str) -> None:
    plain = random.Random(5).randbytes(150_000).hex().encode()  # three blocks of zstd
    stored = CODINGS[coding](plain)
    name = coding.rsplit(maxsplit=1)[-1] if coding.startswith("bare") else coding
    assert decompress(name, stored[: len(stored) // 2]) == (b"", "content_encoding")
    body, error = decompress(name, stored[: len(stored) // 2], is_cut=True)
    assert error is None
    assert 0 < len(body) < len(plain)
    assert plain.startswith(body)
    assert decompress(name, stored, is_cut=True) == (plain, None)
