"""Reads the params and dates of a DAG run, and announces what came of it, in one place."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from airflow.sdk import Context
from airflow.sdk.configuration import conf

from pipeline_tasks.deployment import LANDING, deployed, deployment
from pipeline_tasks.errors import RecipeError
from refinery_airflow.runs.form import engines_of, overrides_of

log = logging.getLogger("refinery")

DEFAULT = "web"
"""The recipe of the DAG `refine`; that of another one has the recipe's name behind it."""

SENSE = "sense"
"""The task that waits until a snapshot has landed."""

HERE = "REFINERY_LAUNCH_HERE"
"""Set by `refinery run`: requests are handled in this process."""

SNAPSHOT = "{snapshot}"
"""Placeholder of the run's snapshot in the param `input`."""


def is_here() -> bool:
    """Return whether this process is `refinery run`, which has no scheduler, triggerer, pages and other runs."""
    return bool(os.environ.get(HERE))


def dag_of(recipe: str) -> str:
    """Return the DAG that refines snapshots by a recipe."""
    return "refine" if recipe == DEFAULT else f"refine_{recipe}"


BUILD_DAG, PULL_DAG, ROLLOUT_DAG = "build_", "pull_", "rollout_"
"""What the names of the DAGs of a recipe begin with, beside that which refines by it."""


def recipe_of_dag(dag: str) -> str:
    """Return the recipe that a DAG is of, "" for one that is of none, such as `arrivals` and `maintenance`."""
    if dag == dag_of(DEFAULT):
        return DEFAULT
    kinds = (f"{dag_of(DEFAULT)}_", BUILD_DAG, PULL_DAG, ROLLOUT_DAG)
    return next((dag.removeprefix(kind) for kind in kinds if dag.startswith(kind)), "")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where its snapshot lands, the root of its dataset, and how it runs; a build has no snapshot or input.

    `partitions` is 0 for as many as the recipe says. `engines` maps stages to engines that differ from the
    recipe's; `override` maps stages to the reason why a person lets a refused gate pass. `patience` is how
    many hours to wait for the snapshot; with 0 an absent snapshot is an error. `settling` is for how many minutes a
    snapshot without a list of its files must not change before it is whole. `approval` is how many hours a refused
    gate waits for a person; with 0 it refuses at once. `sample` is the share of the landed bytes that a trial reads.
    `text_field` is the name of the text in JSON lines and tables, "" for that of the recipe. `accept` is the share of
    the promised files that has to have landed whole.
    """

    input: str
    root: str
    snapshot: str
    partitions: int
    engines: Mapping[str, str]
    override: Mapping[str, str]
    patience: float
    approval: float
    sample: float = 1.0
    text_field: str = ""
    settling: float = 0.0
    accept: float = 1.0

    @property
    def is_trial(self) -> bool:
        """Return whether the run reads a sample, so that what it publishes is no version of the dataset."""
        return self.sample < 1


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
    )


def _approval(dag_run: Any, params: Mapping[str, Any]) -> float:  # noqa: ANN401 -- Airflow's DagRun
    """Return the hours that a refused gate waits: none in a backfill that does not ask for it, as later days wait."""
    hours = float(params.get("approval", 0))
    if hours and dag_run.run_type == "backfill" and "approval" not in (dag_run.conf or {}):
        return 0
    return hours


def snapshot_of(dag_run: Any, params: Mapping[str, Any]) -> str:  # noqa: ANN401 -- Airflow's DagRun, of either side
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


@contextmanager
def harmless(what: str, effect: str) -> Iterator[None]:
    """Log an error of what only reports a run, with its effect, and go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- a report of a run must not fail it
        log.warning("%s  %s (%s)", what, effect, type(error).__name__)


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
