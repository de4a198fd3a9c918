"""Wires recipes into DAGs: the tasks of a flow, with the settings of the deployment and the assets between DAGs."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import DAG, Asset, AssetAny, AssetWatcher, BaseOperator, TaskGroup, XComArg

from pipeline_tasks.cards import stage_card
from pipeline_tasks.deployment import Settings, deployed, deployment, names_of, require_one_root
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import Flow, Output, Task, dag_of
from pipeline_tasks.recipe import BUILDS, RECIPES, Recipe, load_build, load_recipe, recipe_names
from refinery_airflow.alerts.alerts import FailureAlert
from refinery_airflow.runs.run import is_here
from refinery_airflow.tasks.operators import (
    Compose,
    Export,
    Gate,
    Index,
    Land,
    Publish,
    PublishGate,
    Refine,
    Register,
    RequestOperator,
    Seal,
    VerdictGate,
)
from refinery_airflow.tasks.retry import BOUNDS, RETRIES
from refinery_airflow.tasks.sensor import SnapshotSensor
from refinery_airflow.tasks.turn import Turn

if TYPE_CHECKING:
    from refinery_sources.recipe import SourceRecipe

RecipeT = TypeVar("RecipeT", "Recipe", "SourceRecipe")

QUEUE_WAIT, QUEUE_PAUSE = 20, 5
"""Seconds for which a request waits for messages of a queue, which is the longest that SQS allows, and between two."""


def task_arguments(recipe: str = "") -> dict[str, Any]:
    """Return the arguments of all tasks of a DAG of a recipe: tries, bounds, alert, and what the deployment says."""
    return task_arguments_by(deployed(recipe))


def task_arguments_by(settings: Settings) -> dict[str, Any]:
    """Return the arguments of all tasks of a DAG by settings of the deployment."""
    own: dict[str, Any] = {name: value for name in ("pool", "queue", "owner") if (value := getattr(settings, name))}
    if settings.execution_timeout and not is_here():
        own["execution_timeout"] = timedelta(hours=settings.execution_timeout)
    return {**RETRIES, **BOUNDS, **own, "on_failure_callback": FailureAlert()}


def dag_arguments(recipe: str = "") -> dict[str, Any]:
    """Return the arguments of a DAG of a recipe: its dates, its tags, and who may see it if the deployment says so."""
    return arguments_of(deployed(recipe))


def arguments_of(settings: Settings) -> dict[str, Any]:
    """Return the arguments of a DAG by settings of the deployment."""
    control = {
        role: set(actions) if isinstance(actions, tuple) else {of: set(may) for of, may in actions.items()}
        for role, actions in settings.access_control.items()
    }
    dates = {"start_date": datetime(2026, 1, 1, tzinfo=UTC), "catchup": False}
    return {**dates, "tags": ["refinery", *settings.tags], **({"access_control": control} if control else {})}


def of_roots(dag: str, entries: Iterable[tuple[str, Settings]]) -> list[tuple[str, str, Settings]]:
    """Return a DAG of no recipe once for each of some entries of the deployment's file: its name, entry and settings.

    That of the defaults has its own name, and that of an entry the first name of the entry behind it.
    """
    found: list[tuple[str, str, Settings]] = []
    for entry, settings in entries:
        name = f"{dag}_{re.sub('[^A-Za-z0-9_.-]+', '', names_of(entry)[0]).strip('_')}" if entry else dag
        found.append((f"{name}_{len(found)}" if name in {known for known, _, _ in found} else name, entry, settings))
    return found


def recipe_of(entry: str) -> str:
    """Return a recipe of an entry of the deployment's file, below which pages of its root are; "" for the defaults."""
    if not entry:
        return ""
    recipes, _ = readable(RECIPES, load_recipe)
    return next((recipe.name for recipe in recipes if deployment().entry_of(recipe.name) == entry), "")


def confined(place: str) -> dict[str, Any]:
    """Return what lets a param be this place alone, where a deployment's file says whose it is."""
    return {"enum": [place]} if deployment().path else {}


def wired(recipes: Iterable[RecipeT], wire: Callable[[RecipeT], DAG]) -> dict[str, DAG]:
    """Return the DAGs of recipes by their names; one that the deployment's file refuses has none, and hides no other.

    `dags/refused.py` shows in Airflow what is refused.
    """
    dags = (wire(recipe) for recipe in recipes if not refusal(recipe))
    return {dag.dag_id: dag for dag in dags}


def refusal(recipe: "Recipe | SourceRecipe") -> str:
    """Return why the deployment's file refuses a recipe, "" if it does not."""
    try:
        deployed(recipe.name)
        if isinstance(recipe, Recipe) and recipe.versions:
            require_one_root(recipe.name, recipe.versions.recipe)
    except RecipeError as error:
        return str(error)
    return ""


def refusals() -> list[str]:
    """Return why recipes and entries of the deployment's file have no DAG."""
    builds, unread_builds = _of_builds()
    unread = [*_of_refining()[1], *unread_builds, *_of_sources()[1]]
    refused = map(refusal, builds) if deployment().path else ()
    entries = map(str, deployment().refused.values())
    return list(dict.fromkeys([*unread, *entries, *filter(None, refused)]))


def refine_recipes() -> list[Recipe]:
    """Return the recipes to wire: all in `dags/recipes`, or only `REFINERY_RECIPE` (a name or a file's path)."""
    return _of_refining()[0]


def build_recipes() -> list[Recipe]:
    """Return the recipes to wire: all in `dags/recipes/build`, or only `REFINERY_BUILD` (a name or a file's path)."""
    return _of_builds()[0]


