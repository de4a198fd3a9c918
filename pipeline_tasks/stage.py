"""The words everything else is written in: shards, kernels, engines and the card of a stage."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NewType, Protocol, TypeVar

import pyarrow as pa

P = TypeVar("P")

LANDING = "landing:"
"""Prefix of the path of a landed file, which is relative to wherever the snapshot lies for this run."""

Batches = Iterator[pa.RecordBatch]
"""A stream of record batches of one schema; never empty, so the schema is always known."""

Kernel = Callable[..., Batches]
"""One `Batches` argument per co-partitioned input (and one more for `beside`); yields at least one batch."""

FilePath = NewType("FilePath", str)
"""A parameter that names a file (model, word list, tokenizer): its digest, not its path, is identity."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One immutable file: `path` is relative to the root (`landing:` files to their snapshot), `digest` is SHA-256.

    `root` is the SHA-256 of the root of its index, if it is a segment: rows remembered by a key.
    """

    path: str
    rows: int
    bytes: int
    digest: str
    root: str = ""


Shards = tuple[Shard, ...]


class HistoryReader(Protocol):
    """What a kernel gets of what was remembered by a key: its rows as a stream, or those of some keys.

    Rows are sorted by key, or, where several shards come as one (`beside`), by key within each.
    """

    def __iter__(self) -> Batches:
        """Yield all rows; at least one batch, empty if there are none."""

    def rows(self, wanted: Any) -> pa.Table:  # noqa: ANN401 -- an Arrow array
        """Return the rows whose key is in `wanted`; keys may be asked for in any order."""

    def first(self, column: str) -> Any:  # noqa: ANN401 -- any column's value
        """Return what the first row holds in `column`, or None if there are no rows."""


class Engine(Protocol):
    """Where kernels run; every engine gives the same shards, byte for byte."""

    @property
    def history(self) -> Shards:
        """What this stage remembered of earlier snapshots, oldest first."""

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows set aside so far in this run; reasons that start with `error:` are quarantined."""

    def map(self, kernel: Kernel, *inputs: Shards, broadcast: Shards = ()) -> Shards:
        """Run `kernel` once per shard; several inputs are zipped shard by shard.

        Every call also gets all of `beside` as one last stream when `beside` is not empty
        (a plan, a model, a list: small things that every shard needs), or as a `Remembered` of all of it when all
        was remembered by a key, whatever its size: only what belongs to the keys that are asked for is read.
        """

    def group(self, kernel: Kernel, rows: Shards, *, by: str, order: Sequence[str] = (), buckets: int) -> Shards:
        """Bring equal `by` values into one bucket, sorted by `by` then `order`; run `kernel` once per bucket.

        `by` and `order` together must order the rows totally: engines differ in ties.
        """

    def save_history(
        self, *inputs: Shards, by: str = "", order: Sequence[str] = (), kernel: Kernel | None = None
    ) -> None:
        """Keep shards with the manifest as what later snapshots will see as `history`.

        Kept is the one input or, with `kernel` (and `by`), what it makes of the inputs, as in `map` but stored once.
        With `by`, each shard is sorted by `by`, then `order`, and a kernel of a later snapshot that `map` gives it as
        an input gets a `Remembered`, which reads what belongs to a few keys and nothing else. Of such history `map`
        may see fewer shards than were remembered: one that stands for the same shard of several snapshots, merged.
        """


@dataclass(frozen=True, slots=True)
class Stage(Generic[P]):
    """The card that each stage module exports as `STAGE`.

    `version` is bumped when output changes for the same params. `splits` promises that
    run(a + b) == run(a) + run(b), so Airflow may map it over partitions. `profiled` names
    output columns that are profiled into the manifest's metrics (whole numbers: count, sum
    and a histogram; ratios: a histogram; strings: value counts). `reasons` lists every reason
    the stage can give. `reads_history` says that the stage reads `on.history`; one that remembers for readers outside
    the pipeline only says False, and is the same whatever came before.
    """

    name: str
    run: Callable[[Shards, P, Engine], Shards]
    params: type[P]
    reads: pa.Schema
    writes: pa.Schema
    version: int
    splits: bool
    reads_history: bool = True
    conserves: Literal["rows", "tokens"] = "rows"
    engine: Literal["local", "spark", "ray"] = "spark"
    profiled: tuple[str, ...] = ()
    reasons: tuple[str, ...] = field(default=())
    title: str = ""


def reject(batch: pa.RecordBatch, reasons: pa.Array, evidence: pa.Array | None = None) -> pa.RecordBatch:
    """Mark rows of `batch`: null keeps a row, `stage:why` rejects it, `error:why` quarantines it.

    `evidence` is canonical JSON text per row (every failing rule with value and bound), null where kept.
    """
    marked = replace_column(batch, "reason", reasons.cast(pa.string()))
    proof: Any = evidence if evidence is not None else pa.nulls(batch.num_rows, pa.string())
    return replace_column(marked, "evidence", proof.cast(pa.string()))


def replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return `batch` with column `name` set to `values`, in place if it exists, else appended."""
    at = batch.schema.get_field_index(name)
    if at >= 0:
        return batch.set_column(at, pa.field(name, values.type), values)
    return batch.append_column(pa.field(name, values.type), values)
