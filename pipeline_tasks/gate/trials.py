"""Takes the bounds on the size of a snapshot out of a trial's gates: a sample cannot meet them."""

from collections.abc import Mapping

from pipeline_tasks.gate.suites import Bounds

_NO_LIMITS = {"min_value": None, "max_value": None}

OF_SIZE: Mapping[str, Bounds] = {
    "ingest": {"rows_in": {"trailing": None}, "rows_in_change": _NO_LIMITS},
    "mix": {"n_tokens_sum_change": _NO_LIMITS},
}
"""Stage -> its bounds that compare amounts with whole snapshots, switched off."""


def trial_bounds(stage: str, bounds: Bounds) -> Bounds:
    """Return a recipe's bounds of a stage for a trial: those on shares, means and distributions stay."""
    return {**bounds, **OF_SIZE.get(stage, {})}
