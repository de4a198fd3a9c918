"""Recipes of sources are pulled by name, and what has landed of each is listed without a request."""

import json
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.commands import pull as command
from refinery_sources.commands.pull_progress import Progress
from refinery_sources.pull import Landed
from refinery_sources.recipe import SOURCES, chosen_sources, hosts_of
from refinery_sources.source import UNKNOWN, Part

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import recipe_names
from tests.commands import Refinery
from tests.crawl_mirror import CRAWL, Fault, Mirror, archives

NEWEST = "CC-MAIN-2026-50"


@pytest.fixture
def news(mirror: Mirror, tmp_path: Path) -> Path:
    """A recipe over the mirror, whose newest crawl has three files."""
    mirror.add(archives(3, 20_000))
    mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()
    recipe = tmp_path / "news.yaml"
    query = f"{{crawl: latest, address: '{mirror.address}'}}"
    recipe.write_text(f"title: News\nschedule: '0 6 * * *'\nrate: 1000\nsource:\n  common_crawl: {query}\n")
    return recipe


def listed(refinery: Refinery, landings: Path | str, recipe: Path) -> dict[str, Any]:
    done = refinery("look", "sources", landings, "--recipes", recipe, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)[0])


def test_a_recipe_is_pulled_by_its_path_and_then_listed(
    refinery: Refinery, mirror: Mirror, news: Path, tmp_path: Path
) -> None:
    landings = tmp_path / "landings"
    planned = refinery("pull", news, "--to", landings, "--dry-run", "--json")
    assert json.loads(planned.stdout)["files"] == 3
    assert not landings.exists()
    assert listed(refinery, landings, news)["landed"] == []
    done = refinery("pull", news, "--to", landings / "{snapshot}", "--set", "files=2", "--json")
    assert done.returncode == 0, done.stderr
    landed = json.loads(done.stdout)
    assert (landed["to"], landed["files"], landed["is_new"]) == (f"{landings}/{CRAWL}", 2, True)
    asked = len(mirror.asked)
    source = listed(refinery, landings, news)
    assert len(mirror.asked) == asked
    assert (source["source"], source["kind"], source["schedule"]) == ("news", "common_crawl", "0 6 * * *")
    (snapshot,) = source["landed"]
    assert (snapshot["folder"], snapshot["files"], snapshot["bytes"]) == (CRAWL, 2, landed["bytes"])
    assert (snapshot["rows"], snapshot["query"]["files"], source["unfinished"]) == (None, 2, [])
    assert [(host["host"], host["state"]) for host in source["hosts"]] == [(mirror.address[7:], "open")]
    again = refinery("pull", news, "--to", landings, "--set", "files=2")
    assert (again.returncode, "nothing is new" in again.stdout) == (0, True)
    assert not mirror.data()[2:]


def test_a_pull_that_was_refused_is_listed_with_what_is_complete_and_until_when_it_is_refused(
    refinery: Refinery, mirror: Mirror, news: Path, tmp_path: Path
) -> None:
    mirror.fault = lambda _asked: Fault(403) if len(mirror.data()) > 2 else None
    assert refinery("pull", news, "--to", tmp_path, "--workers", "1").returncode == 78
    source = listed(refinery, tmp_path, news)
    (begun,) = source["unfinished"]
    assert (begun["folder"], begun["complete"], begun["files"]) == (CRAWL, 2, 3)
    assert begun["bytes"] == sum(len(body) for body in archives(2, 20_000).values())
    (host,) = source["hosts"]
    assert (host["state"], host["why"].partition(" ")[2]) == ("refused", "was answered with 403")
    printed = refinery("look", "sources", tmp_path, "--recipes", news).stdout
    assert f"{CRAWL}, {begun['at'][:16].replace('T', ' ')}: 2 of 3 files" in printed
    assert f"{host['host']} refused until {host['until']}" in printed
    mirror.fault = lambda _asked: None
    assert refinery("pull", news, "--to", tmp_path).returncode == 78
    assert refinery("pull", news, "--to", tmp_path, "--again").returncode == 0
    source = listed(refinery, tmp_path, news)
    assert ([one["state"] for one in source["hosts"]], source["unfinished"]) == (["open"], [])


def test_landings_are_listed_in_every_store(
    refinery: Refinery, mirror: Mirror, news: Path, tmp_path: Path, any_root: str
) -> None:
    words = ["pull", news, "--to", any_root, "--spool", tmp_path / "spool", "--workers", "1"]
    mirror.fault = lambda asked: Fault(404) if asked.path.endswith("part-00001.warc.gz") else None
    assert refinery(*words).returncode == 75
    (begun,) = listed(refinery, any_root, news)["unfinished"]
    assert (begun["folder"], begun["complete"], begun["files"]) == (CRAWL, 2, 3)
    mirror.fault = lambda _asked: None
    assert refinery(*words).returncode == 0
    source = listed(refinery, any_root, news)
    assert ([one["files"] for one in source["landed"]], source["unfinished"]) == ([3], [])


