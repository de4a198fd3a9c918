"""Which conditions raise an alert: each on a planted sample, and none on a healthy one."""

from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.alerts.backlog import backlog_alert, backlog_of, midnight
from pipeline_tasks.alerts.spending import spending_of
from pipeline_tasks.alerts.stages import Spending, partition_times, stage_alerts
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.ledger import Ledger
from pipeline_tasks.recipe import AlertLimits, load_recipe, parse_recipe
from tests.gate.samples import healthy

LIMITS = AlertLimits(budget=2.0)
HEALTHY: dict[str, Any] = {
    "rows_in": 10_000,
    "rows": 9_000,
    "rejected": {"extract:empty": 900},
    "quarantined": {"error:cut": 100},
    "wall": 800.0,
    "ran": 0,
    "times": asdict(partition_times([""] * 8, [{"wall": 100.0, "ran": 3}] * 8)),
}
USUAL = Spending(usd=1.5, before=0.5, paces=(0.08,) * 7)


def raised(refined: dict[str, Any], spending: Spending = USUAL, limits: AlertLimits = LIMITS) -> dict[str, Any]:
    return {alert.kind: alert for alert in stage_alerts(limits, "extract", {**HEALTHY, **refined}, spending)}


def test_a_healthy_stage_raises_nothing() -> None:
    assert raised({}) == {}
    assert raised({}, Spending()) == {}
    assert raised({"rows_in": 0, "rows": 0, "quarantined": {}, "rejected": {}}) == {}


def test_more_than_one_percent_of_errors_is_told_with_the_reasons() -> None:
    """One percent is what a healthy sample has."""
    alert = raised({"quarantined": {"error:cut": 60, "error:gzip": 41}})["error_rate"]
    assert alert.headline == "1.0% of the rows of extract could not be processed"
    assert alert.numbers == ("101 of 10,000 rows; the limit is 0.01 of all", "error:cut: 60", "error:gzip: 41")
    counted = raised({"rejected": {"extract:empty": 900, "error:timeout": 1}})["error_rate"]
    assert counted.numbers[0].startswith("101 of 10,000 rows")
    assert raised({"quarantined": {"error:cut": 101}}, limits=replace(LIMITS, error_rate=0.02)) == {}
    assert raised({"quarantined": {"error:cut": 101}, "offspring_in": 90_000}) == {}


def test_quarantined_partitions_are_told_with_their_errors() -> None:
    poison = [{"name": f"shards {number}-{number} of 90", "error": "signal 9"} for number in range(1, 8)]
    quarantined = {"error:partition": 70, "error:cut": 10}
    alert = raised({"quarantined": quarantined, "poison": poison})["partial"]
    assert alert.headline == "7 partitions of extract failed every try: the snapshot is partial"
    assert alert.numbers[:2] == (
        "70 of 10,000 rows are quarantined with them",
        "shards 1-1 of 90: signal 9",
    )
    assert alert.numbers[-1] == "and 2 more"
    assert "partial" not in raised({"poison": []})
    both = raised({"quarantined": {"error:partition": 5000, "error:cut": 100}, "poison": poison})
    assert both.keys() == {"partial"}, "rows of partitions are no damaged rows"


def times(*seconds: float, ran: int = 1) -> dict[str, Any]:
    names = [f"{number}.warc.gz" for number in range(1, len(seconds) + 1)]
    return asdict(partition_times(names, [{"wall": wall, "ran": ran} for wall in seconds]))


def test_partitions_far_above_the_median_of_their_stage_are_told_with_their_names() -> None:
    alert = raised({"times": times(*[50.0] * 9, 400.0)})["slow_partitions"]
    assert alert.headline == "The slowest partitions of extract took 8.0 times their median"
    assert alert.numbers[0] == "p99 400 s, median 50 s, of 10 partitions; the limit is 4 times"
    assert alert.numbers[1] == "partition 10 (10.warc.gz): 400 s"
    assert "slow_partitions" not in raised({"times": times(*[50.0] * 9, 190.0)})
    assert "slow_partitions" not in raised({"times": times(*[1.0] * 9, 59.0)}), "a short stage has no slow partitions"
    assert "slow_partitions" not in raised({"times": times(*[50.0] * 9, 400.0)}, limits=replace(LIMITS, slow=0))


def test_one_slow_partition_in_two_hundred_is_none_of_the_99_percent() -> None:
    assert partition_times([""] * 200, [{"wall": 1.0, "ran": 1}] * 199 + [{"wall": 99.0, "ran": 1}]).p99 == 1
    assert partition_times([""] * 99, [{"wall": 1.0, "ran": 1}] * 98 + [{"wall": 99.0, "ran": 1}]).p99 == 99


def test_partitions_that_were_found_done_have_no_time() -> None:
    replies = [{"wall": 0.1, "ran": 0}] * 9 + [{"wall": 400.0, "ran": 2}]
    assert partition_times([""] * 10, replies).partitions == 1
    assert partition_times([""] * 9, replies[:9]).p99 == 0


