"""The rows of layers over a shard are those that their columns say, read as a whole or found by a value."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.manifest import schema_pairs
from pipeline_tasks.schema import RECORD
from pipeline_tasks.stage import LANDING, Shard
from pipeline_tasks.store.shards import file as shard_file
from pipeline_tasks.store.shards.file import ShardWriter
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE
from pipeline_tasks.store.shards.matching_rows import MatchingRows
from pipeline_tasks.store.shards.rows import Facts, Places, ShardRows, facts_of, lowest, metadata_of, read_shard
from pipeline_tasks.text.base import delta

HOSTS = ("a.example", "b.example", None)


@pytest.fixture(autouse=True)
def _with_small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file, "GROUP_ROWS", 7)


def base(rows: int = 40) -> pa.Table:
    """Return rows whose text is long enough to be stored as what differs."""
    columns = {
        "id": [f"{row:04x}" for row in range(rows)],
        "text": pa.array([f"text of row {row} " * 4 for row in range(rows)], pa.large_string()),
        "host": pa.array([HOSTS[row % 3] for row in range(rows)], pa.string()),
    }
    return pa.table(columns)


def stored(root: Path, table: pa.Table, metadata: Mapping[str, str] | None = None) -> Shard:
    writer = ShardWriter(table.schema, metadata)
    for batch in table.to_batches():
        writer.write(batch)
    return writer.store(str(root), "toy/f/data")


def stored_layer(root: Path, below: Shard, table: pa.Table, rows: Sequence[int]) -> tuple[Shard, pa.Table]:
    """Store a layer of some rows of a shard, with an own column and every third text changed; return its rows, too."""
    before = table.take(pa.array(rows, pa.int64())).combine_chunks()
    texts = [f"{text}, edited" if at % 3 == 0 else None for at, text in enumerate(before["text"].to_pylist())]
    after = pa.array(texts, pa.large_string())
    deltas = delta.encode(before["text"].combine_chunks(), after)
    score = pa.array(rows, pa.float64())
    own = {
        ROW: pa.array(rows, pa.int64()),
        f"score_{len(rows)}": score,
        f"{CHANGED}text": pa.StructArray.from_arrays([deltas], names=[VALUE], mask=after.is_null()),
    }
    whole = before.set_column(1, "text", pc.coalesce(after, before["text"])).append_column(f"score_{len(rows)}", score)
    layer = stored(root, pa.table(own), metadata_of(Facts(below, schema_pairs(whole.schema))))
    return Shard(layer.path, layer.rows, layer.bytes, layer.digest, below=below.weight), whole


def stack(root: Path) -> list[tuple[Shard, pa.Table]]:
    """Store a shard, a layer of two thirds of its rows, and a layer of some of these; return each with its rows."""
    table = base()
    shards = [(stored(root, table), table)]
    for rows in ([row for row in range(40) if row % 3 != 1 or row < 9], [0, 1, 2, 8, 9, 10, 11, 20, 27, 28]):
        shards.append(stored_layer(root, *shards[-1], rows))
    return shards


@pytest.mark.parametrize("batch_rows", [1, 3, 7, 100])
@pytest.mark.parametrize("columns", [None, ["text"], ["id", "score_10"], ["host", "none"], ["none"], []])
def test_a_layer_is_read_as_its_own_columns_over_the_rows_below(
    tmp_path: Path, batch_rows: int, columns: list[str] | None
) -> None:
    for shard, table in stack(tmp_path):
        names = [name for name in table.schema.names if columns is None or name in columns]
        batches = list(read_shard(str(tmp_path), shard, batch_rows=batch_rows, columns=columns))
        assert pa.Table.from_batches(batches).select(names).combine_chunks() == table.select(names).combine_chunks()
        assert sum(batch.num_rows for batch in batches) == shard.rows
        assert max(batch.num_rows for batch in batches) <= batch_rows
        assert not any(batch.num_rows == 0 for batch in batches)


@pytest.mark.parametrize("columns", [["id"], ["none"]])
def test_chosen_rows_are_as_many_whichever_columns_are_read(tmp_path: Path, columns: list[str]) -> None:
    for shard, _ in stack(tmp_path):
        rows = np.array([0, 3, 4, 8, 9])
        read = ShardRows(str(tmp_path), shard, batch_rows=3, columns=columns, rows=rows)
        assert sum(batch.num_rows for batch in read) == len(rows)


def test_a_shard_with_other_rows_than_were_committed_is_refused(tmp_path: Path) -> None:
    shard = stored(tmp_path, base(12))
    more = replace(shard, rows=13)
    with pytest.raises(ContractError, match=rf"{shard.path} has 12 rows, and 13 were committed"):
        list(read_shard(str(tmp_path), more, columns=["id"]))


def test_a_reader_knows_all_columns_of_the_rows_whichever_it_reads(tmp_path: Path) -> None:
    for shard, table in stack(tmp_path):
        rows = ShardRows(str(tmp_path), shard, columns=["id"])
        next(iter(rows))
        assert rows.all_columns == schema_pairs(table.schema)


def test_a_layer_without_rows_has_one_batch_that_names_its_columns(tmp_path: Path) -> None:
    table = base()
    shard, whole = stored_layer(tmp_path, stored(tmp_path, table), table, [])
    (batch,) = read_shard(str(tmp_path), shard)
    assert (batch.num_rows, batch.schema) == (0, whole.schema)


def test_a_layer_with_a_row_that_the_shard_below_does_not_have_is_refused(tmp_path: Path) -> None:
    table = base()
    short = stored(tmp_path, table.slice(0, 20))
    last, whole = stored_layer(tmp_path, short, table, [3, 19])
    assert pa.Table.from_batches(list(read_shard(str(tmp_path), last))).equals(whole)
    beyond, _ = stored_layer(tmp_path, short, table, [3, 20])
    with pytest.raises(ContractError, match=rf"{beyond.path} .*{short.path}"):
        list(read_shard(str(tmp_path), beyond))


def test_the_facts_of_a_layer_are_those_that_it_was_written_with(tmp_path: Path) -> None:
    (below, table), (shard, whole), _ = stack(tmp_path)
    assert facts_of(table.schema) is None
    facts = facts_of(pq.read_schema(tmp_path / shard.path))
    assert facts == Facts(below, schema_pairs(whole.schema))


def test_the_lowest_shard_of_a_stack_has_all_columns(tmp_path: Path) -> None:
    shards = [shard for shard, _ in stack(tmp_path)]
    assert [lowest(str(tmp_path), shard) for shard in shards] == [shards[0]] * 3


def test_the_records_of_a_landed_file_are_read_by_who_can(tmp_path: Path) -> None:
    shard = Shard(f"{LANDING}crawl.warc", 1, 9, "ab" * 32)
    with pytest.raises(ContractError, match=re.escape("crawl.warc")):
        list(read_shard(str(tmp_path), shard))
    seen: list[tuple[Shard, list[str]]] = []

    def landed(shard: Shard, columns: Sequence[str], _places: Places | None) -> Any:
        seen.append((shard, list(columns)))
        yield pa.RecordBatch.from_pylist([], schema=pa.schema([RECORD.field(name) for name in columns]))

    rows = ShardRows(str(tmp_path), shard, columns=["url", "none"], landed=landed)
    assert [batch.schema.names for batch in rows] == [["url"]]
    assert seen == [(shard, ["url"])]
    assert rows.all_columns == schema_pairs(RECORD)


# --- Rows by a value --------------------------------------------------------------------------------------------------


def by_number(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("host", ["a.example", "b.example", "c.example"])
def test_the_rows_with_a_value_are_those_that_a_filter_finds(tmp_path: Path, host: str) -> None:
    shards = stack(tmp_path)
    matching = MatchingRows(str(tmp_path), "host", host)
    for shard, table in reversed(shards):
        found = matching.of(shard)
        assert found is not None
        assert found.schema.names == table.schema.names
        assert by_number(found) == by_number(table.filter(pc.fill_null(pc.equal(table["host"], host), False)))  # noqa: FBT003
    assert matching.read == sum(shard.bytes for shard, _ in shards), "each file is read once"


def test_rows_are_not_searched_in_more_bytes_than_may_be_read(tmp_path: Path) -> None:
    (low, _), (middle, _), (high, _) = stack(tmp_path)
    whole = low.bytes + middle.bytes + high.bytes
    assert MatchingRows(str(tmp_path), "host", "a.example", whole).of(high) is not None
    for most in (1, high.bytes, whole - 1):
        matching = MatchingRows(str(tmp_path), "host", "a.example", most)
        assert matching.of(high) is None
        assert matching.read <= most
    bounded = MatchingRows(str(tmp_path), "host", "a.example", low.bytes)
    assert bounded.of(low) is not None
    assert bounded.of(middle) is None
    assert bounded.of(low) is not None, "what was read is known"


def test_no_rows_are_found_in_a_changed_file(tmp_path: Path) -> None:
    (low, _), *_ = stack(tmp_path)
    path = tmp_path / low.path
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DigestMismatch, match=low.path):
        MatchingRows(str(tmp_path), "host", "a.example").of(low)
