"""`refinery build` builds a training dataset from published snapshots, or prints the plan of its mixture."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline_tasks.ask.lines import aligned_lines
from pipeline_tasks.cards import choosing_stages, plans_mixture, stage_that
from pipeline_tasks.cli.again import How, build_again
from pipeline_tasks.counted import counted
from pipeline_tasks.flow import running
from pipeline_tasks.inspect.command import (
    add_output_root,
    add_partitions,
    add_refining,
    overrides_of,
    print_result,
)
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.datasets.building import bands_of, plan_of
from pipeline_tasks.recipe import BUILDS, DEFAULT_BUILD, LOCAL, Recipe, Versions, load_build, recipe_names
from pipeline_tasks.run.request import RefineReply, RefineRequest
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import ComposeRequest
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.storage import absolute, require_root

NAMING = ("weights", "tokens", "epochs")
"""Params of `mix` that name groups."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the root, the recipe, and how to build."""
    add_output_root(parser, "root with the published snapshots; the dataset too")
    names = ", ".join(recipe_names(BUILDS))
    parser.add_argument("--recipe", default=DEFAULT_BUILD, help=f"one of {names}, or a YAML file with `versions`")
    exclusive = parser.add_mutually_exclusive_group()
    exclusive.add_argument(
        "--dry-run", "--plan", dest="plan", action="store_true", help="print what the mixture would take; build nothing"
    )
    exclusive.add_argument(
        "--again",
        default="",
        metavar="VERSION",
        help="build this version again, byte for byte: its number, or the path of its build.json",
    )
    add_partitions(parser)
    add_refining(parser)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")


def answer(options: argparse.Namespace) -> int:
    """Build the dataset, or print its plan; return the exit code."""
    if options.plan:
        facts = plan(absolute(options.root), load_build(options.recipe), options.engine or LOCAL)
        print_result(options, facts, plan_lines(facts))
        return 0
    if options.again:
        facts = _again(options)
        print_result(options, facts, [AGAIN.format_map(facts)])
        return 0
    request = running.BuildOptions(
        root=options.root,
        recipe=options.recipe,
        partitions=options.partitions,
        engine=options.engine,
        override=overrides_of(options),
    )
    return running.build(request, json_summary=options.json)


AGAIN = "version {version} of {recipe} is whole: {files:,} files, {index} with SHA-256 {sha256}"


def _again(options: argparse.Namespace) -> dict[str, Any]:
    root, recipe = absolute(options.root), options.recipe
    require_root(root)
    name = load_build(recipe).name if recipe.endswith((".yaml", ".yml")) else recipe
    return build_again(root, name, options.again, How(options.engine or LOCAL, overrides_of(options)))


def plan(root: str, recipe: Recipe, engine: str) -> dict[str, Any]:
    """Compose, and run the stages that choose documents; return the composition and the plan. A build finds them done.

    Gates do not judge here: they judge when the dataset is built. A plan is no run: its requests name no snapshot.
    """
    require_root(root)
    composed = handle(ComposeRequest(root, recipe.name, recipe.versions or Versions("")))
    replies: dict[str, RefineReply] = {}
    parent = composed["manifest"]
    choosing = choosing_stages(step.stage for step in recipe.steps)
    for step in recipe.steps:
        if step.stage in choosing:
            request = RefineRequest(root, step.stage, step.params, parent, engine=engine, recipe=recipe.name)
            replies[step.stage] = handle(request)
            parent = replies[step.stage]["manifest"]
    by_stage = {stage: read_manifest(root, reply["manifest"]) for stage, reply in replies.items()}
    rejected = {stage: reply["rejected"] for stage, reply in replies.items()}
    composition = {name: composed[name] for name in ("snapshots", "stale", "documents")}
    groups = plan_of(root, by_stage) if stage_that(plans_mixture, by_stage) else [_unmixed(by_stage[choosing[-1]])]
    absent = absent_groups(recipe, groups)
    return {**composition, "rejected": rejected, "groups": groups, "bands": bands_of(root, by_stage), "absent": absent}


def _unmixed(chosen: Manifest) -> dict[str, Any]:
    """Return the plan of a build without a mixture: every document once, as one group without a name."""
    tokens = dict.fromkeys(("available", "wanted", "taken"), chosen.tokens)
    return {"group": "", "documents": chosen.rows, **tokens, "uses": 1, "limit": 0, "listed": True, "limited_by": ""}


def absent_groups(recipe: Recipe, groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the groups that `mix` names and no document has: those of a typing error, or of other snapshots."""
    params = [step.params for step in recipe.steps if plans_mixture(step.stage)]
    named = {group for mix in params for key in NAMING for group in mix.get(key, {})}
    return sorted(named - {group["group"] for group in groups})


COUNTED = ("documents", "available", "wanted", "taken")
COLUMNS = ("group", *COUNTED, "epochs", "limited by")

BAND_COLUMNS = ("group", "band", "up to", "documents", "tokens", "factor", "taken")


def plan_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield the plan as a table for a person."""
    snapshots, documents = facts["snapshots"], counted(facts["documents"], "document")
    yield f"{counted(len(snapshots), 'snapshot')}, {snapshots[0]} to {snapshots[-1]}: {documents}"
    for reasons in facts["rejected"].values():
        yield from (f"  {count:>12,} {reason}" for reason, count in sorted(reasons.items()))
    rows = [_row(group) for group in facts["groups"]]
    total = {name: sum(group[name] for group in facts["groups"]) for name in COUNTED}
    rows.append(_row({"group": "all", **total, "limited_by": ""}))
    yield from aligned_lines((COLUMNS, *rows), (0, len(COLUMNS) - 1))
    listed = {group["group"] for group in facts["groups"] if group["listed"]}
    if facts["bands"]:
        yield ""
        bands = [_band_row(band) for band in facts["bands"] if band["group"] in listed]
        yield from aligned_lines((BAND_COLUMNS, *bands), (0,))
    if facts["stale"]:
        yield (
            f"warning: {counted(len(facts['stale']), 'snapshot is', 'snapshots are')} stale, so that documents may be "
            f"there twice or not at all; run again in this order: {', '.join(facts['stale'])}"
        )
    for group in facts["absent"]:
        yield f"warning: no document is of group {group!r}, which mix names; correct its name, or leave it out"


def _row(group: Mapping[str, Any]) -> Sequence[str]:
    epochs = group["taken"] / group["available"] if group["available"] else 0.0
    counts = [f"{group[name]:,}" for name in COUNTED]
    return [group["group"] or "(none)", *counts, f"{epochs:.3f}", group["limited_by"] or "-"]


def _band_row(band: Mapping[str, Any]) -> Sequence[str]:
    up_to = "-" if band["up_to"] is None else f"{band['up_to']:.6g}"
    counts = [f"{band[name]:,}" for name in ("documents", "tokens")]
    name = str(band["band"] or "(none)")
    return [band["group"] or "(none)", name, up_to, *counts, f"{band['factor']:.3f}", f"{band['taken']:,}"]
