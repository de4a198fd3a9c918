"""Reads suites of expectations, and replaces their bounds by a recipe's."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.estimates import Facts
from pipeline_tasks.nearest import near
from pipeline_tasks.shipped import shipped

EXPECTATIONS = shipped("expectations")
"""Suites in Great Expectations' own JSON: `every_stage`, and one suite per stage, of the stage's name."""

FACTS = "facts"
"""The batch of an expectation that names none: one row, of the facts of a manifest."""

BOUND = "expect_column_max_to_be_between"
"""The type of an expectation that bounds a fact: the one that is judged by intervals, and that a recipe changes."""

OPEN = (
    "reason_share.error:",
    "language_share.",
    "language_retention.",
    "document_type_share.",
    "reading_level_share.",
    "license_notice_share.",
    "topic_share.",
    "score_mean.",
    "signal_p50.*",
    "language_signal_p50.",
    "canary_recall.",
)
"""Facts whose names depend on the damage, languages, types, topics and signals of a snapshot.

A bound on an absent one is skipped.
"""

SPANS = (
    (re.compile(r"(.+_)?(share|retention|loss|fill|similarity|recall)(_max|_min|_p\d\d)?(\..+)?"), (0.0, 1.0)),
    (re.compile(r".+_(shard|position)_(gap|drift)|.+_ks|site_(rise|coverage_fall)_max"), (0.0, 1.0)),
    (re.compile(r".+_change"), (-1.0, inf)),
    (re.compile(r".+_psi|rows.*|records|new_pages|documents|bytes.*|rejected|quarantined|spent_.+"), (0.0, inf)),
)
"""The least and the most that facts can be, by their names; other facts may be any number."""

LIMITS = ("min_value", "max_value")
SEVERITIES = ("critical", "warning")

PREVIOUS = "previous"
SNAPSHOTS = 7
"""Trailing snapshots that a bound is learned from: a week of days, so that weekends are among them."""

ENOUGH = 3
"""Snapshots that a median of trailing ones needs: one bad day among them does not decide it."""

TRAILING = "trailing"

SOURCES = (PREVIOUS, TRAILING)
"""What a bound is learned from: the previous snapshot, or the median of the trailing ones."""

RULE = ("floor", "least")
"""What a learned bound says of its band: at least this share of the median, and this much in the fact's own unit."""

Expectation = dict[str, Any]
"""One expectation: `type`, `kwargs` with the column and its limits, `severity`, and what follows.

`notes` say what a violation usually means, and `remedy` what to do then. A bound that is learned has no limits in its
suite: `learned` says `from` what, and its band (`RULE`); it is empty for other bounds.

`needs` (fact -> least value) says what the bound is about, such as crawls of many sites; few rows alone are no reason
not to judge. `origin` is the suite's file, or the recipe where it changed the bound. `of_size` says that a trial, which
is a sample of a snapshot, would break the bound by being one: of amounts, and of shares that grow with them.
"""

RECIPE = "the recipe"
"""The origin of a bound under `gates:`."""

OWN = "A bound of the recipe, under `gates:`."
"""What a bound of the recipe means: the suite's note is about the suite's limits. What to do stays the same."""

Bounds = Mapping[str, Any]
"""A recipe's `gates: <stage>:`: fact -> changed bounds, e.g. `{"retention": {"min_value": 0.1}}`.

They (`min_value`, `max_value`, null for no limit) replace those of every expectation of that fact; under
`critical:` or `warning:` only those of that severity. A fact that the suites do not bound becomes an
expectation of its own, critical unless the recipe gives another severity. `needs:` replaces the suites' own.
Under `previous:` or `trailing:` are the band and severity of the learned bound; null switches it off.
"""


def load_suite(name: str) -> list[Expectation]:
    """Return the expectations of one of our own suites."""
    return suite_at(EXPECTATIONS / f"{name}.json")


def suite_at(path: Path) -> list[Expectation]:
    """Return a suite's bounds on facts; `needs` is that of the expectation's meta, or else of the suite's."""
    suite = read_suite(path)
    needs = suite["meta"].get("needs", {})
    return [_expectation(raw, needs, origin_of(path)) for raw in suite["expectations"] if is_bound(raw, suite)]


