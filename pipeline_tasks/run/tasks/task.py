"""Tasks, which an engine hands to workers: one kernel over one shard or bucket, and the receipt of what it stored."""

import contextlib
import functools
import itertools
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import ContractError, KernelFailed, RefineryError, cause
from pipeline_tasks.libraries import Libraries, installed, release, require_same
from pipeline_tasks.manifest import WRITER, schema_pairs, shard_of
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.field_types import FieldCounts, summed
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.removals import columns_profiled
from pipeline_tasks.profiles.spread import Counts, SpreadCounter
from pipeline_tasks.run.tasks.cancellation import raise_if_canceled
from pipeline_tasks.run.tasks.fence import require_unerased
from pipeline_tasks.run.tasks.landed_files import LandedFiles
from pipeline_tasks.run.tasks.layered import LayerInput, columns_read
from pipeline_tasks.run.tasks.model_budget import NO_HOURS, Hours, ModelBudget
from pipeline_tasks.run.tasks.poison import NAMED, is_of_rows, require_sound
from pipeline_tasks.run.tasks.row_cache import NEWEST, CachedRows, KnownRows
from pipeline_tasks.run.tasks.row_parts import RowParts
from pipeline_tasks.run.tasks.sorted_runs import RUN_BYTES
from pipeline_tasks.run.tasks.state_cost import Hardware
from pipeline_tasks.run.tasks.states import State, hardware_of, state_of
from pipeline_tasks.run.tasks.stopwatch import Stopwatch
from pipeline_tasks.schema import N_GENERATED, VERDICT, brings_offspring
from pipeline_tasks.scorers.faults import is_panic
from pipeline_tasks.sealed import canonical, digest_of, seal, unseal
from pipeline_tasks.seams import REFINERY
from pipeline_tasks.stage import Batches, HistoryReader, Kernel, Layer, Prepare, Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import localize
from pipeline_tasks.store.protocol import Store
from pipeline_tasks.store.s3 import waits as s3_waits
from pipeline_tasks.store.s3.waits import NO_WAITS, Waits
from pipeline_tasks.store.shards.file import ShardWriter, is_stored
from pipeline_tasks.store.shards.layer_columns import ROW
from pipeline_tasks.store.shards.rows import Columns, Landed, ShardRows, facts_of, metadata_of, read_shard
from pipeline_tasks.store.shards.segment import Segment, Segments
from pipeline_tasks.store.shards.segment_writer import SegmentWriter
from pipeline_tasks.text.page import sandbox

T = TypeVar("T")

_RELEASE = release()

Files = tuple[tuple[str, str], ...]
"""Paths of files and folders that params name, with digests."""


@dataclass(frozen=True, slots=True)
class StageIO:
    """Where the tasks of one stage read and write, how input is cut into batches, and how much is sorted in memory.

    `prefix` is the stage's own, relative to `root`, and `shared` that of its shared layers; `profiled` names output
    columns to profile, and `spread` those whose values are counted by where they are; `snapshot` and `landing` are the
    id and the folder of the landed snapshot; `files` are the paths of what the stage reads, with digests, and `implied`
    those of them that no param has, such as a packaged model or the files of a folder: any kernel may read them.
    `libraries`, `writer` and `release` are the versions of what decides and writes rows where the stage was planned: a
    worker with others refuses its tasks. `erasures` is the number of the last erasure before anything was read. `hours`
    are those that the stage's model may have.
    """

    root: str
    prefix: str
    profiled: tuple[str, ...] = ()
    spread: tuple[str, ...] = ()
    batch_rows: int = 4096
    run_bytes: int = RUN_BYTES
    snapshot: str = ""
    landing: str = ""
    files: Files = ()
    implied: Files = ()
    shared: str = ""
    libraries: Libraries = field(default_factory=dict)
    writer: str = WRITER
    release: str = _RELEASE
    erasures: int = 0
    hours: Hours = NO_HOURS


