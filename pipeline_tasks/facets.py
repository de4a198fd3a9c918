"""What a stage says of itself beyond its columns and params, for those who plan, foretell and show: its facets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

Removal = Literal["", "unfit", "copies", "surplus"]
"""What a stage's removals say: a document is unfit by itself, another one has its text, or the recipe's own mixture
leaves it out; "": none of these."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """How a recipe has a stage, beside the columns that it reads.

    `builds` says that it makes a training dataset of documents. `place` is where a recipe that builds must have it,
    counted from its ends as indexes are, from 1 on: 1, 2, -2, -1; 0: anywhere. `brings` are the stages right before it
    that no recipe names. `sets` are params of other stages of its recipe, by stage, and `passes` those of its own that
    another stage of the recipe has, too; `serves` names the stages without which its own params are for nothing, by
    param. `follows` are the stages without which it cannot read what others leave: it is applied to rows behind them.
    `twin_of` is the stage that does to all documents what this one does to generated ones.
    """

    builds: bool = False
    place: int = 0
    brings: tuple[str, ...] = ()
    sets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    passes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    serves: Mapping[str, str] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    twin_of: str = ""


PLAIN = Wiring()
"""Of a stage that a recipe has anywhere."""


class Canceled(NamedTuple):
    """A param without effect: its name, `why`, and the `remedy` besides removing it."""

    param: str
    why: str
    remedy: str


class VectorModel(NamedTuple):
    """A model that makes vectors: the name that these have, and the languages that it knows, none if it says none."""

    name: str
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Copies:
    """How a stage removes documents for the sake of others.

    `compared` are the documents that it compares: all, or some, as it needs more of them than every one has; "" for a
    stage that compares none. With `equal`, a copy has the id of the document that stays. With `over_snapshots`, one of
    each cluster of all snapshots stays, by the params `policy`, `sources`, `quality` and `prefer`: a later snapshot may
    supersede what an earlier one kept. `replaced` is the section of history that names documents of earlier snapshots
    whose URL has a newer one (`id`, `snapshot`, `by_id`, `by_snapshot`), "" for none. `deciding` are the params that
    stay as they are as long as there is history. `title` is over its removals in a report.
    """

    compared: Literal["", "all", "some"] = ""
    equal: bool = False
    over_snapshots: bool = False
    replaced: str = ""
    deciding: tuple[str, ...] = ()
    title: str = ""


NO_COPIES = Copies()


class Languages(NamedTuple):
    """Languages as the column `language` has them: those that are kept, none for all, and those `bounded` apart."""

    kept: frozenset[str]
    bounded: frozenset[str]


@dataclass(frozen=True, slots=True)
class Spans:
    """Where a stage found what in a text: the column of the places, and the kinds of what it finds.

    Places are as `schema.REDACTION` or `schema.TOXIC_SPAN` has them. `actions` returns what is done about each kind
    that is looked for, by the params of a manifest; None: every kind is looked for. `conceal` returns the texts of
    documents (with `chars`, `language` and `url`) without what a run with the params of a manifest finds, None where
    that cannot be told without a model; a stage whose spans may be seen has none. `left` counts such documents of a run
    in which another would find each kind, but for kinds of a model.
    """

    column: str
    kinds: tuple[str, ...]
    actions: Callable[[Mapping[str, Any]], Mapping[str, str]] | None = None
    conceal: Callable[[Mapping[str, Any], pa.RecordBatch], pa.Array | None] | None = None
    left: Callable[[Mapping[str, Any], pa.RecordBatch], Mapping[str, int]] | None = None


class Again(Protocol):
    """What computes again what a stage's model stored of documents (`Stage.again`).

    `columns` are those that it reads besides `id` and `text`; the column `counted` is above 0 where there is something
    to compute. `is_exact` promises that hardware of one name (`hardware`) computes the same bytes again.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def counted(self) -> str: ...

    @property
    def hardware(self) -> str: ...

    @property
    def is_exact(self) -> bool: ...

    def differing(self, row: pa.RecordBatch) -> float:
        """Return the share of what is stored of a document that comes out otherwise."""


