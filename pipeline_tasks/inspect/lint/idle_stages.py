"""Finds stages of a recipe whose params let everything pass, or need what is not in the recipe."""

import contextlib
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.recipe import Recipe, stage_card
from pipeline_tasks.run.plan import resources_of
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.scorers.model_card import languages_of
from pipeline_tasks.stage import Idle
from pipeline_tasks.stages import dedup_semantic, embed, filter_language, filter_toxicity, score_quality
from pipeline_tasks.stages.scrub_pii import KEY_VARIABLE, is_keyed
from pipeline_tasks.store.files import localize


def idle_stages(recipe: Recipe) -> Iterator[Finding]:
    """Yield a note for each stage that does less than its place in the recipe says."""
    for step in recipe.steps:
        notes = NOTES.get(step.stage, _nothing)
        card = stage_card(step.stage)
        params = bind(card, step.params)
        idle = card.idle(params, {}) if card.idle else ()
        for message in (*map(str, idle), *notes(params)):
            yield Finding(fault=False, where=step.stage, message=message)
    yield from _languages_without_model(recipe)
    yield from _model_of_unknown_languages(recipe)


def _languages_without_model(recipe: Recipe) -> Iterator[Finding]:
    """Find languages that the recipe keeps without a model for `score_quality`, or a lexicon for `filter_toxicity`."""
    steps = {step.stage: bind(stage_card(step.stage), step.params) for step in recipe.steps}
    if filter_language.STAGE.name in steps and score_quality.STAGE.name in steps:
        kept = steps[filter_language.STAGE.name].keep
        if unknown := score_quality.languages_without_model(steps[score_quality.STAGE.name], kept):
            lacks = f"no model for {score_quality.PERPLEXITY} in {', '.join(unknown)}"
            message = str(Idle(lacks, score_quality.REMEDIES[score_quality.PERPLEXITY]))
            yield Finding(fault=False, where=score_quality.STAGE.name, message=message)
    if filter_language.STAGE.name in steps and filter_toxicity.STAGE.name in steps:
        kept = steps[filter_language.STAGE.name].keep
        if unknown := filter_toxicity.languages_without_lexicon(steps[filter_toxicity.STAGE.name], kept):
            message = str(Idle(f"no lexicon of {', '.join(unknown)}", filter_toxicity.REMEDY))
            yield Finding(fault=False, where=filter_toxicity.STAGE.name, message=message)


def _model_of_unknown_languages(recipe: Recipe) -> Iterator[Finding]:
    """Find `dedup_semantic` that compares documents in languages of which nobody knows whether the model knows them."""
    steps = {step.stage: bind(stage_card(step.stage), step.params) for step in recipe.steps}
    name = dedup_semantic.STAGE.name
    if name not in steps or embed.STAGE.name not in steps or steps[name].languages:
        return
    if filter_language.STAGE.name not in steps:
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


def _nothing(_: Any) -> Iterator[str]:  # noqa: ANN401 -- any stage's Params
    return iter(())


def _filter_language(params: Any) -> Iterator[str]:  # noqa: ANN401 -- the stage's Params, as below
    if not params.keep:
        yield "`keep` is empty, so every language is kept; name the languages that are wanted"
    if not params.threshold and params.packs == "none" and not any(params.thresholds.values()):
        yield "`threshold` is 0, so no text is rejected for an uncertain language; FineWeb has 0.65"


def _filter_quality(params: Any) -> Iterator[str]:  # noqa: ANN401
    if not params.profiles:
        yield "`profiles` is empty, so no text is judged; name profiles, or remove the stage"


def _filter_toxicity(params: Any) -> Iterator[str]:  # noqa: ANN401
    bounds = (*params.bounds.values(), *params.most.values())
    if params.action == "drop" and not any(bound < math.inf for bound in bounds):
        yield "`bounds` and `most` have no bound, so no document is rejected; `action: annotate` says so"


def _score_quality(params: Any) -> Iterator[str]:  # noqa: ANN401
    if not params.minimum and not any(params.minima.values()):
        yield "`minimum` and `minima` are 0, so no document is rejected"
    for name, classifier in sorted(params.classifiers.items()):
        if classifier.accepted:
            yield f"`classifiers.{name}` decides because it was accepted: {classifier.accepted}"
        elif not classifier.report:
            yield (
                f"`classifiers.{name}` decides and was not checked: it may sort by source, or see a part of each text; "
                f"run `refinery scorer check --classifier-of RECIPE:{name}`, and name its report in "
                f"`classifiers: {name}: report:`"
            )


def _scrub_pii(params: Any) -> Iterator[str]:  # noqa: ANN401
    if is_keyed(params) and not os.environ.get(KEY_VARIABLE):
        yield (
            f"`pseudonymize` needs a secret, and {KEY_VARIABLE} is not set here; set it, or the password of the "
            "Airflow connection refinery_pii, where the recipe runs"
        )


NOTES: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "filter_language": _filter_language,
    "filter_quality": _filter_quality,
    "score_quality": _score_quality,
    "filter_toxicity": _filter_toxicity,
    "scrub_pii": _scrub_pii,
}
