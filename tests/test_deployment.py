"""The operator's file of an Airflow that teams share: what it says of each recipe, and what of it is refused."""

import os
from dataclasses import fields
from pathlib import Path

import pytest

from pipeline_tasks import ledger
from pipeline_tasks.deployment import (
    Channels,
    Connections,
    Deployment,
    OpenStore,
    Settings,
    deployed,
    deployment,
    idle_names,
    is_below,
    ledger_at,
    missing_connections,
    parse_deployment,
    require_one_root,
    resolved_lines,
)
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.lint import lint

FILE = """\
defaults:
  owner: platform
  connections: {root: aws_platform, spark: spark_shared}
recipes:
  news, corpus:
    root: s3://news/refined
    landing: s3://crawls
    ledger: postgresql://ann:secret@db/news
    connections: {root: aws_news, landing: anonymous}
    access_control: {News: [can_read, can_edit]}
    alerts: {slack: slack_news}
  blogs*:
    root: s3://blogs/refined
    landing: s3://blogs/landing
    connections:
      root: aws_blogs
      landing: {anonymous: true, endpoint: "http://127.0.0.1:9000"}
    tags: [team-b]
"""


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REFINERY_DEPLOYMENT", "REFINERY_ROOT", "REFINERY_LANDING", "REFINERY_LEDGER"):
        monkeypatch.delenv(name, raising=False)


def read(text: str) -> Deployment:
    return parse_deployment(text.encode(), "d.yaml")


def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str = FILE) -> Path:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    monkeypatch.setenv("REFINERY_DEPLOYMENT", str(path))
    return path


def test_without_a_file_all_recipes_go_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFINERY_ROOT", "/data/root")
    assert deployment() == Deployment()
    assert (deployed("news").its_root, deployed("news").its_landing) == ("/data/root", "s3://refinery/landing")
    assert (deployed("news").access_to("s3://x/y"), resolved_lines("news")) == ("", [])


def test_an_entry_is_of_its_names_and_patterns_and_of_their_trials() -> None:
    known = read(FILE)
    entries = {
        name: known.entry_of(name) for name in ("news", "news.trial", "corpus", "blogs", "blogs_de", "web", "new")
    }
    assert entries == {
        "news": "news, corpus",
        "news.trial": "news, corpus",
        "corpus": "news, corpus",
        "blogs": "blogs*",
        "blogs_de": "blogs*",
        "web": "",
        "new": "",
    }
    assert known.of("news").owner == "platform", "what an entry does not say is said by the defaults"
    assert known.of("news").connections.engines == {"spark": "spark_shared"}, "its connections one by one"
    assert known.of("web").connections.root == "aws_platform"


def test_each_place_has_its_connection() -> None:
    known = read(FILE)
    assert known.of("news").access_to("s3://news/refined/x") == "aws_news"
    assert known.of("news").access_to("s3://crawls/2026-11-01") == OpenStore(anonymous=True)
    assert known.of("news").access_to("s3://models/m") == "aws_news"
    of_blogs = known.of("blogs").access_to("s3://blogs/landing/x")
    assert isinstance(of_blogs, OpenStore)
    assert of_blogs.variables()["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9000"
    assert known.at("s3://blogs/refined/x") is known.of("blogs")
    assert known.at("s3://elsewhere") is known.defaults


def test_the_dags_of_no_recipe_are_one_for_each_root() -> None:
    known = read(FILE + "  web: {pool: heavy}\n  late: {landing: s3://late, connections: {root: aws_platform}}\n")
    assert [entry for entry, _ in known.rooted()] == ["", "news, corpus", "blogs*"]
    assert [entry for entry, _ in known.landed()] == ["", "news, corpus", "blogs*", "late"]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (4, "  x: {rot: s3://x/y}"),
        (4, "  x: {root: 5}"),
        (4, "  x: {connections: {aws: a}}"),
        (4, "  x: {connections: {root: anonymous}}"),
        (4, "  x: {connections: {landing: {anonymous: false}}}"),
        (4, "  x: {connections: {landing: {anonymous: true, endpoint: 'http://u@h'}}}"),
        (4, "  x: {execution_timeout: -1}"),
        (4, "  x: {access_control: {Team: [can_fly]}}"),
        (4, "  x: []"),
        (4, "  'x y': {}"),
        (5, "  x:\n    tags: 1"),
        (6, "  x:\n    connections:\n      spakr: s"),
    ],
)
def test_an_entry_that_is_wrong_is_refused_with_its_line_and_hides_no_other(line: int, wrong: str) -> None:
    known = read(f"recipes:\n  news:\n    root: s3://news/refined\n{wrong}\n")
    [error] = known.refused.values()
    assert f"d.yaml, line {line}: " in str(error)
    assert known.of("news").root == "s3://news/refined"
    if known.entry_of("x"):
        with pytest.raises(RecipeError):
            known.of("x")
        assert not known.is_at("x", known.defaults.its_root), "it goes nowhere, and not where the defaults say"


@pytest.mark.parametrize(
    "text",
    ["recipes: [", "nothing: {}", "defaults: {rot: x}", "recipes: []", "[]", "", "recipes: {a: {}, a: {}}", "a: !!x 1"],
)
def test_what_is_wrong_in_all_of_the_file_refuses_it(text: str) -> None:
    with pytest.raises(RecipeError, match=r"^d\.yaml"):
        read(text)


