"""Predicts what other bounds of stages but `filter_quality` would keep, from what these store of their rows."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif import ALL, sampled_shards
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import similarity
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import stage_card
from pipeline_tasks.stages import filter_toxicity
from pipeline_tasks.stages.filter_language import PACKS
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.words.language_codes import parse_language

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Measure:
    """A bound of a stage on what it stores of rows: the least, or `is_most` that a row may have.

    `column` is in kept and rejected rows alike; "" where `measured` takes the value from the evidence of rejected rows
    alone, so that only a bound that lets rows back can be predicted. `reason` is that of rows that the bound rejects.
    `bounds` is the param that has the bound under the name `param`, "" where it is a param itself.
    """

    stage: str
    param: str
    reason: str
    column: str = ""
    measured: Callable[[pa.RecordBatch], pa.Array] | None = None
    note: str = ""
    bounds: str = ""
    is_most: bool = False

    @property
    def key(self) -> str:
        """Its key, as `--set` and the address of the page have it."""
        return f"{self.stage}.{self.param}"


def _contamination(batch: pa.RecordBatch) -> pa.Array:
    """Return the highest score of each row's hits; null where a run of equal words is a hit whatever its score."""
    return pa.array([_highest(evidence) for evidence in batch.column("evidence").to_pylist()], pa.float64())


def _highest(evidence: str | None) -> float | None:
    hits = json.loads(evidence).get("hits", []) if evidence else []
    scores = [float(hit["score"]) if hit.get("method") == "sampled" else None for hit in hits]
    known = [score for score in scores if score is not None]
    return max(known) if known and len(known) == len(scores) else None


MEASURES = (
    Measure("extract", "min_chars", "extract:too_short", "chars"),
    Measure("filter_language", "threshold", "filter_language:unsure", "language_score"),
    Measure(
        "dedup_minhash",
        "threshold",
        "dedup_minhash:near_duplicate",
        measured=similarity,
        note="At most so many come back: a document may be near to another one, too.",
    ),
    Measure("score_quality", "minimum", "score_quality:low_quality", "score"),
    *(
        Measure(
            "filter_toxicity",
            label,
            filter_toxicity.reason_of(label),
            column,
            bounds="bounds",
            is_most=True,
        )
        for label, column in zip(filter_toxicity.LABELS, filter_toxicity.COLUMNS, strict=True)
    ),
    Measure("decontaminate", "score", "decontaminate:contaminated", measured=_contamination),
)
"""What stages store of their rows, in their order, beside the signals of `filter_quality`."""

BY_KEY = {measure.key: measure for measure in MEASURES}


@dataclass(frozen=True, slots=True)
class StageBound:
    """A bound of a version that can be changed; `is_both` is whether a stricter one can be predicted, too."""

    measure: Measure
    now: float
    range: Range
    is_both: bool


