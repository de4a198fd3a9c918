"""Wires the stages of a recipe into a DAG: each stage is refined, mapped where it splits, and judged by its gate."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airflow.sdk import Asset, TaskGroup, XComArg
from refinery_operators import Gate, Refine, Seal

from pipeline_tasks.recipe import Recipe, Step, load_recipe, recipe_names, stage_card

Cut = dict[str, Any]
"""How a stage's input is cut into partitions: its name, and how many; empty for a stage that is not mapped."""


DEFAULT = "web"
"""The recipe whose DAG is `refine`."""


def refine_recipes() -> list[Recipe]:
    """Return the recipes to wire: all in `dags/recipes`, or only `REFINERY_RECIPE` (a name or a file's path)."""
    only = os.environ.get("REFINERY_RECIPE")
    return [load_recipe(name) for name in ([only] if only else recipe_names())]


def dag_id_of(recipe: Recipe) -> str:
    """Return the name of the DAG that refines by a recipe."""
    return "refine" if recipe.name == DEFAULT else f"refine_{recipe.name}"


def asset_of(recipe: str, state: str) -> Asset:
    """Return the asset of a state that versions of a recipe, given by its name, reach, each as an event of its own."""
    return Asset(name=f"{recipe}_{state}", group="refinery")  # a URI would load every provider


def cuts_of(recipe: Recipe) -> list[Cut]:
    """Return how the input of each stage is cut."""
    return [
        {"stage": step.stage, "partitions": recipe.partitions} if stage_card(step.stage).splits else {}
        for step in recipe.steps
    ]


def steps_of(recipe: Recipe) -> list[dict[str, Any]]:
    """Return what the first task of a run looks at before the first stage: each stage, its params and its engine."""
    return [{"stage": step.stage, "params": dict(step.params), "engine": step.engine} for step in recipe.steps]


def wire_stages(recipe: Recipe, cuts: Sequence[Cut], landed: XComArg, parts: XComArg) -> Mapping[str, XComArg]:
    """Wire the stages behind the task that gives `landed` and the first `parts`; return the gates' outputs by stage."""
    gates: dict[str, XComArg] = {}
    for step, is_mapped, next_cut in zip(recipe.steps, cuts, [*cuts[1:], {}], strict=True):
        about = {"recipe": recipe.name, "stage": step.stage, "step": _settings(recipe, step), "landed": landed}
        with TaskGroup(step.stage, tooltip=stage_card(step.stage).title):
            if is_mapped:
                name_of = {"map_index_template": "{{ part_name }}"}
                mapped_task = Refine.partial(task_id="partition", **about, **name_of).expand(part=parts)
                whole = Seal(task_id="seal", parts_in=parts, refined=mapped_task.output, **about)
            else:
                whole = Refine(task_id="refine", part=parts, **about)
            gate = Gate(task_id="gate", refined=whole.output, next_cut=next_cut, **about)
        parts = gates[step.stage] = gate.output
    return gates


def _settings(recipe: Recipe, step: Step) -> dict[str, Any]:
    return {
        "params": dict(step.params),
        "engine": step.engine,
        "resources": asdict(step.resources),
        "error_budget": asdict(recipe.error_budget),
        "bounds": dict(recipe.gates.get(step.stage, {})),
        "alerts": asdict(recipe.alerts),
    }