def test_a_pull_without_a_new_record_says_what_came_of_it(
    refinery: Refinery, news: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a kind that lands no part without rows: nothing, or what its source has deleted alone."""
    monkeypatch.setattr(command, "pull", lambda *_: Landed(CRAWL, 0, 0))
    assert "nothing has landed" in refinery("pull", news, "--to", tmp_path / "landings").stdout
    (tmp_path / "landings" / CRAWL).mkdir(parents=True)
    (tmp_path / "landings" / CRAWL / "snapshot.json").write_text("{}")
    done = refinery("pull", news, "--to", tmp_path / "landings")
    assert f"refinery takedown ROOT --landing {tmp_path}/landings/{CRAWL}" in done.stdout


def test_a_folder_that_is_not_there_yet_is_said_to_be_none(refinery: Refinery, news: Path, tmp_path: Path) -> None:
    done = refinery("look", "sources", tmp_path / "list", "--recipes", news)
    assert (done.returncode, "is no folder yet" in done.stderr) == (0, True)
    assert "nothing has landed" in done.stdout


def test_what_other_recipes_and_commands_landed_is_listed_behind_those_that_are_known(
    refinery: Refinery, mirror: Mirror, news: Path, tmp_path: Path
) -> None:
    landings = tmp_path / "landings"
    (landings / "mine").mkdir(parents=True)
    (landings / "mine" / "snapshot.json").write_text('{"files": []}')
    (landings / "broken").mkdir()
    (landings / "broken" / "snapshot.json").write_text('{"source": {}}')
    assert refinery("pull", news, "--to", landings).returncode == 0
    mirror.add(archives(1, 20_000), crawl=NEWEST)
    words = ["pull", "cc", "--crawl", NEWEST, "--from", mirror.address, "--to", landings / "{snapshot}"]
    assert refinery(*words, "--rate", "1000").returncode == 0
    done = refinery("look", "sources", landings, "--json")
    assert [(one["source"], [s["folder"] for s in one["landed"]]) for one in json.loads(done.stdout)] == [
        *((name, []) for name in recipe_names(SOURCES)),
        ("", [NEWEST]),
        ("news", [CRAWL]),
    ]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["pull", "comon_crawl"], "common_crawl"),
        (["pull", "cc"], "--crawl"),
        (["pull", "cc", "--crawl", CRAWL, "--to", "x", "--set", "files=2"], "--set"),
        (["pull", "common_crawl", "--files", "2"], "--set files"),
        (["pull", "common_crawl", "--from", "https://example.org"], "--set address"),
        (["pull", "common_crawl", "--set", "files"], "KEY=VALUE"),
        (["pull", "common_crawl", "--set", "files=1", "--set", "files=2"], "once"),
        (["pull", "common_crawl", "--set", "files=two"], "files"),
        (["pull", "common_crawl", "--rate", "0"], "--rate"),
        (["pull", "common_crawl", "--workers", "99"], "--workers"),
        (["pull", "common_crawl", "--set", "crawl=X"], "REFINERY_LANDING"),
        (["pull", "common_crawl", "--set", "crawl=X", "--to", "a/{snapshot}/b"], "all landings"),
        (["look", "sources"], "REFINERY_LANDING"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(
    refinery: Refinery, monkeypatch: pytest.MonkeyPatch, words: list[str], named: str
) -> None:
    monkeypatch.delenv("REFINERY_LANDING", raising=False)
    done = refinery(*words)
    assert done.returncode == 78
    assert named in done.stderr


def test_recipes_are_chosen_by_name_and_path_and_each_has_a_name_of_its_own(news: Path) -> None:
    assert [recipe.name for recipe in chosen_sources(f"common_crawl, {news}")] == ["common_crawl", "news"]
    with pytest.raises(RecipeError, match="common_crawl"):
        chosen_sources("common_crawl,common_crawl")


def test_hosts_are_those_of_every_address_of_a_query() -> None:
    query = {"url": "https://A.example:8443/x", "more": {"pages": ["http://b.example"]}, "text": "no https://c.example"}
    assert hosts_of(query) == ["a.example:8443", "b.example"]


def test_progress_tells_what_is_left_by_promise_else_by_the_files_that_are_complete() -> None:
    promised, estimated = Progress(), Progress()
    promised.flow(1000).on_parts([Part("a", "", 400), Part("b", "", 600)], ["a"])
    promised.add("b", 150)
    assert promised.line(10.0).endswith("1 of 2 files, 0 MB, 0.0 MB/s, about 30 s left")
    flow = estimated.flow(1000)
    flow.on_parts([Part(name, "", UNKNOWN) for name in "abcd"], [])
    flow.on_bytes("a", 500)
    assert estimated.bytes_left() == 3500
    flow.on_part("a", 500)
    assert estimated.bytes_left() == 1500
    assert "1 of 4 files" in estimated.line(1.0)
