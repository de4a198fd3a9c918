"""The rows of a version of a Delta table land, and nothing else; what changed since is an incremental snapshot."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_sources.tables.libraries import require_library
from refinery_sources.testing import check_source

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.storage import options_of_other_clients
from tests.commands import Refinery
from tests.sources.delta_vectors import delete_rows, inline, stored
from tests.sources.pulling import NOW, Killed, digests_of, killed_after, promise_of, pull_source, query_of, records_of

deltalake = pytest.importorskip("deltalake")

FEED = {"delta.enableChangeDataFeed": "true"}


def rows(*ids: int, day: str = "mon", mark: str = "") -> pa.Table:
    texts = [
        f"The ferry number {n} leaves the harbor before the fog has lifted. Nobody on the quay knows whether it comes back.{mark}"
        for n in ids
    ]
    links = [f"https://a.org/{n}" for n in ids]
    return pa.table({"doc": list(ids), "body": texts, "link": links, "day": [day] * len(ids)})


def table(path: Path, day: str = "a b/é%") -> str:
    """Write a table of two days: versions 0 and 1."""
    deltalake.write_deltalake(str(path), rows(*range(10)), partition_by=["day"], configuration=FEED)
    deltalake.write_deltalake(str(path), rows(10, 11, 12, day=day), mode="append")
    return str(path)


def source(path: str, **more: Any) -> dict[str, Any]:
    return {"delta": {"table": path, "fields": {"text": "body", "url": "link", "id": "doc"}, **more}}


def ids_of(place: Path) -> list[int]:
    return [int(record["record_id"]) for record in records_of(place)]


def test_a_version_lands_with_its_partitions_and_the_same_bytes_again(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    first, landed = pull_source(source(path, version=0), tmp_path / "landings")
    assert (first.name, ids_of(first), landed.files) == ("news-v00000000", list(range(10)), 1)
    latest, _ = pull_source(source(path), tmp_path / "landings")
    assert latest.name == "news-v00000001"
    read = records_of(latest)
    assert sorted(int(record["record_id"]) for record in read) == list(range(13))
    assert {json.loads(record["metadata"])["day"] for record in read} == {"mon", "a b/é%"}
    promise = promise_of(latest)
    assert (promise["source"]["cursor"], promise["source"]["rows"]) == ("1", 13)
    other, _ = pull_source(source(path), tmp_path / "other", moment=NOW + timedelta(days=9))
    assert digests_of(other) == digests_of(latest)


def test_it_keeps_what_every_source_promises(tmp_path: Path) -> None:
    check_source(query_of(source(table(tmp_path / "t"))))


def test_updates_and_deletes_are_those_of_the_version(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    deltalake.DeltaTable(path).update(updates={"body": "'new'"}, predicate="doc = 3")
    deltalake.DeltaTable(path).delete("doc IN (4, 11)")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    read = {int(record["record_id"]): record["text"] for record in records_of(landed)}
    assert sorted(read) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12]
    assert read[3] == "new"
    before, _ = pull_source(source(path, version=2), tmp_path / "landings")
    assert sorted(ids_of(before)) == list(range(13))


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    younger = rows(13).append_column("score", pa.array([0.5]))
    deltalake.write_deltalake(path, younger, mode="append", schema_mode="merge")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    scores = {int(record["record_id"]): json.loads(record["metadata"]).get("score") for record in records_of(landed)}
    assert (scores[13], scores[1], len(scores)) == (0.5, None, 14)


def test_a_version_at_a_time_is_the_newest_then(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    for number in (0, 1):  # a version is of the time of its file in the log
        at = datetime(2020 + number, 1, 1, tzinfo=UTC).timestamp()
        os.utime(tmp_path / "t" / "_delta_log" / f"{number:020d}.json", (at, at))
    for moment, name in (("2020-06-01T00:00:00Z", "news-v00000000"), ("2021-06-01T00:00:00Z", "news-v00000001")):
        place, _ = pull_source(source(path, version=moment), tmp_path / "landings")
        assert place.name == name


# --- Deletion vectors ---------------------------------------------------------------------------------------------


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    """A table of 30 rows in three files; vectors in the log and beside it take out five, and all of a file."""
    path = tmp_path / "vectors"
    for first in (0, 10, 20):
        deltalake.write_deltalake(str(path), rows(*range(first, first + 10)), mode="append")
    actions = pa.table(deltalake.DeltaTable(str(path)).get_add_actions()).to_pylist()
    newest, middle, oldest = (action["path"] for action in sorted(actions, key=lambda one: -one["modification_time"]))
    first_of = {name: pq.read_table(path / name)["doc"][0].as_py() for name in (oldest, middle, newest)}
    by_first = {first: name for name, first in first_of.items()}
    delete_rows(path, {by_first[0]: inline({1}), by_first[10]: stored(path, {0, 7, 8, 9})})
    delete_rows(path, {by_first[20]: inline(set(range(10)))})
    return str(path)


def test_rows_in_deletion_vectors_do_not_land(vectors: str, tmp_path: Path) -> None:
    with pytest.raises(deltalake.exceptions.DeltaProtocolError):  # why the table is not read as a dataset of Arrow
        deltalake.DeltaTable(vectors).to_pyarrow_dataset()
    landed, result = pull_source(source(vectors), tmp_path / "landings")
    assert sorted(ids_of(landed)) == [0, *range(2, 10), *range(11, 17)]
    assert result.files == 2
    whole, _ = pull_source(source(vectors, version=2), tmp_path / "landings")
    assert sorted(ids_of(whole)) == list(range(30))
    again, _ = pull_source(source(vectors), tmp_path / "again")
    assert digests_of(again) == digests_of(landed)


def test_a_deletion_vector_that_is_gone_is_no_table_without_it(vectors: str, tmp_path: Path) -> None:
    for file in Path(vectors).glob("deletion_vector_*.bin"):
        file.unlink()
    with pytest.raises(RecipeError, match="version 4"):
        pull_source(source(vectors), tmp_path / "landings")


def test_vectors_are_changes_too(vectors: str, tmp_path: Path) -> None:
    more = {"incremental": True}
    first, _ = pull_source(source(vectors, version=2, **more), tmp_path / "landings")
    later, _ = pull_source(source(vectors, version=4, **more), tmp_path / "landings")
    assert ids_of(later) == []
    gone = [json.loads(line)["id"] for line in (later / "_deleted.jsonl").read_text().splitlines()]
    assert sorted(map(int, gone)) == [1, 10, 17, 18, 19, *range(20, 30)]
    assert sorted(ids_of(first)) == list(range(30))


# --- Versions that cannot be read ---------------------------------------------------------------------------------


def test_a_vacuumed_version_is_refused_with_those_that_can_be_read(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    deltalake.DeltaTable(path).delete("doc = 4")
    deltalake.DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(RecipeError, match=r"version 1 was vacuumed.*can be read: 2 to 4"):
        pull_source(source(path, version=1), tmp_path / "landings")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    assert (len(ids_of(landed)), landed.name) == (12, "news-v00000004")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"version": 9}, "version 9 .*versions 0 to 1"),
        ({"version": "yesterday"}, "yesterday"),
        ({"version": -1}, "no version -1"),
        ({"version": "1" * 30}, "no version 1111"),
        ({"version": "1999-01-01"}, r"no version of 1999-01-01T00:00:00Z.* 0, was made at"),
        ({"fields": {"text": "bodi"}}, r"bodi; .*doc, body, link, day"),
        ({"fields": {}}, "doc, body, link, day"),
        ({"table": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_what_is_not_there_is_refused_by_name(more: dict[str, Any], named: str, tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    with pytest.raises(RecipeError, match=named):
        pull_source(source(path, **more), tmp_path / "landings")


def test_a_file_with_other_rows_than_its_log_says_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t")
    file = next((tmp_path / "t" / "day=mon").glob("*.parquet"))
    pq.write_table(pq.read_table(file, partitioning=None).slice(1), file)
    with pytest.raises(ContractError, match=r"9 rows.*promises 10"):
        pull_source(source(path), tmp_path / "landings")


def test_a_library_that_is_not_installed_is_named_with_its_extra() -> None:
    with pytest.raises(RecipeError, match=r"no_such_library.*tables"):
        require_library("no_such_library")


# --- Changes ------------------------------------------------------------------------------------------------------


def test_changes_since_the_last_landing_are_a_snapshot_and_what_went_is_beside_it(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = source(path, incremental=True)
    first, _ = pull_source(feed, tmp_path / "landings")
    again, found = pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert (again, found.found) == (first, 2)
    at = deltalake.DeltaTable
    at(path).update(updates={"body": "'once'"}, predicate="doc = 3")
    at(path).update(updates={"body": "'twice'"}, predicate="doc = 3")
    at(path).delete("doc IN (4, 11)")
    deltalake.write_deltalake(path, rows(20, 21, day="tue"), mode="append")
    at(path).delete("doc = 21")
    deltalake.write_deltalake(path, rows(4), mode="append")  # as it was: nothing has changed
    later, _ = pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=2))
    assert later.name == "news-v00000007"
    read = {int(record["record_id"]): record["text"] for record in records_of(later)}
    assert sorted(read) == [3, 20]
    assert read[3] == "twice"
    assert (later / "_deleted.jsonl").read_text() == '{"id":"11","url":"https://a.org/11"}\n'
    promise = promise_of(later)
    assert [file["path"] for file in promise["files"]] == ["changed.parquet"]
    assert promise["source"]["query"]["since"] == 1
    at(path).optimize.compact()
    quiet, _ = pull_source(feed, tmp_path / "landings", moment=NOW + timedelta(days=3))
    assert (records_of(quiet) if quiet.exists() else []) == []
    other, _ = pull_source(feed, tmp_path / "others")
    assert sorted(ids_of(other)) == [*range(11), 12, 20]


def test_an_id_that_another_row_still_has_is_not_gone(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    deltalake.write_deltalake(path, rows(5, mark=" Twice."), mode="append")
    feed = source(path, incremental=True)
    pull_source(feed, tmp_path / "landings")
    deltalake.DeltaTable(path).delete("body LIKE '%Twice.'")
    later, _ = pull_source(feed, tmp_path / "landings")
    gone = later / "_deleted.jsonl"
    assert (gone.read_text() if gone.exists() else "") == ""


def test_changes_have_the_same_bytes_in_another_pull(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = source(path, incremental=True)
    for landings in ("a", "b"):
        pull_source({"delta": {**feed["delta"], "version": 1}}, tmp_path / landings)
    for first in range(30, 300, 30):
        deltalake.write_deltalake(path, rows(*range(first, first + 30)), mode="append")
    deltalake.DeltaTable(path).delete("doc % 7 = 0")
    pairs = [
        pull_source({"delta": {**feed["delta"], "version": 11}}, tmp_path / landings)[0] for landings in ("a", "b")
    ]
    assert digests_of(pairs[0]) == digests_of(pairs[1])
    assert len(ids_of(pairs[0])) == sum(n % 7 != 0 for n in range(30, 300))


def test_a_killed_pull_goes_on_with_its_version(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    with pytest.raises(Killed):
        pull_source(source(path), tmp_path / "landings", on_bytes=killed_after(2_000))
    deltalake.write_deltalake(path, rows(20), mode="append")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    assert (landed.name, sorted(ids_of(landed))) == ("news-v00000001", list(range(13)))
    later, _ = pull_source(source(path), tmp_path / "landings")
    assert (later.name, len(ids_of(later))) == ("news-v00000002", 14)


# --- Tables that only deltalake reads -----------------------------------------------------------------------------


def mapped_table(path: Path) -> str:
    """Write a table whose columns have other names in its files, as the protocol's text says."""
    (path / "_delta_log").mkdir(parents=True)
    names = {"doc": "col-1", "body": "col-2", "link": "col-3"}
    data = rows(*range(40)).drop_columns(["day"]).rename_columns(list(names.values()))
    pq.write_table(data, path / "a.parquet")
    kinds = {"doc": "long", "body": "string", "link": "string"}
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": at, "delta.columnMapping.physicalName": names[name]},
        }
        for at, (name, kind) in enumerate(kinds.items(), 1)
    ]
    settings = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    actions = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {
            "metaData": {
                "id": "4d1a9a5e-0000-4000-8000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": settings,
                "createdTime": 1,
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": (path / "a.parquet").stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
                "stats": json.dumps({"numRecords": 40}),
            }
        },
    ]
    log = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{0:020d}.json").write_text(log)
    return str(path)


