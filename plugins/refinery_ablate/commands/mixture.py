"""Searches the mixture of a dataset's groups that gives the best models, by many small ones."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from refinery_ablate.commands.ablate import rates_of, root_to_record
from refinery_ablate.mixture.found import lines_of
from refinery_ablate.mixture.planning import Wanted, mixtures_of_later, prepare
from refinery_ablate.mixture.search import RECIPE, judge, next_round, noise_of
from refinery_ablate.mixture.search_page import PAGE
from refinery_ablate.mixture.search_plan import FOUND, PRIOR, SEARCH, Search, untrained
from refinery_ablate.mixture.search_record import record_search
from refinery_ablate.running import require_torch, run_proxies
from refinery_ablate.sizes import SIZES, SMOKE
from refinery_ablate.verdict import hours_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the dataset and its groups, what a mixture may be, and how models are trained."""
    parser.add_argument("--dataset", required=True, metavar="DATASET", help="a training dataset, as ROOT/NAME@VERSION")
    parser.add_argument(
        "--held-out", action="append", required=True, metavar="FILE", help="JSON lines that no proxy may have"
    )
    parser.add_argument("--to", required=True, metavar="DIR", help="folder of the search; it goes on there")
    parser.add_argument("--by", default="", metavar="COLUMN", help="groups, as `mix` has them (those of the dataset)")
    parser.add_argument("--bands", default="", metavar="N,N", help="bounds at which a --by of numbers is cut")
    parser.add_argument(
        "--least-share", type=float, default=0.01, metavar="S", help="smaller groups are joined (%(default)s)"
    )
    parser.add_argument("--prior", default="", metavar="GROUP=W,...", help="mixture to beat (that of the dataset)")
    parser.add_argument(
        "--budget-tokens", type=int, default=0, metavar="N", help="tokens that the weights are for (the dataset's)"
    )
    parser.add_argument(
        "--max-epochs", type=float, default=4.0, metavar="R", help="uses of a group in that budget (%(default)s)"
    )
    parser.add_argument(
        "--mixtures", type=int, default=0, metavar="N", help="sampled in round 1 (5 a group, 16 or more)"
    )
    parser.add_argument("--rounds", type=int, default=2, metavar="N", help="later ones are near the best (%(default)s)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="runs of prior and found one (%(default)s)")
    parser.add_argument("--size", choices=tuple(SIZES), default=SMOKE, help="size of the models (%(default)s)")
    parser.add_argument("--tokens", type=int, default=0, metavar="N", help="tokens of a run (20 a parameter)")
    parser.add_argument("--rates", default="", metavar="R,R", help="learning rates (two of the size)")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of torch on a CPU (%(default)s)")
    parser.add_argument("--usd-per-hour", type=float, default=0.0, metavar="D", help="price of this device")
    parser.add_argument(
        "--root", "--record", dest="record", default="", metavar="ROOT", help="record what was found in this root, too"
    )
    parser.add_argument("--prepare", action="store_true", help="stop before each round: another machine has the device")
    parser.add_argument("--json", action="store_true", help="end with one JSON object")


def answer(options: argparse.Namespace) -> int:
    """Train proxies round by round, and print what was found."""
    folder, also = Path(options.to).absolute(), root_to_record(options)
    if not options.prepare and not (folder / SEARCH).exists():
        require_torch()
    search: Search | None = prepare(_wanted(options), folder)
    while search:
        latest = search
        if untrained(folder, search) and options.prepare:
            _say(f"{folder} is ready: run `python -m refinery_ablate {folder}` there, and this command again here")
            return 0
        if untrained(folder, search):
            _train(folder, search, options.usd_per_hour)
        search = next_round(folder, search)
    found = judge(folder, latest)
    recorded = record_search(found, folder, also)
    if options.json:
        sys.stdout.write(json.dumps(found.facts()) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines_of(found))
    _say(f"mixture: {folder / RECIPE}")
    _say(f"report: {folder / PAGE}")
    for each in recorded:
        _say(f"recorded: {each}")
    return 0


def _train(folder: Path, search: Search, usd_per_hour: float) -> None:
    """Run the prior first, from which follow the noise and the price; then all that is planned."""
    if untrained(folder, search, (PRIOR,)):
        run_proxies(folder, 0, 1, _say, (PRIOR,))
    for line in _price_lines(folder, search, usd_per_hour):
        _say(line)
    run_proxies(folder, 0, 1, _say)


def _price_lines(folder: Path, search: Search, usd_per_hour: float) -> Iterator[str]:
    noise, round_number = noise_of(folder, search), max(proxy.round for proxy in search.proxies)
    left = len(untrained(folder, search))
    if search.of_kind(FOUND):
        return
    judging = search.asked.seeds * (2 * len(search.asked.rates) - 1)
    later = max(search.asked.rounds - round_number, 0) * mixtures_of_later(search) + judging
    yield (
        f"round {round_number}: noise of seeds {noise.deviation:.4f} bits per byte; {left} proxies of this round in "
        f"{hours_of(noise.seconds * left, usd_per_hour)}, and at most {later} after it in "
        f"{hours_of(noise.seconds * later, usd_per_hour)}"
    )


# --- What is asked ------------------------------------------------------------------------------------------------


def _wanted(options: argparse.Namespace) -> Wanted:
    for name, least in (("mixtures", 0), ("rounds", 1), ("tokens", 0), ("budget_tokens", 0), ("threads", 1)):
        if getattr(options, name) < least:
            message = f"--{name.replace('_', '-')} {getattr(options, name)}: name a number of at least {least}"
            raise RecipeError(message)
    if not 0 < options.max_epochs <= 1000:  # noqa: PLR2004 -- as `mix`
        message = f"--max-epochs {options.max_epochs:g}: name a number above 0, of at most 1,000"
        raise RecipeError(message)
    if not 0 <= options.least_share < 1:
        message = f"--least-share {options.least_share:g}: name a share from 0 on, below 1"
        raise RecipeError(message)
    return Wanted(
        dataset=options.dataset,
        sets=tuple(options.held_out),
        by=options.by,
        bands=_bounds(options.bands, options.by),
        prior=_prior(options.prior),
        budget=options.budget_tokens,
        max_epochs=options.max_epochs,
        least=options.least_share,
        mixtures=options.mixtures,
        rounds=options.rounds,
        seeds=options.seeds,
        rates=rates_of(options.rates),
        size=options.size,
        tokens=options.tokens,
        threads=options.threads,
    )


def _bounds(written: str, by: str) -> tuple[float, ...]:
    if written and (not by or "+" in by):
        message = f"--bands {written[:100]}: name one column by --by that they cut"
        raise RecipeError(message)
    try:
        bounds = tuple(float(bound) for bound in written.split(",")) if written else ()
    except ValueError as error:
        message = f"--bands {written[:100]!a}: name numbers, with commas between"
        raise RecipeError(message) from error
    if any(first >= second for first, second in pairwise(bounds)):
        message = f"--bands {written[:100]}: name ascending numbers"
        raise RecipeError(message)
    return bounds


def _prior(written: str) -> dict[str, float]:
    """Return weights by group of `en=0.7,de=0.3`."""
    weights: dict[str, float] = {}
    for part in written.split(",") if written else ():
        group, _, weight = part.rpartition("=")
        try:
            weights[group.strip()] = float(weight)
        except ValueError as error:
            message = f"--prior {written[:100]!a}: write GROUP=WEIGHT, with commas between"
            raise RecipeError(message) from error
        if not 0 <= weights[group.strip()] < float("inf"):
            message = f"--prior {part[:100]!a}: weights are at least 0"
            raise RecipeError(message)
    return weights


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
