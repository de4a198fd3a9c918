"""Vectors as they are stored: unit length in float16, whose products and sums float64 has without rounding.

A number of float16 is a multiple of 2**-24, so a product of two is one of 2**-48; with vectors of length 1, sums of
products stay below 2**4. All are exact in the 53 bits of float64, so neither the order of a sum nor the processor
changes a similarity or the side of a plane.
"""

from functools import cache
from math import acos, floor, log, pi
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

KIND = np.dtype("<f2")
"""How a number is stored: little-endian float16."""

Vectors = npt.NDArray[np.float64]

_SIGNS = 64


def packed(vectors: npt.NDArray[Any]) -> pa.Array:
    """Return vectors (rows, dimensions) as a column of bytes, of length 1 before rounding; empty for a row of NaN.

    Rounding to float16 changes the cosine of two vectors by less than .001.
    """
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1))
    known = np.isfinite(lengths) & (lengths > 0)
    units = (vectors[known] / lengths[known, None]).astype(KIND)
    width = units.shape[1] * KIND.itemsize
    ends = np.concatenate([[0], np.cumsum(known * width)]).astype(np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(units).tobytes())]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(vectors), buffers)


def unpacked(column: pa.Array) -> Vectors:
    """Return a column of packed vectors, none of which is empty or null, as (rows, dimensions).

    ValueError if they differ in dimensions.
    """
    body = column.cast(pa.large_binary())
    if not len(body):
        return np.empty((0, 0))
    _, offsets, data = body.buffers()
    ends = np.frombuffer(offsets, np.int64, len(body) + 1, body.offset * 8)
    widths = np.diff(ends)
    if (widths != widths[0]).any():
        message = f"vectors have {widths.min() // KIND.itemsize} and {widths.max() // KIND.itemsize} numbers"
        raise ValueError(message)
    numbers = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].view(KIND)
    return np.asarray(numbers, np.float64).reshape(len(body), -1)


def cosine(left: pa.Array, right: pa.Array) -> npt.NDArray[np.float64]:
    """Return the cosine of each pair of packed vectors, row by row."""
    ours, theirs = unpacked(left), unpacked(right)
    if not len(ours):
        return np.empty(0)
    product = (ours * theirs).sum(axis=1)
    lengths = np.sqrt((ours * ours).sum(axis=1) * (theirs * theirs).sum(axis=1))
    return np.asarray(product / lengths, np.float64)


@cache
def planes(count: int, dimensions: int, seed: int) -> Vectors:
    """Return planes through the origin, as (dimensions, count) numbers of 1 and -1."""
    from pipeline_tasks.text.base.hashing import splitmix64  # it loads numba, which Airflow's pages do without

    words = -(-dimensions // _SIGNS)
    numbers = np.array(splitmix64(seed, count * words), np.uint64).reshape(count, words, 1)
    bits = (numbers >> np.arange(_SIGNS, dtype=np.uint64)) & np.uint64(1)
    return np.ascontiguousarray(1.0 - 2.0 * bits.reshape(count, -1)[:, :dimensions].T)


def band_keys(vectors: Vectors, bands: int, rows: int, seed: int) -> npt.NDArray[np.int64]:
    """Return (documents, bands) keys: those of two vectors agree in a band if no plane of it separates them.

    A plane does with probability angle / pi (Charikar, Similarity Estimation Techniques, STOC 2002).
    A key has at most 48 bits of sides, and the number of its band above them.
    """
    sides = vectors @ planes(bands * rows, vectors.shape[1], seed) >= 0.0
    bits = sides.reshape(len(vectors), bands, rows) @ (np.int64(1) << np.arange(rows, dtype=np.int64))
    return np.asarray(bits + (np.arange(bands, dtype=np.int64) << np.int64(MOST_ROWS)), np.int64)


MOST_ROWS = 48
"""Planes of a band at most."""


def rows_for(threshold: float, bands: int, recall: float) -> int:
    """Return the planes of a band: the most for which a pair at the threshold shares one with probability `recall`."""
    agree = 1 - acos(min(threshold, 1.0)) / pi
    wanted = 1 - (1 - recall) ** (1 / bands)
    return MOST_ROWS if agree >= 1 else max(1, min(MOST_ROWS, floor(log(wanted) / log(agree))))


def curve(cosine_: float, bands: int, rows: int) -> float:
    """Return the probability that two vectors of this cosine share at least one band."""
    return 1.0 - (1.0 - (1 - acos(max(-1.0, min(cosine_, 1.0))) / pi) ** rows) ** bands
