"""A lake has what was committed to it, whole or not at all, by the rows of its own tables."""

import itertools
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from refinery_exports.tables.catalog import Changed, DataFile, Table
from refinery_exports.tables.ducklake import opens
from refinery_exports.tables.ducklake.database import Database
from refinery_exports.tables.testing import check_catalog

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from tests import lakes
from tests.lakes import Place, documents, facts_of, file_of, of_postgres, table_of
from tests.ports import closed_port


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def test_a_lake_keeps_what_a_catalog_promises(place: Place) -> None:
    check_catalog(lambda: opens(place.address), place.read)


def test_a_commit_is_one_snapshot_with_its_facts_and_ranges_of_columns(place: Place, root: Path) -> None:
    rows = documents("de", 7)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (file_of(root, "a.parquet", rows),), (), facts_of(root))
    [(extra, said)] = place.rows(
        "SELECT commit_extra_info, changes_made FROM ducklake_snapshot_changes WHERE snapshot_id = 1"
    )
    assert json.loads(extra) == facts_of(root)
    assert said == 'created_schema:"news",created_table:"news"."kept",inserted_into_table:2'
    assert place.rows("SELECT snapshot_id, schema_version FROM ducklake_snapshot ORDER BY 1") == [(0, 0), (1, 1)]
    ranges = place.rows(
        "SELECT c.column_name, s.min_value, s.max_value, s.value_count, s.null_count, s.contains_nan "
        "FROM ducklake_file_column_stats s JOIN ducklake_column c ON c.column_id = s.column_id ORDER BY c.column_id"
    )
    assert ranges == [
        ("id", "0007", "0010", 4, 0, None),
        ("language", "de", "de", 4, 0, None),
        ("chars", "7", "10", 4, 0, None),
        ("score", "0.7", "1.0", 4, 0, True),
        ("text", None, None, 4, 0, None),
        ("number", "7", "10", 4, 0, None),
    ]
    assert place.rows("SELECT partition_value FROM ducklake_file_partition_value") == [("de",)]


def test_ranges_of_a_table_hold_for_files_that_lack_a_column(place: Place, root: Path) -> None:
    old, new = documents("de", 0), documents("de", 5, license=pa.array(["CC0-1.0"] * 4))
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(old), None, (file_of(root, "a.parquet", old),), (), facts_of(root))
        before = lake.state("news", "kept")
        lake.commit(table_of(new), before, (file_of(root, "b.parquet", new),), (), facts_of(root))
        stats = (
            "SELECT s.contains_null, s.min_value, s.max_value FROM ducklake_table_column_stats s "
            "JOIN ducklake_column c ON c.column_id = s.column_id WHERE c.column_name = ?"
        )
        versions = place.rows("SELECT schema_version FROM ducklake_snapshot ORDER BY snapshot_id")
        assert versions == [(0,), (1,), (2,)], "who has read the columns reads them anew"
        assert place.rows(stats, "license") == [(True, "CC0-1.0", "CC0-1.0")]
        assert place.rows(stats, "chars") == [(False, "0", "8")]
        state = lake.state("news", "kept")
        lake.commit(table_of(new), state, (), (Path(root / "a.parquet").as_uri(),), facts_of(root))
        assert lake.expire("news", "kept") == 2
        assert place.rows(stats, "license") == [(False, "CC0-1.0", "CC0-1.0")]
        assert place.rows(stats, "chars") == [(False, "5", "8")]


