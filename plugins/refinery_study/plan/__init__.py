"""Plans a training run from its tokens, or a refinery from its input: bytes, cores, hours, storage, money, tokens."""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import chosen_version
from pipeline_tasks.inspect.command import add_json, add_recipe, default_root, number, print_result, recipe_of
from pipeline_tasks.inspect.unpublished import current_version, say
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.store.storage import require_root
from refinery_study.plan.bases import measured_basis, published_basis
from refinery_study.plan.demand import (
    Demand,
    LoaderRate,
    Prices,
    StageDemand,
    Target,
    demand_of,
    loader_rate,
    total_kept,
)
from refinery_study.plan.version_costs import StageCost, VersionCost, token_bytes, version_basis, version_cost

CORE_HOUR = 0.05
CORE_HOUR_SOURCE = "about a cloud's list price of one virtual core, as the ledger starts with"
GB_MONTH = 0.023
GB_MONTH_SOURCE = "Amazon S3 Standard, first 50 TB of a month, us-east-1, list price"

TOKEN_BYTES = 4
"""Bytes of a token in a file of uint32."""

REFINE_DAYS = 14

FINEWEB_SOURCE = "FineWeb (arXiv 2406.17557) has 15e12 tokens of 96 crawls; a crawl has about 433 TB of content"
FINEWEB_CONTENT_PER_TOKEN = 96 * 433e12 / 15e12
"""Bytes of content per token: 96 crawls for 15e12 tokens, each of the 394 TiB that December 2024 has."""

_SIZE = re.compile(r"(?i)(\d+(?:\.\d+)?(?:e\d+)?) ?([kmgtp]?)(i?)b?")

MOST = 1e24
"""Bytes of the largest input that is planned: some hundred times what all crawls have."""

LEAST_DOCUMENTS = 1000
"""Documents of a version to plan from: a share of them is known to 1 / sqrt(1000), some 3 %."""

WHOLE = 100
"""From here on a number is shown without a fraction."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training run asks for, on each basis; with a version, what was foretold of it and what it took.

    If `landed` bytes were given and no tokens, `target` has none, and neither days nor GPUs, and there is no loader.
    `notes` say why another version than the newest one is planned from, and that it has few documents.
    """

    target: Target
    landed: float
    prices: Prices
    loader: LoaderRate | None
    demands: tuple[Demand, ...]
    cost: VersionCost | None
    notes: tuple[str, ...]


EXAMPLE = "--target-tokens 14.8e12 --days 54 --gpus 2048"
"""A training run, about that of DeepSeek-V3 (arXiv 2412.19437, 2024)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the target or the input, the version to plan from, and the prices."""
    parser.usage = "%(prog)s [-h] (--target-tokens N --days D --gpus N | --input SIZE) [OPTION ...] [ROOT]"
    some = number(float, 1e-9)
    given = parser.add_mutually_exclusive_group(required=True)
    tokens = number(float, 1)
    given.add_argument("--target-tokens", type=tokens, default=0, metavar="N", help=f"with days and GPUs: {EXAMPLE}")
    given.add_argument("--input", type=_size, default=0, metavar="SIZE", help="of files that land, such as 3TB")
    parser.add_argument("--days", type=some, default=0, metavar="D", help="days of training, with --target-tokens")
    parser.add_argument(
        "--gpus", type=number(int, 1), default=0, metavar="N", help="GPUs that read the tokens, with --target-tokens"
    )
    parser.add_argument(
        "--version",
        "--from",
        default="",
        dest="from_version",
        metavar="VERSION",
        help="plan from what this version took: a number, or a snapshot (default: the newest one of a ROOT or --recipe "
        f"that is named with {LEAST_DOCUMENTS:,} documents or more, else measured and published costs)",
    )
    add_recipe(parser)
    parser.set_defaults(requires_root=False, root="")  # the usual root is planned from where a version of it is named
    parser.add_argument(
        "--refine-days", type=some, default=REFINE_DAYS, metavar="D", help="days to refine the crawl in (default: 14)"
    )
    parser.add_argument(
        "--token-bytes", type=some, metavar="B", help="bytes of a stored token (default: the version's, else 4)"
    )
    price = number(float, 0)
    parser.add_argument(
        "--core-hour-price",
        type=price,
        default=CORE_HOUR,
        metavar="USD",
        help=f"default: {CORE_HOUR}, {CORE_HOUR_SOURCE}",
    )
    parser.add_argument(
        "--gb-month-price", type=price, default=GB_MONTH, metavar="USD", help=f"default: {GB_MONTH}, {GB_MONTH_SOURCE}"
    )
    add_json(parser)


