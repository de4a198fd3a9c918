"""Predicts what other bounds of stages but `filter_quality` would keep, from what these store of their rows."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.whatif import ALL, sampled_shards
from pipeline_tasks.inspect.whatif.scores import ScoreBounds, bounds_of, recount
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.removals import similarity
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import stage_card
from pipeline_tasks.stages import filter_toxicity
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, LOW_QUALITY, PERPLEXITY, column_of
from pipeline_tasks.stages.score_quality import STAGE as SCORES
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute

MINIMA = "minima"
"""Param of `score_quality` that has a bound per component, a classifier's own among them."""

OWN_MINIMUM = re.compile(rf"{SCORES.name}\.classifiers\.(\w+)\.minimum")
"""A classifier's own bound, as a recipe may write it."""

Side = Literal["both", "higher", "lower"]
"""Which other bounds can be predicted."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A bound of a stage on what it stores of rows: the least, or `is_most` that a row may have.

    `column` is in kept and rejected rows alike; "" where only the evidence of rejected rows has the value (`measured`
    takes it from there), so that only a bound that lets rows back can be predicted: that `side`. `reason` is that of
    rows that the bound rejects. A param with a dot is an entry of a mapping.
    """

    stage: str
    param: str
    reason: str
    column: str = ""
    measured: Callable[[pa.RecordBatch], pa.Array] | None = None
    side: Side = "both"
    note: str = ""
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
        side="higher",
        note="At most so many come back: a document may be near to another one, too.",
    ),
    Measure(
        "dedup_semantic",
        "threshold",
        "dedup_semantic:near_duplicate",
        measured=similarity,
        side="higher",
        note="At most so many come back: a document may be near to another one, too.",
    ),
    *(
        Measure("filter_toxicity", f"bounds.{label}", filter_toxicity.reason_of(label), column, is_most=True)
        for label, column in zip(filter_toxicity.LABELS, filter_toxicity.COLUMNS, strict=True)
    ),
    Measure(SCORES.name, "minimum", LOW_QUALITY, "score"),
    Measure("decontaminate", "score", "decontaminate:contaminated", measured=_contamination, side="higher"),
)
"""What stages store of their rows, in their order, beside the signals of `filter_quality`, and bounds of components."""

PREDICTED = frozenset(measure.stage for measure in MEASURES)
"""The stages whose bounds these are."""


@dataclass(frozen=True, slots=True)
class StageBound:
    """A bound of a version that can be changed."""

    measure: Measure
    now: float
    range: Range


@dataclass(frozen=True, slots=True)
class StageForecast:
    """The effect of a bound on its own stage, counted in rows (now, then); what follows is decided by a run.

    `bound` is None of a forecast of several bounds of one stage together, whose rejected rows are those of all reasons.
    `is_exact` is false where rows were sampled, or other params may decide on the same rows.
    """

    key: str
    bound: tuple[float, float] | None
    rows_in: int
    kept: tuple[int, int]
    rejected: tuple[int, int]
    is_exact: bool
    note: str


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
        languages = stage_card(self.measure.stage).languages
        return languages(asdict(self.params)).bounded if languages else None

    def followers(self, batch: pa.RecordBatch, flags: Any) -> Any:  # noqa: ANN401 -- Arrow arrays
        """Return the flags of rows that follow the bound, false for those of languages with one of their own."""
        if not self.own_languages:
            return flags
        own = pc.is_in(batch.column("language"), value_set=pa.array(sorted(self.own_languages)))
        return pc.and_(flags, pc.invert(own))


def measures_of(stage: str, params: Any) -> list[Measure]:  # noqa: ANN401 -- of any stage
    """Return the measures of a stage: of `score_quality` also each component that rows or their evidence have."""
    measures = [measure for measure in MEASURES if measure.stage == stage]
    if stage == SCORES.name:
        bounds = (name for name, bound in params.bounds.items() if bound)
        names = {*params.classifiers, *bounds, *([PERPLEXITY] if params.has_source(PERPLEXITY) else [])}
        measures += [_of_component(name, column_of(params, name)) for name in sorted(names)]
    return measures


