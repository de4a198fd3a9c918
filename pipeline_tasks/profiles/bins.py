"""Bins of whole numbers: exact below 16, then an eighth of an octave wide."""

from typing import Any

import numpy as np


def octave_bins(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the lower bound of each value's bin: exact below 16, then eight bins per power of two."""
    whole = np.maximum(values.astype(np.int64), 0)
    exponent = np.frexp(np.maximum(whole, 1).astype(np.float64))[1] - 1
    shift = np.maximum(exponent - 3, 0)
    bounds: np.ndarray[Any, Any] = np.where(whole < 16, whole, (whole >> shift) << shift)  # noqa: PLR2004 -- the rule above
    return bounds


def octave_end(low: int) -> int:
    """Return the largest value of the bin that begins at `low`."""
    return low + (1 << max(low.bit_length() - 4, 0)) - 1
