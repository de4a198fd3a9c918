"""Two teams and their operators on one Airflow.

Each team lands, runs, publishes, reads and is told by its own places, keys and channels alone. What a source of the
operators lands is refined in growing parts, and nothing is started twice.
"""

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import Airflow, Server, airflow_server, archive_of, until
from tests.channels import Hooks, serving
from tests.crawl_mirror import CRAWL, Mirror, mirrored
from tests.s3_server import S3Server, s3_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

TEAMS = ("news", "blogs")
READERS = {"news": "ann", "blogs": "bob"}
OTHER = {"news": "blogs", "blogs": "news"}
DAY = "2026-11-01"

RECIPE = """
name: {name}
stages:
  ingest: {{}}
  extract: {{method: resiliparse, min_chars: 20}}
run: {{partitions: 1, engines: {{ingest: local, extract: local}}}}
gates:
  publish: {{documents: {{min_value: {documents}}}}}
"""

FILE = """
recipes:
  {one}:
    root: s3://{one}-root/refined
    landing: s3://{one}-landing
    connections: {{root: aws_{one}}}
    owner: {one}
    execution_timeout: 2
    alerts: {{webhook: alerts_{one}}}
"""

ROLLED = """
name: rolled
rollout: [0.5, 1]
stages:
  ingest: {}
  extract: {method: resiliparse, min_chars: 20}
run: {partitions: 1, engines: {ingest: local, extract: local}}
gates: {}
"""
"""The recipe of the operators, in a root of their own."""

RIGHTS = """
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

known, teams = SimpleAuthManager.is_authorized_dag, {teams}


def is_authorized_dag(self, *, user, details=None, **asked):
    team = teams.get(user.username)
    if team and details is not None and details.id and not details.id.endswith(f"_{{team}}"):
        return False
    return known(self, user=user, details=details, **asked)


SimpleAuthManager.is_authorized_dag = is_authorized_dag
"""
"""A plugin that gives the readers rights on the DAGs of their team alone, as FAB's `access_control` does.

`airflow standalone` has the simple auth manager whatever is set, and its teams have a triggerer each.
"""


@dataclass(slots=True)
class Shared:
    """The Airflow of both teams, their stores, and what each was told."""

    server: Server
    stores: dict[str, S3Server]
    hooks: dict[str, Hooks]

    def airflow(self, team: str, user: str = "admin") -> Airflow:
        """The API as a user sees it, which speaks of the DAG of a team."""
        api = self.server.api(team)
        return api if user == "admin" else api.as_user(user)

    def objects(self, team: str) -> list[str]:
        """The objects of the root of a team."""
        pages = client(self.stores[team]).get_paginator("list_objects_v2").paginate(Bucket=f"{team}-root")
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def page(self, team: str, user: str, path: str) -> tuple[int, str]:
        """The status and the text of a page as a user sees it."""
        token = self.airflow(team, user).token
        asked = urllib.request.Request(
            f"{self.server.url}/refinery{path}", headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=300) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of SQS: a client of it, its URL, and the connection by which Airflow reads it."""

    sqs: Any
    url: str
    connection: str


def client(store: S3Server, service: str = "s3") -> Any:
    keys = {"aws_access_key_id": store.env["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": "refinery-secret"}
    return boto3.client(service, endpoint_url=store.endpoint, region_name="us-east-1", **keys)


def connection(store: S3Server) -> str:
    keys = {"login": store.env["AWS_ACCESS_KEY_ID"], "password": "refinery-secret"}
    return json.dumps(
        {"conn_type": "aws", **keys, "extra": {"endpoint_url": store.endpoint, "region_name": "us-east-1"}}
    )


def land(store: S3Server, team: str) -> None:
    """Land a day of a team, whose file comes before the list of files."""
    archive = archive_of(10 * TEAMS.index(team))
    file = {"path": "a.warc.gz", "bytes": len(archive), "sha256": hashlib.sha256(archive).hexdigest()}
    for name, body in (
        ("a.warc.gz", archive),
        ("snapshot.json", json.dumps({"snapshot": DAY, "files": [file]}).encode()),
    ):
        client(store).put_object(Bucket=f"{team}-landing", Key=f"{DAY}/{name}", Body=body)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, S3Server]]:
    """A server of S3 for each team, which refuses the other's key."""
    folders = {team: tmp_path_factory.mktemp(team) for team in TEAMS}
    with s3_server(folders["news"], "key-of-news") as news, s3_server(folders["blogs"], "key-of-blogs") as blogs:
        stores = {"news": news, "blogs": blogs}
        for team, store in stores.items():
            for place in ("root", "landing"):
                client(store).create_bucket(Bucket=f"{team}-{place}")
        yield stores


