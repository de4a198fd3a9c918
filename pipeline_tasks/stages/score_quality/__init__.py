"""Score every document between 0 and 1 by a weighted composite of signals, and reject the poor ones."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Ratio, Weight
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound, Canceled, Requests, UnitCost
from pipeline_tasks.filters.packs import known_language
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.nearest import near
from pipeline_tasks.profiles.sums import MOMENTS, SCORE_ROWS
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.scorers.answers import NothingKnown
from pipeline_tasks.scorers.calibration import Calibration, read_calibration
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import digest_of_model, require_admitted
from pipeline_tasks.scorers.scorer import check, load
from pipeline_tasks.stage import Batches, Engine, FilePath, Idle, Layer, Shards, Stage, always, reject, replace_column
from pipeline_tasks.stages.score_quality.classifying import MEASURED, classify, classify_all, failures_first, least_seen
from pipeline_tasks.stages.score_quality.components import Column, components
from pipeline_tasks.stages.score_quality.shipped_models import SHA256 as SHIPPED
from pipeline_tasks.stages.score_quality.shipped_models import require_released, shipped_model
from pipeline_tasks.stages.score_quality.stored import numbers, stored
from pipeline_tasks.text.base.cached import cached

if TYPE_CHECKING:  # importing it compiles loops
    from pipeline_tasks.text.words.language_model import LanguageModel

pc: Any = pyarrow.compute

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

CLASSIFIER = "name a model in `classifiers`, or give it no weight"

REMEDIES: Mapping[str, str] = {PERPLEXITY: "name models in `language_models`; `refinery model lm` makes one"}
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
    language: one of `language_models`, which `refinery model lm` made of text that you trust, else with
    `shipped_models` that of the package. It says how much better the model expects the words in their order than one by
    one, from 0 (the same words in disorder) to 1 (trusted text). Languages without a model are scored without it: the
    column `perplexity` is null.

    `classifiers` maps a component name to a model (`scorers.Classifier`), `weights` its weight. Its scores are the
    column `score_<name>`, and `seen` is the least share of a text that one of the models read. A toxicity model names
    its *clean* label. A component that no weight names has
    none, and one without a source (a weight for `toxicity`, and no classifier of that name) is idle: it is left out. A
    document of which no weighted component is known has no score, and is kept. Documents that score below `minimum` are
    rejected, and those with a component below its own bound in `minima`. Pages of two crawls that score below .5 are
    menus, listings and code. What the documents' own components do not see is the order of sentences, and sentences of
    two texts in turns. A document that a model fails on is quarantined.
    """

    minimum: Ratio = 0.5
    minima: Mapping[str, Ratio] = field(default_factory=lambda: dict(MINIMA))
    weights: Mapping[str, Weight] = field(default_factory=lambda: dict(WEIGHTS))
    language_models: Mapping[str, FilePath] = field(default_factory=dict)
    shipped_models: bool = True
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise RecipeError for an unknown language or component, and for a classifier that decides nothing.

        Also if no component that has a weight has a source, since every score would be unknown.
        """
        for code in self.language_models:
            known_language(code, "score_quality: language_models")
        _require_known(self.weights, {*WEIGHTS, *self.classifiers}, "score_quality: weights")
        _require_known(self.minima, {*WEIGHTS, *self.weights, *self.classifiers}, "score_quality: minima")
        for name in sorted(self.classifiers):
            _require_name(name)
            if not self.weights.get(name) and not self.bounds.get(name):
                message = (
                    f"score_quality.classifiers.{name} decides nothing: give it a weight (score_quality.weights.{name})"
                    f" or a bound (score_quality.minima.{name})"
                )
                raise RecipeError(message)
        decides = self.weights if not self.classifiers else {**self.weights, **self.bounds}
        if not any(weight and self.has_source(name) for name, weight in decides.items()):
            weighted = ", ".join(sorted(self.weights)) or "nothing"
            message = (
                f"score_quality: weights: only {weighted} has a weight, and no model that it could come from, so no "
                "document would have a score; name its model in `classifiers` or `language_models`, or weigh a "
                f"component of the documents ({', '.join(FROM_DOCUMENTS)})"
            )
            raise RecipeError(message)

    @property
    def bounds(self) -> Mapping[str, float]:
        """The bound of each component that has one: of `minima`, else the classifier's own."""
        own = {name: float(model.minimum or 0.0) for name, model in self.classifiers.items() if model.minimum}
        return {**own, **self.minima}

    def has_source(self, component: str) -> bool:
        """Return whether a component can be known of any document."""
        models = bool(self.language_models) or self.shipped_models
        return component in FROM_DOCUMENTS or component in self.classifiers or (component == PERPLEXITY and models)


