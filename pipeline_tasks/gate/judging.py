"""Judges expectations by the intervals of facts: met, violated, or undecided because the rows are too few."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from math import inf, isfinite
from typing import Literal

from pipeline_tasks import seams
from pipeline_tasks.constraints import OMITTED
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.estimates import Estimate, Facts
from pipeline_tasks.gate.learning import MEDIAN, USED
from pipeline_tasks.gate.suites import Expectation

SEAM = "refinery.judges"
"""The seam of judges: each is a function that returns a `Comparison`, or None where what it needs is not installed."""

INTERVALS = "intervals"
"""The name of our own judge, which needs nothing: plain comparisons."""

Numbers = Mapping[str, float | None]
"""Facts, and the ends of their intervals, by name."""

Finding = Literal["met", "undecided", "violated"]

FINDINGS: tuple[Finding, ...] = ("violated", "undecided", "met")
"""What may be found of a bound, the worst first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that was not met: the observed value and the allowed limits, as numbers only.

    Of a fact that is no count of all there is, `low` to `high` is the interval that its `rows` leave (None: no limit).
    `origin` is where the bound is written: a suite's file, or the recipe. A learned bound is around the `median` of so
    many `snapshots`. `why` is what a violation usually means, and `remedy` what to do then.

    An expectation over another `batch` than the facts has its batch, type and columns as `column`; `examples` are ids
    of rows that do not meet it, and `observed` is their share, or what else its type observes. Those of a fact are what
    the fact names.
    """

    expectation: str
    column: str
    observed: float | None
    bound: Mapping[str, float]
    severity: str
    why: str
    rows: int = 0
    low: float | None = None
    high: float | None = None
    origin: str = ""
    median: float | None = None
    snapshots: int = 0
    remedy: str = ""
    batch: str = field(default="", metadata={OMITTED: ""})
    examples: tuple[str, ...] = field(default=(), metadata={OMITTED: ()})


ENDS = {"min_value": "at most", "max_value": "at least"}
"""The end of an interval that must break a limit: below a minimum even the highest possible value is."""

BIN_ENDS = {"min_value": "end of its bin", "max_value": "start of its bin"}
"""The end of a histogram's bin that must break a limit, as the value lies anywhere between them."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """An expectation, the estimate that it bounds, and what was found.

    A bound is violated if the whole interval is outside, and undecided if only the value is. A value inside is no
    evidence against the bound, however few its rows are.
    """

    expectation: Expectation
    estimate: Estimate
    finding: Finding


Judged = Mapping[Finding, Iterable[Failure]]
"""Bounds by what was found of each, in the order in which they are listed."""

Render = Callable[[str, Iterable[str], Judged], bytes]
"""Returns the page of a gate: by its title, lines of text, and all bounds."""

Comparison = Callable[[str, str, Numbers, list[Expectation]], tuple[list[bool], Render | None]]
"""Compares numbers with bounds, for a gate and a run: whether each bound is met, and what renders the page, if any."""


def judge_facts(
    stage: str, run: str, facts: Facts, expectations: Sequence[Expectation]
) -> tuple[list[Judgment], Render | None]:
    """Judge facts that have values by the judge that is here; return the judgments, and what renders its page."""
    _, compare = judge_here()
    return _judged(facts, expectations, partial(compare, stage, run))


def compare_facts(facts: Facts, expectations: Sequence[Expectation]) -> tuple[list[Judgment], Render | None]:
    """As `judge_facts`, by our own judge, which gives the same; without a page."""
    return _judged(facts, expectations, partial(_compared, "", ""))


@cache
def judge_here() -> tuple[str, Comparison]:
    """Return the judge that is installed, with its name: one of another package, else of an extension, else ours."""
    for part in sorted(seams.all_parts(SEAM, [INTERVALS]).values(), key=lambda part: not part.distribution):
        brought: Callable[[], Comparison | None] = part.load()
        if compare := brought():
            return part.name, partial(_checked, part, compare) if part.distribution else compare
    return INTERVALS, _compared


def _checked(
    part: seams.Part, compare: Comparison, stage: str, run: str, numbers: Numbers, expectations: list[Expectation]
) -> tuple[list[bool], Render | None]:
    """Compare by a judge of another package; RecipeError names it if it raises, or answers no truth of each bound."""
    try:
        results, render = compare(stage, run, numbers, expectations)
    except Exception as error:  # whatever somebody else's code raises
        message = f"{SEAM}: {part}, which cannot judge: {type(error).__name__}: {error}; repair or uninstall it"
        raise RecipeError(message) from error
    if len(results) != len(expectations) or not all(isinstance(result, bool) for result in results):
        message = f"{SEAM}: {part}, which does not say of each bound whether it is met; repair or uninstall it"
        raise RecipeError(message)
    return results, render


def _compared(_stage: str, _run: str, numbers: Numbers, expectations: list[Expectation]) -> tuple[list[bool], None]:
    return [_is_met(numbers, expectation) for expectation in expectations], None


def _is_met(numbers: Numbers, expectation: Expectation) -> bool:
    kwargs = expectation["kwargs"]
    value, low, high = numbers[kwargs["column"]], kwargs.get("min_value"), kwargs.get("max_value")
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _judged(
    facts: Facts,
    expectations: Sequence[Expectation],
    compare: Callable[[Numbers, list[Expectation]], tuple[list[bool], Render | None]],
) -> tuple[list[Judgment], Render | None]:
    probes = [_probes(expectation, _estimate(facts, expectation)) for expectation in expectations]
    asked = [probe for group in probes for probe in (*group.value, *group.interval)]
    results, render = compare(_numbers(facts), asked)
    answers = iter(results)
    judgments = []
    for expectation, group in zip(expectations, probes, strict=True):
        value, ends = ([next(answers) for _ in part] for part in (group.value, group.interval))
        judgments.append(_judgment(expectation, _estimate(facts, expectation), value, ends))
    return judgments, render


def _estimate(facts: Facts, expectation: Expectation) -> Estimate:
    estimate = facts[expectation["kwargs"]["column"]]
    assert estimate is not None, "only expectations on facts with a value are judged"
    if expectation["learned"]:  # its band has room for what the rows leave open, and its median is of like bins
        return replace(estimate, low=estimate.value, high=estimate.value, bin=None)
    return estimate


@dataclass(frozen=True, slots=True)
class _Probes:
    """What a judge is asked of a bound: on the value, or the ends of its bin; then on the interval's."""

    value: list[Expectation]
    interval: list[Expectation]


