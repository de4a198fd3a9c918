"""Read UTF-8 by whole characters, or eight bytes at a time where they are ASCII, inside compiled loops."""

import numba
import numpy as np

from pipeline_tasks.text.base.compiled import inlined
from pipeline_tasks.text.base.eight_bytes import (
    HIGH_BITS,
    first_marked,
    keep_first,
    load_eight,
    load_tail,
    mark_digits,
    mark_letters,
)

BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)  # Arrow buffers may be read-only


@inlined
def eight_at(data, at):
    """Return the bytes from `at` on, the first lowest; zeros for bytes past the end of `data`."""
    return load_eight(data, at) if at + 8 <= data.size else load_tail(data, at)


@inlined
def leading_alphanumerics(octets, most):
    """Return how many leading bytes, at most `most`, are ASCII letters or digits, and those bytes lower-cased."""
    cased = mark_letters(octets)
    count = min(np.uint64(first_marked(~(cased | mark_digits(octets)) & HIGH_BITS)), most)
    folded = octets | cased >> np.uint64(2)
    return count, folded if count == 8 else keep_first(folded, count)


@inlined
def decode_valid(data, at):
    """Return the code point that starts at byte `at` of valid UTF-8, and where the next one starts."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | (data[at + 1] & 0x3F), at + 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (data[at + 1] & 0x3F) << 6 | (data[at + 2] & 0x3F), at + 3
    high = (lead & 0x07) << 18 | (data[at + 1] & 0x3F) << 12
    return high | (data[at + 2] & 0x3F) << 6 | (data[at + 3] & 0x3F), at + 4


@inlined
def encode(point):
    """Return the number of bytes of a code point in UTF-8, and those bytes, the first lowest."""
    if point < 0x80:
        return np.uint64(1), np.uint64(point)
    last = np.uint64(0x80 | point & 0x3F)
    if point < 0x800:
        return np.uint64(2), np.uint64(0xC0 | point >> 6) | last << np.uint64(8)
    third = np.uint64(0x80 | point >> 6 & 0x3F)
    if point < 0x10000:
        return np.uint64(3), np.uint64(0xE0 | point >> 12) | third << np.uint64(8) | last << np.uint64(16)
    lead = np.uint64(0xF0 | point >> 18) | np.uint64(0x80 | point >> 12 & 0x3F) << np.uint64(8)
    return np.uint64(4), lead | third << np.uint64(16) | last << np.uint64(24)
