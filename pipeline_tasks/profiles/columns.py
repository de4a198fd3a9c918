"""Profiles columns of a table into whole numbers that add up exactly: counts, sums and histograms."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.profiles.bins import octave_bins
from pipeline_tasks.profiles.file_types import type_profile
from pipeline_tasks.profiles.origins import origin_profile
from pipeline_tasks.profiles.removals import derived, with_sites
from pipeline_tasks.profiles.signals import signal_profiles
from pipeline_tasks.profiles.sums import sums


def profile(batch: pa.RecordBatch | pa.Table, columns: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Profile `columns` of a table into whole numbers that `merge` adds up exactly.

    Whole numbers: count, sum, and a histogram keyed by the lower bound of bins that are 1/8 of an
    octave wide; fractions: a histogram by hundredths; strings: counts by value. Nulls are not counted.
    Packed bytes are not profiled: an intermediate column may have the name of the number that it becomes.
    Names of `removals.DERIVED` and `sums.SUMS` are profiled, too, and of structs each field
    (`signals.signal_profiles`). Types of files are counted wherever rows have them (`file_types`), and the origins of
    rejected rows by their reason (`origins`).
    """
    names = tuple(columns)
    present = [name for name in names if name in batch.schema.names]
    packed = [name for name in present if _is_packed(batch.schema.field(name).type)]
    packed += [name for name in present if pa.types.is_struct(batch.schema.field(name).type)]
    measured = {name: batch.column(name) for name in present if name not in packed} | derived(batch, names)
    return {name: _profile_column(column) for name, column in measured.items()} | (
        sums(with_sites(batch, names), names)
        | signal_profiles(batch, present)
        | type_profile(batch)
        | origin_profile(batch)
    )


def _is_packed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _profile_column(column: pa.Array | pa.ChunkedArray) -> dict[str, Any]:
    values = column.drop_null()
    if pa.types.is_integer(column.type):
        whole = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
        return {"kind": "whole", "count": len(whole), "sum": int(whole.sum()), "bins": _count(octave_bins(whole))}
    if pa.types.is_floating(column.type):
        ratio = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
        bins = np.floor(np.clip(np.nan_to_num(ratio), -1e6, 1e6) * 100 + 1e-9).astype(np.int64)
        return {"kind": "ratio", "count": len(ratio), "bins": _count(bins)}
    counted = pc.value_counts(values)
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    return {"kind": "name", "count": len(values), "bins": {str(value): count for value, count in pairs}}


def _count(bins: "np.ndarray[Any, Any]") -> dict[str, int]:
    values, counts = np.unique(bins, return_counts=True)
    return {str(int(value)): int(count) for value, count in zip(values, counts, strict=True)}
