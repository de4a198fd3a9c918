"""Finds stages of a recipe whose params let everything pass, or need what is not in the recipe."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import adds, stage_card
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.file_types import type_names
from pipeline_tasks.inspect.empty_sections import empty_sections
from pipeline_tasks.recipe import Recipe, Step, kept_languages
from pipeline_tasks.run.plan import secret_of
from pipeline_tasks.run.recipe_faults import Finding, maker_of_vectors, preferred_types, vectors_of
from pipeline_tasks.schema import EMBEDDING
from pipeline_tasks.stage import P, Secret, Stage

READ_TYPES = "types"
"""The param that names the types of files which a recipe reads."""

NAMED = "languages"
"""The param that names the languages whose documents a stage compares, by its model's card without it."""


def idle_stages(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each stage that does less than its place in the recipe says."""
    for step in recipe.steps:
        card = stage_card(step.stage)
        params = _with_secret(card, bind(card, step.params))
        idle = card.idle(params, {}) if card.idle else ()
        for message in (*map(str, idle), *(card.remarks(params) if card.remarks else ())):
            yield Finding(fault=False, where=step.stage, message=message)
    yield from empty_sections(recipe)
    yield from _unread_languages(recipe)
    yield from _unread_types(recipe)
    yield from _model_of_unknown_languages(recipe)


def _with_secret(card: Stage[P], params: P) -> P:
    """Return params with the secret that they need as the environment has it, empty where it has none."""
    name, variable = secret_of(card, params)
    return replace(params, **{name: Secret.of(os.environ.get(variable, ""))}) if name else params


def _unread_languages(recipe: Recipe) -> Iterator[Finding]:
    """Find languages that the recipe keeps and for which a stage has nothing to work with, such as a model."""
    kept = kept_languages(recipe)
    for step in recipe.steps:
        card = stage_card(step.stage)
        for idle in card.unread(bind(card, step.params), kept) if card.unread else ():
            yield Finding(fault=False, where=step.stage, message=str(idle))


def _unread_types(recipe: Recipe) -> Iterator[Finding]:
    """Find types of files that a stage prefers and that no stage of the recipe reads."""
    params = [bind(stage_card(step.stage), step.params) for step in recipe.steps]
    read = next((getattr(each, READ_TYPES) for each in params if hasattr(each, READ_TYPES)), type_names())
    for step, kinds in preferred_types(recipe):
        for kind in kinds:
            if kind in type_names() and kind not in read:
                message = (
                    f"`prefer` names the type {kind!r}, which the recipe does not read: `types` has {', '.join(read)}"
                )
                yield Finding(fault=False, where=step.stage, message=f"{message}; add it there, or remove it here")


def _model_of_unknown_languages(recipe: Recipe) -> Iterator[Finding]:
    """Find stages that compare vectors in all languages, of which nobody knows whether the model knows them."""
    maker = maker_of_vectors(recipe)
    if maker is None:
        return
    for step in recipe.steps:
        card = stage_card(step.stage)
        if card.copies.compared and EMBEDDING in card.reads.names and not getattr(bind(card, step.params), NAMED, ()):
            for message in _unknown(recipe, maker):
                yield Finding(fault=False, where=step.stage, message=message)


def _unknown(recipe: Recipe, maker: Step) -> Iterator[str]:
    """Yield what is not known of the languages of documents and of the model that makes their vectors."""
    if not any(adds("language", step.stage) for step in recipe.steps):
        yield (
            "compares documents in all languages, whether or not the model knows them: nothing says what language they "
            "are in; put filter_language before"
        )
        return
    with contextlib.suppress(RefineryError, OSError):  # a model that cannot be had is a fault, reported already
        if not vectors_of(maker).languages:
            yield (
                f"the languages that the model of {maker.stage} knows are unknown: its folder has no README.md with "
                f"`language`; name them in `{NAMED}`, for documents in others are removed wrongly"
            )
