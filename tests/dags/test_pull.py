"""The DAG of a source lands a snapshot below the landing, says when nothing is new, and tries no refusal again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.store.taken_down import takedowns
from tests.chain import command
from tests.crawl_mirror import CRAWL, Fault, archives, mirrored
from tests.embedded import PLUGINS, embed

RUNS = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import sources
from refinery_sources import budget

budget.PLACE = Path(sys.argv[4])
run = getattr(sources, sys.argv[5]).test(run_conf=json.loads(sys.argv[3]))
tasks = {task.task_id: [str(task.state), task.try_number] for task in run.get_task_instances()}
pull = run.get_task_instance("pull")
print("RUN", json.dumps([str(run.state), tasks, pull.xcom_pull(task_ids="pull", key="landed")]))
"""


def test_a_crawl_is_pulled_once_a_week_by_one_task(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["pull_common_crawl"]
    assert [(task["id"], task["retries"], task["policy"]) for task in dag["tasks"]] == [("pull", 3, True)]
    query = {"crawl", "kind", "segments", "files", "sample", "seed", "address", "without", "in_place", "bucket"}
    named = {*query, "landing", "rate", "workers", "again"}
    assert set(dag["params"]) == named
    assert (dag["schedule"], dag["catchup"], dag["assets"], dag["most_runs"]) == ("0 6 * * 1", False, [], 1)
    assert "Runbook" in dag["doc"]


@pytest.mark.slow
def test_a_run_lands_the_newest_crawl_and_a_refusal_ends_it_at_the_first_try(tmp_path: Path) -> None:
    """Only this runs the pull as a task of Airflow: its params, its XCom, a skip, and the retry policy."""
    (tmp_path / "home").mkdir()
    (tmp_path / "budgets").mkdir()
    environment = embed(tmp_path / "home")
    files = archives(3, 20_000)
    with mirrored() as mirror:
        mirror.add(files)
        mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()

        def run(landing: str, name: str = "pull_common_crawl", **more: Any) -> list[Any]:
            params = {"landing": f"{tmp_path}/{landing}", "address": mirror.address, "files": 2, "rate": 1000, **more}
            places = [str(PLUGINS.parent / "dags"), str(PLUGINS), json.dumps(params), str(tmp_path / "budgets"), name]
            done = command("-c", RUNS, *places, **environment)
            assert done.returncode == 0, done.stderr[-3000:]
            return list(json.loads(done.stdout.partition("RUN ")[2].splitlines()[0]))

        state, tasks, landed = run("landing")
        assert (state, tasks, landed["snapshot"], landed["files"]) == ("success", {"pull": ["success", 1]}, CRAWL, 2)
        assert landed["input"] == f"{tmp_path}/landing/{CRAWL}"
        assert len(list_snapshot(landed["input"]).files) == 2
        deleted = delete(Path(landed["input"]))
        environment["REFINERY_SOURCES"] = str(own_recipe(tmp_path))
        asked = len(mirror.data())
        state, tasks, found = run("landing", "pull_news", root=str(tmp_path / "root"))
        assert (state, tasks) == ("success", {"pull": ["skipped", 1], "takedown": ["success", 1]})
        assert (found["input"], len(mirror.data())) == (landed["input"], asked)
        assert [entry.entries for entry in takedowns(str(tmp_path / "root"))] == [(("url", deleted),)]
        del environment["REFINERY_SOURCES"]
        mirror.fault = lambda asked: Fault(403) if asked.is_data else None
        assert run("another")[:2] == ["failed", {"pull": ["failed", 1]}]
        assert len(mirror.data()) == asked + 1


def own_recipe(folder: Path) -> Path:
    recipe = folder / "news.yaml"
    query = "{crawl: latest}"
    recipe.write_text(f"schedule: ''\npool: polite\ndeletions: takedown\nsource:\n  common_crawl: {query}\n")
    return recipe


def delete(landing: Path) -> str:
    """Let the source of a landing say that it has deleted a URL; return it."""
    url = "https://example.org/gone"
    body = json.dumps({"url": url}).encode()
    (landing / "_deleted.jsonl").write_bytes(body)
    promise = json.loads((landing / "snapshot.json").read_bytes())
    digest = hashlib.sha256(body).hexdigest()
    promise["source"]["beside"] = [{"path": "_deleted.jsonl", "bytes": len(body), "sha256": digest}]
    (landing / "snapshot.json").write_text(json.dumps(promise))
    return url


def test_recipes_of_ones_own_are_dags_with_their_pool_and_their_takedown(
    parse: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    dags = parse("sources.py", REFINERY_SOURCES=f"{own_recipe(tmp_path)}, common_crawl")["dags"]
    assert {name for name in dags if name.startswith("pull_")} == {"pull_news", "pull_common_crawl"}
    news = dags["pull_news"]
    assert {task["id"]: (task["pool"], task["downstream"]) for task in news["tasks"]} == {
        "pull": ("polite", ["takedown"]),
        "takedown": ("polite", []),
    }
    assert (news["schedule"], "root" in news["params"]) == ("", True)
    outlets = {task["id"]: task["outlets"] for task in news["tasks"]}
    assert outlets == {"pull": ["landings", "landing/news"], "takedown": []}