@pytest.fixture(scope="module")
def mirror() -> Iterator[Mirror]:
    """Where the source of the operators is, with a crawl of four files."""
    with mirrored() as mirror:
        mirror.add({f"part-{number}.warc.gz": archive_of(20 * number) for number in range(4)})
        mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()
        yield mirror


@pytest.fixture(scope="module")
def queue(s3_server: S3Server) -> Queue:
    """The queue of the operators, whose key is that of a connection."""
    sqs = client(s3_server, "sqs")
    return Queue(sqs, sqs.create_queue(QueueName="rolled")["QueueUrl"], connection(s3_server))


def sources_of(folder: Path, mirror: Mirror, queue: Queue) -> dict[str, str]:
    """Return the variables that name the source of the operators and its queue."""
    source = folder / "ferries.yaml"
    source.write_text(f"rate: 1000\nsource:\n  common_crawl: {{crawl: latest, address: '{mirror.address}'}}\n")
    return {
        "REFINERY_SOURCES": str(source),
        "REFINERY_QUEUE": queue.url,
        "AIRFLOW_CONN_AWS_DEFAULT": queue.connection,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",  # a watcher begins when its file is read again
    }


@pytest.fixture(scope="module")
def shared(
    stores: dict[str, S3Server], mirror: Mirror, queue: Queue, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    """An Airflow whose environment has no key; a run of each team has waited in the triggerer, and has ended."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "deployment.yaml").write_text(
        "recipes:" + "".join(FILE.format(one=team).removeprefix("\nrecipes:") for team in TEAMS)
    )
    plugins = folder / "home" / "airflow" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "rights.py").write_text(RIGHTS.format(teams={user: team for team, user in READERS.items()}))
    recipes = {"rolled": ROLLED}
    recipes |= {"news": RECIPE.format(name="news", documents=1), "blogs": RECIPE.format(name="blogs", documents=1000)}
    with serving(Hooks()) as of_news, serving(Hooks()) as of_blogs:
        hooks = {"news": of_news, "blogs": of_blogs}
        settings = {
            "REFINERY_DEPLOYMENT": str(folder / "deployment.yaml"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,ann:viewer,bob:viewer",
            **sources_of(folder, mirror, queue),
        }
        for team in TEAMS:
            settings[f"AIRFLOW_CONN_AWS_{team.upper()}"] = connection(stores[team])
            webhook = json.dumps({"conn_type": "http", "host": hooks[team].url})
            settings[f"AIRFLOW_CONN_ALERTS_{team.upper()}"] = webhook
        with airflow_server(folder, recipes, **settings) as server:
            shared = Shared(server, stores, hooks)
            ran(shared)
            yield shared


def ran(shared: Shared) -> None:
    """Let a run of each team wait for its day in the one triggerer, land both, and wait for the ends."""
    for team in TEAMS:
        api = shared.airflow(team)
        until(api.is_known, lambda api=api: f"{api.dag} was not read: {shared.server.log}")
        api.pause(paused=False)
        api.trigger(DAY, {"approval": 0})
    for team in TEAMS:
        api = shared.airflow(team)
        until(
            lambda api=api: api.state(f"of_{DAY}", "sense") == "deferred", lambda api=api: str(api.states(f"of_{DAY}"))
        )
    for team, store in shared.stores.items():
        land(store, team)
    for team, end in (("news", "success"), ("blogs", "failed")):
        api = shared.airflow(team)
        until(
            lambda api=api, end=end: api.state(f"of_{DAY}") == end,
            lambda api=api, team=team: f"{team}: {api.states(f'of_{DAY}')}",
        )


def test_each_team_publishes_to_its_own_store_and_no_key_was_shown_to_the_other(shared: Shared) -> None:
    """Only this file runs two teams by one scheduler and triggerer, with servers that refuse and note other keys."""
    for team, store in shared.stores.items():
        assert store.asked() == {f"key-of-{team}"}
        objects = shared.objects(team)
        assert objects
        assert not [name for name in objects if OTHER[team] in name]
    assert any(name.startswith("refined/datasets/news/") for name in shared.objects("news")), shared.objects("news")
    assert shared.airflow("blogs").state(f"of_{DAY}", "publish_gate") == "failed"
    assert not [name for name in shared.objects("blogs") if name.startswith("refined/datasets/")]


def test_a_team_alone_is_told_of_its_refused_gate(shared: Shared) -> None:
    assert shared.hooks["news"].bodies() == []
    told = shared.hooks["blogs"].bodies()
    assert told
    assert {body["dag"] for body in told} == {"refine_blogs"}


def test_a_viewer_sees_nothing_of_the_other_team(shared: Shared) -> None:
    for team, user in READERS.items():
        other = OTHER[team]
        dags = shared.airflow(team, user).call("GET", "/api/v2/dags?limit=100")["dags"]
        names = {dag["dag_id"] for dag in dags}
        assert f"refine_{team}" in names
        assert f"refine_{other}" not in names
        with pytest.raises(urllib.error.HTTPError, match=r"40[34]"):
            shared.airflow(other, user).state(f"of_{DAY}")
        status, page = shared.page(team, user, "/page")
        assert status == 200
        assert (team in page, other in page) == (True, False)
        for path in (
            f"/snapshot/{other}/{DAY}",
            f"/of/{other}/sources",
            f"/of/{team}/read/{other}/{DAY}",
            f"/of/{other}/verdicts",
        ):
            status, page = shared.page(team, user, path)
            assert (path, status) == (path, 403)
            assert f"s3://{other}" not in page
            assert DAY not in page
    assert shared.page("news", "ann", f"/snapshot/news/{DAY}")[0] == 200
    assert shared.page("news", "ann", "/of/news/verdicts")[0] == 200


def test_the_dags_of_no_recipe_are_of_one_root(shared: Shared) -> None:
    names = {dag["dag_id"] for dag in shared.airflow("news").call("GET", "/api/v2/dags?limit=100")["dags"]}
    assert {f"{dag}{of}" for dag in ("arrivals", "maintenance") for of in ("", "_news", "_blogs")} <= names
    for dag, wrong in (("maintenance", "root"), ("maintenance_news", "root"), ("arrivals_news", "landing")):
        body = {"logical_date": None, "conf": {wrong: f"s3://blogs-{wrong}/refined"}}
        with pytest.raises(urllib.error.HTTPError, match="400"):
            shared.airflow("news").call("POST", f"/api/v2/dags/{dag}/dagRuns", body)


def test_a_run_into_the_other_teams_root_is_refused_by_name(shared: Shared) -> None:
    before = shared.objects("blogs")
    api = shared.airflow("news")
    run = api.trigger(DAY, {"root": "s3://blogs-root/refined", "approval": 0}, kind="into")
    until(lambda: api.state(run) == "failed", lambda: str(api.states(run)))
    assert shared.objects("blogs") == before
    assert shared.stores["blogs"].asked() == {"key-of-blogs"}
    told = json.dumps(shared.hooks["news"].bodies())
    assert "s3://blogs-root/refined is no place that a run may name" in told
    assert "refine_news" not in json.dumps(shared.hooks["blogs"].bodies())


@contextmanager
def unpaused(api: Airflow, dag: str) -> Iterator[Airflow]:
    """Let a DAG run; yield the API, which speaks of it."""
    of_dag = Airflow(api.url, api.passwords, dag, api.log)
    until(of_dag.is_known, lambda: f"{dag} was not read")
    of_dag.pause(paused=False)
    yield of_dag
    of_dag.pause(paused=True)


def started(api: Airflow, run: str) -> bool:
    return run in [known["dag_run_id"] for known in api.runs()]


def woken(arrivals: Airflow) -> int:
    return sum(known["run_type"] == "asset_triggered" for known in arrivals.runs())


@dataclass(frozen=True, slots=True)
class Rolled:
    """What a source of the operators landed, and was tried: the DAGs that it went through, and the run's name."""

    refine: Airflow
    rollout: Airflow
    arrivals: Airflow
    pull: Airflow
    run: str = f"arrival__{CRAWL}"
    trial: str = f"rollout_50__{CRAWL}"


@pytest.fixture(scope="module")
def rolled(shared: Shared) -> Iterator[Rolled]:
    """The first pull, and the trial that its event has started."""
    api = shared.server.api("rolled")
    with (
        unpaused(api, "refine_rolled") as refine,
        unpaused(api, "rollout_rolled") as rollout,
        unpaused(api, "arrivals") as arrivals,
        unpaused(api, "pull_ferries") as pull,
    ):
        rolled = Rolled(refine, rollout, arrivals, pull)
        pull.call("POST", "/api/v2/dags/pull_ferries/dagRuns", {"logical_date": None, "dag_run_id": "first"})
        pull.waits_until("first", "success")
        until(lambda: started(rollout, rolled.run), lambda: f"nothing was started: {arrivals.runs()}")
        until(lambda: started(refine, rolled.trial), lambda: f"no trial was started: {rollout.states(rolled.run)}")
        refine.waits_until(rolled.trial, "success")
        yield rolled


def test_what_a_source_lands_is_tried_and_not_published(shared: Shared, rolled: Rolled) -> None:
    """Only this file shows that the event of an asset starts `arrivals`, and what that starts."""
    root = shared.server.root("rolled")
    assert [version.snapshot for version in version_log.versions(root, "rolled.trial")] == [CRAWL]
    assert version_log.versions(root, "rolled") == []
    rolled.rollout.waits_until(rolled.run, "awaiting_input", "approve_100")
    until(lambda: woken(rolled.arrivals) >= 1, lambda: f"no event woke it: {rolled.arrivals.runs()}")


@pytest.mark.nightly
def test_what_was_tried_is_rolled_out_step_by_step_and_once(shared: Shared, rolled: Rolled, queue: Queue) -> None:
    """Only this shows that messages start `arrivals`, and what a rollout starts goes on to a version."""
    rollout, arrivals, pull, run = rolled.rollout, rolled.arrivals, rolled.pull, rolled.run
    rollout.waits_until(run, "awaiting_input", "approve_100")
    approve = {"chosen_options": ["Approve"], "params_input": {}}
    form = "/taskInstances/approve_100/-1/hitlDetails"
    assert f"/snapshot/rolled.trial/{CRAWL}" in rollout.of_run(run, form)["body"]
    rollout.decide(
        run,
        "approve_100",
        lambda: rollout.of_run(run, form, "PATCH", approve),
        lambda: rollout.state(run, "approve_100") == "success",
    )
    rollout.waits_until(run, "success")
    [version] = version_log.versions(shared.server.root("rolled"), "rolled")
    assert (version.snapshot, version.documents) == (CRAWL, 36)
    again: Any = {"logical_date": None, "dag_run_id": "second"}
    pull.call("POST", "/api/v2/dags/pull_ferries/dagRuns", again)
    pull.waits_until("second", "success")
    assert pull.state("second", "pull") == "skipped"
    events = pull.call("GET", "/api/v2/assets/events?limit=100")["asset_events"]
    landed = [event for event in events if event["source_dag_id"] == "pull_ferries"]
    assert {event["source_run_id"] for event in landed} == {"first"}
    assert [event["extra"]["snapshot"] for event in landed] == [CRAWL] * 2
    before = woken(arrivals)
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody=f"{CRAWL}/snapshot.json")
    until(lambda: woken(arrivals) > before, lambda: f"no message woke it: {arrivals.runs()}")
    until(lambda: all(known["state"] == "success" for known in arrivals.runs()), lambda: f"{arrivals.runs()}")
    assert [known["dag_run_id"] for known in rollout.runs()] == [run]
