"""Runs the jobs of a comparison one after the other on the best device of this machine."""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from pipeline_tasks.ablate.held_out import load_held_out
from pipeline_tasks.ablate.job import HELD_OUT, read_plan, read_result, unfinished
from pipeline_tasks.errors import RecipeError


def require_torch() -> None:
    """Raise RecipeError where torch is not installed."""
    missing = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        message = (
            f"{missing[0]} is not installed, and models are trained by it; install the extra: pip install '.[ablate]'"
        )
        raise RecipeError(message)


def run_jobs(
    folder: Path, number: int, count: int, say: Callable[[str], None], arms: Sequence[int] | None = None
) -> None:
    """Run each `count`-th job without a result, from the `number`-th on; `say` takes a line for each that has ended."""
    require_torch()
    import torch

    from pipeline_tasks.ablate.training_run import train

    plan, held_out = read_plan(folder), load_held_out(folder / HELD_OUT)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    for job in unfinished(folder, plan, arms)[number::count]:
        train(plan, job, held_out, folder, device)
        result = read_result(folder, job)
        bits = sum(result["bits"]) / float(held_out.sizes.sum())
        say(f"{job.name}: {result['steps']:,} steps in {result['seconds']:,.0f} s, {bits:.4f} bits per byte")
