"""Which runs the DAG `arrivals` starts: for folders that landed and were not seen, and for stale snapshots."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from tests.airflow_server import archive_of
from tests.chain import reply
from tests.small_root import DAYS, RECIPE, SmallRoot

BODY = b"{}\n"


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    import refinery_airflow.tasks.arrivals  # noqa: F401 -- Airflow configures logging when it is first imported


def land(landing: Path, name: str, promised: int, present: int) -> None:
    folder = landing / name
    folder.mkdir(parents=True)
    files = [{"path": f"{number}.jsonl", "bytes": len(BODY), "sha256": "0" * 64} for number in range(promised)]
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": name, "files": files}))
    for number in range(present):
        (folder / f"{number}.jsonl").write_bytes(BODY)


def context(tmp_path: Path, *, paused: bool = False, seen: tuple[str, ...] = (), running: int = 0) -> Any:
    """What `look` runs in: its params, the events of arrivals, and how many runs of a date are under way."""
    ti = SimpleNamespace(
        get_dag=lambda _: SimpleNamespace(is_paused=paused),
        get_dr_count=lambda _, logical_dates, states: running,  # noqa: ARG005 -- Airflow's names
    )
    params = {"landing": str(tmp_path / "landing"), "root": str(tmp_path / "root"), "stale": False}
    events = [SimpleNamespace(partition_key=name) for name in seen]
    return {"ti": ti, "params": params, "inlet_events": _Events(events), "dag_run": SimpleNamespace(run_id="r")}


class _Events:
    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def __getitem__(self, asset: Any) -> list[Any]:
        assert asset.name == "web_arrivals"
        return self.events


def look() -> Any:
    from refinery_airflow.tasks.arrivals import Look

    return Look(task_id="look", dags={"refine": "web"}, backlog={"web": 0})


def started(starts: list[dict[str, Any]]) -> list[str]:
    return [start["trigger_run_id"] for start in starts]


def test_complete_snapshots_of_any_name_are_started_once_and_in_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("_staging", "CC-MAIN-2026-45", "2026-11-02", "news", "2026-11-01"):
        land(tmp_path / "landing", name, 2, 2)
    land(tmp_path / "landing", "half", 2, 1)
    caplog.set_level("INFO", logger="refinery")
    starts = look().execute(context(tmp_path, seen=("news",)))
    assert started(starts) == ["arrival__2026-11-01", "arrival__2026-11-02", "arrival__CC-MAIN-2026-45"]
    assert starts[0]["conf"] == {
        "snapshot": "2026-11-01",
        "input": str(tmp_path / "landing" / "2026-11-01"),
        "root": str(tmp_path / "root"),
    }
    assert [line for line in caplog.messages if "half is incomplete" in line and "1 missing: 1.jsonl" in line]


def test_a_snapshot_of_deletions_alone_is_neither_started_nor_a_backlog(tmp_path: Path) -> None:
    from refinery_airflow.tasks.arrivals import backlog_now

    landing, root = tmp_path / "landing", str(tmp_path / "root")
    land(landing, "news-1", 1, 1)
    land(landing, "news-2", 0, 0)
    (landing / "news-2" / "_deleted.jsonl").write_text('{"id": 1}')
    assert started(look().execute(context(tmp_path))) == ["arrival__news-1"]
    assert list(backlog_now(str(landing), root, "web", 0.0).landed) == ["news-1"]


def test_what_has_landed_starts_the_rollout_of_a_recipe_that_has_one(tmp_path: Path) -> None:
    from refinery_airflow.tasks.arrivals import Look

    land(tmp_path / "landing", "news", 1, 1)
    rolled = Look(task_id="look", dags={"refine": "web"}, backlog={"web": 0}, rollouts={"web": "rollout_web"})
    [start] = rolled.execute(context(tmp_path))
    assert (start["trigger_dag_id"], start["trigger_run_id"]) == ("rollout_web", "arrival__news")
    assert set(start["conf"]) == {"snapshot", "input", "root"}, "the params of a rollout"


def test_a_date_is_left_to_its_own_run_while_that_waits(tmp_path: Path) -> None:
    for name in ("2026-11-01", "20261101"):
        land(tmp_path / "landing", name, 1, 1)
    assert started(look().execute(context(tmp_path, running=1))) == ["arrival__20261101"]


def test_a_paused_dag_is_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    land(tmp_path / "landing", "news", 1, 1)
    caplog.set_level("INFO", logger="refinery")
    assert look().execute(context(tmp_path, paused=True)) == []
    assert caplog.messages == ["refine is paused: what has landed is not refined by it until you unpause it"]


def test_a_landing_that_does_not_exist_yet_has_no_snapshots(tmp_path: Path) -> None:
    assert look().execute(context(tmp_path)) == []


def test_stale_snapshots_are_started_again_from_where_they_landed(small_root: SmallRoot, tmp_path: Path) -> None:
    from refinery_airflow.tasks.arrivals import stale_starts

    root = shutil.copytree(small_root.root, tmp_path / "root")
    assert stale_starts("refine", RECIPE, str(root), "r") == []
    version_log.retract(str(root), RECIPE, DAYS[0], "a test")
    [start] = stale_starts("refine", RECIPE, str(root), "r")
    assert start["trigger_run_id"] == f"stale__{DAYS[1]}__r"
    landed = start["conf"]["input"]
    assert (start["conf"]["snapshot"], start["conf"]["patience"]) == (DAYS[1], 0)
    assert {name for name, _, _ in list_snapshot(landed).files} == {
        name for name, _, _ in list_snapshot(str(small_root.landing / DAYS[1])).files
    }
    assert f"{DAYS[1]} is stale from" in start["note"]


def published_with_a_refused_gate(tmp_path: Path) -> tuple[str, version_log.Version]:
    """Publish a day of two stages; a person let the gate of the second pass."""
    root, landing = str(tmp_path / "root"), tmp_path / "landing" / "2026-11-19"
    landing.mkdir(parents=True)
    (landing / "a.warc.gz").write_bytes(archive_of(0))
    named = {"root": root, "recipe": RECIPE, "snapshot": landing.name}
    landed = reply("land", **named, input=str(landing))
    manifests, verdicts, parent = {"land": landed["manifest"]}, {}, landed["manifest"]
    for stage, bounds in (("ingest", {}), ("extract", {"retention": {"critical": {"max_value": 0.5}}})):
        request = {"stage": stage, "params": {}, "parent": parent, "landing": landed["landing"]}
        parent = manifests[stage] = reply("refine", **named, **request)["manifest"]
        judged = reply("judge", **named, manifest=parent, bounds=bounds, override="a forum")
        verdicts[stage] = judged["verdict"]
    reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    return root, version_log.current(root, RECIPE, landing.name)


def test_what_a_person_let_pass_passes_again_where_nothing_changed(tmp_path: Path) -> None:
    """A stale day whose crawl had been approved was refused again, for the same manifest."""
    from refinery_airflow.tasks.arrivals import accepted_before

    root, version = published_with_a_refused_gate(tmp_path)
    assert accepted_before(["tokenize", "dedup_exact"], root, version) == {"extract": "a forum"}
    assert accepted_before(["tokenize", "extract"], root, version) == {}
    assert accepted_before(["ingest"], root, version) == {}
