"""The suite of engines: they give the rows and tallies of `local`, say what a task said, and end what nobody awaits.

Its kernels are of this module, which workers import.
"""

import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.engines import choose
from pipeline_tasks.engines.card import engine_card
from pipeline_tasks.engines.job import working_for
from pipeline_tasks.errors import ContractError, DigestMismatch, JobLost, RefineryError
from pipeline_tasks.recipe import LOCAL, engine_names
from pipeline_tasks.run.history import History
from pipeline_tasks.run.runner import RunningEngine
from pipeline_tasks.run.tasks.task import StageIO
from pipeline_tasks.run.tracker import Tracker
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Shards, reject, replace_column
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.testing.refining import commit_parent

SHARDS = (40, 0, 25)
"""Rows of the shards that kernels read; the second one is empty."""

ENDLESS = 120.0
"""Seconds after which a kernel that is to be canceled ends by itself."""

PREFIX = "suite/engines"


class On(NamedTuple):
    """An engine: its name, and its address, "" for this machine."""

    name: str
    address: str = ""

    def running(self, root: Path) -> RunningEngine:
        """Return the engine for one run over a root, whose tasks read batches of a few rows."""
        return choose.engine(*self)(Tracker(StageIO(str(root), PREFIX, batch_rows=7)), History())


Verb = Callable[[Engine, Shards], Shards]


def check_engine(name: str, address: str = "") -> None:
    """Raise AssertionError unless an engine keeps what every engine promises; it stays started.

    `name` is that of the entry point, whose package must be installed.
    """
    assert name in engine_names(), f"there is no engine {name!r}; install its package first (pip install -e FOLDER)"
    card, on = engine_card(name), On(name, address)
    for place in ("", card.here):
        card.address(place)
    card.require_here()
    choose.start(*on)
    for verb in (mapped, told, found, grouped, loaded):
        _check_rows(on, verb)
    _check_refusal(on, mapped, refuse, ContractError, "shard 7 ")
    _check_refusal(on, grouped, refuse, ContractError, "shard 7 ")
    _check_damage(on)
    _check_cancel(on)
    assert choose.lives(name), f"{name}: it says that it takes no work"


# --- Verbs ------------------------------------------------------------------------------------------------------------


def mapped(on: Engine, shards: Shards, kernel: Callable[[Batches], Batches] | None = None) -> Shards:
    """Run a kernel for each shard."""
    return on.map(kernel or judge, shards)


def told(on: Engine, shards: Shards) -> Shards:
    """Tell each shard, and its twin, what all shards sum up to."""
    return on.map(learn, shards, shards, broadcast=on.map(add_up, shards))


def found(on: Engine, shards: Shards) -> Shards:
    """Have each shard look up rows that all shards sorted."""
    return on.map(look_up, shards, broadcast=on.index(in_order, shards, by=("id",)))


def grouped(on: Engine, shards: Shards, kernel: Callable[[Batches], Batches] | None = None) -> Shards:
    """Run a kernel for each bucket of keys."""
    return on.group(kernel or elect, shards, by="key", order=("id",), buckets=3)


def loaded(on: Engine, shards: Shards) -> Shards:
    """Run a kernel with a state for each shard."""
    return on.map(add_state, shards, prepare=load_state)


def judge(batches: Batches) -> Batches:
    """Reject every third row."""
    for batch in batches:
        thirds = [None if number % 3 else "suite:third" for number in batch.column("id").to_pylist()]
        yield reject(batch, pa.array(thirds, pa.string()))


def elect(batches: Batches) -> Batches:
    """Keep the first row of each key."""
    last: object = object()
    for batch in batches:
        reasons = []
        for key in batch.column("key").to_pylist():
            reasons.append("suite:copy" if key == last else None)
            last = key
        yield reject(batch, pa.array(reasons, pa.string()))


def add_up(batches: Batches) -> Batches:
    """Sum the ids of a shard up."""
    total = sum(pc.sum(batch.column("id")).as_py() or 0 for batch in batches)
    yield pa.RecordBatch.from_pydict({"total": pa.array([total], pa.int64())})


def learn(batches: Batches, twins: Batches, totals: Batches) -> Batches:
    """Add the sum over all shards, and the rows of the twin."""
    total = sum(pc.sum(batch.column("total")).as_py() for batch in totals)
    beside = sum(batch.num_rows for batch in twins)
    for batch in batches:
        yield replace_column(batch, "total", pa.array([total + beside] * batch.num_rows, pa.int64()))


def in_order(batches: Batches) -> Batches:
    """Sort a shard."""
    rows = pa.Table.from_batches(batches).sort_by("id")
    yield from rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]


def look_up(batches: Batches, rows: HistoryReader) -> Batches:
    """Add how many of the next ids all shards have."""
    for batch in batches:
        yield replace_column(batch, "next", pa.array([rows.rows(pc.add(batch["id"], 1)).num_rows] * batch.num_rows))


def load_state() -> int:
    """Return the state of a kernel."""
    return 7


