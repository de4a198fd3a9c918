"""Score every document between 0 and 1 by a weighted composite of signals, and reject the poor ones."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Ratio, Weight
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, reject, replace_column

LOW_QUALITY = "score_quality:low_quality"
Column = npt.NDArray[np.float64]
"""One component, a value in 0..1 per row; NaN where it is unknown."""

WEIGHTS: Mapping[str, float] = {
    "length": 0.10,
    "language": 0.15,
    "perplexity": 0.25,
    "duplication": 0.20,
    "density": 0.20,
    "toxicity": 0.10,
}
"""The published weights; an unknown component is left out and the others share its weight."""

_SIGNALS = "signals_"
"""Prefix of the columns of signals that `filter_quality` writes, one per profile."""

_REPETITION = f"{_SIGNALS}gopher_repetition"

_FEW_WORDS, _ENOUGH_WORDS, _MANY_WORDS = 50, 500, 50_000
_UNSPACED = ("zh", "ja", "th", "lo", "km", "my", "yue", "wuu")  # written without spaces
_CHARS_PER_UNSPACED_WORD = 2  # mean word length of Chinese and Japanese text, rounded
_PLAIN_LETTERS = 0.75  # prose has at least this share of letters among its visible bytes (Gopher: 0.8 of words)
_PLAIN_PUNCTUATION = 0.10  # prose has at most this share of punctuation; code and tables have more
_PLAIN_STOP_WORDS = 0.15  # English prose has about 0.2 of these words
_STOP_WORDS = {  # the most frequent function words; a language that is not listed is scored without them
    "en": "the of and to in a is that for it as with be are this on by not or have",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als",
    "fr": "de la le et les des en un une du est que dans pour qui par au sur pas ne",
    "es": "de la que el en y los se del las un por con una para es al lo como no",
    "it": "di e il la che in per un del una con non le si da i dei al come è",
    "pt": "de a o que e do da em um para com não uma os no se na por as dos",
    "nl": "de het een van en in is dat op te zijn met voor niet aan er om die ook als",
    "ru": "и в не на что с по как это из у к за от для но или его а то",  # noqa: RUF001
    "pl": "i w na z do się nie że to jest o jak dla od po za przez ale są czy",
}


@dataclass(frozen=True, slots=True)
class Params:
    """Weights by component, the bound, and fastText models that serve as further components.

    `classifiers` maps a component name to a fastText model; `labels` names the label whose probability is that
    component (so a toxicity model names its *clean* label), `weights` its weight. A component that no weight
    names has none. Documents that score below `minimum` are rejected. On real prose, PEPs and news the lowest score
    is 0.6; most tables, lists and repeated lines score below 0.5.
    """

    minimum: Ratio = 0.5
    weights: Mapping[str, Weight] = field(default_factory=lambda: dict(WEIGHTS))
    classifiers: Mapping[str, FilePath] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the model files whose digests are part of the stage's identity, by component name."""
    return tuple(params.classifiers[name] for name in sorted(params.classifiers))


