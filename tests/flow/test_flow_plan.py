"""The plan of a run is a value: tasks behind what they wait for, and outputs that name tasks before them."""

import json
from dataclasses import replace

import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import Flow, Output, Task, flow_of
from pipeline_tasks.recipe import BUILDS, Recipe, Requirement, load_build, load_recipe, recipe_names
from tests.chain import command

HEAVY = ("airflow", "great_expectations", "numba", "pandas", "pyspark", "ray", "pyarrow.dataset", "boto3")

PLANNED = """
import json, sys
from pipeline_tasks.flow.plan import flow_of
from pipeline_tasks.recipe import load_recipe
flow_of(load_recipe("web"))
print(json.dumps(sorted(set(json.loads(sys.argv[1])) & set(sys.modules))))
"""

RECIPES = [*map(load_recipe, recipe_names()), *map(load_build, recipe_names(BUILDS))]


def required(recipe: Recipe) -> Recipe:
    """Return a recipe that requires a verdict of trained models."""
    return replace(recipe, requires=Requirement("not-worse:0.01"))


@pytest.mark.parametrize("recipe", [*RECIPES, *map(required, RECIPES[:1])], ids=lambda recipe: recipe.name)
def test_every_task_is_behind_all_that_it_waits_for(recipe: Recipe) -> None:
    flow = flow_of(recipe)
    names = [task.name for task in flow.tasks]
    assert len(names) == len(set(names))
    for place, task in enumerate(flow.tasks):
        assert task.upstream <= set(names[:place])
        assert task.over in ("", *task.inputs)
    assert {name for task in flow.tasks for name in task.upstream} | {ends(flow)} == set(names)


def ends(flow: Flow) -> str:
    """Return the last task of a flow: the only one that nothing waits for."""
    return flow.tasks[-1].name


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_stage_that_splits_is_mapped_over_the_parts_that_the_gate_before_it_passes_on(recipe: Recipe) -> None:
    tasks = {task.name: task for task in flow_of(recipe).tasks}
    before = next(task.name for task in tasks.values() if task.does in ("land", "compose"))
    for step in recipe.steps:
        is_split = stage_card(step.stage).splits
        first = tasks[f"{step.stage}.{'partition' if is_split else 'refine'}"]
        assert (first.over, first.inputs["part"]) == ("part" if is_split else "", Output(before))
        before = f"{step.stage}.gate"
        assert tasks[before].inputs["refined"] == Output(f"{step.stage}.{'seal' if is_split else 'refine'}")
        assert (first.stage, tasks[before].stage) == (step.stage, step.stage)


def test_a_verdict_that_a_recipe_requires_is_asked_before_its_first_stage_and_published() -> None:
    recipe = required(load_recipe("web"))
    tasks = {task.name: task for task in flow_of(recipe).tasks}
    assert tasks[f"{recipe.steps[0].stage}.partition"].inputs["part"] == Output("verdict_gate")
    assert tasks["publish"].inputs["required"] == Output("verdict_gate", "verdict")


def test_a_task_of_the_whole_run_is_of_no_stage() -> None:
    assert (Task("publish", "publish").stage, Task("extract.gate", "judge").stage) == ("", "extract")


def test_to_plan_a_run_imports_nothing_heavy() -> None:
    done = command("-c", PLANNED, json.dumps(HEAVY))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_a_catalog_of_no_kind_is_told_before_anything_runs() -> None:
    """What is registered last is asked for first: stages take hours."""
    with pytest.raises(RecipeError, match=r"'icebrg:lake' names no catalog.*iceberg"):
        flow_of(replace(RECIPES[0], catalog="icebrg:lake"))
    assert "register" in {task.name for task in flow_of(replace(RECIPES[0], catalog="iceberg:lake")).tasks}
