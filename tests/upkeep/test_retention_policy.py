"""A policy of retention is refused where it would do nothing, too early, or at a loss."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.upkeep.retention.policy import KINDS, load_policy, parse_policy, policy_names

PRICES: Mapping[str, Any] = {
    "source": "a contract",
    "as_of": "2026-11",
    "classes": {
        "STANDARD": {"gb_month": 0.02},
        "GLACIER_IR": {"gb_month": 0.004, "least_bytes": 131072, "least_days": 90, "per_1000": 0.02},
    },
}


def written(kinds: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {"kinds": kinds, "prices": PRICES, **changes}


def test_every_policy_that_ships_is_read_and_the_default_has_each_kind() -> None:
    assert {name: load_policy(name).name for name in policy_names()} == {name: name for name in policy_names()}
    assert load_policy("default").rules.keys() == KINDS.keys()


@pytest.mark.parametrize(
    ("kinds", "named"),
    [
        ({"reject": {"expire_days": 30}}, "'rejects'"),
        ({"rejects": {"expire": 30}}, "expire_days"),
        ({"rejects": {"expire_days": 6}}, "expire_days"),
        ({"rejects": {"expire_days": -1}}, "expire_days"),
        ({"rejects": {"expire_days": 30.5}}, "expire_days"),
        ({"rejects": {}}, "rejects"),
        ({"rejects": {"cold_days": 30}}, "storage_class"),
        ({"rejects": {"storage_class": "GLACIER_IR"}}, "cold_days"),
        ({"exports": {"cold_days": 30, "storage_class": "GLACIER"}}, "GLACIER"),
        ({"exports": {"cold_days": 30, "storage_class": "STANDARD_IA"}}, "prices: classes has no STANDARD_IA"),
        ({"exports": {"cold_days": 30, "storage_class": "GLACIER_IR", "expire_days": 119}}, "120"),
        ({"cache": {"cold_days": 30, "storage_class": "GLACIER_IR"}}, "each run reads it"),
        ({"intermediate": {"expire_days": 30}}, "manifests name them"),
        ({"versions": {"expire_days": 30}}, "vacuum --expire"),
    ],
)
def test_what_a_policy_may_not_say_is_named(kinds: Mapping[str, Any], named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        parse_policy(written(kinds), "mine.yaml")


def test_days_at_which_a_class_is_paid_up_are_taken() -> None:
    kinds = {"exports": {"cold_days": 30, "storage_class": "GLACIER_IR", "expire_days": 120}}
    assert parse_policy(written(kinds), "mine.yaml").rules["exports"].expire_days == 120


@pytest.mark.parametrize(
    "prices",
    [
        {"source": "a", "as_of": "b"},
        {"source": "a", "as_of": "b", "classes": {"GLACIER_IR": {"gb_month": 1}}},
        {"source": "a", "as_of": "b", "classes": {"STANDARD": {"gb_month": -1}}},
        {"source": "a", "as_of": "b", "classes": {"STANDARD": 0.02}},
        {"as_of": "b", "classes": {"STANDARD": {"gb_month": 1}}},
    ],
)
def test_prices_have_a_source_and_that_of_the_usual_class(prices: Mapping[str, Any]) -> None:
    with pytest.raises(RecipeError, match=r"mine.yaml: prices"):
        parse_policy(written({"cache": {"expire_days": 9}}, prices=prices), "mine.yaml")


def test_an_unknown_policy_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="default"):
        load_policy("defualt")
    with pytest.raises(RecipeError, match="no retention policy"):
        load_policy(str(tmp_path / "none.yaml"))
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(written({"cache": {"expire_days": 9}})))
    assert load_policy(str(tmp_path / "mine.yaml")).name == "mine"
