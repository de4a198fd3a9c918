"""Reads scores and components again from what kept and rejected rows store, to decide them by other bounds."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]


class Stored(NamedTuple):
    """Judged rows: their scores, stored components, and the bounds that they are known to be below or above."""

    score: Numbers
    components: Mapping[str, Numbers]
    below: Mapping[str, Mask]

    def low(self, now: Mapping[str, float], then: Mapping[str, float]) -> Mask:
        """Return the rows below a bound of `then`: as was decided if it is as now, else by the component."""
        low = np.zeros(len(self.score), np.bool_)
        for name, bound in then.items():
            low |= self.below[name] if now[name] == bound else self.components[name] < bound
        return low


def stored(batch: pa.RecordBatch, columns: Mapping[str, str]) -> Stored:
    """Return rows by the column of each component, "" for one that only evidence has; rejected rows have evidence."""
    return _rejected(batch, columns) if "evidence" in batch.schema.names else _kept(batch, columns)


def _kept(batch: pa.RecordBatch, columns: Mapping[str, str]) -> Stored:
    """Return kept rows: they are below no bound, and a component that they do not store is above every looser one."""
    unknown = np.full(batch.num_rows, np.nan)
    components = {name: numbers(batch.column(column)) if column else unknown for name, column in columns.items()}
    nothing = np.zeros(batch.num_rows, np.bool_)
    return Stored(numbers(batch.column("score")), components, dict.fromkeys(columns, nothing))


def _rejected(batch: pa.RecordBatch, columns: Mapping[str, str]) -> Stored:
    """Return rejected rows: their evidence has the components that no column has, and the bounds that they failed."""
    evidence: list[dict[str, Any]] = [json.loads(written) for written in batch.column("evidence").to_pylist()]
    components = {
        name: numbers(batch.column(column))
        if column
        else np.array([facts["components"].get(name, np.nan) for facts in evidence], np.float64)
        for name, column in columns.items()
    }
    below = {name: np.array([name in facts.get("below", ()) for facts in evidence], np.bool_) for name in columns}
    return Stored(numbers(batch.column("score")), components, below)


def numbers(column: pa.Array) -> Numbers:
    """Return a column as floats, NaN for null."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
