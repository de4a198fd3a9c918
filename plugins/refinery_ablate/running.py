"""Runs the models of a folder one after the other on the best device of this machine."""

import contextlib
import fcntl
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.errors import RecipeError
from refinery_ablate.arms.data import ArmData
from refinery_ablate.held_out import load_held_out
from refinery_ablate.job import HELD_OUT, RESULT, Model, TrainingPlan, jobs_of, read_plan, read_result, unfinished
from refinery_ablate.mixture.pool import read_pool
from refinery_ablate.mixture.proxy_data import ProxyData
from refinery_ablate.mixture.search_plan import read_search, untrained

if TYPE_CHECKING:
    from refinery_ablate.training_run import Data

Say = Callable[[str], None]


def require_torch() -> None:
    """Raise RecipeError where torch is not installed."""
    missing = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        message = (
            f"{missing[0]} is not installed, and models are trained by it; install the extra: pip install '.[ablate]'"
        )
        raise RecipeError(message)


def device_name() -> str:
    """Return the best device of this machine as torch names it, with what it is; torch has to be there."""
    import torch

    return f"cuda ({torch.cuda.get_device_name()})" if torch.cuda.is_available() else "cpu"


def run_jobs(folder: Path, number: int, count: int, say: Say) -> None:
    """Run each `count`-th job without a result, from the `number`-th on; `say` takes a line for each that has ended."""
    plan = read_plan(folder)
    jobs = unfinished(folder, plan)[number::count]
    _run(folder, plan, ((job, ArmData(plan.arms[job.arm], plan, job.seed)) for job in jobs), say)


def run_job(folder: Path, name: str, say: Say) -> None:
    """Run the job of this name, if it has no result yet; RecipeError for one that is not of the plan."""
    plan = read_plan(folder)
    jobs = [job for job in jobs_of(plan) if job.name == name]
    if not jobs:
        message = f"{folder} has no run {name[:100]!a}; its plan has changed: start anew with another folder"
        raise RecipeError(message)
    _run(folder, plan, ((job, ArmData(plan.arms[job.arm], plan, job.seed)) for job in jobs), say)


def run_proxies(folder: Path, number: int, count: int, say: Say, kinds: Sequence[str] = ()) -> None:
    """As `run_jobs`, of the proxies of a search; of some `kinds`, or of all."""
    search = read_search(folder)
    pool = read_pool(folder, search.pool)
    proxies = untrained(folder, search, kinds)[number::count]
    _run(folder, search, ((proxy, ProxyData(pool, proxy, search.batch)) for proxy in proxies), say)


def _run(folder: Path, plan: TrainingPlan, models: Iterable[tuple[Model, "Data"]], say: Say) -> None:
    require_torch()
    import torch

    from refinery_ablate.training_run import kept_step, train

    held_out = load_held_out(folder / HELD_OUT)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for model, data in models:
        with _alone(folder / model.name):
            if not (folder / model.name / RESULT).exists():
                if step := kept_step(folder / model.name):
                    say(f"{model.name}: goes on behind step {step:,} of {plan.steps:,}")
                train(plan, model, data, held_out, folder, device)
        result = read_result(folder, model)
        bits = sum(result["bits"]) / float(held_out.sizes.sum())
        say(f"{model.name}: {result['steps']:,} steps in {result['seconds']:,.0f} s, {bits:.4f} bits per byte")


LOCK = "lock"


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Be the only process that trains a run: another one, as a retry of a task that is not dead yet, waits for it."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / LOCK).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
