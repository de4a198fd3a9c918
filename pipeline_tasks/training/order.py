"""Orders the sequences of every epoch: place -> sequence in constant time and memory, so that resuming is one number.

An epoch's order is a seeded permutation of blocks of neighbors, and one of the sequences in each block. A permutation
is a Feistel network over the next power of 4, walked until it is back in range (Black and Rogaway, "Ciphers with
Arbitrary Finite Domains", 2002, cycle walking). Its round function is the finalizer of SplitMix64 (Steele, Lea and
Flood, "Fast Splittable Pseudorandom Number Generators", 2014). Blocks let a machine that reads from S3 fetch neighbors
at once; the build has shuffled all documents before, so neighbors have nothing in common.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Shuffle = Literal["later", "always", "never"]
"""Which epochs are permuted: all but the first (it has the order that the build stored), all, or none."""

Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

_ROUNDS = 8
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of `sequences` over all epochs; `block` neighbors stay together, and a shorter last block is last."""

    sequences: int
    seed: int
    shuffle: Shuffle
    block: int

    def sequences_at(self, places: Integers) -> Integers:
        """Return the sequence at each place; place p is in epoch p // sequences."""
        epochs, inner = np.divmod(places, max(self.sequences, 1))
        out = inner.copy()
        for epoch in np.unique(epochs):
            if self.shuffle == "always" or (self.shuffle == "later" and epoch > 0):
                chosen = epochs == epoch
                out[chosen] = self._permuted(inner[chosen], int(epoch))
        return out

    def _permuted(self, places: Integers, epoch: int) -> Integers:
        full, rest = divmod(self.sequences, self.block)
        slots, offsets = np.divmod(places, self.block)
        key = mixed(np.array([self.seed, epoch], np.uint64))
        key = mixed(key[:1] + key[1:] * _GOLDEN)
        out = np.empty_like(places)
        whole = slots < full
        blocks = permuted(slots[whole], full, key)
        out[whole] = blocks * self.block + permuted(offsets[whole], self.block, key + mixed(blocks.astype(np.uint64)))
        out[~whole] = full * self.block + permuted(offsets[~whole], rest, ~key)
        return out


def permuted(values: Integers, size: int, keys: _Words) -> Integers:
    """Return where a permutation of range(size) takes each value; `keys` is one key, or one of each value."""
    if size <= 1:
        return np.zeros_like(values)
    half = np.uint64(((size - 1).bit_length() + 1) // 2)
    out = values.astype(np.uint64)
    keys = np.broadcast_to(keys, out.shape)
    astray = np.arange(len(out))
    while len(astray):
        out[astray] = _feistel(out[astray], half, keys[astray])
        astray = astray[out[astray] >= size]
    return out.astype(np.int64)


def _feistel(values: _Words, half: np.uint64, keys: _Words) -> _Words:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for _ in range(_ROUNDS):
        keys = keys + _GOLDEN
        left, right = right, left ^ (mixed(right ^ mixed(keys)) & mask)
    return (left << half) | right


def mixed(values: _Words) -> _Words:
    """Return SplitMix64's finalizer of each word."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
