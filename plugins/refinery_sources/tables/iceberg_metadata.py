"""What the metadata of an Iceberg table says: its snapshots, and of one the files and the rows deleted in them.

PyIceberg reads a whole data file at a time, in the order of its rows.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pipeline_tasks.constraints import S3, is_bucket
from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete
from pipeline_tasks.store.s3.client import options_of_other_clients
from refinery_sources.admission import admits_within, connect, fence_at, require_place
from refinery_sources.parquet_part import plain_schema
from refinery_sources.source import UNKNOWN

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as Opened

LATEST = "latest"

METADATA = ".metadata.json"

HINT = "metadata/version-hint.text"
"""The file of a table without a catalog that names its newest metadata."""

SHOWN = 20
"""Snapshots that an error names."""

ADDING = ("append", "replace")
"""Operations of snapshots that take no row out: `replace` writes the same rows to other files."""

_NUMBERED = re.compile(r"metadata/v?(\d+)(?:-[^/]*)?\.metadata\.json(?:\.gz)?")

_S3 = {
    "aws_region": "s3.region",
    "aws_endpoint": "s3.endpoint",
    "aws_access_key_id": "s3.access-key-id",
    "aws_secret_access_key": "s3.secret-access-key",
    "aws_session_token": "s3.session-token",
}
"""Names of options of Rust's `object_store`, and those that PyIceberg has for them."""


class Found(NamedTuple):
    """A snapshot of a table: its id, and when it was written (UTC)."""

    id: int
    moment: datetime


class DataFile(NamedTuple):
    """A data file of a snapshot, and its rows, `UNKNOWN` where only positions say which are deleted."""

    uri: str
    rows: int


@dataclass(frozen=True)
class Table:
    """A table as PyIceberg opened it; by name and metadata it is the same."""

    name: str
    inner: Any = field(compare=False)  # a table of PyIceberg
    metadata: str = ""

    def snapshot(self, version: int | str) -> Found:
        """Return a snapshot by its id or a time (ISO 8601), or the newest; RecipeError if there is none."""
        if version == LATEST:
            snapshot = self.inner.current_snapshot()
        elif isinstance(version, int) or version.isdecimal():
            snapshot = self.inner.snapshot_by_id(int(version))
        else:
            snapshot = self.inner.snapshot_as_of_timestamp(_milliseconds(self.name, version))
        if snapshot is None:
            ids = [str(one.snapshot_id) for one in self.inner.snapshots()][-SHOWN:]
            there = f"it has {', '.join(ids)}" if ids else "it has none"
            message = f"{self.name} has no snapshot {version} (expired ones are gone): {there}"
            raise RecipeError(message)
        return Found(snapshot.snapshot_id, datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC))

    def schema(self, number: int) -> pa.Schema:
        """Return the columns of a snapshot."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return plain_schema(
            schema_to_pyarrow(self.inner.scan(snapshot_id=number).projection(), include_field_ids=False)
        )

    def files(self, number: int, since: int) -> Sequence[DataFile]:
        """Return the data files of a snapshot, or those that were appended since another one, by path.

        RecipeError for deletes that PyIceberg does not read; ContractError if the metadata counts other rows.
        """
        tasks = _tasks(self, number, since).values()
        written = self.inner.snapshot_by_id(number).summary
        total = written.additional_properties.get("total-records") if written and not since else None
        counted = sum(task.file.record_count for task in tasks)
        if total is not None and int(total) != counted:
            message = (
                f"{self.name}, snapshot {number}: its files have {counted:,} rows, and its summary says "
                f"{int(total):,}; the metadata is damaged"
            )
            raise ContractError(message)
        return [DataFile(task.file.file_path, _left(task)) for task in tasks]

    def read(self, uri: str, number: int, since: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data file that are not deleted, in its order."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        task, projected = _tasks(self, number, since)[uri], self.inner.scan(snapshot_id=number).projection()
        with _iceberg_errors(f"{self.name}, {uri}"):
            yield from ArrowScan(self.inner.metadata, self.inner.io, projected, AlwaysTrue()).to_record_batches([task])


def _left(task: "FileScanTask") -> int:
    """Return the rows that are left of a data file: a deletion vector counts its rows, positions may come twice."""
    if any(str(deletes.file_format).upper().rpartition(".")[2] != "PUFFIN" for deletes in task.delete_files):
        return UNKNOWN
    if len(task.delete_files) > 1:
        return UNKNOWN
    gone = sum(deletes.record_count for deletes in task.delete_files)
    return int(task.file.record_count) - int(gone) if not task.delete_files or _is_own(task) else UNKNOWN


def _is_own(task: "FileScanTask") -> bool:
    """Return whether a deletion vector says that it is of this file alone."""
    return all(getattr(deletes, "referenced_data_file", None) == task.file.file_path for deletes in task.delete_files)


@lru_cache(maxsize=8)
def _tasks(table: Table, number: int, since: int) -> dict[str, "FileScanTask"]:
    """Return what is to be read for a snapshot, by the path of its data file, sorted."""
    with _iceberg_errors(f"{table.name}, snapshot {number}"):
        if since:
            _require_appends(table, number, since)
            scan = table.inner.incremental_append_scan(
                from_snapshot_id_exclusive=since, to_snapshot_id_inclusive=number
            )
        else:
            scan = table.inner.scan(snapshot_id=number)
        return {task.file.file_path: task for task in sorted(scan.plan_files(), key=lambda task: task.file.file_path)}


def _require_appends(table: Table, number: int, since: int) -> None:
    """Raise RecipeError unless all snapshots between two only added rows: an append scan passes over the others."""
    at = table.inner.snapshot_by_id(number)
    while at is not None and at.snapshot_id != since:
        operation = at.summary.operation.value if at.summary else "an operation that it does not name"
        if operation not in ADDING:
            message = (
                f"{table.name} has rows that were changed or removed since snapshot {since} (snapshot "
                f"{at.snapshot_id}: {operation}), and PyIceberg reads only what was appended; pull it with "
                "`incremental: false`"
            )
            raise RecipeError(message)
        at = table.inner.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id else None
    if at is None:
        message = f"{table.name}: snapshot {since} is no longer before {number}; pull it with `incremental: false`"
        raise RecipeError(message)


def opened(name: str, catalog: str) -> Table:
    """Open a table as it is now, or by its metadata; RecipeError if it is not there."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config

    with _iceberg_errors(name):
        if catalog:
            require_place(catalog)
            require_place(name)
            written: Any = Config().get_catalog_config(catalog) or {}  # PyIceberg's own look is when it is imported
            return _of_catalog(name, load_catalog(catalog, **written).load_table(name))
        place = connect(name).root
        if is_bucket(place) and not place.startswith(S3):
            message = f"{place}: a table of Iceberg is read on a disk, at s3://, or by its `catalog`; name one"
            raise RecipeError(message)
        if not place.endswith(METADATA):
            _require_hint(place)
        properties = s3_properties() if is_bucket(place) else {}
        return _of_files(name, place, properties)


