"""The unit of work that an engine hands to a worker: one kernel over one shard or bucket, and its receipt."""

import functools
import io
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, BinaryIO, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import canonical, digest_of, schema_pairs, shard_of
from pipeline_tasks.profiles.columns import merge, profile
from pipeline_tasks.schema import VERDICT
from pipeline_tasks.stage import LANDING, Batches, HistoryReader, Kernel, Shard, Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import mismatch
from pipeline_tasks.store.segment import Segment, Segments
from pipeline_tasks.store.segment_writer import SegmentWriter
from pipeline_tasks.store.shard_file import HashingStream, ShardWriter, read_shard

PIECE_BYTES = 32 * 1024 * 1024
"""A bucket's rows of one shard travel in Arrow streams of about this many bytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task reads and writes, and how input is cut; never part of identity, but for `profiled`."""

    root: str
    home: str
    profiled: tuple[str, ...] = ()
    batch_rows: int = 4096
    snapshot: str = ""
    landing: str = ""
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One kernel call. `inputs` has one tuple of shards per stream: one shard for map, pieces for gather.

    With `by`, what the kernel keeps is sorted by those columns and stored as a segment.
    """

    place: Place
    key: str
    kernel: Kernel
    inputs: tuple[Shards, ...]
    broadcast: Shards = ()
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one task stored; byte-identical between attempts."""

    key: str
    shard: Shard
    rejects: Shard | None
    quarantine: Shard | None
    tally: Mapping[str, int]
    landed_rows: int
    schema: tuple[tuple[str, str], ...]
    kept_profile: Mapping[str, Any]
    rejects_profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A receipt, and what the attempt cost: seconds, and what it read of history (rows, pages, bytes, requests).

    None of it is identity: history that was compacted meanwhile costs less and says the same.
    """

    receipt: Receipt
    wall: float = 0.0
    cpu: float = 0.0
    recalled: Mapping[str, int] = field(default_factory=dict)


def task_key(kernel: Kernel, inputs: Sequence[Shards], broadcast: Shards, extra: Sequence[object] = ()) -> str:
    """Return a task's identity within its stage: the kernel, its arguments, and the content of its input."""
    digests = [[shard.digest for shard in stream] for stream in inputs]
    return digest_of([kernel_name(kernel), digests, [shard.digest for shard in broadcast], list(extra)], 32)


def kernel_name(kernel: Kernel) -> str:
    """Return a kernel's dotted name with its bound arguments."""
    if isinstance(kernel, functools.partial):
        bound = canonical([list(kernel.args), kernel.keywords]).decode()
        return f"{kernel_name(kernel.func)}{bound}"
    function = cast("Any", kernel)
    return f"{function.__module__}.{function.__qualname__}"


def receipt_path(home: str, key: str) -> str:
    """Return where a task's receipt is kept."""
    return f"{home}/receipts/{key}.json"


def load_receipt(body: bytes, path: str = "receipt") -> Receipt:
    """Read a stored receipt; `path` names it in the error when it is not one."""
    try:
        raw = json.loads(body)
        for name in ("shard", "rejects", "quarantine"):
            raw[name] = shard_of(raw[name]) if raw[name] else None
        raw["schema"] = tuple((name, kind) for name, kind in raw["schema"])
        return Receipt(**raw)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{path} is not a receipt ({error}); remove it and run again: only its shard is made anew"
        raise ContractError(message) from error


# --- Running a task -------------------------------------------------------------------------------------------


def run(task: Task) -> Outcome:
    """Read the input, run the kernel, store what it kept and set aside, then the receipt."""
    streams = [_open_stream(task.place, shards) for shards in task.inputs]
    return run_streams(task, streams, landed=is_landed(task.inputs))


def run_streams(task: Task, streams: Sequence[Batches | HistoryReader], *, landed: bool = False) -> Outcome:
    """As `run`, over streams that are already open."""
    started, cpu = time.perf_counter(), time.process_time()
    kernel = _with_local_files(task.kernel, task.place.files)
    counted = _Counted(streams[0])
    rest = [*streams[1:]]
    if task.broadcast:
        rest.append(_open_beside(task.place, task.broadcast))
    with _Split(task.place, task.by) as split:
        for batch in kernel(iter(counted), *rest):
            split.write(batch)
        for _ in counted:  # a kernel that stopped early has still been given every row
            pass
        receipt = split.receipt(task.key, counted.rows if landed else 0)
    store = storage.connect(task.place.root)
    storage.commit(store, receipt_path(task.place.home, task.key), canonical(asdict(receipt)))
    recalled: Counter[str] = Counter()
    for stream in (streams[0], *rest):
        recalled.update(stream.cost if isinstance(stream, Segment | Segments) else {})
    return Outcome(receipt, time.perf_counter() - started, time.process_time() - cpu, dict(recalled))


