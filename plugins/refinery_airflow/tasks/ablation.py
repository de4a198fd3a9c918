"""The operators of the DAG that compares two recipes by the models that their data trains.

Each does a part of `refinery ablate` in the same folder; what flows between them are names of runs.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import BaseOperator, Context, Param
from refinery_ablate.requests import (
    ForecastAblationRequest,
    JudgeAblationReply,
    JudgeAblationRequest,
    PlanAblationRequest,
    RunsReply,
)
from refinery_ablate.sizes import SIZES, SMOKE
from refinery_ablate.training import require_trainer, train_run

from pipeline_tasks.recipe import MARGIN, NOT_WORSE
from pipeline_tasks.run.request import Request
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.runs.form import ADVANCED, OPTIONAL, TEXT
from refinery_airflow.tasks.launch import send_logged
from refinery_airflow.tasks.models import LIST
from refinery_airflow.tasks.operators import PageLink
from refinery_airflow.tasks.wiring import confined

log = logging.getLogger("refinery")

NAME = "ablate"
"""What lines in the log begin with: the command that does the same."""

_QUEUE, _POOL = (os.environ.get(f"REFINERY_TRAIN_{name}", "") for name in ("QUEUE", "POOL"))

QUEUE: Mapping[str, Any] = {"queue": _QUEUE} if _QUEUE else {}
"""Task arguments: the queue whose workers have torch, and the folders of comparisons."""

TURNS: Mapping[str, Any] = {"pool": _POOL} if _POOL else {"max_active_tis_per_dag": 1}
"""Task arguments of training: the pool that has a slot for each device; without one, one run after the other."""


def params_of_ablation(root: str) -> dict[str, Param]:
    """Return the params of a comparison, as the form shows them: the options of `refinery ablate`."""
    return {
        "recipes": Param(
            None, title="Recipes", description="Two, one a line, as names or paths: b is judged beside a", **LIST
        ),
        "input": Param(None, title="Landed snapshots", description="One a line: what both recipes refine", **LIST),
        "datasets": Param(
            None, title="Datasets", description="In place of recipes: two, one a line, as ROOT/NAME@VERSION", **LIST
        ),
        "held_out": Param(
            [],
            type="array",
            items=TEXT,
            minItems=1,
            title="Held-out documents",
            description="Files of JSON lines, one a line, that no arm may have",
        ),
        "to": Param(
            "",
            minLength=1,
            title="Folder",
            description="An absolute path on a disk of all workers that take these tasks; a comparison goes on there",
            **TEXT,
        ),
        "size": Param(SMOKE, enum=list(SIZES), title="Size", description="Size of the models", **TEXT),
        "seeds": Param(3, type="integer", minimum=2, title="Seeds", description="Runs of each arm and rate"),
        "tokens": Param(
            0, type="integer", minimum=0, title="Tokens", description="Of a run; 0: all of the smaller arm"
        ),
        "usd_per_hour": Param(
            0.0, type="number", minimum=0, title="Price", description="US dollars for an hour of a device"
        ),
        "require": Param(
            None,
            title="Require",
            description=f"{NOT_WORSE}:{MARGIN} ends red where b is not seen to be worse by less bits per byte",
            **OPTIONAL,
        ),
        "override": Param(
            None, title="Override", description="NAME: WHY, to let a refused verdict pass; it is recorded", **OPTIONAL
        ),
        "root": Param(
            root,
            section=ADVANCED,
            description="Root in which the verdict is recorded, too",
            **TEXT,
            **confined(root),
        ),
        "rates": Param(
            None,
            section=ADVANCED,
            type=["array", "null"],
            items={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            description="Learning rates; empty: two of the size",
        ),
        "threads": Param(2, type="integer", minimum=1, section=ADVANCED, description="Threads of torch on a CPU"),
        "wanted": Param(
            0.0, type="number", minimum=0, section=ADVANCED, description="A difference to see, in bits per byte"
        ),
    }


class VerdictLink(PageLink):
    """From a task to the page of the verdict that it has recorded."""

    name, kind, field = "Verdict", "verdicts", "verdict"


class PlanAblation(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Makes the arms and writes the plan; refuses first what would end it later: no torch, or wrong params."""

    def execute(self, context: Context) -> list[str]:
        """Return the runs of the first arm."""
        params = context["params"]
        place = _place(context)
        require_trainer(_say)
        return _runs(
            PlanAblationRequest(
                **place,
                held_out=_names(params["held_out"]),
                recipes=_names(params["recipes"]),
                datasets=_names(params["datasets"]),
                inputs=_names(params["input"]),
                size=params["size"],
                tokens=params["tokens"],
                seeds=params["seeds"],
                rates=tuple(params["rates"] or ()),
                threads=params["threads"],
                require=params["require"] or "",
                override=params["override"] or "",
            )
        )


class TrainRun(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Trains one run of the plan in a process of its own, from its first step or from where it was killed."""

    def __init__(self, *, run_name: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.run_name = run_name

    def execute(self, context: Context) -> None:
        """Train it; a run that has its result is not trained again."""
        context["part_name"] = self.run_name
        train_run(_place(context)["folder"], self.run_name, _say)


class ForecastAblation(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Says by the runs of the first arm what the comparison can see and what it costs, before the second begins."""

    def execute(self, context: Context) -> list[str]:
        """Return the runs of the second arm."""
        place, params = _place(context), context["params"]
        return _runs(ForecastAblationRequest(**place, wanted=params["wanted"], usd_per_hour=params["usd_per_hour"]))


class JudgeAblation(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Judges the comparison and records the verdict; the task fails if it is not what is required.

    Pages of the root are below those of `recipe`, where teams share an Airflow.
    """

    operator_extra_links = (VerdictLink(),)

    def __init__(self, *, recipe: str = "", **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.recipe = recipe
        self.verdict = ""

    def execute(self, context: Context) -> JudgeAblationReply:
        """Return the outcome, and the number of the verdict in the root."""
        place, params = _place(context), context["params"]
        reply = send_logged(
            JudgeAblationRequest(
                **place,
                require=params["require"] or "",
                override=params["override"] or "",
                usd_per_hour=params["usd_per_hour"],
            ),
            NAME,
        )
        self.verdict = str(reply["number"])
        return reply


OPERATORS: Mapping[str, type[BaseOperator]] = {
    "plan": PlanAblation,
    "train": TrainRun,
    "forecast": ForecastAblation,
    "judge": JudgeAblation,
}
"""The operators by what tasks of a comparison do."""


def _place(context: Context) -> dict[str, Any]:
    """Return the fields that every request has, once this process may read all that the params name."""
    params = context["params"]
    recipes = (recipe for recipe in _names(params["recipes"]) if recipe.endswith((".yaml", ".yml")))
    named = (*recipes, *(name for field in ("held_out", "datasets", "input") for name in _names(params[field])))
    adopt_credentials(params["root"], params["to"], *named)
    return {"root": str(params["root"]).rstrip("/"), "folder": str(params["to"]), "run_id": context["run_id"]}


def _names(written: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in written or ())))


def _runs(request: Request[RunsReply]) -> list[str]:
    return send_logged(request, NAME)["runs"]


def _say(line: str) -> None:
    log.info("%s  %s", NAME, line)
