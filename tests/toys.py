"""Toy stages that use every verb of an engine, well and badly; workers import their kernels as `tests.toys`."""

import errno
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column

ROWS = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("text", pa.large_string()),
        pa.field("n", pa.int64()),
        pa.field("share", pa.float64()),
    ]
)


def table(start: int, rows: int) -> pa.Table:
    """Return `rows` toy rows, of which some keys, texts and numbers are null, and keys repeat."""
    ids = range(start, start + rows)
    return pa.table(
        {
            "id": list(ids),
            "key": [None if number % 11 == 0 else f"key {number % 7}" for number in ids],
            "text": [None if number % 13 == 0 else f"text {number} " + "ż" * (number % 40) for number in ids],
            "n": [None if number % 17 == 0 else number * number for number in ids],
            "share": [number % 100 / 100 for number in ids],
        },
        schema=ROWS,
    )


# --- map: every third row is rejected, every 50th is damaged, the rest gets a column -------------------------------


@dataclass(frozen=True, slots=True)
class MapParams:
    """How to map."""

    every: int = 3
    damaged: int = 50


def judge(batches: Batches, params: MapParams) -> Batches:
    for batch in batches:
        ids = batch.column("id").to_pylist()
        reasons = [_judged(row_id, params) for row_id in ids]
        proof = [f'{{"id":{row_id}}}' if why else None for row_id, why in zip(ids, reasons, strict=True)]
        sized = replace_column(batch, "size", pc.utf8_length(batch.column("text")).cast(pa.int64()))
        yield reject(sized, pa.array(reasons, pa.string()), pa.array(proof, pa.string()))


def _judged(row_id: int, params: MapParams) -> str | None:
    if params.damaged and row_id % params.damaged == 0:
        return "error:damaged"
    return "toy_map:third" if row_id % params.every == 0 else None


def run_map(shards: Shards, params: MapParams, on: Engine) -> Shards:
    return on.map(partial(judge, params=params), shards)


# --- group: the first id of a key wins ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupParams:
    """How to group."""

    by: str = "key"
    buckets: int = 3


def elect(batches: Batches, by: str) -> Batches:
    last: Any = object()
    for batch in batches:
        reasons = []
        for value in batch.column(by).to_pylist():
            reasons.append("toy_group:duplicate" if value == last else None)
            last = value
        yield reject(batch, pa.array(reasons, pa.string()))


def run_group(shards: Shards, params: GroupParams, on: Engine) -> Shards:
    return on.group(partial(elect, by=params.by), shards, by=params.by, order=("id",), buckets=params.buckets)


@dataclass(frozen=True, slots=True)
class LookupParams:
    """How many shards of history to save."""

    buckets: int = 3


# --- broadcast: each shard's rows learn the sum over all shards --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoParams:
    """Nothing to choose."""


def add_up(batches: Batches) -> Batches:
    total = sum(pc.sum(batch.column("n")).as_py() or 0 for batch in batches)
    yield pa.RecordBatch.from_pydict({"total": pa.array([total], pa.int64())})


def learn(batches: Batches, twins: Batches, totals: Batches) -> Batches:
    total = sum(pc.sum(batch.column("total")).as_py() or 0 for batch in totals)
    rest = sum(batch.num_rows for batch in twins)
    for batch in batches:
        known = replace_column(batch, "total", pa.array([total] * batch.num_rows, pa.int64()))
        yield replace_column(known, "twins", pa.array([rest] * batch.num_rows, pa.int64()))


def run_broadcast(shards: Shards, _: NoParams, on: Engine) -> Shards:
    return on.map(learn, shards, shards, broadcast=on.map(add_up, shards))


# --- history: rows of earlier snapshots are rejected ----------------------------------------------------------------


def sift(batches: Batches, *seen: Batches) -> Batches:
    known = {row_id for stream in seen for batch in stream for row_id in batch.column("id").to_pylist()}
    for batch in batches:
        reasons = ["toy_history:seen" if row_id in known else None for row_id in batch.column("id").to_pylist()]
        yield reject(batch, pa.array(reasons, pa.string()))


