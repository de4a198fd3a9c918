"""Counts what a training run consumed, so that it can be compared with what it should have; and how long it waited."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from pipeline_tasks.training.batch import Batch
from pipeline_tasks.training.order import Integers, mixed

_Any = TypeVar("_Any")


@dataclass(frozen=True, slots=True)
class Usage:
    """Sequences, tokens without pads, and a checksum: the sum, modulo 2**64, of a hash of each (epoch, sequence).

    A sum does not depend on who counted, so usages of ranks and of runs before and after a crash are added. A sequence
    that was replayed or skipped changes the checksum.
    """

    sequences: int = 0
    tokens: int = 0
    checksum: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        """Return both together."""
        checksum = (self.checksum + other.checksum) % (1 << 64)
        return Usage(self.sequences + other.sequences, self.tokens + other.tokens, checksum)


def usage_of(batch: Batch) -> Usage:
    """Return the usage of a batch, of arrays or tensors; what fills the last batch is not counted."""
    indexes, epochs, tokens = (np.asarray(batch[name]) for name in ("index", "epoch", "n_tokens"))
    used = indexes >= 0
    return usage_of_sequences(indexes[used], epochs[used], int(tokens[used].sum()))


def usage_of_sequences(indexes: Integers, epochs: Integers, tokens: int) -> Usage:
    """Return the usage of sequences, each in its epoch."""
    words = mixed(mixed(epochs.astype(np.uint64)) + indexes.astype(np.uint64))
    return Usage(len(indexes), tokens, int(words.sum(dtype=np.uint64)))


@dataclass(slots=True)
class Stalls:
    """The share of time that a consumer waited for its next batch: `for batch in stalls.watched(loader)`."""

    waited_s: float = 0.0
    elapsed_s: float = 0.0

    @property
    def share(self) -> float:
        """Return the share of time that was waited, from 0 to 1."""
        return self.waited_s / self.elapsed_s if self.elapsed_s else 0.0

    def watched(self, batches: Iterable[_Any]) -> Iterator[_Any]:
        """Yield what `batches` yields, and count the time until it comes."""
        iterator = iter(batches)
        asked = time.perf_counter()
        for batch in iterator:
            came = time.perf_counter()
            self.waited_s += came - asked
            yield batch
            self.elapsed_s += time.perf_counter() - asked
            asked = time.perf_counter()