Stream = Batches | HistoryReader | LayerInput
"""One input of a kernel."""

Known = KnownRows | RowParts
"""What a kernel gets of its cache."""


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel call, as a worker gets it. `inputs` has one tuple of shards per stream.

    For map it is one shard, of history those of the overlapping buckets.

    With `sorted_by`, what the kernel keeps is sorted by those columns and stored as a segment; with `layer`, what it
    says of the rows of its first input is. `reads` names the columns of the first input that it gets, all if empty.
    `state` is what the kernel gets first.
    """

    io: StageIO
    key: str
    kernel: Kernel
    inputs: tuple[Shards, ...]
    broadcast: Shards = ()
    sorted_by: tuple[str, ...] = ()
    layer: Layer | None = None
    reads: tuple[str, ...] = ()
    state: State | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one task stored; byte-identical between attempts. `below` is the shard under a layer.

    `hardware` is what computed the rows of a kernel with a state, by what is computed: the receipt that is committed
    first says it, and no manifest. An engine may hold the receipts of all tasks of a verb, so columns and the names in
    profiles are shared between them. `fields` counts those of a landed file's records, and `offspring_in` the generated
    texts that the rows of a shard brought, None if the kernel did not read how many they are.
    """

    key: str
    shard: Shard
    rejects: Shard | None
    quarantine: Shard | None
    tally: Mapping[str, int]
    landed_rows: int
    schema: tuple[tuple[str, str], ...]
    kept_profile: Mapping[str, Any]
    rejects_profile: Mapping[str, Any]
    below: Shard | None = None
    spread: Counts = field(default_factory=dict, metadata={OMITTED: {}})
    hardware: Hardware = field(default_factory=dict, metadata={OMITTED: {}})
    fields: FieldCounts = field(default_factory=dict, metadata={OMITTED: {}})
    offspring_in: int | None = field(default=None, metadata={OMITTED: None})

    def __post_init__(self) -> None:
        """Take the parts that earlier receipts of this process have."""
        object.__setattr__(self, "schema", _first_of_equals(self.schema))
        for name in ("tally", "kept_profile", "rejects_profile"):
            object.__setattr__(self, name, _with_shared_names(getattr(self, name)))

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """Pickle as a call of the class: receipts that workers send share their parts, too."""
        return type(self), tuple(getattr(self, declared.name) for declared in fields(self))


@functools.lru_cache(maxsize=64)
def _first_of_equals(columns: Columns) -> Columns:
    """Return the first of equal columns that this was called with: the cache has it."""
    return columns


