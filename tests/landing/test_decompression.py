"""Readers and decompressors: windows over a source, damage, and how reading goes on behind it."""

import gzip
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.landing.decompression import (
    BytesSource,
    Lz4Source,
    PlainSource,
    Reader,
    inflated_start,
    seek_member,
    starts_member,
)
from tests.archives import lz4

RECORD = b"WARC/1.0\r\nWARC-Type: x\r\n\r\n" + bytes(range(256)) * 8


def opened(data: bytes) -> Reader:
    return Reader(PlainSource(io.BytesIO(data)))


@given(
    st.binary(max_size=200), st.lists(st.tuples(st.sampled_from(["read", "skip", "peek", "fill"]), st.integers(0, 80)))
)
def test_a_reader_is_a_stream_with_a_window(data: bytes, steps: list[tuple[str, int]]) -> None:
    reader, at = Reader(BytesSource(data)), 0
    for step, size in steps:
        left = data[at:]
        if step == "fill":
            assert reader.fill(size) == (len(left) >= size)
        elif step == "peek":
            assert reader.peek(size) == left[:size]
        elif step == "skip":
            assert reader.skip(size) == len(left[:size])
            at += len(left[:size])
        else:
            assert reader.read(size) == left[:size]
            at += len(left[:size])
        assert reader.offset == at
    assert reader.read() == data[at:]
    assert not reader.fill(1)


def test_members_are_found_behind_rubbish() -> None:
    member = gzip.compress(RECORD)
    reader = opened(b"\x1f\x8b\x08 rubbish \x1f\x8b" + member + b"end")
    assert not starts_member(reader)
    assert seek_member(reader)
    assert reader.offset == len(b"\x1f\x8b\x08 rubbish \x1f\x8b")
    assert inflated_start(reader, 5) == b"WARC/"
    assert not seek_member(reader)
    assert reader.offset == len(b"\x1f\x8b\x08 rubbish \x1f\x8b" + member + b"end")


@pytest.mark.parametrize("size", [100, 50_000])
def test_lz4_is_read_up_to_its_damage(size: int) -> None:
    content = random.Random(0).randbytes(size // 2).hex().encode()
    assert Reader(Lz4Source(opened(lz4(content)))).read() == content
    broken = Reader(Lz4Source(opened(lz4(content * 9)[: -size // 2])))
    read = broken.read()
    assert content.startswith(read[: len(content)])
    assert len(read) >= 4 * size - (1 << 16)  # a block has 64 KiB
    assert broken.source.damage == "lz4_truncated"
    assert not broken.resume()
