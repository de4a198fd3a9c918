"""Number 64-bit values by first occurrence and count them, in a table of open addresses."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled

FREE, FEW = -1, 64
"""Content of a free slot; slots that a table begins with."""

ONE = np.uint64(1)


class Numbering(NamedTuple):
    """A table of open addresses: slots with numbers; per number its value and how often the value occurs."""

    slots: npt.NDArray[np.int32]
    values: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int32]


@compiled
def number_distinct(values, count, table, numbers):
    """Write the number of each of values[:count] to `numbers`, by first occurrence; return the different values.

    `table.counts` (see `numbering_table`) then has the occurrences of each number. The table grows with the different
    values, so that the few of a usual text stay in the nearest cache.
    """
    slots, heads, times = table
    mask, different = np.uint64(FEW - 1), np.int64(0)
    slots[:FEW] = FREE
    for at in range(count):
        value = values[at]
        slot = value & mask
        known = slots[slot]
        while known != FREE and heads[np.uint64(known)] != value:
            slot = (slot + ONE) & mask
            known = slots[slot]
        if known == FREE:
            known = different
            slots[slot], heads[known], times[known] = known, value, 0
            different += 1
            if np.uint64(2 * different) > mask:
                mask = ONE + mask * np.uint64(2)
                _place_again(slots, heads, different, mask)
        numbers[at] = known
        times[np.uint64(known)] += 1
    return different


@compiled
def _place_again(slots, heads, different, mask):
    """Insert all known values into a table of mask + 1 slots."""
    slots[: np.int64(mask) + 1] = FREE
    for known in range(different):
        slot = heads[known] & mask
        while slots[slot] != FREE:
            slot = (slot + ONE) & mask
        slots[slot] = known


@compiled
def numbering_table(count):
    """Return an empty table for up to `count` values."""
    size = FEW
    while size <= 2 * count:
        size *= 2
    return Numbering(np.empty(2 * size, np.int32), np.empty(count, np.uint64), np.empty(count, np.int32))