def _with_shared_names(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a profile whose names, at any depth, are interned."""
    return {
        sys.intern(name): _with_shared_names(part) if isinstance(part, Mapping) else part
        for name, part in profile.items()
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """A receipt, and what the attempt cost: seconds, and what it read of history (rows, pages, bytes, requests).

    The cost is not part of identity: compacted history costs less and has the same rows. `s3_waits` are those of the
    worker's process since its last task. `kernel` are the seconds in the kernel: not of reading, nor of storing.
    """

    receipt: Receipt
    wall: float = 0.0
    cpu: float = 0.0
    history_reads: Mapping[str, int] = field(default_factory=dict)
    s3_waits: Waits = NO_WAITS
    kernel: float = 0.0


KEY_DIGITS = 32
"""Hex digits of a task's key."""


def task_key(kernel: Kernel, inputs: Sequence[Shards], broadcast: Shards, extra: Sequence[object] = ()) -> str:
    """Return a task's identity within its stage: the kernel, its arguments, and the content of its input."""
    identities = [[shard.identity for shard in stream] for stream in inputs]
    return digest_of([kernel_name(kernel), identities, [shard.digest for shard in broadcast], list(extra)], KEY_DIGITS)


def kernel_name(kernel: Callable[..., Any]) -> str:
    """Return a kernel's dotted name with its bound arguments."""
    if isinstance(kernel, functools.partial):
        bound = canonical([list(kernel.args), kernel.keywords]).decode()
        return f"{kernel_name(kernel.func)}{bound}"
    return task_function(kernel)


def task_function(kernel: Callable[..., Any]) -> str:
    """Return a kernel's dotted name."""
    function = cast("Any", kernel.func if isinstance(kernel, functools.partial) else kernel)
    return f"{function.__module__}.{function.__qualname__}"


def receipt_path(prefix: str, key: str) -> str:
    """Return where a task's receipt is kept."""
    return f"{prefix}/receipts/{key}.json"


def load_receipt(body: bytes, path: str = "receipt") -> Receipt:
    """Read a stored receipt; `path` names it in the error when it is not one."""
    way_out = "remove it and run again: only its shard is written again"
    raw = unseal(body, path, way_out)
    try:
        for name in ("shard", "rejects", "quarantine", "below"):
            raw[name] = shard_of(raw[name]) if raw[name] else None
        raw["schema"] = tuple((name, kind) for name, kind in raw["schema"])
        return Receipt(**raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{path} is not a receipt ({cause(error)}); {way_out}"
        raise ContractError(message) from error


def stored_receipt(store: Store, prefix: str, key: str) -> Receipt | None:
    """Return the receipt of an earlier attempt; None if there is none that can be believed.

    A receipt is believed if it is whole, is that of `key`, and names stored shards of this stage by their contents'
    digests and sizes. Any other is replaced when the task has run again. Another attempt that ends may remove it at any
    time.
    """
    path = receipt_path(prefix, key)
    try:
        receipt = load_receipt(store.read(path), f"{store.root}/{path}")
    except (FileNotFoundError, ContractError):  # the task runs again, which heals one that is no receipt
        return None
    shards = [shard for shard in (receipt.shard, receipt.rejects, receipt.quarantine) if shard]
    own = receipt.key == key and all(shard.path.startswith(f"{prefix}/") for shard in shards)
    return receipt if own and all(is_stored(store.root, shard, store.size(shard.path)) for shard in shards) else None


def commit_receipt(store: Store, prefix: str, receipt: Receipt, *, first_wins: bool = False) -> Receipt:
    """Commit the receipt of a task that has run, and return it; one that cannot be believed is removed first.

    DeterminismViolation if another attempt's receipt can be believed and is not the same; with `first_wins` that one is
    returned.
    """
    path, body = receipt_path(prefix, receipt.key), seal(receipt)
    if storage.keep(store, path, body) == body:
        return receipt
    committed = stored_receipt(store, prefix, receipt.key)
    if committed is None:
        store.delete(path)
    elif first_wins:
        return committed
    storage.commit(store, path, body)
    return receipt


# --- Running a task -------------------------------------------------------------------------------------------


def run(task: Task) -> Outcome:
    """Read the input, run the kernel, store its kept and rejected rows, then the receipt."""
    counts: list[FieldCounts] = []
    return run_stream(task, _open_first(task, task.inputs[0], counts), landed=is_landed(task.inputs), counts=counts)


def _open_first(task: Task, shards: Shards, counts: list[FieldCounts]) -> Stream:
    landed = landed_files(task.io, counts).read
    if task.layer:
        return _open_below(task.io, shards[0], task.layer, landed)
    if is_landed(task.inputs):
        return _read_stream(task.io, shards, landed)
    if task.reads:
        return read_shard(task.io.root, shards[0], batch_rows=task.io.batch_rows, columns=task.reads)
    return _open_stream(task.io, shards)


def run_stream(task: Task, first: Stream, *, landed: bool = False, counts: Iterable[FieldCounts] = ()) -> Outcome:
    """As `run`, over a first input that is already open; `counts` has those of its fields when it was read."""
    started, cpu = time.perf_counter(), _processor_time()
    counted, below = _Counted(first), first if isinstance(first, LayerInput) else None
    with _started(task) as (kernel, hardware), _Split(task.io, task.sorted_by, below) as split:
        budget = ModelBudget(task.io.root, task.io.hours if task.state else NO_HOURS)
        cached = _cached_rows(task, hardware, budget)
        known = [cached.known] if cached else []
        rest = [*_open_others(task), *known]
        try:
            for batch in (watch := Stopwatch()).timed(kernel(iter(counted), *rest)):
                raise_if_canceled()
                budget.spend()
                split.write(batch)
                if cached:
                    cached.add(batch)
            for _ in counted:  # a kernel that stopped early has still been given every row
                pass
        except BaseException as error:
            _stop(cached, budget)
            if counted.last is not None and is_of_rows(error):
                require_sound(
                    _rows_to_try(task, counted),
                    counted.last.schema.names,
                    lambda rows: _error_of(kernel, rows, [*_open_others(task), *known]),
                    f"{task.io.prefix}: the kernel {task_function(task.kernel)}",
                )
            if is_panic(error):
                message = f"{task.io.prefix}: a library of the kernel {task_function(task.kernel)} ended ({error})"
                raise KernelFailed(message) from error
            raise
        budget.note()
        offspring = counted.offspring if task.inputs else None  # a bucket has parts of shards
        receipt = split.receipt(task.key, counted.rows if landed else 0)
        receipt = replace(receipt, fields=summed(counts), offspring_in=offspring)
    if task.state and hardware:
        computed = cached.store() if cached else {hardware: counted.rows}
        receipt = replace(receipt, hardware={task.state.computes: computed} if any(computed.values()) else {})
    written = (receipt.shard, receipt.rejects, receipt.quarantine)
    read = (*task.inputs, task.broadcast) if task.inputs else ()
    require_unerased(task.io.root, task.io.erasures, read, written, cached.stored if cached else ())
    store = storage.connect(task.io.root)
    receipt = commit_receipt(store, task.io.prefix, receipt, first_wins=task.state is not None)
    history_reads: Counter[str] = Counter()
    for stream in (first, *rest):
        history_reads.update(stream.cost if isinstance(stream, Segment | Segments | KnownRows | RowParts) else {})
    wall, cpu_spent = time.perf_counter() - started, _processor_time() - cpu
    inside = watch.seconds - counted.seconds - (cached.known.seconds if cached else 0.0)
    return Outcome(receipt, wall, cpu_spent, dict(history_reads), s3_waits.take(), max(inside, 0.0))


def _stop(cached: CachedRows | RowParts | None, budget: ModelBudget) -> None:
    """Keep what a task that fails has computed, and note what it has spent."""
    if cached:
        cached.stop()
    with contextlib.suppress(RefineryError):  # its own error is the one to show
        budget.note()


def _open_others(task: Task) -> list[Stream | Known]:
    """Return the inputs of a kernel behind the first one, of an actual task or of a bucket's, which has none."""
    others: list[Stream | Known] = [_open_stream(task.io, shards) for shards in task.inputs[1:]]
    return [*others, _open_all(task.io, task.broadcast)] if task.broadcast else others


def _rows_to_try(task: Task, counted: "_Counted") -> Batches:
    """Return the rows of the first input that a kernel may have raised on, with their places where they have one.

    Shards are read again. The rows of a bucket come once: those before the batch in hand have passed the kernel.
    """
    if len(task.inputs) == 0 or counted.last is None:
        return itertools.chain(filter(None, [counted.last]), counted)
    columns, landed = (*counted.last.schema.names, *NAMED), landed_files(task.io).read
    read = functools.partial(read_shard, task.io.root, batch_rows=task.io.batch_rows, columns=columns, landed=landed)
    return itertools.chain.from_iterable(map(read, task.inputs[0]))


def _error_of(kernel: Kernel, rows: pa.RecordBatch, others: Sequence[Stream | Known]) -> BaseException | None:
    """Return the error that a kernel raises for these rows alone, None if it raises none."""
    try:
        deque(kernel(iter([rows]), *others), maxlen=0)
    except BaseException as error:
        if not is_of_rows(error):
            raise
        return error
    return None


@contextlib.contextmanager
def _started(task: Task) -> Iterator[tuple[Kernel, str]]:
    """Give the kernel of a task, pointed at this machine's files and given its state, and the state's hardware.

    The files that prepare a state are looked at where the state has to be made, and not for one that waits here.
    """
    _require_planned(task.io)
    for uri, digest in task.io.implied:
        localize(uri, digest)  # raises if it is another here
    kernel = _with_local_files(task.kernel, task.io.files)
    if task.state is None:
        yield kernel, ""
        return
    with state_of(task.state.name, functools.partial(_prepared, task.state.prepare, task.io.files)) as state:
        yield functools.partial(kernel, state), hardware_of(state)


def _require_planned(stage_io: StageIO) -> None:
    """Raise JobLost unless what decides and writes rows has here the versions by which the stage was planned."""
    planned = {**stage_io.libraries, **_versions(stage_io.writer), REFINERY: stage_io.release}
    here = {**installed(stage_io.libraries), **_versions(WRITER), REFINERY: _RELEASE}
    require_same(planned, here, socket.gethostname())


def _versions(writer: str) -> dict[str, str]:
    """Return the libraries that a writer names with their versions."""
    return dict(part.rsplit("-", 1) for part in writer.split())


def _prepared(prepare: Prepare, files: Files) -> object:
    """Return a new state, prepared from this machine's files."""
    return _with_local_files(prepare, files)()


def _cached_rows(task: Task, hardware: str, budget: ModelBudget) -> CachedRows | RowParts | None:
    """Return what collects the rows of a task for its cache, if it has one."""
    root, state = task.io.root, task.state
    if state is None or not state.cache:
        return None
    known = KnownRows(root, state.known, len(state.known) if state.parts else NEWEST)
    if state.parts:
        source = digest_of([[shard.identity for shard in stream] for stream in task.inputs], KEY_DIGITS)
        return RowParts(root, state.cache, source, known, hardware, budget)
    return CachedRows(root, state.cache, task.layer.stores if task.layer else (), known, hardware)


def _processor_time() -> float:
    """Return the seconds of processor time of this process and of its extractors, which are processes of their own."""
    return time.process_time() + sandbox.seconds_spent()


def is_landed(inputs: Sequence[Shards]) -> bool:
    """Return whether a task reads a file as it landed."""
    return any(shard.is_landed for shard in inputs[0])


class _Counted:
    """A stream that counts the rows read through it, what they bring, and the seconds that reading them took."""

    def __init__(self, batches: Stream) -> None:
        self.rows, self._watch = 0, Stopwatch()
        self.offspring: int | None = None
        """Generated texts that the rows bring; None if they have no column that says how many."""
        self.last: pa.RecordBatch | None = None
        """The batch that was read last; None before the first, and where reading failed."""
        self._batches = self._count(batches)

    @property
    def seconds(self) -> float:
        """Seconds spent on reading."""
        return self._watch.seconds

    def _count(self, batches: Stream) -> Batches:
        try:
            for batch in self._watch.timed(iter(batches)):
                self.rows, self.last = self.rows + batch.num_rows, batch
                if brings_offspring(batch.schema):
                    self.offspring = (self.offspring or 0) + (pc.sum(batch.column(N_GENERATED)).as_py() or 0)
                yield batch
        except BaseException:
            self.last = None
            raise

    def __iter__(self) -> Batches:
        return self._batches


def _open_below(stage_io: StageIO, shard: Shard, layer: Layer, landed: Landed) -> LayerInput:
    """Return the first input of a kernel that writes a layer, with the columns that it reads."""
    columns = columns_read(layer, stage_io.profiled)
    rows = ShardRows(stage_io.root, shard, batch_rows=stage_io.batch_rows, columns=columns, landed=landed)
    return LayerInput(rows, shard, layer)


def _open_stream(stage_io: StageIO, shards: Shards) -> Batches | HistoryReader:
    """Return one input of a kernel: a `HistoryReader` if its shards are segments, else their batches."""
    if len(shards) == 1 and shards[0].index_digest:
        return Segment(stage_io.root, shards[0], stage_io.batch_rows)
    return _open_all(stage_io, shards)


def _open_all(stage_io: StageIO, shards: Shards) -> Batches | HistoryReader:
    """Return shards as one stream: one `HistoryReader` if all are segments, else their batches."""
    if all(shard.index_digest for shard in shards):
        return Segments(stage_io.root, shards, stage_io.batch_rows)
    return _read_stream(stage_io, shards, landed_files(stage_io).read)


def _read_stream(stage_io: StageIO, shards: Shards, landed: Landed) -> Batches:
    read = functools.partial(read_shard, stage_io.root, batch_rows=stage_io.batch_rows, landed=landed)
    return itertools.chain.from_iterable(map(read, shards))


def read_input(stage_io: StageIO, shard: Shard) -> Batches:
    """Yield the rows of a landed file, or of a committed shard."""
    return _read_stream(stage_io, (shard,), landed_files(stage_io).read)


def landed_files(stage_io: StageIO, counts: list[FieldCounts] | None = None) -> LandedFiles:
    """Return the landed files that the tasks of a stage read; `counts` takes those of the fields of their records."""
    return LandedFiles(stage_io.landing, stage_io.snapshot, stage_io.batch_rows, counts)


def files_named(kernel: Callable[..., Any], files: Files) -> Files:
    """Return the files that a kernel's arguments name: of those that params have it can read no other."""
    named = kernel_name(kernel)
    return tuple(file for file in files if canonical(file[0]).decode() in named)


def _with_local_files(kernel: Callable[..., T], files: Files) -> Callable[..., T]:
    """Point a kernel's arguments at this machine's copies of the files that they name."""
    moved = {uri: localize(uri, digest) for uri, digest in files_named(kernel, files)}
    moved = {uri: local for uri, local in moved.items() if uri != local}
    if not moved or not isinstance(kernel, functools.partial):
        return kernel
    keywords = {name: repoint(value, moved) for name, value in kernel.keywords.items()}
    return functools.partial(kernel.func, *repoint(kernel.args, moved), **keywords)


def repoint(value: Any, moved: Mapping[str, str]) -> Any:  # noqa: ANN401 -- of the type that is given
    """Return a parameter (a scalar, tuple, mapping or frozen dataclass of them) with its paths replaced."""
    if isinstance(value, str):
        return moved.get(value, value)
    if isinstance(value, Mapping):
        return {key: repoint(item, moved) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(repoint(item, moved) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return replace(value, **{name: repoint(getattr(value, name), moved) for name in value.__dataclass_fields__})
    return value


class _Split:
    """Sends a kernel's rows to the kept, rejected and quarantined shards, and profiles what is kept.

    Of a kernel that writes a layer over `below`, shards have what it says of the rows. Rejected records of a landed
    file are stored with all columns that the kernel yields, so that a reader needs the landed file for none.
    """

    def __init__(self, stage_io: StageIO, sorted_by: Sequence[str] = (), below: LayerInput | None = None) -> None:
        self._io = stage_io
        self._sorted_by = sorted_by
        self._below = below
        self._writers: dict[str, ShardWriter | SegmentWriter] = {}
        self._tally: Counter[str] = Counter()
        self._profiles: list[Mapping[str, Any]] = []
        self._reject_profiles: list[Mapping[str, Any]] = []
        self._spread = SpreadCounter(stage_io.spread)
        self._columns: Columns = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.discard()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch that a kernel yielded."""
        rows = batch.select([name for name in batch.schema.names if name not in VERDICT.names])
        stored = self._below.stored(rows) if self._below else rows
        if "data" not in self._writers:
            self._columns = self._below.facts(rows.schema).columns if self._below else schema_pairs(rows.schema)
            self._writer("data", stored.schema, rows.schema)
        if "reason" not in batch.schema.names:
            self._keep(stored, rows)
            return
        reasons = batch.column("reason")
        self._keep(*_filtered(stored, self._watched(rows), pc.is_null(reasons)))
        if reasons.null_count < len(reasons):
            self._reject(*_filtered(self._with_verdict(stored, batch), batch, pc.is_valid(reasons)))

    def _watched(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of kept rows that are counted, and all of them where all are stored."""
        if self._below is None:
            return rows
        watched = {*columns_profiled(self._io.profiled), *self._io.spread}
        names = [name for name in rows.schema.names if name in watched]
        return rows.select(names or rows.schema.names[:1])

    def _keep(self, stored: pa.RecordBatch, rows: pa.RecordBatch) -> None:
        self._writers["data"].write(stored)
        if self._io.profiled and stored.num_rows:
            self._profiles.append(profile(rows, self._io.profiled))
        self._spread.add(rows)

    def _with_verdict(self, stored: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return what is stored of rows if they are rejected: as of kept rows, with the verdict."""
        if self._below is None or self._below.below.is_landed:
            return batch
        verdict = {name: batch.column(name) for name in VERDICT.names if name in batch.schema.names}
        absent = self._below.absent(batch.num_rows)
        columns = {**dict(zip(stored.schema.names, stored.columns, strict=True)), **absent, **verdict}
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _reject(self, stored: pa.RecordBatch, rejected: pa.RecordBatch) -> None:
        damaged = pc.starts_with(rejected.column("reason"), "error:")
        for folder, rows in (("quarantine", stored.filter(damaged)), ("rejects", stored.filter(pc.invert(damaged)))):
            if rows.num_rows:
                self._writer(folder, rows.schema, rejected.schema).write(rows)
        counted = pc.value_counts(rejected.column("reason"))
        self._tally.update(
            dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
        )
        if self._io.profiled:
            self._reject_profiles.append(profile(rejected, self._io.profiled))

    def _writer(self, folder: str, stored: pa.Schema, yielded: pa.Schema) -> ShardWriter | SegmentWriter:
        if folder not in self._writers:
            paged = self._sorted_by and folder == "data"
            metadata = metadata_of(self._below.facts(yielded)) if self._below and ROW in stored.names else None
            self._writers[folder] = SegmentWriter(stored, self._sorted_by) if paged else ShardWriter(stored, metadata)
        return self._writers[folder]

    def receipt(self, key: str, landed_rows: int) -> Receipt:
        """Store the shards and describe them."""
        if not self._columns:
            message = f"{self._io.prefix}: a kernel yielded nothing; even an empty shard needs one (empty) batch"
            raise ContractError(message)
        if self._below:
            self._below.finish(self._io.prefix)
        stored = {folder: self._stored(folder) for folder in self._writers}
        return Receipt(
            key=key,
            shard=stored["data"],
            rejects=stored.get("rejects"),
            quarantine=stored.get("quarantine"),
            tally=dict(sorted(self._tally.items())),
            landed_rows=landed_rows,
            schema=self._columns,
            kept_profile=merge(self._profiles),
            rejects_profile=merge(self._reject_profiles),
            below=self._below.below if self._below else None,
            spread=self._spread.counts(),
        )

    def _stored(self, folder: str) -> Shard:
        writer = self._writers[folder]
        shard = writer.store(self._io.root, f"{self._io.prefix}/{folder}")
        facts = facts_of(writer.schema)
        return replace(shard, below=facts.below.weight) if facts else shard


def _filtered(
    stored: pa.RecordBatch, rows: pa.RecordBatch, mask: pa.BooleanArray
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Return the rows of both batches that a mask has; one batch given twice is filtered once."""
    masked = stored.filter(mask)
    return masked, masked if rows is stored else rows.filter(mask)