def read_suite(path: Path) -> Mapping[str, Any]:
    """Return a suite in Great Expectations' own JSON, each expectation with its meta; RecipeError for another file.

    A file is read once, until it changes: each gate asks for its suites several times. Nobody changes what is returned.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise _no_suite(path, error) from error
    return _read_suite(path, (stat.st_mtime_ns, stat.st_size, stat.st_ino))


@lru_cache(maxsize=256)
def _read_suite(path: Path, _state: tuple[int, int, int]) -> Mapping[str, Any]:
    """Return the suite that a file has in a state of it."""
    try:
        suite = json.loads(path.read_text(encoding="utf-8"))
        listed = [{**raw, "meta": dict(raw.get("meta") or {})} for raw in suite["expectations"]]
        return {**suite, "meta": dict(suite.get("meta") or {}), "expectations": listed}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _no_suite(path, error) from error


def _no_suite(path: Path, why: Exception) -> RecipeError:
    return RecipeError(
        f"{path} is not a suite of expectations ({why}); restore it from where it was installed, or correct it"
    )


def origin_of(path: Path) -> str:
    """Return a suite's file as messages name it."""
    return f"{path.parent.name}/{path.name}"


def batch_of(raw: Mapping[str, Any], suite: Mapping[str, Any]) -> str:
    """Return the batch that an expectation is over: that of its meta, or else of the suite's."""
    return str(raw["meta"].get("batch", suite["meta"].get("batch", FACTS)))


def is_bound(raw: Mapping[str, Any], suite: Mapping[str, Any]) -> bool:
    """Return whether an expectation of a suite bounds a fact; any other is over a batch as it is."""
    kwargs = raw.get("kwargs")
    is_over_facts = raw.get("type") == BOUND and batch_of(raw, suite) == FACTS
    return is_over_facts and isinstance(kwargs, Mapping) and "column" in kwargs and kwargs.keys() <= {"column", *LIMITS}


def _expectation(raw: Mapping[str, Any], needs: Mapping[str, float], origin: str) -> Expectation:
    return {
        "type": raw["type"],
        "kwargs": dict(raw["kwargs"]),
        "severity": raw.get("severity", SEVERITIES[0]),
        "notes": raw.get("notes") or "",
        "remedy": raw["meta"].get("remedy", ""),
        "needs": raw["meta"].get("needs", needs),
        "origin": origin,
        "learned": learned_from(raw["meta"]),
        "of_size": raw["meta"].get("of_size", False),
    }


def is_open(expectation: Expectation) -> bool:
    """Return whether a bound waits for the limits that a recipe gives it: it says what a violation of them means."""
    return not expectation["learned"] and expectation["kwargs"].keys() == {"column"}


def check_bound(expectation: Expectation, facts: Facts) -> None:
    """Raise RecipeError unless a bound of a suite that a team brings has limits or a band, of a fact that there is."""
    limits = {name: value for name, value in expectation["kwargs"].items() if name != "column"}
    learned = {name: value for name, value in expectation["learned"].items() if name != "from"}
    rules = {expectation["learned"]["from"]: learned} if expectation["learned"] else {}
    _require_known(expectation["kwargs"]["column"], facts)
    _checked(expectation["kwargs"]["column"], {**limits, **rules})
    _checked_needs(expectation["needs"], facts)


