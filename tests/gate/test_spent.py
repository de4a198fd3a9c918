"""A budget that gates: what a snapshot has cost is bounded by a recipe or an operator's suite, and refuses between stages."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.alerts.spending import spent_up_to
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.gate.batch_expectations import FOLDER
from pipeline_tasks.gate.checks import check_bounds, gate_names
from pipeline_tasks.gate.facts.spent import SPENT
from pipeline_tasks.gate.suites import is_open, load_suite
from pipeline_tasks.gate.verdicts import Verdict, judged_again, read_verdict
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.recipe import EVERY, parse_recipe
from pipeline_tasks.service.requests.gates import JudgeRequest
from pipeline_tasks.service.work.gates import judge
from tests.gate.samples import healthy, stored

DAY = "2026-11-20"


def record(root: Path, stage: str, hours: float, day: str = DAY) -> str:
    """Commit the manifest of a healthy stage, and record that it took so many hours of a core; return its path."""
    path = stored(root, healthy(stage))
    with Ledger.open(ledger_of(str(root))) as ledger:
        ledger.record_stage(path, healthy(stage), snapshot=day, recipe="web", wall=1800.0 * hours, cpu=3600.0 * hours)
    return path


def asked(root: Path, path: str, bounds: Mapping[str, Any], **kwargs: Any) -> Verdict:
    reply = judge(JudgeRequest(str(root), path, bounds=bounds, recipe="web", snapshot=DAY, **kwargs))
    return read_verdict(str(root), reply["verdict"])


def test_a_stage_with_which_the_budget_is_passed_is_refused_and_a_person_accepts_it(tmp_path: Path) -> None:
    first, second = (record(tmp_path, stage, 40) for stage in ("filter_url", "filter_quality"))
    record(tmp_path, "filter_url", 1000, day="2026-11-19")
    budget = {"spent_usd": {"max_value": 3.5}}  # an hour of a core costs 5 cents
    before, verdict = asked(tmp_path, first, budget), asked(tmp_path, second, budget)
    assert (before.outcome, before.facts["spent_usd"]) == ("pass", 2)
    (failure,) = verdict.failures
    assert (verdict.outcome, failure.column, failure.observed, failure.bound) == (
        "refuse",
        "spent_usd",
        4,
        {"max_value": 3.5},
    )
    assert "accept it once" in failure.remedy
    assert asked(tmp_path, second, budget, override="the crawl has grown").outcome == "warn"
    record(tmp_path, "filter_quality", 99)
    assert judged_again(str(tmp_path), verdict) == verdict
    shown = {fact.fact: fact.value for fact in bounded_facts("none", {"filter_quality": verdict})}
    assert shown["spent_usd"] == 4


def test_what_nobody_bounds_is_in_no_verdict(tmp_path: Path) -> None:
    """The same rows have the same verdict on any machine; a suite that only has the bound ready changes nothing."""
    path = record(tmp_path, "filter_url", 40)
    verdict = asked(tmp_path, path, {})
    assert {verdict.facts[name] for name in SPENT.meanings} == {None}
    assert not [reason for reason in verdict.skipped if reason.startswith("spent_")]
    record(tmp_path, "filter_url", 80)
    assert asked(tmp_path, path, {}) == verdict


def test_each_amount_is_bounded_by_the_sum_of_the_stages(tmp_path: Path) -> None:
    record(tmp_path, "filter_url", 2)
    path = record(tmp_path, "filter_quality", 4)
    with Ledger.open(ledger_of(str(tmp_path))) as ledger:
        spent = spent_up_to(ledger, "web", DAY, "filter_quality")
        assert spent == {"spent_usd": 0.3, "spent_hours": 3, "spent_cpu_hours": 6, "spent_gpu_hours": 0}
        assert spent_up_to(ledger, "web", DAY, "pack") == spent_up_to(ledger, "", "", "filter_url") == {}
    assert spent.keys() == SPENT.meanings.keys()
    assert spent.keys() == {bound["kwargs"]["column"] for bound in load_suite(EVERY) if is_open(bound)}
    for name, limit, outcome in (
        ("spent_hours", 3, "pass"),
        ("spent_hours", 2.9, "refuse"),
        ("spent_cpu_hours", 5.9, "refuse"),
        ("spent_gpu_hours", 0, "pass"),
    ):
        assert asked(tmp_path, path, {name: {"max_value": limit}}).outcome == outcome
    assert asked(tmp_path, path, {"spent_hours": {"warning": {"max_value": 2}}}).outcome == "warn"


def test_a_suite_of_the_operator_is_a_budget_of_all_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = record(tmp_path / "root", "filter_url", 40)
    folder = tmp_path / "team"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    bound = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "spent_usd", "max_value": 1}}
    (folder / "every_stage.json").write_text(json.dumps({"name": "budget", "expectations": [bound]}))
    assert asked(tmp_path / "root", path, {}).outcome == "refuse"
    bound = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "spent_usd", "value_set": [1]}}
    suite = {"name": "budget", "expectations": [bound], "meta": {"batch": "facts"}}
    (folder / "every_stage.json").write_text(json.dumps(suite))
    assert asked(tmp_path / "root", path, {}).outcome == "refuse"


def test_bounds_of_every_stage_are_those_of_each_that_has_none_of_its_own() -> None:
    raw: dict[str, dict[str, Any]] = {
        "stages": {"ingest": {}, "extract": {}, "filter_language": {}},
        "gates": {
            EVERY: {"spent_usd": {"max_value": 40}, "rows": {"max_value": 10**9}},
            "extract": {"rows": {"max_value": 10}, "retention": {"min_value": 0.5}},
            "publish": {"documents": {"min_value": 7}},
        },
    }
    recipe = parse_recipe(raw, "r.yaml")
    assert recipe.gates == {
        **dict.fromkeys(("ingest", "filter_language"), raw["gates"][EVERY]),
        "extract": {"spent_usd": {"max_value": 40}, **raw["gates"]["extract"]},
        "publish": {"documents": {"min_value": 7}},
    }
    check_bounds(recipe)
    assert EVERY not in gate_names(recipe), "nobody overrides all gates at once"


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"spent_usd": {"max_value": -1}}, "of at least 0"),
        ({"spent_us": {"max_value": 1}}, "'spent_usd'"),
        ({"chars_p50": {"min_value": 1}}, "gates: ingest: there is no fact 'chars_p50'"),
    ],
)
def test_a_bound_of_every_stage_that_one_cannot_have_is_refused(bounds: Mapping[str, Any], said: str) -> None:
    raw = {"stages": {"ingest": {}, "extract": {}}, "gates": {EVERY: bounds}}
    with pytest.raises(RecipeError) as refused:
        check_bounds(parse_recipe(raw, "r.yaml"))
    assert said in str(refused.value)
