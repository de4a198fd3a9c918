"""Runs recipes from Python, as `refinery run` and `refinery build` do: by the loop over the tasks of their flow."""

from collections.abc import Mapping

from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.flow.gates import Refusal
from pipeline_tasks.flow.loop import run_recipe
from pipeline_tasks.gate.checks import check_overrides, gate_names
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import Recipe, stage_name
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import PlannedStep, PreflightRequest


def refined(
    recipe: Recipe, landing: str, root: str, snapshot: str, engine: str, override: Mapping[str, str]
) -> Version:
    """Land, refine, judge and publish a snapshot; return its version."""
    if recipe.versions is not None:
        message = f"recipe {recipe.name} builds a training dataset of versions, and refines no snapshot"
        raise RecipeError(message)
    return _run(recipe, root, engine, override, landing, snapshot)


def built(recipe: Recipe, root: str, engine: str, override: Mapping[str, str]) -> Version:
    """Compose, build, judge and publish a training dataset; return its version."""
    if recipe.versions is None:
        message = f"recipe {recipe.name} refines a snapshot; a build has `versions`"
        raise RecipeError(message)
    return _run(recipe, root, engine, override)


def _run(
    recipe: Recipe, root: str, engine: str, override: Mapping[str, str], landing: str = "", snapshot: str = ""
) -> Version:
    """Look at what would end the run, then do its tasks; a build has no landing."""
    reasons = {stage_name(gate): why for gate, why in override.items()}
    check_overrides(reasons, gate_names(recipe))
    steps = tuple(PlannedStep(step.stage, step.params, engine) for step in recipe.steps)
    fields, accept = recipe.fields, recipe.accept_partial
    handle(PreflightRequest(root, recipe.name, steps, landing, snapshot, fields=fields, accept=accept))
    named = list_snapshot(landing, snapshot, accept).snapshot if landing else ""
    params = {"root": root, "input": landing, "snapshot": named, "partitions": 0, "engines": {"*": engine}}
    try:
        published = run_recipe(recipe, {**params, "override": reasons}, {})
    except Refusal as refused:
        message = f"{refused}\nFrom Python: `override={{GATE: WHY}}`."
        raise GateRefused(message) from refused
    return chosen_version(root, recipe.name, str(published["version"]))
