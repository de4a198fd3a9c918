"""Count characters by kind in one pass, for NeMo Curator's heuristics and the seed rules."""

import string

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base import character_traits
from pipeline_tasks.text.base.ascii import CASE_BIT, LOWER_A, LOWER_F, LOWER_H, PERCENT, is_alphanumeric, is_digit
from pipeline_tasks.text.base.characters import ASCII_END, class_of, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.phrases import encode_phrases, ends_with

COUNTS = ("points", "odd", "digits", "in_urls", "blanks", "brackets", "punctuation", "code", "solid")
"""Code points; those not of `[a-zA-Z0-9\\n?!,.]`; ASCII digits; characters of http(s) URLs; tab, newline, return,
backspace and space; `{}[]()` and angle brackets U+27E8 and U+27E9; punctuation (`character_traits.PUNCTUATION`);
symbols of program code; letters and digits of any script."""

CODE_LETTERS = "{}[]<>=;|&^~\\$@#`"
"""Symbols that programs are full of and prose is not."""

URL_LETTERS = string.ascii_letters + string.digits + "$-_@.&+/:=?#~!*(),"
"""Characters of URLs, other than `%` with two hexadecimal digits: `regex_url` of NVIDIA/NeMo-Curator since 1.3.0,
`nemo_curator/stages/text/utils/constants.py` (earlier ones also took `;<>[\\]^'` and any `%`, but no `#` and `~`)."""

POINTS, ODD, DIGITS, IN_URL, BLANKS, BRACKETS, PUNCTUATION, CODE, SOLID = range(len(COUNTS))
"""Columns of COUNTS."""

PLAIN_SIGNS = tuple(map(ord, "\n?!,."))
BLANK_CODES = tuple(map(ord, "\b\t\n\r "))
BRACKET_CODES = tuple(map(ord, "()[]{}\u27e8\u27e9"))

PUNCTUATION_TRAIT, ALNUM_TRAIT = np.uint16(character_traits.PUNCTUATION), np.uint16(character_traits.ALNUM)


@inlined
def _is_hex(byte):
    """Return whether a byte is a hexadecimal digit."""
    return is_digit(byte) or LOWER_A <= byte | CASE_BIT <= LOWER_F


@inlined
def _path_end(data, at, end, url_letters):
    """Return where the characters of URLs that begin at `at` end."""
    while at < end:
        if data[at] < ASCII_END and url_letters[data[at]]:
            at += 1
        elif data[at] == PERCENT and at + 2 < end and _is_hex(data[at + 1]) and _is_hex(data[at + 2]):
            at += 3
        else:
            break
    return at


@inlined
def _url_end(data, at, end, schemes, ends, url_letters):
    """Return where the URL that begins at `at` ends, `at` if none does."""
    for scheme in range(len(ends) - 1):
        path = at + ends[scheme + 1] - ends[scheme]
        if path <= end and ends_with(data, at, path, schemes, ends[scheme], ends[scheme + 1], 0):
            stop = _path_end(data, path, end, url_letters)
            if stop > path:
                return stop
    return at


@compiled
def _count_characters(offsets, data, index, flags, schemes, url_letters, code_letters, out):
    """Fill out[row] with the COUNTS."""
    letters, ends = schemes
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        url = at
        while at < end:
            code, width = decode(data, at, end)
            trait = class_of(index, flags, code)
            if at >= url and code == LOWER_H:
                url = _url_end(data, at, end, letters, ends, url_letters)
            out[row, POINTS] += 1
            out[row, ODD] += not is_alphanumeric(code) and code not in PLAIN_SIGNS
            out[row, DIGITS] += is_digit(code)
            out[row, IN_URL] += at < url
            out[row, BLANKS] += code in BLANK_CODES
            out[row, BRACKETS] += code in BRACKET_CODES
            out[row, PUNCTUATION] += (trait & PUNCTUATION_TRAIT) != 0
            out[row, CODE] += code < ASCII_END and code_letters[code]
            out[row, SOLID] += (trait & ALNUM_TRAIT) != 0
            at += width


def count_characters(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the COUNTS of each text by name, shape (rows,) each."""
    out = np.zeros((len(offsets) - 1, len(COUNTS)))
    schemes = encode_phrases(("https://", "http://"))
    _count_characters(
        offsets, data, *character_traits.traits(), schemes, _among(URL_LETTERS), _among(CODE_LETTERS), out
    )
    return dict(zip(COUNTS, out.T, strict=True))


def _among(letters: str) -> npt.NDArray[np.bool_]:
    """Return per ASCII character whether it is one of `letters`."""
    among = np.zeros(ASCII_END, np.bool_)
    among[[ord(letter) for letter in letters]] = True
    return among
