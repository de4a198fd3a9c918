"""Find fixed phrases in texts, and count them."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import lower
from pipeline_tasks.text.base.compiled import compiled, inlined

Phrases = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
"""The bytes of all phrases in a row, and where each ends (the first entry is 0)."""


def encode_phrases(phrases: tuple[str, ...]) -> Phrases:
    """Return phrases as arrays for compiled loops."""
    letters = [phrase.encode() for phrase in phrases]
    ends = np.cumsum([0, *(len(phrase) for phrase in letters)]).astype(np.int64)
    return np.frombuffer(b"".join(letters), np.uint8), ends


@inlined
def ends_with(data, begin, end, letters, first, last, fold):
    """Return whether data[begin:end] ends with letters[first:last], with its ASCII in lower case if `fold`."""
    size = last - first
    if end - begin < size:
        return False
    for place in range(size):
        letter = data[end - size + place]
        if fold:
            letter = lower(letter)
        if letter != letters[first + place]:
            return False
    return True


@inlined
def occurrences(data, begin, end, letters, first, last, fold):
    """Return how often letters[first:last] occurs in data[begin:end], as `str.count` counts."""
    size, times = last - first, 0
    at = begin
    while at + size <= end:
        if ends_with(data, at, at + size, letters, first, last, fold):
            times += 1
            at += size
        else:
            at += 1
    return times


@compiled
def _count(offsets, data, letters, ends, out):
    """Fill out[row] with the occurrences of all phrases."""
    for row in range(len(offsets) - 1):
        for phrase in range(len(ends) - 1):
            out[row] += occurrences(data, offsets[row], offsets[row + 1], letters, ends[phrase], ends[phrase + 1], 0)


def count(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8], phrases: Phrases) -> npt.NDArray[np.float64]:
    """Return per text the sum of `str.count` over the phrases, shape (rows,)."""
    out = np.zeros(len(offsets) - 1)
    _count(offsets, data, *phrases, out)
    return out
