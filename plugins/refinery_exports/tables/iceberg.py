"""The catalog `iceberg`: tables of a catalog that PyIceberg's configuration names, of version 2 of Iceberg's format.

A commit is one snapshot, which adds files and removes files. It is made by the swap of a pointer in the catalog; what a
killed commit leaves are files of metadata that nothing names.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.libraries import way_to
from pipeline_tasks.nearest import nearest
from pipeline_tasks.store.protocol import PARALLEL_REQUESTS
from refinery_exports.tables.catalog import PARTED, RECIPE, ROOT, SNAPSHOT, Changed, DataFile, State, Table

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as Inner
    from pyiceberg.manifest import DataFile as Registered
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table as Opened
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.sorting import SortOrder
    from pyiceberg.table.update.snapshot import _MergeAppendFiles

NAME_MAPPING = "schema.name-mapping.default"
"""The property by which readers find columns in files that have no ids of fields; PyIceberg adds new columns."""

ENDING = "#?"
"""Letters at which PyIceberg takes the path of an address to end, whether they are escaped in it or not."""

RETRIES = "commit.retry.num-retries"

OURS = {
    "format-version": "2",
    "gc.enabled": "false",  # the files are the root's: engines that heed it expire and purge without removing any
    "commit.manifest-merge.enabled": "true",  # of 100 commits' manifests one is made: the default of Iceberg for Java
    "write.metadata.delete-after-commit.enabled": "true",  # of metadata that no commit needs any more, 100 are kept
}
"""Properties of each table."""


def opens(address: str) -> "IcebergCatalog":
    """Open a catalog by its name in PyIceberg's configuration; RecipeError for one that it has not."""
    if find_spec("pyiceberg") is None:
        raise RecipeError(way_to("pyiceberg"))
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchPropertyException
    from pyiceberg.utils.config import Config

    from refinery_exports.tables.iceberg_errors import answering

    written = Config()  # as it is now: PyIceberg's own look is when it is imported
    described = written.get_catalog_config(address)
    if not described:
        raise RecipeError(_unknown(address, written.get_known_catalogs()))
    try:
        with answering(address):
            return IcebergCatalog(address, load_catalog(address, **{key: str(each) for key, each in described.items()}))
    except RecipeError:
        raise
    except (ValueError, NoSuchPropertyException, ImportError) as error:
        message = f"the catalog {address} cannot be opened as PyIceberg's configuration describes it: {error}"
        raise RecipeError(message) from error


