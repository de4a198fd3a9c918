"""The form of a run gives engines and reasons by choice, as JSON does, and refuses what is half filled in."""

from typing import Any

import pytest

from pipeline_tasks.errors import RecipeError


@pytest.mark.parametrize(
    ("params", "engines", "overrides"),
    [
        ({}, {}, {}),
        ({"engine": "as in the recipe", "accept": None, "reason": None, "engines": {}, "override": {}}, {}, {}),
        ({"engine": "ray"}, {"*": "ray"}, {}),
        ({"engine": "ray", "engines": {"ingest": "spark"}}, {"*": "ray", "ingest": "spark"}, {}),
        ({"accept": ["extract", "publish"], "reason": " a forum "}, {}, {"extract": "a forum", "publish": "a forum"}),
        (
            {"accept": ["extract"], "reason": "a", "override": {"ingest": "b"}},
            {},
            {"extract": "a", "ingest": "b"},
        ),
    ],
)
def test_choices_and_json_give_the_same(params: Any, engines: dict[str, str], overrides: dict[str, str]) -> None:
    from refinery_airflow.runs.form import engines_of, overrides_of

    assert engines_of(params) == engines
    assert overrides_of(params) == overrides


def test_a_gate_is_not_accepted_without_a_reason_nor_a_reason_given_for_none() -> None:
    from refinery_airflow.runs.form import overrides_of

    with pytest.raises(RecipeError, match=r"extract, publish .*`reason`"):
        overrides_of({"accept": ["extract", "publish"], "reason": "  "})
    with pytest.raises(RecipeError, match=r"'a forum' .*`accept`"):
        overrides_of({"accept": [], "reason": "a forum"})


def test_every_default_is_what_the_form_accepts() -> None:
    """An empty text that was required kept the form of the web UI from starting a run with its defaults."""
    from refinery_airflow.runs.form import params_of_runs

    params = params_of_runs(["extract", "publish"])
    assert params.keys() >= {"accept", "reason", "override"}
    for param in params.values():
        param.resolve()
    assert [name for name, param in params.items() if (param.schema.get("type"), param.value) == ("string", "")] == []
