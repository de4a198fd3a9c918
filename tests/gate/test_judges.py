"""Who compares facts with bounds changes no verdict: judges of extensions and our own say the same of every suite."""

from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from pipeline_tasks import seams
from pipeline_tasks.gate import judging
from pipeline_tasks.gate.estimates import Estimate
from pipeline_tasks.gate.judging import INTERVALS, SEAM, compare_facts, judge_facts, judge_here
from pipeline_tasks.gate.suites import EXPECTATIONS, LIMITS, Expectation, load_suite
from pipeline_tasks.gate.verdicts import judged_again, read_verdict
from tests.gate.samples import healthy, judged, kept

SUITES = sorted(path.stem for path in EXPECTATIONS.glob("*.json"))


@pytest.fixture
def unassisted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No extension brings a judge."""
    monkeypatch.setattr(seams, "own_parts", lambda _: {})
    judge_here.cache_clear()
    yield
    judge_here.cache_clear()


def planted(expectation: Expectation) -> Iterator[Estimate]:
    """Yield facts at, just beside and far beyond each limit of a bound: exact, by few rows, and read from a bin."""
    limits = [expectation["kwargs"][limit] for limit in LIMITS if expectation["kwargs"].get(limit) is not None]
    for limit in limits or [0.5]:
        for value in (limit, limit - 1e-9, limit + 1e-9, limit - 0.3, limit + 0.3):
            yield Estimate(value, value, value)
            yield Estimate(value, value - 0.2, value + 0.2, rows=30)
            yield Estimate(value, value - 0.2, inf, rows=40, bin=(value - 0.1, value + 0.1))


def with_limits(name: str) -> list[Expectation]:
    """Return the bounds of a suite; one that is learned has a band, as if it had been."""
    return [
        {**each, "kwargs": {**each["kwargs"], **({"min_value": 0.4, "max_value": 0.6} if each["learned"] else {})}}
        for each in load_suite(name)
    ]


@pytest.mark.parametrize("name", seams.own_parts(SEAM))
@pytest.mark.parametrize("suite", SUITES)
def test_judges_say_the_same_of_every_bound_and_planted_fact(
    suite: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = seams.own_parts(SEAM)[name].load()()
    monkeypatch.setattr(judging, "judge_here", lambda: (name, compare))
    facts: dict[str, Estimate | None] = {}
    bounds = []
    for bound in with_limits(suite):
        for estimate in planted(bound):
            column = f"{bound['kwargs']['column']} {len(bounds)}"
            facts[column] = estimate
            bounds.append({**bound, "kwargs": {**bound["kwargs"], "column": column}})
    ours, none = compare_facts(facts, bounds)
    theirs, _ = judge_facts(suite, "a run", facts, bounds)
    assert theirs == ours
    assert none is None
    found = {each.finding for each in ours}
    assert found == {"met", "undecided", "violated"}


@pytest.mark.usefixtures("unassisted")
def test_without_an_extension_a_verdict_differs_in_its_judge_and_has_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = kept(healthy("filter_language"), 0.01)
    ours = judged(tmp_path, low)
    assert (ours.judge, ours.docs, ours.docs_digest, ours.page) == (INTERVALS, "", "", ours.path)
    assert read_verdict(str(tmp_path), ours.path) == ours
    assert judged_again(str(tmp_path), ours) == ours
    monkeypatch.undo()
    judge_here.cache_clear()
    theirs = judged(tmp_path, low)
    assert theirs.judge == "great_expectations"
    assert b"judge" not in (tmp_path / theirs.path).read_bytes()
    assert theirs.path != ours.path
    for name in ("outcome", "failures", "undecided", "facts", "intervals", "evaluated", "skipped"):
        assert getattr(theirs, name) == getattr(ours, name)
    assert judged_again(str(tmp_path), theirs) == theirs