def _size(text: str) -> float:
    """Read bytes from a number and a unit, of SI or of powers of two."""
    written = _SIZE.fullmatch(text.strip())
    unit = float(1024 if written[3] else 1000) ** " kmgtp".index(written[2].lower() or " ") if written else 0.0
    size = float(written[1]) * unit if written else 0.0
    if not 1 <= size <= MOST:
        message = f"{text!r} is no size, such as 3TB; of a folder, `refinery lint RECIPE --input URI` says what it asks"
        raise argparse.ArgumentTypeError(message)
    return size


def answer(options: argparse.Namespace) -> int:
    """Print the plan."""
    plan = plan_of(options)
    for note in plan.notes:
        say(note)
    print_result(options, plan_facts(plan), plan_lines(plan))
    return 0


def plan_of(options: argparse.Namespace) -> Plan:
    """Return the plan that the options ask for; RecipeError unless tokens, and they alone, have days and GPUs."""
    if bool(options.days) != bool(options.target_tokens) or bool(options.gpus) != bool(options.target_tokens):
        example = f"such as {EXAMPLE}; --input is planned without them"
        message = f"--target-tokens needs --days and --gpus of the training, {example}"
        raise RecipeError(message)
    cost, stored = None, 0
    notes: tuple[str, ...] = ()
    if version := _version(options):
        cost, stored = version_cost(options.root, version), token_bytes(options.root, version)
        notes = tuple(_notes(version, None if options.from_version else current_version(options.root, version.recipe)))
    target = Target(
        tokens=options.target_tokens,
        days=options.days,
        gpus=int(options.gpus),
        token_bytes=options.token_bytes or stored or TOKEN_BYTES,
        refine_days=options.refine_days,
    )
    prices = Prices(options.core_hour_price, options.gb_month_price)
    bases = (version_basis(cost),) if cost else (measured_basis(), published_basis())
    tokens = (options.target_tokens or options.input / basis.landed_per_token for basis in bases)
    targets = (replace(target, tokens=each) for each in tokens)
    demands = tuple(map(demand_of, bases, targets, [prices] * len(bases)))
    loader = loader_rate(target) if target.tokens else None
    return Plan(target, options.input, prices, loader, demands, cost, notes)


def _version(options: argparse.Namespace) -> Version | None:
    """Return the version that is planned from: one in force where only its root or recipe is named; None without."""
    if not (options.root or options.recipe or options.from_version):
        return None
    options.root = options.root or default_root()
    require_root(options.root)
    if options.from_version:
        return chosen_version(options.root, recipe_of(options), options.from_version)
    return _largest(options.root, recipe_of(options))


def _largest(root: str, recipe: str) -> Version:
    """Return the newest version in force that has enough documents, else the one that has most.

    A day of another crawl, or a partial one, may have brought a few. RecipeError if nothing is published.
    """
    newest = current_version(root, recipe)
    versions = [newest, *reversed(version_log.latest_by_snapshot(root, recipe))]
    enough = (version for version in versions if version.documents >= LEAST_DOCUMENTS)
    return next(enough, max(versions, key=lambda version: version.documents))


def _notes(version: Version, newest: Version | None) -> Iterator[str]:
    """Yield why a version is planned from that is not the newest, and that it has too few documents."""
    if newest and newest.number != version.number:
        few = counted(newest.documents, "document")
        yield f"planned from version {version.number}, as the newest, {newest.number} of {newest.snapshot}, has {few}"
    if version.documents < LEAST_DOCUMENTS:
        yield (
            f"version {version.number}, snapshot {version.snapshot}, is too small to plan from: it has "
            f"{counted(version.documents, 'document')}, and shares are known from {LEAST_DOCUMENTS:,} on; refine more, "
            "and name it by --version"
        )


