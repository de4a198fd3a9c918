"""Says which places of a run belong to one process: a rank, and a worker of its data loader.

Global batch t is the places from start + t * world_size * batch_size on; rank r takes each world_size-th of them.
Worker j of k makes the rank's batches t with t mod k = j, the order in which torch's data loader takes batches of
workers. So what all ranks have consumed after t steps is a prefix of the run, whatever the number of workers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline_tasks.constraints import MOST_ROWS
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.training.order import Integers, Shuffle

Tail = Literal["pad", "drop", "short"]
"""The last global batch of a run, if sequences do not fill it: filled with pads, left out, or shorter on some ranks."""

WINDOW = 1024
"""Places whose order is computed at a time."""

SEEDS = 1 << 64
"""How many seeds there are: an order has one as a word of 64 bits."""


@dataclass(frozen=True, slots=True)
class Split:
    """How a global batch is split: which of how many ranks this process is, and the sequences that a rank takes."""

    rank: int = 0
    world_size: int = 1
    batch_size: int = 1

    def __post_init__(self) -> None:
        """Refuse a split without such a rank."""
        if not 0 <= self.rank < self.world_size or self.batch_size < 1:
            message = (
                f"rank {self.rank} of {self.world_size} with a batch of {self.batch_size} is no split; "
                "ranks are from 0 to world_size - 1, and batch_size is the sequences of one rank in one step"
            )
            raise RecipeError(message)

    @property
    def global_batch(self) -> int:
        """Return the sequences that all ranks take in one step."""
        return self.world_size * self.batch_size


@dataclass(frozen=True, slots=True)
class Passes:
    """How often the dataset is read and in which order; `shuffle`, `seed` and `block` are those of `Order`."""

    epochs: int = 1
    shuffle: Shuffle = "later"
    seed: int = 0
    block: int = 256
    tail: Tail = "pad"

    def __post_init__(self) -> None:
        """Refuse what is no order."""
        known = self.shuffle in ("later", "always", "never") and self.tail in ("pad", "drop", "short")
        counts = all(1 <= number <= MOST_ROWS for number in (self.epochs, self.block))
        if not known or not counts or not 0 <= self.seed < SEEDS:
            message = (
                f"{self} is no order of a run; epochs and block are at least 1, seed is from 0 to 2**64 - 1, shuffle "
                "is later, always or never, and tail is pad, drop or short"
            )
            raise RecipeError(message)


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of how many workers of a data loader this process is; without workers it is the only one."""

    number: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """Places of one process in one global batch: the batch's number, the rank's offset of the first one, and places."""

    batch: int
    offset: int
    places: Integers


@dataclass(frozen=True, slots=True)
class Share:
    """The places from `start` to `stop` of one process."""

    start: int
    stop: int
    split: Split
    worker: Worker
    tail: Tail

    @property
    def batches(self) -> int:
        """Return how many global batches the run has."""
        places = self.stop - self.start
        return places // self.split.global_batch if self.tail == "drop" else -(-places // self.split.global_batch)

    def steps(self, batch: int, taken: int) -> Iterator[Step]:
        """Yield the share of each global batch of this process, from `batch` on without its first `taken` places."""
        offsets = np.arange(self.split.batch_size, dtype=np.int64) * self.split.world_size + self.split.rank
        for number in range(batch, self.batches, self.worker.count):
            places = self.start + number * self.split.global_batch + offsets[taken:]
            if self.tail == "short":
                places = places[places < self.stop]
            yield Step(number, taken, places)
            taken = 0

    def windows(self, batch: int, taken: int) -> Iterator[list[Step]]:
        """Yield the same steps in lists of about `WINDOW` places."""
        window: list[Step] = []
        for step in self.steps(batch, taken):
            window.append(step)
            if len(window) * self.split.batch_size >= WINDOW:
                yield window
                window = []
        if window:
            yield window

    def resume_at(self, batch: int) -> int:
        """Return the place at which the run goes on after a global batch."""
        return min(self.start + (batch + 1) * self.split.global_batch, self.stop)