def keep_ids(batches: Batches) -> Batches:
    for batch in batches:
        yield batch.select(["id"])


def run_history(shards: Shards, _: NoParams, on: Engine) -> Shards:
    kept = on.map(sift, shards, broadcast=sum(on.history("ids"), ()))
    on.save_history("ids", on.map(keep_ids, kept))
    return kept


# --- lookup: as history, but by looking up keys -----------------------------------------------------------------------


def lookup(batches: Batches, *earlier: HistoryReader) -> Batches:
    for batch in batches:
        ids = batch.column("id")
        known = {row_id for table in earlier for row_id in table.rows(ids).column("id").to_pylist()}
        reasons = ["toy_lookup:seen" if row_id in known else None for row_id in ids.to_pylist()]
        yield reject(batch, pa.array(reasons, pa.string()))


def keep(batches: Batches) -> Batches:
    yield from batches


def run_lookup(shards: Shards, params: LookupParams, on: Engine) -> Shards:
    grouped = on.group(keep, shards, by="id", buckets=params.buckets)
    kept = on.map(lookup, grouped, *on.history("ids"))
    on.save_history("ids", on.map(keep_ids, kept))
    return kept


# --- state: a state that is loaded once per worker, and whose loads and rows a folder counts --------------------------


@dataclass(frozen=True, slots=True)
class StateParams:
    """`log` is a folder that notes who loaded and who read what; `fault` is what happens once, within a shard.

    Where `together` is named, each shard is read once so many processes read one.
    """

    log: str = ""
    fault: str = ""
    together: int = 0


MORE = pa.schema([*ROWS, pa.field("more", pa.int64())])


def load_state(log: str) -> int:
    note(log, f"load {os.getpid()}")
    return 7


def add_state(state: int, batches: Batches, *, params: StateParams) -> Batches:
    for batch in batches:
        if params.fault and batch.num_rows:
            _fail_once(Path(params.log) / "failed", params.fault)
        if params.together and batch.num_rows:
            _meet(Path(params.log), params.together)
        note(params.log, f"read {os.getpid()} {batch.num_rows}")
        numbers = batch.column("id").to_numpy(zero_copy_only=False)
        yield replace_column(batch, "more", pa.array(numbers + state, pa.int64()))


def note(log: str, line: str) -> None:
    if log:
        with (Path(log) / "notes").open("a") as stream:
            stream.write(f"{line}\n")


def _meet(log: Path, count: int) -> None:
    """Return once `count` processes are here: a TimeoutError after a minute says that fewer came."""
    (log / f"here-{os.getpid()}").touch()
    until = time.monotonic() + 60
    while len(list(log.glob("here-*"))) < count:
        if time.monotonic() > until:
            raise TimeoutError(count)
        time.sleep(0.01)


def _fail_once(marker: Path, fault: str) -> None:
    if fault == "die":
        _die_once(marker)
    elif not marker.exists():
        marker.touch()
        raise RuntimeError(fault)


def run_state(shards: Shards, params: StateParams, on: Engine) -> Shards:
    return on.map(partial(add_state, params=params), shards, prepare=partial(load_state, params.log))


# --- bad: what a stage must not do ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BadParams:
    """What to do wrong; `marker` is a file that exists once it was done."""

    how: str
    marker: str = ""


FAULTS = {
    "full": OSError(errno.ENOSPC, "No space left on device", "/spill"),
    "broken": OSError(errno.EIO, "Input/output error", "/spill"),
    "refused": ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
    "memory": MemoryError(),
}
"""What a worker's machine does to a kernel."""


