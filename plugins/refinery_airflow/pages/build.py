"""Gathers what the page of a build shows before it starts: snapshots, weights and budget, and what they would take."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

from fastapi import APIRouter, Request, Response
from refinery_study.plan.build_estimate import BuildEstimate, build_estimate

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.datasets.composing import selected
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import BUILDS, Recipe, Versions, load_build, recipe_names
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.pages.fields import UNPROCESSABLE
from refinery_airflow.pages.overview import dag_address
from refinery_airflow.pages.rendering import show
from refinery_airflow.runs.run import build_dag_of, root

router = APIRouter(route_class=LookRoute)


SNAPSHOT, WEIGHT, BUDGET, EPOCHS = "snapshot", "weight.", "budget_tokens", "max_epochs"
"""Names of the fields: of a snapshot, of the weight of a group (before its name), of the budget, of the epochs."""

QUALITY = "quality."
"""Before the names of the fields of quality."""

CURVE = ("drop", "most", "mean")
"""Numbers of the curve of quality."""

MOST_FIELDS = 2000
"""Fields that a request may have."""


@dataclass(frozen=True, slots=True)
class Build:
    """The page: what was chosen, and the estimate, or the message of what is wrong.

    `snapshots`, `weights` and `quality` are as typed; `published` are the versions to choose from, the newest first.
    """

    recipe: Recipe
    published: Sequence[Version]
    usual: frozenset[str]
    snapshots: Sequence[str]
    weights: Mapping[str, str]
    budget: str
    epochs: str
    quality: Mapping[str, str]
    message: str = ""
    estimate: BuildEstimate | None = None

    @property
    def chosen(self) -> frozenset[str]:
        """The names of the snapshots that are chosen: those of the recipe, if none is."""
        return frozenset(self.snapshots) or self.usual

    @property
    def groups(self) -> Sequence[str]:
        """The groups that can be weighted."""
        known = [group.name for group in self.estimate.groups] if self.estimate else []
        return [*known, *(name for name in self.weights if name not in known)]

    @property
    def params(self) -> dict[str, Any]:
        """The params of a run: only what is not as in the recipe."""
        own = self.snapshots if self.snapshots and frozenset(self.snapshots) != self.usual else None
        return ({"snapshots": list(own)} if own else {}) | self.changes

    @property
    def changes(self) -> dict[str, Any]:
        """The params of `mix` that were typed; RecipeError for what is no number."""
        return changes_of(self.weights, self.budget, self.epochs) | quality_of(self.quality)

    @property
    def conf(self) -> str:
        """The params of a run, as JSON that Airflow's form takes."""
        return json.dumps(self.params)

    @property
    def dag(self) -> str:
        """The address of the DAG, whose form starts the build, "" without one."""
        return dag_address(build_dag_of(self.recipe.name))

    def command(self, root: str) -> str:
        """Return the command that starts it: in Airflow, or of the recipe as it is written where there is no DAG."""
        if not self.dag:
            return shlex.join(["refinery", "build", root, "--recipe", self.recipe.name])
        named = ["refinery", "setup", "airflow", "dags", "trigger", build_dag_of(self.recipe.name)]
        return shlex.join([*named, *(["--conf", self.conf] if self.params else [])])

    def exact(self, root: str) -> str:
        """Return the command that counts every token, of the recipe as it is written."""
        return shlex.join(["refinery", "build", root, "--dry-run", "--recipe", self.recipe.name])


def changes_of(weights: Mapping[str, str], budget: str, epochs: str) -> dict[str, Any]:
    """Return the params of `mix` that were typed; RecipeError for what is no number."""
    changes: dict[str, Any] = {}
    if weights:
        changes["weights"] = {name: _number(f"the weight of {name}", written) for name, written in weights.items()}
    if budget:
        changes[BUDGET] = round(_number("the budget", budget))
    if epochs:
        changes[EPOCHS] = _number("the epochs", epochs)
    return changes


def quality_of(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the param `quality` of `mix` that was typed, none if nothing was; RecipeError for what is no number."""
    if not fields:
        return {}
    curve = {name: _number(f"quality: {name}", fields[name]) for name in CURVE if name in fields}
    quality: dict[str, Any] = {"column": fields["column"]} if "column" in fields else {}
    if "bands" in fields:
        quality["bands"] = round(_number("quality: bands", fields["bands"]))
    return {"quality": {**quality, "upsample": curve}}


def _number(what: str, written: str) -> float:
    try:
        number = float(written)
    except ValueError:
        number = nan
    if not isfinite(number):
        message = f"{what} is {written!r}; write a number"
        raise RecipeError(message)
    return number


def build_of(root: str, name: str, query: Sequence[tuple[str, str]]) -> Build:
    """Return the page of a recipe of builds for the fields of a query; RecipeError for an unknown recipe.

    What else is wrong is a message of the page, which keeps what was typed.
    """
    if name not in recipe_names(BUILDS):
        message = f"no recipe of builds is called {name!r}; there are {', '.join(recipe_names(BUILDS))}"
        raise RecipeError(message)
    recipe = load_build(name)
    fields = [(key, value.strip()) for key, value in query[:MOST_FIELDS]]
    versions = version_log.latest_by_snapshot(root, recipe.versions.recipe if recipe.versions else "")
    page = Build(
        recipe=recipe,
        published=versions[::-1],
        usual=_usual(root, recipe),
        snapshots=[value for key, value in fields if key == SNAPSHOT and value],
        weights={key.removeprefix(WEIGHT): value for key, value in fields if key.startswith(WEIGHT) and value},
        budget=dict(fields).get(BUDGET, ""),
        epochs=dict(fields).get(EPOCHS, ""),
        quality={key.removeprefix(QUALITY): value for key, value in fields if key.startswith(QUALITY) and value},
    )
    try:
        return replace(page, estimate=build_estimate(root, recipe, page.snapshots, page.changes))
    except RecipeError as error:
        return replace(page, weights=page.weights, message=str(error))


def _usual(root: str, recipe: Recipe) -> frozenset[str]:
    """Return the snapshots that the recipe selects; none if nothing is published that it could."""
    try:
        return frozenset(version.snapshot for version in selected(root, recipe.versions or Versions("")))
    except RecipeError:
        return frozenset()


@router.get("/build/{recipe}")
def build_page(recipe: str, request: Request) -> Response:
    """Show what a build would take of the snapshots, weights and budget that are chosen; nothing is run."""
    page = build_of(root(), recipe, request.query_params.multi_items())
    shown = show("build.html", shown=page, exact=page.exact(root()), place=root())
    shown.status_code = UNPROCESSABLE if page.message and request.query_params else shown.status_code
    return shown
