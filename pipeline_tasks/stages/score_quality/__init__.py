"""Score every document between 0 and 1 by a weighted composite of signals, and reject the poor ones."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Ratio, Weight
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters.packs import known_language
from pipeline_tasks.profiles.sums import MOMENTS, SCORE_ROWS
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Idle, Layer, Shards, Stage, reject, replace_column
from pipeline_tasks.stages.score_quality.components import Column, components
from pipeline_tasks.stages.score_quality.shipped_models import SHA256 as SHIPPED
from pipeline_tasks.stages.score_quality.shipped_models import require_released, shipped_model
from pipeline_tasks.text.base.cached import cached

LOW_QUALITY, LOW_COMPONENT = "score_quality:low_quality", "score_quality:low_component"
PERPLEXITY = "perplexity"
"""The component that a language model gives, and the column that has it."""

WEIGHTS: Mapping[str, float] = {
    "length": 0.10,
    "language": 0.10,
    "perplexity": 0.30,
    "duplication": 0.05,
    "redundancy": 0.15,
    "density": 0.20,
    "toxicity": 0.10,
}
"""Weights by component: the order of words weighs most, since the others see none of it (decision 45).

Words in disorder repeat fewer phrases and lines than the text, so all other components together prefer them. A
component without a source (no model of the language, no classifier) is left out, and the others share its weight.
"""

FROM_DOCUMENTS = ("length", "language", "duplication", "redundancy", "density")
"""Components that need no model."""

CLASSIFIER = "name a fastText model in `classifiers`, or give it no weight"

REMEDIES: Mapping[str, str] = {PERPLEXITY: "name models in `language_models`; `refinery train-lm` makes one"}
"""What to do about a weighted component without a source; of any other component `CLASSIFIER`."""

MINIMA: Mapping[str, float] = {"perplexity": 0.12, "redundancy": 0.2}
"""A text below one of these is no text, however good the rest of it looks.

Of 2,395 pages of two crawls that no model was trained on 17 are below .12: 16 of them menus, screens of programs,
tables of contents, code, or half in another language. Of the same pages with their words in disorder 80 (Chinese) to
100 (Spanish) in 100 are rejected. Recipes, which are lists of ingredients, begin at .13, news and blogs at .2.
"""


@dataclass(frozen=True, slots=True)
class Params:
    """Weights by component, bounds, and the models that components come from.

    `length`, `language` (the confidence of `filter_language`), `duplication` (repeated lines), `redundancy` (words
    outside of repeated phrases) and `density` come from the documents. `perplexity` comes from an n-gram model of the
    language: one of `language_models`, which `refinery train-lm` made of text that you trust, else with
    `shipped_models` that of the package. It says how much better the model expects the words in their order than one by
    one, from 0 (the same words in disorder) to 1 (trusted text). Languages without a model are scored without it: the
    column `perplexity` is null.

    `classifiers` maps a component name to a fastText model; `labels` names the label whose probability is that
    component (so a toxicity model names its *clean* label), `weights` its weight. A component that no weight names has
    none, and one without a source (a weight for `toxicity`, and no classifier of that name) is idle: it is left out. A
    document of which no weighted component is known has no score, and is kept. Documents that score below `minimum` are
    rejected, and those with a component below its own bound in `minima`. Pages of two crawls that score below .5 are
    menus, listings and code. What no component sees is the order of sentences, and sentences of two texts in turns.
    """

    minimum: Ratio = 0.5
    minima: Mapping[str, Ratio] = field(default_factory=lambda: dict(MINIMA))
    weights: Mapping[str, Weight] = field(default_factory=lambda: dict(WEIGHTS))
    language_models: Mapping[str, FilePath] = field(default_factory=dict)
    shipped_models: bool = True
    classifiers: Mapping[str, FilePath] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise RecipeError for an unknown language or component, and for a classifier without label or weight.

        Also if no component that has a weight has a source, since every score would be unknown.
        """
        for code in self.language_models:
            known_language(code, "score_quality: language_models")
        _require_known(self.weights, {*WEIGHTS, *self.classifiers}, "score_quality: weights")
        _require_known(self.minima, {*WEIGHTS, *self.weights}, "score_quality: minima")
        for name in sorted(self.classifiers):
            if name not in self.labels or name not in self.weights:
                message = f"score_quality.classifiers.{name} needs score_quality.labels.{name} and .weights.{name}"
                raise RecipeError(message)
        if not any(weight and self.has_source(name) for name, weight in self.weights.items()):
            weighted = ", ".join(sorted(self.weights)) or "nothing"
            message = (
                f"score_quality: weights: only {weighted} has a weight, and no model that it could come from, so no "
                "document would have a score; name its model in `classifiers` or `language_models`, or weigh a "
                f"component of the documents ({', '.join(FROM_DOCUMENTS)})"
            )
            raise RecipeError(message)

    def has_source(self, component: str) -> bool:
        """Return whether a component can be known of any document."""
        models = bool(self.language_models) or self.shipped_models
        return component in FROM_DOCUMENTS or component in self.classifiers or (component == PERPLEXITY and models)


