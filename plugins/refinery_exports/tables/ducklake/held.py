"""Reads what a lake has: its newest snapshot, and a table as that has it."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pipeline_tasks.errors import RecipeError
from refinery_exports.tables.catalog import PARTED
from refinery_exports.tables.ducklake.columns import Column, tree
from refinery_exports.tables.ducklake.database import Database, Value, damaged, shown

VERSION = "1.0"
"""The version of DuckLake whose tables these are."""

COMMIT = "refinery.commit"
"""The tag of a table with the facts of its last commit, as JSON: a lake's snapshots are those of all its tables."""

OWNED = ("data_file", "delete_file", "column", "partition_info", "sort_info", "table")
"""What belongs to a table from one snapshot to another, as rows of `ducklake_...` with its `table_id`."""

_OWNERS = (*((f"ducklake_{owned}", "table_id") for owned in OWNED), ("ducklake_tag", "object_id"))
"""The same and its tags, with the columns that have its number."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a lake: its number, that of its columns, and the next numbers of tables and of files."""

    id: int
    schema_version: int
    next_catalog_id: int
    next_file_id: int


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of a table: its numbers (two, if it was added twice), rows that are not deleted, and bytes."""

    ids: tuple[int, ...]
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Held:
    """A table of a lake: its number, the last snapshot that changed it, files by address, columns and tags."""

    id: int
    changed: int
    files: Mapping[str, HeldFile]
    columns: tuple[Column, ...]
    tags: Mapping[str, str]

    @property
    def token(self) -> str:
        """Return what changes whenever the table does."""
        return f"{self.id}:{self.changed}"


def is_lake(database: Database) -> bool:
    """Return whether a database has a lake; RecipeError for one of another version, or whose files are encrypted."""
    if not database.has("ducklake_metadata"):
        return False
    rows = database.rows('SELECT "key", "value" FROM ducklake_metadata WHERE scope IS NULL')
    said = {row[0]: row[1] for row in rows}
    if said.get("version") != VERSION:
        message = (
            f"the lake at {shown(database.address)} has version {said.get('version')} of DuckLake, and {VERSION} is "
            f"needed: attach it with a DuckDB whose extension writes that (AUTOMATIC_MIGRATION), or name another"
        )
        raise RecipeError(message)
    if said.get("encrypted") == "true":
        message = (
            f"the lake at {shown(database.address)} encrypts its files, and those of a root are not; name another lake"
        )
        raise RecipeError(message)
    return True


def newest(database: Database) -> Snapshot:
    """Return the newest snapshot; ContractError if there is none."""
    rows = database.rows(
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot "
        "WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)"
    )
    if not rows:
        raise damaged(shown(database.address), "it has no snapshot")
    return Snapshot(*cast("tuple[int, int, int, int]", rows[0]))


def data_path(database: Database) -> str:
    """Return the folder in which DuckDB keeps files of its own, with a slash at its end."""
    rows = database.rows('SELECT "value" FROM ducklake_metadata WHERE "key" = \'data_path\' AND scope IS NULL')
    return str(rows[0][0]) if rows else ""


def names(database: Database, namespace: str) -> list[str]:
    """Return the names of the tables of a namespace, in order."""
    rows = database.rows(
        "SELECT table_name FROM ducklake_table t JOIN ducklake_schema s ON s.schema_id = t.schema_id "
        "WHERE s.schema_name = ? AND s.end_snapshot IS NULL AND t.end_snapshot IS NULL",
        namespace,
    )
    return sorted(str(name) for (name,) in rows)


def held(
    database: Database, namespace: str, name: str, snapshot: str = "", among: Sequence[str] | None = None
) -> Held | None:
    """Return a table as the newest snapshot has it, None if there is none.

    With a `snapshot` it has the files of that alone, and with `among` those of its files that are at these addresses:
    the rows of others are not read.
    """
    rows = database.rows(
        "SELECT t.table_id, s.path, s.path_is_relative, t.path, t.path_is_relative FROM ducklake_table t "
        "JOIN ducklake_schema s ON s.schema_id = t.schema_id WHERE s.schema_name = ? AND t.table_name = ? "
        "AND s.end_snapshot IS NULL AND t.end_snapshot IS NULL",
        namespace,
        name,
    )
    if not rows:
        return None
    [(table, *where)] = rows
    id_ = cast("int", table)
    of_schema = _within(data_path(database), where[0], where[1])
    return Held(
        id=id_,
        changed=_changed(database, id_),
        files=_files(database, id_, _within(of_schema, where[2], where[3]), snapshot, among),
        columns=columns(database, id_),
        tags=_tags(database, id_),
    )


def _within(folder: str, path: Value, is_relative: Value) -> str:
    return f"{folder}{path}" if is_relative else str(path)


def _files(
    database: Database, table: int, folder: str, snapshot: str, among: Sequence[str] | None
) -> dict[str, HeldFile]:
    key = _key_of_snapshots(database, table) if snapshot else None
    if among is not None:
        paths = [path for address in among for path in _written(path_of(address), folder)]
        groups = [paths[start : start + MOST] for start in range(0, len(paths), MOST)]
        rows = [row for group in groups for row in _rows(database, table, _of_paths(len(group)), group)]
    elif key is not None:
        rows = _rows(database, table, _OF_VALUE, (table, key, snapshot))
    else:
        rows = _rows(database, table, _ALL, ())
    found: dict[str, HeldFile] = {}
    for row in sorted(rows, key=lambda row: cast("int", row[0])):
        id_, path, is_relative, count, size, deleted, known = cast(
            "tuple[int, str, bool, int, int, int, str]", tuple(row)
        )
        address = known or address_of(_within(folder, path, is_relative))
        before = found.get(address, HeldFile((), 0, 0))
        found[address] = HeldFile((*before.ids, id_), before.rows + count - int(deleted), before.bytes + size)
    return found


def _rows(database: Database, table: int, chosen: tuple[str, str], values: Sequence[Value]) -> list[tuple[Value, ...]]:
    """Return the rows of the files of a table that are `chosen`: by a relation with these values, and a condition."""
    kept = (
        ("r.address", "LEFT JOIN refinery_file r ON r.path = f.path") if database.has("refinery_file") else ("NULL", "")
    )
    return database.rows(
        "SELECT f.data_file_id, f.path, f.path_is_relative, f.record_count, f.file_size_bytes, "
        "(SELECT coalesce(sum(d.delete_count), 0) FROM ducklake_delete_file d "
        f"WHERE d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL), {kept[0]} "
        f"FROM {chosen[0]} {kept[1]} WHERE f.table_id = ? AND f.end_snapshot IS NULL AND {chosen[1]}",
        *(*values, table),
    )


_ALL = ("ducklake_data_file f", "true")

# SQLite keeps the order of a CROSS JOIN: it does not know how few files are chosen, and might read all of them first

_OF_VALUE = (
    (
        "(SELECT v.data_file_id FROM ducklake_file_partition_value v "
        "WHERE v.table_id = ? AND v.partition_key_index = ? AND v.partition_value = ?) c "
        "CROSS JOIN ducklake_data_file f"
    ),
    "f.data_file_id = c.data_file_id",
)
"""The files that have a value of a column that parts them."""

MOST = 10_000
"""Paths that one statement has, of the 32,766 parameters that SQLite takes."""


def _of_paths(count: int) -> tuple[str, str]:
    """Return the relation of the files at so many paths."""
    values = f"VALUES {', '.join(['(?)'] * count)}"
    return f"(SELECT column1 AS path FROM ({values}) v) c CROSS JOIN ducklake_data_file f", "f.path = c.path"


def _written(path: str, folder: str) -> list[str]:
    """Return how a lake may have written a path: from the folder of its table, if DuckDB wrote that file itself."""
    return [path, path.removeprefix(folder)] if folder and path.startswith(folder) else [path]


def _key_of_snapshots(database: Database, table: int) -> int | None:
    """Return which of the columns that part a table is `PARTED`, None if none is."""
    rows = database.rows(
        "SELECT p.partition_key_index FROM ducklake_partition_column p "
        "JOIN ducklake_partition_info i ON i.partition_id = p.partition_id AND i.end_snapshot IS NULL "
        "JOIN ducklake_column c ON c.table_id = p.table_id AND c.column_id = p.column_id AND c.end_snapshot IS NULL "
        "WHERE p.table_id = ? AND c.column_name = ?",
        table,
        PARTED,
    )
    return cast("int", rows[0][0]) if rows else None


def columns(database: Database, table: int) -> tuple[Column, ...]:
    """Return the columns of a table."""
    rows = database.rows(
        "SELECT column_id, column_name, column_type, parent_column FROM ducklake_column "
        "WHERE table_id = ? AND end_snapshot IS NULL ORDER BY column_order, column_id",
        table,
    )
    return tree(cast("list[tuple[int, str, str, int | None]]", rows))


def _tags(database: Database, table: int) -> dict[str, str]:
    rows = database.rows('SELECT "key", "value" FROM ducklake_tag WHERE object_id = ? AND end_snapshot IS NULL', table)
    return {str(key): str(value) for key, value in rows}


def _changed(database: Database, table: int) -> int:
    """Return the last snapshot that changed a table; `indexes.sql` has it at the ends of indexes."""
    each = " UNION ALL ".join(
        f"SELECT max({edge}) FROM {owner} WHERE {key} = {table:d} AND {edge} IS NOT NULL"
        for owner, key in _OWNERS
        for edge in ("begin_snapshot", "end_snapshot")
    )
    return max(cast("int", edge) for (edge,) in database.rows(each) if edge is not None)


def facts_of(database: Database, table: int, tag: str) -> dict[str, str]:
    """Return the facts of a commit, as its tag has them; ContractError if they are not as they were written."""
    try:
        return dict(json.loads(tag))
    except (TypeError, ValueError) as error:
        raise damaged(shown(database.address), f"the tag {COMMIT} of the table {table} has no facts") from error


def named(database: Database, namespace: str, name: str) -> list[tuple[int, int | None]]:
    """Return the numbers of all tables that have or had a name, with the snapshot that dropped each."""
    rows = database.rows(
        "SELECT DISTINCT t.table_id, t.end_snapshot FROM ducklake_table t "
        "JOIN ducklake_schema s ON s.schema_id = t.schema_id WHERE s.schema_name = ? AND t.table_name = ?",
        namespace,
        name,
    )
    return cast("list[tuple[int, int | None]]", [tuple(row) for row in rows])


def past(database: Database, namespace: str, name: str) -> tuple[dict[str, str], ...]:
    """Return the facts of the commits to tables of a name that are not forgotten, but of the last to the one there."""
    found = []
    for table, dropped in named(database, namespace, name):
        rows = database.rows(
            'SELECT "value", end_snapshot FROM ducklake_tag WHERE object_id = ? AND "key" = ?', table, COMMIT
        )
        tags = [tag for tag, ended in rows if not (dropped is None and ended is None)]
        found += [facts_of(database, table, str(tag)) for tag in tags]
    return tuple(found)


def edges(database: Database, table: int) -> list[int]:
    """Return the snapshots that changed a table, in order, as far as it still has rows of them."""
    each = " UNION ".join(
        f"SELECT {edge}_snapshot FROM {owner} WHERE {key} = {table:d}"
        for owner, key in _OWNERS
        for edge in ("begin", "end")
    )
    return sorted(cast("int", edge) for (edge,) in database.rows(each) if edge is not None)


def states(database: Database, table: int, until: int | None = None) -> list[list[int]]:
    """Return the snapshots that are left of each state of a table, oldest first, up to the one that dropped it."""
    changed = edges(database, table)
    rows = database.rows(
        "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_id >= ? ORDER BY snapshot_id", changed[0]
    )
    found: dict[int, list[int]] = {}
    for (snapshot,) in cast("list[tuple[int]]", rows):
        if until is None or snapshot < until:
            found.setdefault(bisect_right(changed, snapshot), []).append(snapshot)
    return list(found.values())


# --- Addresses ----------------------------------------------------------------------------------------------------

FILE = "file://"


def path_of(address: str) -> str:
    """Return an address as DuckDB opens it: a plain path for one of a file, whose letters no address changes."""
    return address.removeprefix(FILE)


def address_of(path: str) -> str:
    """Return the address of a path that DuckDB wrote."""
    return f"{FILE}{path}" if path.startswith("/") else path
