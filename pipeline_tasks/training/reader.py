"""Reads sequences of a dataset: ids, where documents end in them, and how many of the ids are no pads."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.training.folder import Folder, Span
from pipeline_tasks.training.index import WAY_OUT, DatasetIndex, Shard
from pipeline_tasks.training.order import Integers

_ENDS = -1
"""In place of a chunk's number: the ends of a shard."""

MOST_MAPS = 256
"""Files or chunks that are mapped at a time: each needs a file descriptor, and their pages count as this process's."""


@dataclass(frozen=True, slots=True)
class Row:
    """One stored sequence: its number, its shard, its number in there, its ids, their borders, and ids without pads.

    `erased` are the stretches of its ids whose documents were erased.
    """

    index: int
    shard: int
    sequence: int
    ids: npt.NDArray[np.integer]
    cu_seqlens: npt.NDArray[np.int32]
    n_tokens: int
    erased: tuple[tuple[int, int], ...] = ()


class Reader:
    """Reads sequences by their number in the dataset; one process at a time uses it."""

    def __init__(self, index: DatasetIndex, folder: Folder) -> None:
        self._index, self._folder = index, folder
        self._firsts = np.cumsum([0, *(shard.sequences for shard in index.shards)])
        self._dtype = np.dtype(index.dtype).newbyteorder("<")
        self._length = index.length
        self._chunk = max(1, folder.chunk_bytes // index.row_bytes)
        self._maps: OrderedDict[tuple[int, int], npt.NDArray[np.integer]] = OrderedDict()
        self._counts: dict[int, npt.NDArray[np.uint32]] = {}
        self.waited_s = 0.0

    def rows(self, sequences: Integers) -> Iterator[Row]:
        """Yield sequences in the order of their numbers here."""
        shards = np.searchsorted(self._firsts, sequences, side="right") - 1
        places = sequences - self._firsts[shards]
        for index, shard, place in zip(sequences.tolist(), shards.tolist(), places.tolist(), strict=True):
            yield self._row(index, shard, place)

    def tokens(self, sequences: Integers) -> int:
        """Return how many ids of sequences are no pads."""
        shards = np.searchsorted(self._firsts, sequences, side="right") - 1
        total = 0
        for number in np.unique(shards).tolist():
            counts, chosen = self.counts(number), sequences[shards == number] - self._firsts[number]
            total += len(chosen) * self._index.length if counts is None else int(counts[chosen].sum())
        return total

    def spans(self, sequences: Integers) -> Iterator[Span]:
        """Yield what `rows` would map that is not mapped."""
        shards = np.searchsorted(self._firsts, sequences, side="right") - 1
        chunks = (sequences - self._firsts[shards]) // self._chunk
        for number, chunk in np.unique(np.stack([shards, chunks]), axis=1).T.tolist():
            shard = self._index.shards[number]
            yield from (self._span(number, part) for part in (chunk, _ENDS) if (number, part) not in self._maps)
            if self._has_pads(shard) and number not in self._counts:
                yield _whole_lineage(shard)

    def counts(self, number: int) -> npt.NDArray[np.uint32] | None:
        """Return the ids without pads of every sequence of a shard, None if none has pads."""
        shard = self._index.shards[number]
        if not self._has_pads(shard):
            return None
        if number not in self._counts:
            self._counts[number] = self._counted(shard)
        return self._counts[number]

    def _row(self, index: int, number: int, place: int) -> Row:
        chunk, row = divmod(place, self._chunk)
        start = row * self._length
        ids = self._map(number, chunk)[start : start + self._length]
        counts = self.counts(number)
        n_tokens = self._length if counts is None else int(counts[place])
        erased = self._erased(number, place)
        return Row(index, number, place, ids, self._borders(number, place, n_tokens), n_tokens, erased)

    def _erased(self, number: int, place: int) -> tuple[tuple[int, int], ...]:
        """Return the stretches of a sequence's ids whose documents were erased."""
        first, stop = place * self._length, (place + 1) * self._length
        spans = self._index.shards[number].erased
        return tuple(
            (max(start, first) - first, min(end, stop) - first) for start, end in spans if start < stop and end > first
        )

    def _borders(self, number: int, place: int, n_tokens: int) -> npt.NDArray[np.int32]:
        """Return 0 and where each piece of a sequence ends; pads are the last piece."""
        length, ends = self._length, self._map(number, _ENDS)
        first, stop = ends.searchsorted((place * length, (place + 1) * length), "right")
        borders = np.empty(stop - first + 1, np.int32)
        borders[0] = 0
        borders[1:] = ends[first:stop] - place * length
        if borders[-1] != length or (n_tokens < length and n_tokens not in borders[-2:]):
            path = self._index.shards[number].ends.path
            message = f"{path}: sequence {place} has no end at {n_tokens} of {length} tokens; {WAY_OUT}"
            raise ContractError(message)
        return borders

    def _map(self, number: int, part: int) -> npt.NDArray[np.integer]:
        """Return the ids of a chunk of a shard, or its ends."""
        mapped = self._maps.get((number, part))
        if mapped is not None:
            self._maps.move_to_end((number, part))
            return mapped
        started = time.perf_counter()
        mapped = self._folder.map(self._span(number, part)).view("<i8" if part == _ENDS else self._dtype)
        self.waited_s += time.perf_counter() - started
        self._maps[number, part] = mapped
        if len(self._maps) > MOST_MAPS:
            self._maps.popitem(last=False)
        return mapped

    def _span(self, number: int, part: int) -> Span:
        shard = self._index.shards[number]
        if part == _ENDS:
            return Span(shard.ends, 0, shard.ends.bytes)
        size = self._chunk * self._index.row_bytes
        return Span(shard.bin, part * size, min((part + 1) * size, shard.bin.bytes))

    def _has_pads(self, shard: Shard) -> bool:
        return shard.tokens < shard.sequences * self._index.length

    def _counted(self, shard: Shard) -> npt.NDArray[np.uint32]:
        """Return the lengths of the pieces of every sequence of a shard together."""
        started = time.perf_counter()
        body = pa.py_buffer(self._folder.map(_whole_lineage(shard)))
        self.waited_s += time.perf_counter() - started
        try:
            pieces = pq.read_table(pa.BufferReader(body), columns=["sequence", "length"], use_threads=False)
            numbers, lengths = (pieces[name].to_numpy() for name in ("sequence", "length"))
            counts = np.bincount(numbers, lengths, shard.sequences).astype(np.uint32)
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            message = f"{shard.lineage.path} cannot be read ({str(error)[:200]}); {WAY_OUT}"
            raise ContractError(message) from error
        if len(counts) != shard.sequences or counts.sum() != shard.tokens or counts.max() > self._index.length:
            message = f"{shard.lineage.path} has other pieces than {shard.tokens} tokens; {WAY_OUT}"
            raise ContractError(message)
        return counts


def _whole_lineage(shard: Shard) -> Span:
    return Span(shard.lineage, 0, shard.lineage.bytes)


def distinct(spans: Iterable[Span]) -> list[Span]:
    """Return spans without repetitions, in order."""
    return list(dict.fromkeys(spans))
