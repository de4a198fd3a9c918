"""A list may point to places that the operator names and to nothing beside them; a refusal names the bucket to add."""

import json
import re

import pytest

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.store import store_settings
from pipeline_tasks.store.places import give_places, require_pointed

LANDING = "s3://landing/day"


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_settings, "_GIVEN", {})
    give_places(["s3://crawl/2026", "eu+s3://other/"], LANDING)


@pytest.mark.parametrize(
    "pointed", [("s3://crawl/2026", ""), ("s3://crawl/2026/a/b.warc.gz", ""), ("s3://other/a", "eu")]
)
def test_what_is_below_a_named_place_may_be_pointed_to(pointed: tuple[str, str]) -> None:
    require_pointed(LANDING, [pointed])
    require_pointed(f"{LANDING}/part", [pointed])


@pytest.mark.parametrize(
    ("pointed", "bucket"),
    [
        (("s3://crawl/2027/a/b.warc.gz", ""), "s3://crawl"),
        (("s3://crawl/20261/a", ""), "s3://crawl"),
        (("s3://crawl/2026/../2027/a", ""), "s3://crawl"),
        (("s3://other/a/b", ""), "s3://other"),
        (("s3://crawl/2026/a", "eu"), "eu+s3://crawl"),
    ],
)
def test_what_is_beside_named_places_is_refused_with_the_bucket_to_add(pointed: tuple[str, str], bucket: str) -> None:
    with pytest.raises(RecipeError, match=rf"^{LANDING} lists .*; add {re.escape(bucket)} to "):
        require_pointed(LANDING, [pointed])


def test_lists_elsewhere_point_nowhere() -> None:
    with pytest.raises(RecipeError, match="no place that a list may point to"):
        require_pointed("s3://elsewhere/day", [("s3://crawl/2026", "")])
    require_pointed("s3://elsewhere/day", [])


def test_a_worker_has_what_the_driver_of_its_task_was_given_and_nothing_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_settings, "_GIVEN", {})
    monkeypatch.setattr(store_settings, "_RECEIVED", {})
    monkeypatch.delenv(store_settings.PLACES, raising=False)
    monkeypatch.delenv("REFINERY_LANDING", raising=False)
    for uri in ("s3://one", "s3://two", ""):
        sent = json.dumps({uri: {"AWS_ENDPOINT_URL": "http://store"}}) if uri else ""
        store_settings.receive(sent)
        assert store_settings.given() == sent
