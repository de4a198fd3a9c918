"""Counts in which part of its shard the rows of each group are, so that a gate can tell a bad order from chance."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PARTS = 10
"""A shard's rows are counted by tenths of the shard."""

LARGEST = 15
"""Groups of a column that a manifest counts by themselves; the rows of all others are one more group."""

Counts = Mapping[str, Mapping[str, Sequence[int]]]
"""Column -> group -> rows in each tenth of one shard."""

_Codes = npt.NDArray[np.int64]


class SpreadCounter:
    """Counts the rows of one shard by group and tenth; `columns` that it does not have are left out.

    Groups are the values of a text, powers of two of a whole number, and tenths of a fraction (from -1 to 10).
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self._codes: dict[str, list[_Codes]] = {name: [] for name in columns}
        self._groups: dict[str, dict[str, int]] = {name: {} for name in self._codes}

    def add(self, rows: pa.RecordBatch) -> None:
        """Count the next rows of the shard."""
        for name, codes in self._codes.items():
            if name in rows.schema.names:
                values, at = _classes(rows.column(name))
                known = self._groups[name]
                numbers = [known.setdefault(value, len(known)) for value in values]
                codes.append(np.asarray(numbers, np.int64)[at])

    def counts(self) -> dict[str, dict[str, list[int]]]:
        """Return the rows of each group by tenth of the shard, which is complete."""
        return {name: self._counted(name, np.concatenate(codes)) for name, codes in self._codes.items() if codes}

    def _counted(self, name: str, codes: _Codes) -> dict[str, list[int]]:
        groups = self._groups[name]
        tenths = np.arange(len(codes)) * PARTS // max(len(codes), 1)
        table = np.bincount(codes * PARTS + tenths, minlength=len(groups) * PARTS).reshape(-1, PARTS)
        return {group: table[at].tolist() for group, at in sorted(groups.items())}


def _classes(column: pa.Array) -> tuple[list[str], _Codes]:
    """Return the groups that a column has, and the number of each row's; null is "" of texts, and 0 of numbers."""
    if pa.types.is_integer(column.type):
        bits = np.frexp(np.maximum(np.asarray(column.fill_null(0)), 0).astype(np.float64))[1]
        present, at = np.unique(bits, return_inverse=True)
        return [str(1 << int(exponent) >> 1) for exponent in present], at
    if pa.types.is_floating(column.type):
        values = np.clip(np.nan_to_num(np.asarray(column.fill_null(0))), -1, 10)
        present, at = np.unique(np.floor(values * 10).astype(np.int64), return_inverse=True)
        return [f"{tenth / 10:g}" for tenth in present], at
    encoded = column.fill_null("").dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices, dtype=np.int64)


def joined(shards: Sequence[Counts]) -> dict[str, dict[str, Any]]:
    """Return the counts of all shards, in order, as a manifest has them.

    Per column: the names of the `LARGEST` groups; rows by tenth (over all shards) and group; rows by shard and group,
    and those of them in the first half of their shard. The last number of each list is the rows of all other groups.
    """
    names = sorted({name for shard in shards for name in shard})
    return {name: _joined([shard.get(name, {}) for shard in shards]) for name in names}


def _joined(shards: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
    rows: Counter[str] = Counter()
    for shard in shards:
        rows.update({group: sum(tenths) for group, tenths in shard.items()})
    groups = sorted(sorted(rows), key=lambda group: -rows[group])[:LARGEST]
    at = {group: number for number, group in enumerate(groups)}
    table = np.zeros((len(shards), len(groups) + 1, PARTS), np.int64)
    for number, shard in enumerate(shards):
        for group, tenths in shard.items():
            table[number, at.get(group, len(groups))] += np.asarray(tenths, np.int64)
    return {
        "groups": groups,
        "tenths": table.sum(axis=0).T.tolist(),
        "shards": table.sum(axis=2).tolist(),
        "first_halves": table[:, :, : PARTS // 2].sum(axis=2).tolist(),
    }
