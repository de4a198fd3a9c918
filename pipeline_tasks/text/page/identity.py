"""The identity of a text: a 128-bit hash that ignores how its white space is laid out and nothing else."""

import itertools
import unicodedata

import numpy as np
import pyarrow as pa
from xxhash import xxh3_128_hexdigest

from pipeline_tasks.text.base.ascii import NEWLINE, SPACE, TAB
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import copy

_STRIDE = 32  # bytes that are compared at once in vector registers


def identity(text: str) -> str:
    """Return 32 hex digits: XXH3-128, seed 0, of `text` in NFC, runs of white space as one space, stripped, as UTF-8.

    Case, punctuation and everything else count. The digits are frozen by tests: stored ids depend on them.
    """
    name: str = xxh3_128_hexdigest(unicodedata.normalize("NFC", " ".join(text.split())).encode())
    return name


def identities(texts: pa.Array) -> list[str]:
    """Return the `identity` of each text of a column in normal form, whose only white space is ASCII's."""
    offsets, data = views(texts)
    flat, ends = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.zeros(len(offsets), np.int64)
    _flatten(offsets, data, flat, ends)
    whole = memoryview(flat.data)
    return [xxh3_128_hexdigest(whole[start:end]) for start, end in itertools.pairwise(ends.tolist())]


@compiled
def _flatten(offsets, data, out, ends):
    """Write the words of each text to `out`, one space between them, and where it ends there."""
    to = 0
    for row in range(len(ends) - 1):
        at, end, first = offsets[row], offsets[row + 1], to
        while True:
            while at < end and _is_white(data[at]):
                at += 1
            if at == end:
                break
            if to > first:
                out[to] = SPACE
                to += 1
            stop = _next_gap(data, at, end)
            copy(data, at, stop - at, out, to)
            to, at = to + stop - at, stop
        ends[row + 1] = to


@inlined
def _is_white(byte):
    return byte in (SPACE, NEWLINE, TAB)


@inlined
def _next_gap(data, at, end):
    """Return where the next white space is that is no single space, or the end."""
    while at + _STRIDE < end and not _has_gap(data[at : at + _STRIDE], data[at + 1 : at + 1 + _STRIDE]):
        at += _STRIDE
    while at < end:
        if _is_white(data[at]) and (data[at] != SPACE or at + 1 == end or _is_white(data[at + 1])):
            return at
        at += 1
    return at


@inlined
def _has_gap(part, behind):
    """Return whether one of `_STRIDE` bytes is white space that is no single space; `behind` is a byte further."""
    has_gap = False
    for at in range(_STRIDE):
        has_gap |= (part[at] == NEWLINE) | (part[at] == TAB) | ((part[at] == SPACE) & (behind[at] == SPACE))
    return has_gap