def test_tables_of_a_lake_keep_their_own_states(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        for namespace in ("news", "blogs"):
            file = file_of(root, f"{namespace}.parquet", rows)
            lake.commit(table_of(rows, namespace), None, (file,), (), facts_of(root, namespace))
        lake.commit(table_of(rows), lake.state("news", "kept"), (), (), facts_of(root, "again"))
        news, blogs = lake.state("news", "kept"), lake.state("blogs", "kept")
        assert news
        assert blogs
        assert (news.snapshots, blogs.snapshots) == (2, 1)
        assert (news.last, blogs.last) == (facts_of(root, "again"), facts_of(root, "blogs"))
        assert lake.expire("blogs", "kept") == 0
        assert lake.expire("news", "kept") == 1
        assert lake.state("blogs", "kept") == blogs


def test_addresses_come_back_as_they_were_given(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    plain = file_of(root, "language=de/a.parquet", rows)
    odd = file_of(root, "language=de/ä b%20#?.parquet", rows)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (plain, odd), (), facts_of(root))
        state = lake.state("news", "kept")
        assert state
        assert set(state.files) == {plain.address, odd.address}
        assert {path for (path,) in place.rows("SELECT path FROM ducklake_data_file")} == {
            str(root / "language=de/a.parquet"),
            str(root / "language=de/ä b%20#?.parquet"),
        }
        lake.commit(table_of(rows), state, (), (plain.address, odd.address), facts_of(root))
        assert not (lake.state("news", "kept") or state).files


def test_what_is_dropped_and_expired_leaves_no_row(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (file_of(root, "a.parquet", rows),), (), facts_of(root))
        lake.drop("news", "kept")
        assert lake.expire("news", "kept") == 1
    tables = ["data_file", "file_column_stats", "table_column_stats", "column", "table", "name_mapping", "sort_info"]
    left = {name: place.rows(f"SELECT count(*) FROM ducklake_{name}") for name in tables}
    assert left == {name: [(0,)] for name in tables}
    assert place.rows("SELECT count(*) FROM refinery_file") == [(0,)]
    assert place.rows("SELECT count(*) FROM ducklake_files_scheduled_for_deletion") == [(0,)]


def test_no_free_page_of_sqlite_has_bounds_of_what_left(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least id of a file may be of a document that was taken down; by default SQLite leaves deleted bytes."""
    connect = sqlite3.connect

    def by_default(*given: object, **how: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **how)  # type: ignore[call-overload]
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", by_default)
    rows = documents("de", 0)
    with closing(opens(f"sqlite:{tmp_path / 'lake.sqlite'}")) as lake:
        lake.commit(table_of(rows), None, (gone := file_of(root, "a.parquet", rows),), (), facts_of(root))
        lake.commit(table_of(rows), lake.state("news", "kept"), (), (gone.address,), facts_of(root))
        assert b"/a.parquet" in (tmp_path / "lake.sqlite").read_bytes()
        lake.expire("news", "kept")
    assert b"/a.parquet" not in (tmp_path / "lake.sqlite").read_bytes()


def test_a_files_deletion_is_never_scheduled_by_whoever_asks(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (file_of(root, "a.parquet", rows),), (), facts_of(root))
    schedule = "INSERT INTO ducklake_files_scheduled_for_deletion (data_file_id, path) VALUES (?, ?)"
    place.rows(schedule, 1, str(root / "a.parquet"))
    place.rows(schedule, 2, "main/t/ducklake-of-duckdb.parquet")
    left = place.rows("SELECT path FROM ducklake_files_scheduled_for_deletion")
    assert left == [("main/t/ducklake-of-duckdb.parquet",)]


def test_of_two_writers_at_once_one_wins(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (), (), facts_of(root))
        before = lake.state("news", "kept")
    files = [file_of(root, f"{number}.parquet", rows) for number in range(6)]
    told: list[str] = []

    def write(file: DataFile) -> None:
        with closing(opens(place.address)) as own:
            try:
                own.commit(table_of(rows), before, (file,), (), facts_of(root))
            except Changed:
                told.append(file.path)

    writers = [threading.Thread(target=write, args=(file,)) for file in files]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with closing(opens(place.address)) as lake:
        state = lake.state("news", "kept")
    assert state
    assert len(told) == 5
    assert set(state.files) == {file.address for file in files if file.path not in told}


def test_writers_of_several_tables_at_once_all_win(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    files = {f"n{number}": file_of(root, f"{number}.parquet", rows) for number in range(5)}

    def write(namespace: str) -> None:
        with closing(opens(place.address)) as own:
            own.commit(table_of(rows, namespace), None, (files[namespace],), (), facts_of(root))

    writers = [threading.Thread(target=write, args=(namespace,)) for namespace in files]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with closing(opens(place.address)) as lake:
        found = {namespace: lake.state(namespace, "kept") for namespace in files}
    assert {name: state and set(state.files) for name, state in found.items()} == {
        name: {file.address} for name, file in files.items()
    }


def test_a_commit_waits_for_another_writers_snapshot(place: Place, root: Path) -> None:
    """DuckDB writes a row of `ducklake_snapshot` and then the rest; a commit that comes between takes the next number."""
    rows = documents("de", 0)
    file = file_of(root, "a.parquet", rows)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (), (), facts_of(root))
        before = lake.state("news", "kept")
    database = Database.of(place.address)
    ended = threading.Event()

    def write() -> None:
        with closing(opens(place.address)) as own:
            own.commit(table_of(rows), before, (file,), (), facts_of(root))
        ended.set()

    writer = threading.Thread(target=write)
    with database.writing():
        database.rows(
            "INSERT INTO ducklake_snapshot SELECT 2, snapshot_time, 1, 9, 9 FROM ducklake_snapshot WHERE snapshot_id = 1"
        )
        writer.start()
        assert not ended.wait(0.5)
    writer.join()
    assert ended.is_set()
    database.close()
    assert place.rows("SELECT data_file_id, begin_snapshot FROM ducklake_data_file") == [(9, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_commit_killed_before_any_statement_leaves_the_table_as_it_was(place: Place, root: Path, step: int) -> None:
    old = documents("de", 0)
    first = file_of(root, "old.parquet", old)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(old), None, (first,), (), facts_of(root))
        before = lake.state("news", "kept")
    kills = 0
    for statement in itertools.count(8, step):
        command = [sys.executable, lakes.__file__, place.address, str(root), str(statement), first.address]
        ended = subprocess.run(command, capture_output=True, check=False, env=os.environ | python_path(), timeout=120)
        with closing(opens(place.address)) as lake:
            after = lake.state("news", "kept")
        if ended.returncode == 0:
            break
        assert ended.returncode == -9, ended.stderr
        assert after == before
        kills += 1
    assert kills >= 4
    assert after
    assert set(after.files) == {(root / "new.parquet").as_uri()}


def python_path() -> dict[str, str]:
    folder = Path(__file__).parents[2]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(folder / "plugins")])}


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["lake.ducklake", "mysql:db=lake", "sqlite:", ""])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(RecipeError, match=r"sqlite:/path/lake\.sqlite"):
        opens(address)


def test_a_lake_of_another_version_is_refused_by_its_version(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (), (), facts_of(root))
        place.rows("UPDATE ducklake_metadata SET \"value\" = '0.3' WHERE \"key\" = 'version'")
        with pytest.raises(RecipeError, match=r"version 0\.3"):
            lake.state("news", "kept")
        with pytest.raises(RecipeError, match=r"version 0\.3"):
            lake.commit(table_of(rows), None, (), (), facts_of(root))


def test_a_lake_whose_files_are_encrypted_is_refused(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (), (), facts_of(root))
        place.rows("UPDATE ducklake_metadata SET \"value\" = 'true' WHERE \"key\" = 'encrypted'")
        with pytest.raises(RecipeError, match="encrypts"):
            lake.names("news")


def test_a_folder_of_duckdb_may_have_no_root_in_it_nor_be_in_one(tmp_path: Path, root: Path) -> None:
    rows = documents("de", 0)
    within = Place(f"sqlite:{root}/lake.sqlite", "")
    around = tmp_path / "other.sqlite.files" / "root"
    around.mkdir(parents=True)
    for address, folder in ((within.address, root), (f"sqlite:{tmp_path}/other.sqlite", around)):
        file = file_of(folder, "a.parquet", rows)
        with closing(opens(address)) as lake, pytest.raises(RecipeError, match="DATA_PATH"):
            lake.commit(table_of(rows), None, (file,), (), facts_of(folder))
        with closing(opens(address)) as lake:
            assert lake.state("news", "kept") is None


def test_a_new_lake_in_postgresql_needs_a_folder_for_duckdb(lake_server: str, tmp_path: Path, root: Path) -> None:
    rows = documents("de", 0)
    place = of_postgres(lake_server, tmp_path)
    with closing(opens(place.for_duckdb)) as lake:
        with pytest.raises(RecipeError, match="data_path="):
            lake.commit(table_of(rows), None, (), (), facts_of(root))
        assert lake.names("news") == []


def test_a_file_with_two_values_of_a_partition_is_refused(place: Place, root: Path) -> None:
    rows = pa.concat_tables([documents("de", 0), documents("fr", 5)])
    file = file_of(root, "a.parquet", rows)
    with closing(opens(place.address)) as lake, pytest.raises(RecipeError, match="language"):
        lake.commit(table_of(rows), None, (file,), (), facts_of(root))


@pytest.mark.parametrize(
    "kind", [pa.time64("us"), pa.null(), pa.duration("s"), pa.timestamp("ns", "UTC"), pa.struct([])]
)
def test_a_type_that_a_lake_lacks_is_refused_with_its_column(tmp_path: Path, root: Path, kind: pa.DataType) -> None:
    schema = documents("de", 0).schema.append(pa.field("nested", pa.struct([("odd", pa.list_(kind))])))
    wanted = Table("news", "kept", schema)
    with closing(opens(f"sqlite:{tmp_path}/lake.sqlite")) as lake, pytest.raises(RecipeError, match=r"nested\.odd"):
        lake.commit(wanted, None, (), (), facts_of(root))


def test_names_that_differ_in_case_alone_are_refused(tmp_path: Path, root: Path) -> None:
    rows = documents("de", 0, ID=pa.array(["x"] * 4))
    with closing(opens(f"sqlite:{tmp_path}/lake.sqlite")) as lake, pytest.raises(RecipeError, match="case"):
        lake.commit(table_of(rows), None, (), (), facts_of(root))


def test_a_damaged_file_of_a_root_is_named_and_nothing_is_changed(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    file = file_of(root, "a.parquet", rows)
    (root / "a.parquet").write_bytes((root / "a.parquet").read_bytes()[:-9] + b"\0" * 9)
    with closing(opens(place.address)) as lake:
        with pytest.raises(ContractError, match=r"a\.parquet"):
            lake.commit(table_of(rows), None, (file,), (), facts_of(root))
        assert lake.state("news", "kept") is None


def test_a_damaged_lake_says_the_way_out(place: Place, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(rows), None, (), (), facts_of(root))
        place.rows("UPDATE ducklake_tag SET \"value\" = '[1' WHERE \"key\" = 'refinery.commit'")
        with pytest.raises(ContractError, match="register --repair"):
            lake.state("news", "kept")
        place.rows("DELETE FROM ducklake_snapshot")
        with pytest.raises(ContractError, match="no snapshot"):
            lake.drop("news", "kept")
        place.rows("DROP TABLE ducklake_data_file")
        with pytest.raises(ContractError, match="register --repair"):
            lake.state("news", "kept")


def test_a_file_that_is_no_database_says_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "lake.sqlite").write_bytes(b"not a database, but a file of more than a hundred bytes" * 9)
    with (
        closing(opens(f"sqlite:{tmp_path}/lake.sqlite")) as lake,
        pytest.raises(ContractError, match="register --repair"),
    ):
        lake.names("news")


def test_a_lake_in_a_folder_that_is_not_there_is_refused(tmp_path: Path, root: Path) -> None:
    rows = documents("de", 0)
    with closing(opens(f"sqlite:{tmp_path}/none/lake.sqlite")) as lake:
        assert lake.names("news") == []
        with pytest.raises(RecipeError, match="folder"):
            lake.commit(table_of(rows), None, (), (), facts_of(root))


def test_a_server_that_is_away_is_asked_again_later_and_no_password_is_shown() -> None:
    with closed_port() as port:
        lake = opens(f"postgres:dbname=x host=127.0.0.1 port={port} password=geheim")
        with pytest.raises(StorageBusy) as refused:
            lake.names("news")
    assert "geheim" not in str(refused.value)
    assert str(port) in str(refused.value)


def test_a_database_that_is_not_there_is_refused(lake_server: str) -> None:
    with closing(opens(f"postgres:dbname=none {lake_server}")) as lake, pytest.raises(RecipeError, match="createdb"):
        lake.names("news")


def test_a_locked_lake_is_busy(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("refinery_exports.tables.ducklake.database.WAIT", 0)
    rows = documents("de", 0)
    with closing(sqlite3.connect(tmp_path / "lake.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(opens(f"sqlite:{tmp_path}/lake.sqlite")) as lake, pytest.raises(StorageBusy, match="locked"):
            lake.commit(table_of(rows), None, (), (), facts_of(root))