def score(docs: Batches, *, params: Params) -> Batches:
    """Append `score`, rounded to six digits; reject rows below the bound with all components as evidence."""
    models = {name: _load(params.classifiers[name]) for name in sorted(params.classifiers)}
    for batch in docs:
        parts = _components(batch)
        for name, model in models.items():
            parts[name] = _probability(model, params.labels[name], batch.column("text").to_pylist())
        scores = _composite(parts, params.weights, batch.num_rows)
        low = np.flatnonzero(scores < params.minimum)
        reasons: list[str | None] = [None] * batch.num_rows
        evidence: list[str | None] = [None] * batch.num_rows
        for row in low.tolist():
            reasons[row] = LOW_QUALITY
            evidence[row] = _evidence(parts, row, float(scores[row]), params.minimum)
        scored = replace_column(batch, "score", pa.array(scores, pa.float64()))
        yield reject(scored, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _composite(parts: Mapping[str, Column], weights: Mapping[str, float], rows: int) -> Column:
    """Return the weighted mean of the known components of each row; 0 where none is known."""
    total, weight = np.zeros(rows), np.zeros(rows)
    for name in sorted(parts):
        known = ~np.isnan(parts[name])
        total += np.where(known, parts[name], 0.0) * weights.get(name, 0.0)
        weight += known * weights.get(name, 0.0)
    mean: Column = np.divide(total, weight, out=np.zeros(rows), where=weight > 0)
    return np.round(mean, 6).astype(np.float64)


def _components(batch: pa.RecordBatch) -> dict[str, Column]:
    texts = [text or "" for text in batch.column("text").to_pylist()]
    languages = _languages(batch)
    counts = _byte_counts(batch.column("text"))
    words = _word_counts(batch, counts, languages)
    confidence: Any = batch.column("language_score").cast(pa.float64())
    return {
        "length": _length(words),
        "language": np.clip(confidence.to_numpy(zero_copy_only=False), 0.0, 1.0),
        "duplication": _duplication(batch, texts),
        "density": _density(batch, counts, words, languages),
    }


def _languages(batch: pa.RecordBatch) -> list[str | None]:
    if batch.schema.get_field_index("language") < 0:
        return [None] * batch.num_rows
    return [language and str(language).partition("-")[0] for language in batch.column("language").to_pylist()]


def _word_counts(batch: pa.RecordBatch, counts: dict[str, Column], languages: list[str | None]) -> Column:
    """Return words per row: runs between spaces, or characters by mean word length where none are written."""
    spaced = counts["words"]
    chars: Any = batch.column("chars").cast(pa.float64()).fill_null(0.0)
    unspaced = np.isin(np.array(languages, dtype=object), _UNSPACED)
    return np.where(unspaced, chars.to_numpy(zero_copy_only=False) / _CHARS_PER_UNSPACED_WORD, spaced)


def _length(words: Column) -> Column:
    """Return 0..1: half at 50 words, full from 500 to 50,000, falling beyond."""
    few = 0.5 * words / _FEW_WORDS
    some = 0.5 + 0.5 * np.log(np.maximum(words, 1) / _FEW_WORDS) / np.log(_ENOUGH_WORDS / _FEW_WORDS)
    return np.minimum(np.where(words < _FEW_WORDS, few, np.minimum(some, 1.0)), _MANY_WORDS / np.maximum(words, 1))


def _duplication(batch: pa.RecordBatch, texts: list[str]) -> Column:
    """Return the share of characters outside repeated lines.

    Where `filter_quality` ran, it is 1 - the worst signal of `gopher_repetition`, unknown without that profile.
    """
    if batch.schema.get_field_index(_REPETITION) >= 0:
        signals: Any = batch.column(_REPETITION)
        names = [part.name for part in signals.type if part.name.startswith("dup")]
        values: list[Any] = [pc.struct_field(signals, name).cast(pa.float64()) for name in names]
        worst = np.fmax.reduce([value.to_numpy(zero_copy_only=False) for value in values])
        return np.asarray(1.0 - np.clip(worst, 0.0, 1.0), np.float64)
    if any(name.startswith(_SIGNALS) for name in batch.schema.names):
        return np.full(batch.num_rows, np.nan)
    return np.array([1.0 - _repeated_share(text) for text in texts], np.float64)


def _repeated_share(text: str) -> float:
    """Return the share of characters in second and later copies of a line."""
    lines = Counter(line for line in text.split("\n") if line)
    whole = sum(len(line) * count for line, count in lines.items())
    unique = sum(map(len, lines))
    return (whole - unique) / whole if whole else 0.0


def _density(batch: pa.RecordBatch, counts: dict[str, Column], words: Column, languages: list[str | None]) -> Column:
    """Return the mean of three signs of prose: letters, little punctuation, function words (where known)."""
    visible = np.maximum(counts["visible"], 1.0)
    letters = np.minimum(counts["letters"] / visible / _PLAIN_LETTERS, 1.0)
    over = np.maximum(counts["punctuation"] / visible / _PLAIN_PUNCTUATION, 1.0)
    stops = np.minimum(_stop_share(batch.column("text"), words, languages) / _PLAIN_STOP_WORDS, 1.0)
    signs = np.stack([letters, 1.0 / over, stops])
    density = np.where(np.isnan(stops), (signs[0] + signs[1]) / 2, (signs[0] + signs[1] + np.nan_to_num(stops)) / 3)
    return np.where(counts["visible"] > 0, density, 0.0)


def _stop_share(text: Any, words: Column, languages: list[str | None]) -> Column:  # noqa: ANN401 -- array
    """Return function words per word; NaN for a language without a list; English where none is named."""
    share = np.full(len(languages), np.nan)
    named = np.array([language or "en" for language in languages], dtype=object)
    for language in sorted(set(named) & set(_STOP_WORDS)):
        rows = np.flatnonzero(named == language)
        # \b is ASCII in RE2: spelled-out neighbors keep `é` a letter, and one space serves two words
        pattern = r"(?i)(?:^|[^\pL\pN])(?:" + "|".join(_STOP_WORDS[language].split()) + r")(?:[^\pL\pN]|$)"
        counts: Any = pc.fill_null(pc.count_substring_regex(text.take(pa.array(rows)), pattern), 0)
        share[rows] = counts.to_numpy(zero_copy_only=False) / np.maximum(words[rows], 1.0)
    return share


def _byte_counts(text: Any) -> dict[str, Column]:  # noqa: ANN401 -- large_string array
    """Return letters, punctuation, visible bytes and words of each row, by whole-buffer sums.

    Bytes above 0x7f count as letters: in UTF-8 they are letters of other scripts far more often than not.
    """
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    data = text.buffers()[2]
    raw = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    bounds = offsets - offsets[0]
    kinds = _KINDS[raw]
    visible = kinds > 0
    starts = visible.copy()
    starts[1:] &= ~visible[:-1]
    inner = bounds[:-1][bounds[:-1] < len(raw)]
    starts[inner] = visible[inner]  # a word also starts where a document does
    flags = {"letters": kinds == _LETTER, "punctuation": kinds == _PUNCTUATION, "visible": visible, "words": starts}
    return {name: _sums(flag, bounds) for name, flag in flags.items()}


def _sums(flags: npt.NDArray[np.bool_], bounds: npt.NDArray[np.int64]) -> Column:
    running = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags, dtype=np.int64)])
    return np.asarray(running[bounds[1:]] - running[bounds[:-1]], np.float64)


