"""The files of the tables of a version: every row once, sorted and parted, with bounds; the same bytes on any engine."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.exporting import processes
from refinery_exports.tables import table_files
from refinery_exports.tables.catalog import Table
from refinery_exports.tables.columns import WIDER, table_schema, table_type
from refinery_exports.tables.layout import DATASETS, Piece
from refinery_exports.tables.table_files import Held, Source, tables_of, write_piece, written_tables

from pipeline_tasks.engines.each import HERE, On
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stage import Shard
from pipeline_tasks.text.urls.takedown import of_rows
from tests import small_build
from tests.commands import Refinery
from tests.small_root import DAYS, RECIPE, SmallRoot


@pytest.fixture
def root(small_root: SmallRoot, tmp_path: Path) -> str:
    return small_build.copied(small_root, tmp_path).root


def first_of(root: str) -> Version:
    return version_log.current(root, RECIPE, DAYS[0])


def rows_of(held: Held, name: str) -> list[pa.Table]:
    _, files = held.tables[name]
    return [pq.read_table(f"{file.root}/{file.path}", partitioning=None) for file in files]


def test_every_record_is_in_a_table_once(root: str) -> None:
    for version in version_log.latest_by_snapshot(root, RECIPE):
        held = tables_of(root, version, HERE)
        kept, rejects = pa.concat_tables(rows_of(held, "kept")), pa.concat_tables(rows_of(held, "rejects"))
        steps = funnel(root, version)
        assert kept.num_rows == steps[-1]["rows"]
        counted = Counter(zip(*(rejects[name].to_pylist() for name in ("stage", "outcome", "reason")), strict=True))
        assert counted == {
            (step["stage"], outcome, reason): rows
            for step in steps
            for outcome in ("rejected", "quarantined")
            for reason, rows in step[outcome].items()
        }
        assert {*rejects["outcome"].to_pylist()} == {"rejected", "quarantined"}
        [stages] = rows_of(held, "stages")
        assert stages["kept"].to_pylist() == [step["rows"] for step in steps]


def test_values_that_would_choose_a_place_get_one_of_their_own(tmp_path: Path) -> None:
    """Whatever landed as a value: as the name of a null, too long for a file's name, or as a path to elsewhere."""
    long = "é" * 300
    values = [None, table_files.NULL, "", "..", "../../../x", "/", "a=b", "A", "a", long, f"{long}1", long[:40]]
    body = pa.table({"language": values})
    pq.write_table(body, path := tmp_path / "landed.parquet")
    shard = Shard(path.name, len(values), path.stat().st_size, sha256(path.read_bytes()))
    source = Source(str(tmp_path), {DATASETS: Table("r", DATASETS, body.schema, ("language",))}, of_rows([]))
    folder = tmp_path / "written" / "here"
    assert write_piece(source, Piece(DATASETS, (shard,)), folder) == {DATASETS: len(values)}
    assert {each for each in tmp_path.rglob("*.parquet") if not each.is_relative_to(folder)} == {path}
    written = [pq.read_table(each, partitioning=None)["language"].to_pylist() for each in folder.rglob("*.parquet")]
    assert sorted(written, key=str) == sorted(([value] for value in values), key=str)


def test_files_are_sorted_parted_and_bounded(root: str) -> None:
    held = tables_of(root, first_of(root), HERE)
    for name, (table, files) in held.tables.items():
        for file, rows in zip(files, rows_of(held, name), strict=True):
            assert rows.schema == table.schema
            assert all(len(rows[column].unique()) == 1 for column in table.parted_by), name
            assert rows.equals(
                rows.sort_by([(column, "ascending") for column in table.sorted_by]) if table.sorted_by else rows
            )
            group = pq.read_metadata(f"{root}/{file.path}").row_group(0)
            own = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
            assert all(column.is_stats_set for column in own.values())
            if name == "kept":
                assert own["id"].statistics.has_min_max
                assert own["id"].has_offset_index