def _unknown(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    variable = f"PYICEBERG_CATALOG__{(name or 'NAME').upper().replace('-', '_')}__URI"
    there = f"it has {', '.join(names)}{nearest(name, names)}" if names else "it has none"
    return (
        f"PyIceberg's configuration has no catalog {name!r} ({there}); name one in ~/.pyiceberg.yaml, or by the "
        f"variable {variable} and its like (https://py.iceberg.apache.org/configuration/)"
    )


@dataclass(frozen=True, slots=True)
class IcebergCatalog:
    """A catalog of Iceberg, by its name, as PyIceberg opened it."""

    name: str
    inner: "Inner"

    def state(self, namespace: str, name: str, snapshot: str = "") -> State | None:
        from refinery_exports.tables.iceberg_errors import readable

        with readable(self.name, f"{namespace}.{name}"):
            table = self._opened(namespace, name)
            if table is None:
                return None
            newest = table.current_snapshot()
            past = [each for each in table.snapshots() if newest is None or each.snapshot_id != newest.snapshot_id]
            files = _files_of(table, snapshot) if snapshot else _files(table)
            return State(
                {file.file_path: file.record_count for file in files},
                dict(table.properties),
                _said(newest),
                len(table.snapshots()),
                tuple(map(_said, past)),
                _token(table),
            )

    def names(self, namespace: str) -> list[str]:
        from pyiceberg.exceptions import NoSuchNamespaceError

        from refinery_exports.tables.iceberg_errors import answering

        with answering(self.name):
            try:
                return sorted(identifier[-1] for identifier in self.inner.list_tables((namespace,)))
            except NoSuchNamespaceError:
                return []

    def commit(
        self,
        table: Table,
        before: State | None,
        add: tuple[DataFile, ...],
        remove: tuple[str, ...],
        facts: Mapping[str, str],
    ) -> None:
        from refinery_exports.tables.iceberg_errors import readable
        from refinery_exports.tables.iceberg_files import metrics, reader_of, schema_of

        full_name = f"{table.namespace}.{table.name}"
        schema = schema_of(table)
        _require_files(full_name, before, add, remove)
        with readable(self.name, full_name):
            opened = self._opened(table.namespace, table.name)
            if (opened is None) != (before is None) or (opened and before and _token(opened) != before.token):
                message = f"the table {full_name} of the catalog {self.name} is not as it was read"
                raise Changed(message)
            removed = _registered(opened, frozenset(remove), facts.get(SNAPSHOT, "")) if opened and remove else []
        change = self._created(table, schema, facts) if opened is None else _altered(opened, table, schema)
        files = list(reader_of(_with_properties(change, metrics(table))).registered(add))
        with readable(self.name, full_name):
            _stage(change, opened, files, removed, facts)
            change.commit_transaction()

    def _created(self, table: Table, schema: "Schema", facts: Mapping[str, str]) -> "Transaction":
        """Return the change that makes a table; until it is committed, there is none."""
        from refinery_exports.tables.iceberg_errors import answering, fitting

        full_name = f"{table.namespace}.{table.name}"
        with answering(self.name), fitting(full_name):
            self.inner.create_namespace_if_not_exists((table.namespace,))
            return self.inner.create_table_transaction(
                (table.namespace, table.name),
                schema,
                partition_spec=_spec(schema, table.parted_by),
                sort_order=_order(schema, table.sorted_by),
                properties=OURS | {name: facts[name] for name in (ROOT, RECIPE) if name in facts},
            )

    def expire(self, namespace: str, name: str) -> int:
        from refinery_exports.tables.iceberg_errors import readable

        with readable(self.name, f"{namespace}.{name}"):
            table = self._opened(namespace, name)
            if table is None:
                return 0
            heads = {reference.snapshot_id for reference in table.refs().values()}
            kept = [snapshot for snapshot in table.snapshots() if snapshot.snapshot_id in heads]
            old = [snapshot for snapshot in table.snapshots() if snapshot.snapshot_id not in heads]
            if old:
                unused = _metadata_of(table, old) - _metadata_of(table, kept)
                newest = datetime.fromtimestamp(max(each.timestamp_ms for each in old) / 1000, UTC)
                table.maintenance.expire_snapshots().older_than(newest + timedelta(seconds=1)).commit()
                with ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="manifests") as pool:
                    list(pool.map(table.io.delete, unused))
            return len(old)

    def drop(self, namespace: str, name: str) -> None:
        from pyiceberg.exceptions import NoSuchTableError

        from refinery_exports.tables.iceberg_errors import answering

        with answering(self.name):
            try:
                self.inner.drop_table((namespace, name))
            except NoSuchTableError:
                return

    def close(self) -> None:
        self.inner.close()

    def _opened(self, namespace: str, name: str) -> "Opened | None":
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.inner.load_table((namespace, name))
        except NoSuchTableError:
            return None


def _token(table: "Opened") -> str:
    """Return what changes with each snapshot of a table, and with each table of its name."""
    snapshot = table.current_snapshot()
    return f"{table.metadata.table_uuid}/{snapshot.snapshot_id if snapshot else ''}"


def _said(snapshot: "Snapshot | None") -> dict[str, str]:
    """Return the properties of the commit of a snapshot."""
    return dict(snapshot.summary.additional_properties) if snapshot and snapshot.summary else {}


def _files(table: "Opened") -> Iterator["Registered"]:
    """Yield the data files of the current snapshot, of the manifests that it has; several are read at once."""
    from pyiceberg.manifest import ManifestContent

    snapshot = table.current_snapshot()
    if snapshot is None:
        return
    live = [
        manifest
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA and (manifest.has_added_files() or manifest.has_existing_files())
    ]
    with ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="manifests") as pool:
        for entries in pool.map(lambda manifest: manifest.fetch_manifest_entry(table.io), live):
            yield from (entry.data_file for entry in entries)


def _files_of(table: "Opened", snapshot: str) -> Iterator["Registered"]:
    """Yield the data files of a snapshot, of a table that is parted by it, else all.

    Manifests that say that they have none of it are not read.
    """
    from pyiceberg.expressions import EqualTo, Reference
    from pyiceberg.expressions.literals import literal

    if PARTED not in [field.name for field in table.spec().fields]:
        yield from _files(table)
        return
    own = EqualTo(term=Reference(PARTED), value=literal(snapshot))
    yield from (task.file for task in table.scan(row_filter=own).plan_files())


