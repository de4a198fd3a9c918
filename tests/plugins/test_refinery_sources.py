"""The form of a source's DAG follows from its kind, and a pull that found nothing new says so and has no event."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from refinery_sources import budget
from refinery_sources.common_crawl.files import CommonCrawl
from refinery_sources.pull import Landed
from refinery_sources.recipe import SourceRecipe, load_source, parse_source

from pipeline_tasks.constraints import Anywhere, Range
from pipeline_tasks.errors import RecipeError, SourceRefused
from tests.crawl_mirror import CRAWL, Fault, archives, mirrored


@pytest.fixture(autouse=True)
def budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "PLACE", tmp_path / "budgets")
    (tmp_path / "budgets").mkdir()


@dataclass(frozen=True)
class _Inner:
    size: int = 1


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (Annotated[float, Range(0, 1, above=True)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
        (Annotated[int, Range(1)], {"type": "integer", "minimum": 1}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (Mapping[str, str], {"type": "object"}),
        (dict[str, str], {"type": "object"}),
        (_Inner, {"type": "object"}),
        (str | None, {"type": ["string", "null"]}),
        (int | str, {"type": ["integer", "string"]}),
        (object, {}),
    ],
)
def test_a_field_of_a_query_has_its_type_in_the_form(hint: Any, schema: dict[str, Any]) -> None:
    from refinery_airflow.tasks.sources import json_type

    assert json_type(hint) == schema


def test_the_params_of_a_pull_are_the_query_of_its_recipe() -> None:
    from refinery_airflow.tasks.sources import params_of_pull

    params = params_of_pull(load_source("common_crawl"), "landing", "root")
    assert params["files"].resolve() == 10
    assert (params["kind"].schema["enum"], params["without"].schema["type"]) == (["warc", "wet", "robotstxt"], "array")
    assert "root" not in params


def test_what_a_run_asks_for_is_checked_as_a_recipe_is() -> None:
    from refinery_airflow.tasks.sources import asked

    recipe = load_source("common_crawl")
    params = {"files": 3, "address": "http://mirror/", "without": ["a"], "rate": 5, "workers": 2, "landing": "x"}
    now = asked(recipe, params)
    assert now.source == CommonCrawl("latest", files=3, address="http://mirror", without=("a",))
    assert (now.rate.requests, now.workers, now.name) == (5.0, 2, "common_crawl")
    with pytest.raises(RecipeError, match="files"):
        asked(recipe, {**params, "files": "three"})


@dataclass(frozen=True)
class _Auth:
    connection: str = ""


@dataclass(frozen=True)
class _WithSecret:
    """What a kind of source has that says who asks."""

    url: Anywhere = "https://api.example.org"
    headers: Mapping[str, str] = field(default_factory=dict)
    auth: _Auth | None = None
    since: str = ""


def test_who_starts_a_run_cannot_send_a_secret_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.tasks import sources as refinery_sources

    monkeypatch.setattr(refinery_sources, "kind_of", lambda _kind: _WithSecret)
    monkeypatch.setattr(refinery_sources, "form_of", lambda _kind: {})
    source: Any = _WithSecret(auth=_Auth("news"))
    recipe = SourceRecipe("news", "api", source)
    params = refinery_sources.params_of_pull(recipe, "landing", "root")
    assert set(params) == {"since", "landing", "rate", "workers", "again"}
    evil = {"url": "https://evil.example", "auth": {"connection": "aws_default"}, "headers": {"X": "y"}}
    now: Any = refinery_sources.asked(recipe, {**evil, "since": "2026", "rate": 1, "workers": 1}).source
    assert (now.url, now.headers, now.auth.connection, now.since) == ("https://api.example.org", {}, "news", "2026")


def test_who_starts_a_run_cannot_read_another_bucket_by_the_keys_of_a_store() -> None:
    from refinery_airflow.tasks import sources as refinery_sources

    raw = {"source": {"files": {"place": "s3://crawl/news", "format": "jsonl", "in_place": True, "store": "partner"}}}
    recipe = parse_source(raw, "news.yaml", {})
    evil = {"place": "s3://private", "store": "other"}
    now: Any = refinery_sources.asked(recipe, {**evil, "exclude": ["a"], "rate": 1, "workers": 1}).source
    assert (now.place, now.store, now.exclude) == ("s3://crawl/news", recipe.source.store, ("a",))  # type: ignore[attr-defined]
    assert not {"place", "store"} & set(refinery_sources.params_of_pull(recipe, "landing", "root"))


def test_an_api_is_asked_by_a_connection_of_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import Connection
    from refinery_airflow.tasks import sources as refinery_sources
    from refinery_sources.api.credentials import headers_of

    monkeypatch.setenv("AIRFLOW_CONN_NEWS", "")  # it is put back at the end
    monkeypatch.delenv("AIRFLOW_CONN_NEWS")
    query = {
        "url": "https://api.example.org/v1",
        "records": "items",
        "id": "id",
        "fields": {"text": "t"},
        "pages": {"by": "once"},
    }
    raw = {"source": {"api": {**query, "auth": {"by": "basic", "connection": "news"}}}}
    source: Any = parse_source(raw, "news.yaml", {}).source
    kept = Connection(conn_id="news", conn_type="http", host="api.example", login="me", password="a/b:c@d e")
    monkeypatch.setattr(Connection, "get", lambda _name: kept)
    refinery_sources.adopt_connections(source)
    assert base64.b64decode(headers_of(source.auth)["Authorization"].removeprefix("Basic ")) == b"me:a/b:c@d e"


def test_a_connection_of_airflow_is_found_by_a_source_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import Connection
    from refinery_airflow.tasks import sources as refinery_sources

    monkeypatch.setenv("AIRFLOW_CONN_NEWS", "")  # it is put back at the end
    monkeypatch.delenv("AIRFLOW_CONN_NEWS")
    source: Any = _WithSecret(auth=_Auth("news"))
    monkeypatch.setattr(
        Connection, "get", lambda _name: Connection(conn_id="news", conn_type="http", password="s3cret")
    )
    refinery_sources.adopt_connections(source)
    assert "s3cret" in os.environ["AIRFLOW_CONN_NEWS"]
    monkeypatch.setattr(Connection, "get", lambda _name: pytest.fail("the environment has it"))
    refinery_sources.adopt_connections(source)
    refinery_sources.adopt_connections(CommonCrawl(CRAWL))


class _Events(dict[Any, Any]):
    def __missing__(self, asset: Any) -> Any:
        self[asset] = SimpleNamespace(extra={})
        return self[asset]


def context(landing: Path, start: datetime) -> Any:
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(dag_id="pull_own", xcom_push=lambda key, value: pushed.update({key: value}), pushed=pushed)
    params = {"landing": str(landing), "rate": 1000, "workers": 2}
    run = SimpleNamespace(start_date=start)
    return {"ti": ti, "params": params, "dag_run": run, "outlet_events": _Events()}


def test_a_landing_has_one_event_and_a_second_pull_none(tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowSkipException
    from refinery_airflow.tasks.sources import pull_source
    from refinery_airflow.tasks.wiring import LANDINGS, landing_of

    outlets = (LANDINGS, landing_of("news"))
    now = datetime.now(UTC)
    with mirrored() as mirror:
        mirror.add(archives(2, 20_000))
        recipe = SourceRecipe("news", "common_crawl", CommonCrawl(CRAWL, address=mirror.address))
        first = context(tmp_path / "landing", now)
        facts = pull_source(recipe, first, outlets)
        assert (facts["snapshot"], facts["files"], facts["input"]) == (CRAWL, 2, f"{tmp_path}/landing/{CRAWL}")
        assert [event.extra for event in first["outlet_events"].values()] == [facts, facts]
        again = context(tmp_path / "landing", now)  # a try that was lost behind the last file of this run
        assert pull_source(recipe, again, outlets) == facts
        assert len(again["outlet_events"]) == 2
        later = context(tmp_path / "landing", now + timedelta(hours=1))
        with pytest.raises(AirflowSkipException, match=CRAWL):
            pull_source(recipe, later, outlets)
    assert (later["outlet_events"], later["ti"].pushed) == ({}, {"landed": facts})


def test_a_person_opens_a_host_in_the_form_of_its_dag(tmp_path: Path) -> None:
    from refinery_airflow.tasks.sources import pull_source

    with mirrored() as mirror:
        mirror.add(archives(1, 20_000))
        recipe = SourceRecipe("news", "common_crawl", CommonCrawl(CRAWL, address=mirror.address))
        mirror.fault = lambda _asked: Fault(403)
        run = context(tmp_path / "landing", datetime.now(UTC))
        with pytest.raises(SourceRefused):
            pull_source(recipe, run)
        mirror.fault = lambda _asked: None
        with pytest.raises(SourceRefused, match="`again` of the DAG's form"):
            pull_source(recipe, run)
        run["params"]["again"] = True
        assert pull_source(recipe, run)["files"] == 1


def test_a_source_without_a_record_has_no_event_and_nothing_to_take_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kind does that lands no part without rows: no `snapshot.json`, and no files."""
    from airflow.sdk.exceptions import AirflowSkipException
    from refinery_airflow.tasks.sources import pull_source, take_deletions_down
    from refinery_sources import recipe as recipes

    place = f"{tmp_path}/news-1"
    monkeypatch.setattr(recipes, "pull_recipe", lambda *_: (place, Landed("news-1", 0, 0)))
    run = context(tmp_path, datetime.now(UTC))
    with pytest.raises(AirflowSkipException, match="no new record"):
        pull_source(SourceRecipe("news", "common_crawl", CommonCrawl(CRAWL)), run, ())
    run["params"]["root"] = str(tmp_path / "root")
    assert take_deletions_down(run, run["ti"].pushed["landed"])["takedown"] is None
    assert not (tmp_path / "root").exists()


def test_a_queue_wakes_arrivals_only_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.tasks.wiring import wakes

    monkeypatch.delenv("REFINERY_QUEUE", raising=False)
    assert [asset.name for asset in wakes().objects] == ["landings"]
    monkeypatch.setenv("REFINERY_QUEUE", "http://localhost/q")
    landings, messages = wakes().objects
    assert (landings.watchers, messages.watchers[0].trigger.sqs_queue) == ([], "http://localhost/q")


def test_a_snapshot_says_what_landed_and_by_which_recipe(tmp_path: Path) -> None:
    from refinery_airflow.tasks.sources import pull_source

    with mirrored() as mirror:
        mirror.add(archives(1, 20_000))
        recipe = SourceRecipe("news", "common_crawl", CommonCrawl(CRAWL, address=mirror.address))
        pull_source(recipe, context(tmp_path, datetime.now(UTC)))
    promise = json.loads((tmp_path / CRAWL / "snapshot.json").read_bytes())
    assert promise["source"]["recipe"] == "news"
