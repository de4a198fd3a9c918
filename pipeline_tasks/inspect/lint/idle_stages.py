"""Finds stages of a recipe whose params let everything pass, or need what is not in the recipe."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import adds, stage_card
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.recipe import Recipe, kept_languages
from pipeline_tasks.run.plan import resources_of, secret_of
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.scorers.model_card import languages_of
from pipeline_tasks.stage import Secret, Stage
from pipeline_tasks.stages import dedup_semantic, embed
from pipeline_tasks.store.files import localize


def idle_stages(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each stage that does less than its place in the recipe says."""
    for step in recipe.steps:
        card = stage_card(step.stage)
        params = _with_secret(card, bind(card, step.params))
        idle = card.idle(params, {}) if card.idle else ()
        for message in (*map(str, idle), *(card.remarks(params) if card.remarks else ())):
            yield Finding(fault=False, where=step.stage, message=message)
    yield from _unread_languages(recipe)
    yield from _model_of_unknown_languages(recipe)


def _with_secret(card: Stage[Any], params: Any) -> Any:  # noqa: ANN401 -- the card's Params
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


def _model_of_unknown_languages(recipe: Recipe) -> Iterator[Finding]:
    """Find `dedup_semantic` that compares documents in languages of which nobody knows whether the model knows them."""
    steps = {step.stage: bind(stage_card(step.stage), step.params) for step in recipe.steps}
    name = dedup_semantic.STAGE.name
    if name not in steps or embed.STAGE.name not in steps or steps[name].languages:
        return
    if not any(adds("language", stage) for stage in steps):
        message = (
            "compares documents in all languages, whether or not the model knows them: nothing says what language they "
            "are in; put filter_language before"
        )
        yield Finding(fault=False, where=name, message=message)
        return
    with contextlib.suppress(RefineryError, OSError):  # a model that cannot be had is a fault, reported already
        params, digests = resources_of(embed.STAGE, steps[embed.STAGE.name])
        if not languages_of(Path(localize(params.model, digests[params.model]))):
            message = (
                "the languages that the model of embed knows are unknown: its folder has no README.md with "
                "`language`; name them in `languages`, for documents in others are removed wrongly"
            )
            yield Finding(fault=False, where=name, message=message)