def _registered(table: "Opened", addresses: frozenset[str], snapshot: str) -> list["Registered"]:
    """Return the data files at some addresses; those of a snapshot are looked for first, as most commits are of one."""
    for files in (_files_of(table, snapshot) if snapshot else (), _files(table)):
        found = [file for file in files if file.file_path in addresses]
        if len(found) == len(addresses):
            break
    return found


def _metadata_of(table: "Opened", snapshots: Iterable["Snapshot"]) -> set[str]:
    """Return the files that say which files snapshots have: PyIceberg leaves those of expired ones, and bounds."""
    lists = list(snapshots)
    manifests = {each.manifest_path for snapshot in lists for each in snapshot.manifests(table.io)}
    return manifests | {snapshot.manifest_list for snapshot in lists}


def _require_files(table: str, before: State | None, add: tuple[DataFile, ...], remove: tuple[str, ...]) -> None:
    """Raise RecipeError for a file that is added twice, removed where it is not, or that readers would not find."""
    for file in add:
        if any(letter in file.address for letter in ENDING):
            message = (
                f"{file.address}: PyIceberg reads an address up to {' or '.join(ENDING)}; rename the root {file.root}, "
                "or register it in a DuckLake"
            )
            raise RecipeError(message)
    there = set(before.files if before else ())
    lost = sorted(set(remove) - there)
    if lost:
        message = (
            f"the table {table} has no file {lost[0]} (and {len(lost) - 1:,} more) that could be removed; read its "
            "state again"
        )
        raise RecipeError(message)
    there -= set(remove)
    for file in add:
        if file.address in there:
            message = (
                f"the table {table} has the file {file.address} already; leave it out, or remove it in this commit"
            )
            raise RecipeError(message)
        there.add(file.address)


def _spec(schema: "Schema", names: tuple[str, ...]) -> "PartitionSpec":
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    numbered = enumerate(names, PARTITION_FIELD_ID_START)
    fields = [
        PartitionField(schema.find_field(name).field_id, number, IdentityTransform(), name) for number, name in numbered
    ]
    return PartitionSpec(*fields)


def _order(schema: "Schema", names: tuple[str, ...]) -> "SortOrder":
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortField, SortOrder
    from pyiceberg.transforms import IdentityTransform

    fields = [SortField(schema.find_field(name).field_id, IdentityTransform()) for name in names]
    return SortOrder(*fields) if fields else UNSORTED_SORT_ORDER


def _altered(opened: "Opened", table: Table, schema: "Schema") -> "Transaction":
    """Return the change of a table that brings it the columns that it lacks."""
    from refinery_exports.tables.iceberg_errors import fitting

    # PyIceberg would commit again what was made for another state: here alone, since what is in memory is not sent
    opened.metadata.properties[RETRIES] = "0"
    change = opened.transaction()
    if not _has_columns(opened.schema(), schema):
        with fitting(f"{table.namespace}.{table.name}"), change.update_schema() as update:
            update.union_by_name(table.schema)
    return change


def _has_columns(own: "Schema", columns: "Schema") -> bool:
    """Return whether a schema has columns of the same types: PyIceberg copies all metadata at each step of a change."""
    known = set(own.column_names)
    return all(
        name in known and (not (kind := columns.find_type(name)).is_primitive or own.find_type(name) == kind)
        for name in columns.column_names
    )


def _with_properties(change: "Transaction", properties: Mapping[str, str]) -> "TableMetadata":
    """Set properties that a table has not, and by which names readers find columns; what somebody has set stays."""
    metadata = change.table_metadata
    wanted = {**properties, NAME_MAPPING: metadata.schema().name_mapping.model_dump_json()}
    missing = {name: value for name, value in wanted.items() if name not in metadata.properties}
    if not missing:
        return metadata
    change.set_properties(missing)
    return change.table_metadata


def _stage(
    change: "Transaction",
    opened: "Opened | None",
    add: Iterable["Registered"],
    remove: Iterable["Registered"],
    facts: Mapping[str, str],
) -> None:
    """Write the manifests of one snapshot: an append, which incremental readers follow, unless files are removed."""
    from pyiceberg.table.snapshots import Operation

    from refinery_exports.tables.iceberg_files import Overwrite

    removed, said = list(remove), dict(facts)
    producer: Overwrite | _MergeAppendFiles
    if opened is not None and removed:
        producer = Overwrite(Operation.OVERWRITE, change, opened.io, snapshot_properties=said)
    else:
        producer = change.update_snapshot(snapshot_properties=said).merge_append()
    for file in add:
        producer.append_data_file(file)
    for file in removed:
        producer.delete_data_file(file)
    producer.commit()
