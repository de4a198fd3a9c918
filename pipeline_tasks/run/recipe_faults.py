"""Finds what a run of a recipe would refuse later: stages out of order, files that are not what they should be."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import adds, copies_of, known_cards, reads_records, refines, stage_card, stage_names
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.facets import VectorModel
from pipeline_tasks.file_types import type_names
from pipeline_tasks.nearest import nearest
from pipeline_tasks.recipe import Recipe, Step
from pipeline_tasks.run.plan import resources_of, with_secret
from pipeline_tasks.run.tasks.task import repoint
from pipeline_tasks.schema import DOCUMENT, EMBEDDING, RECORD, TYPE
from pipeline_tasks.store.files import localize

PII_CONNECTION = "AIRFLOW_CONN_REFINERY_PII"
"""Where Airflow reads a connection that has the key of pseudonyms."""

PREFER = "prefer"
"""The param of stages that keep one document of several: a column with its values, the best first."""


class Finding(NamedTuple):
    """A problem of a stage, a rule or something else (`where`). A `fault` is certain; a note may be meant.

    `error` is the class by which a run refuses a fault: it says whether the run is worth another try. `line` is that of
    the recipe's file, 0 where it is not known.
    """

    fault: bool
    where: str
    message: str
    error: type[RefineryError] = RecipeError
    line: int = 0


def check_secrets(recipe: Recipe) -> None:
    """Raise RecipeError for a secret that this process does not have, nor a connection for it."""
    if PII_CONNECTION not in os.environ:
        for step in recipe.steps:
            card = stage_card(step.stage)
            with_secret(card, bind(card, step.params))


def recipe_faults(recipe: Recipe) -> Iterator[Finding]:
    """Yield the faults of order and of policies, then those of the files that the params name; the files are read."""
    yield from order_faults(recipe)
    yield from policy_faults(recipe)
    yield from type_faults(recipe)
    yield from file_faults(recipe)


def missing_files(recipe: Recipe) -> Iterator[Finding]:
    """Yield a fault per stage with a file that is not there; nothing is imported that reads what is in it."""
    for step in recipe.steps:
        card = stage_card(step.stage)
        yield from _fault_of(step, partial(resources_of, card, bind(card, step.params)))


def file_faults(recipe: Recipe) -> Iterator[Finding]:
    """Yield a fault per stage with files that are not what they should be: they are read as by its kernels."""
    found = [fault for step in recipe.steps for fault in _fault_of(step, partial(check_files, step))]
    yield from found or _foreign_vectors(recipe)


def _foreign_vectors(recipe: Recipe) -> Iterator[Finding]:
    """Find files that were made of vectors of another model than the recipe's: the two cannot be compared."""
    maker = maker_of_vectors(recipe)
    others = [step for step in recipe.steps if step is not maker and stage_card(step.stage).vectors]
    if maker is None or not others:
        return
    made = vectors_of(maker).name
    for step in others:
        of = vectors_of(step).name
        if of != made:
            message = (
                f"its {step.stage} are of vectors of {of}, and those of {maker.stage} are of {made}, which cannot be "
                f"compared; make the files of {step.stage} with the model of `{maker.stage}`, "
                f"or name that of {step.stage} there"
            )
            yield Finding(fault=True, where=step.stage, message=message)


def maker_of_vectors(recipe: Recipe) -> Step | None:
    """Return the step that makes vectors of texts, None without one whose card says of which model they are."""
    return next((step for step in recipe.steps if adds(EMBEDDING, step.stage) and stage_card(step.stage).vectors), None)


def vectors_of(step: Step) -> VectorModel:
    """Return the model whose vectors a step makes, or that its files were made of; the files are read."""
    card = stage_card(step.stage)
    return card.vectors(local_params(step)) if card.vectors else VectorModel("")


def _fault_of(step: Step, check: Callable[[], object]) -> Iterator[Finding]:
    try:
        check()
    except RefineryError as error:
        message = str(error).removeprefix(f"{step.stage}: ")
        yield Finding(fault=True, where=step.stage, message=message, error=type(error))


def _unused_resources(step: Step) -> Iterator[Finding]:
    """Find GPUs and hours of a model for a stage none of whose kernels has one: nobody would use them."""
    card = stage_card(step.stage)
    has_model = card.has_state is not None and card.has_state(bind(card, step.params))
    if step.resources.gpus and not has_model:
        message = (
            f"asks for {step.resources.gpus:g} GPUs under `run: resources`, and nothing in it uses one; remove `gpus`, "
            "or give it a model (`embed`, or `score_quality: classifiers`)"
        )
        yield Finding(fault=True, where=step.stage, message=message)
    if step.model_hours and not has_model:
        message = "has hours for a model under `run: model_hours`, and no model; remove them there"
        yield Finding(fault=True, where=step.stage, message=message)


