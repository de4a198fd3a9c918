"""The rows of a snapshot of an Iceberg table land without those that are deleted, or the table is refused by name."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refinery_sources.tables.iceberg_metadata import opened, s3_properties
from refinery_sources.testing import check_source

from pipeline_tasks.errors import ContractError, RecipeError
from tests.sources.pulling import NOW, Killed, digests_of, killed_after, promise_of, pull_source, query_of, records_of

pytest.importorskip("pyiceberg")

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.sources.iceberg_deletes import SNAPSHOT, equal_rows, positions, vector, with_deletes


def rows(*ids: int) -> pa.Table:
    texts = [f"The ferry number {n} leaves the harbor before the fog has lifted from the water." for n in ids]
    return pa.table({"doc": pa.array(ids, pa.int64()), "body": texts, "link": [f"https://a.org/{n}" for n in ids]})


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of two snapshots, in a catalog that PyIceberg's configuration calls `shelf`."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__SHELF__URI", uri)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    catalog = SqlCatalog("shelf", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("news")
    made = catalog.create_table("news.ferries", rows(0).schema)
    made.append(rows(*range(10)))
    made.append(rows(10, 11, 12))
    return made


def source(table: str = "news.ferries", **more: Any) -> dict[str, Any]:
    catalog = {"catalog": "shelf"} if table == "news.ferries" else {}
    return {"iceberg": {"table": table, "fields": {"text": "body", "url": "link", "id": "doc"}, **catalog, **more}}


def ids_of(place: Path) -> list[int]:
    return [int(record["record_id"]) for record in records_of(place)]


def snapshots(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.refresh().snapshots()]


def test_a_snapshot_lands_with_the_same_bytes_again(table: Table, tmp_path: Path) -> None:
    first, second = snapshots(table)
    latest, landed = pull_source(source(), tmp_path / "landings")
    assert sorted(ids_of(latest)) == list(range(13))
    assert (landed.files, latest.name.rpartition("-")[2]) == (2, str(second))
    about = promise_of(latest)["source"]
    assert (about["cursor"], about["rows"]) == (str(second), 13)
    other, _ = pull_source(source(version=second), tmp_path / "others", moment=NOW + timedelta(days=3))
    assert digests_of(other) == digests_of(latest)
    old, _ = pull_source(source(version=first), tmp_path / "landings")
    assert ids_of(old) == list(range(10))
    assert old.name < latest.name


@pytest.mark.usefixtures("table")
def test_it_keeps_what_every_source_promises() -> None:
    check_source(query_of(source()))


def test_updates_and_deletes_are_those_of_the_snapshot(table: Table, tmp_path: Path) -> None:
    table.delete("doc == 4")
    table.overwrite(rows(3).set_column(1, "body", pa.array(["new"])), "doc == 3")
    landed, _ = pull_source(source(), tmp_path / "landings")
    read = {int(record["record_id"]): record["text"] for record in records_of(landed)}
    assert (sorted(read), read[3]) == ([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12], "new")


def test_a_column_that_came_later_is_null_before(table: Table, tmp_path: Path) -> None:
    with table.update_schema() as update:
        update.union_by_name(pa.schema([pa.field("score", pa.float64())]))
    table.refresh().append(rows(13).append_column("score", pa.array([0.5])))
    landed, _ = pull_source(source(), tmp_path / "landings")
    scores = {int(record["record_id"]): json.loads(record["metadata"] or "{}") for record in records_of(landed)}
    assert (scores[13], scores[1], len(scores)) == ({"score": 0.5}, {"score": None}, 14)


def test_a_table_is_named_by_its_metadata_or_its_folder(table: Table, tmp_path: Path) -> None:
    place = table.metadata_location.removeprefix("file://")
    folder = Path(place).parents[1]
    landed, _ = pull_source(source(place), tmp_path / "landings")
    assert len(ids_of(landed)) == 13
    with pytest.raises(RecipeError, match=r"newest.*metadata\.json"):
        pull_source(source(str(folder)), tmp_path / "folders")
    (folder / "metadata" / "version-hint.text").write_text(Path(place).name)
    again, _ = pull_source(source(str(folder)), tmp_path / "folders")
    assert digests_of(again) == digests_of(landed)


def test_a_snapshot_at_a_time_is_the_newest_then(table: Table, tmp_path: Path) -> None:
    first = table.snapshots()[0]
    moment = NOW.fromtimestamp(first.timestamp_ms / 1000, NOW.tzinfo).isoformat()
    landed, _ = pull_source(source(version=moment), tmp_path / "landings")
    assert ids_of(landed) == list(range(10))


# --- Deletes ------------------------------------------------------------------------------------------------------


def largest(table: Table) -> str:
    files = [task.file for task in table.refresh().scan().plan_files()]
    return max(files, key=lambda file: file.record_count).file_path


@pytest.mark.parametrize("form", [positions, vector])
def test_deleted_positions_do_not_land(table: Table, form: Any, tmp_path: Path) -> None:
    place = with_deletes(table, form(tmp_path, largest(table), {0, 3, 9}), 3)
    landed, _ = pull_source(source(place), tmp_path / "landings")
    assert sorted(ids_of(landed)) == [1, 2, 4, 5, 6, 7, 8, 10, 11, 12]
    assert promise_of(landed)["source"]["cursor"] == str(SNAPSHOT)
    again, _ = pull_source(source(place), tmp_path / "again")
    assert digests_of(again) == digests_of(landed)
    before, _ = pull_source(source(place, version=snapshots(table)[1]), tmp_path / "before")
    assert sorted(ids_of(before)) == list(range(13))


def test_deletes_by_equality_are_refused_by_name(table: Table, tmp_path: Path) -> None:
    place = with_deletes(table, equal_rows(tmp_path, {"doc": [3]}), 1)
    with pytest.raises(RecipeError, match="equality deletes"):
        pull_source(source(place), tmp_path / "landings")
    assert not list((tmp_path / "landings").rglob("*.parquet"))


# --- What is not there --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"version": 5}, "no snapshot 5"),
        ({"version": "yesterday"}, "yesterday"),
        ({"fields": {"text": "bodi"}}, r"bodi; .*doc, body, link"),
        ({"fields": {}}, "doc, body, link"),
    ],
)
def test_what_is_not_there_is_refused_by_name(table: Table, more: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=named):
        pull_source(source(**more), tmp_path / "landings")
    assert str(snapshots(table)[0])


@pytest.mark.parametrize("name", ["news.trains", "/nowhere", "/nowhere/v1.metadata.json"])
def test_a_table_that_is_not_there_is_refused(table: Table, name: str, tmp_path: Path) -> None:
    catalog = {} if name.startswith("/") else {"catalog": table.catalog.name}
    with pytest.raises((RecipeError, OSError), match=r"nowhere|trains"):
        pull_source({"iceberg": {"table": name, **catalog}}, tmp_path / "landings")


def test_an_expired_snapshot_is_refused_with_those_that_there_are(table: Table, tmp_path: Path) -> None:
    first, second = snapshots(table)
    table.maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(RecipeError, match=f"no snapshot {first}.*{second}"):
        pull_source(source(version=first), tmp_path / "landings")


def test_a_summary_that_counts_other_rows_is_refused(table: Table, tmp_path: Path) -> None:
    metadata = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    metadata["snapshots"][-1]["summary"]["total-records"] = "14"
    (tmp_path / "wrong.metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(ContractError, match=r"13 rows.*14"):
        pull_source(source(str(tmp_path / "wrong.metadata.json")), tmp_path / "landings")


# --- Changes ------------------------------------------------------------------------------------------------------


def test_rows_appended_since_the_last_landing_are_a_snapshot(table: Table, tmp_path: Path) -> None:
    feed = source(incremental=True)
    first, _ = pull_source(feed, tmp_path / "landings")
    again, found = pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert (again, found.found) == (first, 2)
    table.append(rows(20, 21))
    table.append(rows(22))
    later, _ = pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=2))
    assert sorted(ids_of(later)) == [20, 21, 22]
    assert later.name > first.name
    table.delete("doc == 20")
    with pytest.raises(RecipeError, match="incremental: false"):
        pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=3))


def test_a_killed_pull_goes_on_with_its_snapshot(table: Table, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        pull_source(source(), tmp_path / "landings", on_bytes=killed_after(1_500))
    table.append(rows(20))
    landed, _ = pull_source(source(), tmp_path / "landings")
    assert sorted(ids_of(landed)) == list(range(13))
    later, _ = pull_source(source(), tmp_path / "landings")
    assert len(ids_of(later)) == 14


def test_a_table_in_a_bucket_lands_by_the_credentials_of_the_stores(s3_root: str, tmp_path: Path) -> None:
    settings = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"{s3_root}/shelf", **s3_properties()}
    catalog = SqlCatalog("bucket", **settings)
    catalog.create_namespace("news")
    made = catalog.create_table("news.ferries", rows(0).schema)
    made.append(rows(*range(5)))
    landed, _ = pull_source(source(made.metadata_location), tmp_path / "landings")
    assert ids_of(landed) == list(range(5))


def test_a_table_in_a_bucket_that_pyiceberg_would_read_by_other_keys_is_refused() -> None:
    with pytest.raises(RecipeError, match="az://container/table"):
        opened("az://container/table", "")
