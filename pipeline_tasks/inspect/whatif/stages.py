"""Predicts what other bounds of stages but `filter_quality` would keep, from what these store of their rows."""

import math
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import is_own, known_card, stage_card
from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound
from pipeline_tasks.inspect.whatif import ALL, JUDGE, sampled_shards
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.nearest import near
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.store.reading import read_manifest, read_shards

pc: Any = pyarrow.compute

REJECTS: Mapping[str, Callable[[pa.Array, float], pa.Array]] = {
    "below": pc.less,
    "above": pc.greater,
    "from": pc.greater_equal,
}
KEEPS: Mapping[str, Callable[[pa.Array, float], pa.Array]] = {
    "below": pc.greater_equal,
    "above": pc.less_equal,
    "from": pc.less,
}
"""What measures a bound keeps, by what it rejects."""


@dataclass(frozen=True, slots=True)
class StageBound:
    """A bound of a stage of a version, which can be changed."""

    stage: str
    bound: Bound

    @property
    def key(self) -> str:
        """Its key, as `--set` and the address of the page have it."""
        return f"{self.stage}.{self.bound.param}"

    @property
    def range(self) -> Range:
        """The values that it may have."""
        return Range(0, self.bound.most)


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
    """A bound with the params of its stage, and the other value."""

    measure: StageBound
    params: Any
    then: float

    @property
    def bound(self) -> Bound:
        """The bound as it is now."""
        return self.measure.bound

    @property
    def is_looser(self) -> bool:
        """Whether the other value lets rows back."""
        return self.then < self.bound.now if self.bound.rejects == "below" else self.then > self.bound.now

    @property
    def is_stricter(self) -> bool:
        """Whether the other value rejects more."""
        return self.then != self.bound.now and not self.is_looser

    @property
    def columns(self) -> list[str]:
        """The columns that its rows are read with."""
        return [*self.bound.columns, *(["language"] if self.own_languages is not None else [])]

    def count(self, batch: pa.RecordBatch, which: Mapping[str, Callable[[pa.Array, float], pa.Array]]) -> int:
        """Return how many rows the other value rejects (`REJECTS`) or keeps (`KEEPS`)."""
        bound = self.bound
        values = bound.measured(batch) if bound.measured else batch.column(bound.columns[0])
        flags = self.followers(batch, which[bound.rejects](values, self.then))
        counted: int = pc.sum(pc.cast(pc.fill_null(flags, fill_value=False), pa.int64())).as_py() or 0
        return counted

    @property
    def own_languages(self) -> frozenset[str] | None:
        """The languages that have a bound of their own; None of a stage whose bound is for all."""
        languages = stage_card(self.measure.stage).languages
        return languages(asdict(self.params)).bounded if languages else None

    def followers(self, batch: pa.RecordBatch, flags: pa.BooleanArray) -> pa.BooleanArray:
        """Return the flags of rows that follow the bound, false for those of languages with one of their own."""
        if not self.own_languages:
            return flags
        own = pc.is_in(batch.column("language"), value_set=pa.array(sorted(self.own_languages)))
        return pc.and_(flags, pc.invert(own))


def stage_bounds(root: str, version: Version) -> list[StageBound]:
    """Return the bounds of a version's stages that can be predicted, by their manifests alone."""
    bounds: list[StageBound] = []
    for stage in filter(_has_bounds, stages_of(root, version)):
        bounds += _bounds_of(stage, _params(stage, read_manifest(root, version.manifests[stage]).params))
    return bounds


def _has_bounds(stage: str) -> bool:
    card = known_card(stage)
    return card is not None and card.bounds is not None


def _bounds_of(stage: str, params: object) -> list[StageBound]:
    bounds = stage_card(stage).bounds
    return [StageBound(stage, bound) for bound in bounds(params)] if bounds else []


def _params(stage: str, written: Mapping[str, Any], key: str = "") -> object:
    return bind(stage_card(stage), written, f"--set {key or stage}")