def _of_refining() -> tuple[list[Recipe], list[str]]:
    only = os.environ.get("REFINERY_RECIPE")
    return ([load_recipe(only)], []) if only else readable(RECIPES, load_recipe)


def _of_builds() -> tuple[list[Recipe], list[str]]:
    only = os.environ.get("REFINERY_BUILD")
    return ([load_build(only)], []) if only else readable(BUILDS, load_build)


def readable(folder: Path, load: Callable[[str], RecipeT]) -> tuple[list[RecipeT], list[str]]:
    """Return the recipes of `recipe_files` that `load` reads, and why others are refused: one hides no other."""
    refused, recipes = list[str](), list[RecipeT]()
    try:
        names = recipe_names(folder)
    except RecipeError as error:
        names, refused = sorted(map(str, folder.glob("*.yaml"))), [str(error)]  # ours, by their paths
    for name in names:
        try:
            recipes.append(load(name))
        except RecipeError as error:
            refused.append(str(error))
    return recipes, refused


def dag_id_of(recipe: Recipe) -> str:
    """Return the name of the DAG that refines by a recipe."""
    return dag_of(recipe.name)


def rollout_of(recipe: Recipe) -> str:
    """Return the name of the DAG that refines a snapshot by a recipe in growing parts."""
    return f"rollout_{recipe.name}"


def asset_of(recipe: str, state: str) -> Asset:
    """Return the asset of a state that versions of a recipe, given by its name, reach, each as an event of its own."""
    return Asset(name=f"{recipe}_{state}", group="refinery")  # a URI would load every provider


LANDINGS = Asset(name="landings", group="refinery")
"""The asset that has an event for each snapshot which a source has landed."""


def wakes() -> AssetAny:
    """Return the assets whose events let `arrivals` look at once: what sources land, and messages of a queue.

    The queue is the one of SQS that `REFINERY_QUEUE` names, if it does. The triggerer removes a message that it has
    read, so that one which it reads as it dies is lost: a message says that somebody should look, and nothing else. It
    is an asset of its own: one of the same name without a watcher, in another file, would take the watcher away.
    """
    queue = os.environ.get("REFINERY_QUEUE", "")
    if not queue:
        return AssetAny(LANDINGS)
    from airflow.providers.amazon.aws.triggers.sqs import SqsSensorTrigger

    trigger = SqsSensorTrigger(sqs_queue=queue, max_messages=10, wait_time_seconds=QUEUE_WAIT, waiter_delay=QUEUE_PAUSE)
    watcher = AssetWatcher(name="queue", trigger=trigger)
    return AssetAny(LANDINGS, Asset(name="landing_messages", group="refinery", watchers=[watcher]))


def landing_of(source: str) -> Asset:
    """Return the asset of what a source, given by the name of its recipe, lands."""
    return Asset(name=f"landing/{source}", group="refinery")


def source_recipes() -> "list[SourceRecipe]":
    """Return the recipes of sources to wire: all in `dags/recipes/sources`, or those that `REFINERY_SOURCES` names."""
    return _of_sources()[0]


def _of_sources() -> "tuple[list[SourceRecipe], list[str]]":
    from refinery_sources.recipe import SOURCES, chosen_sources, load_source

    only = os.environ.get("REFINERY_SOURCES")
    return (chosen_sources(only), []) if only else readable(SOURCES, load_source)


OPERATORS: Mapping[str, type[BaseOperator]] = {
    "sense": SnapshotSensor,
    "turn": Turn,
    "land": Land,
    "compose": Compose,
    "refine": Refine,
    "seal": Seal,
    "judge": Gate,
    "judge_snapshot": PublishGate,
    "judge_recipe": VerdictGate,
    "publish": Publish,
    "export": Export,
    "register": Register,
    "index": Index,
}
"""The operators by what tasks of a flow do."""

Made = Mapping[str, BaseOperator]
"""The operators of a DAG by the names of tasks."""


def render(flow: Flow, operators: Mapping[str, type[BaseOperator]] = OPERATORS, **own: Mapping[str, Any]) -> None:
    """Make the tasks of a flow in the DAG at hand, those of a stage in a group of its name.

    What tasks do has its operator, and may have arguments of its `own`, which only Airflow knows.
    """
    made: dict[str, BaseOperator] = {}
    for stage, tasks in groupby(flow.tasks, key=lambda task: task.stage):
        with TaskGroup(stage, tooltip=stage_card(stage).title) if stage else nullcontext():
            for task in tasks:
                arguments = {"task_id": task.name.rpartition(".")[2], **task.settings, **own.get(task.does, {})}
                made[task.name] = _operator(flow, task, operators[task.does], arguments, made)


def _operator(flow: Flow, task: Task, kind: type[BaseOperator], known: dict[str, Any], made: Made) -> BaseOperator:
    """Return the operator of a task, behind those that it waits for."""
    if issubclass(kind, RequestOperator):
        known["recipe"] = flow.recipe
    if task.reaches:
        known["outlets"] = [asset_of(flow.recipe, task.reaches)]
    inputs = {name: _rendered(source, made) for name, source in task.inputs.items()}
    if task.over:
        over = {task.over: inputs.pop(task.over)}
        operator = kind.partial(**known, **inputs, map_index_template="{{ part_name }}").expand(**over)
    else:
        operator = kind(**known, **inputs)
    for name in task.after:
        made[name] >> operator
    return operator


def _rendered(source: Output | Mapping[str, Output], made: Made) -> XComArg | dict[str, XComArg]:
    if isinstance(source, Output):
        return XComArg(made[source.task], **({"key": source.key} if source.key else {}))
    return {name: _rendered(output, made) for name, output in source.items()}