def _probes(expectation: Expectation, estimate: Estimate) -> _Probes:
    value = [expectation] if estimate.bin is None else _on_ends(expectation, estimate, BIN_ENDS)
    return _Probes(value, [] if estimate.exact else _on_ends(expectation, estimate, ENDS))


def _on_ends(expectation: Expectation, estimate: Estimate, names: Mapping[str, str]) -> list[Expectation]:
    """Return each limit of an expectation as one on the end, of an interval or a bin, that must break it."""
    kwargs, ends = expectation["kwargs"], _ends(estimate, names)
    return [
        {**expectation, "kwargs": {"column": f"{kwargs['column']}, {name}", limit: kwargs[limit]}}
        for limit, name in names.items()
        if kwargs.get(limit) is not None and abs(ends[limit]) < inf
    ]


def _ends(estimate: Estimate, names: Mapping[str, str]) -> Mapping[str, float]:
    """Return the end, of an interval or a bin, that a limit is compared with."""
    low, high = (estimate.least, estimate.most) if names is BIN_ENDS else (estimate.low, estimate.high)
    return {"min_value": high, "max_value": low}


def _numbers(facts: Facts) -> dict[str, float | None]:
    """Return the values of facts, and the ends of the intervals and bins of those that have some."""
    numbers = {name: estimate.value if estimate else None for name, estimate in facts.items()}
    for fact, estimate in facts.items():
        if estimate and not estimate.exact:
            numbers |= {f"{fact}, {ENDS[limit]}": end for limit, end in _ends(estimate, ENDS).items()}
        if estimate and estimate.bin:
            numbers |= {f"{fact}, {BIN_ENDS[limit]}": end for limit, end in _ends(estimate, BIN_ENDS).items()}
    return numbers


def _judgment(expectation: Expectation, estimate: Estimate, value: Sequence[bool], ends: Sequence[bool]) -> Judgment:
    """Return what follows from the answers on the value and, if it has an interval, on the ends of that."""
    if all(value):
        return Judgment(expectation, estimate, "met")
    undecided = not estimate.exact and all(ends)
    return Judgment(expectation, estimate, "undecided" if undecided else "violated")


# --- As numbers --------------------------------------------------------------------------------------------------


def failures_of(judgments: Iterable[Judgment], finding: Finding) -> tuple[Failure, ...]:
    """Return the judgments with one finding as they are stored."""
    return tuple(_failure(judgment) for judgment in judgments if judgment.finding == finding)


def _failure(judgment: Judgment) -> Failure:
    expectation, estimate = judgment.expectation, judgment.estimate
    kwargs = {key: value for key, value in expectation["kwargs"].items() if value is not None}
    column = str(kwargs.pop("column"))
    low, high, _ = interval_of(estimate) or (None, None, 0)
    return Failure(
        expectation=expectation["type"],
        column=column,
        observed=rounded(estimate.value),
        bound=kwargs,
        severity=expectation["severity"],
        why=expectation["notes"],
        rows=estimate.rows,
        low=low,
        high=high,
        origin=expectation["origin"],
        median=expectation["learned"].get(MEDIAN),
        snapshots=expectation["learned"].get(USED, 0),
        remedy=expectation["remedy"],
        examples=estimate.examples,
    )


def interval_of(estimate: Estimate | None) -> tuple[float | None, float | None, int] | None:
    """Return the interval of a fact as JSON has it (None: no limit), and its rows; None for one that is exact."""
    if estimate is None or estimate.exact:
        return None
    return rounded(estimate.low), rounded(estimate.high), estimate.rows


def rounded(value: float) -> float | None:
    """Return a number with six digits after the point; None if it is infinite."""
    return round(value, 6) if isfinite(value) else None
