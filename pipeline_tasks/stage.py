"""The vocabulary of every other module: shards, kernels, engines, and the card of a stage."""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NewType, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import MOST_BUCKETS, OMITTED
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import (
    DEAREST,
    NO_COPIES,
    PLAIN,
    Again,
    Bound,
    Canceled,
    Copies,
    Dial,
    Grouped,
    Languages,
    Removal,
    Spans,
    UnitCost,
    VectorModel,
    Wiring,
)
from pipeline_tasks.schema import Array

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P", bound="DataclassInstance")

Conserved = Literal["rows", "copies", "offspring", "tokens"]
"""What comes out of a stage as it went in: see `Stage.conserves`."""

BY_ROW: tuple[Conserved, ...] = ("rows", "offspring")
"""What stages conserve whose rows are documents, each judged by itself: without one of them the others are the same."""

LANDING = "landing:"
"""Prefix of the path of a landed file: the rest is relative to the folder that the snapshot landed in."""

Batches = Iterator[pa.RecordBatch]
"""A stream of record batches of one schema; never empty, so the schema is always known."""

Kernel = Callable[..., Batches]
"""One `Batches` argument per co-partitioned input (and one more for `broadcast`); yields at least one batch."""

Prepare = Callable[[], Any]
"""Loads the state of a kernel, such as a model: once per worker, however many shards and partitions it serves."""

FilePath = NewType("FilePath", str)
"""A parameter that names a file (model, word list, tokenizer): its digest, not its path, is identity."""

NO_FILE = FilePath("")
"""The parameter names no file."""

WHOLE = -1
"""`Shard.start` of a shard that is no piece of a landed file."""

VARIABLE = "variable"
"""Key of a field's metadata: the environment variable that holds its secret, which no recipe may."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that a kernel needs. Only `check` is ever written: it says whether two secrets are the same.

    The check is an HMAC of a constant under the secret (RFC 2104), cut to 64 bits; the secret does not follow from it.
    """

    check: str = ""
    value: str = field(default="", repr=False)

    @classmethod
    def of(cls, value: str) -> "Secret":
        """Return a secret with its check."""
        return cls(hmac.new(value.encode(), b"refinery: is this the same secret?", "sha256").hexdigest()[:16], value)


@dataclass(frozen=True, slots=True)
class Shard:
    """One immutable file: `path` is relative to the root (`landing:` files to their snapshot), `digest` is SHA-256.

    `index_digest` is the SHA-256 of the top page of its index, if it is a segment: rows sorted by a key. `below` is the
    bytes of the shards that a layer's rows come from (see `Layer`), 0 for a shard that has all of its columns. `start`
    is the byte at which a piece of a landed file begins, `WHOLE` for any other shard; `bytes` and `digest` are then
    those of the piece. `fields` are the names that fields of a landed file's records have in place of those of
    `schema.FIELDS`, as canonical JSON, "" for none: whoever reads the shard reads the same fields. `library` is the
    distribution that brings a landed file's format, and its version (`name==1.0`), "" for a format of ours.
    """

    path: str
    rows: int
    bytes: int
    digest: str
    index_digest: str = ""
    below: int = 0
    start: int = field(default=WHOLE, metadata={OMITTED: WHOLE})
    fields: str = field(default="", metadata={OMITTED: ""})
    library: str = field(default="", metadata={OMITTED: ""})

    @property
    def is_landed(self) -> bool:
        """Whether it is a landed file, or a piece of one."""
        return self.path.startswith(LANDING)

    @property
    def identity(self) -> str:
        """What rows read from it depend on: the digest, and of a landed file what its rows have.

        They have its name, offsets, and what the fields are that they are read from.
        """
        piece = f" {self.start}" if self.start != WHOLE else ""
        read_by = "".join(f" {by}" for by in (self.fields, self.library) if by)
        return f"{self.digest} {self.path}{piece}{read_by}" if self.is_landed else self.digest

    @property
    def weight(self) -> int:
        """Bytes that a reader of all columns reads."""
        return self.bytes + self.below


Shards = tuple[Shard, ...]