def _require_name(name: str) -> None:
    """Raise RecipeError for a classifier whose name can be no column's, or is another component's."""
    if name in FROM_DOCUMENTS or name == PERPLEXITY or not re.fullmatch("[a-z][a-z0-9_]{0,40}", name):
        message = (
            f"score_quality: classifiers: {name!r} is no name for one: it becomes the column score_<name>; choose up "
            "to 41 small letters, digits and _, other than the components' own"
        )
        raise RecipeError(message)


def _require_known(names: Mapping[str, float], known: Collection[str], where: str) -> None:
    for name in names:
        if name not in known:
            [meant] = near(name, sorted(known))
            message = f"{where}: no component is called {name!r}; the nearest is {meant!r}"
            raise RecipeError(message)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the models, and reports of their checks, whose digests are part of the stage's identity."""
    languages = [params.language_models[code] for code in sorted(params.language_models)]
    classifiers = [params.classifiers[name] for name in sorted(params.classifiers)]
    reports = [classifier.report for classifier in classifiers if classifier.report]
    return (*languages, *(classifier.model for classifier in classifiers), *reports)


def check_files(params: Params) -> None:
    """Raise RecipeError unless every model can be read, is one of its language, and has the label that is asked.

    Also for a classifier that its own check refuses, unless the params say why it is accepted, and for one that is
    calibrated by a report without a calibration.
    """
    models = models_of(params)
    for name in sorted(params.classifiers):
        check(params.classifiers[name])
        require_admitted(name, params.classifiers[name], digest_of_model)
    _calibrations(params.classifiers)
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


def unread(params: Params, languages: Iterable[str]) -> tuple[Idle, ...]:
    """Return that there is no model for some of these languages."""
    unknown = ", ".join(languages_without_model(params, languages))
    return (Idle(f"no model for {PERPLEXITY} in {unknown}", REMEDIES[PERPLEXITY]),) if unknown else ()


def languages_without_model(params: Params, languages: Iterable[str]) -> list[str]:
    """Return the languages whose documents have no `perplexity`, if any have and it weighs."""
    if not params.has_source(PERPLEXITY) or not params.weights.get(PERPLEXITY):
        return []
    known = {*params.language_models, *(SHIPPED if params.shipped_models else ())}
    return sorted(language for language in languages if language.partition("-")[0] not in known)


@dataclass(frozen=True, slots=True)
class Models:
    """What of the params decides the documents' own components: not the weights, nor the bounds."""

    language_models: Mapping[str, FilePath]
    shipped: bool


def models_of(params: Params) -> Models:
    """Return what of the params decides the documents' own components."""
    return Models(params.language_models, params.shipped_models)


SCORE, CALIBRATED = "score_", "calibrated_"
"""Prefixes of the columns of a classifier: its score, and what that means by its check if it is `calibrated`."""

SEEN = "seen"
"""Column: the least share of a text that a classifier read, null without classifiers."""

FAILED = "error:score_quality"
"""What the reason begins with why a document that a model fails on is quarantined; its name follows."""


COMPONENTS = "score_components"
"""Column that `measure` adds, and that no other stage gets: a struct of all components, null where one is unknown."""


def score(docs: Batches, *, params: Params) -> Batches:
    """Append what `run` appends, in one pass without a cache; rows below a bound are rejected with all components."""
    classified = docs
    for name in sorted(params.classifiers):
        classified = classify(load(params.classifiers[name]), classified, NothingKnown(), name=name)
    yield from decide(measure(classified, models=models_of(params)), decision=decision_of(params, digest_of_model))


def measure(docs: Batches, *, models: Models) -> Batches:
    """Append the documents' own components, rounded to six digits; nothing is decided."""
    model_of = partial(_model_of, models)
    _check_language_models(models)
    for batch in docs:
        parts = components(batch, model_of)
        columns = [pa.array(np.round(part, 6), pa.float64(), from_pandas=True) for part in parts.values()]
        yield replace_column(batch, COMPONENTS, pa.StructArray.from_arrays(columns, names=list(parts)))


@dataclass(frozen=True, slots=True)
class Decision:
    """What of the params decides about documents whose components are known; no model is among it, and none is read.

    `checked` are the classifiers with a report, each with the digest of its model in place of the path.
    """

    minimum: float
    bounds: Mapping[str, float]
    weights: Mapping[str, float]
    classifiers: tuple[str, ...]
    checked: Mapping[str, Classifier]


def decision_of(params: Params, digest: Callable[[FilePath], str]) -> Decision:
    """Return what of the params decides; `digest` returns that of a model's file or folder."""
    checked = {
        name: replace(classifier, model=FilePath(digest(classifier.model)))
        for name, classifier in params.classifiers.items()
        if classifier.report
    }
    return Decision(params.minimum, params.bounds, params.weights, tuple(sorted(params.classifiers)), checked)


