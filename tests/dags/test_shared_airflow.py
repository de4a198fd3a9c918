"""The DAG folder of an Airflow that teams share: what is on each DAG, and what a refused entry leaves of it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.recipe import RECIPES
from tests.dags.conftest import Parse

FILE = """
defaults: {root: s3://refinery/refined, landing: s3://refinery/landing, owner: platform, execution_timeout: 5}
recipes:
  web_en, corpus:
    root: s3://en/refined
    landing: s3://en/landing
    connections: {root: aws_en}
    pool: en
    queue: en_queue
    owner: ann
    tags: [team-en]
    access_control: {En: [can_read, can_edit]}
    execution_timeout: 2
  demo:
    landing: s3://refinery/other
"""


@pytest.fixture(scope="module")
def shared(parse: Parse, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return parsed_with(parse, tmp_path_factory.mktemp("deployment"), FILE)


def parsed_with(parse: Parse, folder: Path, text: str) -> dict[str, Any]:
    (folder / "deployment.yaml").write_text(text)
    return parse(REFINERY_DEPLOYMENT=str(folder / "deployment.yaml"))


def test_all_that_airflow_does_of_an_entry_is_on_its_dags(shared: dict[str, Any]) -> None:
    for name in (
        "refine_web_en",
        "maintenance_web_en",
        "arrivals_web_en",
        "train_quality_model_web_en",
        "refinery_ablate_web_en",
    ):
        dag = shared["dags"][name]
        written = json.loads(dag["serialized"])
        assert {task["pool"] for task in dag["tasks"]} == {"en"}, name
        assert {task["hours"] for task in dag["tasks"]} <= {2.0, None}, name
        assert 2.0 in {task["hours"] for task in dag["tasks"]}, name
        said = dag["serialized"]
        assert ('"en_queue"' in said, '"ann"' in said) == (True, True), name
        assert set(written["tags"]) == {"refinery", "team-en"}, name
        assert "En" in json.dumps(written["access_control"]), name
    others = shared["dags"]["refine"]
    assert {task["pool"] for task in others["tasks"]} == {"default_pool"}
    assert 5.0 in {task["hours"] for task in others["tasks"]}
    assert "platform" in others["serialized"]
    assert "access_control" not in json.loads(others["serialized"])


def test_the_params_of_dags_of_no_recipe_admit_their_own_place_alone(shared: dict[str, Any]) -> None:
    expected = {
        "maintenance": {"root": "s3://refinery/refined"},
        "maintenance_web_en": {"root": "s3://en/refined"},
        "train_quality_model": {"root": "s3://refinery/refined"},
        "train_quality_model_web_en": {"root": "s3://en/refined"},
        "refinery_ablate": {"root": "s3://refinery/refined"},
        "refinery_ablate_web_en": {"root": "s3://en/refined"},
        "arrivals": {"root": "s3://refinery/refined", "landing": "s3://refinery/landing"},
        "arrivals_web_en": {"root": "s3://en/refined", "landing": "s3://en/landing"},
        "arrivals_demo": {"root": "s3://refinery/refined", "landing": "s3://refinery/other"},
    }
    kinds = ("maintenance", "train_quality_model", "refinery_ablate", "arrivals")
    assert {name for name in shared["dags"] if name.startswith(kinds)} == set(expected)
    for name, places in expected.items():
        assert {param: enum_of(shared["dags"][name], param) for param in places} == {
            param: [place] for param, place in places.items()
        }


def enum_of(dag: dict[str, Any], param: str) -> list[str] | None:
    """The values that a param admits, None for any."""
    params = dict(json.loads(dag["serialized"])["params"])
    schema = params[param].get("schema") or params[param]["__var"]["schema"]
    enum: list[str] | None = (schema.get("__var") or schema).get("enum")
    return enum


def test_each_recipe_is_looked_at_by_the_dag_of_its_landing(shared: dict[str, Any]) -> None:
    recipes = ("web", "web_en", "demo", "fineweb_en")
    looked = {
        name: [recipe for recipe in recipes if f'"{recipe}_arrivals"' in dag["serialized"]]
        for name, dag in shared["dags"].items()
        if name.startswith("arrivals")
    }
    assert looked == {"arrivals": ["web", "fineweb_en"], "arrivals_web_en": ["web_en"], "arrivals_demo": ["demo"]}


def test_a_build_of_versions_in_another_root_has_no_dag_and_is_shown(shared: dict[str, Any]) -> None:
    [(file, error)] = shared["errors"].items()
    assert file.endswith("refused.py")
    assert "recipe corpus builds from versions of web" in error
    assert "build_corpus" not in shared["dags"]
    assert "build_demo_corpus" in shared["dags"]


def test_a_refused_entry_hides_its_own_dags_alone_and_is_shown(
    parse: Parse, parsed: Mapping[str, Any], tmp_path: Path
) -> None:
    text = "recipes:\n  web_en:\n    rot: s3://en/refined\n  demo: {owner: ann}\n"
    refused = parsed_with(parse, tmp_path, text)
    [(file, error)] = refused["errors"].items()
    assert file.endswith("refused.py")
    assert "line 3" in error
    assert set(parsed["dags"]) - set(refused["dags"]) == {name for name in parsed["dags"] if name.endswith("_web_en")}
    assert set(refused["dags"]) <= set(parsed["dags"])


def test_without_a_file_the_dags_of_no_recipe_admit_any_place(parsed: Mapping[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert {"arrivals", "maintenance", "train_quality_model"} <= set(parsed["dags"])
    assert not [
        name for name in parsed["dags"] if name.startswith(("arrivals_", "maintenance_", "train_quality_model_"))
    ]
    for name in ("arrivals", "maintenance", "train_quality_model"):
        assert enum_of(parsed["dags"][name], "root") is None


@pytest.mark.parametrize("folder", ["", "build", "sources"])
def test_a_recipe_of_ones_own_that_is_refused_hides_no_other_dag(folder: str, parse: Parse, tmp_path: Path) -> None:
    """One file that could not be read took every DAG of its kind away; one named like ours inside was never said."""
    own = tmp_path / folder
    own.mkdir(exist_ok=True)
    (own / "broken.yaml").write_text("stages: {ingst: {}}\n")
    ours = {"": "web", "build": "corpus", "sources": "common_crawl"}[folder]
    shipped = (RECIPES / folder / f"{ours}.yaml").read_text()
    (own / "clash.yaml").write_text("\n".join([f"name: {ours}", *re.findall("^(?!name:).*", shipped, re.MULTILINE)]))
    parsed, known = parse(REFINERY_RECIPES=str(tmp_path)), parse()
    [(file, error)] = parsed["errors"].items()
    assert file.endswith("refused.py")
    assert f"{own / 'broken.yaml'}" in error
    assert "clash" in error
    assert set(parsed["dags"]) == set(known["dags"])
