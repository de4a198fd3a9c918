"""Reads UTF-8 by whole characters, or eight bytes at a time where they are ASCII, inside compiled loops."""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from pipeline_tasks.text.compiled import compiled_as

BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)  # Arrow buffers may be read-only

_EACH = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_CASE = np.uint64(0x20) * _EACH  # what lower-cases a letter
# Added to a byte below 0x80, these set its high bit where it is at least `a`, beyond `z`, at least `0`, beyond `9`.
_FROM_A = np.uint64(0x80 - ord("a")) * _EACH
_PAST_Z = np.uint64(0x80 - ord("z") - 1) * _EACH
_FROM_0 = np.uint64(0x80 - ord("0")) * _EACH
_PAST_9 = np.uint64(0x80 - ord("9") - 1) * _EACH


@intrinsic  # type: ignore[untyped-decorator]
def _load(_: Any, data: Any, at: Any) -> Any:  # noqa: ANN401 -- numba's types of the arguments
    """Return `data[at:at + 8]` as one number, the first byte lowest; nothing checks the bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401 -- as above
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        loaded = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return numba.uint64(data, at), generate


@intrinsic  # type: ignore[untyped-decorator]
def _trailing_zeros(_: Any, value: Any) -> Any:  # noqa: ANN401 -- numba's type of the argument
    """Return the number of zero bits below the lowest one: 64 for zero."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:  # noqa: ANN401 -- as above
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return numba.uint64(value), generate


@compiled_as(numba.uint64(BYTES, numba.int64, numba.int64))
def eight(data, at, end):  # type: ignore[no-untyped-def]
    """Return the bytes from `at` on, the first lowest; what lies past `end` (the end of a text) is anything."""
    if at + 8 <= data.size:
        return _load(data, at)
    loaded = np.uint64(0)
    for offset in range(end - at):
        loaded |= np.uint64(data[at + offset]) << np.uint64(8 * offset)
    return loaded


@compiled_as(numba.types.UniTuple(numba.uint64, 2)(numba.uint64, numba.uint64))
def word_bytes(octets, most):  # type: ignore[no-untyped-def]
    """Return how many leading bytes, at most `most`, are ASCII letters or digits, and those bytes lower-cased."""
    low = octets & _SEVEN
    lower = low | _CASE
    letters = (lower + _FROM_A) & ~(lower + _PAST_Z)
    digits = (low + _FROM_0) & ~(low + _PAST_9)
    others = ~((letters | digits) & ~octets) & _HIGH
    count = min(_trailing_zeros(others) >> np.uint64(3), most)
    folded = octets | (letters & _HIGH) >> np.uint64(2)
    return count, folded if count == 8 else folded & ((np.uint64(1) << (np.uint64(8) * count)) - np.uint64(1))


@compiled_as(numba.types.UniTuple(numba.int64, 2)(BYTES, numba.int64))
def character(data, at):  # type: ignore[no-untyped-def]
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


@compiled_as(numba.types.UniTuple(numba.uint64, 2)(numba.int64))
def encoded(point):  # type: ignore[no-untyped-def]
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