class Requests(NamedTuple):
    """Requests that read (GET, HEAD) and that write (PUT, POST, LIST)."""

    reads: float
    writes: float

    def times(self, count: float) -> "Requests":
        """Return so many of these."""
        return Requests(self.reads * count, self.writes * count)

    def plus(self, other: "Requests") -> "Requests":
        """Return the sum."""
        return Requests(self.reads + other.reads, self.writes + other.writes)


NONE = Requests(0, 0)
OF_A_MODEL = Requests(20, 6)
"""For each shard, of a stage that reads a model."""


@dataclass(frozen=True, slots=True)
class UnitCost:
    """What a stage costs per byte that it reads: the bytes of its input's files, and of those that layers rest on.

    `seconds` are of one core per megabyte. `kept` are bytes that the next stage reads, `stored` bytes that are written,
    rejected rows and history included. `objects` are files per shard of the input, receipts included. `bucket` is the
    memory that a task needs per byte of its bucket, 0 where memory does not follow from the bucket. They are measured
    by `benchmarks/unit_costs.py` (see `run/unit_costs.py`).

    `requests` are those for each shard of the input, by default as of a stage that reads a model. `bucket_requests` are
    those for each bucket of the stage that makes them: those behind it have a shard for each. Both are slopes of runs
    of 8 and 24 files, and of 4 and 16 buckets, by the recipe `web` (`benchmarks/growth.py`).

    `rows` is the share of rows that it kept of the snapshot dev-2026-45 by the recipes `web` and `corpus`: 40.5 % of
    records in all. `published` is the share of bytes that goes on in a published pipeline at the stage that does the
    same (`refinery_study.plan.bases.PUBLISHED_SOURCE`): 0.0095 in all. Filters of URLs count with heuristics.
    """

    seconds: float
    kept: float
    stored: float
    objects: float
    bucket: float = 0.0
    requests: Requests = OF_A_MODEL
    bucket_requests: Requests = NONE
    rows: float | None = None
    published: float | None = None


BUCKET_MEMORY = 8.4
"""Bytes of memory per byte of documents in a bucket: text is 3.6 times as stored, and sorting it needs two copies.

`--buckets 1` over 50 and 200 MB of generated JSON lines: 394 and 999 MB for 24 and 96 MB of documents as stored.
"""

DEAREST = UnitCost(0.60, 1.0, 1.0, 8)
"""Of a stage that says nothing of it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A param that is a bound on a measure which rows store: what another value would keep can be counted.

    `param` is its name in a recipe, with a dot for an entry of a mapping (`minima.edu`); `aliases` are other names of
    it. `now` is its value, `most` the end of its range, which begins with 0. It rejects rows whose measure is `below`
    or `above` it, or `from` it on, by `reason`. `measured` returns the measure of rows, null for those on which it does
    not decide alone: without it that is the first of `columns`, which kept and rejected rows have alike. A bound
    without columns takes it from the evidence of rejected rows, and says to which `side` that is enough. `is_exact` is
    False where other params may decide on the same rows, `note` says more of it.
    """

    param: str
    now: float
    reason: str
    columns: tuple[str, ...] = ()
    measured: Callable[[pa.RecordBatch], pa.Array] | None = None
    rejects: Literal["below", "above", "from"] = "below"
    most: float = 1.0
    side: Literal["both", "higher", "lower"] = "both"
    is_exact: bool = True
    note: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dial:
    """A param that says how much of its source a document's text has, and rejects none by itself.

    `param` is its name in a recipe, `now` its value, `least` and `most` the ends of its range. `words` returns, of rows
    with `columns`, the words that each text has and those that it would have by another value, null where rows do not
    say.
    """

    param: str
    now: float
    least: float
    most: float
    columns: tuple[str, ...]
    words: Callable[[pa.RecordBatch, float], tuple[pa.Array, pa.Array]]


class Grouped(NamedTuple):
    """How a stage's documents come out in buckets, as many as its param `buckets` says or, for 0, their bytes ask for.

    `by_id`: each bucket has a range of hashes of `id`, and is sorted by `id`. `keeps`: documents that come in such
    buckets stay in them. `least`: how many buckets the fewest documents have.
    """

    by_id: bool = False
    keeps: bool = False
    least: int = 1
