"""Requests of a comparison of two recipes by the models that their data trains."""

from dataclasses import dataclass
from typing import ClassVar

from pipeline_tasks.constraints import Count, NameOrUri, Note, PlainWord, Positive, Share, Uri, Weight
from pipeline_tasks.run.request import LoggedReply, Request
from refinery_ablate.sizes import SMOKE


class RunsReply(LoggedReply):
    """The names of the runs of an arm."""

    runs: list[str]


@dataclass(frozen=True, slots=True)
class PlanAblationRequest(Request[RunsReply]):
    """Make the arms of a comparison, and write its plan; what is made already is found.

    Two `recipes` refine the landed snapshots of `inputs`; or two `datasets`, ROOT/NAME@VERSION, are the arms.
    `held_out` are files of documents, and `folder` is where the comparison is. `tokens` are those of a run (0: those of
    the smaller arm), `rates` learning rates (none: those of the size). `require` and `override` are those of `refinery
    ablate`: what is wrong with them is said now. The reply has the names of the `runs` of the first arm.
    """

    verb: ClassVar[str] = "plan_ablation"

    root: Uri
    folder: Uri
    held_out: tuple[Uri, ...]
    recipes: tuple[NameOrUri, ...] = ()
    datasets: tuple[Uri, ...] = ()
    inputs: tuple[Uri, ...] = ()
    size: PlainWord = SMOKE
    tokens: Count = 0
    seeds: Positive = 3
    rates: tuple[Share, ...] = ()
    threads: Positive = 2
    require: Note = ""
    override: Note = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class ForecastAblationRequest(Request[RunsReply]):
    """Say by the runs of the first arm what a comparison can see, and what it costs; the reply names the other `runs`.

    `wanted` is a difference to see, in bits per byte (0: half of what is seen).
    """

    verb: ClassVar[str] = "forecast_ablation"

    root: Uri
    folder: Uri
    wanted: Weight = 0.0
    usd_per_hour: Weight = 0.0
    run_id: Note = ""


class JudgeAblationReply(LoggedReply):
    """The outcome, and the number that the verdict has in the root."""

    outcome: str
    number: int


@dataclass(frozen=True, slots=True)
class JudgeAblationRequest(Request[JudgeAblationReply]):
    """Judge a comparison whose runs have ended, and record the verdict in the root, and in the roots of its arms.

    GateRefused for a verdict that is not what is required, unless it is overridden.
    """

    verb: ClassVar[str] = "judge_ablation"

    root: Uri
    folder: Uri
    require: Note = ""
    override: Note = ""
    usd_per_hour: Weight = 0.0
    run_id: Note = ""