def test_a_stage_far_above_its_usual_time_per_row_is_told() -> None:
    alert = raised({"wall": 4000.0})["slow_stage"]
    assert alert.headline == "extract took 5.0 times its usual time per row"
    assert alert.numbers[1] == "usual, by the median of the last 7 snapshots: 800 s"
    found_done = {"wall": 4000.0, "times": times(1.0, ran=0)}
    assert "slow_stage" not in raised(found_done)
    assert "slow_stage" in raised(found_done | {"ran": 4})
    assert "slow_stage" not in raised({"wall": 4000.0}, replace(USUAL, paces=(0.08, 0.08)))
    assert "slow_stage" not in raised({"wall": 50.0, "rows_in": 10}), "a minute is never slow"


def test_a_run_over_its_budget_is_told_once_at_the_stage_that_crosses_it() -> None:
    alert = raised({}, Spending(usd=2.5, before=1.5))["budget"]
    assert alert.headline == "The run has cost $2.50 and is over its budget of $2.00"
    assert raised({}, Spending(usd=3.0, before=2.5)) == {}
    assert raised({}, Spending(usd=2.5, before=1.5), replace(LIMITS, budget=0)) == {}


# --- Ledger ------------------------------------------------------------------------------------------------------------


def test_costs_and_times_come_from_the_ledger(tmp_path: Path) -> None:
    with Ledger.open(str(tmp_path / "ledger.sqlite")) as ledger:
        for day in range(1, 10):
            for stage, hours in (("filter_url", 1), ("filter_quality", 3)):
                manifest = healthy(stage, 1000 + day)
                about = {"snapshot": f"2026-11-0{day}", "recipe": "web", "wall": 10.0 * manifest.rows_in * day}
                ledger.record_stage(f"{stage}/{day}/manifest.json", manifest, cpu=hours * 3600, **about)
        spending = spending_of(ledger, "web", "2026-11-09", "filter_quality")
        assert (round(spending.before, 6), round(spending.usd, 6)) == (0.05, 0.2)
        assert [round(pace) for pace in spending.paces] == [20, 30, 40, 50, 60, 70, 80]
        assert spending_of(ledger, "web", "2026-11-01", "filter_url").paces == ()
        assert (
            spending_of(ledger, "web", "2026-11-09", "pack") == spending_of(ledger, "", "", "filter_url") == Spending()
        )


# --- Backlog -----------------------------------------------------------------------------------------------------------

DAY = 86_400.0
NOON = midnight(date(2026, 11, 20)) + DAY / 2


def backlog(landed: dict[str, float], published: set[str], hours: float = 48) -> Any:
    return backlog_alert("web", backlog_of(landed, published, NOON), hours, NOON)


def test_the_oldest_snapshot_that_is_not_published_is_told() -> None:
    alert = backlog({"2026-11-16": 0, "2026-11-18": 0}, {"2026-11-15", "2026-11-17", "2026-11-19"})
    assert alert.headline == "Snapshot 2026-11-16 of recipe web is not published"
    assert alert.numbers[0] == "landed 84 hours ago; the limit is 48"
    assert alert.numbers[1] == "not published are 2 that landed and 0 that are expected"


def test_a_date_that_never_landed_is_expected_once_dates_are_published() -> None:
    alert = backlog({}, {"2026-11-15"})
    assert alert.numbers[0].startswith("expected 84 hours ago")
    assert backlog({}, {"2026-11-18"}) is None
    assert backlog({}, set()) is None, "a new root expects nothing"
    assert backlog({}, {"CC-MAIN-2026-40"}) is None, "names that are no dates do not follow each other"


def test_a_snapshot_of_any_name_counts_from_its_last_file() -> None:
    assert backlog({"CC-MAIN-2026-45": NOON - 3 * DAY}, set()).numbers[0].startswith("landed 72 hours ago")
    assert backlog({"CC-MAIN-2026-45": NOON - DAY}, set()) is None


def test_no_backlog_is_told_of_what_is_published_in_time() -> None:
    days = [f"2026-11-{day}" for day in range(10, 20)]
    assert backlog(dict.fromkeys(days, 0), set(days)) is None
    assert backlog({"2026-11-16": 0}, {"2026-11-15"}, hours=0) is None


# --- Recipes -----------------------------------------------------------------------------------------------------------


def test_a_recipe_has_limits_of_its_own_and_a_wrong_one_is_refused() -> None:
    raw: dict[str, Any] = {"stages": {"ingest": {}}}
    assert parse_recipe(raw, "r.yaml").alerts == AlertLimits(0.01, 4.0, 0.0, 48.0)
    assert parse_recipe({**raw, "alerts": {"budget": 40, "slow": None}}, "r.yaml").alerts == AlertLimits(budget=40)
    with pytest.raises(RecipeError, match=r"alerts: .*'error_rat'.*'error_rate'"):
        parse_recipe({**raw, "alerts": {"error_rat": 0.1}}, "r.yaml")
    with pytest.raises(RecipeError, match=r"alerts: error_rate .*2"):
        parse_recipe({**raw, "alerts": {"error_rate": 2}}, "r.yaml")


def test_limits_change_no_stage() -> None:
    raw: dict[str, Any] = {"stages": {"ingest": {}, "extract": {}}}
    assert parse_recipe(raw, "r.yaml").steps == parse_recipe({**raw, "alerts": {"slow": 9}}, "r.yaml").steps
    assert load_recipe("web").alerts == AlertLimits()
