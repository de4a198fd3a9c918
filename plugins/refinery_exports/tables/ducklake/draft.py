"""Writes the rows of a new snapshot: a table, its columns, files with what their footers say, and its facts."""

import datetime as dt
import itertools
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import cast

from pipeline_tasks.errors import RecipeError
from refinery_exports.tables.catalog import RECIPE, ROOT, SNAPSHOT, VERSION, Table
from refinery_exports.tables.ducklake import stats
from refinery_exports.tables.ducklake.columns import Column, flat, grown, mapped, numbered
from refinery_exports.tables.ducklake.columns import Mapping as NameMapping
from refinery_exports.tables.ducklake.database import Database, Row
from refinery_exports.tables.ducklake.footers import Footer, text_of
from refinery_exports.tables.ducklake.held import COMMIT, OWNED, Held, HeldFile, Snapshot, path_of

COLUMN = (
    "column_id, begin_snapshot, end_snapshot, table_id, column_order, column_name, column_type, initial_default, "
    "default_value, nulls_allowed, parent_column, default_value_type, default_value_dialect"
)
FILE = (
    "data_file_id, table_id, begin_snapshot, end_snapshot, path, path_is_relative, file_format, record_count, "
    "file_size_bytes, footer_size, row_id_start, partition_id, mapping_id"
)
TAG = 'object_id, begin_snapshot, end_snapshot, "key", "value"'

OPTIONS = {"data_inlining_row_limit": "0", "auto_compact": "false"}
"""Settings of a table for DuckDB: it keeps no rows of it in the catalog, and leaves its files as they are."""

PLAIN_FOLDER = re.compile(r"[A-Za-z0-9_-]+")


