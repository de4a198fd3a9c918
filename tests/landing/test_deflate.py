"""The faster DEFLATE decides as zlib does: the same bytes, the same rest, the same damage."""

import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st
from zlib_ng import zlib_ng

from pipeline_tasks.landing.decompression import DEFLATE_ERROR, GZIP_WINDOW

PLAIN = b"<p>A page of a crawl, with words that repeat, and words that do not.</p>\n" * 40


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Members of gzip, some of their bytes changed, cut or added."""
    data = bytearray(b"".join(gzip.compress(PLAIN[: draw(st.integers(0, len(PLAIN)))], mtime=0) for _ in range(2)))
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(data) - 1), st.integers(0, 255)), max_size=3)):
        data[at] = value
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=8))


def outcome(module: object, data: bytes, size: int) -> tuple[bytes, int, bool] | str:
    inflater = module.decompressobj(GZIP_WINDOW)
    try:
        out = inflater.decompress(data, size)
    except (zlib.error, DEFLATE_ERROR):
        return "damaged"
    return out, len(inflater.unused_data) or len(inflater.unconsumed_tail), inflater.eof


@given(streams(), st.integers(1, 4000))
def test_it_gives_what_zlib_gives(data: bytes, size: int) -> None:
    assert outcome(zlib_ng, data, size) == outcome(zlib, data, size)