def check_files(step: Step) -> None:
    """Read the files that a stage's params name, as its kernels do; RecipeError for one that they cannot use."""
    card = stage_card(step.stage)
    if card.check_files:
        card.check_files(local_params(step))
    else:
        resources_of(card, bind(card, step.params))


def local_params(step: Step) -> object:
    """Return a stage's params with the paths of its files on this machine; RecipeError for one that is not there."""
    card = stage_card(step.stage)
    params, digests = resources_of(card, bind(card, step.params))
    return repoint(params, {uri: localize(uri, digest) for uri, digest in digests.items()})


def policy_faults(recipe: Recipe) -> Iterator[Finding]:
    """Find two stages that keep documents of clusters over days by different policies.

    A document that the one supersedes may be that for which the other rejects its winner: then neither stays. With one
    order of all documents, the first of any documents that are alike is never lost.
    """
    near = (step for step in recipe.steps if copies_of(step.stage).over_snapshots)
    policies = {step.stage: bind(stage_card(step.stage), step.params) for step in near}
    orders = {
        stage: (params.policy, params.sources, params.quality, params.prefer) for stage, params in policies.items()
    }
    for (first, before), (second, order) in pairwise(orders.items()):
        if before != order:
            message = (
                f"keeps documents by {', '.join(order[0])}, and {first} by {', '.join(before[0])}: over days both "
                "could lose the same text; give them the same `policy`, `sources`, `quality` and `prefer`"
            )
            yield Finding(fault=True, where=second, message=message)


def type_faults(recipe: Recipe) -> Iterator[Finding]:
    """Find types of files that a stage prefers and that nobody reads: all documents would be as good as each other."""
    for step, kinds in preferred_types(recipe):
        for kind in kinds:
            if kind not in type_names():
                known = ", ".join(type_names())
                message = f"`prefer`: no type of file is called {kind!r}{nearest(kind, type_names())}; known: {known}"
                yield Finding(fault=True, where=step.stage, message=message)


def preferred_types(recipe: Recipe) -> Iterator[tuple[Step, tuple[str, ...]]]:
    """Yield each step of a recipe that keeps documents by their type, with the types that it names."""
    for step in recipe.steps:
        prefer = getattr(bind(stage_card(step.stage), step.params), PREFER, {})
        if kinds := prefer.get(TYPE):
            yield step, tuple(kinds)


# --- Order ----------------------------------------------------------------------------------------------------


def order_faults(recipe: Recipe) -> Iterator[Finding]:
    """Find a recipe that does not begin with `ingest`, and stages that need columns which none before them leaves.

    One that builds begins with documents that all stages of the other kind have passed. GPUs for a stage that uses none
    are found, too, and a last stage whose documents would not be the published ones.
    """
    first = recipe.steps[0].stage
    columns = set(RECORD.names if recipe.versions is None else _documents())
    if recipe.versions is None and not reads_records(first):
        message = f"gets landed records as they are: damage, redirects, images; put `{_reader()}: {{}}` before it"
        yield Finding(fault=True, where=first, message=message)
        columns |= {*stage_card(_reader()).writes.names}
    removed = dict[str, str]()
    for step in recipe.steps:
        yield from _unused_resources(step)
        card = stage_card(step.stage)
        passed = (name for name in card.writes.names if name in DOCUMENT.names and _writer(name) != step.stage)
        needed = [*card.reads.names, *passed]  # a stage hands documents on, and writes its other columns itself
        missing = [name for name in dict.fromkeys(needed) if name not in columns]
        if missing:
            yield Finding(fault=True, where=step.stage, message=_way_out(missing, removed))
        taken = {*card.reads.names} - {*card.writes.names}
        passes = not taken or card.conserves == "offspring"
        left = {*card.writes.names, *(columns - taken if passes else ())}
        removed |= dict.fromkeys(columns - left, step.stage)
        columns = left


def _documents() -> Iterator[str]:
    """Yield the columns that documents of a refined snapshot may have."""
    for stage in filter(refines, stage_names()):
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
    return next((card.name for card in known_cards() if column in card.writes.names), _reader())


def _reader() -> str:
    """Return the first of all stages that reads landed records as they are."""
    return next(filter(reads_records, stage_names()))