def test_a_table_with_mapped_columns_lands_by_its_names_in_the_order_of_hashes(tmp_path: Path) -> None:
    path = mapped_table(tmp_path / "t")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    read = ids_of(landed)
    assert sorted(read) == list(range(40))
    assert read != sorted(read)
    again, _ = pull_source(source(path), tmp_path / "again")
    assert digests_of(again) == digests_of(landed)


@pytest.mark.slow
def test_a_landed_table_is_refined(vectors: str, tmp_path: Path, refinery: Refinery) -> None:
    landed, _ = pull_source(source(vectors), tmp_path / "landings")
    recipe = tmp_path / "small.yaml"
    recipe.write_text(
        "name: small\nstages:\n  ingest: {}\n  extract: {min_chars: 20}\nrun: {partitions: 1}\ngates: {}\n"
    )
    done = refinery("run", "--input", landed, "--output", tmp_path / "root", "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert version_log.current(str(tmp_path / "root"), "small", landed.name).documents == 15


@pytest.mark.parametrize("any_bucket", ["s3", "az"], indirect=True)
def test_a_table_in_a_bucket_lands_by_the_credentials_of_the_stores(any_bucket: str, tmp_path: Path) -> None:
    path = f"{any_bucket}/t"
    options = options_of_other_clients(path)
    deltalake.write_deltalake(path, rows(*range(10), day="a b"), partition_by=["day"], storage_options=options)
    deltalake.DeltaTable(path, storage_options=options).delete("doc = 4")
    landed, _ = pull_source(source(path), tmp_path / "landings")
    assert sorted(ids_of(landed)) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_times_of_a_table_are_dates_of_documents(tmp_path: Path) -> None:
    times = [datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), None]
    data = rows(1, 2).append_column("seen", pa.array(times, pa.timestamp("us", "UTC")))
    deltalake.write_deltalake(str(tmp_path / "t"), data)
    fields = {"text": "body", "time": "seen"}
    landed, _ = pull_source({"delta": {"table": str(tmp_path / "t"), "fields": fields}}, tmp_path / "landings")
    assert [record["crawled_at"] for record in records_of(landed)] == ["2026-01-02T03:04:05Z", None]


