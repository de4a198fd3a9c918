"""Yields the sequences of a published training dataset: to every rank and worker its share, and again from any place.

    dataset = TokenDataset("/data/refined/corpus@2", Split(rank, world_size, batch_size=8))
    for batch in dataset.batches():
        ...

A run is all epochs, one after the other; its places are counted over all of them. After every step the ranks together
have consumed a prefix of the run, so one number says where it is: `state_at(batch["resume_at"])` goes on there with any
number of ranks and workers. torch is not needed; a dataset is an `IterableDataset` if torch was imported before it.
"""

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.training.batch import NOWHERE, Batch, Item, as_tensors, collated
from pipeline_tasks.training.cache import Cache, Fetching
from pipeline_tasks.training.erased import in_force
from pipeline_tasks.training.folder import Folder, LocalFolder, Span, require_digest
from pipeline_tasks.training.index import NAME, DatasetIndex, read_index
from pipeline_tasks.training.named import folder_of
from pipeline_tasks.training.order import Integers, Order
from pipeline_tasks.training.reader import Reader, Row, distinct
from pipeline_tasks.training.share import Passes, Share, Split, Step, Worker
from pipeline_tasks.training.usage import Usage, usage_of_sequences

Window = tuple[list[Step], Integers]

FETCHED = 64
"""Sequences that are asked for at a time."""

IDS = ("int64", "int32", "uint32", "uint16")
"""Types that ids may be given in."""


@dataclass(frozen=True, slots=True)
class _Start:
    """Where an iteration begins: at a place of the run, or (`split` is set) in the middle of one process's share."""

    position: int = 0
    batch: int = 0
    taken: int = 0
    split: Mapping[str, int] | None = None


