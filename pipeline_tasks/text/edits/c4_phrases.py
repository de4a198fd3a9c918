"""Finds the phrases by which C4 drops lines, and the blocks of a text that can have one."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import CASE_BIT, OPENING_BRACE, OPENING_BRACKET, SPACE, lower
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.phrases import encode_phrases

PHRASES = (
    "lorem ipsum",
    "javascript",
    "{",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
"""What C4 looks for in a line, in lower case; the last six are the policy phrases."""

LOREM_IPSUM, JAVASCRIPT_PHRASE, BRACE = 1, 2, 4
POLICY_PHRASES = (1 << len(PHRASES)) - 8
"""Bits of PHRASES, of each by its number."""

PHRASED, CITED = 1, 2
"""Bits of what a block can have: one of PHRASES; a `[`."""

BLOCK = 512
"""Bytes that are searched for phrases at once: only lines in a block that can have one are read again."""

LETTER_A, LETTER_C, LETTER_E, LETTER_I, LETTER_K, LETTER_M, LETTER_O = (ord(letter) for letter in "aceikmo")
LETTER_P, LETTER_R, LETTER_S, LETTER_V, LETTER_Y = (ord(letter) for letter in "prsvy")

Searched = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.bool_]]


def searched() -> Searched:
    """Return PHRASES as the compiled loops take them: bytes, ends, and which bytes begin one."""
    begins = np.zeros(256, np.bool_)
    for phrase in PHRASES:
        begins[[ord(phrase[0]), ord(phrase[0].upper())]] = True
    return *encode_phrases(PHRASES), begins


@inlined
def _is_at(data, at, end, phrases, first, last):
    """Return whether the lower-case ASCII phrases[first:last] is at `at` in data[:end], whatever its case there."""
    if at + last - first > end:
        return False
    for nth in range(last - first):
        if lower(data[at + nth]) != phrases[first + nth]:
            return False
    return True


@inlined
def find_phrases(data, begin, end, phrases):
    """Return a bit per phrase that occurs in data[begin:end]."""
    letters, ends, begins = phrases
    bits = 0
    for at in range(begin, end):
        if begins[data[at]]:
            for phrase in range(len(ends) - 1):
                if _is_at(data, at, end, letters, ends[phrase], ends[phrase + 1]):
                    bits |= 1 << phrase
    return bits


@compiled
def _mark_block(block):
    """Return what `block` can have: a phrase of PHRASES (by four letters of it, of either case), a citation."""
    bits = np.uint8(0)
    for at in range(len(block) - 3):
        a, b, c, d = block[at], block[at + 1] | CASE_BIT, block[at + 2] | CASE_BIT, block[at + 3] | CASE_BIT
        folded = a | CASE_BIT
        hit = (folded == LETTER_M) & (b == SPACE) & (c == LETTER_I) & (d == LETTER_P)  # loreM IPsum
        hit |= (folded == LETTER_V) & (b == LETTER_A) & (c == LETTER_S) & (d == LETTER_C)  # jaVASCript
        hit |= (folded == LETTER_E) & (b == LETTER_R) & (c == LETTER_M) & (d == LETTER_S)  # tERMS of use
        hit |= (folded == LETTER_V) & (b == LETTER_A) & (c == LETTER_C) & (d == LETTER_Y)  # priVACY policy
        hit |= (folded == LETTER_O) & (b == LETTER_K) & (c == LETTER_I) & (d == LETTER_E)  # coOKIEs
        hit |= a == OPENING_BRACE
        bits |= np.uint8(hit) | np.uint8(a == OPENING_BRACKET) << np.uint8(1)
    for at in range(max(len(block) - 3, 0), len(block)):
        bits |= np.uint8(block[at] == OPENING_BRACE) | np.uint8(block[at] == OPENING_BRACKET) << np.uint8(1)
    return bits


@compiled
def mark_blocks(text, marks):
    """Write what every BLOCK bytes of `text` can have to `marks`; return the bits of all."""
    bits = np.uint8(0)
    for block in range((len(text) + BLOCK - 1) // BLOCK):
        marks[block] = _mark_block(text[block * BLOCK : (block + 1) * BLOCK + 3])
        bits |= marks[block]
    return bits


@inlined
def marked(marks, first, last):
    """Return what the blocks of the bytes first:last of a text can have."""
    bits = np.uint8(0)
    if first < last:
        for block in range(first // BLOCK, (last - 1) // BLOCK + 1):
            bits |= marks[block]
    return bits
