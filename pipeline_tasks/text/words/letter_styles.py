"""Finds texts whose letters language models have hardly seen so: capitals, mathematical signs, single letters, none."""

import re
import unicodedata

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.character_traits import (
    ALPHA,
    EXTEND,
    KIND_SHIFT,
    LETTER,
    SPACE,
    STYLED,
    UPPER,
    traits,
)
from pipeline_tasks.text.base.characters import class_of, decode
from pipeline_tasks.text.base.compiled import compiled

Bounds = npt.NDArray[np.int64]

PLAIN, ODD, NO_LETTERS = range(3)
"""Texts as models know them, in a style (`plain` gives them without), and without letters."""

FEW = 20
"""A text has letters if at least one in so many of its characters is one; figures and signs are no language."""

_ALONE = re.compile(r"(?<!\S)(\S) (?=\S(?!\S))")
"""A letter between blanks, and the blank before another one."""


@compiled
def _mark(data, bounds, index, flags, out):
    """Fill out[row] with the style of data[begin:end]: that of more than half of its letters."""
    for row in range(len(out)):
        at, end = max(bounds[row, 0], 0), bounds[row, 1]
        seen = letters = styled = alone = run = 0
        while at < end:
            code, width = decode(data, at, end)
            at += width
            traits_of = class_of(index, flags, code)
            if traits_of >> KIND_SHIFT == EXTEND:
                continue
            seen += (traits_of & SPACE) == 0
            if traits_of & (ALPHA | STYLED):
                letters += 1
                styled += (traits_of & (UPPER | STYLED)) != 0
                run += 1 if traits_of >> KIND_SHIFT == LETTER else 2  # no blanks are between letters of other scripts
                alone += run == 1
                alone -= run == 2
            else:
                run = 0
        out[row] = ODD if 2 * max(styled, alone) > letters else PLAIN
        if letters * FEW < seen:
            out[row] = NO_LETTERS


def styles(data: npt.NDArray[np.uint8], bounds: Bounds) -> npt.NDArray[np.uint8]:
    """Return the style of each text data[begin:end] (`PLAIN`, `ODD`, `NO_LETTERS`); none begins below 0."""
    out = np.zeros(len(bounds), np.uint8)
    _mark(data, bounds, *traits(), out)
    return out


def plain(text: bytes) -> bytes:
    """Return a text with lower-case letters in place of capitals and of letters in a style (NFKC), in whole words.

    Letters of a word that have blanks between them are joined: `w o r d s   o f   a   t e x t`.
    """
    letters = unicodedata.normalize("NFKC", text.decode("utf-8", "ignore")).lower()
    return _ALONE.sub(r"\1", letters).encode()
