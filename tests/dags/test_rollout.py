"""A recipe with a rollout is refined in growing parts, each behind a person's approval, and started by arrivals alone."""

from collections.abc import Callable
from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import parse_recipe

Parse = Callable[..., dict[str, Any]]

STAGES: dict[str, Any] = {"ingest": {}, "extract": {}}


@pytest.fixture(scope="module")
def dags(parse: Parse, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    recipe = tmp_path_factory.mktemp("rollout") / "own.yaml"
    recipe.write_text("name: own\nrollout: [0.01, 0.025, 1]\nstages:\n  ingest: {}\n  extract: {}\n")
    parsed = parse("refine.py", "rollout.py", REFINERY_RECIPE=str(recipe))
    assert parsed["errors"] == {}
    return dict(parsed["dags"])


def test_each_step_follows_the_approval_of_the_one_before(dags: dict[str, Any]) -> None:
    tasks = {task["id"]: task["downstream"] for task in dags["rollout_own"]["tasks"]}
    assert tasks == {
        "refine_1": ["approve_2_5"],
        "approve_2_5": ["refine_2_5"],
        "refine_2_5": ["approve_100"],
        "approve_100": ["refine_100"],
        "refine_100": [],
    }
    assert {task["pool"] for task in dags["rollout_own"]["tasks"]} == {"default_pool"}
    serialized = dags["rollout_own"]["serialized"]
    for text in ('"sample": 0.025', '"sample": 1.0', "rollout_2_5__{{ params.snapshot }}", "own.trial"):
        assert text in serialized
    assert "Runbook" in dags["rollout_own"]["doc"]


def test_such_a_recipe_has_no_schedule(dags: dict[str, Any]) -> None:
    assert dags["refine_own"]["schedule"] == ""


def test_recipes_without_a_rollout_have_no_such_dag(parsed: dict[str, Any]) -> None:
    assert [name for name in parsed["dags"] if name.startswith("rollout")] == []


@pytest.mark.parametrize("rollout", [[1, 0.5], [0.1, 0.5], [0.5, 0.5, 1], [0, 1], [0.1, 2], "all"])
def test_shares_that_do_not_grow_to_all_are_refused(rollout: Any) -> None:
    with pytest.raises(RecipeError, match="rollout"):
        parse_recipe({"stages": STAGES, "rollout": rollout}, "own.yaml")


def test_a_recipe_that_builds_has_no_rollout() -> None:
    stages = {name: {} for name in ("tokenize", "select", "mix", "shuffle", "pack")}
    build = {"stages": stages, "versions": {"recipe": "web"}}
    with pytest.raises(RecipeError, match="rollout"):
        parse_recipe({**build, "rollout": [0.1, 1]}, "own.yaml")