def decide(measured: Batches, *, decision: Decision) -> Batches:
    """Append the `score` of the components by weight, `perplexity`, and of each classifier its score; `seen` is least.

    A calibrated classifier decides by what its score means, which is the column `calibrated_<name>`; the score stays.
    Rows below a bound are rejected, and rows that a model failed on are quarantined. RecipeError for a classifier that
    its own check refuses.
    """
    for name, classifier in sorted(decision.checked.items()):
        require_admitted(name, classifier, lambda model: model)
    calibrations = _calibrations(decision.checked)
    for batch in measured:
        column: Any = batch.column(COMPONENTS)
        names = [part.name for part in column.type]
        parts = {name: column.field(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in names}
        classified = {name: batch.column(MEASURED + name) for name in decision.classifiers}
        parts |= {name: numbers(pc.struct_field(found, "score")) for name, found in classified.items()}
        languages = batch.column("language").to_pylist() if calibrations else []
        meant = {name: found.values(parts[name], languages) for name, found in calibrations.items()}
        parts |= meant
        scores = _composite(parts, decision.weights, batch.num_rows)
        known = pa.array(scores, pa.float64(), from_pandas=True)
        scored = batch.drop_columns([COMPONENTS, *(MEASURED + name for name in classified)])
        scored = replace_column(scored, "score", known)
        scored = replace_column(scored, PERPLEXITY, column.field(PERPLEXITY))
        for name, found in classified.items():
            scored = replace_column(scored, f"{SCORE}{name}", pc.struct_field(found, "score"))
        for name, values in meant.items():
            scored = replace_column(scored, f"{CALIBRATED}{name}", pa.array(values, pa.float64(), from_pandas=True))
        scored = replace_column(scored, SEEN, least_seen(classified.values(), batch.num_rows))
        yield reject(scored, *failures_first(*_verdicts(parts, scores, decision), classified, FAILED))


def _calibrations(classifiers: Mapping[str, Classifier]) -> dict[str, Calibration]:
    """Return the calibration of each classifier that is calibrated."""
    return {name: read_calibration(name, each) for name, each in sorted(classifiers.items()) if each.calibrated}


def column_of(params: Params, component: str) -> str:
    """Return the column that stores a component; "" for one that only the evidence of rejected rows has."""
    if component in params.classifiers:
        return f"{CALIBRATED if params.classifiers[component].calibrated else SCORE}{component}"
    return PERPLEXITY if component == PERPLEXITY else ""


def _verdicts(parts: Mapping[str, Column], scores: Column, decision: Decision) -> tuple[pa.Array, pa.Array]:
    """Return the reason why each row is rejected, and the evidence; null for kept rows."""
    low = {name: parts[name] < bound for name, bound in sorted(decision.bounds.items()) if name in parts}
    empty = np.zeros(len(scores), np.bool_)
    low_component, low_score = np.logical_or.reduce([*low.values(), empty]), scores < decision.minimum
    reasons: list[str | None] = [None] * len(scores)
    evidence: list[str | None] = [None] * len(scores)
    for row in np.flatnonzero(low_component | low_score).tolist():
        reasons[row] = LOW_COMPONENT if low_component[row] else LOW_QUALITY
        failed = {name: decision.bounds[name] for name, rows in low.items() if rows[row]}
        evidence[row] = _evidence(parts, row, float(scores[row]), decision.minimum, failed)
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


def _language_model(code: str, path: FilePath) -> "LanguageModel":
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


def _model_of(models: Models, code: str) -> "LanguageModel | None":
    """Return the model of a language that is named, else the package's; None if there is none."""
    path = models.language_models.get(code)
    if path is not None:
        return _language_model(code, path)
    return shipped_model(code) if models.shipped else None


def _evidence(parts: Mapping[str, Column], row: int, value: float, minimum: float, failed: Mapping[str, float]) -> str:
    known = {name: round(float(part[row]), 6) for name, part in parts.items() if not np.isnan(part[row])}
    facts: dict[str, Any] = {"components": known, "minimum": round(minimum, 6)}
    if not np.isnan(value):
        facts["score"] = value
    if failed:
        facts["below"] = {name: round(bound, 6) for name, bound in failed.items()}
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Score every shard by each model, measure it by itself, then judge it by all.

    Each is a shared layer: other weights and bounds find it, and another model computes no more than its own.
    """
    scored = classify_all(shards, params.classifiers, on)
    measured = on.map(partial(measure, models=models_of(params)), scored, layer=Layer(shared=True))
    classified = tuple(MEASURED + name for name in sorted(params.classifiers))
    by_language = ("language",) if any(each.calibrated for each in params.classifiers.values()) else ()
    own = tuple(writes_for(params).names)
    layer = Layer(reads=(COMPONENTS, *classified, *by_language), stores=("score", PERPLEXITY, *own, SEEN))
    return on.map(partial(decide, decision=decision_of(params, on.digest)), measured, layer=layer)


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of the scores of classifiers, and of what those that are calibrated mean."""
    names = sorted(params.classifiers)
    calibrated = (f"{CALIBRATED}{name}" for name in names if params.classifiers[name].calibrated)
    return pa.schema(
        [pa.field(column, pa.float64()) for column in (*(f"{SCORE}{name}" for name in names), *calibrated)]
    )


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    bounded = {name for name, weight in (*params.weights.items(), *params.bounds.items()) if weight}
    for name in sorted(name for name, least in params.minima.items() if least and not params.has_source(name)):
        yield Canceled(f"minima.{name}", "no model gives it", "name one in `classifiers`")
    if PERPLEXITY not in bounded:
        for name in ("language_models", "shipped_models"):
            yield Canceled(name, "`perplexity` has no weight and no minimum", "give it one")


def bounds(params: Params) -> tuple[Bound, ...]:
    """Return the bound of the score, and of each component that rows or the evidence of rejected ones have."""
    bounded = (name for name, bound in params.bounds.items() if bound)
    names = {*params.classifiers, *bounded, *([PERPLEXITY] if params.has_source(PERPLEXITY) else [])}
    minimum = Bound("minimum", params.minimum, LOW_QUALITY, ("score",))
    return (minimum, *(_component_bound(params, name) for name in sorted(names)))


def _component_bound(params: Params, name: str) -> Bound:
    column = column_of(params, name)
    return Bound(
        f"minima.{name}",
        params.bounds.get(name, 0.0),
        LOW_COMPONENT,
        columns=(column,) if column else (),
        side="both" if column else "lower",
        aliases=(f"classifiers.{name}.minimum",) if name in params.classifiers else (),
    )


def redecide(params: Params, batch: pa.RecordBatch, others: Sequence[Mapping[str, float]]) -> list[pa.Array]:
    """Return why each row is rejected by other bounds, null for one that is kept.

    A bound that is looser than now needs rejected rows alone, whose evidence has every component. A stricter one needs
    a component that kept rows store, too.
    """
    minimum, *components = bounds(params)
    now = {bound.param.partition(".")[2]: bound.now for bound in components}
    rows = stored(batch, {name: column_of(params, name) for name in now})
    reasons = []
    for other in others:
        then = {name: other.get(bound.param, bound.now) for name, bound in zip(now, components, strict=True)}
        poor = pa.array(rows.score < other.get(minimum.param, minimum.now))
        why = pc.if_else(poor, LOW_QUALITY, pa.scalar(None, pa.string()))
        reasons.append(pc.if_else(pa.array(rows.low(now, then)), LOW_COMPONENT, why))
    return reasons


def remarks(params: Params) -> Iterator[str]:
    """Yield that the params reject nothing, and the classifiers that decide although no report lets them."""
    if not params.minimum and not any(params.minima.values()):
        yield "`minimum` and `minima` are 0, so no document is rejected"
    for name, classifier in sorted(params.classifiers.items()):
        if classifier.accepted:
            yield f"`classifiers.{name}` decides because it was accepted: {classifier.accepted}"
        elif not classifier.report:
            yield (
                f"`classifiers.{name}` decides and was not checked: it may sort by source, or see a part of each text; "
                f"run `refinery model check --classifier-of RECIPE:{name}`, and name its report in "
                f"`classifiers: {name}: report:`"
            )


STAGE = Stage(
    name="score_quality",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    idle=idle,
    has_state=lambda params: bool(params.classifiers),
    reads=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64())]),
    writes=pa.schema(
        [*DOCUMENT, *(pa.field(name, pa.float64()) for name in ("language_score", "score", PERPLEXITY, SEEN))]
    ),
    writes_for=writes_for,
    version=7,
    splits=True,
    libraries={UNICODE: always},
    engine="ray",
    profiled=("score", PERPLEXITY, SEEN, *MOMENTS),
    reasons=(LOW_QUALITY, LOW_COMPONENT),
    title="quality score",
    removes="unfit",
    canceled=canceled,
    bounds=bounds,
    redecide=redecide,
    remarks=remarks,
    unread=unread,
    cost=UnitCost(0.38, 1.02, 0.02, 4, requests=Requests(20, 6), rows=1.0, published=0.40),
    derived_from=("text", "language", "language_score"),
)
