"""Recipes of sources are checked before anything is pulled, and land below one folder in their order."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from refinery_sources.common_crawl.files import CommonCrawl
from refinery_sources.recipe import (
    chosen_sources,
    each_source,
    load_source,
    occasion_of,
    parse_source,
    pull_recipe,
)

from pipeline_tasks.errors import RecipeError
from tests.crawl_mirror import CRAWL, Mirror, archives
from tests.sources.pulling import on_loopback

NOW = datetime(2026, 1, 5, 6, tzinfo=UTC)


def test_every_recipe_of_the_package_is_read() -> None:
    recipes = list(each_source())
    assert recipes
    assert load_source("common_crawl").source == CommonCrawl("latest", files=10)
    assert all(recipe.title for recipe in recipes)


def test_a_source_of_ones_own_folder_is_known_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`REFINERY_SOURCES` names those that are wired; without it, all."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "ferries.yaml").write_text("source: {common_crawl: {crawl: latest, files: 1}}\n")
    monkeypatch.setenv("REFINERY_RECIPES", str(tmp_path))
    assert load_source("ferries").source == CommonCrawl("latest", files=1)
    assert {"common_crawl", "ferries"} <= {recipe.name for recipe in chosen_sources()}


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({}, "source"),
        ({"source": {}}, "0 kinds"),
        ({"source": {"ftp": {}}}, "ftp"),
        ({"source": {"common_crawl": {}}}, "crawl"),
        ({"source": {"common_crawl": {"crawl": "latest", "file": 1}}}, "file"),
        ({"source": {"common_crawl": {"crawl": "latest"}}, "rate": 0}, "rate"),
        ({"source": {"common_crawl": {"crawl": "latest"}}, "workers": 99}, "workers"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused_by_its_key(raw: object, named: str) -> None:
    with pytest.raises(RecipeError, match=named):
        parse_source(raw, "news.yaml", {})


def test_a_name_of_no_recipe_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(RecipeError, match="common_crawl"):
        load_source("comon_crawl")


def test_a_recipe_lands_below_the_landing_and_says_so(mirror: Mirror, tmp_path: Path) -> None:
    mirror.add(archives(3, 20_000))
    raw = {"source": {"common_crawl": {"crawl": CRAWL, "address": mirror.address}}}
    with on_loopback() as on:
        place, landed = pull_recipe(parse_source(raw, "news.yaml", {}), str(tmp_path), tmp_path / "spool", on, NOW)
    assert (place, landed.files) == (f"{tmp_path}/{CRAWL}", 3)
    assert json.loads((tmp_path / CRAWL / "snapshot.json").read_bytes())["source"]["recipe"] == "news"


def test_an_occasion_is_the_newest_landing_and_what_was_begun_since(mirror: Mirror, tmp_path: Path) -> None:
    for name, path, body in (
        ("news-1", "snapshot.json", {"source": {"cursor": "a"}}),
        ("news-2", "snapshot.json", {"source": {"cursor": "b"}}),
        ("news-3", ".pull/query.json", {"query": {"since": "old"}}),
        ("news-4", ".pull/query.json", {"query": {"since": "b"}, "recipe": "news"}),
        ("news-eu-1", "snapshot.json", {"source": {"cursor": "z", "recipe": "news-eu"}}),
        ("news-eu-2", ".pull/query.json", {"query": {"since": "z"}, "recipe": "news-eu"}),
        ("newspaper-9", "snapshot.json", {"source": {"cursor": "z"}}),
    ):
        file = tmp_path / name / path
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(body))
    recipe = parse_source({"source": {"common_crawl": {"crawl": CRAWL}}}, "news.yaml", {})
    with on_loopback() as on:
        occasion = occasion_of(recipe, str(tmp_path), on, NOW)
    assert (occasion.before, occasion.unfinished) == ({"cursor": "b"}, {"since": "b"})
