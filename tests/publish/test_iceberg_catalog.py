"""Tables of the catalog `iceberg`, which PyIceberg reads: on a database, and behind a server that speaks REST."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.store.local_store import LocalStore

pytest.importorskip("pyiceberg")

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table as Opened
from pyiceberg.utils.config import Config
from refinery_exports.tables.catalog import Changed, DataFile
from refinery_exports.tables.iceberg import opens
from refinery_exports.tables.testing import NAME, NAMESPACE, SCHEMA, Case, check_catalog, facts, rows, table

from tests.killed_commit import POINTS, SWAPPED, killed_commit
from tests.rest_catalog import RestCatalog, rest_catalog

SHELF = "shelf"
"""The name of the catalog in PyIceberg's configuration."""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A catalog in a file of SQLite."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__WAREHOUSE", f"file://{tmp_path}/warehouse")
    return SHELF


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestCatalog]:
    """A catalog behind a server."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    with rest_catalog(tmp_path) as served:
        monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", served.uri)
        yield served


def opened(namespace: str, name: str) -> Opened:
    """Open a table as any user of PyIceberg does."""
    written = Config().get_catalog_config(SHELF)
    assert written
    return load_catalog(SHELF, **{key: str(value) for key, value in written.items()}).load_table((namespace, name))


def read(namespace: str, name: str) -> pa.Table:
    return opened(namespace, name).scan().to_arrow()


@pytest.mark.slow
def test_a_catalog_on_a_database_keeps_tables_as_catalogs_do(database: str) -> None:
    check_catalog(lambda: opens(database), read)


@pytest.mark.slow
def test_a_catalog_behind_a_server_keeps_tables_as_catalogs_do(server: RestCatalog) -> None:
    check_catalog(lambda: opens(SHELF), read)
    assert {method for method, _ in server.asked} >= {"GET", "POST", "DELETE"}


@pytest.fixture
def case(database: str, tmp_path: Path) -> Iterator[Case]:
    """A root, and a catalog on a database."""
    (tmp_path / "root").mkdir()
    with closing(opens(database)) as catalog:
        yield Case(tmp_path / "root", catalog, lambda: opens(database), read)


def planned(case: Case, row_filter: str) -> list[str]:
    """Return the names of the files that readers open for a filter."""
    tasks = opened(NAMESPACE, NAME).scan(row_filter=row_filter).plan_files()
    return sorted(task.file.file_path.rpartition("/")[2] for task in tasks)


def manifests(case: Case) -> set[str]:
    """Return the addresses of the files in the warehouse that say which files a table has."""
    return {path.as_uri() for path in case.root.parent.rglob("warehouse/**/*.avro")}


def named_manifests() -> set[str]:
    """Return those of them that a snapshot names."""
    made = opened(NAMESPACE, NAME)
    lists = {snapshot.manifest_list for snapshot in made.snapshots()}
    return lists | {each.manifest_path for snapshot in made.snapshots() for each in snapshot.manifests(made.io)}


def test_what_expired_snapshots_had_leaves_the_warehouse(case: Case) -> None:
    first = case.file("first.parquet", rows("2026-11-01", "de", 0))
    case.commit([first])
    case.commit([case.file("second.parquet", rows("2026-11-02", "de", 10))], [first], number=2)
    made = opened(NAMESPACE, NAME)
    made.manage_snapshots().create_tag(made.snapshots()[0].snapshot_id, "mine").commit()
    case.commit([case.file("third.parquet", rows("2026-11-03", "de", 20))], number=3)
    assert case.catalog.expire(NAMESPACE, NAME) == 1
    assert manifests(case) == named_manifests()
    assert opened(NAMESPACE, NAME).scan(snapshot_id=made.snapshots()[0].snapshot_id).to_arrow().num_rows == 3
    opened(NAMESPACE, NAME).manage_snapshots().remove_tag("mine").commit()
    assert case.catalog.expire(NAMESPACE, NAME) == 1
    assert manifests(case) == named_manifests()
    case.require(rows("2026-11-02", "de", 10) + rows("2026-11-03", "de", 20))


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_commit_leaves_a_table_as_it_was_or_changed(case: Case, point: str) -> None:
    first, second = rows("2026-11-01", "de", 0), rows("2026-11-02", "de", 10)
    files = [case.file("first.parquet", first), case.file("second.parquet", second)]
    for add, remove, kept in (([files[0]], [], []), ([files[1]], [files[0]], first)):
        before = case.state()
        removed = tuple(file.address for file in remove)
        assert killed_commit(point, SHELF, before, tuple(add), removed) == -SIGKILL
        if point == SWAPPED:
            after = case.state()
            assert after
            assert set(after.files) == {add[0].address}
        else:
            assert case.state() == before
            if before:
                case.require(kept)
            case.commit(add, remove)
    case.require(second)


def test_a_writer_who_comes_between_is_not_overrun(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, more = (
        case.file("theirs.parquet", rows("2026-11-01", "de", 0)),
        case.file("more.parquet", rows("a", "b", 9)),
    )
    mine, own = case.file("mine.parquet", rows("2026-11-02", "en", 20)), SqlCatalog.commit_table

    def second(commit: Callable[[], object]) -> Callable[..., object]:
        def between(*args: Any) -> object:
            monkeypatch.setattr(SqlCatalog, "commit_table", own)
            commit()
            return own(*args)

        return between

    left: set[str] = set()
    for before, file in ((None, theirs), ("made", more)):
        seen = case.state() if before else None
        monkeypatch.setattr(SqlCatalog, "commit_table", second(lambda file=file: case.commit([file])))
        with pytest.raises(Changed):
            case.catalog.commit(table(), seen, (mine,), (), facts(case.root, 9))
        left = left or manifests(case) - named_manifests()  # PyIceberg leaves what was to be a table's first
    state = case.state()
    assert state
    assert set(state.files) == {theirs.address, more.address}
    assert manifests(case) - named_manifests() == left


def test_filters_open_the_files_that_can_have_rows(case: Case) -> None:
    first, second = rows("2026-11-01", "de", 0), rows("2026-11-01", None, 4)
    case.commit([case.file("first.parquet", first), case.file("second.parquet", second)])
    case.commit([case.file("third.parquet", rows("2026-11-02", "de", 20))], number=2)
    assert planned(case, "language = 'de'") == ["first.parquet", "third.parquet"]
    assert planned(case, "language is null") == ["second.parquet"]
    assert planned(case, "snapshot = '2026-11-02'") == ["third.parquet"]
    assert planned(case, f"id = '{20:032x}'") == ["third.parquet"]
    assert planned(case, "score > 4") == ["third.parquet"]
    assert planned(case, "chars <= 2 and language = 'de'") == ["first.parquet"]
    scanned = opened(NAMESPACE, NAME).scan(row_filter=f"id >= '{4:032x}' and snapshot < '2026-11-02'").to_arrow()
    assert sorted(scanned["id"].to_pylist()) == [row["id"] for row in second]
    assert opened(NAMESPACE, NAME).scan(row_filter="language = 'de'").count() == 6


def test_no_text_is_quoted_in_metadata(case: Case) -> None:
    case.commit([case.file("first.parquet", rows("2026-11-01", "de", 0, 1))])
    (file,) = opened(NAMESPACE, NAME).inspect.files().to_pylist()
    bounds = {name for name, of in file["readable_metrics"].items() if of.get("lower_bound") is not None}
    assert bounds == {"id", "snapshot", "language", "chars", "adult"}


def test_a_column_of_which_a_row_group_has_no_bounds_has_none(case: Case) -> None:
    long = {"id": "b", "snapshot": "s", "language": "de", "url": "https://a.org/" + "z" * 5000}
    short = {"id": "a", "snapshot": "s", "language": "de", "url": "https://a.org/1"}
    schema = pa.schema([(name, pa.string()) for name in short])
    path = case.root / "long.parquet"
    pq.write_table(pa.Table.from_pylist([short, long], schema), path, row_group_size=1)
    case.commit([DataFile(str(case.root), path.name, path.as_uri(), path.stat().st_size, "")], schema=schema)
    found = opened(NAMESPACE, NAME).scan(row_filter="url = '" + long["url"] + "'").to_arrow()
    assert found["id"].to_pylist() == ["b"]


def test_of_a_file_its_footer_is_read_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    opened_files: list[str] = []
    read_bytes: list[int] = []
    own, new_input = LocalStore.open, PyArrowFileIO.new_input

    class Counting(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            read_bytes.append(count := super().readinto(buffer) or 0)
            return count

        def read(self, size: int = -1) -> bytes:
            read_bytes.append(len(body := super().read(size) or b""))
            return body

    def count(store: LocalStore, path: str) -> BinaryIO:
        opened_files.append(path)
        with own(store, path) as stream:
            return cast("BinaryIO", Counting(os.dup(stream.fileno())))

    def refuse(files: PyArrowFileIO, location: str) -> Any:
        assert not location.startswith(case.root.as_uri()), "PyIceberg read a data file"
        return new_input(files, location)

    file = case.file("large.parquet", [row | {"text": os.urandom(1 << 20).hex()} for row in rows("s", "de", 0)])
    monkeypatch.setattr(LocalStore, "open", count)
    monkeypatch.setattr(PyArrowFileIO, "new_input", refuse)
    case.catalog.commit(table(), None, (file,), (), facts(case.root, 1))
    assert opened_files == ["large.parquet"]
    assert sum(read_bytes) < 1 << 17 < file.bytes


def test_a_file_that_is_not_as_it_was_written_is_refused(case: Case) -> None:
    whole = case.file("whole.parquet", rows("2026-11-01", "de", 0))
    mixed = case.file("mixed.parquet", rows("2026-11-01", "de", 0) + rows("2026-11-01", None, 3))
    other = case.file(
        "other.parquet", [{"id": "1", "color": "red"}], pa.schema([("id", pa.string()), ("color", pa.string())])
    )
    (case.root / "text.parquet").write_text("no Parquet")
    damaged = replace(whole, path="text.parquet", address="file:///text.parquet", bytes=10)
    for file, said in (
        (replace(whole, bytes=whole.bytes + 1), "were written"),
        (replace(whole, path="gone.parquet"), "gone"),
        (damaged, "no whole file of Parquet"),
        (mixed, "not one value of the column 'language'"),
        (other, "other columns"),
    ):
        with pytest.raises(ContractError, match=said) as refused:
            case.catalog.commit(table(), None, (file,), (), facts(case.root, 1))
        assert file.path in str(refused.value)
        assert "refinery verify" in str(refused.value)
    assert case.state() is None


@pytest.mark.parametrize("kind", [pa.uint32(), pa.uint64(), pa.timestamp("ns"), pa.time32("s"), pa.null()])
def test_types_that_iceberg_has_not_are_refused(case: Case, kind: pa.DataType) -> None:
    schema = pa.schema([*SCHEMA, ("odd", pa.list_(pa.field("element", kind)))])
    with pytest.raises(RecipeError, match="column 'odd'"):
        case.catalog.commit(table(schema), None, (), (), facts(case.root, 1))
    assert case.state() is None


@pytest.mark.parametrize("damage", ["gone", "cut", "garbage"])
@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_damaged_metadata_are_named_with_the_way_out(case: Case, pattern: str, damage: str) -> None:
    file = case.file("first.parquet", rows("2026-11-01", "de", 0))
    case.commit([file])
    for path in case.root.parent.rglob(f"warehouse/**/{pattern}"):
        body = path.read_bytes()
        path.unlink() if damage == "gone" else path.write_bytes(
            body[: len(body) // 2] if damage == "cut" else b"\x7f" * 999
        )
    with pytest.raises(ContractError, match="register --repair") as refused:
        case.catalog.state(NAMESPACE, NAME)
    assert f"{NAMESPACE}.{NAME}" in str(refused.value)
    case.catalog.drop(NAMESPACE, NAME)
    case.commit([file])
    case.require(rows("2026-11-01", "de", 0))


def test_manifests_of_many_commits_become_one(case: Case) -> None:
    case.commit([case.file("0.parquet", rows("2026-11-01", "de", 0))])
    with opened(NAMESPACE, NAME).transaction() as change:
        change.set_properties({"commit.manifest.min-count-to-merge": "3"})
    for number in range(1, 8):
        case.commit([case.file(f"{number}.parquet", rows("2026-11-01", "de", number * 10))], number=number)
    made = opened(NAMESPACE, NAME)
    assert len(made.current_snapshot().manifests(made.io)) <= 3
    case.require([row for number in range(8) for row in rows("2026-11-01", "de", number * 10)])


def test_a_server_that_is_away_is_tried_again(server: RestCatalog, tmp_path: Path) -> None:
    catalog = opens(SHELF)
    case = Case(tmp_path, catalog, lambda: opens(SHELF), read)
    first, second = (case.file(f"{day}.parquet", rows(day, "de", 0)) for day in ("one", "two"))
    case.commit([first])
    refusals = {(503,): StorageBusy, (429,): StorageBusy, (403,): RecipeError, (401, 401): RecipeError, (409,): Changed}
    for faults, error in refusals.items():
        server.faults.extend(faults)  # PyIceberg asks once more after 401
        with pytest.raises(error, match=r"shelf|fault"):
            catalog.commit(table(), case.state(), (second,), (), facts(case.root, 2))
        assert set(case.state().files) == {first.address}
    server.faults.append(504)
    server.lost = 504
    with pytest.raises(StorageBusy, match="whether it has made a commit"):
        catalog.commit(table(), case.state(), (second,), (), facts(case.root, 2))
    assert set(case.state().files) == {first.address, second.address}


def test_a_server_that_nobody_starts_is_named(database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", "http://127.0.0.1:9/catalog")
    with pytest.raises(StorageBusy, match="shelf does not answer"):
        opens(SHELF)
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", f"sqlite:///{tmp_path}/nowhere/catalog.db")
    with pytest.raises(StorageBusy, match="shelf does not answer"):
        opens(SHELF)


def test_a_catalog_that_is_not_described_is_refused_with_those_that_are(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        RecipeError, match=r"no catalog 'shelves' \(it has shelf \(did you mean 'shelf'\?\)\)"
    ) as refused:
        opens("shelves")
    assert "PYICEBERG_CATALOG__SHELVES__URI" in str(refused.value)
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__TYPE", "cupboard")
    with pytest.raises(RecipeError, match="shelf cannot be opened"):
        opens(SHELF)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(RecipeError, match="extra `tables`"):
        opens(SHELF)


RAY = """
import json, sys, ray

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
documents = ray.data.read_iceberg(table_identifier="conformance.kept", catalog_kwargs={"name": "shelf"})
found = {row["id"]: [row["language"], row["chars"], row["page"]] for row in documents.take_all()}
print(json.dumps(found, sort_keys=True, default=lambda value: value.tolist()))
"""


@pytest.mark.slow
def test_ray_reads_the_rows_of_a_table(case: Case) -> None:
    expected = rows("2026-11-01", "de", 0) + rows("2026-11-02", None, 10)
    case.commit([case.file("first.parquet", expected[:3]), case.file("second.parquet", expected[3:])])
    done = subprocess.run([sys.executable, "-c", RAY], check=True, capture_output=True, text=True, timeout=500)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {row["id"]: [row["language"], row["chars"], row["page"]] for row in expected}


def test_no_metadata_has_bounds_of_a_file_that_left(case: Case) -> None:
    """The least id of a file may be that of a document that was taken down."""
    first = case.file("first.parquet", rows("2026-11-01", "de", 0))
    case.commit([first, case.file("other.parquet", rows("2026-11-01", "en", 5))])
    case.commit([case.file("second.parquet", rows("2026-11-01", "de", 10))], [first], number=2)
    case.catalog.expire(NAMESPACE, NAME)
    made = opened(NAMESPACE, NAME)
    newest = made.current_snapshot()
    assert newest is not None
    assert newest.summary is not None
    assert newest.summary.additional_properties["deleted-records"] == "3"
    entries = [
        entry
        for each in newest.manifests(made.io)
        for entry in each.fetch_manifest_entry(made.io, discard_deleted=False)
    ]
    bounds = {entry.data_file.file_path.rpartition("/")[2]: entry.data_file.lower_bounds for entry in entries}
    assert {name for name, known in bounds.items() if known} == {"other.parquet", "second.parquet"}
    case.require(rows("2026-11-01", "en", 5) + rows("2026-11-01", "de", 10))