@dataclass(frozen=True, slots=True)
class StageForecast:
    """The effect of one bound on its own stage, counted in rows (now, then); what follows is decided by a run.

    `is_exact` is false where rows were sampled, or other params may decide on the same rows. `written` is the param and
    what it would be: a number, or a mapping with the bounds that stay as they are.
    """

    key: str
    bound: tuple[float, float]
    rows_in: int
    kept: tuple[int, int]
    rejected: tuple[int, int]
    is_exact: bool
    note: str
    written: tuple[str, float | Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A measure with the params of its stage, its bound and the other one."""

    measure: Measure
    params: Any
    now: float
    then: float

    @property
    def columns(self) -> list[str]:
        """The columns that its rows are read with."""
        by_language = ["language"] if self.own_languages is not None else []
        counts = [filter_toxicity.HITS] if self.measure.is_most else []
        return [self.measure.column, *by_language, *counts] if self.measure.column else []

    def fails(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 -- an Arrow array
        """Return whether each row fails the other bound."""
        values = batch.column(self.measure.column)
        if not self.measure.is_most:
            return self.followers(batch, pc.less(values, self.then))
        enough = pc.greater_equal(batch.column(filter_toxicity.HITS), self.params.fewest)
        return pc.and_(pc.greater(values, self.then), enough)

    def returns(self, batch: pa.RecordBatch) -> Any:  # noqa: ANN401 -- an Arrow array
        """Return whether each row that the bound rejects would be kept by the other one."""
        values = batch.column(self.measure.column)
        if not self.measure.is_most:
            return self.followers(batch, pc.greater_equal(values, self.then))
        alone = pa.array(
            [len(json.loads(evidence)) == 1 for evidence in batch.column("evidence").to_pylist()], pa.bool_()
        )
        return pc.and_(pc.less_equal(values, self.then), alone)

    @property
    def own_languages(self) -> frozenset[str] | None:
        """The languages that have a bound of their own; None of a stage whose bound is for all."""
        if self.measure.stage != "filter_language":
            return None
        return frozenset(parse_language(code).language for code in (*PACKS[self.params.packs], *self.params.thresholds))

    def followers(self, batch: pa.RecordBatch, flags: Any) -> Any:  # noqa: ANN401 -- Arrow arrays
        """Return the flags of rows that follow the bound, false for those of languages with one of their own."""
        if not self.own_languages:
            return flags
        own = pc.is_in(batch.column("language"), value_set=pa.array(sorted(self.own_languages)))
        return pc.and_(flags, pc.invert(own))


def stage_bounds(root: str, version: Version) -> list[StageBound]:
    """Return the bounds of a version's stages that can be predicted, by their manifests alone."""
    bounds = []
    for measure in MEASURES:
        if measure.stage in version.manifests:
            manifest = read_manifest(root, version.manifests[measure.stage])
            now = _now(_params(manifest, measure), measure)
            bounds.append(StageBound(measure, now, _range(measure), bool(measure.column)))
    return bounds


def _params(manifest: Manifest, measure: Measure, changes: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 -- of any stage
    card, where = stage_card(measure.stage), f"--set {measure.key}"
    return bind(card, {**manifest.params, **(changes or {})}, where)


def _now(params: Any, measure: Measure) -> float:  # noqa: ANN401 -- of any stage
    """Return the bound; infinite for one that is not named, or that an annotating stage does not apply."""
    if not measure.bounds:
        return float(getattr(params, measure.param))
    return math.inf if params.action == "annotate" else float(params.bounds.get(measure.param, math.inf))


def _written(params: Any, measure: Measure, then: float) -> tuple[str, float | Mapping[str, float]]:  # noqa: ANN401
    """Return the param that has the bound, and what it would be."""
    if not measure.bounds:
        return measure.param, round(then) if measure.column == "chars" else then
    return measure.bounds, {**getattr(params, measure.bounds), measure.param: then}


def _range(measure: Measure) -> Range:
    """Return the range that the param is annotated with: lengths and rates from 0, shares up to 1."""
    return Range(0, math.inf) if measure.column == "chars" or measure.is_most else Range(0, 1)


def is_of_stage(change: str) -> bool:
    """Return whether a change, as `--set` writes it, is of one of these bounds."""
    return change.partition("=")[0].strip() in BY_KEY


def stage_forecasts(root: str, version: Version, changes: Sequence[str], most: int = ALL) -> list[StageForecast]:
    """Return the effect of each change, written `stage.param=value`; of large stages about `most` rows are read.

    RecipeError for a stage that the version does not have, what is no bound, and a bound that asks for rows whose
    measure is not stored.
    """
    return [_forecast(root, version, change, most) for change in changes]


def _forecast(root: str, version: Version, change: str, most: int) -> StageForecast:
    key, _, written = (part.strip() for part in change.partition("="))
    measure = BY_KEY[key]
    if measure.stage not in version.manifests:
        message = f"--set {key}: version {version.number} of recipe {version.recipe} has no {measure.stage}"
        raise RecipeError(message)
    manifest = read_manifest(root, version.manifests[measure.stage])
    params = _params(manifest, measure)
    judged = _Judged(measure, params, _now(params, measure), _number(key, written))
    now, then = judged.now, judged.then
    changed = _written(params, measure, then)
    _params(manifest, measure, dict([changed]))
    if not measure.column and then < now:
        message = (
            f"--set {key}={written}: rows that {measure.stage} kept have no stored measure below {now:g}, so a lower "
            "bound cannot be predicted; run it as a trial"
        )
        raise RecipeError(message)
    back, is_sampled = _back(root, manifest, judged, most)
    gone, is_sampled_too = _gone(root, manifest, judged, most)
    rejected = manifest.rejected.get(measure.reason, 0)
    return StageForecast(
        key=key,
        bound=(now, then),
        rows_in=manifest.rows_in,
        kept=(manifest.rows, manifest.rows + back - gone),
        rejected=(rejected, rejected - back + gone),
        is_exact=not (is_sampled or is_sampled_too or measure.note or getattr(params, "mixed", "keep") == "reject"),
        note=measure.note,
        written=changed,
    )


def _number(key: str, written: str) -> float:
    try:
        return float(written)
    except ValueError as error:
        message = f"--set {key}={written}: the bound must be a number"
        raise RecipeError(message) from error


def _back(root: str, manifest: Manifest, judged: _Judged, most: int) -> tuple[int, bool]:
    """Return how many rejected rows the other bound lets pass, and whether a sample says so."""
    measure = judged.measure
    is_looser = judged.then < judged.now if measure.column and not measure.is_most else judged.then > judged.now
    if not is_looser or not manifest.rejected.get(measure.reason):
        return 0, False
    shards, weight = sampled_shards(manifest.rejects, most / max(manifest.rows_in, 1))
    count = 0
    for batch in read_shards(root, shards, ["reason", "evidence", *judged.columns]):
        rows = batch.filter(pc.equal(batch.column("reason"), measure.reason))
        if measure.column:
            count += _count(judged.returns(rows))
        elif measure.measured:
            count += _count(pc.less(measure.measured(rows), judged.then))
    return round(count * weight), len(shards) < len(manifest.rejects)


def _gone(root: str, manifest: Manifest, judged: _Judged, most: int) -> tuple[int, bool]:
    """Return how many kept rows the other bound rejects, and whether a sample says so."""
    measure = judged.measure
    is_stricter = judged.then < judged.now if measure.is_most else judged.then > judged.now
    if not measure.column or not is_stricter:
        return 0, False
    shards, weight = sampled_shards(manifest.shards, most / max(manifest.rows_in, 1))
    count = 0
    for batch in read_shards(root, shards, judged.columns):
        count += _count(judged.fails(batch))
    return round(count * weight), len(shards) < len(manifest.shards)


def _count(flags: Any) -> int:  # noqa: ANN401 -- an Arrow array
    counted: int = pc.sum(pc.cast(pc.fill_null(flags, fill_value=False), pa.int64())).as_py() or 0
    return counted


# --- Output ---------------------------------------------------------------------------------------------------------


def stage_lines(forecasts: Sequence[StageForecast]) -> Iterator[str]:
    """Yield the forecasts of stages for a person."""
    for forecast in forecasts:
        now, then = forecast.bound
        kept, after = forecast.kept
        about = "" if forecast.is_exact else "about "
        yield f"{forecast.key}: {now:g} -> {then:g}"
        yield (
            f"  of {forecast.rows_in:,} rows {kept:,} are kept, {about}{after:,} would be ({after - kept:+,})"
            + (f"; {forecast.note}" if forecast.note else "")
        )
    if forecasts:
        yield "  what the stages behind it decide on other rows, a trial says: `refinery run --sample`"
