"""Says before anything runs what an installed release makes outdated in a root, why, what it costs, and what stays."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pipeline_tasks.cards import known_cards
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.command import add_json, add_root, print_result
from pipeline_tasks.libraries import present
from pipeline_tasks.manifest import FORMAT, WRITER
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.outdated import Outdated, OutdatedVersion, outdated
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.run.sizes import in_bytes
from pipeline_tasks.seams import REFINERY

SHOWN = 8
"""Snapshots of a recipe whose stages are listed; more of them have the same reasons."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, one recipe, and JSON."""
    add_root(parser)
    parser.add_argument("--recipe", default="", help="recipe or dataset (default: all in ROOT)")
    add_json(parser)


def answer(options: argparse.Namespace) -> int:
    """Print what is outdated; return ContractError's exit code if a version cannot be read by this release."""
    found = outdated_versions(options.root, options.recipe)
    print_result(options, upgrade_facts(options.root, found), upgrade_lines(options.root, found))
    return ContractError.exit_code if any(each.unreadable for each in found) else 0


def outdated_versions(root: str, recipe: str = "") -> list[OutdatedVersion]:
    """Return the newest version of each snapshot of each recipe and dataset, with what is outdated of it.

    RecipeError for a recipe that has published nothing. Trials are left out: nothing is built from them.
    """
    names = [recipe] if recipe else [name for name in version_log.recipes(root) if not is_trial(name)]
    if recipe and recipe not in version_log.recipes(root):
        version_log.current(root, recipe)  # it raises: nothing is published
    return [outdated(root, version) for name in names for version in version_log.latest_by_snapshot(root, name)]


def upgrade_facts(root: str, found: Sequence[OutdatedVersion]) -> dict[str, Any]:
    """Return what is outdated as JSON values."""
    names = sorted({name for card in known_cards() for name in card.libraries})
    return {
        "root": root,
        "release": present([REFINERY]).get(REFINERY, ""),
        "reads": {"manifest": FORMAT},
        "writer": WRITER,
        "libraries": present(names),
        "versions": [_facts(each) for each in found],
    }


def _facts(found: OutdatedVersion) -> dict[str, Any]:
    version = found.version
    about = {"recipe": version.recipe, "snapshot": version.snapshot, "number": version.number}
    stages = [asdict(stage) for stage in found.stages]
    return {**about, "outdated": stages, "current": list(found.current), "unreadable": found.unreadable}


def upgrade_lines(root: str, found: Sequence[OutdatedVersion]) -> Iterator[str]:
    """Yield what is outdated, per recipe and snapshot, as lines for a person."""
    yield f"release   {present([REFINERY]).get(REFINERY, 'of a checkout')}, writes by {WRITER}"
    yield f"reads     manifests of format {FORMAT}; a ledger of an earlier release is brought forward when it is opened"
    if not found:
        yield f"nothing   {root} has no published version: nothing in it can be outdated"
        return
    for name in dict.fromkeys(each.version.recipe for each in found):
        yield from _recipe_lines([each for each in found if each.version.recipe == name])
    behind = [each for each in found if each.stages]
    if behind:
        cost = " and ".join([*_seconds(behind), f"{in_bytes(sum(each.stores for each in behind))} written"])
        yield (
            f"cost      {cost} to refine {counted(len(behind), 'version')} again; nothing is refined until somebody "
            "runs it"
        )
    lost = any(each.unreadable for each in found)
    yield (
        f"stays     every {'other ' if lost else ''}published version is read, verified, traced and trained from as "
        "before; new snapshots take the history of the published ones"
    )
    yield "rewrites  nothing: objects of a root are never written over, and no other part of it has to change"


def _recipe_lines(found: Sequence[OutdatedVersion]) -> Iterator[str]:
    """Yield the lines of one recipe; snapshots that are outdated by the same reasons as one before are counted."""
    name, behind = found[0].version.recipe, [each for each in found if each.stages]
    lost = [each for each in found if each.unreadable]
    yield (
        f"{name}: {counted(len(found), 'snapshot')}, {len(found) - len(behind) - len(lost)} up to date, "
        f"{len(behind)} outdated{f', {len(lost)} not readable' if lost else ''}"
    )
    for each in lost:
        yield f"  {each.version.snapshot:<20}PROBLEM   {each.unreadable}"
    by_reasons: dict[tuple[tuple[str, str], ...], list[OutdatedVersion]] = {}
    for each in behind:
        by_reasons.setdefault(tuple((stage.stage, stage.why) for stage in each.stages), []).append(each)
    for alike in by_reasons.values():
        yield from _outdated_lines(alike)


def _outdated_lines(alike: Sequence[OutdatedVersion]) -> Iterator[str]:
    names = [each.version.snapshot for each in alike]
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    stages = len(alike[0].stages)
    yield f"  {shown}: {stages} of {counted(stages + len(alike[0].current), 'stage')}"
    for at, stage in enumerate(alike[0].stages):
        yield _stage_line([each.stages[at] for each in alike])
        yield from (f"      {reason}" for reason in stage.reasons)
    if alike[0].current:
        yield f"    {'as they are':<18}{', '.join(alike[0].current)}"


def _stage_line(alike: Sequence[Outdated]) -> str:
    """Return the line of a stage that is outdated in several snapshots by the same reasons."""
    known = [stage.seconds for stage in alike if stage.seconds is not None]
    seconds = f"{sum(known):,.1f} s" if known else "-"
    first, reads, stores = alike[0], sum(stage.reads for stage in alike), sum(stage.stores for stage in alike)
    follows = "" if first.reasons else f"  reads {first.follows}"
    return f"    {first.stage:<18}{seconds:>12}{in_bytes(reads):>12} read{in_bytes(stores):>12} written{follows}"


def _seconds(found: Sequence[OutdatedVersion]) -> list[str]:
    known = [each.seconds for each in found if each.seconds is not None]
    lacking = len(found) - len(known)
    if not known:
        return ["seconds that the ledger does not have"]
    lacks = f", which lacks those of {counted(lacking, 'version')}" if lacking else ""
    return [f"{sum(known):,.1f} core seconds by the ledger{lacks}"]
