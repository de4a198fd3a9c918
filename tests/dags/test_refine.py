"""The DAGs that refine snapshots: one per recipe, wired as the recipe says."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.recipe import SOURCES

from pipeline_tasks.cards import stage_card
from pipeline_tasks.recipe import BUILDS, load_recipe, recipe_names
from tests.embedded import PROJECT

RECIPES = recipe_names()

DAILY = ("refine", "arrivals", "maintenance")


def dag_id(recipe: str) -> str:
    return "refine" if recipe == "web" else f"refine_{recipe}"


def test_every_dag_file_imports(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}


def test_every_recipe_is_a_dag(parsed: dict[str, Any]) -> None:
    builds = {f"build_{recipe}" for recipe in recipe_names(BUILDS)}
    pulls = {f"pull_{source}" for source in recipe_names(SOURCES)}
    others = {"arrivals", "maintenance", "refinery_ablate", "train_quality_model"}
    assert {dag_id(recipe) for recipe in RECIPES} | builds | pulls | others == set(parsed["dags"])


def test_nothing_heavy_is_imported_when_dags_are_parsed(parsed: dict[str, Any]) -> None:
    assert parsed["heavy"] == []


def test_parsing_again_gives_the_same_dags(parsed: dict[str, Any], parse: Callable[..., dict[str, Any]]) -> None:
    again = parse(PYTHONHASHSEED="7")
    first, second = (
        {name: json.loads(dag["serialized"]) for name, dag in dags["dags"].items()} for dags in (parsed, again)
    )
    assert first == second


def test_every_recipe_is_started_for_what_arrives(parsed: dict[str, Any]) -> None:
    arrivals = parsed["dags"]["arrivals"]
    assert (arrivals["schedule"], arrivals["assets"], arrivals["catchup"]) == ("*/10 * * * *", ["landings"], False)
    assert [(task["id"], task["mapped"]) for task in arrivals["tasks"]] == [("look", False), ("start", True)]
    assert [recipe for recipe in RECIPES if f'"{recipe}_arrivals"' not in arrivals["serialized"]] == []


@pytest.mark.parametrize("recipe", RECIPES)
def test_task_groups_are_the_stages_of_the_recipe(parsed: dict[str, Any], recipe: str) -> None:
    assert parsed["dags"][dag_id(recipe)]["groups"] == [step.stage for step in load_recipe(recipe).steps]


@pytest.mark.parametrize("recipe", RECIPES)
def test_splitting_stages_are_mapped_and_sealed_and_every_stage_is_judged(parsed: dict[str, Any], recipe: str) -> None:
    tasks = {task["id"]: task for task in parsed["dags"][dag_id(recipe)]["tasks"]}
    expected = {"sense", "turn", "land", "publish_gate", "publish"}
    for step in load_recipe(recipe).steps:
        parts = ("partition", "seal", "gate") if stage_card(step.stage).splits else ("refine", "gate")
        expected |= {f"{step.stage}.{part}" for part in parts}
    assert set(tasks) == expected
    assert {name for name, task in tasks.items() if task["mapped"]} == {
        name for name in expected if name.endswith(".partition")
    }


def test_a_recipe_that_embeds_ends_with_its_store_of_vectors(
    parse: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: own\nstages:\n  ingest: {}\n  extract: {}\n  embed: {model: /model}\n")
    [dag] = [dag for name, dag in parse("refine.py", REFINERY_RECIPE=str(own))["dags"].items() if name == "refine_own"]
    tasks = {task["id"]: task["downstream"] for task in dag["tasks"]}
    assert (tasks["publish"], tasks["index"]) == (["index"], [])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_stage_starts_when_the_gate_before_it_let_pass(parsed: dict[str, Any], recipe: str) -> None:
    tasks = {task["id"]: task for task in parsed["dags"][dag_id(recipe)]["tasks"]}
    stages = [step.stage for step in load_recipe(recipe).steps]
    firsts = {
        stage: f"{after}.partition" if stage_card(after).splits else f"{after}.refine"
        for stage, after in pairwise(stages)
    }
    assert len(firsts) == len(stages) - 1 > 0
    assert [stage for stage, first in firsts.items() if first not in tasks[f"{stage}.gate"]["downstream"]] == []
    assert [stage for stage in stages if "publish" not in tasks[f"{stage}.gate"]["downstream"]] == []
    assert tasks["publish_gate"]["downstream"] == ["publish"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_a_snapshot_reaches_is_an_asset_that_other_dags_can_wait_for(parsed: dict[str, Any], recipe: str) -> None:
    outlets = {task["id"]: task["outlets"] for task in parsed["dags"][dag_id(recipe)]["tasks"] if task["outlets"]}
    states = {"sense": "arrivals", "publish_gate": "refined", "publish": "documents"}
    assert outlets == {task: [f"{recipe}_{state}"] for task, state in states.items()}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_task_is_tried_again_by_error_class(parsed: dict[str, Any], recipe: str) -> None:
    retries = {task["id"]: (task["retries"], task["policy"]) for task in parsed["dags"][dag_id(recipe)]["tasks"]}
    assert retries == dict.fromkeys(retries, (3, True)) != {}


@pytest.mark.parametrize("recipe", RECIPES)
def test_runs_are_daily_at_midnight_and_say_how_to_mend_them(parsed: dict[str, Any], recipe: str) -> None:
    dag = parsed["dags"][dag_id(recipe)]
    assert (dag["schedule"], dag["catchup"]) == ("0 0 * * *", False)
    assert {"input", "root", "snapshot", "partitions", "override", "approval"} <= set(dag["params"])
    assert "Runbook" in dag["doc"]


@pytest.mark.parametrize("settings", [{}, {"AIRFLOW__SCHEDULER__CREATE_CRON_DATA_INTERVALS": "True"}])
def test_a_run_starts_at_its_own_date_however_airflow_reads_cron(
    parse: Callable[..., dict[str, Any]], settings: dict[str, str]
) -> None:
    """With data intervals the run of a date started a day later, past the deadline of its snapshot."""
    dags = parse(*(f"{dag}.py" for dag in DAILY), **settings, AIRFLOW__CORE__DEFAULT_TIMEZONE="Asia/Tokyo")["dags"]
    for name in DAILY:
        date, start = dags[name]["next"]
        assert (date, date.endswith("+00:00")) == (start, True)
    assert dags["refine"]["next"][0] == "2026-11-02T00:00:00+00:00"


def test_every_dag_bounds_its_runs_and_every_task_its_time_and_its_pool(parse: Callable[..., dict[str, Any]]) -> None:
    dags = parse(REFINERY_POOL="crawl")["dags"]
    assert {"refine", "arrivals", "maintenance", "build_corpus"} <= set(dags)
    for dag in dags.values():
        assert dag["most_runs"] in (1, 16)
        assert {(task["hours"], task["pool"]) for task in dag["tasks"]} == {(48.0, "crawl")}


@pytest.mark.parametrize("path", sorted([*(PROJECT / "dags").glob("*.py"), *(PROJECT / "plugins").glob("*.py")]))
def test_nothing_asks_for_dates_that_a_run_may_not_have(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert re.findall(r"\{\{\s*(?:ds|ts|logical_date|data_interval)|\[\"(?:ds|ts|logical_date)\"\]", source) == []
