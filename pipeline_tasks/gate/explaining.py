"""Explains a verdict in short lines: each broken bound with what was seen, who set it, and what to do."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from pipeline_tasks.counted import counted
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.gate.suites import OWN, RECIPE

WIDTH = 100
INDENT = "    "
CHANGE = "Change it under `gates:` if it is wrong."


def explain(failures: Iterable[Failure], undecided: Sequence[Failure], notes: Iterable[str] = ()) -> list[str]:
    """Return the lines on every violated bound, one line on all that are undecided, and the notes."""
    lines = [line for failure in failures for line in _lines(failure)]
    return [*lines, *([_undecided(undecided)] if undecided else ()), *notes]


def notes_on(facts: Facts, failures: Iterable[Failure]) -> tuple[str, ...]:
    """Return a line for each fact that names what was found, and of which no bound is broken."""
    broken = {failure.column for failure in failures}
    named = ((name, each) for name, each in sorted(facts.items()) if each and each.examples and name not in broken)
    return tuple(f"note: {name} is {number(each.value)}: {', '.join(each.examples)}" for name, each in named)


def _lines(failure: Failure) -> Iterator[str]:
    yield f"{failure.severity}: {_seen(failure)}"
    if failure.examples:
        yield from wrap(
            f"such as {', '.join(failure.examples)}", WIDTH, initial_indent=INDENT, subsequent_indent=INDENT
        )
    elif failure.low is not None or failure.high is not None:
        yield INDENT + f"{counted(failure.rows, 'row')} leave {_interval(failure)} possible (99 % on each side)"
    elif failure.median is not None:
        yield INDENT + _learned(failure)
    elif failure.rows and not failure.batch:
        yield INDENT + f"of {counted(failure.rows, 'row')}"
    whose = "the recipe's bound" if failure.origin == RECIPE else f"bound of {failure.origin}" if failure.origin else ""
    note = note_of(failure)
    yield from wrap(f"{whose}: {note}" if whose else note, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)


def _seen(failure: Failure) -> str:
    if failure.batch and failure.observed is None:
        return f"{failure.column} is not met"
    if failure.batch and failure.rows:
        broken, most = round((failure.observed or 0) * failure.rows), failure.bound["max_value"]
        return f"{failure.column} is not met by {broken:,} of {counted(failure.rows, 'row')}; a share of {most:.6g} may"
    return f"{failure.column} is {number(failure.observed)}, and {allowed(failure)}"


def note_of(failure: Failure) -> str:
    """Return what a violation usually means and what to do; a recipe's own limits have no meaning but the recipe's."""
    own = failure.origin == RECIPE
    means = "" if own and failure.why == OWN else failure.why
    return " ".join(text for text in (means, failure.remedy, CHANGE if own else "") if text)


def _learned(failure: Failure) -> str:
    """Return what a learned bound is around."""
    median = number(failure.median)
    if failure.snapshots == 1:
        return f"learned from the previous snapshot, which has {median}"
    return f"learned from the last {failure.snapshots} published snapshots, whose median is {median}"


def _undecided(undecided: Sequence[Failure]) -> str:
    limits: dict[str, str] = {}
    for failure in undecided:
        limits.setdefault(f"{failure.column} {number(failure.observed)}", _limit(failure))
    most = max(failure.rows for failure in undecided)
    named = ", ".join(f"{fact} ({limit})" for fact, limit in limits.items())
    return f"undecided, as {counted(most, 'row')} are too few: {named}"


def _limit(failure: Failure) -> str:
    """Return the limit that the value itself is beyond."""
    low = failure.bound.get("min_value")
    is_low = low is not None and failure.observed is not None and failure.observed < low
    return f"at least {low:.6g}" if is_low else f"at most {failure.bound['max_value']:.6g}"


def allowed(failure: Failure) -> str:
    """Return what a bound allows: at least, at most, or both; what has no limits is met or not."""
    names = (("min_value", "at least"), ("max_value", "at most"))
    limits = [f"{name} {failure.bound[key]:.6g}" for key, name in names if key in failure.bound]
    return f"must be {' and '.join(limits) or 'met'}"


def _interval(failure: Failure) -> str:
    if failure.low is None:
        return f"at most {number(failure.high)}"
    if failure.high is None:
        return f"at least {number(failure.low)}"
    return f"{number(failure.low)} to {number(failure.high)}"


def number(value: float | None) -> str:
    """Return a number with six digits."""
    return "unknown" if value is None else f"{value:.6g}"
