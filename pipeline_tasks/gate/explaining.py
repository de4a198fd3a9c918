"""Explains a verdict in short lines: each broken bound with what was seen, of how many rows, and who set the bound."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from pipeline_tasks.counted import counted
from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.gate.suites import RECIPE

WIDTH = 100
INDENT = "    "


def explain(failures: Iterable[Failure], undecided: Sequence[Failure]) -> list[str]:
    """Return the lines on every violated bound, and one line on all that are undecided."""
    lines = [line for failure in failures for line in _lines(failure)]
    return [*lines, _undecided(undecided)] if undecided else lines


def _lines(failure: Failure) -> Iterator[str]:
    yield f"{failure.severity}: {failure.column} is {_number(failure.observed)}, and {_allowed(failure)}"
    if failure.low is not None or failure.high is not None:
        yield INDENT + f"{counted(failure.rows, 'row')} leave {_interval(failure)} possible (99 % on each side)"
    elif failure.median is not None:
        yield INDENT + _learned(failure)
    elif failure.rows:
        yield INDENT + f"of {counted(failure.rows, 'row')}"
    whose = "the recipe's bound" if failure.origin == RECIPE else f"bound of {failure.origin}" if failure.origin else ""
    why = failure.why if failure.origin != RECIPE else "change it under `gates:` if it is wrong."
    yield from wrap(f"{whose}: {why}" if whose else why, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)


def _learned(failure: Failure) -> str:
    """Return what a learned bound is around."""
    median = _number(failure.median)
    if failure.snapshots == 1:
        return f"learned from the previous snapshot, which has {median}"
    return f"learned from the last {failure.snapshots} published snapshots, whose median is {median}"


def _undecided(undecided: Sequence[Failure]) -> str:
    facts = dict.fromkeys(f"{failure.column} {_number(failure.observed)}" for failure in undecided)
    most = max(failure.rows for failure in undecided)
    return f"undecided, as {counted(most, 'row')} are too few: {', '.join(facts)}"


def _allowed(failure: Failure) -> str:
    names = (("min_value", "at least"), ("max_value", "at most"))
    limits = [f"{name} {failure.bound[key]:.6g}" for key, name in names if key in failure.bound]
    return f"must be {' and '.join(limits)}"


def _interval(failure: Failure) -> str:
    if failure.low is None:
        return f"at most {_number(failure.high)}"
    if failure.high is None:
        return f"at least {_number(failure.low)}"
    return f"{_number(failure.low)} to {_number(failure.high)}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"
