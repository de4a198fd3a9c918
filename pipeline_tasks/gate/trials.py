"""Takes the bounds on the size of a snapshot out of a trial's gates, with what follows from it: a sample is smaller."""

from pipeline_tasks.gate.checks import suites_of
from pipeline_tasks.gate.suites import LIMITS, Bounds


def trial_bounds(gate: str, bounds: Bounds) -> Bounds:
    """Return a recipe's bounds of a gate for a trial: those on shares, means and distributions stay.

    Those that its suites mark `of_size` are switched off: they compare with whole snapshots.
    """
    of_size = (each for each in suites_of(gate) if each["of_size"])
    return {**bounds, **{each["kwargs"]["column"]: _off(each["learned"]) for each in of_size}}


def _off(learned: Bounds) -> Bounds:
    """Return what switches a bound off: one that is learned, or limits."""
    return {learned["from"]: None} if learned else dict.fromkeys(LIMITS)
