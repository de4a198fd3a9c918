"""Names groups of documents by what is stored of them: the values of a column, or bands of a number."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.nearest import near

pc: Any = pyarrow.compute

BANDS = 5
"""Bands of a column of fractions unless another number is named."""

MOST_BANDS = 100

FRACTIONS, WHOLE, WORDS = ("float", "double"), ("int", "uint"), ("string", "large_string", "bool")
"""Beginnings of the names of Arrow's types: of numbers that become bands, of numbers and of words that are values."""

PLACES = frozenset({"id", "snapshot", "file", "offset", "length", "record_id", "url", "crawled_at", "payload_digest"})
"""Columns of which hardly two documents have the same value."""

LONG = frozenset({"text", "title", "metadata"})
"""Columns that are no property of a document."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group documents: its name as it is written, the stored columns that it needs, and what it makes of them.

    `groups_of` gets a table of these columns with a row per document, all of a version, and returns the name of each
    document's group, null for a document in none.
    """

    name: str
    columns: tuple[str, ...]
    groups_of: Callable[[pa.Table], pa.Array]


def grouping(written: str, schema: Mapping[str, str]) -> Grouping:
    """Return the grouping that is written `COLUMN` or `COLUMN/BANDS`, of documents with these columns and Arrow types.

    A column of fractions has five bands, and any other its values. RecipeError for a column that there is not, or that
    groups nothing.
    """
    column, slash, count = written.strip().partition("/")
    known = groupable(schema)
    if column not in known:
        meant = ", ".join(near(column, known, 3)) or "none"
        message = f"--by {written}: documents have no column {column!r} that groups them; the nearest are {meant}"
        raise RecipeError(message)
    is_number = schema[column].startswith((*FRACTIONS, *WHOLE))
    if not slash and not schema[column].startswith(FRACTIONS):
        return Grouping(column, (column,), partial(_values, column))
    if not is_number or (slash and not (count.isdecimal() and 1 < int(count) <= MOST_BANDS)):
        message = f"--by {written}: write COLUMN/BANDS with 2 to {MOST_BANDS} bands of a column of numbers, or COLUMN"
        raise RecipeError(message)
    bands = int(count) if slash else BANDS
    return Grouping(f"{column}/{bands}", (column,), partial(_bands, column, bands))


def groupable(schema: Mapping[str, str]) -> list[str]:
    """Return the columns that may group documents: those of words and of numbers, but for places and texts."""
    kinds = (*FRACTIONS, *WHOLE, *WORDS)
    return [name for name, kind in schema.items() if kind.startswith(kinds) and name not in PLACES | LONG]


def _values(column: str, documents: pa.Table) -> pa.Array:
    return documents.column(column).cast(pa.string()).combine_chunks()


def _bands(column: str, bands: int, documents: pa.Table) -> pa.Array:
    """Return the band of each value, of about as many documents each: `1 of 5` is the lowest, equal ones in one."""
    values = documents.column(column).cast(pa.float64()).to_numpy()
    known = ~np.isnan(values)
    names = pa.array([f"{band} of {bands}" for band in range(1, bands + 1)])
    if not known.any():
        return pa.nulls(len(values), pa.string())
    edges = np.quantile(values[known], np.arange(1, bands) / bands)
    found = np.searchsorted(edges, values, "right")
    return names.take(pa.array(found, mask=~known))
