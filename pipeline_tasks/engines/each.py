"""Work over a whole root: a function for each item, such as a shard or an object, on any engine, with receipts.

Items are cut into batches of neighbors, and each is a task. Whoever has run one keeps what the function has returned,
which is JSON, as a receipt. Work that was killed goes on where it was, and several drivers find each other's receipts.
"""

import contextlib
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pipeline_tasks.engines import choose
from pipeline_tasks.engines.card import engine_card
from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.engines.workers import Workers
from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.recipe import LOCAL
from pipeline_tasks.run.history import History
from pipeline_tasks.run.made import Made
from pipeline_tasks.run.runner import EngineFactory, RunningEngine
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tasks.task import KEY_DIGITS, StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.sealed import canonical, digest_of, seal, unseal
from pipeline_tasks.store import storage

T = TypeVar("T")

Result = Mapping[str, Any]
"""What a function returns of an item: a small JSON object."""

log = logging.getLogger("refinery")

ITEM = 1 << 20
"""Bytes that an item counts at least: a request to a bucket takes about as long as to read so many."""

BATCHES, MOST = 128, 256 << 20
"""Batches that items are cut into, and bytes of a batch from which on there are more of them."""

FEW = 1 << 30
"""Bytes of items below which no receipts are kept: they are read again within seconds."""


class On(NamedTuple):
    """Where work runs: an engine, its address ("" is this machine), and what `local` runs it with."""

    engine: str = LOCAL
    address: str = ""
    workers: Workers = Workers(8)

    def factory(self, place: str) -> EngineFactory:
        """Return what makes the engine; RecipeError if it cannot be had, or does not reach a place."""
        if self.engine == LOCAL:
            return partial(LocalEngine, workers=self.workers)
        factory = choose.engine(self.engine, self.address)
        engine_card(self.engine).require_reach(self.address, place)
        return factory


HERE = On()
"""This machine."""


@dataclass(frozen=True, slots=True)
class Call:
    """What all tasks of a step share: receipts are in a `folder` of a `place`, "" for none."""

    step: str
    place: str
    folder: str
    function: Callable[[Any], Result]
    keeps: Callable[[Result], bool]

    def receipt(self, key: str) -> list[Result] | None:
        """Return what a batch has returned before, None if there is no receipt that is whole."""
        path = f"{self.folder}/{key}.json"
        with contextlib.suppress(FileNotFoundError, ContractError):  # one that is damaged is written again
            results: list[Result] = unseal(storage.connect(self.place).read(path), path, "")["results"]
            return results
        return None

    def keep(self, key: str, results: Sequence[Result]) -> None:
        """Keep what a batch has returned; where that may not be stored, it runs again after a kill."""
        store, path = storage.connect(self.place), f"{self.folder}/{key}.json"
        try:
            if not store.create(path, body := seal({"results": results})) and store.read(path) != body:
                store.delete(path)
                store.create(path, body)
        except (RefineryError, OSError) as error:
            log.debug("%s/%s is not kept: %s", self.place, path, error)


def run_batch(call: Call, key: str, batch: Sequence[Any]) -> list[Result]:
    """Run a function for each item of a batch in a worker, unless another driver has; return its results as JSON."""
    if key and (known := call.receipt(key)) is not None:
        return known
    results = []
    for item in batch:
        raise_if_canceled()
        results.append(json.loads(canonical(call.function(item))))
    if key and all(map(call.keeps, results)):
        call.keep(key, results)
    return results