QUICK = {b"refinery.compression": b"quick"}
"""Metadata of the schema of a kernel's rows, if they are hashes and ids: they are compressed at the lowest level.

At the usual one it takes twice as long and saves no byte. The metadata is not stored.
"""

BUCKET_BYTES = 128_000_000
"""Bytes of the input that one bucket is to have: as text, three to four times as many, of which a task has two copies.

The buckets of stages follow from it: another number is a new version of each.
"""

PARALLEL_BYTES = 4_000_000
"""Bytes of the input that are worth a bucket of their own, so that another core can have it.

A bucket costs `dedup_minhash` about 0.1 s of processor time by itself, and so many bytes 2 s (`run/unit_costs.py`).
"""

PARALLEL_BUCKETS = 8
"""Buckets of an input that one task could hold, at most: as many tasks can run at once."""


def buckets_for(shards: Shards, least: int = 1) -> int:
    """Return how many buckets the rows of these shards ask for: a power of two, from `least` on.

    It follows from their bytes alone. Powers of two keep the buckets of a growing dataset within those of its history.
    """
    weight = sum(shard.weight for shard in shards)
    parallel = min(-(-weight // PARALLEL_BYTES), PARALLEL_BUCKETS)
    wanted = max(-(-weight // BUCKET_BYTES), parallel, least)
    return min(1 << (wanted - 1).bit_length(), MOST_BUCKETS)


@dataclass(frozen=True, slots=True)
class Layer:
    """What a kernel stores that yields every row of its first input in order, judged or annotated.

    A layer has the columns that the kernel adds, and which rows go on. All other columns stay in the shard below, the
    kernel's first input, and are read from there. `stores` names columns that the layer has for every row, even where
    the first input has them too. `changes` names those that it has for the rows whose value differs: columns of text,
    bytes and numbers, not of lists or structs. Any other column must come out as it went in. A column of the first
    input that the kernel leaves out is no column of the output. `reads` names the columns that the kernel gets besides;
    without any it gets all.

    `kept_only` names columns that rejected rows do not have, so that who reads those needs no landed file: they are
    null there.

    A `shared` layer follows from the kernel, its arguments and its input alone: every run of the stage that asks for
    the same finds it, whatever its other params and its fingerprint. Its kernel rejects nothing.
    """

    reads: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    kept_only: tuple[str, ...] = field(default=(), metadata={OMITTED: ()})
    shared: bool = False


class HistoryReader(Protocol):
    """What a kernel gets of a history section that has a key: its rows as a stream, or the rows of some keys.

    Rows are sorted by key or, where several shards come as one (`broadcast`), by key within each shard.
    """

    def __iter__(self) -> Batches:
        """Yield all rows; at least one batch, empty if there are none."""

    def rows(self, wanted: Array) -> pa.Table:
        """Return the rows whose key is in `wanted`; keys may be given in any order."""

    def first(self, column: str) -> object:
        """Return the first row's value of `column`, or None if there are no rows."""


class Keyed(Protocol):
    """What a kernel gets of a list whose segments come as `broadcast` (see `Engine.keyed`)."""

    def rows(self, wanted: Array) -> pa.Table:
        """Return the rows whose key is in `wanted`; keys may be given in any order."""

    def between(self, first: str, stop: str) -> Batches:
        """Yield the rows whose key, a text, is not before `first`, and before `stop`."""


class KnownRows(Protocol):
    """What a kernel gets of a cache: columns of rows that an earlier task computed (see `Engine.map`)."""

    def rows(self, texts: pa.Array) -> pa.Table:
        """Return what is known of each text, in order: `known`, and the columns of the cache, null where it is not."""


class Parts(str):
    """The name of a cache that a kernel adds to while it runs (see `Engine.map`)."""

    __slots__ = ()


class KeptRows(KnownRows, Protocol):
    """What a kernel gets of a cache that it adds to while it runs (see `Engine.map`)."""

    def keep(self, rows: pa.RecordBatch) -> None:
        """Keep rows: their `text`, by which they are looked up, and the columns of the cache, which follow from it."""


@dataclass(frozen=True, slots=True)
class Section:
    """One named table of a stage's history: its columns, and the columns by which its rows are sorted and looked up.

    With `key`, each shard is sorted by `key`, then `order`, and stored as a segment: a kernel of a later snapshot
    gets a `HistoryReader` of it, which reads the pages of a few keys and nothing else. Without `key`, shards are
    stored as they are, and a later kernel gets plain batches.
    """

    schema: pa.Schema
    key: str = ""
    order: tuple[str, ...] = ()


class Engine(Protocol):
    """Where kernels run; every engine gives the same shards, byte for byte."""

    def history(self, section: str) -> tuple[Shards, ...]:
        """Return the shards of a section as earlier snapshots saved them, one entry per snapshot, oldest first.

        Snapshots in a row that were compacted are one entry. Snapshots that saved no shard have none.
        """

    def in_buckets(self, documents: Shards) -> int:
        """Return in how many buckets by `id` documents come, 0 if they are in none.

        A layer keeps the buckets of the shards below. Those of several stages are none, and some of the buckets of a
        stage are none, too: where a partition was quarantined since, the others are not all there is.
        """

    def digest(self, file: FilePath) -> str:
        """Return the digest of a file or folder that the params name, for a kernel that does not read it."""

    def keyed(self, file: FilePath) -> Shards:
        """Return the segments that a list which the params name has its rows in, to look them up by `broadcast`.

        There are none of no file, and of a list that has its rows itself.
        """

    @property
    def rejected(self) -> Mapping[str, int]:
        """Reason -> rows rejected so far in this run; reasons that start with `error:` are quarantined."""

    def map(
        self,
        kernel: Kernel,
        *inputs: Shards,
        broadcast: Shards = (),
        layer: Layer | None = None,
        shared: bool = False,
        reads: tuple[str, ...] = (),
        prepare: Prepare | None = None,
        cache: str = "",
    ) -> Shards:
        """Run `kernel` once per shard; several inputs are zipped shard by shard.

        History that was saved in another number of buckets is lined up by the ranges of its buckets.

        Every call also gets all of `broadcast` as one last stream when `broadcast` is not empty
        (a plan, a model, a list: small things that every shard needs), or as one `HistoryReader` when all its
        shards are of a section with a key: of those only the pages of the keys that are read are fetched.
        With `layer`, what the kernel says of the rows of its first input is stored, and not the rows again.
        With `shared`, what it yields follows from the kernel, its arguments and its inputs alone, and it rejects
        nothing: every run of the stage that asks for the same finds it, whatever its fingerprint.
        `reads` names the columns that the kernel gets of its first input, where it has them; without any it gets all.
        With `prepare` the kernel has a state, its first argument: what `prepare` returned in this worker, which stays
        for the next shards. Such a verb alone is given the GPUs and the memory of the stage's resources, and the
        attempt whose receipt is committed first decides: a state may compute on other hardware elsewhere.
        With `cache` the columns that a layer adds follow from the row's `text` and the state alone: they are kept under
        that name, and the kernel gets `KnownRows`, those that are known, as its last argument. With `Parts` of
        a name it gets `KeptRows` there, and says itself what is kept: what takes minutes is kept while it runs.
        """

    def index(self, kernel: Kernel, *inputs: Shards, by: tuple[str, ...], broadcast: Shards = ()) -> Shards:
        """Run `kernel` once per shard, as in `map`; it yields rows sorted by these columns.

        A kernel that gets the shards as `broadcast` looks rows up in them by the first column (`HistoryReader`).
        """

    def group(self, kernel: Kernel, rows: Shards, *, by: str, order: Sequence[str] = (), buckets: int) -> Shards:
        """Bring equal `by` values into one bucket, sorted by `by` then `order`; run `kernel` once per bucket.

        `by` and `order` together must order the rows totally: engines differ in ties.
        """

    def save_history(self, section: str, *inputs: Shards, kernel: Kernel | None = None) -> Shards:
        """Commit shards with the manifest as this snapshot's entry of a history section, and return them as saved.

        Saved is the one input or, with `kernel` (for a section with a key), what the kernel yields for the inputs,
        as in `map` but stored once. A kernel that gets saved shards of a section with a key as `broadcast` looks rows
        up in them by key.
        """


class Idle(NamedTuple):
    """What of a stage has nothing to work with: `lacks` says what is missing, `remedy` how to give it."""

    lacks: str
    remedy: str

    def __str__(self) -> str:
        """Return it as people read it, everywhere by the same word."""
        return f"idle: {self.lacks} ({self.remedy})"


@dataclass(frozen=True, slots=True)
class Stage(Generic[P]):
    """The card that each stage module exports as `STAGE`.

    `version` is bumped when output changes for the same params. `splits` promises that run(a + b) == run(a) + run(b),
    so Airflow may map it over partitions. `profiled` names output columns that are profiled into the manifest's metrics
    (whole numbers: count, sum and a histogram; ratios: a histogram; strings: value counts). `spread` names columns of
    which `group` leaves the place to chance: the manifest counts where their values are. `reasons` lists every reason
    the stage can give. `history` declares the sections that the stage saves. `reads_history` is False for a stage that
    saves history only for readers outside the pipeline: its output does not depend on earlier snapshots.
    `resources` returns the files that params name: their digests, not their paths, are part of identity. `check_files`
    reads them and raises RecipeError for one that is not what the params take it for. `secret`
    returns the field of params that needs a secret, or "": the runner fills it in, and its check is part of identity.
    `libraries` names those whose output decides rows, each with whether it does by these params: their versions are
    identity. Libraries behind a state are none: what a state computes differs between classes of hardware, too.
    `conserves` says what comes out as it went in: rows, rows as often as their column `copies` says, rows and as many
    more as their column `n_generated` says (offspring), or tokens.
    `reads_for` and `writes_for` return the columns that depend on params, beyond `reads` and `writes`. `for_columns`
    returns the params for an input that has these columns. `idle` returns what of the stage has nothing to work with,
    by its params and, after a run, by the profiles of the rows that it kept (before one there are none). `has_state`
    returns whether a kernel has a state by these params: no other is given a GPU. `clears_personal_data` says that the
    texts, titles and addresses that it keeps are for more people than those that it gets: those who may see kept ones.
    `removes` is what its removals say, `cost` what it takes per byte that it reads. `canceled` yields the params that
    another one, or an absent one, turns off. `wiring` says how a recipe has it. `suite` is the path of its suite of
    expectations, if it is of another distribution. `bounds` returns the params that are bounds on what rows store.
    Where they decide together, `redecide` returns the reason of each row, kept or rejected, by each of some other
    bounds (values by their params). `copies` is how it removes documents for the sake of others. `vectors` returns the
    model whose vectors the stage makes, or that its own files were made of, by params whose files are on this machine.
    `buckets` says how its documents come out in buckets. `no_page` are those of its reasons that say that a record
    brings no new page, and `replaces` those that say that its generated texts go on in its place. `remarks` yields what
    lint says of params that let everything pass, or that decide what nobody checked; they have the secret that they
    need where the environment has it. `empty` says what an empty section of a recipe means, where that is narrower than
    one may think. `languages` returns the languages that
    params decide on, as a manifest has these. `unread` returns what is idle for documents in these languages. `spans`
    says where in texts it finds something. `dials` returns the params that say how much of its source a text has.
    `again` returns what computes again what its model stored, by params whose files are on this machine.
    `changes` names columns that come out with other values, and `derived_from` those that these, what it adds and which
    rows it keeps follow from, if not all that it reads. These are facets (`facets`): they are no identity.
    """

    name: str
    run: Callable[[Shards, P, Engine], Shards]
    params: type[P]
    reads: pa.Schema
    writes: pa.Schema
    version: int
    splits: bool
    history: Mapping[str, Section] = field(default_factory=dict)
    reads_history: bool = True
    resources: Callable[[P], tuple[str, ...]] | None = None
    check_files: Callable[[P], None] | None = None
    secret: Callable[[P], str] | None = None
    reads_for: Callable[[P], tuple[str, ...]] | None = None
    writes_for: Callable[[P], pa.Schema] | None = None
    for_columns: Callable[[P, frozenset[str]], P] | None = None
    idle: Callable[[P, Mapping[str, Any]], tuple[Idle, ...]] | None = None
    has_state: Callable[[P], bool] | None = None
    libraries: Mapping[str, Callable[[P], bool]] = field(default_factory=dict)
    conserves: Conserved = "rows"
    clears_personal_data: bool = False
    engine: str = "spark"
    profiled: tuple[str, ...] = ()
    spread: tuple[str, ...] = ()
    reasons: tuple[str, ...] = field(default=())
    title: str = ""
    removes: Removal = ""
    cost: UnitCost = DEAREST
    canceled: Callable[[P], Iterator[Canceled]] | None = None
    wiring: Wiring = PLAIN
    suite: str = ""
    bounds: Callable[[P], tuple[Bound, ...]] | None = None
    redecide: Callable[[P, pa.RecordBatch, Sequence[Mapping[str, float]]], list[pa.Array]] | None = None
    vectors: Callable[[P], VectorModel] | None = None
    copies: Copies = NO_COPIES
    buckets: Grouped | None = None
    no_page: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    remarks: Callable[[P], Iterator[str]] | None = None
    empty: str = ""
    languages: Callable[[Mapping[str, Any]], Languages] | None = None
    unread: Callable[[P, Iterable[str]], tuple[Idle, ...]] | None = None
    spans: Spans | None = None
    dials: Callable[[P], tuple[Dial, ...]] | None = None
    again: Callable[[P], Again] | None = None
    changes: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()

    def written(self, params: P) -> pa.Schema:
        """Return all columns that the stage promises for `params`."""
        return pa.schema([*self.writes, *(self.writes_for(params) if self.writes_for else ())])

    def libraries_of(self, params: P) -> tuple[str, ...]:
        """Return the libraries whose output decides rows by these params, in order."""
        return tuple(sorted(name for name, is_used in self.libraries.items() if is_used(params)))


def always(_: object) -> bool:
    """Return that a library decides rows whatever the params are."""
    return True


def reject(batch: pa.RecordBatch, reasons: pa.Array, evidence: pa.Array | None = None) -> pa.RecordBatch:
    """Mark rows of `batch`: null keeps a row, `stage:why` rejects it, `error:why` quarantines it.

    `evidence` is canonical JSON text per row (every failing rule with value and bound), null where kept.
    """
    marked = replace_column(batch, "reason", reasons.cast(pa.string()))
    proof: Any = evidence if evidence is not None else pa.nulls(batch.num_rows, pa.string())
    return replace_column(marked, "evidence", proof.cast(pa.string()))


def column_of(batch: pa.RecordBatch, name: str, where: str) -> pa.Array:
    """Return a column, or the field of a struct column that `struct.field` names; RecipeError names `where` it is not.

    A column whose own name has the point is meant first.
    """
    if name in batch.schema.names:
        return batch[name]
    top, *inner = name.split(".")
    if top not in batch.schema.names:
        message = f"{where}: the documents have no column {top!r}; they have {', '.join(batch.schema.names)}"
        raise RecipeError(message)
    column = batch[top]
    for part in inner:
        names = [entry.name for entry in column.type] if pa.types.is_struct(column.type) else []
        if part not in names:
            message = f"{where}: {top} has no field {part!r}; it has {', '.join(names) or 'none'}"
            raise RecipeError(message)
        column = pc.struct_field(column, part)
    return column


def replace_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Return `batch` with each of the columns as `replace_column` sets it."""
    for name, values in columns.items():
        batch = replace_column(batch, name, values)
    return batch


def replace_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return `batch` with column `name` set to `values`, in place if it exists, else appended."""
    at = batch.schema.get_field_index(name)
    if at >= 0:
        return batch.set_column(at, pa.field(name, values.type), values)
    return batch.append_column(pa.field(name, values.type), values)
