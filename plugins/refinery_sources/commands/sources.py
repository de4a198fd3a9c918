"""Lists sources: what has landed of each and when, pulls that have not ended, and whether its hosts are asked."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.command import add_json, print_result
from refinery_sources.budget import OPEN, Circuit, reopen
from refinery_sources.recipe import chosen_sources
from refinery_sources.standing import LandedSource, Standing, UnfinishedPull, standings

BY_HAND = "(no recipe)"
"""How what was pulled by options alone is called."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the landings and the recipes."""
    parser.add_argument(
        "landings",
        nargs="?",
        metavar="LANDINGS",
        default=os.environ.get("REFINERY_LANDING", ""),
        help="folder or s3://bucket/prefix with a folder for each snapshot (REFINERY_LANDING)",
    )
    parser.add_argument(
        "--recipes",
        default=os.environ.get("REFINERY_SOURCES", ""),
        metavar="NAMES",
        help="recipes of sources, names or paths with commas between them (REFINERY_SOURCES, else all of the package)",
    )
    parser.add_argument("--reopen", metavar="HOST", help="send requests to a host again that has refused them")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print a paragraph per source; nothing is requested from any. With `--reopen`, a host is asked again."""
    if options.reopen is not None:
        reopen(options.reopen)
        sys.stderr.write(f"refinery: requests are sent to {options.reopen} again\n")
        if not options.landings:
            return 0
    if not options.landings:
        message = "name the folder of all landings, or set REFINERY_LANDING"
        raise RecipeError(message)
    if "://" not in options.landings and not Path(options.landings).is_dir():
        sys.stderr.write(f"refinery: {options.landings} is no folder yet; nothing has landed there\n")
    known = standings(options.landings, chosen_sources(options.recipes))
    print_result(options, [facts_of(standing) for standing in known], lines_of(known))
    return 0


def facts_of(standing: Standing) -> dict[str, Any]:
    """Return a source as JSON."""
    recipe = standing.recipe
    return {
        "source": standing.name,
        "kind": standing.kind,
        "title": recipe.title if recipe else "",
        "schedule": recipe.schedule if recipe else "",
        "landed": [asdict(one) for one in standing.landed],
        "unfinished": [asdict(one) for one in standing.unfinished],
        "hosts": [asdict(circuit) for circuit in standing.circuits],
    }


def lines_of(known: Sequence[Standing]) -> Iterator[str]:
    """Yield the lines of sources: what each is, what landed last, what has not ended, and what refuses."""
    for standing in known:
        yield f"{standing.name or BY_HAND}  {standing.kind}, {_schedule(standing)}"
        yield f"  newest: {landed_line(standing.newest) if standing.newest else 'nothing has landed'}"
        if standing.landed[1:]:
            yield f"  before: {counted(len(standing.landed) - 1, 'snapshot')}"
        yield from (f"  not ended: {unfinished_line(one)}" for one in standing.unfinished)
        yield from (f"  {circuit_line(circuit)}" for circuit in standing.circuits if circuit.state != OPEN)


def _schedule(standing: Standing) -> str:
    if standing.recipe is None:
        return "by a command" if not standing.name else "its recipe is not known here"
    return f"`{standing.recipe.schedule}` UTC" if standing.recipe.schedule else "on request"


def landed_line(landed: LandedSource) -> str:
    """Return when a snapshot landed, and its amounts."""
    rows = "" if landed.rows is None else f", {counted(landed.rows, 'row')}"
    cut = "" if landed.truncated is None else f", {landed.truncated:,} of them cut at the source"
    return (
        f"{landed.folder}, {landed.at[:16].replace('T', ' ')}: {counted(landed.files, 'file')}, "
        f"{landed.bytes:,} bytes{rows}{cut}"
    )


def unfinished_line(begun: UnfinishedPull) -> str:
    """Return how far a pull is that has not ended."""
    of = "" if begun.files is None else f" of {begun.files:,}"
    return f"{begun.folder}, {begun.at[:16].replace('T', ' ')}: {begun.complete:,}{of} files, {begun.bytes:,} bytes"


def circuit_line(circuit: Circuit) -> str:
    """Return until when no request is sent to a host, and why."""
    return f"{circuit.host} {circuit.state} until {circuit.until}: {circuit.why}"
