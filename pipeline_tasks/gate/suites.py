"""Reads suites of expectations, and replaces their bounds by a recipe's."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.subject import Facts

EXPECTATIONS = Path(__file__).parents[2] / "expectations"
"""Suites in Great Expectations' own JSON: `every_stage`, and one suite per stage, of the stage's name."""

EVERY = "every_stage"

OPEN = ("reason_share.", "language_share.", "language_retention.")
"""Facts whose names depend on the reasons and languages of a snapshot; a bound on an absent one is skipped."""

LIMITS = ("min_value", "max_value")
SEVERITIES = ("critical", "warning")

Expectation = dict[str, Any]
"""One expectation: `type`, `kwargs` with the column and its limits, `severity`, `notes` (why) and `needs`.

`needs` (fact -> least value) says when the expectation can be judged: shares of a dozen rows mean nothing, so
distributions need 100 rows unless a suite has other needs.
"""

Bounds = Mapping[str, Any]
"""A recipe's `gates: <stage>:`: fact -> changed bounds, e.g. `{"retention": {"min_value": 0.1}}`.

They (`min_value`, `max_value`, null for no limit) replace those of every expectation of that fact; under
`critical:` or `warning:` only those of that severity. A fact that the suites do not bound becomes an
expectation of its own, critical unless the recipe gives another severity. `needs:` replaces the suites' own.
"""


def load_suite(name: str) -> list[Expectation]:
    """Return a suite's expectations; `needs` is that of the expectation's meta, or else of the suite's."""
    path = EXPECTATIONS / f"{name}.json"
    try:
        suite = json.loads(path.read_text(encoding="utf-8"))
        needs = suite.get("meta", {}).get("needs", {})
        return [_expectation(raw, needs) for raw in suite["expectations"]]
    except (OSError, ValueError, KeyError) as error:
        message = f"{path} is not a suite of expectations ({error}); restore it from the repository"
        raise RecipeError(message) from error


def _expectation(raw: Mapping[str, Any], needs: Mapping[str, float]) -> Expectation:
    return {
        "type": raw["type"],
        "kwargs": dict(raw["kwargs"]),
        "severity": raw["severity"],
        "notes": raw["notes"],
        "needs": raw.get("meta", {}).get("needs", needs),
    }


def apply_bounds(expectations: Iterable[Expectation], bounds: Bounds, facts: Facts) -> list[Expectation]:
    """Return the expectations with a recipe's bounds in place of theirs, and new ones for facts that had none.

    RecipeError for bounds that are not limits, or of a fact that does not exist.
    """
    needs = bounds.get("needs")
    changes = {fact: _checked(fact, changed) for fact, changed in bounds.items() if fact != "needs"}
    changed = [
        {
            **expectation,
            "kwargs": {
                **expectation["kwargs"],
                **_limits(changes.get(expectation["kwargs"]["column"], {}), expectation["severity"]),
            },
            "needs": expectation["needs"] if needs is None else needs,
        }
        for expectation in expectations
    ]
    bounded = {expectation["kwargs"]["column"] for expectation in changed}
    for fact in changes.keys() - bounded:
        _require_known(fact, bounded | facts.keys())
    new = [(fact, change) for fact, change in sorted(changes.items()) if fact not in bounded]
    return changed + [
        _added(fact, _limits(change, severity), severity) for fact, change in new for severity in _severities(change)
    ]


def _limits(change: Mapping[str, Any], severity: str) -> dict[str, Any]:
    """Return the limits of a change for one severity."""
    common = {key: value for key, value in change.items() if key not in SEVERITIES}
    return {**common, **change.get(severity, {})}


def _severities(change: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(severity for severity in SEVERITIES if severity in change) or ("critical",)


def _added(fact: str, limits: Mapping[str, Any], severity: str) -> Expectation:
    return {
        "type": "expect_column_max_to_be_between",
        "kwargs": {"column": fact, **limits},
        "severity": severity,
        "notes": "A bound of the recipe.",
        "needs": {},
    }


def _checked(fact: str, change: object, known: tuple[str, ...] = (*LIMITS, *SEVERITIES)) -> Mapping[str, Any]:
    """Return a fact's changed bounds; RecipeError unless they are limits, or limits by severity."""
    if not isinstance(change, Mapping) or not change.keys() <= set(known):
        message = f"gates: {fact} must be a mapping of {', '.join(known)}, not {change!r}"
        raise RecipeError(message)
    for key, value in change.items():
        if key in SEVERITIES:
            _checked(f"{fact}: {key}", value, LIMITS)
        elif not isinstance(value, int | float | None):
            message = f"gates: {fact}: {key} must be a number (or null for no limit), not {value!r}"
            raise RecipeError(message)
    return change


def _require_known(fact: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if fact not in names and not fact.startswith(OPEN):
        nearest = get_close_matches(fact, names, n=1, cutoff=0)
        message = f"gates: there is no fact {fact!r} to bound; the nearest is {nearest[0]!r}"
        raise RecipeError(message)


def split_judgeable(expectations: Iterable[Expectation], facts: Facts) -> tuple[list[Expectation], tuple[str, ...]]:
    """Return the expectations that can be judged, and for each of the others the reason why it cannot."""
    judgeable, skipped = [], []
    for expectation in expectations:
        column, needs = expectation["kwargs"]["column"], expectation["needs"]
        unmet = [f"{fact} >= {least}" for fact, least in needs.items() if (facts.get(fact) or 0) < least]
        if facts.get(column) is None:
            skipped.append(f"{column}: the fact has no value")
        elif unmet:
            skipped.append(f"{column}: needs {', '.join(unmet)}")
        else:
            judgeable.append(expectation)
    return judgeable, tuple(skipped)
