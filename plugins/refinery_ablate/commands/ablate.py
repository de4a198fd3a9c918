"""Says which of two recipes or datasets gives the better model, or which stage of one pays, how sure, at what price."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.plan import Given
from pipeline_tasks.inspect.command import print_result
from pipeline_tasks.recipe import MARGIN, NOT_WORSE
from pipeline_tasks.store.storage import absolute, require_root
from refinery_ablate.arms import arms_of, make_arms
from refinery_ablate.attribution import attribute, attribution_lines, cost_lines, write_recipes
from refinery_ablate.comparison import Wanted, noise_of, prepare, require_possible
from refinery_ablate.conclusion import conclude, condition_of
from refinery_ablate.flow import FLOW
from refinery_ablate.job import PLAN, Plan, read_plan, runs_of, unfinished
from refinery_ablate.recording import record_attribution
from refinery_ablate.running import require_torch, run_job
from refinery_ablate.sizes import SIZES, SMOKE
from refinery_ablate.verdict import Noise, price_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arms, the held-out sets, and how models are trained."""
    arms = parser.add_mutually_exclusive_group(required=True)
    arms.add_argument("--datasets", metavar="A,B", help="two training datasets, as ROOT/NAME@VERSION")
    arms.add_argument("--recipes", metavar="A,B", help="two recipes, which refine the snapshots of --input")
    arms.add_argument(
        "--attribute", metavar="RECIPE", help="this recipe, and itself without each of its stages: which stage pays"
    )
    parser.add_argument("--stages", default="", metavar="S,S", help="stages of --attribute (all that can be left out)")
    parser.add_argument("--input", action="append", default=[], metavar="URI", help="a landed snapshot, with recipes")
    parser.add_argument(
        "--held-out", action="append", required=True, metavar="FILE", help="JSON lines that no arm may have"
    )
    parser.add_argument("--to", required=True, metavar="DIR", help="folder of the comparison; it goes on there")
    parser.add_argument("--size", choices=tuple(SIZES), default=SMOKE, help="size of the models (%(default)s)")
    parser.add_argument("--tokens", type=int, default=0, metavar="N", help="tokens of a run (those of the smaller arm)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of each arm and rate (%(default)s)")
    parser.add_argument("--rates", default="", metavar="R,R", help="learning rates (two of the size)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of torch on a CPU (%(default)s)")
    parser.add_argument("--wanted", type=float, default=0.0, metavar="D", help="a difference to see, in bits per byte")
    parser.add_argument("--usd-per-hour", type=float, default=0.0, metavar="D", help="price of this device")
    parser.add_argument(
        "--require",
        default="",
        metavar=f"{NOT_WORSE}[:D]",
        help=f"refuse (exit 65) a b that is not seen to be worse by less than D bits per byte ({MARGIN})",
    )
    parser.add_argument(
        "--override", default="", metavar="NAME:WHY", help="let a refused --require pass; it is recorded"
    )
    parser.add_argument(
        "--root", "--record", dest="record", default="", metavar="ROOT", help="record it in this root, too"
    )
    parser.add_argument("--prepare", action="store_true", help="stop before the runs: another machine has the device")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")


class Course(NamedTuple):
    """What a comparison of two recipes, and of one with itself, do each in a way of its own; `FLOW` says when."""

    arms: Callable[[], Wanted]
    forecast: Callable[[Noise, Plan], Iterable[str]]
    judge: Callable[[], None]


def answer(options: argparse.Namespace) -> int:
    """Make the arms, train, and print what can be seen and what was seen."""
    folder = Path(options.to).absolute()
    course = _attribution(options, folder) if options.attribute else _comparison(options, folder)
    if options.prepare:
        prepare(course.arms(), folder)
        _say(f"{folder} is ready: run `python -m refinery_ablate {folder}` there, and this command again here")
        return 0
    work: Mapping[str, Callable[[Given], list[str] | None]] = {
        "plan": lambda _: runs_of(unfinished(folder, prepare(course.arms(), folder)), first=True),
        "train": lambda given: run_job(folder, given["run_name"], _say),
        "forecast": lambda _: _forecast(course, folder),
        "judge": lambda _: course.judge(),
    }
    FLOW.follow(lambda task, given, _: work[task.does](given), {})
    return 0


def _forecast(course: Course, folder: Path) -> list[str]:
    plan = read_plan(folder)
    for line in course.forecast(noise_of(folder, plan), plan):
        _say(line)
    return runs_of(unfinished(folder, plan), first=False)


def _comparison(options: argparse.Namespace, folder: Path) -> Course:
    condition = condition_of(options.require, options.override, options.size)
    if options.stages:
        message = "--stages are of --attribute; name a recipe there"
        raise RecipeError(message)
    wanted, also = _asked(options, folder)
    named = _names(options.datasets), _names(options.recipes), options.input

    def judge() -> None:
        concluded = conclude(folder, condition, options.usd_per_hour, also)
        print_result(options, concluded.verdict.facts(), concluded.lines())
        for line in concluded.where():
            _say(line)
        concluded.require_passed()

    return Course(
        arms=lambda: replace(wanted, arms=arms_of(*named, folder, _say)),
        forecast=lambda noise, plan: price_lines(noise, plan, options.wanted, options.usd_per_hour),
        judge=judge,
    )


def _attribution(options: argparse.Namespace, folder: Path) -> Course:
    """Return the course of a recipe and itself without each stage: which stage pays."""
    if options.require or options.override:
        message = "--attribute compares a recipe with itself; --require and --override are of two recipes"
        raise RecipeError(message)
    wanted, also = _asked(options, folder)
    without = write_recipes(options.attribute, _names(options.stages), folder / "recipes")
    _say(f"arms: the whole recipe, and it without {', without '.join(without)}")
    recipes = [options.attribute, *without.values()]

    def judge() -> None:
        found = attribute(folder, list(without))
        print_result(options, found.facts(), attribution_lines(found))
        for each in record_attribution(found, folder, also):
            _say(f"recorded: {each}")

    return Course(
        arms=lambda: replace(wanted, arms=tuple(make_arms(recipes, options.input, folder, _say))),
        forecast=lambda noise, plan: cost_lines(noise, plan, options.usd_per_hour),
        judge=judge,
    )


def root_to_record(options: argparse.Namespace) -> str:
    """Return the root of `--root`, "" without it; RecipeError if there is none."""
    also = absolute(options.record) if options.record else ""
    if also:
        require_root(also)
    return also


def _names(written: str | None) -> list[str]:
    return [name.strip() for name in (written or "").split(",") if name.strip()]


def _asked(options: argparse.Namespace, folder: Path) -> tuple[Wanted, str]:
    """Return what is wanted, its arms yet to be made, and the root of `--root`.

    RecipeError for what cannot be compared whatever they are, also as nothing trains here.
    """
    also = root_to_record(options)
    if not options.prepare and not (folder / PLAN).exists():
        require_torch()
    wanted = Wanted(
        (),
        tuple(options.held_out),
        options.size,
        options.tokens,
        options.seeds,
        rates_of(options.rates),
        options.threads,
    )
    require_possible(wanted)
    return wanted, also


def rates_of(written: str) -> tuple[float, ...]:
    """Return the learning rates of `--rates`; RecipeError for what is none."""
    try:
        rates = tuple(float(rate) for rate in written.split(",")) if written else ()
    except ValueError as error:
        message = f"--rates {written[:100]!a}: name numbers, with commas between"
        raise RecipeError(message) from error
    if any(not 0 < rate < 1 for rate in rates):
        message = f"--rates {written}: learning rates are above 0 and below 1"
        raise RecipeError(message)
    return rates


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