@dataclass(frozen=True, slots=True)
class Work:
    """A verb over a place, which is a root or that of an export; `on` says where it runs.

    Receipts are in a `folder` of the place, "" for none. They count for `patience` seconds: what they say of objects
    may have changed since.
    """

    verb: str
    place: str
    folder: str
    on: On = HERE
    patience: float = math.inf

    def each(
        self,
        step: str,
        function: Callable[[T], Result],
        items: Sequence[T],
        *,
        key: Callable[[T], object],
        weight: Callable[[T], int],
        keeps: Callable[[Result], bool] = bool,
    ) -> Iterator[Result]:
        """Yield what a function returns of each item, in order; a `step` has one function.

        `function` and items are pickled. The `key` of an item, as JSON, says with the step what is returned. `weight`
        is about how many bytes are read of it. A batch has a receipt if `keeps` is true of all that was returned. The
        first refusal in the order of items is raised as itself.
        """
        weights = [max(weight(item), ITEM) for item in items]
        batches = list(_batches(items, weights))
        folder = f"{self.folder}/{step}" if self.folder and sum(weights) >= FEW else ""
        call = Call(step, self.place, folder, function, keeps)
        names = [digest_of([key(item) for item in batch], KEY_DIGITS) if folder else "" for batch in batches]
        keys, known = self._known(call, names)
        missing = [rank for rank in range(len(batches)) if rank not in known]
        tasks = Made(len(missing), lambda at: partial(run_batch, call, keys[missing[at]], batches[missing[at]]))
        ran = self._engine(step).each(tasks, sum(weights)) if missing else iter(())
        with _counting(self.verb, len(items)) as count:
            for rank in range(len(batches)):
                results = known.pop(rank) if rank in known else next(ran)
                yield from results
                count(len(results))

    def forget(self) -> None:
        """Remove the receipts, as the work is done; where they may not be removed, they stay until they are old."""
        _remove(self.place, [entry.path for entry in storage.connect(self.place).list(self.folder)])

    def _known(self, call: Call, keys: Sequence[str]) -> tuple[Sequence[str], dict[int, list[Result]]]:
        """Return the keys of batches, and by rank what they have returned before: receipts are listed once, and read.

        Where old ones may not be removed, no worker is to find them: the batches of these have no key any more.
        """
        if not call.folder:
            return keys, {}
        store, since = storage.connect(self.place), time.time() - self.patience
        listed = {entry.path: entry.modified for entry in store.list(call.folder)}
        old = {path for path, modified in listed.items() if modified < since}
        if not _remove(self.place, sorted(old)):
            keys = ["" if f"{call.folder}/{key}.json" in old else key for key in keys]
        ranks = [rank for rank, key in enumerate(keys) if listed.get(f"{call.folder}/{key}.json", -math.inf) >= since]
        read = storage.each(store, lambda rank: call.receipt(keys[rank]), ranks)
        return keys, {rank: results for rank, results in zip(ranks, read, strict=True) if results is not None}

    def _engine(self, step: str) -> RunningEngine:
        tracker = Tracker(StageIO(self.place, f"{self.verb}/{step}"))
        return self.on.factory(self.place)(tracker, History())


def _remove(place: str, paths: Sequence[str]) -> bool:
    """Remove receipts; return whether that is allowed, as it is not in a root that is read only."""
    try:
        storage.connect(place).delete_many(paths)
    except (RefineryError, OSError) as error:
        log.debug("%s: receipts are not removed: %s", place, error)
        return False
    return True


def _batches(items: Sequence[T], weights: Sequence[int]) -> Iterator[Sequence[T]]:
    """Yield neighbors that weigh about as much together: the same for the same items, wherever they run."""
    most = min(max(sum(weights) // BATCHES, 1), MOST)
    start, weight = 0, 0
    for at, its in enumerate(weights):
        if weight and weight + its > most:
            yield items[start:at]
            start, weight = at, 0
        weight += its
    if items:
        yield items[start:]


@contextlib.contextmanager
def _counting(verb: str, whole: int) -> Iterator[Callable[[int], None]]:
    """Give what counts items that are done, and shows that if stderr is a terminal."""
    shown, done = sys.stderr.isatty(), 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if shown:
            sys.stderr.write(f"\r{verb}: {done:,} of {whole:,}")
            sys.stderr.flush()

    try:
        yield count
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