def add_state(state: int, batches: Batches) -> Batches:
    """Add the state to the ids."""
    for batch in batches:
        yield replace_column(batch, "more", pc.add(batch.column("id"), state))


def refuse(batches: Batches) -> Batches:
    """Refuse the input, as a kernel does that finds what it cannot mend."""
    next(batches)
    message = "shard 7 is not what it says; land it again"
    raise ContractError(message)
    yield  # a kernel is a generator


def wait(batches: Batches, marker: str) -> Batches:
    """Go on until somebody cancels the work, once a file says that it has begun."""
    first = next(batches)
    Path(marker).touch()
    until = time.monotonic() + ENDLESS
    while time.monotonic() < until:
        time.sleep(0.05)
        yield first.slice(0, 0)
    message = "nobody canceled the work"
    raise ContractError(message)


# --- Checks -----------------------------------------------------------------------------------------------------------


def _given(root: Path) -> Shards:
    """Commit shards of rows of which keys repeat, and some are null; return them."""
    ids, tables = iter(range(sum(SHARDS))), []
    for rows in SHARDS:
        taken = [next(ids) for _ in range(rows)]
        keys = [None if number % 11 == 0 else f"key {number % 7}" for number in taken]
        tables.append(pa.table({"id": pa.array(taken, pa.int64()), "key": pa.array(keys, pa.string())}))
    return read_manifest(str(root), commit_parent(root, tables)).shards


def _check_rows(on: On, verb: Verb) -> None:
    """Compare shards and tallies with those of `local`, and rows with those that went in."""
    (digests, rejected), (kept, tallied), rows = *(_made(each, verb) for each in (On(LOCAL), on)), sum(SHARDS)
    assert kept[0] == digests[0], f"{on.name}: other shards than those of `local` where rows are {verb.__name__}"
    assert tallied == rejected, f"{on.name}: {tallied} rejected, not {rejected}, where rows are {verb.__name__}"
    assert kept[1] + sum(tallied.values()) == rows, f"{on.name}: not all {rows} rows are accounted for"


def _made(on: On, verb: Verb) -> tuple[tuple[list[str], int], dict[str, int]]:
    """Return the digests and rows of what a verb keeps, and what it rejects, in a root of its own."""
    with tempfile.TemporaryDirectory() as folder:
        running = on.running(Path(folder))
        shards = verb(running, _given(Path(folder)))
        return ([shard.digest for shard in shards], sum(shard.rows for shard in shards)), dict(running.rejected)


def _check_refusal(
    on: On, verb: Callable[..., Shards], kernel: Callable[[Batches], Batches], kind: type[RefineryError], said: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        error = _error(on, partial(verb, kernel=kernel), _given(Path(folder)), Path(folder))
    assert type(error) is kind, f"{on.name}: a kernel's {kind.__name__} arrived as {error!r}"
    assert str(error).startswith(said), f"{on.name}: a kernel said {said!r}, and the error is {error}"


def _check_damage(on: On) -> None:
    """Damage a shard: the error has to name it."""
    with tempfile.TemporaryDirectory() as folder:
        shards = _given(Path(folder))
        damaged = Path(folder, shards[0].path)
        damaged.write_bytes(damaged.read_bytes()[:-9] + b"\0" * 9)
        error = _error(on, mapped, shards, Path(folder))
    assert type(error) is DigestMismatch, f"{on.name}: a damaged shard is {error!r}"
    assert str(damaged) in str(error), f"{on.name}: the error does not name the damaged shard {damaged}: {error}"


def _error(on: On, verb: Verb, shards: Shards, root: Path) -> Exception | None:
    """Return the error that ends a verb, None if none does."""
    try:
        verb(on.running(root), shards)
    except Exception as error:  # noqa: BLE001 -- which one it is, is what is asked
        return error
    return None


def _check_cancel(on: On) -> None:
    """Cancel work that has begun, while other work goes on."""
    with tempfile.TemporaryDirectory() as folder:
        root, marker, found = Path(folder), Path(folder, "begun"), list[Exception | None]()
        shards = _given(root)

        def work() -> None:
            with working_for("canceled"):
                found.append(_error(on, partial(mapped, kernel=partial(wait, marker=str(marker))), shards[:1], root))

        thread = threading.Thread(target=work)
        thread.start()
        _wait_for(on, lambda: marker.exists() or not thread.is_alive(), "a task does not begin")
        _wait_for(on, lambda: _canceled(on, thread), "work that nobody awaits goes on")
        assert [type(error) for error in found] == [JobLost], f"{on.name}: canceled work ended with {found}"
        _check_rows(on, mapped)


def _canceled(on: On, thread: threading.Thread) -> bool:
    """Cancel the work, as drivers do, again and again; return whether it has ended."""
    choose.cancel(on.name, "canceled")
    thread.join(0.5)
    return not thread.is_alive()


def _wait_for(on: On, done: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + ENDLESS / 2
    while not done():
        assert time.monotonic() < until, f"{on.name}: {otherwise}"
        time.sleep(0.05)