def _of_component(name: str, column: str) -> Measure:
    return Measure(SCORES.name, f"{MINIMA}.{name}", LOW_COMPONENT, column, side="both" if column else "lower")


def stage_bounds(root: str, version: Version) -> list[StageBound]:
    """Return the bounds of a version's stages that can be predicted, by their manifests alone."""
    bounds = []
    for stage in dict.fromkeys(measure.stage for measure in MEASURES):
        if stage in version.manifests:
            params = _params(stage, read_manifest(root, version.manifests[stage]).params, f"--set {stage}")
            bounds += [
                StageBound(measure, _now(measure, params), _range(measure)) for measure in measures_of(stage, params)
            ]
    return bounds


def _params(stage: str, written: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401 -- of any stage
    return bind(stage_card(stage), written, where)


def _now(measure: Measure, params: Any) -> float:  # noqa: ANN401 -- of any stage
    """Return the bound of a measure; of one without any, what nothing is below or, for a highest value, above."""
    group, _, name = measure.param.partition(".")
    if not name:
        return float(getattr(params, group))
    if measure.is_most:
        return math.inf if params.action == "annotate" else float(params.bounds.get(name, math.inf))
    return float(params.bounds.get(name, 0.0))


def _range(measure: Measure) -> Range:
    """Return the range that the param is annotated with: lengths and rates from 0, shares up to 1."""
    return Range(0, math.inf) if measure.column == "chars" or measure.is_most else Range(0, 1)


def stage_key(written: str) -> str:
    """Return a key as this module has it: the bound that a classifier names itself is that of its component."""
    key = written.strip()
    own = OWN_MINIMUM.fullmatch(key)
    return f"{SCORES.name}.{MINIMA}.{own[1]}" if own else key


def is_of_stage(change: str) -> bool:
    """Return whether a change, as `--set` writes it, is of a bound of one of these stages."""
    stage, dot, _ = change.partition("=")[0].strip().partition(".")
    return bool(dot) and stage in PREDICTED


def stage_forecasts(root: str, version: Version, changes: Sequence[str], most: int = ALL) -> list[StageForecast]:
    """Return the effect of each change, written `stage.param=value`; of large stages about `most` rows are read.

    Each is of its bound alone; those of `score_quality` come together besides, if there are several. RecipeError for a
    stage that the version does not have, what is no bound, and a bound that asks for rows whose measure is not stored.
    """
    by_stage: dict[str, list[tuple[str, str]]] = {}
    for change in changes:
        key, _, written = change.partition("=")
        by_stage.setdefault(stage_key(key).partition(".")[0], []).append((stage_key(key), written.strip()))
    forecasts: list[StageForecast] = []
    for stage, written_bounds in by_stage.items():
        manifest, judged = _judged(root, version, stage, written_bounds)
        if stage == SCORES.name:
            forecasts += _of_scores(root, manifest, judged, most)
        else:
            forecasts += [_forecast(root, manifest, each, most) for each in judged]
    return forecasts


def _judged(
    root: str, version: Version, stage: str, written_bounds: Sequence[tuple[str, str]]
) -> tuple[Manifest, list[_Judged]]:
    """Return the manifest of a stage, and each bound with its other value; RecipeError for what is no bound of it."""
    if stage not in version.manifests:
        message = f"--set {written_bounds[0][0]}: version {version.number} of recipe {version.recipe} has no {stage}"
        raise RecipeError(message)
    manifest = read_manifest(root, version.manifests[stage])
    params = _params(stage, manifest.params, f"--set {stage}")
    known = {measure.key: measure for measure in measures_of(stage, params)}
    judged = []
    for key, written in written_bounds:
        if key not in known:
            near = ", ".join(get_close_matches(key, known, 3, cutoff=0))
            message = f"--set {key}: no stored measure says what it would keep; run it as a trial. Nearest are: {near}"
            raise RecipeError(message)
        measure = known[key]
        each = _Judged(measure, params, _now(measure, params), _number(key, written))
        _require_valid(manifest, each)
        judged.append(each)
    return manifest, judged


def _require_valid(manifest: Manifest, judged: _Judged) -> None:
    """Raise RecipeError for a bound that a recipe could not have, and one that stored measures cannot decide."""
    measure, now, then = judged.measure, judged.now, judged.then
    group, _, name = measure.param.partition(".")
    value: Any = round(then) if measure.column == "chars" else then
    value = {**getattr(judged.params, group), name: value} if name else value
    _params(measure.stage, {**manifest.params, group: value}, f"--set {measure.key}")
    if (measure.side == "higher" and then < now) or (measure.side == "lower" and then > now):
        side, other = ("below", "lower") if then < now else ("above", "higher")
        message = (
            f"--set {measure.key}={then:g}: rows that {measure.stage} kept have no stored measure {side} {now:g}, so a "
            f"{other} bound cannot be predicted; run it as a trial"
        )
        raise RecipeError(message)


def _of_scores(root: str, manifest: Manifest, judged: Sequence[_Judged], most: int) -> list[StageForecast]:
    """Return the forecast of each bound of `score_quality` alone and, if there are several, of all together."""
    now = bounds_of(judged[0].params)
    together = now
    for each in judged:
        together = _changed(together, each)
    alone = [_changed(now, each) for each in judged]
    counts = recount(root, manifest, judged[0].params, [*alone, together], most)
    forecasts = []
    for each, count in zip(judged, counts, strict=False):
        rejected = manifest.rejected.get(each.measure.reason, 0), count.rejected[each.measure.reason]
        kept = manifest.rows, count.kept
        bound = each.now, each.then
        forecasts.append(
            StageForecast(each.measure.key, bound, manifest.rows_in, kept, rejected, count.is_whole, each.measure.note)
        )
    if len({each.measure for each in judged}) > 1:
        count = counts[-1]
        kept = manifest.rows, count.kept
        rejected = sum(manifest.rejected.values()), sum(count.rejected.values())
        forecasts.append(StageForecast(SCORES.name, None, manifest.rows_in, kept, rejected, count.is_whole, ""))
    return forecasts


def _changed(bounds: ScoreBounds, judged: _Judged) -> ScoreBounds:
    _, _, name = judged.measure.param.partition(".")
    if not name:
        return replace(bounds, minimum=judged.then)
    return replace(bounds, minima={**bounds.minima, name: judged.then})


def _forecast(root: str, manifest: Manifest, judged: _Judged, most: int) -> StageForecast:
    measure, params = judged.measure, judged.params
    back, is_sampled = _back(root, manifest, judged, most)
    gone, is_sampled_too = _gone(root, manifest, judged, most)
    rejected = manifest.rejected.get(measure.reason, 0)
    return StageForecast(
        key=measure.key,
        bound=(judged.now, judged.then),
        rows_in=manifest.rows_in,
        kept=(manifest.rows, manifest.rows + back - gone),
        rejected=(rejected, rejected - back + gone),
        is_exact=not (is_sampled or is_sampled_too or measure.note or getattr(params, "mixed", "keep") == "reject"),
        note=measure.note,
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
        kept, after = forecast.kept
        about = "" if forecast.is_exact else "about "
        changed = f"{forecast.bound[0]:g} -> {forecast.bound[1]:g}" if forecast.bound else "these bounds together"
        yield f"{forecast.key}: {changed}"
        yield (
            f"  of {forecast.rows_in:,} rows {kept:,} are kept, {about}{after:,} would be ({after - kept:+,})"
            + (f"; {forecast.note}" if forecast.note else "")
        )
    if forecasts:
        yield "  what the stages behind it decide on other rows, a trial says: `refinery run --sample`"
