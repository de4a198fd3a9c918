"""What the log of a Delta table says: its versions, and of one the files, the rows deleted in them, and the changes.

Deletion vectors are read by delta-rs. Its scan gives rows in no order, so files are read one by one where they have no
feature that only the scan knows.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.store import storage
from refinery_sources.admission import connect, require_links_within, require_place
from refinery_sources.budget import Stopped
from refinery_sources.parquet_part import plain_schema
from refinery_sources.tables.data_file import DataFile, rows_of
from refinery_sources.tables.hash_order import Signed
from refinery_sources.web import Web

if TYPE_CHECKING:
    from deltalake import DeltaTable

PLAIN = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
"""Features of readers that change no file: its rows are those of Parquet, without those of its deletion vector."""

MAPPING = "delta.columnMapping.mode"

COMMIT_TIMES = "delta.enableInCommitTimestamps"

LOOKED_AT = 100
"""Versions that are looked at, from the newest one, for those that can be read."""

SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}
"""Whether a row of the change feed comes or goes."""

CHANGE = "_change_type"

_WIDTHS = {kind: kind.bit_width for kind in (pa.bool_(), pa.int8(), pa.int16(), pa.date32(), pa.int32(), pa.int64())}
_WIDEST = 1_000

_LOG = re.compile(r"_delta_log/(\d{20})\.json")


@dataclass(frozen=True, eq=False)
class Version:
    """A version of a table."""

    table: str
    number: int
    opened: "DeltaTable"

    def __str__(self) -> str:
        return f"{self.table}, version {self.number}"

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return plain_schema(pa.schema(self.opened.schema().to_arrow()))

    @property
    def _features(self) -> frozenset[str]:
        return frozenset(self.opened.protocol().reader_features or ())

    @property
    def has_vectors(self) -> bool:
        """Whether rows may be deleted by deletion vectors."""
        return "deletionVectors" in self._features

    @property
    def is_plain(self) -> bool:
        """Whether its files are read as Parquet."""
        mapping = self.opened.metadata().configuration.get(MAPPING, "none")
        return self._features <= PLAIN and mapping == "none"

    @property
    def files(self) -> tuple[DataFile, ...]:
        """Its data files, by path, each with the rows that are left of it."""
        return _files(self)

    def uris(self) -> list[str]:
        """Return where its data files are, sorted."""
        with _delta_errors(str(self)):
            paths = pa.table(self.opened.get_add_actions()).column("path").to_pylist()
        return sorted(_place(self.table, path) for path in paths)

    def lost(self) -> list[str]:
        """Return the data files that are not there any more."""
        there = {f"{self.table}/{entry.path}" for entry in connect(self.table).list("")}
        outside = [uri for uri in self.uris() if not uri.startswith(f"{self.table}/")]
        return [uri for uri in self.uris() if uri not in there and uri not in outside] + [
            uri for uri in outside if connect(uri.rpartition("/")[0]).size(uri.rpartition("/")[2]) is None
        ]

    def require_files(self) -> None:
        """Raise RecipeError, with the versions that can be read, if files were vacuumed."""
        lost = self.lost()
        if lost:
            message = (
                f"{self} was vacuumed: {len(lost):,} of its {len(self.uris()):,} data files are gone, first {lost[0]}. "
                f"{_readable(self.table)}"
            )
            raise RecipeError(message)

    def require_rows(self, expected: int) -> None:
        """Raise ContractError unless delta-rs's own scan counts as many rows."""
        narrow = min(self.schema, key=lambda column: _WIDTHS.get(column.type, _WIDEST)).name
        counted = sum(batch.num_rows for batch in _scanned(self, [narrow]))
        if counted != expected:
            message = (
                f"{self} has {expected:,} rows by its log and deletion vectors, and {counted:,} by a scan; it is "
                "damaged, or deltalake reads it wrongly: tell who made it"
            )
            raise ContractError(message)

    def scanned(self, web: Web, columns: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield all rows, or some columns of them, as delta-rs reads them, in no order."""
        schema = pa.schema([self.schema.field(name) for name in columns or self.schema.names])
        for batch in _scanned(self, schema.names):
            if web.stop.is_set():
                raise Stopped
            yield _of_schema(batch, schema)


def version_of(table: str, version: int | str) -> Version:
    """Return a version by number or time (ISO 8601); RecipeError if it is not there, as at a time before the first."""
    place = connect(table).root
    if isinstance(version, int) or version.isdecimal():
        _require_number(table, int(version))
        return _opened(place, int(version))
    try:
        moment = datetime.fromisoformat(version)
    except ValueError as error:
        message = f"{table}: version {version!a} is no number, no time as 2026-01-31T06:00:00Z, and not `latest`"
        raise RecipeError(message) from error
    with _delta_errors(f"{table} at {version}"):
        opened = _newest(place)
        opened.load_as_version(moment)
    newest = _opened(place, opened.version())
    _require_made(newest, moment)
    return newest


def _require_made(version: Version, moment: datetime) -> None:
    """Raise RecipeError for a version that was made after a time: deltalake takes the first for all times before it."""
    times = {entry.path: entry.modified for entry in connect(version.table).list("_delta_log/")}
    made = times.get(f"_delta_log/{version.number:020d}.json")
    if made is None or version.opened.metadata().configuration.get(COMMIT_TIMES) == "true":
        return  # a checkpoint alone has it, or its time is not that of the file
    wanted = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    there = datetime.fromtimestamp(made, UTC)
    if there > wanted:
        message = (
            f"{version.table} has no version of {wanted:%Y-%m-%dT%H:%M:%SZ}: the first that its log has, "
            f"{version.number}, was made at {there:%Y-%m-%dT%H:%M:%SZ}; name a later time"
        )
        raise RecipeError(message)


def _require_number(table: str, number: int) -> None:
    """Raise RecipeError for a number that no version has: one that deltalake's 64 bits do not hold."""
    if not 0 <= number < 1 << 63:
        message = f"{table} has no version {number}: versions have numbers from 0 on; name one, a time, or `latest`"
        raise RecipeError(message)


def newest_version(table: str) -> int:
    """Return the number of the newest version; RecipeError where there is no Delta table."""
    with _delta_errors(table):
        return _newest(connect(table).root).version()


def _newest(place: str, version: int | None = None) -> "DeltaTable":
    from deltalake import DeltaTable

    return DeltaTable(place, version=version, storage_options=storage.options_of_other_clients(place))


def _opened(place: str, number: int) -> Version:
    """Open a version once, as long as its entry in the log is the same."""
    stamp = ""
    with contextlib.suppress(FileNotFoundError):  # where a checkpoint alone has it
        stamp = connect(place).stamp(f"_delta_log/{number:020d}.json")
    return _opened_at(place, number, stamp)


@lru_cache(maxsize=8)
def _opened_at(place: str, number: int, _stamp: str) -> Version:
    with _delta_errors(f"{place}, version {number}", place):
        return Version(place, number, _newest(place, number))


@lru_cache(maxsize=8)
def _files(version: Version) -> tuple[DataFile, ...]:
    with _delta_errors(str(version)):
        actions = pa.table(version.opened.get_add_actions()).to_pylist()
        kept = _kept(version) if version.has_vectors else {}
    files = []
    for action in actions:
        uri, rows = _place(version.table, action["path"]), action["num_records"]
        rows = rows_of(uri) if rows is None else rows
        mask = kept.get(uri)
        if mask is not None:  # it ends behind the last deleted row
            mask = np.concatenate((mask, np.ones(max(rows - len(mask), 0), np.bool_)))
        files.append(DataFile(uri, rows, action.get("partition") or {}, mask))
    return tuple(sorted(files, key=lambda file: file.uri))


def _kept(version: Version) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return of each file with a deletion vector which rows are kept."""
    kept = {}
    for batch in pa.RecordBatchReader.from_stream(version.opened.deletion_vectors()):
        for uri, mask in zip(batch.column("filepath").to_pylist(), batch.column("selection_vector"), strict=True):
            kept[_place(version.table, uri)] = mask.values.to_numpy(zero_copy_only=False)
    return kept


def _place(table: str, path: str) -> str:
    """Return where a file of the log is: paths are URLs, below the table unless they name a scheme.

    RecipeError for one that was not declared: a log is data.
    """
    return require_place(unquote(path).removeprefix("file://") if "://" in path else f"{table}/{unquote(path)}")


def _require_inside(table: str, first: int, last: int) -> None:
    """Raise RecipeError for a file of some versions, or a link, that is elsewhere: deltalake opens them by itself."""
    require_links_within(table)
    store = connect(table)
    for number in range(first, last + 1):
        with contextlib.suppress(FileNotFoundError):  # of a checkpoint the files are listed
            for line in store.read(f"_delta_log/{number:020d}.json").splitlines():
                for action in orjson.loads(line).values():
                    if isinstance(action, dict) and isinstance(action.get("path"), str):
                        _place(table, action["path"])


def _scanned(version: Version, columns: list[str]) -> Iterator[pa.RecordBatch]:
    version.uris()  # each of which is asked for
    require_links_within(version.table)
    with _delta_errors(str(version)):
        yield from pa.RecordBatchReader.from_stream(version.opened.scan(columns=columns))


def changes(before: Version, version: Version, web: Web) -> Iterator[Signed]:
    """Yield the rows that came and went between two versions, by the change feed, in no order.

    ContractError if they do not lead from the number of rows of the one to that of the other.
    """
    net = 0
    _require_inside(version.table, before.number + 1, version.number)
    with _delta_errors(
        f"the change feed of {version} since {before.number}", way_out=" Pull it with `incremental: false`"
    ):
        feed = version.opened.load_cdf(starting_version=before.number + 1, ending_version=version.number)
        for batch in pa.RecordBatchReader.from_stream(feed):
            if web.stop.is_set():
                raise Stopped
            kinds = batch.column(CHANGE).to_pylist()
            signs = np.asarray([SIGNS[kind] for kind in kinds], np.int8)
            net += int(signs.sum(dtype=np.int64))
            yield _of_schema(batch, version.schema), signs
    first, last = _count(before), _count(version)
    if first is not None and last is not None and first + net != last:
        message = (
            f"the change feed of {version} since {before.number} leads from {first:,} rows to {first + net:,}, and the "
            f"version has {last:,}; pull it with `incremental: false`"
        )
        raise ContractError(message)


def _count(version: Version) -> int | None:
    """Return the rows of a version, None where the files that tell were vacuumed."""
    try:
        return sum(file.left for file in version.files)
    except (RecipeError, SnapshotIncomplete):
        return None


def _of_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        batch.column(column.name).cast(column.type)
        if column.name in batch.schema.names
        else pa.nulls(batch.num_rows, column.type)
        for column in schema
    ]
    return pa.record_batch(columns, schema=schema)


def _readable(table: str) -> str:
    """Return which of the newest versions can be read, in words."""
    numbers = _numbers(table)[-LOOKED_AT:]
    whole = [number for number in numbers if _is_whole(table, number)]
    if not whole:
        return f"None of the versions {numbers[0]} to {numbers[-1]} can be read: restore the files"
    ranges: list[list[int]] = []
    for number in whole:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges)
    return f"Versions that can be read: {shown}"


def _numbers(table: str) -> list[int]:
    names = (_LOG.fullmatch(entry.path) for entry in connect(table).list("_delta_log/"))
    return [int(match[1]) for match in names if match]


def _is_whole(table: str, number: int) -> bool:
    try:
        return not _opened(table, number).lost()
    except RecipeError:  # its log was cleaned up
        return False


@contextlib.contextmanager
def _delta_errors(what: str, table: str = "", way_out: str = "") -> Iterator[None]:
    """Turn what deltalake raises into RecipeError, with the versions of `table` that there are, or another way out."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, ValueError, pa.ArrowException) as error:
        if isinstance(error, RecipeError | ContractError):
            raise
        numbers = _numbers(table) if table else []
        there = f" Its log has the versions {numbers[0]} to {numbers[-1]}." if numbers else ""
        message = f"{what} cannot be read by deltalake: {str(error)[:300]!a}.{there}{way_out}"
        raise RecipeError(message) from error
