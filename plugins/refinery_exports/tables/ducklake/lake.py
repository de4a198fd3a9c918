"""The catalog `ducklake`: states of tables, commits, and what is forgotten."""

import os
from collections.abc import Mapping, Sequence
from uuid import uuid4

from pipeline_tasks.errors import RecipeError
from refinery_exports.tables.catalog import Changed, DataFile, State, Table
from refinery_exports.tables.ducklake import stats
from refinery_exports.tables.ducklake.columns import columns_of
from refinery_exports.tables.ducklake.database import DATA_PATH, POSTGRES, Database, shown
from refinery_exports.tables.ducklake.draft import Draft, now
from refinery_exports.tables.ducklake.footers import read_footers
from refinery_exports.tables.ducklake.held import (
    COMMIT,
    OWNED,
    VERSION,
    Held,
    columns,
    data_path,
    facts_of,
    held,
    is_lake,
    named,
    names,
    newest,
    past,
    states,
)

OF_FILES = ("file_column_stats", "file_variant_stats", "file_partition_value", "delete_file")
"""What is kept of a data file beside its row, as `ducklake_...`."""

OF_TABLES = (
    "column_tag",
    "table_stats",
    "table_column_stats",
    "partition_column",
    "sort_expression",
    "schema_versions",
)
"""What is kept of a table beside what belongs to it from one snapshot to another."""


