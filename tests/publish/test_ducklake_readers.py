"""DuckDB reads what is registered in a lake, leaves out files that a query does not need, and removes none of a root."""

import datetime as dt
import threading
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refinery_exports.tables.catalog import Changed, DataFile, Table
from refinery_exports.tables.ducklake import opens
from refinery_exports.tables.testing import check_catalog

from tests.lakes import READERS, Place, documents, facts_of, file_of, table_of

pytestmark = pytest.mark.skipif(not READERS, reason="needs other readers: make readers-test")

EXPIRE = "SELECT count(*) FROM ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 HOUR)"
CLEAN = "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)"
ORPHANS = "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def names_of(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def registered(place: Place, root: Path) -> list[DataFile]:
    """Register three files of different languages, ids and numbers, and one with a column that came later."""
    tables = [documents("de", 0), documents("fr", 10), documents(None, 20)]
    files = [file_of(root, f"{rank}.parquet", rows) for rank, rows in enumerate(tables)]
    later = documents("de", 30, license=pa.array(["CC0-1.0"] * 4))
    files.append(file_of(root, "later.parquet", later))
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(tables[0]), None, tuple(files[:3]), (), facts_of(root))
        lake.commit(table_of(later), lake.state("news", "kept"), (files[3],), (), facts_of(root, "2026-11-21"))
    return files


def test_duckdb_reads_what_a_catalog_promises(place: Place) -> None:
    check_catalog(lambda: opens(place.address), place.scanned)


def test_values_of_every_type_come_back(place: Place, root: Path) -> None:
    long_ago = dt.datetime(1960, 1, 1)  # noqa: DTZ001 -- a type of its own
    moment = dt.datetime(2026, 11, 20, 1, 2, 3, 456789)  # noqa: DTZ001 -- a type of its own
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "id": (pa.string(), ["a", "b", "c"]),
        "language": (pa.large_string(), ["de", "de", "de"]),
        **{
            f"int{bits}": (getattr(pa, f"int{bits}")(), [-(1 << bits - 1), None, (1 << bits - 1) - 1])
            for bits in (8, 16, 32, 64)
        },
        **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), [0, None, (1 << bits) - 1]) for bits in (8, 16, 32, 64)},
        "float": (pa.float32(), [0.1, None, -1.5]),
        "double": (pa.float64(), [1e300, None, float("inf")]),
        "flag": (pa.bool_(), [True, None, False]),
        "bytes": (pa.binary(), [b"\x00\xff", None, b""]),
        "day": (pa.date32(), [dt.date(2026, 11, 20), None, dt.date(1, 1, 1)]),
        "second": (pa.timestamp("s"), [moment.replace(microsecond=0), None, long_ago]),
        "time": (pa.timestamp("us"), [moment, None, long_ago]),
        "utc": (
            pa.timestamp("us", "UTC"),
            [moment.replace(tzinfo=dt.UTC), None, long_ago.replace(tzinfo=dt.UTC)],
        ),
        "nano": (pa.timestamp("ns"), [1_763_600_000_123_456_789, None, 0]),
        "hash": (pa.decimal128(20, 0), [Decimal(2**64 - 1), None, Decimal(0)]),
        "cents": (pa.decimal128(10, 2), [Decimal("-1.25"), None, Decimal("0.00")]),
        "texts": (pa.list_(pa.string()), [["x", None], None, []]),
        "lists": (pa.list_(pa.list_(pa.int32())), [[[1], [], None], None, []]),
        "struct": (
            pa.struct([("a", pa.int32()), ("element", pa.list_(pa.string()))]),
            [{"a": 1, "element": ["q"]}, None, {"a": None, "element": None}],
        ),
        "structs": (
            pa.list_(pa.struct([("a", pa.int32()), ("b", pa.map_(pa.string(), pa.float64()))])),
            [[{"a": 1, "b": [("k", 1.5)]}], None, []],
        ),
        "map": (pa.map_(pa.string(), pa.float64()), [[("k", 1.5), ("l", None)], None, []]),
        "maps": (pa.map_(pa.string(), pa.list_(pa.int64())), [[("k", [1])], None, []]),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in values.items()])
    rows = pa.table({name: pa.array(items, kind) for name, (kind, items) in values.items()}, schema)
    files = [file_of(root, "a.parquet", rows), file_of(root, "none.parquet", rows.slice(0, 0))]
    pq.write_table(pa.concat_tables([rows] * 3), root / "groups.parquet", row_group_size=2)
    files.append(
        DataFile(
            str(root),
            "groups.parquet",
            (root / "groups.parquet").as_uri(),
            (root / "groups.parquet").stat().st_size,
            "",
        )
    )
    with closing(opens(place.address)) as lake:
        lake.commit(Table("news", "kept", schema, ("language",), ("id",)), None, tuple(files), (), facts_of(root))
    found = place.scanned("news", "kept")
    assert found.num_rows == 12
    expected = pa.concat_tables([rows] * 4)
    order = [("id", "ascending")]
    assert found.cast(schema).sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
    [[bounds]] = place.asked(
        "SELECT (count(*), min(int64), max(uint64), min(double), max(day), min(hash))::VARCHAR FROM lake.news.kept"
    )
    assert bounds == ["(12, -9223372036854775808, 18446744073709551615, 1e+300, 2026-11-20, 0)"]


