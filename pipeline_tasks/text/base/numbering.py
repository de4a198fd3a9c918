"""Numbers 64-bit values by first occurrence and counts them, in a table of open addresses."""

import numpy as np

from pipeline_tasks.text.base.compiled import compiled

FREE, FEW = -1, 64
"""What a free slot of a table holds; slots that it begins with."""

ONE = np.uint64(1)


@compiled
def number_distinct(values, count, table, names):
    """Number values[:count] by first occurrence: the number of each goes to `names`.

    Returns how many different ones there are; `table` (see `table_for`) then holds how often each occurs. The table
    grows with the different values, so that the few of a usual text stay in the nearest cache.
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
        names[at] = known
        times[np.uint64(known)] += 1
    return different


@compiled
def _place_again(slots, heads, different, mask):
    """Find the slots of all known values anew in a table of mask + 1 slots."""
    slots[: np.int64(mask) + 1] = FREE
    for known in range(different):
        slot = heads[known] & mask
        while slots[slot] != FREE:
            slot = (slot + ONE) & mask
        slots[slot] = known


@compiled
def numbering_table(count):
    """Return the table that `number` needs for up to `count` values: slots, values by number, times by number."""
    size = FEW
    while size <= 2 * count:
        size *= 2
    return np.empty(2 * size, np.int32), np.empty(count, np.uint64), np.empty(count, np.int32)
