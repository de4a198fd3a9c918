"""Runs the models of a folder one after the other on the best device of this machine."""

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.ablate.arm_data import ArmData
from pipeline_tasks.ablate.held_out import load_held_out
from pipeline_tasks.ablate.job import HELD_OUT, Model, TrainingPlan, read_plan, read_result, unfinished
from pipeline_tasks.ablate.mixture.pool import read_pool
from pipeline_tasks.ablate.mixture.proxy_data import ProxyData
from pipeline_tasks.ablate.mixture.search_plan import read_search, untrained
from pipeline_tasks.errors import RecipeError

if TYPE_CHECKING:
    from pipeline_tasks.ablate.training_run import Data

Say = Callable[[str], None]


def require_torch() -> None:
    """Raise RecipeError where torch is not installed."""
    missing = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        message = (
            f"{missing[0]} is not installed, and models are trained by it; install the extra: pip install '.[ablate]'"
        )
        raise RecipeError(message)


def run_jobs(folder: Path, number: int, count: int, say: Say, arms: Sequence[int] | None = None) -> None:
    """Run each `count`-th job without a result, from the `number`-th on; `say` takes a line for each that has ended."""
    plan = read_plan(folder)
    jobs = unfinished(folder, plan, arms)[number::count]
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

    from pipeline_tasks.ablate.training_run import train

    held_out = load_held_out(folder / HELD_OUT)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for model, data in models:
        train(plan, model, data, held_out, folder, device)
        result = read_result(folder, model)
        bits = sum(result["bits"]) / float(held_out.sizes.sum())
        say(f"{model.name}: {result['steps']:,} steps in {result['seconds']:,.0f} s, {bits:.4f} bits per byte")
