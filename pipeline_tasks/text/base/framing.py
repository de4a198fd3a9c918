"""Put a number before and after each run of numbers."""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled

NONE = -1
"""In the place of the number before a run: there is none."""

Numbers = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


def frame(numbers: Numbers, offsets: Offsets, before: int, after: int) -> tuple[Numbers, Offsets, Offsets]:
    """Return runs with `before` and `after` around each that is not empty, their offsets, and what was there before.

    The last array says for each run how many of its own numbers were `before` or `after`.
    """
    lengths = np.diff(offsets)
    extra = 1 if before == NONE else 2
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(np.where(lengths > 0, lengths + extra, 0), out=ends[1:])
    framed = np.empty(int(ends[-1]), np.int32)
    equal = np.zeros(len(lengths), np.int64)
    _copy(numbers, offsets, np.int32(before), np.int32(after), framed, equal)
    return framed, ends, equal


@compiled
def _copy(numbers, offsets, before, after, framed, equal):
    """Copy each run into `framed` with what goes around it, and count equal numbers."""
    at = 0
    for run in range(len(equal)):
        begin, end = offsets[run], offsets[run + 1]
        if begin == end:
            continue
        if before != NONE:
            framed[at] = before
            at += 1
        count = 0
        for place in range(begin, end):
            number = numbers[place]
            framed[at] = number
            at += 1
            count += (number == before) | (number == after)
        equal[run] = count
        framed[at] = after
        at += 1
