"""Finds the texts of a column that can have mojibake in one compiled pass, so that only those are read closely."""

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import decode
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.page.mojibake import CYRILLIC, WESTERN

_PAIR, _TRIPLE, _FOUR, _REST = 1, 2, 4, 8  # bits of a character: what it can be in misread UTF-8
_PAIR_CYRILLIC, _TRIPLE_CYRILLIC, _REST_CYRILLIC, _SECOND_CYRILLIC = 16, 32, 64, 128
_END = 0x2200  # above every character of either kind
_STRIDE = 64
_FIRST = 0xC3  # no misread character begins with a lower byte
_WESTERN, _LEAD = np.uint8(0xC3), np.uint8(0xC0)  # UTF-8 of U+00C0 to U+00FF; bits of what begins more than a byte
_CYRILLIC, _EVEN, _ER, _VE, _DJE = (np.uint8(byte) for byte in (0xD0, 0xFE, 0xA0, 0xB2, 0x82))  # Er and Es, Ve, Dje
_SIGN = np.uint8(0xE2)  # of the UTF-8 of U+2000 to U+2FFF


def suspects(texts: pa.Array) -> npt.NDArray[np.bool_]:
    """Return for each text of a string column whether `mojibake.SHOWN` matches in it."""
    offsets, data = views(texts)
    return np.asarray(_suspects(offsets, data, _signs()))


@cache
def _signs() -> npt.NDArray[np.uint8]:
    """Return the bits of each character."""
    table = np.zeros(_END, np.uint8)
    kinds = (
        (WESTERN, (_PAIR, _TRIPLE, _FOUR, _REST, _REST)),
        (CYRILLIC, (_PAIR_CYRILLIC, _TRIPLE_CYRILLIC, 0, _REST_CYRILLIC, _SECOND_CYRILLIC)),
    )
    for misread, bits in kinds:
        for letters, bit in zip(misread, bits, strict=True):
            table[[ord(letter) for letter in letters]] |= bit
    return table


@compiled
def _suspects(offsets, data, signs):
    """Return whether each text shows mojibake."""
    suspect = np.zeros(len(offsets) - 1, np.bool_)
    for row in range(len(suspect)):
        at, end = offsets[row], offsets[row + 1]
        while at < end:
            if at + _STRIDE + 3 <= end and _is_clean(data[at : at + _STRIDE + 3]):
                at += _STRIDE
                continue
            stop = min(at + _STRIDE, end)
            while at < stop:
                if data[at] < _FIRST:
                    at += 1
                    continue
                code, width = decode(data, at, end)
                if code < _END and signs[code] and _shows(data, at, end, signs):
                    suspect[row] = True
                    at = end
                at += width
    return suspect


@compiled
def _is_clean(part):
    """Return whether none of the first `_STRIDE` bytes can begin a misread character: 0 is where all bytes fit."""
    least = np.uint8(255)
    for at in range(_STRIDE):
        a, b, c, d = part[at], part[at + 1], part[at + 2], part[at + 3]
        western = np.uint8((a ^ _WESTERN) | ((c & _LEAD) ^ _LEAD))
        letter = np.uint8((a ^ _CYRILLIC) | ((b & _EVEN) ^ _ER))
        quote = np.uint8((a ^ _CYRILLIC) | (b ^ _VE) | min(np.uint8((c ^ _CYRILLIC) | (d ^ _DJE)), np.uint8(c ^ _SIGN)))
        least = min(least, western, letter, quote)
    return least != 0


@compiled
def _shows(data, at, end, signs):
    """Return whether a misread character begins at `at`."""
    first, at = _sign(data, at, end, signs)
    if not first & (_PAIR | _TRIPLE | _FOUR | _PAIR_CYRILLIC | _TRIPLE_CYRILLIC):
        return False
    second, at = _sign(data, at, end, signs)
    if first & _PAIR and second & _REST:
        return True
    third, at = _sign(data, at, end, signs)
    if first & _TRIPLE and second & third & _REST:
        return True
    if first & _TRIPLE_CYRILLIC and second & _SECOND_CYRILLIC and third & _REST_CYRILLIC:
        return True
    fourth, at = _sign(data, at, end, signs)
    if first & third & _PAIR_CYRILLIC and second & fourth & _REST_CYRILLIC:
        return True
    return bool(first & _FOUR and second & third & fourth & _REST)


@compiled
def _sign(data, at, end, signs):
    """Return the bits of the character at `at`, and where the next one begins."""
    if at >= end:
        return 0, at
    code, width = decode(data, at, end)
    return (np.int64(signs[code]) if code < _END else 0), at + width