def stage_key(written: str, bounds: Iterable[StageBound]) -> str:
    """Return a key as the bounds have it, which may have other names in a recipe."""
    names = {f"{each.stage}.{name}": each.key for each in bounds for name in each.bound.aliases}
    return names.get(written.strip(), written.strip())


def is_of_stage(change: str, version: Version) -> bool:
    """Return whether a change, as `--set` writes it, is of a stage of this package or of a version.

    No other is looked up: who asks may write what they want. The bounds of `JUDGE` have names of their own.
    """
    stage, dot, _ = change.partition("=")[0].strip().partition(".")
    return bool(dot) and (is_own(stage) or stage in version.manifests) and stage not in (JUDGE, LAND, COMPOSE)


def stage_forecasts(root: str, version: Version, changes: Sequence[str], most: int = ALL) -> list[StageForecast]:
    """Return the effect of each change, written `stage.param=value`; of large stages about `most` rows are read.

    Each is of its bound alone; those of a stage whose bounds decide together come together besides, if there are
    several. RecipeError for a stage that the version does not have, what is no bound, and a bound that asks for rows
    whose measure is not stored.
    """
    by_stage: dict[str, list[tuple[str, str]]] = {}
    for change in changes:
        key, _, written = change.partition("=")
        by_stage.setdefault(key.strip().partition(".")[0], []).append((key.strip(), written.strip()))
    forecasts: list[StageForecast] = []
    for stage, written_bounds in by_stage.items():
        manifest, judged = _judged(root, version, stage, written_bounds)
        if redecide := stage_card(stage).redecide:
            forecasts += _of_all(root, manifest, judged, partial(redecide, judged[0].params), most)
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
    params = _params(stage, manifest.params)
    known = {bound.key: bound for bound in _bounds_of(stage, params)}
    judged = []
    for named, written in written_bounds:
        key = stage_key(named, known.values())
        if not known:
            message = f"--set {key}: the card of {stage} says of no param that it is a bound; run it as a trial"
            raise RecipeError(message)
        if key not in known:
            meant = ", ".join(near(key, known, 3))
            message = f"--set {key}: no stored measure says what it would keep; run it as a trial. Nearest are: {meant}"
            raise RecipeError(message)
        each = _Judged(known[key], params, _number(key, written))
        _require_valid(manifest, each)
        judged.append(each)
    return manifest, judged


def _require_valid(manifest: Manifest, judged: _Judged) -> None:
    """Raise RecipeError for a bound that a recipe could not have, and one that stored measures cannot decide."""
    stage, key, now, then = judged.measure.stage, judged.measure.key, judged.bound.now, judged.then
    group, _, name = judged.bound.param.partition(".")
    is_whole = typing.get_type_hints(type(judged.params)).get(group) is int
    value: Any = round(then) if is_whole and math.isfinite(then) else then
    value = {**getattr(judged.params, group), name: value} if name else value
    _params(stage, {**manifest.params, group: value}, key)
    side = judged.bound.side
    if (side == "higher" and then < now) or (side == "lower" and then > now):
        place, other = ("below", "lower") if then < now else ("above", "higher")
        message = (
            f"--set {key}={then:g}: rows that {stage} kept have no stored measure {place} {now:g}, so a "
            f"{other} bound cannot be predicted; run it as a trial"
        )
        raise RecipeError(message)


class _Count(NamedTuple):
    """Rows that bounds keep, and reject by each reason; exact if `is_whole`, else by a sample of shards."""

    kept: int
    rejected: Mapping[str, int]
    is_whole: bool


Redecide = Callable[[pa.RecordBatch, Sequence[Mapping[str, float]]], list[pa.Array]]
"""Returns the reason of each row by each of other bounds, null for one that is kept."""