def learned_from(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the meta of an expectation says about learning its bound, empty for a bound with limits."""
    return next(({"from": source, **meta[source]} for source in SOURCES if source in meta), {})


def apply_bounds(expectations: Iterable[Expectation], bounds: Bounds, facts: Facts) -> list[Expectation]:
    """Return the expectations with a recipe's bounds in place of theirs, and new ones for facts that had none.

    RecipeError for bounds that are not limits, or of a fact that does not exist.
    """
    needs = bounds.get("needs")
    changes = {fact: _checked(fact, changed) for fact, changed in bounds.items() if fact != "needs"}
    if needs is not None:
        _checked_needs(needs, facts.keys())
    suites = list(expectations)
    limited = {(*_bound(expectation), limit) for expectation in suites for limit in expectation["kwargs"]}
    changed = [_changed(expectation, changes, needs, limited) for expectation in suites]
    bounded = {_bound(expectation) for expectation in changed}
    columns = {column for column, *_ in bounded}
    remedies = {expectation["kwargs"]["column"]: expectation["remedy"] for expectation in suites}
    for fact in changes.keys() - columns:
        _require_known(fact, columns | facts.keys())
    new = [
        added
        for fact, change in sorted(changes.items())
        for added in _added(fact, change, any(column == fact and not source for column, source, _ in bounded), remedies)
        if _bound(added) not in bounded
    ]
    return [expectation for expectation in changed + new if expectation["learned"] is not None]


def _bound(expectation: Expectation) -> tuple[str, str, str]:
    """Return what an expectation bounds: a fact, by what it is learned from, "" for limits, and these by severity.

    A recipe's limits for a severity that the suite does not have are an expectation of their own.
    """
    source = _source(expectation)
    return expectation["kwargs"]["column"], source, "" if source else expectation["severity"]


def _source(expectation: Expectation) -> str:
    """Return what an expectation is learned from, "" for one with limits."""
    return str((expectation["learned"] or {}).get("from", ""))


def _changed(
    expectation: Expectation,
    changes: Mapping[str, Any],
    needs: Mapping[str, float] | None,
    limited: Collection[tuple[str, str, str, str]],
) -> Expectation:
    """Return an expectation with what a recipe says of its fact in place of its own.

    `limited` are the bounds of all suites, each with its limit: where another expectation has a limit, this one does
    not take it.
    """
    change, source = changes.get(expectation["kwargs"]["column"], {}), _source(expectation)
    elsewhere = {limit for *bound, limit in limited if tuple(bound) == _bound(expectation)} - {*expectation["kwargs"]}
    own = _relearned(expectation, change.get(source, {})) if source else _limited(expectation, change, elsewhere)
    return {**expectation, **own, "needs": expectation["needs"] if needs is None else needs}


def _limited(expectation: Expectation, change: Mapping[str, Any], elsewhere: Collection[str]) -> Mapping[str, Any]:
    """Return the fields of an expectation that a recipe's limits for its severity replace."""
    limits = {key: value for key, value in _limits(change, expectation["severity"]).items() if key not in elsewhere}
    return {"kwargs": {**expectation["kwargs"], **limits}, "notes": OWN, "origin": RECIPE} if limits else {}


def _limits(change: Mapping[str, Any], severity: str) -> dict[str, Any]:
    """Return the limits of a change for one severity."""
    common = {key: value for key, value in change.items() if key in LIMITS}
    return {**common, **change.get(severity, {})}


def _relearned(expectation: Expectation, rule: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the fields of a learned expectation that a recipe's rule replaces; it is off where that is null."""
    if rule is None:
        return {"learned": None}
    band = {key: value for key, value in rule.items() if key in RULE}
    severity = rule.get("severity", expectation["severity"])
    return {"learned": {**expectation["learned"], **band}, "severity": severity, "origin": RECIPE} if rule else {}


def _severities(change: Mapping[str, Any], is_bounded: bool) -> tuple[str, ...]:
    named = tuple(severity for severity in SEVERITIES if severity in change)
    return named or (("critical",) if change.keys() & set(LIMITS) and not is_bounded else ())


def _added(
    fact: str, change: Mapping[str, Any], is_bounded: bool, remedies: Mapping[str, str]
) -> Iterator[Expectation]:
    """Yield the expectations that a recipe makes of a fact: with limits, by severity, and learned ones.

    Limits without a severity replace those of a suite where it has some (`is_bounded`), and add none. What to do is
    what a suite says of the fact.
    """
    own = {"type": BOUND, "notes": OWN, "remedy": remedies.get(fact, ""), "needs": {}, "origin": RECIPE}
    for severity in _severities(change, is_bounded):
        limits = {"column": fact, **_limits(change, severity)}
        yield {**own, "kwargs": limits, "severity": severity, "learned": {}}
    for source in SOURCES:
        rule = change.get(source)
        if rule is not None:
            learned = {"from": source, **{key: value for key, value in rule.items() if key in RULE}}
            severity = rule.get("severity", "warning")
            yield {**own, "kwargs": {"column": fact}, "severity": severity, "learned": learned}


def _checked(fact: str, change: object, known: tuple[str, ...] = (*LIMITS, *SEVERITIES, *SOURCES)) -> Mapping[str, Any]:
    """Return a fact's changed bounds; RecipeError unless they are limits, limits by severity, or rules of learning."""
    if not isinstance(change, Mapping) or not change.keys() <= set(known):
        message = f"gates: {fact} must be a mapping of {', '.join(known)}, not {change!r}"
        raise RecipeError(message)
    for key, value in change.items():
        if key in SOURCES:
            _check_rule(f"gates: {fact}: {key}", value)
        elif key in SEVERITIES:
            _checked(f"{fact}: {key}", value, LIMITS)
        elif value is not None:
            _check_limit(fact.partition(":")[0], f"gates: {fact}: {key}", value)
    if not change:
        message = f"gates: {fact} names no limit; write {' or '.join(LIMITS)}, or remove it"
        raise RecipeError(message)
    low, high = (change.get(key) for key in LIMITS)
    if low is not None and high is not None and low > high:
        message = f"gates: {fact}: min_value {low} is above max_value {high}, so that no value passes"
        raise RecipeError(message)
    return change


def _check_rule(where: str, rule: object) -> None:
    """Raise RecipeError unless a recipe says of a learned bound what it may: a band, a severity, or null."""
    if rule is None:
        return
    if not isinstance(rule, Mapping) or not rule or not rule.keys() <= {*RULE, "severity"}:
        message = f"{where} must be null, or a mapping of {', '.join((*RULE, 'severity'))}, not {rule!r}"
        raise RecipeError(message)
    if rule.get("severity", SEVERITIES[0]) not in SEVERITIES:
        message = f"{where}: severity must be {' or '.join(SEVERITIES)}, not {rule['severity']!r}"
        raise RecipeError(message)
    for key in rule.keys() & set(RULE):
        if not _is_number(rule[key]) or rule[key] < 0:
            message = f"{where}: {key} must be a number of at least 0, not {rule[key]!r}"
            raise RecipeError(message)


def _check_limit(fact: str, where: str, value: object) -> None:
    """Raise RecipeError unless a limit is a number that the fact may be: any other never decides, or always."""
    least, most = next((span for pattern, span in SPANS if pattern.fullmatch(fact)), (-inf, inf))
    if not _is_number(value) or not least <= float(str(value)) <= most:
        span = "" if least == -inf else f" from {least:g} to {most:g}" if most < inf else f" of at least {least:g}"
        message = f"{where} must be a number{span} (or null for no limit), not {value!r}"
        raise RecipeError(message)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _checked_needs(needs: object, known: Iterable[str]) -> None:
    """Refuse `needs` of a recipe that are not facts with numbers."""
    if not isinstance(needs, Mapping) or not all(_is_number(least) for least in needs.values()):
        message = f"gates: needs must be a mapping of facts to least values, not {needs!r}"
        raise RecipeError(message)
    for fact in needs:
        _require_known(str(fact), known)


def _require_known(fact: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if fact not in names and not fact.startswith(OPEN):
        message = (
            f"gates: there is no fact {fact!r} to bound; the nearest are {', '.join(map(repr, near(fact, names, 3)))}"
        )
        raise RecipeError(message)


def split_judgeable(expectations: Iterable[Expectation], facts: Facts) -> tuple[list[Expectation], tuple[str, ...]]:
    """Return the expectations that can be judged, and for each of the others the reason why it cannot."""
    judgeable, skipped = [], []
    for expectation in expectations:
        column, unmet = expectation["kwargs"]["column"], unmet_needs(expectation["needs"], facts)
        if facts.get(column) is None:
            skipped.append(f"{column}: {_absence(column, facts)}")
        elif unmet:
            skipped.append(f"{column}: {unmet}")
        else:
            judgeable.append(expectation)
    return judgeable, tuple(skipped)


def unmet_needs(needs: Mapping[str, float], facts: Facts) -> str:
    """Return which facts have not reached what an expectation needs, "" if all have."""
    unmet = [f"{fact} >= {least}" for fact, least in needs.items() if _value(facts, fact) < least]
    return f"needs {', '.join(unmet)}" if unmet else ""


def _value(facts: Facts, fact: str) -> float:
    estimate = facts.get(fact)
    return estimate.value if estimate else 0.0


def _absence(column: str, facts: Facts) -> str:
    """Return why a fact has no value."""
    if column == "site_rise_max":
        return "not enough history"
    if column.endswith(("_change", "_psi", "_ks")) and facts.get("compared_rows") is None:
        return "no previous snapshot to compare with"
    if column == "reasons_psi":
        return "just one of the two was compared with other snapshots"
    if column.endswith("_loss_max"):
        return f"no {column.partition('_')[0]} has 1,000 documents"
    return "nothing to compute it from"
