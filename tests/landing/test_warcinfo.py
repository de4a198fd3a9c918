"""The record that opens an archive is read from its first bytes, whatever is around it."""

import gzip
import io
from collections.abc import Callable

import pytest
import zstandard

from pipeline_tasks.demo.warc import warcinfo
from pipeline_tasks.landing.archives.warcinfo import read_warcinfo

RECORD = warcinfo("a.warc.gz", "2026-11-20T00:00:00Z")
AROUND: dict[str, Callable[[bytes], bytes]] = {
    "nothing": bytes,
    "gzip": gzip.compress,
    "zstandard": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("around", AROUND)
def test_the_fields_of_the_first_record_are_read(around: str) -> None:
    rest = AROUND[around](b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 3\r\n\r\nabc\r\n\r\n")
    fields = read_warcinfo(io.BytesIO(AROUND[around](RECORD) + rest))
    assert fields == {
        "software": "refinery-demo",
        "format": "WARC File Format 1.0",
        "ispartof": "a.warc.gz",
        "robots": "obey",
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no archive",
        b"\x1f\x8b\x08broken",
        b'{"text": "x"}\n',
        RECORD[:60],
        RECORD.replace(b"warcinfo", b"response"),
        RECORD.replace(b"Content-Length: ", b"Content-Length: x"),
    ],
)
def test_what_begins_otherwise_has_none(body: bytes) -> None:
    assert read_warcinfo(io.BytesIO(body)) == {}


def test_a_block_that_is_cut_gives_what_there_is() -> None:
    assert read_warcinfo(io.BytesIO(RECORD[:-20]))["software"] == "refinery-demo"
