"""Folds letters of any script to small ones, for loops that compare words."""

import numpy as np

from pipeline_tasks.text.base.compiled import inlined

FOLDED_CODES = 0x2200
"""Letters that have two cases are below, but for those of scripts that few texts have."""


def _folded(code: int) -> int:
    """Return the simple case folding of a code point; one that folds to several code points stays."""
    letters = (chr(code).casefold(), chr(code).lower())
    return next((ord(letter) for letter in letters if len(letter) == 1), code)


_FOLDED = np.array([_folded(code) for code in range(FOLDED_CODES)], np.uint16)


@inlined
def fold(code):
    """Return a letter in lower case, any other code point as it is."""
    return np.int64(_FOLDED[code]) if code < FOLDED_CODES else np.int64(code)
