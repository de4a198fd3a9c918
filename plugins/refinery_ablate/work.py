"""Handles the requests of a comparison of two recipes by the models that their data trains: all but the training.

Each does what `refinery ablate` does at that point, in the same folder, so that either may go on with what the other
has begun. The folder is one of this machine, or of a disk that all workers have.
"""

from dataclasses import replace
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store.storage import require_root
from refinery_ablate.arms import arms_of
from refinery_ablate.comparison import Wanted, noise_of, prepare, require_possible
from refinery_ablate.conclusion import conclude, condition_of
from refinery_ablate.job import jobs_of, read_plan, runs_of
from refinery_ablate.requests import (
    ForecastAblationRequest,
    JudgeAblationReply,
    JudgeAblationRequest,
    PlanAblationRequest,
    RunsReply,
)
from refinery_ablate.verdict import price_lines


def plan(request: PlanAblationRequest) -> RunsReply:
    """Make the arms and write the plan; return the runs of the first arm.

    RecipeError, before anything is made, for what would end the comparison later.
    """
    folder = _folder(request.folder)
    require_root(request.root)
    condition_of(request.require, request.override, request.size)
    wanted = Wanted(
        request.datasets or request.recipes,
        request.held_out,
        request.size,
        request.tokens,
        request.seeds,
        request.rates,
        request.threads,
    )
    require_possible(wanted)
    _make(folder)
    lines: list[str] = []
    arms = arms_of(request.datasets, request.recipes, request.inputs, folder, lines.append)
    planned = prepare(replace(wanted, arms=arms), folder)
    runs = len(list(jobs_of(planned)))
    lines += [f"{runs} runs of {planned.steps:,} steps, {planned.tokens:,} tokens each, by the size {planned.size}"]
    return {"runs": runs_of(jobs_of(planned), first=True), "lines": lines}


def forecast(request: ForecastAblationRequest) -> RunsReply:
    """Return what the comparison can see and costs, and the runs of the second arm."""
    folder = _folder(request.folder)
    planned = read_plan(folder)
    lines = price_lines(noise_of(folder, planned), planned, request.wanted, request.usd_per_hour)
    return {"runs": runs_of(jobs_of(planned), first=False), "lines": list(lines)}


def judge(request: JudgeAblationRequest) -> JudgeAblationReply:
    """Return the verdict and the number that it has in the root; GateRefused if it is not what is required."""
    folder = _folder(request.folder)
    condition = condition_of(request.require, request.override, read_plan(folder).size)
    concluded = conclude(folder, condition, request.usd_per_hour, request.root)
    concluded.require_passed()
    return {
        "outcome": concluded.verdict.outcome,
        "number": next(each.number for each in concluded.recorded if each.root == request.root),
        "lines": [*concluded.lines(), *concluded.where()],
    }


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder} cannot be made ({error.strerror}); name a folder that the workers may write to"
        raise RecipeError(message) from error


def _folder(named: str) -> Path:
    """Return the folder of a comparison; RecipeError unless it is a path of a disk."""
    if not named.startswith("/"):
        message = f"{named}: a comparison is in a folder of this machine's disks; name its absolute path"
        raise RecipeError(message)
    return Path(named)
