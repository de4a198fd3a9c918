"""Finds what a run of a recipe would refuse later: stages out of order, files that are not what they should be."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.recipe import BUILDING, STAGES, Recipe, Step, stage_card
from pipeline_tasks.run.plan import require_secret, resources_of
from pipeline_tasks.run.task import repoint
from pipeline_tasks.schema import RECORD
from pipeline_tasks.store.files import localize

INGEST = "ingest"

PII_CONNECTION = "AIRFLOW_CONN_REFINERY_PII"
"""Where Airflow reads a connection that has the key of pseudonyms."""


class Fault(NamedTuple):
    """What is wrong with a stage of a recipe."""

    stage: str
    message: str


def check_recipe(recipe: Recipe) -> None:
    """Raise RecipeError for the first fault of a recipe, and for a secret that this process does not have."""
    for fault in recipe_faults(recipe):
        message = f"recipe {recipe.name}: {fault.stage}: {fault.message}"
        raise RecipeError(message)
    if PII_CONNECTION not in os.environ:
        for step in recipe.steps:
            card = stage_card(step.stage)
            require_secret(card, bind(card, step.params))


def recipe_faults(recipe: Recipe) -> Iterator[Fault]:
    """Yield the faults of order, then those of the files that the params name; the files are read."""
    yield from order_faults(recipe)
    for step in recipe.steps:
        yield from _unused_gpus(step)
        try:
            check_files(step)
        except RefineryError as error:
            yield Fault(step.stage, str(error).removeprefix(f"{step.stage}: "))


def _unused_gpus(step: Step) -> Iterator[Fault]:
    """Find GPUs for a stage none of whose kernels has a model: they would be held, and nobody would use them."""
    card = stage_card(step.stage)
    if step.resources.gpus and not (card.has_state and card.has_state(bind(card, step.params))):
        yield Fault(
            step.stage,
            f"asks for {step.resources.gpus:g} GPUs under `run: resources`, and nothing in it uses one; remove `gpus`, "
            "or name a model in `score_quality: classifiers`",
        )


def check_files(step: Step) -> None:
    """Read the files that a stage's params name, as its kernels do; RecipeError for one that they cannot use."""
    card = stage_card(step.stage)
    params, digests = resources_of(card, bind(card, step.params))
    if card.check_files:
        local = {uri: localize(uri, digest) for uri, digest in digests.items()}
        card.check_files(repoint(params, local))


# --- Order ----------------------------------------------------------------------------------------------------


def order_faults(recipe: Recipe) -> Iterator[Fault]:
    """Find a recipe that does not begin with `ingest`, and stages that need columns which none before them leaves.

    One that builds begins with documents that all stages of the other kind have passed.
    """
    first = recipe.steps[0].stage
    if first != INGEST and recipe.versions is None:
        yield Fault(first, "gets landed records as they are: damage, redirects, images; put `ingest: {}` before it")
    columns = set(RECORD.names if recipe.versions is None else _documents())
    removed = dict[str, str]()
    for step in recipe.steps:
        card = stage_card(step.stage)
        needed = [*card.reads.names, *(name for name in card.writes.names if _writer(name) != step.stage)]
        missing = [name for name in dict.fromkeys(needed) if name not in columns]
        if missing:
            yield Fault(step.stage, _way_out(missing, removed))
        passes = set(card.reads.names) <= set(card.writes.names)
        left = {*card.writes.names, *(columns if passes else ())}
        removed |= dict.fromkeys(columns - left, step.stage)
        columns = left


def _documents() -> Iterator[str]:
    """Yield the columns that documents of a refined snapshot may have."""
    for stage in STAGES:
        if stage not in BUILDING:
            yield from stage_card(stage).writes.names


def _way_out(missing: Sequence[str], removed: Mapping[str, str]) -> str:
    """Return where to put a stage that needs the columns `missing`."""
    removers = dict.fromkeys(removed[name] for name in missing if name in removed)
    if removers:
        gone = ", ".join(name for name in missing if name in removed)
        return f"needs {gone}, which {' and '.join(removers)} removed; put it before {next(iter(removers))}"
    writers = " and ".join(dict.fromkeys(map(_writer, missing)))
    return f"needs {', '.join(missing)}, which no stage before it writes; put it after {writers}"


def _writer(column: str) -> str:
    """Return the first of all stages that writes a column."""
    return next((name for name in STAGES if column in stage_card(name).writes.names), INGEST)