def test_files_of_a_piece_are_few_and_named_by_their_values(root: str) -> None:
    _, files = tables_of(root, first_of(root), HERE).tables["rejects"]
    folders = {file.path.split("/rejects/")[1].rpartition("/")[0] for file in files}
    assert all(folder.startswith("stage=") for folder in folders)
    assert len(folders) > 1


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["processes", "spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_the_bytes_are_those_of_any_engine(
    root: str, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    other = shutil.copytree(root, tmp_path / "other")
    address = "" if engine == "processes" else str(request.getfixturevalue(engine))
    on = On(workers=processes(2)) if engine == "processes" else On(engine, address)
    here, there = tables_of(root, first_of(root), HERE), tables_of(str(other), first_of(str(other)), on)
    assert _listed(here) == _listed(there)


def _listed(held: Held) -> dict[str, list[tuple[str, str]]]:
    return {name: [(file.path, file.digest) for file in files] for name, (_, files) in held.tables.items()}


def test_what_is_there_is_not_written_again(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    version = first_of(root)
    assert written_tables(root, version, HERE) is None
    held = tables_of(root, version, HERE)
    monkeypatch.setattr(table_files, "write_piece", None)
    monkeypatch.setattr(table_files, "layout_of", None)
    assert _listed(tables_of(root, version, HERE)) == _listed(held)
    found = written_tables(root, version, HERE)
    assert found is not None
    assert _listed(found) == _listed(held)


def test_a_kill_between_two_pieces_costs_nothing(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    version, written = first_of(root), table_files.write_piece

    def killed(source: table_files.Source, piece: table_files.Piece, folder: Path) -> dict[str, int]:
        if piece.number:
            raise KeyboardInterrupt
        return dict(written(source, piece, folder))

    monkeypatch.setattr(table_files, "write_piece", killed)
    with pytest.raises(KeyboardInterrupt):
        tables_of(root, version, HERE)
    monkeypatch.undo()
    assert written_tables(root, version, HERE) is None
    held = tables_of(root, version, HERE)
    assert sum(rows.num_rows for rows in rows_of(held, "kept")) == funnel(root, version)[-1]["rows"]


def test_who_is_taken_down_is_in_no_file(root: str, refinery: Refinery) -> None:
    version = first_of(root)
    before = tables_of(root, version, HERE)
    gone = rows_of(before, "kept")[0]["id"][0].as_py()
    assert refinery("takedown", root, "--document", gone, "--reason", "a test").returncode == 0
    after = tables_of(root, version, HERE)
    assert after.hidden == before.hidden + 1
    assert gone not in [each for rows in rows_of(after, "kept") for each in rows["id"].to_pylist()]
    assert not {file.path for file in after.tables["kept"][1]} & {file.path for file in before.tables["kept"][1]}
    assert refinery("takedown", root, "--document", gone, "--undo", "--reason", "a test").returncode == 0
    assert _listed(tables_of(root, version, HERE)) == _listed(before)


def test_a_dataset_has_each_piece_with_its_place(small_root: SmallRoot, tmp_path: Path) -> None:
    small = small_build.copied(small_root, tmp_path)
    small_build.build(small)
    version = version_log.current(small.root, small_build.DATASET)
    held = tables_of(small.root, version, HERE)
    rows = pa.concat_tables(rows_of(held, DATASETS))
    build = open_build(small.root, version)
    lineages = [pq.read_table(f"{small.root}/{file_of(entry['lineage']).path}") for entry in build.index["shards"]]
    assert rows.num_rows == sum(lineage.num_rows for lineage in lineages)
    shards = [file_of(entry["bin"]).path for entry in build.index["shards"]]
    for shard, lineage in zip(shards, lineages, strict=True):
        own = rows.filter(pc.equal(rows["shard"], shard))
        assert own.select(lineage.column_names).equals(lineage.cast(own.select(lineage.column_names).schema))
    assert "kept" not in held.tables
    assert sum(each.num_rows for each in rows_of(held, "rejects")) == sum(
        sum(step["rejected"].values()) for step in funnel(small.root, version)
    )


def test_columns_of_every_type_are_held_by_one_of_tables() -> None:
    kinds = [kind for kind in WIDER if kind != pa.null()]
    nested = pa.struct([("a", pa.large_list(pa.uint8())), ("b", pa.map_(pa.large_string(), pa.uint32()))])
    held = table_schema(pa.schema([*((f"c{at}", kind) for at, kind in enumerate(kinds)), ("nested", nested)]))
    assert not {*held.types} & {*WIDER}
    assert held.field("nested").type == pa.struct(
        [("a", pa.list_(pa.field("element", pa.int32()))), ("b", pa.map_(pa.string(), pa.int64()))]
    )


@given(st.sampled_from([kind for kind in WIDER if pa.types.is_integer(kind)]), st.integers(-(2**70), 2**70))
def test_a_whole_number_fits_the_type_that_holds_its_own(kind: pa.DataType, value: int) -> None:
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    value %= 2**bits
    value -= 2**bits // 2 if signed else 0
    assert pa.array([value], kind).cast(table_type(kind))[0].as_py() == value


def test_a_file_is_named_as_others_open_it() -> None:
    assert table_files.address_of("/data/root", "a b.parquet") == "file:///data/root/a b.parquet"
    assert table_files.address_of("s3://bucket/root", "a.parquet") == "s3://bucket/root/a.parquet"
