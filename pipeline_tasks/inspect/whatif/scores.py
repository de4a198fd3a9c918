"""Decides `score_quality` again for other bounds, from the scores that kept and rejected rows store."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.inspect.whatif import ALL, sampled_shards
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, LOW_QUALITY, Params, column_of
from pipeline_tasks.store.reading import read_shards

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreBounds:
    """The least score, and the least of each component that has a bound."""

    minimum: float
    minima: Mapping[str, float]


class Recount(NamedTuple):
    """Rows that other bounds keep, and reject by each reason; exact if `is_whole`, else by a sample of shards."""

    kept: int
    rejected: Mapping[str, int]
    is_whole: bool


class _Rows(NamedTuple):
    """Judged rows: their scores, stored components, and the bounds that they are known to be below or above."""

    score: Numbers
    components: Mapping[str, Numbers]
    below: Mapping[str, Mask]


def bounds_of(params: Params) -> ScoreBounds:
    """Return the bounds of the stage's params."""
    return ScoreBounds(params.minimum, params.bounds)


def recount(
    root: str, manifest: Manifest, params: Params, others: Sequence[ScoreBounds], most: int = ALL
) -> list[Recount]:
    """Return what each of the other bounds would keep and reject; of more than `most` rows whole shards are sampled.

    A bound that is looser than now needs rejected rows alone, whose evidence has every component. A stricter one needs
    a component that kept rows store, too (`column_of`); the caller refuses any other.
    """
    tallies = [dict.fromkeys(("", LOW_COMPONENT, LOW_QUALITY), 0.0) for _ in others]
    names = sorted({*params.bounds, *(name for other in others for name in other.minima)})
    columns = {name: column_of(params, name) for name in names}
    stored = sorted({column for column in columns.values() if column})
    is_whole = True
    for shards, more in ((manifest.shards, ()), (manifest.rejects, ("reason", "evidence"))):
        sample, weight = sampled_shards(shards, most / max(manifest.rows_in, 1))
        is_whole = is_whole and len(sample) == len(shards)
        for batch in read_shards(root, sample, (*more, "score", *stored)):
            rows = _rejected(batch, columns) if more else _kept(batch, columns)
            for tally, other in zip(tallies, others, strict=True):
                low, poor = _low(rows, params.bounds, other.minima), rows.score < other.minimum
                tally[LOW_COMPONENT] += weight * np.count_nonzero(low)
                tally[LOW_QUALITY] += weight * np.count_nonzero(poor & ~low)
                tally[""] += weight * np.count_nonzero(~poor & ~low)
    return [
        Recount(round(tally[""]), {name: round(count) for name, count in tally.items() if name}, is_whole)
        for tally in tallies
    ]


def _low(rows: _Rows, now: Mapping[str, float], then: Mapping[str, float]) -> Mask:
    """Return the rows below a bound of `then`: by what was decided if it is as now, else by the component."""
    low = np.zeros(len(rows.score), np.bool_)
    for name, bound in then.items():
        low |= rows.below[name] if now.get(name, 0.0) == bound else rows.components[name] < bound
    return low


def _kept(batch: pa.RecordBatch, columns: Mapping[str, str]) -> _Rows:
    """Return kept rows: they are below no bound, and a component that they do not store is above every looser one."""
    unknown = np.full(batch.num_rows, np.nan)
    components = {name: _numbers(batch.column(column)) if column else unknown for name, column in columns.items()}
    nothing = np.zeros(batch.num_rows, np.bool_)
    return _Rows(_numbers(batch.column("score")), components, dict.fromkeys(columns, nothing))


def _rejected(batch: pa.RecordBatch, columns: Mapping[str, str]) -> _Rows:
    """Return rejected rows: their evidence has the components that no column has, and the bounds that they failed."""
    evidence: list[dict[str, Any]] = [json.loads(written) for written in batch.column("evidence").to_pylist()]
    components = {
        name: _numbers(batch.column(column))
        if column
        else np.array([facts["components"].get(name, np.nan) for facts in evidence], np.float64)
        for name, column in columns.items()
    }
    below = {name: np.array([name in facts.get("below", ()) for facts in evidence], np.bool_) for name in columns}
    return _Rows(_numbers(batch.column("score")), components, below)


def _numbers(column: Any) -> Numbers:  # noqa: ANN401 -- an Arrow array
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