class Lake:
    """A lake of SQLite or PostgreSQL. One snapshot of it is a commit to one table; others of it keep theirs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        self._database.close()

    def state(self, namespace: str, name: str, snapshot: str = "") -> State | None:
        if not self._database.is_there:
            return None
        with self._database.reading():
            table = held(self._database, namespace, name, snapshot) if is_lake(self._database) else None
            if table is None:
                return None
            return State(
                files={address: file.rows for address, file in table.files.items()},
                properties={key: value for key, value in table.tags.items() if key != COMMIT},
                last=facts_of(self._database, table.id, table.tags.get(COMMIT, "{}")),
                snapshots=0 if snapshot else len(states(self._database, table.id)),
                past=() if snapshot else past(self._database, namespace, name),
                token=table.token,
            )

    def names(self, namespace: str) -> list[str]:
        if not self._database.is_there:
            return []
        with self._database.reading():
            return names(self._database, namespace) if is_lake(self._database) else []

    def commit(
        self,
        table: Table,
        before: State | None,
        add: tuple[DataFile, ...],
        remove: tuple[str, ...],
        facts: Mapping[str, str],
    ) -> None:
        wanted = columns_of(table.schema)
        footers = read_footers(add)
        with self._database.writing():
            self._open()
            _require_apart(data_path(self._database), {file.root for file in add})
            asked = (*(file.address for file in add), *remove)
            now_ = held(self._database, table.namespace, table.name, among=asked)
            if (now_.token if now_ else "") != (before.token if before else ""):
                message = f"{table.namespace}.{table.name} was changed by another writer; nothing was changed now"
                raise Changed(message)
            draft = Draft(self._database, newest(self._database))
            if now_ is None:
                now_ = draft.create(table, wanted, facts)
            else:
                _require_files(table, now_, add, remove)
                now_ = draft.grow(now_, wanted)
            draft.remove(now_, [now_.files[address] for address in remove])
            draft.add(now_, footers)
            draft.touch(now_)
            draft.say(now_.id, facts)
            draft.finish(facts)

    def expire(self, namespace: str, name: str) -> int:
        if not self._database.is_there:
            return 0
        with self._database.writing():
            if not is_lake(self._database):
                return 0
            self._database.wait_for_writers("ducklake_snapshot")
            # a table of that name that was dropped is forgotten, too, though its states were none of the table's
            gone = {dropped: self._expire(table, dropped) for table, dropped in named(self._database, namespace, name)}
            return gone.get(None, sum(gone.values()))

    def drop(self, namespace: str, name: str) -> None:
        if not self._database.is_there:
            return
        with self._database.writing():
            if not is_lake(self._database):
                return
            self._database.wait_for_writers("ducklake_snapshot")
            table = held(self._database, namespace, name)
            if table is not None:
                draft = Draft(self._database, newest(self._database))
                draft.drop(table.id)
                draft.finish({})

    # --- Making a lake ------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Make the tables of a lake where there are none, and keep other writers away until the transaction ends."""
        self._database.wait_for_makers()
        if not is_lake(self._database):
            self._make()
        self._database.wait_for_writers("ducklake_snapshot")

    def _make(self) -> None:
        folder = self._database.data_path
        if not folder:
            message = (
                f"{shown(self._database.address)} has no lake yet: say where DuckDB is to keep files that it writes, "
                f"in no root, as `{POSTGRES}{DATA_PATH}=/folder/ dbname=...`, or make the lake by DuckDB (ATTACH)"
            )
            raise RecipeError(message)
        self._database.script("ducklake.sql")
        self._database.script("indexes.sql")
        said = {"version": VERSION, "created_by": "Refinery", "data_path": folder, "encrypted": "false"}
        self._database.insert("ducklake_metadata", '"key", "value"', list(said.items()))
        self._database.insert(
            "ducklake_snapshot",
            "snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id",
            [(0, now(), 0, 1, 0)],
        )
        self._database.insert("ducklake_snapshot_changes", "snapshot_id, changes_made", [(0, 'created_schema:"main"')])
        self._database.insert(
            "ducklake_schema",
            "schema_id, schema_uuid, begin_snapshot, end_snapshot, schema_name, path, path_is_relative",
            [(0, str(uuid4()), 0, None, "main", "main/", True)],
        )

    # --- Forgetting ---------------------------------------------------------------------------------------------------

    def _expire(self, table: int, dropped: int | None) -> int:
        """Forget the states of a table but the current one, and the snapshots of the lake that have them."""
        past = states(self._database, table, dropped)
        past = past if dropped is not None else past[:-1]
        for snapshot in (snapshot for state in past for snapshot in state):
            self._database.rows("DELETE FROM ducklake_snapshot WHERE snapshot_id = ?", snapshot)
            self._database.rows("DELETE FROM ducklake_snapshot_changes WHERE snapshot_id = ?", snapshot)
        self._forget_files(table)
        for owned in OWNED:
            self._database.rows(f"DELETE FROM ducklake_{owned} WHERE table_id = ? AND end_snapshot IS NOT NULL", table)
        self._database.rows("DELETE FROM ducklake_tag WHERE object_id = ? AND end_snapshot IS NOT NULL", table)
        if dropped is None:
            stats.renew(self._database, table, columns(self._database, table))
        else:
            self._forget_table(table)
        return len(past)

    def _forget_files(self, table: int) -> None:
        """Remove what is kept of the files that a table had; none is scheduled for deletion, as a root owns them."""
        gone = "SELECT data_file_id FROM ducklake_data_file WHERE table_id = ? AND end_snapshot IS NOT NULL"
        for kept in OF_FILES:
            self._database.rows(f"DELETE FROM ducklake_{kept} WHERE data_file_id IN ({gone})", table)
        self._database.rows("DELETE FROM ducklake_data_file WHERE table_id = ? AND end_snapshot IS NOT NULL", table)
        if self._database.has("refinery_file"):
            known = "SELECT path FROM ducklake_data_file WHERE path IS NOT NULL"
            self._database.rows(f"DELETE FROM refinery_file WHERE path NOT IN ({known})")
        unused = (
            "SELECT mapping_id FROM ducklake_column_mapping m WHERE m.table_id = ? AND NOT EXISTS "
            "(SELECT 1 FROM ducklake_data_file f WHERE f.mapping_id = m.mapping_id)"
        )
        self._database.rows(f"DELETE FROM ducklake_name_mapping WHERE mapping_id IN ({unused})", table)
        self._database.rows(f"DELETE FROM ducklake_column_mapping WHERE mapping_id IN ({unused})", table)

    def _forget_table(self, table: int) -> None:
        for kept in OF_TABLES:
            self._database.rows(f"DELETE FROM ducklake_{kept} WHERE table_id = ?", table)
        self._database.rows("DELETE FROM ducklake_metadata WHERE scope = 'table' AND scope_id = ?", table)


def _require_files(table: Table, now_: Held, add: Sequence[DataFile], remove: Sequence[str]) -> None:
    """Raise RecipeError for a file that is added twice, or removed from a table that does not have it."""
    for file in add:
        if file.address in now_.files and file.address not in remove:
            message = f"the table {table.namespace}.{table.name} has the file {file.address} already"
            raise RecipeError(message)
    for address in remove:
        if address not in now_.files:
            message = f"the table {table.namespace}.{table.name} has no file {address}"
            raise RecipeError(message)


def _require_apart(folder: str, roots: set[str]) -> None:
    """Raise RecipeError where DuckDB would take the files of a root for orphans of its own folder, and remove them."""
    own = _real(folder)
    for root in sorted(roots):
        other = _real(root)
        if own.startswith(other) or other.startswith(own):
            message = (
                f"DuckDB keeps files of its own in {folder} (DATA_PATH of the lake) and removes those that it does not "
                f"know; the root {root} is not to be there: name a lake elsewhere"
            )
            raise RecipeError(message)


def _real(folder: str) -> str:
    plain = folder.removeprefix("file://")
    whole = plain if "://" in plain else os.path.realpath(plain)
    return f"{whole.rstrip('/')}/"
