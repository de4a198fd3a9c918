"""Selecting: what each condition rejects, by the kind of its column."""

import json
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.leaving import KEYS, LEAVING
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import FilePath
from pipeline_tasks.stages.select import SUPERSEDED, Params, select
from pipeline_tasks.store.reading import read_shards
from pipeline_tasks.store.shards.segment_writer import store_segment
from tests.documents import documents
from tests.refining import commit_parent, refined, rows

NAN = float("nan")

COLUMNS: dict[str, pa.Array] = {
    "n_tokens": pa.array([1, 2, 3, 4], pa.int64()),
    "score": pa.array([0.5, NAN, None, 2.0], pa.float64()),
    "is_kept": pa.array([True, False, None, True]),
    "site": pa.array(["a", "b", None, "2"]),
    "signals": pa.array([{"words": 5}, {"words": None}, None, {"words": 7}], pa.struct([("words", pa.int64())])),
    "day": pa.array([0, 1, None, 2], pa.date32()),
    "tokens": pa.array([[1], [2, 3], [], [4]], pa.list_(pa.int32())),
}


def judged(root: Path, where: dict[str, Any]) -> Manifest:
    """The manifest of the documents that the conditions keep and reject."""
    count = len(COLUMNS["n_tokens"])
    ids = {"id": pa.array([f"{rank:032x}" for rank in range(count)])}
    origin = {field.name: pa.array(range(count)).cast(field.type) for field in LOCATOR if field.name not in COLUMNS}
    return refined(root, "select", commit_parent(root, [pa.table(origin | ids | COLUMNS)]), {"where": where})[1]


def selected(root: Path, where: dict[str, Any]) -> list[int]:
    """The `n_tokens` of the documents that the conditions keep."""
    kept: list[int] = rows(root, judged(root, where))["n_tokens"].to_pylist()
    return kept


@pytest.mark.parametrize(
    ("name", "condition", "kept"),
    [
        ("score", {"least": 0.5}, [1, 4]),
        ("score", {"most": 1}, [1]),
        ("score", {"any_of": ["2"]}, [4]),
        ("score", {"none_of": ["2"]}, [1, 2, 3]),
        ("n_tokens", {"least": 2, "most": 3}, [2, 3]),
        ("n_tokens", {"any_of": ["1", "4"]}, [1, 4]),
        ("is_kept", {"any_of": ["true"]}, [1, 4]),
        ("is_kept", {"none_of": ["true"]}, [2, 3]),
        ("site", {"any_of": ["a", "2"], "none_of": ["2"]}, [1]),
        ("signals.words", {"least": 6}, [4]),
        ("signals.words", {"none_of": ["5"]}, [2, 3, 4]),
    ],
)
def test_conditions_on_every_kind_of_column(
    tmp_path: Path, name: str, condition: dict[str, Any], kept: list[int]
) -> None:
    assert selected(tmp_path, {name: condition}) == kept


@pytest.mark.parametrize(
    ("name", "condition", "named"),
    [
        ("tokens", {"any_of": ["1"]}, "tokens .*list.*any_of"),
        ("signals", {"none_of": ["1"]}, "signals .*struct.*none_of"),
        ("tokens", {"least": 1}, "tokens .*list.*least"),
        ("is_kept", {"least": 1}, "is_kept .*bool.*least"),
        ("signals.nothing", {"least": 1}, "signals .*'nothing'.*words"),
    ],
)
def test_conditions_that_a_column_cannot_meet_are_refused(
    tmp_path: Path, name: str, condition: dict[str, Any], named: str
) -> None:
    with pytest.raises(RecipeError, match=rf"select\.where: {named}"):
        selected(tmp_path, {name: condition})


@pytest.mark.parametrize(
    ("name", "condition", "values"),
    [
        ("score", {"least": 1}, [0.5, "nan", None]),
        ("score", {"most": 0}, [0.5, "nan", None, 2.0]),
        ("day", {"any_of": ["1970-01-01"]}, ["1970-01-02", None, "1970-01-03"]),
        ("is_kept", {"any_of": ["true"]}, [False, None]),
    ],
)
def test_evidence_is_json_that_every_reader_takes(
    tmp_path: Path, name: str, condition: dict[str, Any], values: list[object]
) -> None:
    """It had NaN, which JSON has not, and dates stopped the stage."""
    manifest = judged(tmp_path, {name: condition})
    [batch] = read_shards(str(tmp_path), manifest.rejects)
    assert [orjson.loads(evidence) for evidence in batch["evidence"].to_pylist()] == [{name: value} for value in values]


def test_a_generated_document_leaves_with_its_superseded_parent(tmp_path: Path) -> None:
    docs = documents(["source", "one", "two", "three"])
    source, _, other, _ = docs["id"].to_pylist()
    docs = docs.append_column("parent", pa.array([None, source, None, other]))
    gone = {"id": source, "snapshot": "2026-11-20", "winner": "w", "winner_snapshot": "2026-11-21"}
    rows = pa.RecordBatch.from_pylist([gone], LEAVING)
    shard = store_segment(str(tmp_path), "superseded", LEAVING, KEYS, iter([rows]))
    params = Params(superseded=FilePath(f"{tmp_path}/{shard.path}"))
    [judged] = select(iter(docs.combine_chunks().to_batches()), params=params)
    assert judged["reason"].to_pylist() == [SUPERSEDED, SUPERSEDED, None, None]
    assert json.loads(judged["evidence"][1].as_py()) == {"winner": "w"}
