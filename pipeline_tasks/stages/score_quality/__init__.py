"""Score every document between 0 and 1 by a weighted composite of signals, and reject the poor ones."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.constraints import Ratio, Weight
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.filters.packs import known_language
from pipeline_tasks.profiles.sums import MOMENTS
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Layer, Shards, Stage, reject, replace_column
from pipeline_tasks.stages.score_quality.components import Column, components
from pipeline_tasks.text.base.cached import cached

LOW_QUALITY, LOW_COMPONENT = "score_quality:low_quality", "score_quality:low_component"
WEIGHTS: Mapping[str, float] = {
    "length": 0.10,
    "language": 0.15,
    "perplexity": 0.25,
    "duplication": 0.05,
    "redundancy": 0.15,
    "density": 0.20,
    "toxicity": 0.10,
}
"""The published weights; that of duplication, 0.20, is shared by repeated lines and repeated phrases.

A component without a source (no model of the language, no classifier) is left out, and the others share its weight.
"""

MINIMA: Mapping[str, float] = {"perplexity": 0.2, "redundancy": 0.2}
"""A text below one of these is no text, however good the rest of it looks.

Of held-out English, German and French web pages 0 to 2 in 100 are below; of the same pages with their words in disorder
51 (model of 0.2 MB of text) to 99 (2.7 MB) in 100 are, and of pages that repeat a sentence all.
"""


@dataclass(frozen=True, slots=True)
class Params:
    """Weights by component, bounds, and the models that components come from.

    `length`, `language` (the confidence of `filter_language`), `duplication` (repeated lines), `redundancy` (words
    outside of repeated phrases) and `density` come from the documents. `perplexity` comes from `language_models`: for
    each language an n-gram model that `refinery train-lm` made of text that you trust. It says how much better the
    model expects the words in their order than one by one, from 0 (the same words in disorder, lists) to 1 (trusted
    text). Languages without a model are scored without it.

    `classifiers` maps a component name to a fastText model; `labels` names the label whose probability is that
    component (so a toxicity model names its *clean* label), `weights` its weight. A component that no weight
    names has none. Documents that score below `minimum` are rejected, and those with a component below its own bound
    in `minima`. On real prose, PEPs and news the lowest score is 0.6; most tables, lists and repeated lines score below
    0.5.
    """

    minimum: Ratio = 0.5
    minima: Mapping[str, Ratio] = field(default_factory=lambda: dict(MINIMA))
    weights: Mapping[str, Weight] = field(default_factory=lambda: dict(WEIGHTS))
    language_models: Mapping[str, FilePath] = field(default_factory=dict)
    classifiers: Mapping[str, FilePath] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise RecipeError for an unknown language or component, and for a classifier without label or weight."""
        for code in self.language_models:
            known_language(code, "score_quality: language_models")
        _require_known(self.minima, {*WEIGHTS, *self.weights}, "score_quality: minima")
        for name in sorted(self.classifiers):
            if name not in self.labels or name not in self.weights:
                message = f"score_quality.classifiers.{name} needs score_quality.labels.{name} and .weights.{name}"
                raise RecipeError(message)


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
    _language_models(models)


@dataclass(frozen=True, slots=True)
class Models:
    """What of the params decides the components: not the weights, nor the bounds."""

    language_models: Mapping[str, FilePath]
    classifiers: Mapping[str, FilePath]
    labels: Mapping[str, str]


def models_of(params: Params) -> Models:
    """Return what of the params decides the components."""
    return Models(params.language_models, params.classifiers, params.labels)


COMPONENTS = "score_components"
"""Column that `measure` adds, and that no other stage gets: a struct of all components, null where one is unknown."""


def score(docs: Batches, *, params: Params) -> Batches:
    """Append `score`, rounded to six digits; reject rows below a bound with all components as evidence."""
    yield from decide(measure(docs, models=models_of(params)), params=params)


def measure(docs: Batches, *, models: Models) -> Batches:
    """Append all components of each document, rounded to six digits; nothing is decided."""
    classifiers, language_models = _predictors(models), _language_models(models)
    for batch in docs:
        parts = components(batch, language_models)
        for name, model in classifiers.items():
            parts[name] = _probability(model, models.labels[name], batch.column("text"))
        columns = [pa.array(np.round(part, 6), pa.float64(), from_pandas=True) for part in parts.values()]
        yield replace_column(batch, COMPONENTS, pa.StructArray.from_arrays(columns, names=list(parts)))


def decide(measured: Batches, *, params: Params) -> Batches:
    """Append the `score` of the components by weight; reject rows below a bound."""
    for batch in measured:
        column: Any = batch.column(COMPONENTS)
        names = [part.name for part in column.type]
        parts = {name: column.field(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in names}
        scores = _composite(parts, params.weights, batch.num_rows)
        scored = replace_column(batch.drop_columns([COMPONENTS]), "score", pa.array(scores, pa.float64()))
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
    """Return the weighted mean of the known components of each row; 0 where none is known."""
    total, weight = np.zeros(rows), np.zeros(rows)
    for name in sorted(parts):
        known = ~np.isnan(parts[name])
        total += np.where(known, parts[name], 0.0) * weights.get(name, 0.0)
        weight += known * weights.get(name, 0.0)
    mean: Column = np.divide(total, weight, out=np.zeros(rows), where=weight > 0)
    return np.round(mean, 6).astype(np.float64)


def _language_model(code: str, path: FilePath) -> Any:  # noqa: ANN401 -- a LanguageModel, whose import compiles loops
    """Read the model of a language; RecipeError if the file is none, or one of another language."""
    from pipeline_tasks.text.words.language_model import read_model

    model = cached(read_model, path)
    if model.language != code:
        message = f"score_quality: {path} is a model of {model.language!r}, and language_models names it for {code!r}"
        raise RecipeError(message)
    return model


def _language_models(models: Models) -> dict[str, Any]:
    return {code: _language_model(code, path) for code, path in models.language_models.items()}


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
    facts = {"components": known, "minimum": round(minimum, 6), "score": value}
    if failed:
        facts["below"] = {name: round(bound, 6) for name, bound in failed.items()}
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Measure every shard by itself, then judge it: other weights and bounds find the components of a run before."""
    measuring = partial(measure, models=models_of(params))
    measured = on.map(measuring, shards, layer=Layer(shared=True))
    return on.map(partial(decide, params=params), measured, layer=Layer(reads=(COMPONENTS,), stores=("score",)))


STAGE = Stage(
    name="score_quality",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64())]),
    writes=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64()), pa.field("score", pa.float64())]),
    version=4,
    splits=True,
    engine="ray",
    profiled=("score", *MOMENTS),
    reasons=(LOW_QUALITY, LOW_COMPONENT),
    title="quality score",
)
