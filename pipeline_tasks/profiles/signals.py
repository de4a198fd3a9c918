"""Profiles columns of signals by language: histograms that add up exactly, and their quantiles for a manifest.

A column of signals is a struct of numbers of at least 0, such as `filter_quality` stores for each profile of rules.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.manifest import total
from pipeline_tasks.profiles.bins import octave_bins, octave_end

PREFIX = "signals_"
"""What the names of columns of signals begin with."""

SIGNALS = "signals"
"""Key of the quantiles in a manifest's metrics: `kept`, and `read` for kept and rejected rows together."""

SHARES = (0.0, 0.05, 0.25, 0.45, 0.5, 0.55, 0.75, 0.95, 1.0)
"""Shares of the rows whose quantiles a manifest has; those beside .5 say how sure the median is."""

ABOVE = "+"
"""Stands for a value above 0, however small, in the keys of a histogram."""

LARGEST = 8
"""Languages whose quantiles a manifest has, the most frequent ones, besides those of all rows."""

ALL = "*"
"""Stands for all languages."""

LINEAR = 100
"""Up to 1, bins are hundredths; above, they are an eighth of an octave of hundredths."""

MOST = 1e12
"""Values above are counted as this one."""

Quantiles = Mapping[str, Mapping[str, Sequence[float]]]
"""Signal (`gopher_quality.words`) -> language -> count of rows, of those above 0, and the quantiles of SHARES."""

pc: Any = pyarrow.compute


def signal_profiles(batch: pa.RecordBatch | pa.Table, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a profile for each signal of columns of structs, its bins by language and value: `en 45` is .45 to .46.

    `en +` counts the values above 0. Nulls and NaN, which say that a row has no signal, are not counted. Rows without a
    language count as `und`.
    """
    structs = [name for name in names if name in batch.schema.names and _is_struct(batch.schema.field(name).type)]
    if not structs or "language" not in batch.schema.names:
        return {}
    languages = pc.fill_null(_whole(batch, "language"), "und").dictionary_encode()
    codes, labels = languages.indices.to_numpy(), languages.dictionary.to_pylist()
    columns = {name: _whole(batch, name) for name in structs}
    return {
        f"{name}.{field.name}": _profile(values, codes, labels)
        for name, column in columns.items()
        for field, values in zip(column.type, column.flatten(), strict=True)
    }


def _is_struct(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind))


def _whole(batch: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = batch.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _profile(column: pa.Array, codes: npt.NDArray[np.int64], labels: Sequence[str]) -> dict[str, Any]:
    values = pc.fill_null(column, np.nan).to_numpy(zero_copy_only=False)
    known = ~np.isnan(values)
    found, counts = np.unique(np.stack([codes[known], _bins(values[known])]), axis=1, return_counts=True)
    bins = {f"{labels[code]} {low}": int(count) for (code, low), count in zip(found.T.tolist(), counts, strict=True)}
    positive, counts = np.unique(codes[known & (values > 0)], return_counts=True)
    bins |= {f"{labels[code]} {ABOVE}": int(count) for code, count in zip(positive.tolist(), counts, strict=True)}
    return {"kind": "name", "count": int(known.sum()), "bins": dict(sorted(bins.items()))}


def _bins(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the lower bound of each value's bin, in hundredths."""
    hundredths = np.floor(np.clip(values, 0, MOST) * 100 + 1e-9).astype(np.int64)
    bounds: np.ndarray[Any, Any] = np.where(
        hundredths <= LINEAR, hundredths, np.maximum(octave_bins(hundredths), LINEAR)
    )
    return bounds


def bin_end(low: float) -> float:
    """Return the least value above the bin that begins at `low`."""
    hundredths = round(low * 100)
    return (hundredths + 1 if hundredths < LINEAR else octave_end(hundredths) + 1) / 100


# --- Quantiles --------------------------------------------------------------------------------------------------------


def with_quantiles(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's metrics with the quantiles of signals in place of their histograms.

    A few kilobytes per profile of rules, whatever the rows and languages. Metrics without signals are as they were.
    """
    kept, rejects = ({name: metrics[rows][name] for name in metrics[rows] if _is_signal(name)} for rows in _ROWS)
    if not (kept or rejects):
        return dict(metrics)
    plain = {rows: {name: of for name, of in metrics[rows].items() if not _is_signal(name)} for rows in _ROWS}
    names = sorted({*kept, *rejects})
    sides = {"kept": kept, "read": {name: _added(kept.get(name), rejects.get(name)) for name in names}}
    largest = _largest(sides["read"])
    quantiles = {
        side: {name.removeprefix(PREFIX): _quantiles(of["bins"], largest) for name, of in profiles.items()}
        for side, profiles in sides.items()
    }
    return {**metrics, **plain, SIGNALS: quantiles}


_ROWS = ("kept", "rejects")


def _is_signal(name: str) -> bool:
    return name.startswith(PREFIX) and "." in name


def _added(*profiles: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"bins": total(profile["bins"] for profile in profiles if profile)}


def _largest(profiles: Mapping[str, Any]) -> list[str]:
    """Return the most frequent languages, by the signal that most rows have; of equal counts, the first names."""
    counts: dict[str, int] = {}
    for profile in profiles.values():
        for language, bins in _by_language(profile["bins"]).items():
            counts[language] = max(counts.get(language, 0), _rows(bins))
    return sorted(counts, key=lambda code: (-counts[code], code))[:LARGEST]


def _by_language(bins: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the counts of each language by what follows it in the keys."""
    languages: dict[str, dict[str, int]] = {}
    for key, count in bins.items():
        language, _, low = key.partition(" ")
        languages.setdefault(language, {})[low] = count
    return languages


def _rows(bins: Mapping[str, int]) -> int:
    return sum(count for low, count in bins.items() if low != ABOVE)


def _quantiles(bins: Mapping[str, int], languages: Sequence[str]) -> dict[str, list[float]]:
    """Return the counts and the quantiles of all rows, and of the languages that have some."""
    every = _by_language(bins)
    named = {ALL: total(every.values())} | {code: every[code] for code in languages if code in every}
    return {name: _of(counts) for name, counts in named.items() if _rows(counts)}


def _of(bins: Mapping[str, int]) -> list[float]:
    lows = np.array(sorted(int(low) for low in bins if low != ABOVE))
    ends = np.cumsum([bins[str(low)] for low in lows.tolist()])
    ranks = np.maximum(np.ceil(np.array(SHARES) * ends[-1]), 1)
    return [int(ends[-1]), bins.get(ABOVE, 0), *(lows[np.searchsorted(ends, ranks)] / 100).tolist()]


def quantiles_of(metrics: Mapping[str, Any], side: str = "kept") -> Quantiles:
    """Return the quantiles of a manifest's metrics; none where it has no signals."""
    quantiles: Quantiles = metrics.get(SIGNALS, {}).get(side, {})
    return quantiles


def value_at(stored: Sequence[float], share: float) -> float:
    """Return the value below which a share of the rows lies, between two that are stored by their line."""
    return float(np.interp(share, SHARES, stored[2:]))


def share_above(stored: Sequence[float]) -> float:
    """Return the share of the rows whose value is above 0."""
    return stored[1] / stored[0]