@pytest.mark.parametrize(
    ("condition", "rows", "files"),
    [
        ("language = 'fr'", 4, 1),
        ("id = '0011'", 1, 1),
        ("id > '0029'", 4, 1),
        ("chars > 21", 6, 2),
        ("score < 0.95", 4, 1),
        ("license = 'CC0-1.0'", 4, 1),
        ("license IS NULL", 12, 4),
        ("language IS NULL", 4, 4),
        ("page.number = 11", 1, 4),
        ("text LIKE 'Ferry 1%'", 5, 4),
    ],
)
def test_duckdb_reads_the_files_alone_that_a_query_needs(
    place: Place, root: Path, condition: str, rows: int, files: int
) -> None:
    registered(place, root)
    query = f"FROM lake.news.kept WHERE {condition}"
    [[[count]], [[_, plan]]] = place.asked(f"SELECT count(id) {query}", f"EXPLAIN ANALYZE SELECT id {query}")
    assert count == rows
    assert f"Total Files Read: {files}" in plan


def test_older_states_can_be_read_until_they_are_forgotten(place: Place, root: Path) -> None:
    files = registered(place, root)
    with closing(opens(place.address)) as lake:
        state = lake.state("news", "kept")
        lake.commit(table_of(documents("de", 0)), state, (), (files[0].address,), facts_of(root))
        counts = [f"SELECT count(*) FROM lake.news.kept AT (VERSION => {version})" for version in (1, 2, 3)]
        assert place.asked(*counts) == [[[12]], [[16]], [[12]]]
        assert lake.expire("news", "kept") == 2
    assert place.asked(counts[2], "SELECT count(*), count(license) FROM lake.news.kept") == [[[12]], [[12, 4]]]
    [versions] = place.asked("SELECT snapshot_id, author, commit_message FROM ducklake_snapshots('lake')")
    assert versions[-1] == [3, "Refinery", "2026-11-20, version ?"]


def test_duckdb_removes_no_file_of_a_root(place: Place, root: Path) -> None:
    files = registered(place, root)
    before = names_of(root)
    with closing(opens(place.address)) as lake:
        lake.commit(table_of(documents("de", 0)), lake.state("news", "kept"), (), (files[0].address,), facts_of(root))
        place.asked(
            EXPIRE, CLEAN, ORPHANS, "CALL ducklake_merge_adjacent_files('lake')", "CHECKPOINT lake", CLEAN, ORPHANS
        )
        assert names_of(root) == before
        state = lake.state("news", "kept")
        assert state
        assert set(state.files) == {file.address for file in files[1:]}
        place.asked(
            "DELETE FROM lake.news.kept WHERE language = 'fr'", "DROP TABLE lake.news.kept", EXPIRE, CLEAN, ORPHANS
        )
        assert lake.state("news", "kept") is None
    assert names_of(root) == before


def test_a_lake_of_duckdb_is_extended_as_it_is(place: Place, root: Path) -> None:
    folder = f"{place.data_path}of-duckdb/"
    made = ["CREATE TABLE lake.own(x INT)", "INSERT INTO lake.own VALUES (1), (2)", "CREATE SCHEMA lake.news"]
    place.asked(*made, data_path=folder)
    files = registered(place, root)
    assert place.asked("FROM lake.own ORDER BY x", "SELECT count(*) FROM lake.news.kept") == [[[1], [2]], [[16]]]
    place.asked("INSERT INTO lake.own VALUES (3)", "ALTER TABLE lake.news.kept ADD COLUMN mine INT")
    with closing(opens(place.address)) as lake:
        rows = documents("it", 40)
        lake.commit(
            table_of(rows), lake.state("news", "kept"), (file_of(root, "it.parquet", rows),), (), facts_of(root)
        )
        state = lake.state("news", "kept")
    assert state
    assert len(state.files) == len(files) + 1
    assert place.asked("SELECT count(*), count(mine) FROM lake.news.kept", "SELECT max(x) FROM lake.own") == [
        [[20, 0]],
        [[3]],
    ]


