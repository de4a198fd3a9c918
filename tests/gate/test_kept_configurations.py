"""Great Expectations makes each configuration once in a validation, and finds the same."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from refinery_gates import validation

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.suites import load_suite

RUN = "a run"


def facts_of(suite: list[Any]) -> dict[str, float | None]:
    """Return facts that meet half of the bounds."""
    return {bound["kwargs"]["column"]: float(rank % 2) for rank, bound in enumerate(suite)}


def found(suite: list[Any]) -> tuple[list[bool], str]:
    """Return what is found of each bound, and the page without its times."""
    results, page = validation.validate("extract", RUN, facts_of(suite), suite)
    return results, re.sub(r"\d{4}-\d\d-\d\dT?[ \d:.+Z]*", "", page)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the configurations that are made: each asks for the class's name in the form of a type."""
    from great_expectations.expectations import expectation

    made, plain = [0], expectation.ExpectationConfiguration

    def counting(*arguments: Any, **named: Any) -> Any:
        made[0] += 1
        return plain(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expectation, "ExpectationConfiguration", counting)
        yield made


def test_it_finds_the_same_with_a_configuration_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = [bound for bound in load_suite("extract") if not bound["learned"] and bound["kwargs"].get("column")]
    assert suite
    with counted() as made:
        kept = found(suite)
    once = made[0]
    monkeypatch.setattr(validation, "configurations_kept", nullcontext)
    with counted() as made:
        plain = found(suite)
    assert {*plain[0]} == {True, False}
    assert kept == plain
    assert once < made[0] / 5


def refused() -> None:
    with validation.configurations_kept():
        raise RecipeError


def test_great_expectations_is_left_as_it_was() -> None:
    from great_expectations.expectations.expectation import Expectation

    before = Expectation.configuration
    with validation.configurations_kept():
        assert Expectation.configuration is not before
    assert Expectation.configuration is before
    with pytest.raises(RecipeError):
        refused()
    assert Expectation.configuration is before
