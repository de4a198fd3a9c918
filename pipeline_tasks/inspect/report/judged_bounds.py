"""Gives the bounds that verdicts judged, with the values: those in force then, or only those that a verdict names."""

from collections.abc import Container, Iterable, Iterator, Mapping

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.checks import bounded
from pipeline_tasks.gate.suites import SOURCES, Bounds
from pipeline_tasks.gate.verdicts import Verdict, asked_of
from pipeline_tasks.plots.room import BoundedFact
from pipeline_tasks.recipe import load_recipe


def bounded_facts(recipe: str, verdicts: Mapping[str, Verdict]) -> list[BoundedFact]:
    """Return every bound of a snapshot's gates with the value of its fact.

    A verdict's path is the digest of the suites and bounds that it was judged by. Where this installation has others,
    only the bounds that the verdict itself names are known: those that were broken or undecided.
    """
    gates = _bounds_of(recipe)
    return [fact for gate, verdict in verdicts.items() for fact in _facts(verdict, gates.get(gate, {}))]


def _bounds_of(recipe: str) -> Mapping[str, Bounds]:
    """Return the bounds of a recipe; none if this installation has no such recipe."""
    try:
        return load_recipe(recipe).gates
    except RecipeError:
        return {}


def _facts(verdict: Verdict, bounds: Bounds) -> Iterator[BoundedFact]:
    named = list(_named(verdict))
    yield from named
    broken = {(fact.fact, fact.severity) for fact in named}
    yield from _learned(verdict, broken)
    if verdict.path.split("/")[-2] != asked_of(verdict, bounds).digest():
        return
    skipped = " ".join(reason for reason in verdict.skipped if not reason.startswith(SOURCES))
    for expectation in bounded(verdict.stage, bounds, dict.fromkeys(verdict.facts)):
        limits, fact = expectation["kwargs"], expectation["kwargs"]["column"]
        value, severity = verdict.facts.get(fact), expectation["severity"]
        if value is None or (fact, severity) in broken or fact in skipped or expectation["learned"]:
            continue
        least, most = limits.get("min_value"), limits.get("max_value")
        yield BoundedFact(verdict.stage, fact, value, least, most, severity, "met", expectation["notes"])


def _learned(verdict: Verdict, broken: Container[tuple[str, str]]) -> Iterator[BoundedFact]:
    """Yield the learned bounds of a verdict that are not broken."""
    for bound in verdict.learned:
        if (bound.fact, bound.severity) not in broken:
            limits = (bound.min_value, bound.max_value, bound.severity, "met", bound.why)
            yield BoundedFact(verdict.stage, bound.fact, bound.value, *limits)


def _named(verdict: Verdict) -> Iterable[BoundedFact]:
    """Yield the bounds that a verdict names, with what was found of each."""
    for finding, failures in (("violated", verdict.failures), ("undecided", verdict.undecided)):
        for failure in failures:
            if failure.observed is not None:
                least, most = failure.bound.get("min_value"), failure.bound.get("max_value")
                limits = (least, most, failure.severity, finding, failure.why)
                yield BoundedFact(verdict.stage, failure.column, failure.observed, *limits)