def _of_all(
    root: str, manifest: Manifest, judged: Sequence[_Judged], redecide: Redecide, most: int
) -> list[StageForecast]:
    """Return the forecast of each bound of a stage alone and, if there are several, of all together."""
    stage = judged[0].measure.stage
    alone = [{each.bound.param: each.then} for each in judged]
    together = {each.bound.param: each.then for each in judged}
    columns = {name for each in _bounds_of(stage, judged[0].params) for name in each.bound.columns}
    counts = _recount(root, manifest, sorted(columns), redecide, [*alone, together], most)
    forecasts = []
    for each, count in zip(judged, counts, strict=False):
        reason = each.bound.reason
        rejected = manifest.rejected.get(reason, 0), count.rejected.get(reason, 0)
        bound, kept, is_exact = (each.bound.now, each.then), (manifest.rows, count.kept), count.is_whole
        forecasts.append(
            StageForecast(each.measure.key, bound, manifest.rows_due, kept, rejected, is_exact, each.bound.note)
        )
    if len(together) > 1:
        count = counts[-1]
        rejected = sum(manifest.rejected.values()), sum(count.rejected.values())
        kept = manifest.rows, count.kept
        forecasts.append(StageForecast(stage, None, manifest.rows_due, kept, rejected, count.is_whole, ""))
    return forecasts


def _recount(
    root: str,
    manifest: Manifest,
    columns: Sequence[str],
    redecide: Redecide,
    others: Sequence[Mapping[str, float]],
    most: int,
) -> list[_Count]:
    """Return what each of other bounds would keep and reject; of more than `most` rows whole shards are sampled."""
    tallies = [defaultdict[str | None, float](float) for _ in others]
    is_whole = True
    for shards, more in ((manifest.shards, ()), (manifest.rejects, ("reason", "evidence"))):
        sample, weight = sampled_shards(shards, most / max(manifest.rows_due, 1))
        is_whole = is_whole and len(sample) == len(shards)
        for batch in read_shards(root, sample, (*more, *columns)):
            for tally, reasons in zip(tallies, redecide(batch, others), strict=True):
                for counted in pc.value_counts(reasons).to_pylist():
                    tally[counted["values"]] += weight * counted["counts"]
    return [
        _Count(round(tally[None]), {why: round(rows) for why, rows in tally.items() if why}, is_whole)
        for tally in tallies
    ]


def _forecast(root: str, manifest: Manifest, judged: _Judged, most: int) -> StageForecast:
    bound = judged.bound
    back, is_sampled = _back(root, manifest, judged, most)
    gone, is_sampled_too = _gone(root, manifest, judged, most)
    rejected = manifest.rejected.get(bound.reason, 0)
    return StageForecast(
        key=judged.measure.key,
        bound=(bound.now, judged.then),
        rows_in=manifest.rows_due,
        kept=(manifest.rows, manifest.rows + back - gone),
        rejected=(rejected, rejected - back + gone),
        is_exact=bound.is_exact and not (is_sampled or is_sampled_too),
        note=bound.note,
    )


def _number(key: str, written: str) -> float:
    try:
        return float(written)
    except ValueError as error:
        message = f"--set {key}={written}: the bound must be a number"
        raise RecipeError(message) from error


def _back(root: str, manifest: Manifest, judged: _Judged, most: int) -> tuple[int, bool]:
    """Return how many rejected rows the other bound lets pass, and whether a sample says so."""
    reason = judged.bound.reason
    if not judged.is_looser or not manifest.rejected.get(reason):
        return 0, False
    shards, weight = sampled_shards(manifest.rejects, most / max(manifest.rows_due, 1))
    count = 0
    for batch in read_shards(root, shards, ["reason", "evidence", *judged.columns]):
        count += judged.count(batch.filter(pc.equal(batch.column("reason"), reason)), KEEPS)
    return round(count * weight), len(shards) < len(manifest.rejects)


def _gone(root: str, manifest: Manifest, judged: _Judged, most: int) -> tuple[int, bool]:
    """Return how many kept rows the other bound rejects, and whether a sample says so."""
    if not judged.bound.columns or not judged.is_stricter:
        return 0, False
    shards, weight = sampled_shards(manifest.shards, most / max(manifest.rows_due, 1))
    count = sum(judged.count(batch, REJECTS) for batch in read_shards(root, shards, judged.columns))
    return round(count * weight), len(shards) < len(manifest.shards)


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