class TokenDataset:
    """The share of one rank of a published training dataset, as an iterable of `Item`.

    `uri` is `ROOT/NAME@NUMBER` or `ROOT/NAME@latest`, or the folder of a version, which the attribute `uri` always is.
    """

    def __init__(
        self,
        uri: str,
        split: Split = Split(),  # noqa: B008 -- frozen
        passes: Passes = Passes(),  # noqa: B008 -- frozen
        cache: Cache = Cache(),  # noqa: B008 -- frozen
        dtype: str = "int64",
    ) -> None:
        self.uri, self.split, self.passes, self.cache = folder_of(uri), split, passes, cache
        self.fetching = Fetching()
        folder = self._open()
        try:
            self.index: DatasetIndex = in_force(read_index(*folder.index()), *_root_and_prefix(self.uri))
        finally:
            folder.close()
        self._dtype = _dtype_of(dtype, self.index)
        self._order = Order(self.index.sequences, passes.seed, passes.shuffle, passes.block)
        self._start = _Start()
        self._now = (0, 0)
        _register_with_torch()

    @property
    def places(self) -> int:
        """Return the sequences of all epochs."""
        return self.index.sequences * self.passes.epochs

    # --- Iterating ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Item]:
        """Yield the share of this rank and of this worker of torch's data loader, from where `load_state_dict` said."""
        share = self._share()
        self._now = self._first(share)
        folder = self._open()
        reader = Reader(self.index, folder)
        try:
            for window, sequences in self._fetched(share, reader, folder):
                yield from self._items(share, window, reader.rows(sequences))
                self.fetching.waited_s, reader.waited_s = self.fetching.waited_s + reader.waited_s, 0.0
        finally:
            folder.close()

    def batches(self) -> Iterator[Batch]:
        """Yield the same as one batch per step; where the run goes on within a step, the first is the rest of it."""
        items: list[Item] = []
        size = self.split.batch_size - self._start.taken
        for item in self:
            items.append(item)
            if len(items) == size:
                yield collated(items)
                items, size = [], self.split.batch_size
        if items:
            yield collated(items)

    def collate(self, items: Sequence[Item]) -> Batch:
        """Return items as one batch; RecipeError if a data loader has another batch size than the dataset's split."""
        if len(items) != self.split.batch_size and self.passes.tail != "short":
            message = (
                f"the data loader makes batches of {len(items)}, and the split has batch_size {self.split.batch_size}; "
                "give both the same"
            )
            raise RecipeError(message)
        return collated(items)

    def collate_tensors(self, items: Sequence[Item]) -> dict[str, Any]:
        """As `collate`, with `input_ids`, `labels` and `cu_seqlens` as torch's tensors."""
        return as_tensors(self.collate(items))

    def _open(self) -> Folder:
        if not is_bucket(self.uri):
            return LocalFolder(Path(self.uri.removeprefix("file://")))
        from pipeline_tasks.training.bucket_folder import BucketFolder

        return BucketFolder(self.uri, self.cache, self.fetching)

    def _share(self) -> Share:
        return Share(self._start.position, self.places, self.split, _worker(), self.passes.tail)

    def _first(self, share: Share) -> tuple[int, int]:
        """Return the first global batch of this process, and how much of it was taken."""
        wanted = self._start.split
        if wanted is None:
            return share.worker.number, 0
        _require_equal(wanted, self._split_now(share.worker))
        return self._start.batch, self._start.taken

    def _fetched(self, share: Share, reader: Reader, folder: Folder) -> Iterator[Window]:
        """Yield steps with the sequences at their places, after asking for what those that follow need."""
        waiting: deque[Window] = deque()
        for window, sequences in self._ordered(share):
            spans = distinct(reader.spans(sequences)) if folder.ahead else []
            folder.prefetch(spans)
            waiting.append((window, sequences))
            if len(waiting) * max(len(spans), 1) > folder.ahead:
                yield waiting.popleft()
        yield from waiting

    def _ordered(self, share: Share) -> Iterator[Window]:
        """Yield steps of about `FETCHED` places with the sequences there; the order is computed for more at once."""
        few = max(1, FETCHED // self.split.batch_size)
        for window in share.windows(*self._now):
            places = np.concatenate([step.places for step in window])
            sequences = self._order.sequences_at(places[places < share.stop])
            first = 0
            for start in range(0, len(window), few):
                steps = window[start : start + few]
                count = sum(len(step.places) for step in steps)
                yield steps, sequences[first : first + count]
                first += count

    def _items(self, share: Share, window: list[Step], rows: Iterator[Row]) -> Iterator[Item]:
        for step in window:
            resume_at, last = share.resume_at(step.batch), step.offset + len(step.places)
            for taken, place in enumerate(step.places.tolist(), start=step.offset + 1):
                item = self._item(next(rows), place) if place < share.stop else self._pads(place)
                item["resume_at"] = resume_at
                self._now = (step.batch, taken) if taken < last else (step.batch + share.worker.count, 0)
                yield item

    def _item(self, row: Row, place: int) -> Item:
        item: Item = {
            "input_ids": row.ids.astype(self._dtype),
            "cu_seqlens": row.cu_seqlens,
            "n_tokens": row.n_tokens,
            "shard": row.shard,
            "sequence": row.sequence,
            "index": row.index,
            "epoch": place // self.index.sequences,
            "place": place,
            "resume_at": 0,
        }
        if row.erased:
            item["erased"] = row.erased
        return item

    def _pads(self, place: int) -> Item:
        ids = np.full(self.index.length, self.index.pad_id, self._dtype)
        borders = np.array([0, self.index.length], np.int32)
        row = Row(NOWHERE, NOWHERE, NOWHERE, ids, borders, 0)
        return self._item(row, place)

    # --- State ----------------------------------------------------------------------------------------------------

    def state_at(self, position: int) -> dict[str, Any]:
        """Return the state after the first `position` sequences of the run, for any number of ranks and workers."""
        if not 0 <= position <= self.places:
            message = f"the run has {self.places} sequences, and so no position {position}; check the epochs of passes"
            raise RecipeError(message)
        return self._state(_Start(position))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this process: after a whole batch without several workers, it is that of all ranks."""
        if self._now == (0, 0):
            return self._state(_Start(self._start.position))
        share, (batch, taken) = self._share(), self._now
        if share.worker.count == 1 and not taken:
            return self._state(_Start(share.resume_at(batch - 1)))
        return self._state(_Start(self._start.position, batch, taken, self._split_now(share.worker)))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iterations begin where a state says; RecipeError if it is of another dataset, order or split."""
        wanted, now = dict(state), self._state(_Start())
        for name in ("format", "dataset", "order"):
            if wanted.get(name) != now[name]:
                message = (
                    f"{self.uri}: the state has {name} {wanted.get(name)}, and this run has {now[name]}; "
                    "open the dataset of that run, with its passes"
                )
                raise RecipeError(message)
        start = _Start(wanted["position"], wanted["batch"], wanted["taken"], wanted["split"])
        self.state_at(start.position)
        self._start, self._now = start, (start.batch, start.taken)

    def _state(self, start: _Start) -> dict[str, Any]:
        passes = self.passes
        order = {"shuffle": passes.shuffle, "seed": passes.seed, "block": passes.block}
        return {"format": 1, "dataset": self.index.digest, "order": order, **asdict(start)}

    def _split_now(self, worker: Worker) -> dict[str, int]:
        return {**asdict(self.split), "worker": worker.number, "workers": worker.count}

    # --- Proofs ---------------------------------------------------------------------------------------------------

    def expected_usage(self, start: int, stop: int) -> Usage:
        """Return what all ranks together have consumed between two places of the run, from the order alone."""
        folder = self._open()
        reader, usage = Reader(self.index, folder), Usage()
        try:
            for first in range(start, stop, 1 << 20):
                places = np.arange(first, min(first + (1 << 20), stop))
                sequences = self._order.sequences_at(places)
                tokens = reader.tokens(sequences)
                usage += usage_of_sequences(sequences, places // self.index.sequences, tokens)
        finally:
            folder.close()
        return usage

    def verify(self) -> None:
        """Read every file of the dataset; ContractError names the first one that is not as published."""
        folder = self._open()
        try:
            for shard in self.index.shards:
                for file in (shard.bin, shard.ends, shard.lineage):
                    require_digest(folder.map(Span(file, 0, file.bytes)), file, file.path)
        finally:
            folder.close()


def _root_and_prefix(uri: str) -> tuple[str, str]:
    """Return the root of a version's folder, and the folder below it: `ROOT/publish/DIGEST`."""
    folder = uri.rstrip("/").removesuffix(f"/{NAME}")
    folder = folder if "://" in folder else str(Path(folder).absolute())
    above, _, own = folder.rpartition("/")
    root, _, publish = above.rpartition("/")
    return root, f"{publish}/{own}"


def _require_equal(wanted: Mapping[str, int], now: Mapping[str, int]) -> None:
    if dict(wanted) != dict(now):
        message = (
            f"the state is of one process in the middle of a step ({dict(wanted)}), and this is {dict(now)}; resume "
            "with the same split and workers, or from state_at(batch['resume_at']), which fits any"
        )
        raise RecipeError(message)


def _dtype_of(name: str, index: DatasetIndex) -> np.dtype[Any]:
    if name not in IDS or np.dtype(name).itemsize < np.dtype(index.dtype).itemsize:
        message = f"ids stored as {index.dtype} cannot be given as {name!r}; choose a wider one of {', '.join(IDS)}"
        raise RecipeError(message)
    return np.dtype(name)


def _worker() -> Worker:
    """Return which worker of torch's data loader this process is."""
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data else None
    return Worker(info.id, info.num_workers) if info else Worker()


def _register_with_torch() -> None:
    """Let torch's data loader take a dataset for an iterable one, if this process has imported torch."""
    data = sys.modules.get("torch.utils.data")
    if data:
        data.IterableDataset.register(TokenDataset)
