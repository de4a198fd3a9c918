"""A recipe in Python is the one that its YAML gives: stages, params, sections, and so every fingerprint."""

from pathlib import Path

import pytest
import yaml

from pipeline_tasks import api
from pipeline_tasks.recipe import BUILDS, RECIPES, load_build, load_recipe, recipe_names

FILES = [*sorted(RECIPES.glob("*.yaml")), *sorted(BUILDS.glob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recipe_of_the_package_is_the_same_in_python(path: Path) -> None:
    written = yaml.safe_load(path.read_text())
    stages = [(stage, params or {}) for stage, params in written.pop("stages").items()]
    name = written.pop("name", path.stem)
    assert api.recipe(stages, name, **written) == (load_recipe if path.parent == RECIPES else load_build)(str(path))


def test_all_recipes_are_compared() -> None:
    assert len(FILES) == len(recipe_names()) + len(recipe_names(BUILDS)) > 1


def test_a_stage_without_params_is_its_name() -> None:
    recipe = api.recipe(["ingest", "extract", ("dedup_minhash", {"threshold": 0.7})])
    assert [(step.stage, step.params) for step in recipe.steps] == [
        ("ingest", {}),
        ("extract", {}),
        ("dedup_minhash", {"threshold": 0.7}),
    ]
    assert recipe.name == "custom"


@pytest.mark.parametrize(
    ("stages", "named"),
    [
        (["ingest", "extrakt"], "extrakt"),
        (["ingest", ("extract", {"min_char": 1})], "min_char"),
        (["ingest", "extract", "ingest"], "ingest is there twice"),
        ([], "no stages"),
    ],
)
def test_what_no_file_may_say_is_refused(stages: api.Steps, named: str) -> None:
    with pytest.raises(api.RecipeError, match=named):
        api.recipe(stages, "mine")
