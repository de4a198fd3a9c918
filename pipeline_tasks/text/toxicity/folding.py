"""Folds characters to what they look like: letter styles, accents, lookalikes of other scripts, digits for letters."""

# ruff: noqa: RUF001 -- lookalikes are the subject

import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.characters import ASSIGNED, parse_ranges, two_level

FOLDED = 0x3F
"""Bits of a letter's number from 1 on, 0 for a letter of no lexicon; of a stand-in, its row in `STAND_INS`."""

LETTER, DIGIT, SIGN, MASK, INVISIBLE, BLANK, JOINER, QUOTE = (1 << bit for bit in range(6, 14))
"""Bits: letters; digits; signs that stand for letters; signs that hide one; what no reader sees; white space within a
line; what joins the parts of a word; quotes."""

LATIN = "abcdefghijklmnopqrstuvwxyz"
OWN = "ñбгджзийлпфцчшщъыьэюяєґ"
"""Letters that look like no other: they have a number of their own, behind the Latin ones."""

ALPHABET = LATIN + OWN

LOOKALIKES = {
    "ё": "e", "в": "b", "а": "a", "е": "e", "о": "o", "р": "p", "с": "c", "у": "y", "х": "x", "к": "k", "м": "m",
    "н": "h", "т": "t", "і": "i", "ї": "i", "ј": "j", "ѕ": "s", "ԁ": "d", "һ": "h", "ԛ": "q", "ԝ": "w", "ѵ": "v",
    "α": "a", "β": "b", "ε": "e", "η": "n", "ι": "i", "κ": "k", "ν": "v", "ο": "o", "ρ": "p", "σ": "o", "τ": "t",
    "υ": "u", "χ": "x", "ω": "w", "ϲ": "c", "ϳ": "j", "ß": "s", "æ": "a", "œ": "o", "ø": "o", "ð": "d", "đ": "d",
    "ħ": "h", "ł": "l", "ŋ": "n", "ŧ": "t", "ı": "i", "ƒ": "f", "ɑ": "a", "ɡ": "g", "ɢ": "g", "ɩ": "i", "ɪ": "i",
    "ɴ": "n", "ʀ": "r", "ʏ": "y", "ʙ": "b", "ʜ": "h", "ʟ": "l", "ᴀ": "a", "ᴄ": "c", "ᴅ": "d", "ᴇ": "e", "ᴊ": "j",
    "ᴋ": "k", "ᴍ": "m", "ᴏ": "o", "ᴘ": "p", "ᴛ": "t", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w", "ᴢ": "z", "ꜰ": "f", "ꜱ": "s",
    "ꞯ": "q", "ո": "n", "ս": "u", "օ": "o", "ց": "g", "հ": "h",
}  # fmt: skip
"""Letters by what they look like (the Unicode consortium's `confusables.txt`, UTS #39, has them all)."""

SQUARED = ((0x1F130, 26), (0x1F150, 26), (0x1F170, 26))
"""Letters in squares and in black circles and squares, A to Z, which NFKC leaves as they are."""

STAND_INS = (
    ("0", "o"), ("1", "il"), ("3", "eз"), ("4", "aч"), ("5", "s"), ("6", "gб"), ("7", "t"), ("8", "b"), ("9", "g"),
    ("2", "z"), ("@", "au"), ("$", "s"), ("!", "il"), ("|", "il"), ("€", "e"),
)  # fmt: skip
"""Digits and signs, and the letters, one or two, that they stand for."""

UNSEEN = "AD 34F 61C 115F-1160 17B4-17B5 180B-180E 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 E0000-E01EF"
MARKS = "300-36F 483-489 1AB0-1AFF 1DC0-1DFF 20D0-20FF FE20-FE2F"
"""Characters that show nothing, and marks over and through letters."""

BLANKS = "9 20 A0 2000-200A 202F 205F 3000"
JOINERS = "-._~·‐‑‒–"
MASKS = "*•●×#%&■█?"
QUOTES = "\"'`“”„‟‘’‚‛«»‹›「」『』"


class Folding(NamedTuple):
    """The traits of each code point (`characters.class_of`), and by the number of a stand-in its letters, 0 for none.

    Shapes (blocks,), (different blocks * 256,) and (stand-ins + 1, 2).
    """

    blocks: npt.NDArray[np.uint16]
    traits: npt.NDArray[np.uint16]
    stand_ins: npt.NDArray[np.uint8]


@functools.cache
def folding() -> Folding:
    """Return the table of traits, shared and read-only; 0.2 s to build, once per process."""
    traits = np.zeros(0x110000, np.uint16)
    for points in ASSIGNED:
        traits[points.start : points.stop] = [_trait(chr(point)) for point in points]
    for first, count in SQUARED:
        traits[first : first + count] = LETTER | np.arange(1, count + 1)
    for ranges, bit in ((UNSEEN, INVISIBLE), (MARKS, INVISIBLE), (BLANKS, BLANK)):
        for first, last in parse_ranges(ranges):
            traits[first : last + 1] = bit
    for signs, bit in ((JOINERS, JOINER), (MASKS, MASK), (QUOTES, QUOTE)):
        traits[[ord(sign) for sign in signs]] |= bit
    stand_ins = np.zeros((len(STAND_INS) + 1, 2), np.uint8)
    for number, (_, letters) in enumerate(STAND_INS, 1):
        stand_ins[number, : len(letters)] = [number_of(letter) for letter in letters]
    stand_ins.setflags(write=False)
    return Folding(*two_level(traits), stand_ins)


def number_of(letter: str) -> int:
    """Return the number of a letter as a lexicon spells it: that of what it looks like, 0 if it is none."""
    folded = _folded(letter)
    return ALPHABET.find(folded) + 1 if folded else 0


def _folded(letter: str) -> str:
    """Return what a character looks like in small letters without accents; "" for what is no letter."""
    plain = unicodedata.normalize("NFKC", letter).lower()[:1]
    if plain in ALPHABET or plain in LOOKALIKES:
        return LOOKALIKES.get(plain, plain)
    base = unicodedata.normalize("NFKD", plain)[:1]
    return LOOKALIKES.get(base, base) if base.isalpha() else ""


_SIGNS = {sign: number for number, (sign, _) in enumerate(STAND_INS, 1)}


def _trait(character: str) -> int:
    if character.isascii() or unicodedata.decomposition(character) or character.lower() in LOOKALIKES:
        plain = unicodedata.normalize("NFKC", character)[:1]
        if plain in _SIGNS:
            return (DIGIT if plain.isdigit() else SIGN) | _SIGNS[plain]
        if _folded(character):
            return LETTER | number_of(character)
    elif character.isalpha():
        return LETTER | ALPHABET.find(character.lower()) + 1
    return DIGIT * character.isdecimal() | LETTER * character.isalpha()
