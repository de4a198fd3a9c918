"""The bench an engine works at: makes tasks of verbs, finds those already done, and adds up what came of them."""

import hashlib
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.manifest import total
from pipeline_tasks.run.task import (
    Outcome,
    Place,
    Receipt,
    Task,
    gather,
    is_landed,
    load_receipt,
    receipt_path,
    scatter,
    task_key,
)
from pipeline_tasks.stage import Kernel, Shard, Shards
from pipeline_tasks.store import storage

T = TypeVar("T")


@dataclass(slots=True)
class Tracker:
    """One stage's run on one engine: its place, and what its tasks left."""

    place: Place
    receipts: list[Receipt] = field(default_factory=list)
    by_path: dict[str, Receipt] = field(default_factory=dict)
    landed: dict[str, int] = field(default_factory=dict)
    """Rows of each landed file, however often it was read."""
    cpu: float = 0.0
    recalled: Counter[str] = field(default_factory=Counter)
    ran: int = 0
    found: int = 0

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows set aside so far."""
        return total(receipt.tally for receipt in self.receipts)

    def map_tasks(
        self, kernel: Kernel, inputs: Sequence[Shards], broadcast: Shards, by: Sequence[str] = ()
    ) -> list[Task]:
        """Return one task per shard of the first input; with `by`, what it keeps is stored as a segment."""
        lengths = {len(stream) for stream in inputs}
        if len(lengths) != 1:
            message = f"{self.place.home}: map zips its inputs shard by shard, but they have {sorted(lengths)} shards"
            if any(shard.index_digest for stream in inputs for shard in stream):
                message += "; set `buckets` as it was in the earlier snapshots, or start without history"
            raise ContractError(message)
        rows = [tuple((shard,) for shard in together) for together in zip(*inputs, strict=True)]
        keys = [task_key(kernel, one, broadcast, by) for one in rows]
        return [Task(self.place, key, kernel, one, broadcast, tuple(by)) for key, one in zip(keys, rows, strict=True)]

    def group_tasks(self, kernel: Kernel, rows: Shards, by: str, order: Sequence[str], buckets: int) -> list[Task]:
        """Return one task per bucket; a task's input names the shards that its bucket is drawn from."""
        extra = [[by, *order, buckets, bucket] for bucket in range(buckets if rows else 0)]
        return [Task(self.place, task_key(kernel, (rows,), (), one), kernel, (rows,)) for one in extra]

    def complete(self, tasks: Sequence[Task], run_missing: Callable[[list[int]], list[Outcome]]) -> Shards:
        """Run the tasks that no earlier attempt finished; return the shards of all, in order."""
        done = {rank: receipt for rank, task in enumerate(tasks) if (receipt := self._found(task))}
        missing = [rank for rank in range(len(tasks)) if rank not in done]
        outcomes = run_missing(missing) if missing else []
        for rank, outcome in zip(missing, outcomes, strict=True):
            done[rank] = outcome.receipt
            self.cpu += outcome.cpu
            self.recalled.update(outcome.recalled)
        self.ran += len(missing)
        self.found += len(tasks) - len(missing)
        for rank, task in enumerate(tasks):
            self.receipts.append(done[rank])
            self.by_path[done[rank].shard.path] = done[rank]
            if is_landed(task.inputs):
                self.landed[task.inputs[0][0].path] = done[rank].landed_rows
        return tuple(done[rank].shard for rank in range(len(tasks)))

    def _found(self, task: Task) -> Receipt | None:
        """Return the receipt of an earlier attempt whose shards are all there, else None."""
        store = storage.connect(self.place.root)
        path = receipt_path(self.place.home, task.key)
        if not store.size(path):  # an empty object is no receipt
            return None
        receipt = load_receipt(store.read(path), f"{store.root}/{path}")
        stored = (receipt.shard, receipt.rejects, receipt.quarantine)
        whole = all(store.size(shard.path) == shard.bytes for shard in stored if shard)
        return receipt if whole else None


def new_scratch(place: Place) -> str:
    """Return a folder for the pieces of one group; no other attempt has it, so each may remove its own."""
    return f"{place.home}/scratch/{uuid.uuid4().hex}"


def scatter_to_store(place: Place, shard: Shard, by: str, buckets: int, folder: str) -> list[tuple[int, Shard]]:
    """Store one shard's pieces as objects in the scratch `folder`; returns (bucket, piece) pairs."""
    store, pieces = storage.connect(place.root), []
    for bucket, rows, body in scatter(place, shard, by, buckets):
        digest = hashlib.sha256(body).hexdigest()
        path = f"{folder}/{digest[:32]}.arrow"
        with tempfile.NamedTemporaryFile(prefix="refinery-") as local:
            local.write(body)
            local.flush()
            store.put_file(path, Path(local.name), digest)
        pieces.append((bucket, Shard(path, rows, len(body), digest)))
    return pieces


def gather_from_store(task: Task, pieces: Shards, by: str, order: Sequence[str]) -> Outcome:
    """Read one bucket's pieces back and run the kernel over them."""
    store = storage.connect(task.place.root)
    return gather(task, [store.read(piece.path) for piece in pieces], by, order)


def remove_scratch(place: Place, folder: str) -> None:
    """Remove the pieces of a group that is finished or has failed."""
    store = storage.connect(place.root)
    for entry in list(store.list(folder)):
        store.delete(entry.path)


def guarded(call: Callable[[], T]) -> T | RefineryError:
    """Run a call in a worker; our own refusals come back as values, so that no engine wraps or retries them."""
    try:
        return call()
    except RefineryError as error:
        return error


def results_of(results: Sequence[T | RefineryError]) -> list[T]:
    """Return the results of calls, or raise the first refusal among them."""
    for result in results:
        if isinstance(result, RefineryError):
            raise result
    return [result for result in results if not isinstance(result, RefineryError)]