def is_landed(inputs: Sequence[Shards]) -> bool:
    """Tell whether a task reads a file as it landed."""
    return any(shard.path.startswith(LANDING) for shard in inputs[0])


class _Counted:
    """A stream that counts the rows read through it."""

    def __init__(self, batches: Batches | HistoryReader) -> None:
        self.rows = 0
        self._batches = self._count(batches)

    def _count(self, batches: Batches | HistoryReader) -> Batches:
        for batch in batches:
            self.rows += batch.num_rows
            yield batch

    def __iter__(self) -> Batches:
        return self._batches


def _open_stream(place: Place, shards: Shards) -> Batches | HistoryReader:
    """Return one input of a kernel: of a segment also what reads a few keys of it."""
    if len(shards) == 1 and shards[0].index_digest:
        return Segment(place.root, shards[0], place.batch_rows)
    return _read_stream(place, shards)


def _open_beside(place: Place, shards: Shards) -> Batches | HistoryReader:
    """Return what every call of a kernel gets: of segments also what reads a few keys of all of them."""
    if all(shard.index_digest for shard in shards):
        return Segments(place.root, shards, place.batch_rows)
    return _read_stream(place, shards)


def _read_stream(place: Place, shards: Shards) -> Batches:
    return itertools.chain.from_iterable(_read_one(place, shard) for shard in shards)


def _read_one(place: Place, shard: Shard) -> Batches:
    if shard.path.startswith(LANDING):
        return _read_landed(place, shard)
    if shard.path.endswith(".arrow"):
        return _read_piece(place, shard)
    return read_shard(place.root, shard, batch_rows=place.batch_rows)


def _read_landed(place: Place, shard: Shard) -> Batches:
    """Yield the records of a landed file, and see at its end that it is the file that was listed."""
    from pipeline_tasks.landing import formats

    name = shard.path.removeprefix(LANDING)
    uri = f"{place.landing}/{name}"
    with storage.open_landed(uri) as raw:
        stream = HashingStream(raw)
        records = formats.read_records(name, cast("BinaryIO", stream), source="", snapshot=place.snapshot)
        for batch in records:
            yield from _sliced(batch, place.batch_rows)
        found = stream.drain()
    if shard.digest and found != shard.digest:
        raise mismatch(uri, shard.digest, found)


def _sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(start, rows)


def _read_piece(place: Place, shard: Shard) -> Batches:
    yield from pa.ipc.open_stream(storage.connect(place.root).read(shard.path))


def _with_local_files(kernel: Kernel, files: Iterable[tuple[str, str]]) -> Kernel:
    """Point a kernel's params at this machine's copies of the files that they name."""
    moved = {uri: storage.localize(uri, digest) for uri, digest in files}
    moved = {uri: local for uri, local in moved.items() if uri != local}
    if not moved or not isinstance(kernel, functools.partial):
        return kernel
    keywords = {name: repoint(value, moved) for name, value in kernel.keywords.items()}
    return functools.partial(kernel.func, *kernel.args, **keywords)