_LETTER, _DIGIT, _PUNCTUATION = 1, 2, 3


def _byte_kinds() -> npt.NDArray[np.uint8]:
    kinds = np.full(256, _PUNCTUATION, np.uint8)
    kinds[:33] = 0
    kinds[0x7F] = 0
    kinds[0x80:] = _LETTER
    kinds[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] = _LETTER
    kinds[list(b"0123456789")] = _DIGIT
    return kinds


_KINDS = _byte_kinds()


def _load(path: FilePath) -> Any:  # noqa: ANN401 -- fasttext has no stubs
    import fasttext

    try:
        return fasttext.load_model(path)
    except ValueError as error:
        message = f"score_quality: {path} is not a readable fastText model ({error}); correct `classifiers`"
        raise RecipeError(message) from error


def _probability(model: Any, label: str, texts: list[str | None]) -> Column:  # noqa: ANN401 -- no stubs
    """Return the probability of `label` for each text, read as one line as fastText does; NaN without text."""
    return np.array([_probability_of_text(model, label, text) for text in texts], np.float64)


def _probability_of_text(model: Any, label: str, text: str | None) -> float:  # noqa: ANN401 -- no stubs
    line = " ".join((text or "").split())
    if not line:
        return float("nan")
    labels, odds = model.predict(line, k=-1, threshold=0.0)
    return min(float(dict(zip(labels, odds, strict=True)).get(label, 0.0)), 1.0)


def _evidence(parts: Mapping[str, Column], row: int, value: float, minimum: float) -> str:
    known = {name: round(float(part[row]), 6) for name, part in parts.items() if not np.isnan(part[row])}
    facts = {"components": known, "minimum": round(minimum, 6), "score": value}
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Score every shard by itself.

    Raises RecipeError when a classifier has no label or no weight.
    """
    for name in sorted(params.classifiers):
        if name not in params.labels or name not in params.weights:
            message = f"score_quality.classifiers.{name} needs score_quality.labels.{name} and .weights.{name}"
            raise RecipeError(message)
    return on.map(partial(score, params=params), shards)


STAGE = Stage(
    name="score_quality",
    run=run,
    params=Params,
    resources=resources,
    reads=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64())]),
    writes=pa.schema([*DOCUMENT, pa.field("language_score", pa.float64()), pa.field("score", pa.float64())]),
    version=1,
    splits=True,
    engine="ray",
    profiled=("score",),
    reasons=(LOW_QUALITY,),
    title="quality score",
)