class Draft:
    """A new snapshot of a lake, which becomes one by `finish`."""

    def __init__(self, database: Database, before: Snapshot) -> None:
        self._database = database
        self.id = before.id + 1
        self._schema_version = before.schema_version
        self._next_schema_version = before.schema_version + 1
        self._next_catalog_id = before.next_catalog_id
        self._next_file_id = before.next_file_id
        self._changes: list[str] = []

    def finish(self, facts: Mapping[str, str]) -> None:
        """Write the snapshot itself, with the facts of its commit."""
        self._database.insert(
            "ducklake_snapshot",
            "snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id",
            [(self.id, now(), self._schema_version, self._next_catalog_id, self._next_file_id)],
        )
        said = f"{facts[SNAPSHOT]}, version {facts.get(VERSION, '?')}" if SNAPSHOT in facts else None
        extra = json.dumps(dict(facts), ensure_ascii=False) if facts else None
        self._database.insert(
            "ducklake_snapshot_changes",
            "snapshot_id, changes_made, author, commit_message, commit_extra_info",
            [(self.id, ",".join(self._changes), "Refinery", said, extra)],
        )

    def _catalog_id(self) -> int:
        self._next_catalog_id += 1
        return self._next_catalog_id - 1

    def _file_id(self) -> int:
        self._next_file_id += 1
        return self._next_file_id - 1

    def _change_schema(self, table: int | None) -> None:
        """Let readers load the columns of a table anew."""
        self._schema_version = self._next_schema_version
        if table is not None:
            row = (self.id, self._schema_version, table)
            self._database.insert("ducklake_schema_versions", "begin_snapshot, schema_version, table_id", [row])

    # --- A table ------------------------------------------------------------------------------------------------------

    def create(self, table: Table, of: Sequence[Column], facts: Mapping[str, str]) -> Held:
        """Make a table, and its namespace where there is none."""
        schema, id_ = self._schema(table.namespace), self._catalog_id()
        own = str(uuid.uuid4())
        folder = table.name if PLAIN_FOLDER.fullmatch(table.name) else own
        self._database.insert(
            "ducklake_table",
            "table_id, table_uuid, begin_snapshot, end_snapshot, schema_id, table_name, path, path_is_relative",
            [(id_, own, self.id, None, schema, table.name, f"{folder}/", True)],
        )
        ids = itertools.count(1)
        held = tuple(numbered(column, ids) for column in of)
        self._insert_columns(id_, held, {column.id for column, _ in flat(held)})
        self._part(id_, [column for name in table.parted_by for column in held if column.name == name])
        self._sort(id_, table.sorted_by)
        self._tag(id_, {key: facts[key] for key in (ROOT, RECIPE) if key in facts})
        self._database.insert(
            "ducklake_metadata", '"key", "value", scope, scope_id', [(*each, "table", id_) for each in OPTIONS.items()]
        )
        self._database.insert(
            "ducklake_table_stats", "table_id, record_count, next_row_id, file_size_bytes", [(id_, 0, 0, 0)]
        )
        self._changes.append(f"created_table:{_quoted(table.namespace)}.{_quoted(table.name)}")
        self._change_schema(id_)
        return Held(id_, self.id, {}, held, {})

    def _schema(self, namespace: str) -> int:
        rows = self._database.rows(
            "SELECT schema_id FROM ducklake_schema WHERE schema_name = ? AND end_snapshot IS NULL", namespace
        )
        if rows:
            return cast("int", rows[0][0])
        id_, own = self._catalog_id(), str(uuid.uuid4())
        folder = namespace if PLAIN_FOLDER.fullmatch(namespace) else own
        self._database.insert(
            "ducklake_schema",
            "schema_id, schema_uuid, begin_snapshot, end_snapshot, schema_name, path, path_is_relative",
            [(id_, own, self.id, None, namespace, f"{folder}/", True)],
        )
        self._changes.append(f"created_schema:{_quoted(namespace)}")
        return id_

    def _part(self, table: int, by: Sequence[Column]) -> None:
        if not by:
            return
        id_ = self._catalog_id()
        self._database.insert(
            "ducklake_partition_info",
            "partition_id, table_id, begin_snapshot, end_snapshot",
            [(id_, table, self.id, None)],
        )
        self._database.insert(
            "ducklake_partition_column",
            'partition_id, table_id, partition_key_index, column_id, "transform"',
            [(id_, table, rank, column.id, "identity") for rank, column in enumerate(by)],
        )

    def _sort(self, table: int, by: Sequence[str]) -> None:
        if not by:
            return
        id_ = self._catalog_id()
        self._database.insert(
            "ducklake_sort_info", "sort_id, table_id, begin_snapshot, end_snapshot", [(id_, table, self.id, None)]
        )
        self._database.insert(
            "ducklake_sort_expression",
            "sort_id, table_id, sort_key_index, expression, dialect, sort_direction, null_order",
            [(id_, table, rank, _quoted(name), "duckdb", "ASC", "NULLS_LAST") for rank, name in enumerate(by)],
        )

    def _tag(self, table: int, tags: Mapping[str, str]) -> None:
        self._database.insert("ducklake_tag", TAG, [(table, self.id, None, *each) for each in tags.items()])

    def say(self, table: int, facts: Mapping[str, str]) -> None:
        """Make the facts those of the last commit of a table."""
        self._database.rows(
            'UPDATE ducklake_tag SET end_snapshot = ? WHERE object_id = ? AND "key" = ? AND end_snapshot IS NULL',
            self.id,
            table,
            COMMIT,
        )
        self._tag(table, {COMMIT: json.dumps(dict(facts), ensure_ascii=False)})

    def grow(self, held: Held, wanted: Sequence[Column]) -> Held:
        """Give a table the columns that it lacks, and wider types; RecipeError for a column of another type."""
        [(most,)] = self._database.rows("SELECT max(column_id) FROM ducklake_column WHERE table_id = ?", held.id)
        new = grown(held.columns, wanted, itertools.count(cast("int", most) + 1))
        types = {column.id: column.type for column, _ in flat(held.columns)}
        changed = {column.id for column, _ in flat(new) if types.get(column.id) != column.type}
        if not changed:
            return held
        for id_ in changed & types.keys():
            self._database.rows(
                "UPDATE ducklake_column SET end_snapshot = ? "
                "WHERE table_id = ? AND column_id = ? AND end_snapshot IS NULL",
                self.id,
                held.id,
                id_,
            )
        self._insert_columns(held.id, new, changed)
        self._changes.append(f"altered_table:{held.id}")
        self._change_schema(held.id)
        return Held(held.id, held.changed, held.files, new, held.tags)

    def _insert_columns(self, table: int, held: Sequence[Column], which: set[int]) -> None:
        known = self._database.rows(
            "SELECT column_id, max(column_order) FROM ducklake_column WHERE table_id = ? GROUP BY 1", table
        )
        orders = {row[0]: row[1] for row in known}
        rows = []
        for column, parent in flat(held):
            if column.id in which:
                order = orders.get(column.id, column.id)  # as DuckDB: those inside have a place, too
                default = "" if column.children else "literal"
                own = (column.id, self.id, None, table, order, column.name, column.type)
                rows.append((*own, None, "NULL", True, parent, default, "duckdb"))
        self._database.insert("ducklake_column", COLUMN, rows)

    # --- Its files ----------------------------------------------------------------------------------------------------

    def add(self, held: Held, footers: Sequence[Footer]) -> None:
        """Add files to a table, by what their footers say."""
        if not footers:
            return
        parted = self._parted(held.id)
        mappings = self._mappings(held.id)
        [(first,)] = self._database.rows("SELECT next_row_id FROM ducklake_table_stats WHERE table_id = ?", held.id)
        row_id = cast("int", first)
        files: list[Row] = []
        values: list[Row] = []
        ranges: list[stats.Range] = []
        known: dict[tuple[Column, ...], tuple[NameMapping, int]] = {}
        for footer in footers:
            id_, where = self._file_id(), path_of(footer.file.address)
            if footer.columns not in known:
                mapping = mapped(held.columns, footer.columns, footer.file.address)
                known[footer.columns] = mapping, self._mapping(held.id, mapping, mappings)
            mapping, mapped_by = known[footer.columns]
            own = (id_, held.id, self.id, None, where, False, "parquet", footer.rows, footer.file.bytes, footer.bytes)
            files.append((*own, row_id, parted[0] if parted else None, mapped_by))
            if parted:
                values += [
                    (id_, held.id, rank, value) for rank, value in enumerate(_values(footer, mapping, parted[1]))
                ]
            ranges += stats.ranges(id_, footer, mapping)
            row_id += footer.rows
        self._database.insert("ducklake_data_file", FILE, files)
        self._database.insert(
            "ducklake_file_partition_value", "data_file_id, table_id, partition_key_index, partition_value", values
        )
        stats.keep(self._database, held, ranges, len(footers))
        self._count(held.id, row_id - cast("int", first), sum(footer.file.bytes for footer in footers), new=True)
        self._keep([footer.file.address for footer in footers])
        self._changes.append(f"inserted_into_table:{held.id}")

    def remove(self, held: Held, files: Sequence[HeldFile]) -> None:
        """Remove files from a table, and what DuckDB has deleted in them."""
        if not files:
            return
        for id_ in (id_ for file in files for id_ in file.ids):
            for owned in ("data_file", "delete_file"):
                self._database.rows(
                    f"UPDATE ducklake_{owned} SET end_snapshot = ? WHERE data_file_id = ? AND end_snapshot IS NULL",
                    self.id,
                    id_,
                )
        self._count(held.id, -sum(file.rows for file in files), -sum(file.bytes for file in files), new=False)
        self._changes.append(f"deleted_from_table:{held.id}")

    def touch(self, held: Held) -> None:
        """Say that a table has changed, where neither its columns nor its files have."""
        if not self._changes:
            self._changes.append(f"inserted_into_table:{held.id}")

    def drop(self, table: int) -> None:
        """Remove a table; files of it, too, which stay where they are."""
        for owned in OWNED:
            self._database.rows(
                f"UPDATE ducklake_{owned} SET end_snapshot = ? WHERE table_id = ? AND end_snapshot IS NULL",
                self.id,
                table,
            )
        self._database.rows(
            "UPDATE ducklake_tag SET end_snapshot = ? WHERE object_id = ? AND end_snapshot IS NULL", self.id, table
        )
        self._changes.append(f"dropped_table:{table}")
        self._change_schema(None)

    def _parted(self, table: int) -> tuple[int, tuple[int, ...]] | None:
        """Return by what files are parted: a number, and those of the columns; None for by nothing or not by values."""
        rows = self._database.rows(
            'SELECT i.partition_id, c.column_id, c."transform" FROM ducklake_partition_info i '
            "JOIN ducklake_partition_column c ON c.partition_id = i.partition_id AND c.table_id = i.table_id "
            "WHERE i.table_id = ? AND i.end_snapshot IS NULL ORDER BY c.partition_key_index",
            table,
        )
        if not rows or any(transform != "identity" for _, _, transform in rows):
            return None
        return cast("int", rows[0][0]), tuple(cast("int", column) for _, column, _ in rows)

    def _mappings(self, table: int) -> dict[tuple[Row, ...], int]:
        """Return the mappings that a table has, by their rows."""
        rows = self._database.rows(
            "SELECT n.mapping_id, n.source_name, n.target_field_id, n.parent_column FROM ducklake_name_mapping n "
            "JOIN ducklake_column_mapping m ON m.mapping_id = n.mapping_id WHERE m.table_id = ? "
            "AND NOT EXISTS "
            "(SELECT 1 FROM ducklake_name_mapping p WHERE p.mapping_id = n.mapping_id AND p.is_partition) "
            "ORDER BY n.mapping_id, n.column_id",
            table,
        )
        by_id = itertools.groupby(rows, key=lambda row: row[0])
        return {tuple(tuple(row[1:]) for row in group): cast("int", id_) for id_, group in by_id}

    def _mapping(self, table: int, mapping: NameMapping, known: dict[tuple[Row, ...], int]) -> int:
        """Return the number of a mapping, which is new if no file had the same columns."""
        if mapping.rows not in known:
            id_ = known[mapping.rows] = self._file_id()
            self._database.insert(
                "ducklake_column_mapping", 'mapping_id, table_id, "type"', [(id_, table, "map_by_name")]
            )
            self._database.insert(
                "ducklake_name_mapping",
                "mapping_id, column_id, source_name, target_field_id, parent_column, is_partition",
                [(id_, rank, *row, False) for rank, row in enumerate(mapping.rows)],
            )
        return known[mapping.rows]

    def _count(self, table: int, rows: int, size: int, *, new: bool) -> None:
        self._database.rows(
            "UPDATE ducklake_table_stats SET record_count = record_count + ?, next_row_id = next_row_id + ?, "
            "file_size_bytes = file_size_bytes + ? WHERE table_id = ?",
            rows,
            rows if new else 0,
            size,
            table,
        )

    def _keep(self, addresses: Sequence[str]) -> None:
        """Say that files are a root's, which DuckDB is never to remove, and by which address the root has them."""
        self._database.script("keep_postgres.sql" if self._database.is_postgres else "keep_sqlite.sql")
        self._database.insert(
            "refinery_file", "path, address", [(path_of(each), each) for each in addresses], on_conflict="path"
        )


def now() -> str:
    """Return the time as DuckDB writes it into SQLite."""
    return f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M:%S.%f}+00"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _values(footer: Footer, mapping: NameMapping, by: Sequence[int]) -> list[str | None]:
    """Return the value that a file has of each column that files are parted by; RecipeError if it has more than one."""
    leaves = {column.id: (column, leaf) for column, leaf in zip(mapping.leaves, footer.leaves, strict=True) if column}
    values: list[str | None] = []
    for id_ in by:
        if id_ not in leaves or leaves[id_][1].is_null:
            values.append(None)
            continue
        column, leaf = leaves[id_]
        value = text_of(leaf.low, column.type)
        if leaf.nulls or value is None or leaf.low != leaf.high:
            message = (
                f"{footer.file.address} has no single value of {column.name}, by which files of the table are parted "
                f"(or its footer does not say it): write one file for each value"
            )
            raise RecipeError(message)
        values.append(value)
    return values
