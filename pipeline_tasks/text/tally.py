"""Counts 64-bit hashes in a table of open addresses."""

import numpy as np

from pipeline_tasks.text.compiled import compiled
from pipeline_tasks.text.hashing import mix

FREE = np.uint64(0)
FNV_BASIS, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@compiled
def hash_of(data, begin, end):  # type: ignore[no-untyped-def]
    """Return a 64-bit hash of data[begin:end] (FNV-1a, mixed), never 0, which marks a free slot."""
    value = FNV_BASIS
    for at in range(begin, end):
        value = (value ^ np.uint64(data[at])) * FNV_PRIME
    value = mix(value)
    return value if value != FREE else np.uint64(1)


@compiled
def room_for(entries):  # type: ignore[no-untyped-def]
    """Return the power of two that holds `entries` at most half full."""
    size = 16
    while size < 2 * entries:
        size *= 2
    return size


@compiled
def place_of(keys, mask, key):  # type: ignore[no-untyped-def]
    """Return where `key` is or would go in `keys`."""
    slot = np.int64(key) & mask
    while keys[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def tally(hashes, count, keys, times, slots):  # type: ignore[no-untyped-def]
    """Count hashes[:count]: the slot of each goes to `slots`, how often that one occurs to `times` at its slot.

    `keys` and `times` hold at least `room_for(count)`. Returns the number of different hashes.
    """
    mask = room_for(count) - 1
    keys[: mask + 1] = FREE
    different = 0
    for at in range(count):
        slot = place_of(keys, mask, hashes[at])
        if keys[slot] == FREE:
            keys[slot], times[slot] = hashes[at], 0
            different += 1
        times[slot] += 1
        slots[at] = slot
    return different