def misbehave(batches: Batches, params: BadParams) -> Batches:
    if params.how == "die once":
        _die_once(Path(params.marker))
    if params.how == "hang":
        Path(params.marker).touch()
        time.sleep(600)
    while params.how == "endless":
        yield table(0, 1).to_batches()[0]
        Path(params.marker).touch()
    if params.how == "refuse":
        message = "shard 7 is not what it says; land it again"
        raise ContractError(message)
    if params.how == "defect":
        message = "a defect of the kernel"
        raise LookupError(message)
    if params.how in FAULTS:
        raise FAULTS[params.how]
    if params.how == "nothing":
        return
    yield from _changed(batches, params.how)


def _die_once(marker: Path) -> None:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _changed(batches: Batches, how: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if how == "lose":
            yield batch.slice(0, max(batch.num_rows - 1, 0))
        elif how == "repeat":
            yield batch
            yield batch.slice(0, 1)
        elif how == "lie":
            yield replace_column(batch, "n", batch.column("n").cast(pa.float64()))
        else:
            yield batch


def run_bad(shards: Shards, params: BadParams, on: Engine) -> Shards:
    return on.map(partial(misbehave, params=params), shards)


def run_bad_group(shards: Shards, params: BadParams, on: Engine) -> Shards:
    return on.group(partial(misbehave, params=params), shards, by="key", order=("id",), buckets=2)


def hang_or_fail(folder: Path, number: int) -> None:
    """As task 0 fail once another one has begun; as another one leave its process id, and hang."""
    begun = folder / "begun"
    while number == 0 and not (begun.exists() and begun.read_text()):
        time.sleep(0.05)
    if number == 0:
        message = "a defect of the kernel"
        raise LookupError(message)
    begun.write_text(str(os.getpid()))
    time.sleep(600)


def refuse(message: str) -> None:
    """Refuse, as a task does that found what it cannot mend."""
    raise ContractError(message)


SIZED = ROWS.append(pa.field("size", pa.int64()))
LEARNED = ROWS.append(pa.field("total", pa.int64())).append(pa.field("twins", pa.int64()))
MEASURES = ("n", "share", "key")
IDS = {"ids": Section(pa.schema([ROWS.field("id")]))}
IDS_BY_KEY = {"ids": Section(pa.schema([ROWS.field("id")]), key="id")}

CARDS: tuple[Stage[Any], ...] = (
    Stage(
        "toy_map",
        run_map,
        MapParams,
        ROWS,
        SIZED,
        1,
        splits=True,
        profiled=(*MEASURES, "size"),
        engine="local",
        reasons=("toy_map:third",),
    ),
    Stage(
        "toy_group",
        run_group,
        GroupParams,
        ROWS,
        ROWS,
        1,
        splits=False,
        profiled=MEASURES,
        spread=MEASURES,
        engine="local",
        reasons=("toy_group:duplicate",),
    ),
    Stage("toy_broadcast", run_broadcast, NoParams, ROWS, LEARNED, 1, splits=False, profiled=MEASURES, engine="local"),
    Stage(
        "toy_history",
        run_history,
        NoParams,
        ROWS,
        ROWS,
        1,
        splits=False,
        engine="local",
        history=IDS,
        reasons=("toy_history:seen",),
    ),
    Stage(
        "toy_lookup",
        run_lookup,
        LookupParams,
        ROWS,
        ROWS,
        1,
        splits=False,
        engine="local",
        history=IDS_BY_KEY,
        reasons=("toy_lookup:seen",),
    ),
    Stage("toy_state", run_state, StateParams, ROWS, MORE, 1, splits=True, engine="local"),
    Stage("toy_bad", run_bad, BadParams, ROWS, ROWS, 1, splits=True, engine="local"),
    Stage("toy_bad_group", run_bad_group, BadParams, ROWS, ROWS, 1, splits=False, engine="local"),
)

MODULES = {f"pipeline_tasks.stages.{card.name}": SimpleNamespace(STAGE=card) for card in CARDS}
"""What `import pipeline_tasks.stages.toy_map` gives once a test has put it into `sys.modules`."""
