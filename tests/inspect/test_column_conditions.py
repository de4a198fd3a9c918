"""Conditions on columns: what a person writes is what `select` judges, and what is none names what there is."""

import pyarrow as pa
import pytest
import yaml

from pipeline_tasks.binding import bind_fields
from pipeline_tasks.conditions import Condition
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.conditions import (
    Conditions,
    conditions_of,
    meets,
    select_lines,
    split_conditions,
    with_value,
)
from pipeline_tasks.stages.select import Params

BATCH = pa.record_batch(
    {
        "type": pa.array(["article", "forum", None, "no"]),
        "ease": pa.array([-5.0, 30.5, None, float("nan")]),
        "hits": pa.array([1, 2, 3, None], pa.int32()),
        "is_long": pa.array([True, False, None, True]),
        "score": pa.array([{"edu": 1.0}, {"edu": 2.0}, None, {"edu": None}], pa.struct([("edu", pa.float64())])),
        "vector": pa.array([b"\xff\xfe"] * 4, pa.large_binary()),
        "spans": pa.array([[1]] * 4, pa.list_(pa.int64())),
    }
)
COLUMNS = {field.name: str(field.type) for field in BATCH.schema}


def read(*written: str) -> Conditions:
    return conditions_of(written, COLUMNS)


def kept(*written: str) -> list[int]:
    return [row for row, met in enumerate(meets(BATCH, read(*written)).to_pylist()) if met]


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        (["type=article,forum"], [0, 1]),
        (["type!=article"], [1, 2, 3]),
        (["type = article , no"], [0, 3]),
        (["ease>=-5"], [0, 1]),
        (["ease>-5"], [1]),
        (["ease<30.5"], [0]),
        (["ease<=30.5", "ease>=0"], [1]),
        (["ease=-10..0"], [0]),
        (["hits>1"], [1, 2]),
        (["hits=1,3"], [0, 2]),
        (["is_long=true"], [0, 3]),
        (["score.edu>=2"], [1]),
        (["type=article,forum", "hits<=1"], [0]),
        ([], [0, 1, 2, 3]),
    ],
)
def test_every_form_keeps_what_it_says(written: list[str], rows: list[int]) -> None:
    assert kept(*written) == rows


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (["topic=t0001"], "'topic'.*type, ease, hits, is_long, score, vector, spans"),
        (["type"], "'type': write"),
        (["ease>=high"], "'high' is no number"),
        (["ease>=nan"], "'nan' is no number"),
        (["ease=a..b"], "'a' is no number"),
        (["ease>=2", "ease<=1"], "ease: .*no document"),
        (["type=a", "type=b"], "type has any_of already"),
        (["ease>=1", "ease>2"], "ease has least already"),
    ],
)
def test_what_is_no_condition_is_refused(written: list[str], named: str) -> None:
    with pytest.raises(RecipeError, match=f"--where {named}" if named.startswith("ease:") else named):
        read(*written)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("vector=a", "vector is a column of large_binary"),
        ("spans=1", "spans is a column of list"),
        ("score=1", "score is a column of struct"),
        ("type>=1", "type is a column of string"),
        ("score.age=1", "score has no field 'age'; it has edu"),
    ],
)
def test_what_a_column_cannot_meet_is_refused(written: str, named: str) -> None:
    with pytest.raises(RecipeError, match=f"--where .*{named}"):
        kept(written)


def test_a_line_has_commas_between_conditions_and_between_their_values() -> None:
    line = "type=article, forum,ease>=-5 ,score.edu!=1, hits = 2..3,"
    assert split_conditions(line) == ["type=article, forum", "ease>=-5", "score.edu!=1", "hits = 2..3,"]
    assert split_conditions(" ") == []


@pytest.mark.parametrize(
    ("line", "more", "wanted"),
    [
        ("", "type=a", "type=a"),
        ("ease>=1", "type=a", "ease>=1, type=a"),
        ("type=a, ease>=1", "type=b", "type=a,b, ease>=1"),
        ("type = a, b", "type=b", "type=a,b"),
        ("type!=c", "type=a", "type!=c, type=a"),
    ],
)
def test_one_more_value_of_a_column_is_one_of_its_values(line: str, more: str, wanted: str) -> None:
    assert with_value(line, more) == wanted


def test_the_lines_for_a_recipe_are_the_same_conditions() -> None:
    conditions = read("type=article,no,1", "ease>-5.5", "hits=1e-7..3", "is_long!=true", "score.edu<=2")
    written = yaml.safe_load("\n".join(select_lines(conditions)))
    bound = bind_fields(Params, written["select"], "select")
    assert dict(bound.where) == conditions
    assert bound.where["type"] == Condition(any_of=("article", "no", "1"))
