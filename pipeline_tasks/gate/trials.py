"""Takes the bounds on the size of a snapshot out of a trial's gates, with what follows from it: a sample is smaller."""

from collections.abc import Mapping

from pipeline_tasks.gate.suites import Bounds
from pipeline_tasks.recipe import PUBLISH

_NO_LIMITS = {"min_value": None, "max_value": None}

OF_SIZE: Mapping[str, Bounds] = {
    "ingest": {"rows_in": {"trailing": None}, "rows_in_change": _NO_LIMITS},
    "mix": {"n_tokens_sum_change": _NO_LIMITS},
    PUBLISH: {"record_retention": {"trailing": None}},  # a sample has fewer copies of its own documents
}
"""Gate -> its bounds that compare amounts with whole snapshots, switched off."""


def trial_bounds(gate: str, bounds: Bounds) -> Bounds:
    """Return a recipe's bounds of a gate for a trial: those on shares, means and distributions stay."""
    return {**bounds, **OF_SIZE.get(gate, {})}