def test_an_older_version_is_asked_for_by_its_number_and_a_table_made_anew_is_none_of_changes(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = source(path, incremental=True)
    pull_source(feed, tmp_path / "landings")
    old, _ = pull_source({"delta": {**feed["delta"], "version": 0}}, tmp_path / "landings")
    assert (old.name, sorted(ids_of(old))) == ("news-v00000000", list(range(10)))
    shutil.rmtree(path)
    deltalake.write_deltalake(path, rows(1))
    with pytest.raises(RecipeError, match="made anew"):
        pull_source(feed, tmp_path / "landings")


def test_what_is_gone_is_named_by_id_and_by_url_only_if_no_row_has_it(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = source(path, incremental=True)
    pull_source(feed, tmp_path / "landings")
    at = deltalake.DeltaTable
    at(path).update(updates={"link": "'https://a.org/moved'"}, predicate="doc = 3")  # the same row at another address
    at(path).delete("doc IN (4, 5)")
    moved = rows(40).set_column(2, "link", pa.array(["https://a.org/4"]))  # another row at the same address
    deltalake.write_deltalake(path, moved, mode="append")
    later, _ = pull_source(feed, tmp_path / "landings")
    assert sorted(ids_of(later)) == [3, 40]
    gone = [json.loads(line) for line in (later / "_deleted.jsonl").read_text().splitlines()]
    assert gone == [{"id": "4"}, {"id": "5", "url": "https://a.org/5"}]


def test_rows_without_an_id_are_known_by_their_url(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = {"delta": {"table": path, "incremental": True, "fields": {"text": "body", "url": "link"}}}
    pull_source(feed, tmp_path / "landings")
    deltalake.DeltaTable(path).delete("doc = 4")
    later, _ = pull_source(feed, tmp_path / "landings")
    assert (later / "_deleted.jsonl").read_text() == '{"url":"https://a.org/4"}\n'


def test_ids_and_texts_at_the_end_of_paths_are_those_of_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    docs = [{"key": n, "body": f"The ferry number {n} leaves the harbor before the fog has lifted."} for n in range(5)]
    deltalake.write_deltalake(path, pa.table({"doc": docs}), configuration=FEED)
    fields = {"text": "doc.body", "id": "doc.key"}
    feed = {"delta": {"table": path, "incremental": True, "fields": fields}}
    first, _ = pull_source(feed, tmp_path / "landings")
    assert [(record["text"], record["metadata"]) for record in records_of(first)] == [
        (doc["body"], None) for doc in docs
    ]
    deltalake.DeltaTable(path).delete("doc['key'] = 3")
    later, _ = pull_source(feed, tmp_path / "landings")
    assert (later / "_deleted.jsonl").read_text() == '{"id":"3"}\n'


def test_a_feed_that_deltalake_does_not_find_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """It asks for a file of changes by an address that it escapes twice, where a value of a partition has a blank."""
    path = table(tmp_path / "t", "a b")
    feed = source(path, incremental=True)
    pull_source(feed, tmp_path / "landings")
    deltalake.DeltaTable(path).delete("doc = 11")
    with pytest.raises(RecipeError, match="incremental: false"):
        pull_source(feed, tmp_path / "landings")
    whole, _ = pull_source(source(path), tmp_path / "others")
    assert len(ids_of(whole)) == 12


def test_a_log_that_counts_other_rows_than_a_scan_is_refused(vectors: str, tmp_path: Path) -> None:
    log = Path(vectors) / "_delta_log" / f"{3:020d}.json"
    log.write_text(log.read_text().replace('\\"numRecords\\":10', '\\"numRecords\\":11'))
    with pytest.raises(ContractError, match="by a scan"):
        pull_source(source(vectors), tmp_path / "landings")
    assert not (tmp_path / "landings").exists()


def test_a_change_feed_that_lacks_a_row_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "t", "tue")
    feed = source(path, incremental=True)
    pull_source(feed, tmp_path / "landings")
    deltalake.DeltaTable(path).delete("doc IN (4, 5)")
    [file] = (tmp_path / "t" / "_change_data").rglob("*.parquet")
    log, size = tmp_path / "t" / "_delta_log" / f"{2:020d}.json", file.stat().st_size
    pq.write_table(pq.ParquetFile(file).read().slice(1), file)
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'))
    with pytest.raises(ContractError, match="leads from 13 rows to 12, and the version has 11"):
        pull_source(feed, tmp_path / "landings")
