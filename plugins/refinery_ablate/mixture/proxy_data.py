"""Reads what one proxy is trained on: so many sequences of each group, in one shuffled order.

A group that gives more sequences than its pool has is read from the beginning again, in another order. As in a build,
repetitions are spread over the whole run.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pipeline_tasks.training.order import Integers, Order, mixed, permuted
from refinery_ablate.mixture.pool import Pool
from refinery_ablate.mixture.search_plan import Proxy


class ProxyData:
    """The sequences of a proxy; the same proxy has the same, in the same order, from any step on."""

    def __init__(self, pool: Pool, proxy: Proxy, batch: int) -> None:
        self._pool, self._batch = pool, batch
        self._ends = np.cumsum(proxy.sequences)
        self._firsts = np.cumsum([0, *pool.sequences[:-1]])
        self._key = mixed(np.array([proxy.seed], np.uint64))
        seeds = (proxy.seed * len(pool.sequences) + group for group in range(len(pool.sequences)))
        self._orders = [Order(int(count), seed, "always", 1) for count, seed in zip(pool.sequences, seeds, strict=True)]

    def sequences_at(self, places: Integers) -> Integers:
        """Return the sequence of the pool at each place of the run."""
        slots = permuted(places, int(self._ends[-1]), self._key)
        groups = np.searchsorted(self._ends, slots, side="right")
        out = np.empty_like(slots)
        for group in np.unique(groups).tolist():
            chosen = groups == group
            before = int(self._ends[group - 1]) if group else 0
            out[chosen] = self._firsts[group] + self._orders[group].sequences_at(slots[chosen] - before)
        return out

    def batches(self, step: int) -> Iterator[Mapping[str, Any]]:
        """Yield the batch of each step from `step` on, with `input_ids`, `labels` and `cu_seqlens` as the loader's."""
        length = self._pool.length
        for first in range(step * self._batch, int(self._ends[-1]) - self._batch + 1, self._batch):
            sequences = self.sequences_at(np.arange(first, first + self._batch))
            ids = np.asarray(self._pool.tokens[sequences], np.int64)
            starts = [self._pool.borders(number) + row * length for row, number in enumerate(sequences.tolist())]
            yield {"input_ids": ids, "labels": ids, "cu_seqlens": np.concatenate([*starts, [ids.size]])}