# --- Output ---------------------------------------------------------------------------------------------------------


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain JSON values."""
    references = [{"content": plan.target.tokens * FINEWEB_CONTENT_PER_TOKEN, "source": FINEWEB_SOURCE}]
    return {
        "target": asdict(plan.target) if plan.loader else None,
        "input": plan.landed or None,
        "prices": {**asdict(plan.prices), "sources": list(_price_sources(plan.prices))},
        "loader": plan.loader and asdict(plan.loader),
        "plans": [asdict(demand) | {"kept": total_kept(demand.stages)} for demand in plan.demands],
        "references": references if plan.loader else [],
        "forecast": plan.cost and _forecast_facts(plan.cost),
        "notes": list(plan.notes),
    }


def _forecast_facts(cost: VersionCost) -> dict[str, Any]:
    stages = [
        {
            "stage": stage.stage,
            "reads": {"foretold": stage.foretold_reads, "measured": stage.reads},
            "seconds": {"foretold": stage.foretold_seconds, "measured": stage.seconds},
        }
        for stage in cost.stages
    ]
    return {
        "version": cost.version.number,
        "landed": cost.landed,
        "tokens": {"foretold": cost.foretold_tokens, "measured": cost.tokens},
        "seconds": {"foretold": _foretold(cost.stages), "measured": _spent(cost.stages)},
        "stages": stages,
    }


def _foretold(stages: Sequence[StageCost]) -> float:
    """Return the seconds that are foretold of the stages of which the ledger has seconds."""
    return sum(stage.foretold_seconds for stage in stages if stage.seconds is not None)


def _spent(stages: Sequence[StageCost]) -> float:
    return sum(stage.seconds for stage in stages if stage.seconds is not None)


def _price_sources(prices: Prices) -> Iterator[str]:
    for price, default, unit, source in (
        (prices.core_hour, CORE_HOUR, "core-hour", CORE_HOUR_SOURCE),
        (prices.gb_month, GB_MONTH, "GB-month", GB_MONTH_SOURCE),
    ):
        yield f"${price:g} per {unit}: {source if price == default else 'given'}"


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan for a person."""
    target = plan.target
    if plan.loader:
        yield f"{target.tokens:,.0f} tokens in {counted(target.days, 'day')} on {counted(target.gpus, 'GPU')}"
        yield ""
        yield from _loader_lines(plan.loader, target)
    else:
        yield f"{in_bytes(plan.landed)} of files as they land, refined in {counted(target.refine_days, 'day')}"
    for demand in plan.demands:
        yield ""
        yield from _demand_lines(demand, target)
    yield ""
    if plan.cost is None and plan.loader:
        yield f"compare    {in_bytes(target.tokens * FINEWEB_CONTENT_PER_TOKEN)} of content: {FINEWEB_SOURCE}"
    yield from (f"price      {source}" for source in _price_sources(plan.prices))
    if plan.cost:
        yield ""
        yield from _forecast_lines(plan.cost)


def _loader_lines(loader: LoaderRate, target: Target) -> Iterator[str]:
    yield (
        f"loader     {loader.tokens_s:,.0f} tokens/s of {target.token_bytes:g} bytes: {in_bytes(loader.bytes_s)}/s, "
        f"{in_bytes(loader.bytes)} in all"
    )
    yield f"each GPU   {loader.tokens_s_per_gpu:,.0f} tokens/s, {in_bytes(loader.bytes_s_per_gpu)}/s"


def _demand_lines(demand: Demand, target: Target) -> Iterator[str]:
    content = f", {in_bytes(demand.content)} of content" if demand.content else ""
    yield f"{demand.basis}: {demand.source}"
    kept = f"{total_kept(demand.stages):.3g} of all {demand.shares_of} stay"
    yield f"  crawl    {in_bytes(demand.landed)} as landed{content}; {kept}"
    if not target.tokens:
        tokens, stored = float(f"{demand.tokens:.3g}"), in_bytes(demand.tokens * target.token_bytes)
        yield f"  tokens   {tokens:,.0f}: {stored} as stored"
    yield (
        f"  compute  {demand.core_hours:,.0f} core-hours: {demand.cores:,} cores for {target.refine_days:g} days, "
        f"${demand.core_money:,.0f}"
    )
    yield (
        f"  storage  {in_bytes(demand.stored)} with the crawl, for {target.refine_days + target.days:g} days, "
        f"${demand.storage_money:,.0f}"
    )
    yield f"  {'stage':<24}{'kept':>8}{'reads':>12}{'core-hours':>14}{'stores':>12}  seconds from"
    yield from (_stage_line(stage) for stage in demand.stages)


def _stage_line(stage: StageDemand) -> str:
    kept = "-" if stage.kept is None else f"{stage.kept:.1%}"
    return (
        f"  {stage.stage:<24}{kept:>8}{in_bytes(stage.reads):>12}{stage.core_hours:>14,.0f}{in_bytes(stage.stores):>12}"
        f"  {stage.source}"
    )


def _forecast_lines(cost: VersionCost) -> Iterator[str]:
    """Yield what unit costs foretell of the version's landed files, beside what it took."""
    yield f"forecast of version {cost.version.number} from its {in_bytes(cost.landed)} of landed files, beside fact"
    yield f"  {'stage':<24}{'reads':>24}{'core seconds':>24}{'foretold / fact':>18}"
    for stage in cost.stages:
        reads = f"{in_bytes(stage.foretold_reads)}, {in_bytes(stage.reads)}"
        yield f"  {stage.stage:<24}{reads:>24}{_beside(stage.foretold_seconds, stage.seconds)}"
    yield f"  {'all that are measured':<24}{'':>24}{_beside(_foretold(cost.stages), _spent(cost.stages))}"
    yield f"  {'tokens':<24}{'':>24}{_beside(cost.foretold_tokens, cost.tokens)}"


def _beside(foretold: float, fact: float | None) -> str:
    if fact is None:
        return f"{f'{_number(foretold)}, not known':>24}"
    ratio = f"{foretold / fact:.2f}" if fact else "-"
    return f"{f'{_number(foretold)}, {_number(fact)}':>24}{ratio:>18}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= WHOLE else f"{value:.2g}"
