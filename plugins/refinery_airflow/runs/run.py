"""Reads the params and dates of a DAG run, and announces what came of it, in one place."""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.sdk import Context
from airflow.sdk.configuration import conf

from pipeline_tasks.deployment import LANDING, deployed, deployment
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.attempt import Run
from pipeline_tasks.flow.plan import BUILD_DAG, DEFAULT, dag_of
from refinery_airflow.runs.form import engines_of, mixture_of, overrides_of

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

HERE = "REFINERY_LAUNCH_HERE"
"""Set by `refinery run`: requests are handled in this process."""

SNAPSHOT = "{snapshot}"
"""Placeholder of the run's snapshot in the param `input`."""


def is_here() -> bool:
    """Return whether this process is `refinery run`, which has no scheduler, triggerer, pages and other runs."""
    return bool(os.environ.get(HERE))


PULL_DAG, ROLLOUT_DAG = "pull_", "rollout_"
"""What the names of the DAGs of a recipe begin with, beside those of its flow."""


def build_dag_of(recipe: str) -> str:
    """Return the name of the DAG that builds the dataset of a recipe."""
    return f"{BUILD_DAG}{recipe}"


def recipe_of_dag(dag: str) -> str:
    """Return the recipe that a DAG is of, "" for one that is of none, such as `arrivals` and `maintenance`."""
    if dag == dag_of(DEFAULT):
        return DEFAULT
    kinds = (f"{dag_of(DEFAULT)}_", BUILD_DAG, PULL_DAG, ROLLOUT_DAG)
    return next((dag.removeprefix(kind) for kind in kinds if dag.startswith(kind)), "")


def run_of(context: Context) -> Run:
    """Return the run of a task's context."""
    params = context["params"]
    snapshot = snapshot_of(context["dag_run"], params) if "input" in params else ""
    return Run(
        input=str(params.get("input", "")).replace(SNAPSHOT, snapshot),
        root=str(params["root"]),
        snapshot=snapshot,
        partitions=int(params["partitions"]),
        engines=engines_of(params),
        override=overrides_of(params),
        patience=float(params.get("patience", 0)),
        approval=_approval(context["dag_run"], params),
        sample=float(params.get("sample", 1)),
        text_field=str(params.get("text_field") or ""),
        settling=float(params.get("settling", 0)),
        accept=float(params.get("accept_partial", 1)),
        mixture=mixture_of(params),
        snapshots=tuple(params.get("snapshots") or ()),
    )


def _approval(dag_run: "DagRun", params: Mapping[str, Any]) -> float:
    """Return the hours that a refused gate waits: none in a backfill that does not ask for it, as later days wait."""
    hours = float(params.get("approval", 0))
    if hours and dag_run.run_type == "backfill" and "approval" not in (dag_run.conf or {}):
        return 0
    return hours


def snapshot_of(dag_run: "DagRun", params: Mapping[str, Any]) -> str:
    """Return a run's snapshot: the param, else the run's partition key, else the date it is for."""
    if params.get("snapshot"):
        return str(params["snapshot"])
    if dag_run.partition_key:
        return str(dag_run.partition_key)
    if dag_run.logical_date:
        return str(dag_run.logical_date.date().isoformat())
    message = f"run {dag_run.run_id} has no date, so it must name its snapshot: set the param `snapshot`"
    raise RecipeError(message)


def announce(context: Context, run: Run, facts: Mapping[str, Any]) -> None:
    """Give the events of a task's assets `facts`, and the snapshot (if the run has one) as their partition.

    A trial has no events: nothing waits for it.
    """
    if run.is_trial:
        context["task"].outlets = []
    for outlet in context["task"].outlets:
        context["outlet_events"][outlet].extra = dict(facts)
        context["outlet_events"][outlet].add_partitions([run.snapshot] if run.snapshot else [])


def task_page(context: Context) -> str:
    """Return the address of a task's page in the web UI."""
    task = context["ti"]
    address = str(conf.get("api", "base_url", fallback="")).rstrip("/")
    mapped = f"/mapped/{task.map_index}" if task.map_index is not None and task.map_index >= 0 else ""
    return f"{address}/dags/{task.dag_id}/runs/{quote(task.run_id, safe='')}/tasks/{task.task_id}{mapped}"


SHOWN: ContextVar[str] = ContextVar("shown", default="")
"""The recipe whose root a page shows, "" for the root of all recipes for which the deployment names none."""

OF = "/of/"
"""What the path of a page begins with whose root is that of the recipe behind it."""


def root() -> str:
    """Return the root whose content a page shows."""
    return deployed(SHOWN.get()).its_root


def landing() -> str:
    """Return where the snapshots land that a page shows, "" where nobody has named it."""
    return deployed(SHOWN.get()).landing or os.environ.get(LANDING, "")


def base(recipe: str | None = None) -> str:
    """Return the path of the pages of the root that is shown, or of the root of a recipe.

    Pages of a root that the deployment gives to a recipe are below `of/<recipe>`, so that their links stay there.
    """
    shown = SHOWN.get() if recipe is None else recipe
    try:
        has_own = shown and not deployment().is_at(shown, deployed().its_root)
    except RecipeError:  # the file is refused, which the page says
        has_own = False
    return f"{site()}{OF}{quote(shown, safe='')}" if has_own else site()


def site() -> str:
    """Return the path under which the web server serves Refinery's pages."""
    return urlsplit(str(conf.get("api", "base_url", fallback=""))).path.rstrip("/") + "/refinery"