def _require_known(names: Mapping[str, float], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, sorted(known), 1, cutoff=0)[0]
            message = f"{where}: no component is called {name!r}; the nearest is {near!r}"
            raise RecipeError(message)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the model files whose digests are part of the stage's identity."""
    models = (params.language_models, params.classifiers)
    return tuple(named[name] for named in models for name in sorted(named))


def check_files(params: Params) -> None:
    """Raise RecipeError unless every model can be read, is one of its language, and has the label that is asked."""
    models = models_of(params)
    for name in models.classifiers:
        _check_classifier(models, name)
    _check_language_models(models)
    if models.shipped:
        require_released()


def idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return the weighted components without a source, and the languages of the kept rows without a model."""
    weighted = sorted(name for name, weight in params.weights.items() if weight and not params.has_source(name))
    parts = [Idle(f"no model for {name}", REMEDIES.get(name, CLASSIFIER)) for name in weighted]
    rows = profiles.get(SCORE_ROWS, {}).get("bins", {})
    if unknown := languages_without_model(params, rows):
        named = ", ".join(f"{language} ({counted(rows[language], 'document')})" for language in unknown)
        parts.append(Idle(f"no model for {PERPLEXITY} in {named}", REMEDIES[PERPLEXITY]))
    return tuple(parts)


def languages_without_model(params: Params, languages: Iterable[str]) -> list[str]:
    """Return the languages whose documents have no `perplexity`, if any have and it weighs."""
    if not params.has_source(PERPLEXITY) or not params.weights.get(PERPLEXITY):
        return []
    known = {*params.language_models, *(SHIPPED if params.shipped_models else ())}
    return sorted(language for language in languages if language.partition("-")[0] not in known)


@dataclass(frozen=True, slots=True)
class Models:
    """What of the params decides the components: not the weights, nor the bounds."""

    language_models: Mapping[str, FilePath]
    shipped: bool
    classifiers: Mapping[str, FilePath]
    labels: Mapping[str, str]


def models_of(params: Params) -> Models:
    """Return what of the params decides the components."""
    return Models(params.language_models, params.shipped_models, params.classifiers, params.labels)


COMPONENTS = "score_components"
"""Column that `measure` adds, and that no other stage gets: a struct of all components, null where one is unknown."""


def score(docs: Batches, *, params: Params) -> Batches:
    """Append `score` and `perplexity`, rounded to six digits; reject rows below a bound, all components as evidence."""
    yield from decide(measure(docs, models=models_of(params)), params=params)


def measure(docs: Batches, *, models: Models) -> Batches:
    """Append all components of each document, rounded to six digits; nothing is decided."""
    classifiers, model_of = _predictors(models), partial(_model_of, models)
    _check_language_models(models)
    for batch in docs:
        parts = components(batch, model_of)
        for name, model in classifiers.items():
            parts[name] = _probability(model, models.labels[name], batch.column("text"))
        columns = [pa.array(np.round(part, 6), pa.float64(), from_pandas=True) for part in parts.values()]
        yield replace_column(batch, COMPONENTS, pa.StructArray.from_arrays(columns, names=list(parts)))


def decide(measured: Batches, *, params: Params) -> Batches:
    """Append the `score` of the components by weight, and `perplexity`; reject rows below a bound."""
    for batch in measured:
        column: Any = batch.column(COMPONENTS)
        names = [part.name for part in column.type]
        parts = {name: column.field(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in names}
        scores = _composite(parts, params.weights, batch.num_rows)
        known = pa.array(scores, pa.float64(), from_pandas=True)
        scored = replace_column(batch.drop_columns([COMPONENTS]), "score", known)
        scored = replace_column(scored, PERPLEXITY, column.field(PERPLEXITY))
        yield reject(scored, *_verdicts(parts, scores, params))


def _verdicts(parts: Mapping[str, Column], scores: Column, params: Params) -> tuple[pa.Array, pa.Array]:
    """Return the reason why each row is rejected, and the evidence; null for kept rows."""
    low = {name: parts[name] < bound for name, bound in sorted(params.minima.items()) if name in parts}
    empty = np.zeros(len(scores), np.bool_)
    low_component, low_score = np.logical_or.reduce([*low.values(), empty]), scores < params.minimum
    reasons: list[str | None] = [None] * len(scores)
    evidence: list[str | None] = [None] * len(scores)
    for row in np.flatnonzero(low_component | low_score).tolist():
        reasons[row] = LOW_COMPONENT if low_component[row] else LOW_QUALITY
        failed = {name: params.minima[name] for name, rows in low.items() if rows[row]}
        evidence[row] = _evidence(parts, row, float(scores[row]), params.minimum, failed)
    return pa.array(reasons, pa.string()), pa.array(evidence, pa.string())


def _composite(parts: Mapping[str, Column], weights: Mapping[str, float], rows: int) -> Column:
    """Return the weighted mean of the known components of each row; NaN where none is known."""
    total, weight = np.zeros(rows), np.zeros(rows)
    for name in sorted(parts):
        known = ~np.isnan(parts[name])
        total += np.where(known, parts[name], 0.0) * weights.get(name, 0.0)
        weight += known * weights.get(name, 0.0)
    mean: Column = np.divide(total, weight, out=np.full(rows, np.nan), where=weight > 0)
    return np.round(mean, 6).astype(np.float64)


def _language_model(code: str, path: FilePath) -> Any:  # noqa: ANN401 -- a LanguageModel, whose import compiles loops
    """Read the model of a language; RecipeError if the file is none, or one of another language."""
    from pipeline_tasks.text.words.language_model import read_model

    model = cached(read_model, path)
    if model.language != code:
        message = f"score_quality: {path} is a model of {model.language!r}, and language_models names it for {code!r}"
        raise RecipeError(message)
    return model


def _check_language_models(models: Models) -> None:
    """Raise RecipeError unless every model that is named is one of its language."""
    for code, path in models.language_models.items():
        _language_model(code, path)


def _model_of(models: Models, code: str) -> Any:  # noqa: ANN401 -- as above
    """Return the model of a language that is named, else the package's; None if there is none."""
    path = models.language_models.get(code)
    if path is not None:
        return _language_model(code, path)
    return shipped_model(code) if models.shipped else None


