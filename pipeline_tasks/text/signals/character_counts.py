"""Counts characters by kind in one pass: what NeMo Curator's heuristics and the seed rules ask."""

import string

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.phrases import encode_phrases, ends_with

COUNTS = ("points", "odd", "digits", "in_urls", "blanks", "brackets", "punctuation", "code", "solid")
"""Code points; those not of `[a-zA-Z0-9\\n?!,.]`; ASCII digits; characters of http(s) URLs; tab, newline, return,
backspace and space; `{}[]()` and angle brackets U+27E8 and U+27E9; punctuation (`traits.PUNCTUATION`); symbols of
program code; letters and digits of any script."""

CODE = "{}[]<>=;|&^~\\$@#`"
"""Symbols that programs are full of and prose is not."""

IN_URLS = string.ascii_letters + string.digits + "$-_@.&+/:=?#~!*(),"
"""What URLs are made of beside `%` and two hexadecimal digits: `regex_url` of NVIDIA/NeMo-Curator since 1.3.0,
`nemo_curator/stages/text/utils/constants.py` (earlier ones also took `;<>[\\]^'` and any `%`, but no `#` and `~`)."""

PERCENT = 0x25
PUNCTUATION, ALNUM = np.uint16(character_traits.PUNCTUATION), np.uint16(character_traits.ALNUM)


@inlined
def _is_hex(byte):
    """Return whether a byte is a hexadecimal digit."""
    return 0x30 <= byte <= 0x39 or 0x61 <= byte | 0x20 <= 0x66


@inlined
def _url_end(data, at, end, schemes, ends, url_letters):
    """Return where the URL that begins at `at` ends, `at` if none does."""
    for scheme in range(len(ends) - 1):
        size = ends[scheme + 1] - ends[scheme]
        if at + size > end or not ends_with(data, at, at + size, schemes, ends[scheme], ends[scheme + 1], 0):
            continue
        tip = at + size
        while tip < end:
            if data[tip] < ASCII_END and url_letters[data[tip]]:
                tip += 1
            elif data[tip] == PERCENT and tip + 2 < end and _is_hex(data[tip + 1]) and _is_hex(data[tip + 2]):
                tip += 3
            else:
                break
        if tip > at + size:
            return tip
    return at


@compiled
def _measure(offsets, data, index, flags, schemes, url_letters, code_letters, out):
    """Fill out[row] with the COUNTS."""
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        url = at
        while at < end:
            code, width = decode(data, at, end)
            trait = class_of(index, flags, code)
            if at >= url and code == 0x68:
                url = _url_end(data, at, end, letters, ends, url_letters)
            latin = 0x30 <= code <= 0x39 or 0x41 <= code <= 0x5A or 0x61 <= code <= 0x7A
            out[row, 0] += 1
            out[row, 1] += not latin and code not in (0x0A, 0x3F, 0x21, 0x2C, 0x2E)
            out[row, 2] += 0x30 <= code <= 0x39
            out[row, 3] += at < url
            out[row, 4] += code in (0x08, 0x09, 0x0A, 0x0D, 0x20)
            out[row, 5] += code in (0x28, 0x29, 0x5B, 0x5D, 0x7B, 0x7D, 0x27E8, 0x27E9)
            out[row, 6] += (trait & PUNCTUATION) != 0
            out[row, 7] += code < 0x80 and code_letters[code]
            out[row, 8] += (trait & ALNUM) != 0
            at += width


def count_characters(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the COUNTS of each text by name, shape (rows,) each."""
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    schemes = encode_phrases(("https://", "http://"))
    _measure(offsets, data, *character_traits.traits(), schemes, _among(IN_URLS), _among(CODE), out)
    return dict(zip(COUNTS, out.T, strict=True))


def _among(letters: str) -> npt.NDArray[np.bool_]:
    """Return per ASCII character whether it is one of `letters`."""
    among = np.zeros(ASCII_END, np.bool_)
    among[[ord(letter) for letter in letters]] = True
    return among
