"""The DAGs that build training datasets: one per recipe, started by the versions that they are built from."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.recipe import BUILDS, load_build, recipe_names

RECIPES = recipe_names(BUILDS)


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_is_composed_staged_judged_and_published(parsed: dict[str, Any], name: str) -> None:
    recipe, dag = load_build(name), parsed["dags"][f"build_{name}"]
    stages = [step.stage for step in recipe.steps]
    assert dag["groups"] == stages
    tasks = {task["id"]: task for task in dag["tasks"]}
    assert set(tasks) == {
        "compose",
        "publish",
        *(f"select.{part}" for part in ("partition", "seal", "gate")),
        *(f"{stage}.{part}" for stage in stages if stage != "select" for part in ("refine", "gate")),
    }
    first = {stage: "partition" if stage == "select" else "refine" for stage in stages}
    behind = {stage: f"{after}.{first[after]}" for stage, after in pairwise(stages)}
    assert len(behind) == len(stages) - 1 > 0
    assert [stage for stage, task in behind.items() if task not in tasks[f"{stage}.gate"]["downstream"]] == []
    retries = {name: (task["retries"], task["policy"]) for name, task in tasks.items()}
    assert retries == dict.fromkeys(retries, (3, True))


@pytest.mark.parametrize("name", RECIPES)
def test_a_build_starts_when_a_version_is_published(parsed: dict[str, Any], name: str) -> None:
    recipe, dag = load_build(name), parsed["dags"][f"build_{name}"]
    assert recipe.versions is not None
    assert dag["assets"] == [f"{recipe.versions.recipe}_documents"]
    of_every_run = {"root", "partitions", "engine", "engines", "accept", "reason", "override", "approval"}
    assert set(dag["params"]) == {*of_every_run, "snapshots", "weights", "budget_tokens", "max_epochs", "quality"}
    assert "Runbook" in dag["doc"]


def test_a_recipe_with_exports_writes_them_behind_its_version(
    parse: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    recipe = yaml.safe_load((BUILDS / "corpus.yaml").read_text())
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(recipe | {"name": "own", "exports": ["parquet", "text-jsonl"]}, sort_keys=False))
    dag = parse("build.py", REFINERY_BUILD=str(own))["dags"]["build_own"]
    tasks = {task["id"]: task for task in dag["tasks"]}
    assert tasks["publish"]["downstream"] == ["export"]
    assert tasks["export"]["downstream"] == []
    assert (tasks["export"]["retries"], tasks["export"]["policy"]) == (3, True)


@pytest.mark.parametrize("by", ["recipe", "deployment"])
def test_a_catalog_gets_each_version_behind_publish(
    parse: Callable[..., dict[str, Any]], tmp_path: Path, by: str
) -> None:
    recipe = yaml.safe_load((BUILDS / "corpus.yaml").read_text())
    run = {**recipe.get("run", {}), **({"catalog": "iceberg:lake"} if by == "recipe" else {})}
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(recipe | {"name": "own", "run": run}, sort_keys=False))
    variables = {"REFINERY_CATALOG": "iceberg:lake"} if by == "deployment" else {}
    dag = parse("build.py", REFINERY_BUILD=str(own), **variables)["dags"]["build_own"]
    tasks = {task["id"]: task for task in dag["tasks"]}
    assert tasks["publish"]["downstream"] == ["register"]
    assert (tasks["register"]["retries"], tasks["register"]["policy"]) == (3, True)