def _predictors(models: Models) -> dict[str, Any]:
    from pipeline_tasks.text.words.fasttext_prediction import Predictor

    predictors = {}
    for name in sorted(models.classifiers):
        _check_classifier(models, name)
        predictors[name] = Predictor(models.classifiers[name], _classifier_key(name))
    return predictors


def _classifier_key(name: str) -> str:
    return f"score_quality: classifiers: {name}"


def _check_classifier(models: Models, name: str) -> None:
    """Raise RecipeError if the file of a component's model is none, or has no such label."""
    from pipeline_tasks.text.words import fasttext_model

    path, label = models.classifiers[name], models.labels[name]
    known = cached(fasttext_model.load, path, _classifier_key(name)).labels
    if label not in known:
        near = ", ".join(map(repr, get_close_matches(label, known, 3, cutoff=0)))
        message = f"score_quality: labels: {name}: {path} has no label {label!r}; the nearest are {near}"
        raise RecipeError(message)


def _probability(predictor: Any, label: str, texts: pa.Array) -> Column:  # noqa: ANN401 -- a Predictor, whose import compiles loops
    """Return the probability of `label` for each text, read as one line; NaN without text."""
    from pipeline_tasks.text.base.buffers import views

    offsets, data = views(texts)
    bounds = np.stack([offsets[:-1], offsets[1:]], axis=1)
    probabilities: Column = predictor.probability(data, bounds, label)
    return probabilities


def _evidence(parts: Mapping[str, Column], row: int, value: float, minimum: float, failed: Mapping[str, float]) -> str:
    known = {name: round(float(part[row]), 6) for name, part in parts.items() if not np.isnan(part[row])}
    facts: dict[str, Any] = {"components": known, "minimum": round(minimum, 6)}
    if not np.isnan(value):
        facts["score"] = value
    if failed:
        facts["below"] = {name: round(bound, 6) for name, bound in failed.items()}
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Measure every shard by itself, then judge it: other weights and bounds find the components of a run before."""
    measuring = partial(measure, models=models_of(params))
    measured = on.map(measuring, shards, layer=Layer(shared=True))
    layer = Layer(reads=(COMPONENTS,), stores=("score", PERPLEXITY))
    return on.map(partial(decide, params=params), measured, layer=layer)


STAGE = Stage(
    name="score_quality",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    reads=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64())]),
    writes=pa.schema([*DOCUMENT, *(pa.field(name, pa.float64()) for name in ("language_score", "score", PERPLEXITY))]),
    version=5,
    splits=True,
    engine="ray",
    profiled=("score", PERPLEXITY, *MOMENTS),
    reasons=(LOW_QUALITY, LOW_COMPONENT),
    title="quality score",
)