def _of_catalog(name: str, inner: "Opened") -> Table:
    """Return a table of a catalog, whose files are below the place that the catalog says, and read as it says."""
    from refinery_sources.tables.fenced_io import FencedIO

    theirs, place = inner.metadata.properties, inner.location()
    named = {key: value for key, value in inner.io.properties.items() if theirs.get(key) != value}
    inner.io = FencedIO({**named, **inner.catalog.properties}, fence_at(place, inner.metadata_location))
    return Table(name, inner, inner.metadata_location)


def _of_files(name: str, place: str, properties: Mapping[str, str]) -> Table:
    """Return a table by its files alone, read as we say and not as its metadata do."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import StaticTable

    from refinery_sources.tables.fenced_io import FencedIO

    folder = place.rpartition("/")[0].removesuffix("/metadata") if place.endswith(METADATA) else ""
    files = FencedIO(properties, fence_at(*([folder] if folder and admits_within(folder) else [])))
    location = place
    if not place.endswith(METADATA):
        location = StaticTable._metadata_location_from_version_hint(place, dict(properties))  # noqa: SLF001 -- its rule
    metadata = FromInputFile.table_metadata(files.new_input(location))
    inner = StaticTable(("static-table", location), metadata, location, files, NoopCatalog("static-table"))
    return Table(name, inner, location)


def _require_hint(place: str) -> None:
    """Raise RecipeError for a folder that does not say which of its metadata is the newest."""
    store = connect(place)
    if store.size(HINT) is not None:
        return
    numbered = [
        (int(match[1]), entry.path) for entry in store.list("metadata/") if (match := _NUMBERED.match(entry.path))
    ]
    if not numbered:
        message = f"{place} is no Iceberg table: it has no metadata; name its folder, a *{METADATA}, or a catalog"
        raise RecipeError(message)
    message = (
        f"{place} does not say which of its metadata is the newest (it has no {HINT}): name its catalog, or a file of "
        f"it, as {place}/{max(numbered)[1]}"
    )
    raise RecipeError(message)


def s3_properties() -> dict[str, str]:
    """Return what PyIceberg needs to reach the server of the stores with the same rights."""
    return {_S3[name]: value for name, value in options_of_other_clients().items() if name in _S3}


def _milliseconds(name: str, version: str) -> int:
    try:
        moment = datetime.fromisoformat(version)
    except ValueError as error:
        message = f"{name}: version {version!a} is no id, no time as 2026-01-31T06:00:00Z, and not `latest`"
        raise RecipeError(message) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


@contextlib.contextmanager
def _iceberg_errors(what: str) -> Iterator[None]:
    """Turn what PyIceberg raises into errors that name the table."""
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.exceptions import ValidationError as IcebergError

    try:
        yield
    except FileNotFoundError as error:
        message = f"{what}: a file of it is gone ({str(error)[:200]!a})"
        raise SnapshotIncomplete(message) from error
    except (RecipeError, ContractError):
        raise
    except (ValueError, NotImplementedError, NoSuchTableError, IcebergError, pa.ArrowException) as error:
        message = f"{what} cannot be read by PyIceberg: {str(error)[:300]!a}"
        raise RecipeError(message) from error
