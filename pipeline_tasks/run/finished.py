"""What a driver keeps of the tasks of a stage that have run: sums, and of each task no more than the manifest names.

Receipts have profiles, which are ten times as large as all else. They are added up as tasks finish, and stay in the
store: they are read again only if a stage keeps some of the shards of a verb, and not the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pipeline_tasks.profiles.merging import add, merge
from pipeline_tasks.profiles.spread import Counts
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost
from pipeline_tasks.run.tasks.task import Receipt, load_receipt, receipt_path
from pipeline_tasks.stage import Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.shards.rows import Columns

T = TypeVar("T")

NO_COUNTS: Counts = {}


@dataclass(frozen=True, slots=True)
class Finished:
    """The tasks of one verb, in order: `prefix` is where their receipts are, and `keys` has a line for each task.

    `shards`, `schemas`, `below` and `spread` have an entry for each task. `below` has the shard under a layer if it is
    of the same stage: those of others are in their manifests. `rejecting` are the ranks of tasks that kept not all of
    their rows. The profiles are of all rows together.
    """

    prefix: str
    keys: str
    shards: Shards
    schemas: Sequence[Columns]
    below: Sequence[Shard | None]
    spread: Sequence[Counts]
    rejecting: Sequence[int]
    rejects: Shards
    quarantine: Shards
    kept_profile: Mapping[str, Any]
    rejects_profile: Mapping[str, Any]

    def paths_of_receipts(self) -> list[str]:
        """Return the path of each task's receipt."""
        return [receipt_path(self.prefix, key) for key in self.keys.split()]


@dataclass(slots=True)
class Collector:
    """Takes the receipts of the tasks of a verb, in any order, and lets go of each."""

    prefix: str
    keys: Sequence[str]
    tally: Counter[str] = field(default_factory=Counter)
    states: StateCost = NO_STATES
    _shards: list[Any] = field(init=False)
    _schemas: list[Columns] = field(init=False)
    _below: list[Shard | None] = field(init=False)
    _spread: dict[int, Counts] = field(default_factory=dict)
    _rejecting: list[int] = field(default_factory=list)
    _rejects: list[Shard] = field(default_factory=list)
    _quarantine: list[Shard] = field(default_factory=list)
    _kept_profile: dict[str, Any] = field(default_factory=dict)
    _rejects_profile: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make room for each task's shard, columns, and shard below."""
        self._shards, self._below = [None] * len(self.keys), [None] * len(self.keys)
        self._schemas = [()] * len(self.keys)

    def take(self, rank: int, receipt: Receipt) -> None:
        """Add the receipt of the task of that rank."""
        self._shards[rank], self._schemas[rank] = receipt.shard, receipt.schema
        if receipt.below and receipt.below.path.startswith(f"{self.prefix.partition('/')[0]}/"):
            self._below[rank] = receipt.below
        if receipt.spread:
            self._spread[rank] = receipt.spread
        if receipt.rejects or receipt.quarantine:
            self._rejecting.append(rank)
            self._rejects += [receipt.rejects] if receipt.rejects else []
            self._quarantine += [receipt.quarantine] if receipt.quarantine else []
        add(self._kept_profile, receipt.kept_profile)
        add(self._rejects_profile, receipt.rejects_profile)
        self.tally.update(receipt.tally)
        self.states += StateCost(receipt.hardware) if receipt.hardware else NO_STATES

    def finished(self) -> Finished:
        """Return what was taken."""
        return Finished(
            self.prefix,
            "\n".join(self.keys),
            tuple(self._shards),
            self._schemas,
            self._below,
            [self._spread.get(rank, NO_COUNTS) for rank in range(len(self._shards))] if self._spread else (),
            self._rejecting,
            tuple(self._rejects),
            tuple(self._quarantine),
            self._kept_profile,
            self._rejects_profile,
        )


def _with(finished: Iterable[Finished], each: Callable[[Finished], Iterable[T]]) -> Iterator[tuple[Shard, T]]:
    """Yield every shard that tasks wrote, with what `each` gives of the task of each."""
    for done in finished:
        yield from zip(done.shards, each(done), strict=True)


def schema_of(finished: Sequence[Finished], shards: Iterable[Shard]) -> dict[str, Columns]:
    """Return the columns of those of some shards that tasks wrote, by path."""
    wanted = {shard.path for shard in shards}
    schemas = _with(finished, lambda done: done.schemas)
    return {shard.path: columns for shard, columns in schemas if shard.path in wanted}


def below_of(finished: Sequence[Finished]) -> dict[str, Shard]:
    """Return the shard of the same stage that is below a layer, by the layer's path."""
    below = _with(finished, lambda done: done.below)
    return {shard.path: under for shard, under in below if under is not None}


def spread_of(finished: Sequence[Finished], kept: Shards) -> list[Counts]:
    """Return what was counted of the place of values in each of the kept shards."""
    spread = _with(finished, lambda done: done.spread or [NO_COUNTS] * len(done.shards))
    counted = {shard.path: counts for shard, counts in spread}
    return [counted[shard.path] for shard in kept]


def kept_profile(root: str, finished: Sequence[Finished], kept: Shards) -> dict[str, Any]:
    """Return the profile of the rows of the kept shards."""
    return merge(_profiles(root, finished, kept))


def _profiles(root: str, finished: Sequence[Finished], kept: Shards) -> Iterator[Mapping[str, Any]]:
    """Yield the sums of the verbs whose shards were all kept, in any order, and the profile of each other shard."""
    left = Counter(shard.path for shard in kept)
    for done in reversed(finished):
        written = Counter(shard.path for shard in done.shards)
        if written and written <= left:
            left -= written
            yield done.kept_profile
    if left:
        store = storage.connect(root)
        yield from storage.each(store, partial(_stored_profile, store), _receipts_of(finished, [*left.elements()]))


def _receipts_of(finished: Sequence[Finished], shards: Sequence[str]) -> list[str]:
    """Return the path of the receipt of each of some shards, which are given by their paths."""
    wanted = {*shards}
    receipts = _with(finished, lambda done: done.paths_of_receipts())
    paths = {shard.path: path for shard, path in receipts if shard.path in wanted}
    return [paths[shard] for shard in shards]


def _stored_profile(store: Store, path: str) -> Mapping[str, Any]:
    return load_receipt(store.read(path), f"{store.root}/{path}").kept_profile