def repoint(value: Any, moved: Mapping[str, str]) -> Any:  # noqa: ANN401 -- any parameter's value
    """Return a parameter (a scalar, tuple, mapping or frozen dataclass of them) with its paths exchanged."""
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
    """Sends a kernel's rows to the kept, rejected and quarantined shards, and profiles what is kept."""

    def __init__(self, place: Place, by: Sequence[str] = ()) -> None:
        self._place = place
        self._by = by
        self._writers: dict[str, ShardWriter | SegmentWriter] = {}
        self._tally: Counter[str] = Counter()
        self._profiles: list[Mapping[str, Any]] = []
        self._reject_profiles: list[Mapping[str, Any]] = []
        self._kept_schema: pa.Schema | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._writers.values():
            writer.discard()

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch that a kernel yielded."""
        kept_names = [name for name in batch.schema.names if name not in VERDICT.names]
        if self._kept_schema is None:
            self._kept_schema = batch.select(kept_names).schema
            self._writer("data", self._kept_schema)
        if "reason" not in batch.schema.names:
            self._keep(batch)
            return
        reasons = batch.column("reason")
        self._keep(batch.filter(pc.is_null(reasons)).select(kept_names))
        aside = batch.filter(pc.is_valid(reasons))
        if aside.num_rows:
            self._set_aside(aside)

    def _keep(self, batch: pa.RecordBatch) -> None:
        self._writers["data"].write(batch)
        if self._place.profiled and batch.num_rows:
            self._profiles.append(profile(batch, self._place.profiled))

    def _set_aside(self, batch: pa.RecordBatch) -> None:
        damaged = pc.starts_with(batch.column("reason"), "error:")
        for folder, rows in (("quarantine", batch.filter(damaged)), ("rejects", batch.filter(pc.invert(damaged)))):
            if rows.num_rows:
                self._writer(folder, rows.schema).write(rows)
        counted = pc.value_counts(batch.column("reason"))
        self._tally.update(
            dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))
        )
        if self._place.profiled:
            self._reject_profiles.append(profile(batch, self._place.profiled))

    def _writer(self, folder: str, schema: pa.Schema) -> ShardWriter | SegmentWriter:
        if folder not in self._writers:
            paged = self._by and folder == "data"
            self._writers[folder] = SegmentWriter(schema, self._by) if paged else ShardWriter(schema)
        return self._writers[folder]

    def receipt(self, key: str, landed_rows: int) -> Receipt:
        """Store the shards and describe them."""
        if self._kept_schema is None:
            message = f"{self._place.home}: a kernel yielded nothing; even an empty shard needs one (empty) batch"
            raise ContractError(message)
        home, root = self._place.home, self._place.root
        stored = {folder: writer.store(root, f"{home}/{folder}") for folder, writer in self._writers.items()}
        return Receipt(
            key=key,
            shard=stored["data"],
            rejects=stored.get("rejects"),
            quarantine=stored.get("quarantine"),
            tally=dict(sorted(self._tally.items())),
            landed_rows=landed_rows,
            schema=schema_pairs(self._kept_schema),
            kept_profile=merge(self._profiles),
            rejects_profile=merge(self._reject_profiles),
        )


# --- Grouping -------------------------------------------------------------------------------------------------


def bucket_of(values: pa.Array, buckets: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return each value's bucket in [0, buckets): ours, so that every engine agrees.

    Text hashes by XXH3-64 of its UTF-8 bytes, whole numbers by the splitmix64 finalizer; a bucket
    is a range of the hash, so buckets in order are ranges in order. Nulls go where "" and 0 go.
    """
    if pa.types.is_integer(values.type):
        whole = values.fill_null(0).to_numpy(zero_copy_only=False)
        hashes = _mix(whole.astype(np.uint64, copy=False))
    else:
        digests = (xxhash.xxh3_64_intdigest((value or "").encode()) for value in values.to_pylist())
        hashes = np.fromiter(digests, dtype=np.uint64, count=len(values))
    return ((hashes >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)).astype(np.int64)


def _mix(values: "np.ndarray[Any, np.dtype[np.uint64]]") -> "np.ndarray[Any, np.dtype[np.uint64]]":
    # Steele, Lea, Flood 2014, the finalizer of splitmix64.
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def scatter(place: Place, shard: Shard, by: str, buckets: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (bucket, rows, Arrow stream) pieces of one shard; each bucket gets at least one, so none lacks a schema."""
    waiting: list[list[pa.RecordBatch]] = [[] for _ in range(buckets)]
    weight = [0] * buckets
    schema = None
    for batch in _read_one(place, shard):
        schema = batch.schema
        chosen = bucket_of(batch.column(by), buckets)
        for bucket in np.unique(chosen).tolist():
            rows = batch.filter(pa.array(chosen == bucket))
            waiting[bucket].append(rows)
            weight[bucket] += rows.nbytes
            if weight[bucket] >= PIECE_BYTES:
                yield _piece(bucket, waiting[bucket], schema)
                waiting[bucket], weight[bucket] = [], 0
    for bucket in range(buckets):
        yield _piece(bucket, waiting[bucket], cast("pa.Schema", schema))


def _piece(bucket: int, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> tuple[int, int, bytes]:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return bucket, sum(batch.num_rows for batch in batches), sink.getvalue()


def gather(task: Task, pieces: Iterable[bytes | pa.Buffer], by: str, order: Sequence[str]) -> Outcome:
    """Sort one bucket's pieces by `by`, then `order`, and run the kernel over them."""
    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
    table = pa.concat_tables(tables)
    keys = [(name, "ascending") for name in (by, *order)]
    # Ties are broken by nothing, so the keys must order the rows totally; nulls come last on every engine.
    table = table.take(pc.sort_indices(table, sort_keys=keys)).combine_chunks()
    return run_streams(task, [_table_batches(table, task.place.batch_rows)])


def _table_batches(table: pa.Table, rows: int) -> Batches:
    if table.num_rows == 0:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)
    yield from table.to_batches(max_chunksize=rows)
