"""Two teams by a deployment's file: whose keys a process has for whose places, and what is told, shown and confined."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from refinery_models.requests import TrainModelRequest
from refinery_ray import cluster_jobs, ray_jobs

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.engines.sent import received, sender
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.processes import environment
from pipeline_tasks.service.requests.stages import LandRequest
from pipeline_tasks.service.requests.upkeep import VerifyRequest
from pipeline_tasks.store import storage, store_settings
from pipeline_tasks.store.s3 import client as s3_client
from pipeline_tasks.upkeep.doctor import Check, checks
from tests.chain import How, refined
from tests.channels import Hooks, serving
from tests.publish.test_building import REFINES
from tests.s3_server import S3Server, s3_server

TEAMS = ("news", "blogs")
DAY = "2026-11-20"
OTHER = {"news": "blogs", "blogs": "news"}

FILE = """
recipes:
  news:
    root: s3://news-root/refined
    landing: s3://public-pages/landing
    connections: {root: aws_news, landing: {anonymous: true, endpoint: "NEWS"}, spark: spark_news}
    alerts: {webhook: alerts_news}
  blogs:
    root: s3://blogs-root/refined
    landing: s3://blogs-root/landing
    connections: {root: aws_blogs}
    alerts: {webhook: alerts_blogs}
"""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, S3Server]]:
    """A server of S3 for each team, which refuses the other's key; that of news has a landing open to all."""
    folders = {team: tmp_path_factory.mktemp(team) for team in TEAMS}
    with s3_server(folders["news"], "key-of-news") as news, s3_server(folders["blogs"], "key-of-blogs") as blogs:
        stores = {"news": news, "blogs": blogs}
        for team, store in stores.items():
            client(store).create_bucket(Bucket=f"{team}-root")
        client(news).create_bucket(Bucket="public-pages")
        client(news).put_object(Bucket="public-pages", Key="landing/2026-11-01/a.txt", Body=b"a")
        client(blogs).put_object(Bucket="blogs-root", Key="landing/2026-11-01/b.txt", Body=b"b")
        yield stores


