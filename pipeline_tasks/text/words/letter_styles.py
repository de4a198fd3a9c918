"""Finds texts in capitals or in mathematical signs, of which language models have hardly seen any."""

import unicodedata

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.character_traits import ALPHA, UPPER, traits
from pipeline_tasks.text.base.characters import class_of, decode
from pipeline_tasks.text.base.compiled import compiled

Bounds = npt.NDArray[np.int64]


@compiled
def _mark(data, bounds, index, flags, out):
    """Fill out[row]: whether more than half of the letters of data[begin:end] are capitals or mathematical signs."""
    for row in range(len(out)):
        at, end = max(bounds[row, 0], 0), bounds[row, 1]
        letters = styled = 0
        while at < end:
            code, width = decode(data, at, end)
            traits_of = class_of(index, flags, code)
            if traits_of & ALPHA:
                letters += 1
                styled += (traits_of & UPPER) != 0 or 0x1D400 <= code < 0x1D800 or 0xFF21 <= code < 0xFF5B
            at += width
        out[row] = 2 * styled > letters


def styled(data: npt.NDArray[np.uint8], bounds: Bounds) -> npt.NDArray[np.bool_]:
    """Return for each text data[begin:end] whether most of its letters have a style; none begins below 0."""
    out = np.zeros(len(bounds), np.bool_)
    _mark(data, bounds, *traits(), out)
    return out


def plain(text: bytes) -> bytes:
    """Return a text with lower-case letters in place of capitals and of mathematical signs (NFKC)."""
    return unicodedata.normalize("NFKC", text.decode("utf-8", "ignore")).lower().encode()
