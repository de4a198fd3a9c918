"""HTTP messages: status, headers, chunks, content codings and their bounds."""

import gzip
import zlib

import pytest

from pipeline_tasks.landing.http_body import dechunk, decompress, read_message


def message(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode() + body


def test_status_headers_and_body() -> None:
    read = read_message(message(b"body", "Content-Type: text/html", "X: 1", "X: 2"))
    assert (read.status, read.body, read.error) == (200, b"body", None)
    assert read.headers == {"content-type": "text/html", "x": "1"}


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
        (b"5\r\nabc", None),
        (b"x\r\nabc", None),
        (b"", b""),
    ],
)
def test_chunks(raw: bytes, body: bytes | None) -> None:
    assert dechunk(raw) == body


def test_transfer_coding_then_content_coding() -> None:
    packed = gzip.compress(b"page")
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    read = read_message(message(chunked, "Transfer-Encoding: chunked", "Content-Encoding: gzip"))
    assert (read.body, read.raw, read.error) == (b"page", chunked, None)
    broken = read_message(message(b"5\r\nabc", "Transfer-Encoding: chunked"))
    assert (broken.body, broken.error) == (b"", "chunked")


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(b"page")),
        ("x-gzip", gzip.compress(b"pa") + gzip.compress(b"ge")),
        ("gzip", gzip.compress(b"page") + b"rubbish"),
        ("deflate", zlib.compress(b"page")),
        ("deflate", zlib.compress(b"page")[2:-4]),
    ],
)
def test_content_codings(coding: str, data: bytes) -> None:
    assert decompress(coding, data) == (b"page", None)


def test_codings_that_fail() -> None:
    assert decompress("gzip", b"\x1f\x8b\x08broken") == (b"", "content_encoding")
    assert decompress("compress", b"x") == (b"", "content_encoding")
    assert decompress("gzip", gzip.compress(bytes(40 << 20))) == (b"", "bomb")


def test_a_body_that_was_stored_decoded_is_taken_as_it_is() -> None:
    read = read_message(message(b"<html>page</html>", "Content-Encoding: gzip"))
    assert (read.body, read.error) == (b"<html>page</html>", None)
    read = read_message(message(b"\x00\x01\x02", "Content-Encoding: br"))
    assert (read.body, read.error) == (b"", "content_encoding")


def test_folded_headers_are_joined() -> None:
    message = read_message(
        b"HTTP/1.1 200 OK\r\n x\r\nContent-Type:\r\n text/html;\r\n\tcharset=x\r\nA: b\r\nA: c\r\n d\r\n\r\n"
    )
    assert message.headers == {"content-type": "text/html; charset=x", "a": "b"}
