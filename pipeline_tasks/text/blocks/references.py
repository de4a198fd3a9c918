"""Reads character references of HTML (Living Standard, 13.5) inside compiled loops."""

from html.entities import html5

import numpy as np

from pipeline_tasks.text.base.ascii import HASH, SEMICOLON, is_alphanumeric, is_digit
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.utf8 import encode
from pipeline_tasks.text.blocks.tags import BASIS, PRIME, name_key

_SLOTS = 1 << 13
_BEYOND = np.int64(0x110000)  # the first number that is no code point
_LONGEST = max(len(name) for name in html5)
_WINDOWS = bytes(range(0x80, 0xA0)).decode("cp1252", "replace")
_CODES = np.array([0xFFFD if sign == "\ufffd" else ord(sign) for sign in _WINDOWS], np.int64)
"""What numbers of control characters mean (13.2.5.80)."""


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Return keys of names, each with its `;` if it needs one, and their characters as bytes with their number."""
    keys, values = np.zeros(_SLOTS, np.uint64), np.zeros((_SLOTS, 9), np.uint8)
    for name, text in html5.items():
        at = name_key(name) % _SLOTS
        while keys[at]:
            at = (at + 1) % _SLOTS
        keys[at] = name_key(name)
        data = text.encode()
        values[at, 0] = len(data)
        values[at, 1 : 1 + len(data)] = list(data)
    return keys, values


_KEYS, _VALUES = _table()
_U_SLOTS, _OCTET = np.uint64(_SLOTS), np.uint64(0xFF)


@inlined
def _slot(key):
    """Return where a name is in the table, -1 if it is none."""
    at = np.int64(key % _U_SLOTS)
    while _KEYS[at]:
        if _KEYS[at] == key:
            return at
        at = (at + 1) % _SLOTS
    return np.int64(-1)


@inlined
def _number(page, at, end):
    """Return the code point of a numeric reference behind `&#`, and where it ends; -1 if it is none."""
    hexadecimal = at < end and (page[at] | 0x20) == 120
    at += hexadecimal
    code, digits = np.int64(0), 0
    while at < end:
        byte = page[at]
        if is_digit(byte):
            value = np.int64(byte) - 48
        elif hexadecimal and 97 <= (byte | 0x20) <= 102:
            value = np.int64(byte | 0x20) - 87
        else:
            break
        code = min(np.int64(code * (16 if hexadecimal else 10) + value), _BEYOND)
        digits += 1
        at += 1
    if not digits:
        return np.int64(-1), at
    at += at < end and page[at] == SEMICOLON
    if 0x80 <= code < 0xA0:
        code = _CODES[code - 0x80]
    if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
        code = np.int64(0xFFFD)
    return code, at


@inlined
def _named(page, at, end):
    """Return the slot of the longest name that begins here, and where it ends; -1 if there is none."""
    key, best, behind, last = BASIS, np.int64(-1), at, min(end, at + _LONGEST)
    while at < last:
        byte = page[at]
        if byte != SEMICOLON and not is_alphanumeric(byte):
            break
        key = (key ^ np.uint64(byte)) * PRIME
        at += 1
        slot = _slot(key)
        if slot >= 0:
            best, behind = slot, at
        if byte == SEMICOLON:
            break
    return best, behind


@compiled
def read_reference(page, at, end, decoded):
    """Fill `decoded` with the characters of the reference whose `&` is here; return their bytes and where it ends.

    0 bytes: it is no reference, and the `&` is text.
    """
    if at + 1 < end and page[at + 1] == HASH:
        code, behind = _number(page, at + 2, end)
        if code < 0:
            return 0, at + 1
        size, octets = encode(code)
        for nth in range(size):
            decoded[nth] = octets >> np.uint64(8 * nth) & _OCTET
        return np.int64(size), behind
    slot, behind = _named(page, at + 1, end)
    if slot < 0:
        return 0, at + 1
    size = np.int64(_VALUES[slot, 0])
    for nth in range(size):
        decoded[nth] = _VALUES[slot, 1 + nth]
    return size, behind
