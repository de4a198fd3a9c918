"""Foretell what it costs to have a model write of documents, by a real sample that is kept for the run."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.command import add_json, add_root, number, print_result

if TYPE_CHECKING:
    from refinery_models.generation_cost import Estimate

DOCUMENTS = 32
"""Documents of a sample unless another number is named."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the recipe, the sample and the price."""
    add_root(parser)
    parser.add_argument("--recipe", required=True, metavar="NAME", help="a recipe with a stage that has a model write")
    parser.add_argument(
        "--manifest",
        default="",
        metavar="PATH",
        help="whose documents it reads (default: the newest of the stage before it)",
    )
    parser.add_argument(
        "--documents", type=number(int, 1), default=DOCUMENTS, metavar="N", help=f"documents to write of ({DOCUMENTS})"
    )
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="N", help="the seed they are drawn by (1)")
    parser.add_argument(
        "--models", type=number(int, 1), default=1, metavar="N", help="models that run side by side: actors (1)"
    )
    parser.add_argument(
        "--hour-price",
        type=number(float, 0),
        default=0.0,
        metavar="USD",
        help="dollars that one of them costs for an hour: its GPUs, or its cores",
    )
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Write of the sample, and print what all documents would take."""
    from pipeline_tasks.recipe import load_recipe
    from refinery_models.generation_cost import estimate, newest_input

    recipe = load_recipe(options.recipe)
    path = options.manifest or newest_input(options.root, recipe)
    found = estimate(options.root, recipe, path, options.documents, options.seed)
    hours = found.hours
    dollars = hours * options.hour_price if hours is not None and options.hour_price else None
    facts = asdict(found) | {
        "seconds_per_thousand": found.seconds_per_thousand,
        "hours": hours,
        "wall_hours": None if hours is None else hours / options.models,
        "dollars": dollars,
    }
    print_result(options, facts, lines(found, options.models, dollars))
    return 0


def lines(found: "Estimate", models: int, dollars: float | None) -> Iterator[str]:
    """Yield the estimate as lines for a person."""
    yield f"documents  {found.documents:,} in {found.manifest}, of which {found.chosen:,} meet the conditions"
    known = f", {found.known:,} of them known before" if found.known else ""
    failed = f"; {counted(found.failed, 'request')} failed" if found.failed else ""
    yield f"sample     {counted(found.sampled, 'document')}, {counted(found.requests, 'request')}{known}{failed}"
    yield f"model      {found.model} on {found.hardware}, loaded in {found.load:.1f} s"
    yield (
        f"expected   {found.expected_requests:,} requests, {found.expected_tokens_in:,} tokens in, "
        f"{found.expected_tokens_out:,} tokens out"
    )
    hours = found.hours
    if hours is None:
        yield "time       unknown: all of the sample was known; name another --seed, or more --documents"
        return
    side = f", {hours / models:,.2f} h with {models} side by side" if models > 1 else ""
    yield f"time       {found.seconds_per_thousand:,.1f} s for 1,000 documents; {hours:,.2f} h of one model{side}"
    if dollars is not None:
        yield f"price      {dollars:,.2f} USD"
    yield f"bound      `run: model_hours: {{...: {max(2 * hours, 0.01):.2g}}}` stops a run at twice that"
