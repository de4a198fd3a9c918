"""Build the table of code point traits: Python's `str` predicates and the word break classes of UAX #29."""

import functools
import unicodedata

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import ASSIGNED, parse_ranges, two_level

SPACE, ALPHA, ALNUM, UPPER, DIGIT, DECIMAL, PUNCTUATION, STYLED = (1 << bit for bit in range(8))
"""Bits: `str.isspace`, `str.isalpha`, `str.isalnum`, `str.isupper`, `str.isdigit`, `str.isdecimal`, and Unicode's
categories P with the ASCII symbols of `string.punctuation`; and letters in a style of their own (`STYLES`)."""

STYLES = ("<font>", "<circle>", "<square>", "<wide>")
"""Decompositions (UAX #44, 5.7.3) of other letters in a style: bold, in a circle, in a square, wide."""

KIND_SHIFT = 8
OTHER, LETTER, NUMBER, KATAKANA, CONNECTOR, EXTEND, MID_LETTER, MID_NUMBER, MID_BOTH = range(9)
"""Word break classes of UAX #29 (table 3a), shifted left by KIND_SHIFT; Hebrew's own rules are left out."""

MIDDLES = {
    MID_LETTER: "3A B7 387 55F 5F4 2027 FE13 FE55 FF1A",
    MID_NUMBER: "2C 3B 37E 589 60C-60D 66C 7F8 2044 FE10 FE14 FE50 FE54 FF0C FF1B",
    MID_BOTH: "27 2E 2018-2019 2024 FE52 FF07 FF0E",
}

KATAKANA_RANGES = "3031-3035 309B-309C 30A0-30FA 30FC-30FF 31F0-31FF 32D0-32FE 3300-3357 FF66-FF9D"

SEPARATE_LETTERS = (
    "E01-E3A E40-E4E E81-EDF 1000-109F 1780-17D3 3005-3007 3041-309F 3400-4DBF 4E00-9FFF F900-FAFF 20000-323AF"
)
"""Letters that are a word each by UAX #29: Thai, Lao, Burmese, Khmer, hiragana and Han."""

Traits = tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint16]]
"""(block of cp >> 8, traits of block * 256 + (cp & 255)); `characters.class_of` reads it."""


@functools.cache
def traits() -> Traits:
    """Return the table of traits, shared and read-only; 0.3 s to build, once per process."""
    flags = np.zeros(0x110000, np.uint16)
    for codes in ASSIGNED:
        flags[codes.start : codes.stop] = [_trait(chr(code)) for code in codes]
    for first, last in parse_ranges(SEPARATE_LETTERS):
        kinds = flags[first : last + 1]
        kinds[kinds >> KIND_SHIFT == LETTER] &= (1 << KIND_SHIFT) - 1
    for kind, ranges in ((KATAKANA, KATAKANA_RANGES), *MIDDLES.items()):
        for first, last in parse_ranges(ranges):
            flags[first : last + 1] &= (1 << KIND_SHIFT) - 1
            flags[first : last + 1] |= kind << KIND_SHIFT
    return two_level(flags)


def _trait(letter: str) -> int:
    """Return the traits of `letter` in Python's Unicode database."""
    category = unicodedata.category(letter)
    symbol = letter.isascii() and category[0] == "S"
    return (
        SPACE * letter.isspace()
        | ALPHA * letter.isalpha()
        | ALNUM * letter.isalnum()
        | UPPER * letter.isupper()
        | DIGIT * letter.isdigit()
        | DECIMAL * letter.isdecimal()
        | PUNCTUATION * (category[0] == "P" or symbol)
        | STYLED * _is_styled(letter)
        | _kind(letter, category) << KIND_SHIFT
    )


def _is_styled(letter: str) -> bool:
    return unicodedata.decomposition(letter).startswith(STYLES) and unicodedata.normalize("NFKC", letter).isalpha()


def _kind(letter: str, category: str) -> int:
    """Return the word break class that a general category implies; zero width space breaks."""
    if category[0] == "L" or category == "Nl":
        return LETTER
    if category == "Nd":
        return NUMBER
    if category == "Pc" or letter == "\u202f":
        return CONNECTOR
    return EXTEND if (category[0] == "M" or category == "Cf") and letter != "\u200b" else OTHER
