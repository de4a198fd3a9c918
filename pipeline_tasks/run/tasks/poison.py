"""Finds the rows on which a kernel raises: its batches are tried again by halves, down to single rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from pipeline_tasks.errors import KernelFailed, RefineryError
from pipeline_tasks.run.machine import machine_fault
from pipeline_tasks.scorers.faults import is_panic, raised
from pipeline_tasks.stage import Batches

PLACE = ("source", "snapshot", "file", "offset")
"""Columns that name the landed record of a row in every table of records."""

NAMED = (*PLACE, "id")
"""Columns that name a row, those of tables of documents with its document."""

MOST = 256
"""Rows of one task that may be poisoned: a kernel that raises on more is at fault itself."""

_SHOWN = 60

Try = Callable[[pa.RecordBatch], BaseException | None]
"""Runs a kernel over one batch and nothing else, and returns the error that it raises for these rows."""


class PoisonedRow(NamedTuple):
    """A record on which a kernel raises: where it was landed, the error, and the id of its document.

    A record has several documents where some were generated of it; without an id they are all to blame.
    """

    source: str | None
    snapshot: str | None
    file: str | None
    offset: int | None
    error: str
    id: str | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """Its values of `PLACE`."""
        return tuple(self)[: len(PLACE)]


class RowsPoisoned(KernelFailed):
    """A kernel raises on single records: the run quarantines them, and goes on without them."""

    def __init__(self, message: str, rows: tuple[PoisonedRow, ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows


def is_of_rows(error: BaseException) -> bool:
    """Return whether rows can be to blame for what a kernel raised: it is no refusal, and not the machine's."""
    if isinstance(error, RefineryError | ImportError) or machine_fault(error) is not None:
        return False
    return isinstance(error, Exception) or is_panic(error)


def require_sound(rows: Batches, names: Sequence[str], tried: Try, where: str) -> None:
    """Raise RowsPoisoned for the records of which each alone makes a kernel raise; return if there is none.

    The kernel gets the columns `names`. A row is to blame if the kernel raises on it alone, and not without rows: so
    the same rows are found for any batches. KernelFailed, with the row, if no landed record is behind it (it is a count
    or a key, say), and if there are more than `MOST`.
    """
    found: list[PoisonedRow] = []
    for batch in rows:
        given = batch.select(list(names))
        if not found and tried(given.slice(0, 0)) is not None:
            return
        for at, error in _raising(given, tried):
            row = batch.slice(at, 1)
            if not set(PLACE) <= set(batch.schema.names):
                message = f"{where} raises on a row that is no record ({raised(error)}): {_shown(row)}"
                raise KernelFailed(message) from error
            [place] = row.select([name for name in NAMED if name in row.schema.names]).to_pylist()
            found.append(PoisonedRow(**place, error=raised(error)))
            if len(found) > MOST:
                message = (
                    f"{where} raises on more than {MOST} records of one task, such as {_named(found[0])}: the kernel "
                    "is at fault, and not its rows"
                )
                raise KernelFailed(message) from error
    if found:
        message = f"{where} raises on {len(found)} of its records, such as {_named(found[0])}"
        raise RowsPoisoned(message, tuple(found))


def _raising(batch: pa.RecordBatch, tried: Try) -> Iterator[tuple[int, BaseException]]:
    """Yield the place of each row on which a kernel raises, and the error."""
    error = tried(batch) if batch.num_rows else None
    if error is None:
        return
    if batch.num_rows == 1:
        yield 0, error
        return
    half = batch.num_rows // 2
    yield from _raising(batch.slice(0, half), tried)
    for at, why in _raising(batch.slice(half), tried):
        yield half + at, why


def _named(row: PoisonedRow) -> str:
    return f"the record at {row.offset} of {row.snapshot}/{row.file} ({row.error})"


def _shown(row: pa.RecordBatch) -> str:
    """Return the values of a row, each cut short."""
    [values] = row.to_pylist()
    return ", ".join(f"{name}={str(value)[:_SHOWN]}" for name, value in values.items())
