"""Loads what is to be checked: a classifier by its file, one of a recipe, or the whole score of a recipe."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.binding import bind
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.plan import resources_of
from pipeline_tasks.run.tasks.task import repoint
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import computing_params, digest_of_model
from pipeline_tasks.scorers.scorer import Scores, kind_of, load
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.stage import NO_FILE, FilePath
from pipeline_tasks.stages.score_quality import STAGE, Params, score
from pipeline_tasks.store.files import digest_of_named, localize
from refinery_models.training import HIGH

BATCH = 256
"""Texts that are scored together."""


@dataclass(frozen=True, slots=True)
class Judge:
    """What scores texts: `scores` gets columns `text`, `language` and `language_score`.

    `model` is the digest of its model or, for the score of a whole recipe, of the params.
    """

    model: str
    kind: str
    params: Mapping[str, Any]
    hardware: str
    scores: Callable[[pa.Table], Scores]


def of_classifier(classifier: Classifier) -> Judge:
    """Return the judge that a classifier of a local model is."""
    scorer = load(classifier)

    def scores(texts: pa.Table) -> Scores:
        parts = [scorer.scores(batch.column("text")) for batch in texts.to_batches(BATCH)]
        return Scores(*(np.concatenate([np.empty(0), *column]) for column in zip(*parts, strict=True)))

    params, kind = computing_params(classifier), kind_of(classifier.model)
    return Judge(digest_of_model(classifier.model), kind, params, scorer.hardware, scores)


def of_params(params: Params) -> Judge:
    """Return the judge that the score of the whole stage is."""

    def scores(texts: pa.Table) -> Scores:
        chars = pa.array([len(text) for text in texts.column("text").to_pylist()], pa.int64())
        table = texts.select(["id", "text", "language", "language_score"]).append_column("chars", chars)
        rows = pa.Table.from_batches(score(iter(table.to_batches(BATCH)), params=params))
        values, seen = (rows.column(name).to_numpy().astype(np.float64) for name in ("score", "seen"))
        return Scores(values, np.where(np.isnan(seen) & ~np.isnan(values), 1.0, seen))

    return Judge(sha256(canonical(params)), "composite", {}, "cpu", scores)


def of_trained(named: str) -> Judge:
    """Return the judge that a model of `train-quality-model` is, or that of a recipe (`of_recipe`)."""
    if named.endswith((".yaml", ".yml")):
        return of_recipe(named)
    try:
        local = localize(named, digest_of_named(named))
    except OSError:
        return of_recipe(named)
    label = HIGH if Path(local).is_dir() else f"__label__{HIGH}"
    return of_classifier(Classifier(FilePath(local), label=label))


def of_recipe(named: str) -> Judge:
    """Return the judge of `RECIPE:NAME`, a classifier of a recipe, or of `RECIPE`, whose whole score it is.

    RecipeError if there is no such recipe, stage or classifier.
    """
    recipe, name = _split(named)
    params = _params_of(recipe)
    if not name:
        return of_params(params)
    if name not in params.classifiers:
        known = ", ".join(sorted(params.classifiers)) or "none"
        message = f"{recipe} has no classifier {name!r}; its classifiers are: {known}"
        raise RecipeError(message)
    return of_classifier(params.classifiers[name])


def _split(named: str) -> tuple[str, str]:
    recipe, colon, name = named.rpartition(":")
    return (recipe, name) if colon else (named, "")


def _params_of(recipe: str) -> Params:
    """Return the params of the recipe's `score_quality`, with local paths.

    Reports of earlier checks are left out, but for those that calibrate: what these refuse is accepted here.
    """
    step = next((step for step in load_recipe(recipe).steps if step.stage == STAGE.name), None)
    if step is None:
        message = f"{recipe} has no stage {STAGE.name}; name a recipe that scores documents"
        raise RecipeError(message)
    bound = bind(STAGE, step.params)
    classifiers = {name: _unjudged(classifier) for name, classifier in bound.classifiers.items()}
    params, digests = resources_of(STAGE, replace(bound, classifiers=classifiers))
    local: Params = repoint(params, {uri: localize(uri, digest) for uri, digest in digests.items()})
    return local


def _unjudged(classifier: Classifier) -> Classifier:
    if classifier.calibrated:
        return replace(classifier, accepted="it is checked")
    return replace(classifier, report=NO_FILE, accepted="")