def test_what_duckdb_writes_into_a_table_is_seen(place: Place, root: Path) -> None:
    registered(place, root)
    rows = documents("de", 0)
    with closing(opens(place.address)) as lake:
        before = lake.state("news", "kept")
        place.asked("INSERT INTO lake.news.kept (id) VALUES ('mine')", "DELETE FROM lake.news.kept WHERE id = '0010'")
        with pytest.raises(Changed):
            lake.commit(table_of(rows), before, (), (), facts_of(root))
        after = lake.state("news", "kept")
    assert before
    assert after
    assert after.files[(root / "1.parquet").as_uri()] == 3
    [foreign] = set(after.files) - set(before.files)
    assert after.files[foreign] == 1
    assert place.data_path in foreign


def test_duckdb_and_refinery_write_at_the_same_time(place: Place, root: Path) -> None:
    """DuckDB gives up a commit that finds the database locked, or another one's snapshot too often; ours wait."""
    registered(place, root)
    place.asked("CREATE TABLE lake.own(x INT)")
    theirs: list[Any] = []

    def write() -> None:
        theirs.extend(place.tried(*[f"INSERT INTO lake.own VALUES ({number})" for number in range(30)]))

    writer = threading.Thread(target=write)
    writer.start()
    with closing(opens(place.address)) as lake:
        for commit in range(20):
            rows = documents("de", 100 + 10 * commit)
            file = file_of(root, f"new-{commit}.parquet", rows)
            lake.commit(table_of(rows), lake.state("news", "kept"), (file,), (), facts_of(root))
    writer.join()
    done = [answer for answer in theirs if not isinstance(answer, str)]
    assert done
    [[[count]], [[own]]] = place.asked("SELECT count(*) FROM lake.news.kept", "SELECT count(*) FROM lake.own")
    assert (count, own) == (16 + 4 * 20, len(done))


def test_a_lake_has_the_tables_that_duckdb_makes(place: Place, tmp_path: Path, root: Path) -> None:
    """Of PostgreSQL the schema is compared by its columns, and of SQLite by DuckDB's own words."""
    registered(place, root)
    ours = columns_of(place)
    if place.address.startswith("sqlite:"):
        other = Place(f"sqlite:{tmp_path}/other.sqlite", f"{tmp_path}/other/")
    else:
        for name in {name for name, *_ in ours}:
            place.rows(f"DROP TABLE {name}")
        place.rows("DROP TABLE refinery_file")
        other = place
    other.asked("FROM duckdb_tables()", data_path=other.data_path)
    assert columns_of(other) == ours


def columns_of(place: Place) -> list[tuple[Any, ...]]:
    """Return table, column, type and whether it may be null, of all columns of a lake."""
    if place.address.startswith("sqlite:"):
        return place.rows(
            'SELECT m.name, p.cid, p.name, p.type, p."notnull", p.pk FROM sqlite_master m, pragma_table_info(m.name) p '
            "WHERE m.type = 'table' AND m.name LIKE 'ducklake%' ORDER BY 1, 2"
        )
    return place.rows(
        "SELECT table_name, ordinal_position, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name LIKE 'ducklake%' ORDER BY 1, 2"
    )


def test_ranges_are_those_that_duckdb_takes_from_the_same_file(place: Place, root: Path) -> None:
    rows = documents("de", 0).append_column("tags", pa.array([["x", None], [], None, ["y"]]))
    file = file_of(root, "a.parquet", rows)
    with closing(opens(place.address)) as lake:
        lake.commit(Table("news", "kept", rows.schema), None, (file,), (), facts_of(root))
    place.asked(
        "CREATE TABLE lake.news.own AS FROM lake.news.kept LIMIT 0",
        f"CALL ducklake_add_data_files('lake', 'own', '{root}/a.parquet', schema => 'news')",
    )
    kept = (
        "SELECT c.column_name, s.column_size_bytes, s.value_count, s.null_count, s.min_value, s.max_value, f.record_count, "
        "f.file_size_bytes, f.footer_size FROM ducklake_file_column_stats s JOIN ducklake_data_file f "
        "ON f.data_file_id = s.data_file_id JOIN ducklake_column c ON c.column_id = s.column_id AND c.table_id = s.table_id "
        "JOIN ducklake_table t ON t.table_id = s.table_id WHERE t.table_name = ? AND c.column_name <> 'text' ORDER BY 1"
    )
    ours = place.rows(kept, "kept")
    assert len(ours) == 6
    assert ours == place.rows(kept, "own")
    mapped = (
        "SELECT n.column_id, n.source_name, n.target_field_id, n.parent_column FROM ducklake_name_mapping n "
        "JOIN ducklake_column_mapping m ON m.mapping_id = n.mapping_id JOIN ducklake_table t ON t.table_id = m.table_id "
        "WHERE t.table_name = ? ORDER BY 1"
    )
    assert place.rows(mapped, "kept") == place.rows(mapped, "own") != []
