"""Compares two scorers on the same texts: how far they agree, which languages shift, and which documents move."""

from typing import Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.scorers.scorer import Column
from refinery_models.measures import rank_correlation, ranks

MOVED = 0.25
"""Change of a document's place among all, from 0 to 1, from which on it has moved."""

NAMED = 10
"""Documents that are named, those that moved most."""


def compare(before: Column, after: Column, texts: pa.Table) -> dict[str, Any]:
    """Return how two scorers' scores of texts differ; places are ranks from 0 to 1 among the texts that both score."""
    known = np.flatnonzero(~np.isnan(before) & ~np.isnan(after))
    before, after, rows = before[known], after[known], texts.take(pa.array(known))
    places = _places(before), _places(after)
    moves = places[1] - places[0]
    languages = np.array(rows.column("language").to_pylist(), object)
    ids, sources = rows.column("id").to_pylist(), rows.column("source").to_pylist()
    order = sorted(range(len(moves)), key=lambda row: (-abs(moves[row]), ids[row]))[:NAMED]
    agreement = rank_correlation(before, after)
    return {
        "documents": len(known),
        "agreement": None if agreement is None else round(agreement, 6),
        "shift": _mean(after - before),
        "shift_by_language": {
            code: _mean((after - before)[languages == code]) for code in sorted(set(languages.tolist()))
        },
        "moved_share": _mean((np.abs(moves) >= MOVED).astype(np.float64)),
        "moved": [
            {
                "id": ids[row],
                "source": sources[row],
                "from": round(float(places[0][row]), 4),
                "to": round(float(places[1][row]), 4),
            }
            for row in order
        ],
    }


def _places(column: Column) -> Column:
    """Return where each value is among all, from 0 to 1."""
    return (ranks(column) - 0.5) / max(len(column), 1)


def _mean(column: Column) -> float:
    return round(float(column.mean()), 6) if len(column) else 0.0
