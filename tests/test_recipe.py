"""Recipes are checked before anything runs, and a refusal names the key, the place and the nearest known word."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import RECIPES, STAGES, bind, load_recipe, parse_recipe, recipe_names, stage_card
from pipeline_tasks.stage import FilePath, Stage

MINIMAL: dict[str, Any] = {"stages": {"toy_map": {"every": 4}, "toy_group": {}}}

pytestmark = pytest.mark.usefixtures("toys")


def test_a_recipe_keeps_its_order_and_values() -> None:
    recipe = parse_recipe(
        MINIMAL | {"title": "Toys", "run": {"partitions": 2, "engines": {"toy_group": "spark"}}}, "toys.yaml"
    )
    assert (recipe.name, recipe.title, recipe.partitions) == ("toys", "Toys", 2)
    assert [(step.stage, step.params, step.engine) for step in recipe.steps] == [
        ("toy_map", {"every": 4}, "local"),
        ("toy_group", {}, "spark"),
    ]
    assert recipe.step("toy_group").engine == "spark"
    with pytest.raises(RecipeError, match="recipe toys has no stage pack; it has toy_map, toy_group"):
        recipe.step("pack")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stagse": {}}, r"r\.yaml: unknown key 'stagse' \(did you mean 'stages'\?\)"),
        ({"stages": {"toy_mpa": {}}}, r"r\.yaml: stages: unknown key 'toy_mpa' \(did you mean 'toy_map'\?\)"),
        ({"stages": {"toy_map": {"evry": 1}}}, r"toy_map: unknown key 'evry' \(did you mean 'every'\?\)"),
        ({"stages": {"toy_map": {"every": "often"}}}, "toy_map: every must be a int, not 'often'"),
        ({"stages": {"toy_map": {"every": True}}}, "toy_map: every must be a int, not True"),
        ({"stages": {"toy_map": {"every": 1.5}}}, "toy_map: every must be a int, not 1.5"),
        ({"stages": {"toy_map": [1]}}, r"r\.yaml: toy_map must be a mapping"),
        ({"stages": {"toy_bad": {}}}, "toy_bad: how is required"),
        ({"stages": {}}, r"r\.yaml has no stages"),
        ({"stages": None}, r"r\.yaml: stages must be a mapping"),
        ({"run": {"partition": 3}}, r"run: unknown key 'partition' \(did you mean 'partitions'\?\)"),
        ({"run": {"partitions": 0}}, "run: partitions must be a whole number of at least 1, not 0"),
        ({"run": {"partitions": "many"}}, "run: partitions must be a whole number"),
        ({"run": {"engines": {"toy_map": "spork"}}}, r"toy_map: unknown key 'spork' \(did you mean 'spark'\?\)"),
        ({"run": {"engines": {"toy_mop": "ray"}}}, r"run: engines: unknown key 'toy_mop' \(did you mean 'toy_map'\?\)"),
        ({"run": {"error_budget": {"row": 1}}}, r"error_budget: unknown key 'row' \(did you mean 'rows'\?\)"),
        ({"run": {"error_budget": {"share": "lots"}}}, "error_budget: share must be a float, not 'lots'"),
        ({"gates": {"toy_mop": {}}}, r"gates: unknown key 'toy_mop' \(did you mean 'toy_map'\?\)"),
        ({"gates": {"toy_map": 3}}, "gates: toy_map must be a mapping"),
    ],
)
def test_a_wrong_recipe_is_refused_with_the_cause(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        parse_recipe(MINIMAL | change, "r.yaml")


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["stages", "run", "gates", "toy_map", "x"]) | st.integers(), inner, max_size=3
            )
        ),
        max_leaves=10,
    )
)
def test_random_yaml_is_refused_with_our_words(raw: object) -> None:
    try:
        assert parse_recipe(raw, "r.yaml").steps
    except RecipeError as error:
        assert str(error)  # noqa: PT017 -- either outcome is right, and each is checked


def test_a_file_that_is_not_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("stages: [unclosed")
    with pytest.raises(RecipeError, match=r"mine\.yaml is not YAML"):
        load_recipe(str(path))


def test_a_recipe_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "toys.yaml").write_text("stages:\n  toy_map:\n")
    assert load_recipe("toys", tmp_path).name == load_recipe(str(tmp_path / "toys.yaml")).name == "toys"
    with pytest.raises(RecipeError, match=r"no recipe 'toy' \(did you mean 'toys'\?\); recipes are: toys"):
        load_recipe("toy", tmp_path)


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_we_ship_is_sound(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.title
    stages = [step.stage for step in recipe.steps]
    assert stages == [stage for stage in STAGES if stage in stages]


QUALITY_POLICY = {"dedup_minhash": {"policy": ["quality", "lowest_id"]}}


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        (QUALITY_POLICY, "dedup_minhash reads the column 'score', .* put score_quality before dedup_minhash"),
        (QUALITY_POLICY | {"score_quality": {}}, "put score_quality before dedup_minhash"),
        (
            {"score_quality": {}, "dedup_minhash": {"policy": ["quality"], "quality": "stars"}},
            "the column 'stars', which no stage before it writes; no stage writes it",
        ),
    ],
)
def test_a_column_that_no_earlier_stage_writes_is_refused(stages: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        parse_recipe({"stages": stages}, "r.yaml")


@pytest.mark.parametrize("column", ["score", "language_score"])
def test_scores_may_decide_on_near_duplicates(column: str) -> None:
    scored = {"filter_language": {}, "score_quality": {}}
    near = {"dedup_minhash": {"policy": ["quality", "lowest_id"], "quality": column}}
    recipe = parse_recipe({"stages": scored | near}, "r.yaml")
    assert [step.stage for step in recipe.steps][-1] == "dedup_minhash"


def test_there_are_recipes_to_ship() -> None:
    assert {"web_en"} <= {path.stem for path in RECIPES.glob("*.yaml")}


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"unknown key 'toy_mapp' \(did you mean 'toy_map'\?\)"):
        stage_card("toy_mapp")


# --- Params --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Params:
    """Every kind of parameter that a stage may have."""

    ratio: float = 0.5
    words: tuple[str, ...] = ()
    bounds: Mapping[str, float] | None = None
    mode: Literal["fast", "slow"] = "fast"
    model: FilePath = FilePath("")  # noqa: RUF009 -- a NewType is its argument
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.ratio > 1:
            message = "ratio is at most 1"
            raise ValueError(message)


CARD: Stage[Any] = Stage("kinds", lambda shards, *_: shards, Params, pa.schema([]), pa.schema([]), 1, splits=True)


def test_values_become_what_the_params_want() -> None:
    written = {"ratio": 1, "words": ["a", "b"], "bounds": {"en": 1}, "mode": "slow", "model": "m.bin", "limit": 3}
    assert bind(CARD, written) == Params(1.0, ("a", "b"), {"en": 1.0}, "slow", FilePath("m.bin"), 3)
    assert isinstance(bind(CARD, written).ratio, float)
    assert bind(CARD, {"limit": None}) == Params()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"ratio": 2}, "kinds: ratio is at most 1"),
        ({"ratio": "x"}, "kinds: ratio must be a float"),
        ({"words": "abc"}, "kinds: words must be a list"),
        ({"words": [1]}, "kinds: words must be a str, not 1"),
        ({"bounds": {"en": "x"}}, "kinds: bounds must be"),
        ({"mode": "fats"}, r"kinds: mode: unknown key 'fats' \(did you mean 'fast'\?\)"),
        ({"model": 3}, "kinds: model must be a str"),
        ({"limit": "x"}, "kinds: limit must be int or"),
    ],
)
def test_a_value_of_another_kind_is_refused(written: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        bind(CARD, written)