@pytest.mark.parametrize(
    "own",
    [
        "{root: s3://news/refined, landing: s3://in/x}",
        "{root: s3://news/refined/, landing: s3://in/x, connections: {root: aws_news}}",
        "{root: s3://news/refined/blogs, landing: s3://in/x, connections: {root: aws_news}}",
        "{root: s3://news, landing: s3://in/x, connections: {root: aws_news}}",
        "{root: s3://blogs/x, landing: s3://news/refined/landing, connections: {root: aws_blogs}}",
        "{root: s3://blogs/x, landing: s3://in/x, places: [s3://news/refined/2026], connections: {root: aws_blogs}}",
    ],
)
def test_two_entries_of_one_place_are_both_refused(own: str) -> None:
    known = read(
        f"recipes:\n  web: {{}}\n  news: {{root: s3://news/refined, landing: s3://in/n, connections: {{root: aws_news}}}}\n  blogs: {own}\n"
    )
    assert set(known.refused) == {"news", "blogs"}
    assert "news (line 3) and blogs (line 4)" in str(known.refused["news"])
    assert [entry for entry, _ in known.all()] == ["defaults", "web"]


def test_a_name_in_two_entries_is_refused_and_one_of_the_defaults_root_refuses_the_entry_alone() -> None:
    assert set(read("recipes: {'a, b': {}, 'b, c': {}}").refused) == {"a, b", "b, c"}
    known = read("recipes: {a: {connections: {root: other}}, b: {}}")
    assert set(known.refused) == {"a"}, "the root of the defaults has two connections"
    assert set(read("recipes: {a: {ledger: /a.sqlite}, b: {}}").refused) == {"a"}


def test_a_place_is_not_below_one_that_its_name_begins_with() -> None:
    assert is_below("s3://a/b/c", "s3://a/b/")
    assert is_below("file:///a/b", "/a")
    assert not is_below("s3://a/bc", "s3://a/b")


def test_a_build_goes_where_the_versions_are_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_one_root("corpus", "web")  # without a file there is one root
    named(tmp_path, monkeypatch)
    require_one_root("corpus", "news")
    with pytest.raises(RecipeError, match="corpus"):
        require_one_root("corpus", "web")


def test_a_root_has_the_ledger_of_its_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = named(tmp_path, monkeypatch)
    monkeypatch.setenv("REFINERY_LEDGER", "postgresql://all/ledger")
    assert ledger.ledger_of("s3://news/refined/") == ledger_at("s3://news/refined") == "postgresql://ann:secret@db/news"
    assert ledger.ledger_of("s3://blogs/refined") == "postgresql://all/ledger"
    path.write_text(FILE.replace("postgresql://ann:secret@db/news", "db_news"))
    os.utime(path, (1, 1))
    with pytest.raises(RecipeError, match="AIRFLOW_CONN_DB_NEWS"):
        ledger.ledger_of("s3://news/refined")
    monkeypatch.setenv("AIRFLOW_CONN_DB_NEWS", "postgres://ann:pw@db:5432/news")
    assert ledger.ledger_of("s3://news/refined") == "postgresql://ann:pw@db:5432/news"


def test_a_file_that_changed_is_read_again_and_one_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = named(tmp_path, monkeypatch)
    assert deployed("news").owner == "platform"
    path.write_text(FILE.replace("platform", "others"))
    os.utime(path, (1, 1))
    assert deployed("news").owner == "others"
    path.unlink()
    with pytest.raises(RecipeError, match="REFINERY_DEPLOYMENT"):
        deployed("news")


def test_connections_that_are_not_set_and_names_of_no_recipe_are_found() -> None:
    known = read(FILE)
    faults = list(missing_connections(known, {"aws_platform", "aws_news", "aws_blogs"}.__contains__))
    assert [fault.partition(": Airflow")[0] for fault in faults] == [
        "d.yaml: defaults: connections: spark",
        "d.yaml, line 5: recipes: news, corpus: alerts: slack",
    ]
    [idle] = idle_names(known, ["news", "blogs_de", "web"])
    assert idle.startswith("d.yaml, line 5: recipes: corpus:")


def test_lint_says_where_a_recipe_goes_and_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lint("web")
    named(
        tmp_path, monkeypatch, "recipes:\n  web: {root: s3://web/refined, owner: ann, ledger: postgresql://a:pw@h/d}\n"
    )
    lines = resolved_lines("web")
    assert any("s3://web/refined" in line for line in lines)
    assert "pw" not in "".join(lines)
    assert lint("web") == before
    named(tmp_path, monkeypatch, "recipes:\n  web: {rot: s3://web/refined}\n  demo: {owner: ann}\n")
    [found] = [finding for finding in lint("web") if finding not in before]
    assert found.fault
    assert "line 2" in found.message
    assert resolved_lines("web") == []
    assert lint("demo") == lint("demo")


def test_each_key_has_its_line_in_the_reference() -> None:
    page = Path(__file__).parents[1].joinpath("docs/reference/deployment.md").read_text()
    keys = [entry.name for kind in (Settings, Channels, OpenStore) for entry in fields(kind)] + [
        *Connections().by_key()
    ]
    assert [key for key in keys if f"`{key}`" not in page and f"{key}:" not in page] == []
