"""Gathers what the what-if page shows: the bounds that can be changed, and what other bounds would keep."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import dag_of
from pipeline_tasks.inspect.report.plotted import Published
from pipeline_tasks.inspect.tokens import tokens_of
from pipeline_tasks.inspect.whatif import JUDGE, Forecast, published, whatif
from pipeline_tasks.inspect.whatif.bounds import (
    NAMED_PACKS,
    PACKS,
    Bound,
    Choices,
    choices,
    differing,
    packs_lines,
    recipe_lines,
    stage_recipe_lines,
)
from pipeline_tasks.inspect.whatif.stages import (
    StageBound,
    StageForecast,
    is_of_stage,
    stage_bounds,
    stage_forecasts,
    stage_key,
)
from pipeline_tasks.plots.change import change_plot
from pipeline_tasks.plots.plot import Plot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.recipe import untried
from refinery_airflow.access.looks import LookRoute
from refinery_airflow.pages.fields import SEE_OTHER, UNPROCESSABLE
from refinery_airflow.pages.overview import dag_address
from refinery_airflow.pages.rendering import show
from refinery_airflow.pages.target import TARGET, Goal, goal_of
from refinery_airflow.runs.run import base, root

router = APIRouter(route_class=LookRoute)


LANGUAGE = "language"
"""Name of the field that chooses whose bounds the form shows."""

MOST_ROWS = 500_000
"""Rows whose signals a request reads; of a larger snapshot a sample of whole shards."""

MOST_CHANGES = 100
"""Changes that a request may have."""

TRIAL = "0.05"
"""The share of the landed bytes that a trial reads, unless a person says otherwise."""

SLIDER = 4
"""The end of a slider of a bound without a largest value, as a multiple of the bound."""

LARGE = 1e6
"""A largest value from here on is no end of a slider, and is not shown."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a whole run with the other bounds would give, (now, then): tokens, and dollars by the ledger.

    Both are estimates: they follow the characters of the rows that `filter_quality` keeps. None where nothing was built
    of the recipe's versions, or the ledger has no cost.
    """

    tokens: tuple[int, int] | None
    cost: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Field:
    """The field of a bound: its value, its kind in HTML, the ends of its range and of its slider, and "" for none.

    `placeholder` says what no number means.
    """

    value: str
    kind: str
    least: str
    most: str
    slider: str
    placeholder: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The page: what was typed, what can be changed, and the forecast or the message of what is wrong.

    `changes` has what was typed by key, and `goal` the target. `choices` is None where the snapshot's bounds cannot be
    changed here.
    """

    version: Version
    language: str
    changes: Mapping[str, str]
    goal: Goal
    choices: Choices | None = None
    message: str = ""
    forecast: Forecast | None = None
    outlook: Outlook | None = None
    plot: Plot | None = None
    stages: Sequence[StageBound] = ()
    stage_forecasts: Sequence[StageForecast] = ()

    @property
    def of_quality(self) -> dict[str, str]:
        """The changes of bounds of `filter_quality`."""
        return {key: value for key, value in self.changes.items() if not is_of_stage(key, self.version)}

    @property
    def of_stages(self) -> dict[str, str]:
        """The changes of bounds of other stages."""
        return {key: value for key, value in self.changes.items() if is_of_stage(key, self.version)}

    @property
    def address(self) -> str:
        """The address of this page, which names what was changed and nothing else."""
        return address_of(self.version, self.fields)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields of the address: nothing that is as it is now."""
        return self._fields(self.changes)

    def _fields(self, changes: Mapping[str, str]) -> list[tuple[str, str]]:
        first = {LANGUAGE: self.language, TARGET: self.goal.written}
        return [*((key, value) for key, value in first.items() if value), *changes.items()]

    @property
    def elsewhere(self) -> dict[str, str]:
        """The changes that the form shows no field of: bounds of other languages, and keys that are unknown."""
        shown = {bound.key for bounds in self.choices.profiles.values() for bound in bounds} if self.choices else set()
        return {key: value for key, value in self.of_quality.items() if key not in shown | {PACKS}}

    def is_changed(self, profile: str) -> bool:
        """Return whether a bound of a profile is changed, of those that the form shows."""
        shown = self.choices.profiles.get(profile, ()) if self.choices else ()
        return any(bound.key in self.changes for bound in shown)

    @property
    def packs(self) -> list[str]:
        """The sets of packs to choose from."""
        return list(dict.fromkeys((self.choices.packs if self.choices else "", *NAMED_PACKS)))

    @property
    def lines(self) -> str:
        """The YAML for the recipe; "" without a change of it."""
        own = {forecast.key: forecast.bound for forecast in self.stage_forecasts if forecast.bound}
        lines = [*recipe_lines(self.forecast.bounds, self.changes.get(PACKS, ""))] if self.forecast else []
        return "\n".join([*lines, *stage_recipe_lines({each.key: each.bound.now for each in self.stages}, own)])

    @property
    def own_lines(self) -> str:
        """The YAML for a file of packs; "" without a change for one language."""
        return "\n".join(packs_lines(self.forecast.bounds)) if self.forecast else ""

    def without(self, key: str) -> str:
        """Return the address of this page without one change."""
        rest = {name: value for name, value in self.changes.items() if name != key}
        return address_of(self.version, self._fields(rest))

    def with_bound(self, key: str, value: float) -> str:
        """Return the address of this page with one more change."""
        return address_of(self.version, self._fields({**self.changes, key: f"{value:.12g}"}))

    def field(self, bound: Bound) -> Field:
        """Return the field of a bound: it has what was typed, else the bound of the snapshot."""
        value = self.changes.get(bound.key, _field_value(bound.now))
        least, most = (_field_value(end) for end in (bound.range.least, bound.range.most))
        is_large = bound.range.most >= LARGE
        steep = SLIDER * bound.now if math.isfinite(bound.now) and bound.now > 0 else SLIDER
        return Field(
            value,
            "number" if _is_number(value) else "text",
            least,
            "" if is_large else most,
            _field_value(steep if is_large else bound.range.most),
            _placeholder(bound.now),
        )

    def rejects(self, profile: str) -> tuple[int, int]:
        """Return how many rows a profile rejects, (now, then): those that pass the profiles before it."""
        reasons = self.forecast.reasons if self.forecast else {}
        pairs = [pair for reason, pair in reasons.items() if reason.startswith(f"{profile}:")]
        return sum(now for now, _ in pairs), sum(then for _, then in pairs)

    def fails(self, bound: Bound) -> tuple[int, int] | None:
        """Return how many rows fail the rules of a bound, (now, then); None without a forecast."""
        if self.forecast is None:
            return None
        pairs = [self.forecast.fails[reason] for reason in bound.reasons if reason in self.forecast.fails]
        return sum(now for now, _ in pairs), sum(then for _, then in pairs)

    def stage_field(self, bound: StageBound) -> Field:
        """Return the field of a bound of another stage."""
        now, side = bound.bound.now, bound.bound.side
        value = self.changes.get(bound.key, _field_value(now))
        least, most = (_field_value(end) for end in (bound.range.least, bound.range.most))
        least = _field_value(now) if side == "higher" else least
        most = _field_value(now) if side == "lower" else most
        slider = most or _field_value(SLIDER * max(now, 1))
        return Field(value, "number" if _is_number(value) else "text", least, most, slider, "as now")

    def stage_forecast(self, bound: StageBound) -> StageForecast | None:
        """Return the forecast of a bound of another stage; None if it is as it is now."""
        return next((each for each in self.stage_forecasts if each.key == bound.key), None)

    def trial(self, root: str) -> str:
        """Return the command that refines a part of the snapshot by a copy of the recipe with these lines."""
        named = ["refinery", "run", root, "--input", self.version.landing or "LANDED"]
        of = ["--snapshot", self.version.snapshot, "--recipe", "other.yaml"]
        return shlex.join([*named, *of, "--sample", TRIAL])

    @property
    def trial_dag(self) -> str:
        """The address of the DAG that refines by the recipe, "" without one."""
        return dag_address(dag_of(untried(self.version.recipe)))

    def command(self, root: str) -> str:
        """Return the command that prints the same, of every row."""
        named = ["refinery", "whatif", root, "--recipe", self.version.recipe, "--snapshot", self.version.snapshot]
        sets = [part for key, value in self.changes.items() for part in ("--set", f"{key}={value}")]
        return shlex.join([*named, *sets])


def _field_value(bound: float) -> str:
    """Return a bound as a field of numbers has it; "" for a rule that is skipped, or a bound that rejects nothing."""
    return f"{bound:.12g}" if math.isfinite(bound) else ""


def _placeholder(bound: float) -> str:
    return "skipped" if math.isnan(bound) else "no bound" if math.isinf(bound) else "as now"


def _is_number(text: str) -> bool:
    try:
        return not text or math.isfinite(float(text))
    except ValueError:
        return False


def address_of(version: Version, fields: Sequence[tuple[str, str]]) -> str:
    """Return the address of the page with some fields; the same changes have one address."""
    path = f"{quote(version.recipe, safe='')}/{quote(version.snapshot, safe='')}"
    return f"{base()}/whatif/{path}" + (f"?{urlencode(fields)}" if fields else "")


def whatif_of(
    root: str, version: Version, query: Sequence[tuple[str, str]], costs: Sequence[Mapping[str, Any]]
) -> WhatIf:
    """Return the page of a version for the fields of a query; RecipeError if it has no `filter_quality`.

    What else is wrong is a message of the page, which keeps what was typed.
    """
    stages = stage_bounds(root, version)
    if not stages:
        published(root, version)  # raises: nothing of the version can be predicted
    language, target = (dict(query).get(name, "").strip() for name in (LANGUAGE, TARGET))
    changes = {stage_key(key, stages): value for key, value in query if key not in (LANGUAGE, TARGET)}
    page = WhatIf(version, language, changes, Goal(target, 0), stages=stages)
    try:
        page = _with_stages(root, page)
        if JUDGE not in version.manifests:
            return _require_known(page)
        page = replace(page, choices=choices(root, version))
        page = replace(page, changes={**differing(root, version, page.of_quality), **page.of_stages})
        page = replace(page, choices=choices(root, version, language))
        return _predicted(root, page, costs)
    except RecipeError as error:
        return replace(page, message=str(error))


def _with_stages(root: str, page: WhatIf) -> WhatIf:
    """Return the page with the forecasts of other stages, without changes that are none."""
    now = {each.key: each.bound.now for each in page.stages}
    changed = {
        key: value.strip() for key, value in page.of_stages.items() if not _is_as_now(value.strip(), now.get(key))
    }
    page = replace(page, changes={**page.of_quality, **changed})
    changes = [f"{key}={value}" for key, value in changed.items()]
    return replace(page, stage_forecasts=stage_forecasts(root, page.version, changes, MOST_ROWS))


def _is_as_now(written: str, now: float | None) -> bool:
    """Return whether a field has what is so now, or nothing."""
    try:
        return not written or float(written) == now
    except ValueError:
        return False


def _require_known(page: WhatIf) -> WhatIf:
    """Return a page without `filter_quality`; RecipeError for a change of it."""
    if page.of_quality:
        message = f"{', '.join(page.of_quality)}: this snapshot has no {JUDGE}"
        raise RecipeError(message)
    return page


def _predicted(root: str, page: WhatIf, costs: Sequence[Mapping[str, Any]]) -> WhatIf:
    """Return the page with the forecast of its changes; RecipeError if they cannot be predicted here."""
    packs = page.changes.get(PACKS, "")
    if packs not in page.packs and packs:
        message = f"packs={packs}: choose one of {', '.join(NAMED_PACKS)}; `refinery whatif` reads a file of packs, too"
        raise RecipeError(message)
    if len(page.changes) > MOST_CHANGES:
        message = f"{len(page.changes)} changes are too many for one page, which takes {MOST_CHANGES}"
        raise RecipeError(message)
    changes = [f"{key}={value}" for key, value in page.of_quality.items()]
    forecast = whatif(root, page.version, changes, MOST_ROWS)
    goal = goal_of(root, page.version, page.goal.written, forecast, changes, page.language, MOST_ROWS)
    outlook = outlook_of(tokens_of(root, page.version), forecast, costs, stages_of(root, page.version))
    return replace(page, forecast=forecast, outlook=outlook, plot=_plot(forecast), goal=goal)


def _plot(forecast: Forecast) -> Plot | None:
    note = "Rows by the first rule that they fail, as manifests count them."
    return change_plot("What each rule rejects", "reason", forecast.reasons, note)


def outlook_of(tokens: int, forecast: Forecast, costs: Sequence[Mapping[str, Any]], stages: Sequence[str]) -> Outlook:
    """Return the estimates of a whole run: what comes after `filter_quality` follows the characters that it keeps."""
    now, then = forecast.characters
    share = then / now if now else 0.0
    pair = (tokens, round(tokens * share)) if tokens and now else None
    behind = stages[stages.index(JUDGE) + 1 :] if JUDGE in stages else ()
    later = sum(float(row["cost_usd"]) for row in costs if row["stage"] in behind)
    cost = sum(float(row["cost_usd"]) for row in costs)
    return Outlook(pair, (cost, cost - later + later * share) if cost and now else None)


@router.get("/whatif/{recipe}/{snapshot}")
def whatif_page(recipe: str, snapshot: str, request: Request) -> Response:
    """Show what other bounds would keep; its address names the bounds that were changed alone."""
    version = version_log.current(root(), recipe, snapshot)
    query = request.query_params.multi_items()
    page = whatif_of(root(), version, query, Published(root(), version).costs)
    if query != page.fields:
        return RedirectResponse(page.address, SEE_OTHER)
    shown = show(
        "whatif.html",
        whatif=page,
        version=version,
        forecast=page.forecast,
        command=page.command(root()),
        trial=page.trial(root()),
    )
    shown.status_code = UNPROCESSABLE if page.message and page.changes else shown.status_code
    return shown