def client(store: S3Server) -> Any:
    keys = {"aws_access_key_id": store.env["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": "secret"}
    return boto3.client("s3", endpoint_url=store.endpoint, region_name="us-east-1", **keys)


@pytest.fixture
def file(stores: dict[str, S3Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The operator's file, and the connections of both teams; this process has no key of its own."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "REFINERY_R", "REFINERY_LA"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "deployment.yaml"
    path.write_text(FILE.replace("NEWS", stores["news"].endpoint))
    monkeypatch.setenv("REFINERY_DEPLOYMENT", str(path))
    for team, store in stores.items():
        keys = {"login": store.env["AWS_ACCESS_KEY_ID"], "password": f"secret-of-{team}"}
        extra = {"endpoint_url": store.endpoint, "region_name": "us-east-1"}
        monkeypatch.setenv(f"AIRFLOW_CONN_AWS_{team.upper()}", json.dumps({"conn_type": "aws", **keys, "extra": extra}))
    yield path
    store_settings._GIVEN.clear()
    store_settings._RECEIVED.clear()


def written(team: str) -> None:
    """Write an object to the root of a team, and read it."""
    store = storage.connect(f"s3://{team}-root/refined")
    name = f"probe/{os.urandom(8).hex()}"
    assert store.create(name, team.encode())
    assert store.read(name) == team.encode()


# --- Keys -------------------------------------------------------------------------------------------------------------


def test_a_task_has_the_keys_of_its_recipe_alone(file: Path, stores: dict[str, S3Server]) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    before = dict(os.environ)
    adopt_credentials("s3://news-root/refined", "s3://public-pages/landing/2026-11-01", recipe="news")
    written("news")
    assert storage.connect("s3://public-pages/landing/2026-11-01").read("a.txt") == b"a"
    assert stores["news"].asked() == {"key-of-news", "nobody"}, "the open landing is read by nobody's requests"
    assert dict(os.environ) == before
    blogs = s3_client.s3_client(uri="s3://blogs-root/refined")
    assert blogs._request_signer._credentials.access_key == "key-of-news", "whatever it names, it is by its own key"
    with pytest.raises(ClientError, match=r"AccessDenied|403"):
        boto3.client(
            "s3",
            endpoint_url=stores["blogs"].endpoint,
            region_name="us-east-1",
            aws_access_key_id="key-of-news",
            aws_secret_access_key="secret-of-news",
        ).get_object(Bucket="blogs-root", Key="landing/2026-11-01/b.txt")


def test_a_triggerer_serves_both_teams_and_its_environment_stays(file: Path, stores: dict[str, S3Server]) -> None:
    from refinery_airflow.runs.credentials import give_credentials_in_triggerer
    from refinery_airflow.tasks.sensor import SnapshotTrigger

    async def fired(place: str, recipe: str) -> dict[str, Any]:
        path, arguments = SnapshotTrigger(place, {}, 0.0, settling=0.0, look=0.01, recipe=recipe).serialize()
        assert path == "refinery_airflow.tasks.sensor.SnapshotTrigger"
        async for event in SnapshotTrigger(**json.loads(json.dumps(arguments))).run():
            payload: dict[str, Any] = event.payload
            return payload
        return {}

    async def both() -> list[dict[str, Any]]:
        places = {"news": "s3://public-pages/landing/2026-11-01", "blogs": "s3://blogs-root/landing/2026-11-01"}
        return list(await asyncio.gather(*(fired(place, recipe) for recipe, place in places.items())))

    before = dict(os.environ)
    assert all(asyncio.run(both()))
    assert dict(os.environ) == before
    public, root = (s3_client.s3_client(uri=f"s3://{place}") for place in ("public-pages/landing", "news-root/refined"))
    assert public._request_signer._credentials is None
    assert root._request_signer._credentials is None, "no trigger has asked for it"

    async def roots() -> None:
        given = (give_credentials_in_triggerer(f"s3://{team}-root/refined", recipe=team) for team in TEAMS)
        await asyncio.gather(*given)

    asyncio.run(roots())
    assert dict(os.environ) == before
    for team in TEAMS:
        written(team)
    assert s3_client.s3_client(uri="s3://elsewhere/x")._request_signer._credentials is None, "all else has no key"


def test_what_a_task_was_given_goes_on_to_its_processes_and_workers(file: Path) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    adopt_credentials("s3://blogs-root/refined", recipe="blogs")
    assert "secret-of-blogs" in environment()[store_settings.STORES]
    sent = sender([])
    store_settings._GIVEN.clear()
    assert received(sent.common, sent.pickled([])) == []
    written("blogs")
    store_settings.receive("")
    assert "secret-of-blogs" not in store_settings.sendable(), "a worker keeps nothing of the team before"


def test_the_jobs_api_of_ray_is_told_no_key(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever reaches it reads the command and the settings of every job."""
    from refinery_airflow.runs.credentials import adopt_credentials
    from refinery_airflow.tasks import session

    told: list[Any] = []
    monkeypatch.setattr(ray_jobs, "_asked", lambda *about, **more: told.append((about, more)) or {"status": "RUNNING"})
    monkeypatch.setattr(cluster_jobs, "require_answer", lambda _: None)
    monkeypatch.setattr(session, "_see_alive", lambda *_: None)
    adopt_credentials("s3://blogs-root/refined", recipe="blogs")
    request = RefineRequest(
        "s3://blogs-root/refined",
        "ingest",
        {},
        "ingest/x/manifest.json",
        landing="s3://blogs-root/landing/2026-11-01",
        recipe="blogs",
        snapshot="2026-11-01",
        run_id="r",
        engine="ray",
        address="http://127.0.0.1:8265",
    )
    session.post(request, "try1")
    assert told
    assert "secret" not in repr(told)
    asked = client_objects("blogs-root")
    assert asked
    assert not [name for name, body in asked if b"secret-of" in body], "nor is a request in the root"


def client_objects(bucket: str) -> list[tuple[str, bytes]]:
    store = s3_client.s3_client(uri=f"s3://{bucket}")
    found = store.list_objects_v2(Bucket=bucket, Prefix="refined/requests/").get("Contents", ())
    return [(each["Key"], store.get_object(Bucket=bucket, Key=each["Key"])["Body"].read()) for each in found]


def test_a_connection_that_is_not_set_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials
    from refinery_airflow.tasks.launch import address_of

    monkeypatch.delenv("AIRFLOW_CONN_AWS_NEWS")
    with pytest.raises(RecipeError, match="aws_news"):
        adopt_credentials("s3://news-root/refined", recipe="news")
    with pytest.raises(RecipeError, match="spark_news"):
        address_of("spark", "news")
    assert address_of("spark", "blogs") == address_of("spark"), "spark_default, which need not be set"
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_NEWS", "spark://cluster:7077")
    assert address_of("spark", "news") == "spark://cluster:7077"


# --- Places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["s3://blogs-root/refined", "s3://news-root", "s3://news-root/refined/../x", "/etc"])
def test_a_run_of_a_recipe_may_name_its_own_places_alone(file: Path, place: str) -> None:
    from refinery_airflow.tasks.launch import prepared

    for request in (
        LandRequest(place, "s3://public-pages/landing/2026-11-01", recipe="news"),
        LandRequest("s3://news-root/refined", place, recipe="news.trial"),
    ):
        with pytest.raises(RecipeError) as refused:
            prepared(request)
        assert str(refused.value).startswith(f"{place} is no place that a run may name")
        assert "s3://blogs" not in str(refused.value).removeprefix(place), "the others' places are not told"


@pytest.mark.parametrize("process", ["task", "triggerer", "pages"])
def test_a_list_points_to_places_of_its_own_team_alone(
    process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.runs import credentials
    from refinery_airflow.tasks.launch import prepared

    def give(root: str, landing: str, team: str) -> None:
        if process == "task":
            prepared(LandRequest(root, landing, recipe=team))
        elif process == "triggerer":
            asyncio.run(credentials.give_credentials_in_triggerer(landing, recipe=team))
        else:
            credentials.give_credentials_to_pages(root, landing, recipe=team)

    credentials._ask.cache_clear()
    monkeypatch.setattr(store_settings, "_GIVEN", {})
    written = "".join(
        f"  {team}: {{root: {tmp_path}/{team}/root, landing: {tmp_path}/{team}/landing, places: ['s3://{team}']}}\n"
        for team in TEAMS
    )
    (tmp_path / "teams.yaml").write_text(f"recipes:\n{written}")
    monkeypatch.setenv("REFINERY_DEPLOYMENT", str(tmp_path / "teams.yaml"))
    monkeypatch.setenv("REFINERY_PLACES", "s3://blogs s3://all")  # which is not asked beside the file
    for team in TEAMS:
        landing = tmp_path / team / "landing" / DAY
        landing.mkdir(parents=True)
        for bucket in (*TEAMS, "all"):
            file = {"path": "a.jsonl", "bytes": 1, "sha256": "", "address": f"s3://{bucket}/a", "etag": "1"}
            (landing / "snapshot.json").write_text(json.dumps({"files": [file]}))
            give(f"{tmp_path}/{team}/root", str(landing), team)
            if bucket == team:
                assert list_snapshot(str(landing)).elsewhere == {"a.jsonl"}
            else:
                with pytest.raises(RecipeError, match=f"lists s3://{bucket}/a"):
                    list_snapshot(str(landing))


def test_a_task_of_no_recipe_stays_at_one_root(file: Path) -> None:
    from refinery_airflow.tasks.launch import prepared

    prepared(VerifyRequest("s3://blogs-root/refined"))
    with pytest.raises(RecipeError, match=r"s3://news-root/refined/x is no place"):
        prepared(TrainModelRequest("s3://blogs-root/refined", "q", ("s3://news-root/refined/x",)))


def test_refinery_run_is_not_confined(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from refinery_airflow.runs.credentials import adopt_credentials

    monkeypatch.setenv("REFINERY_LAUNCH_HERE", "1")
    adopt_credentials(str(tmp_path), recipe="news")


def deployment_checks() -> list[Check]:
    return [check for check in checks("") if check.name == "deployment"]


def test_doctor_says_all_that_is_wrong_in_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW_CONN_SPARK_NEWS", "AIRFLOW_CONN_ALERTS_NEWS", "AIRFLOW_CONN_ALERTS_BLOGS"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert [check.message.partition("recipes: ")[2][:6] for check in deployment_checks()] == ["news: ", "blogs:"]
    file.write_text(file.read_text().replace("news:", "web:").replace("blogs:", "demo*:"))
    [whole] = deployment_checks()
    assert whole.ok
    monkeypatch.delenv("AIRFLOW_CONN_AWS_NEWS")
    file.write_text(file.read_text() + "  fineweb_en: {rot: x}\n  web_en: {root: s3://news-root/refined/x}\n")
    wrong = deployment_checks()
    assert not any(check.ok for check in wrong)
    said = "\n".join(check.message for check in wrong)
    for part in ("unknown key 'rot'", "web (line 3) and web_en (line 14)"):
        assert part in said
    file.write_text("recipes: [")
    [broken] = deployment_checks()
    assert not broken.ok
    monkeypatch.delenv("REFINERY_DEPLOYMENT")
    assert deployment_checks() == []


def test_doctor_names_a_connection_that_airflow_does_not_have(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("recipes:\n  web: {root: s3://a/b, landing: s3://a/c, connections: {root: aws_gone}}\n")
    [check] = deployment_checks()
    assert not check.ok
    assert "line 2: recipes: web: connections: root: Airflow has no connection aws_gone" in check.message
    monkeypatch.setenv("AIRFLOW_CONN_AWS_GONE", "aws://")
    assert [check.ok for check in deployment_checks()] == [True]


# --- Alerts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dag", "params", "team"),
    [
        ("refine_news", {}, "news"),
        ("build_blogs", {}, "blogs"),
        ("maintenance_blogs", {"root": "s3://blogs-root/refined"}, "blogs"),
        ("refine_other", {}, ""),
        ("maintenance", {}, ""),
    ],
)
def test_an_alert_goes_to_the_channels_of_its_team_alone(
    file: Path, dag: str, params: dict[str, str], team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk import DAG, BaseOperator
    from refinery_airflow.alerts.alerts import send

    with serving(Hooks()) as news, serving(Hooks()) as blogs, serving(Hooks()) as others:
        hooks = {"news": news, "blogs": blogs, "": others}
        for name, hook in hooks.items():
            variable = f"AIRFLOW_CONN_ALERTS_{name.upper()}" if name else "AIRFLOW_CONN_REFINERY_ALERTS_WEBHOOK"
            monkeypatch.setenv(variable, json.dumps({"conn_type": "http", "host": hook.url}))
        run = os.urandom(8).hex()
        ti = SimpleNamespace(dag_id=dag, run_id=run, task_id="publish", map_index=-1, max_tries=3)
        dag_run = SimpleNamespace(dag_id=dag, run_id=run, partition_key="2026-11-01", logical_date=None)
        with DAG(dag, schedule=None) as wired:
            BaseOperator(task_id="publish")
        context: Any = {"ti": ti, "dag": wired, "dag_run": dag_run, "params": params}
        send(context, [Alert("gate_warned", "headline", ("line",), "Look.")])
        assert {name: len(hook.bodies()) for name, hook in hooks.items()} == {name: int(name == team) for name in hooks}


# --- Pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A root of each team, with a published snapshot."""
    roots = {}
    for team in TEAMS:
        folder = tmp_path_factory.mktemp(team)
        recipe = folder / f"{team}.yaml"
        recipe.write_text(REFINES.replace("tiny", team))
        write_crawl(folder / "crawl", scale=0.1)
        refined(str(folder / "root"), str(folder / "crawl" / DAY), How(recipe=str(recipe)))
        roots[team] = str(folder / "root")
    return roots


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """That of the defaults, in which nothing is."""
    return tmp_path / "defaults"


Ask = Callable[[str, str, str], Any]


@pytest.fixture
def ask(visitor: Any, app: Any, roots: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask for a page in a role on the DAGs of one team; Airflow's database has no run."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.api_fastapi.core_api.security import get_user

    landing = tmp_path / "landing"
    entries = {team: {"root": root, "landing": f"{landing}/{team}"} for team, root in roots.items()}
    (tmp_path / "d.yaml").write_text(json.dumps({"defaults": {"landing": str(landing / "all")}, "recipes": entries}))
    monkeypatch.setenv("REFINERY_DEPLOYMENT", str(tmp_path / "d.yaml"))
    auth, seen = get_auth_manager(), [""]
    known = auth.is_authorized_dag

    def is_authorized_dag(*, details: Any = None, **asked: Any) -> bool:
        own = (f"refine_{seen[0]}", f"build_{seen[0]}")
        return details is not None and details.id in own and known(details=details, **asked)

    monkeypatch.setattr(auth, "is_authorized_dag", is_authorized_dag)

    def asked(team: str, role: str, path: str) -> Any:
        seen[0] = team
        app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username=team, role=role)
        return visitor.get(path)

    return asked


def test_a_page_of_a_recipe_shows_the_root_of_its_team(ask: Ask) -> None:
    for team in TEAMS:
        page = ask(team, "VIEWER", "/page")
        assert page.status_code == 200
        links = set(re.findall(r"/refinery(/of/\w+/[\w/.-]*)", page.text)) | set(
            re.findall(r"/refinery(/snapshot/[\w/.-]*)", page.text)
        )
        assert any(team in link for link in links)
        assert f"{OTHER[team]}" not in page.text
        for path in (f"/snapshot/{team}/{DAY}", f"/of/{team}/snapshot/{team}/{DAY}", f"/of/{team}/sources"):
            shown = ask(team, "VIEWER", path)
            assert (path, shown.status_code) == (path, 200)
            inner = re.findall(r'href="/refinery(/[^"?#]*)', shown.text)
            stray = [link for link in inner if link.startswith("/sources")]
            assert stray == [], "links stay below the root that is shown"
        assert ask(team, "OP", f"/of/{team}/read/{team}/{DAY}").status_code == 200


def test_who_reads_the_other_team_gets_nothing_by_any_path(ask: Ask, roots: dict[str, str], app: Any) -> None:
    for team in TEAMS:
        other = OTHER[team]
        version = version_log.current(roots[other], other, DAY)
        manifests = [path_of(path) for path in version.manifests.values()]
        pages = [
            f"snapshot/{other}/{DAY}",
            f"read/{other}/{DAY}",
            f"rejects/{other}/{DAY}/extract",
            "sources",
            "verdicts",
        ]
        pages += [f"document/{other}/{DAY}?doc=1", f"ask/look-lineage/{other}/{DAY}", "find?site=example.org"]
        pages += [f"{kind}/{path}" for kind in ("manifest", "files", "sample") for path in manifests]
        for page in pages:
            for before in ("/", f"/of/{other}/", f"/of/{team}/"):
                answer = ask(team, "OP", before + page)
                about = (before + page, answer.status_code)
                assert roots[other] not in answer.text, about
                if other in page or before == f"/of/{other}/":
                    assert answer.status_code == 403, about
                else:
                    is_own = before == f"/of/{team}/" or page == "verdicts"  # which lists what its reader may see
                    assert answer.status_code != 200 or is_own, about


def test_a_403_names_the_root_without_a_file_and_does_not_with_one(
    ask: Ask, root: Path, roots: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ask("news", "VIEWER", f"/snapshot/blogs/{DAY}").text
    assert [place for place in (str(root), *roots.values()) if place in refused] == []
    monkeypatch.delenv("REFINERY_DEPLOYMENT")
    assert str(root) in ask("news", "VIEWER", f"/snapshot/blogs/{DAY}").text


def test_a_refused_entry_hides_no_other_and_is_told_to_its_readers_alone(
    ask: Ask, roots: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "d.yaml").write_text(
        f"recipes:\n  news: {{root: {roots['news']}}}\n  blogs: {{rot: {roots['blogs']}}}\n"
    )
    assert ask("news", "VIEWER", f"/snapshot/news/{DAY}").status_code == 200
    assert "news" in ask("news", "VIEWER", "/page").text
    refused = ask("blogs", "VIEWER", f"/snapshot/blogs/{DAY}")
    assert (refused.status_code, "line 3" in refused.text) == (404, True)
    assert "line 3" not in ask("news", "VIEWER", f"/snapshot/blogs/{DAY}").text


def test_a_verdict_is_linked_below_a_recipe_of_its_root(ask: Ask) -> None:
    from refinery_airflow.tasks.ablation import JudgeAblation, VerdictLink

    for recipe, before in (("news", "/of/news"), ("", "")):
        judge = JudgeAblation(task_id="judge", recipe=recipe)
        assert VerdictLink().get_link(judge, ti_key=None) == ""
        judge.verdict = "3"
        assert VerdictLink().get_link(judge, ti_key=None).endswith(f"refinery{before}/verdicts/3")
