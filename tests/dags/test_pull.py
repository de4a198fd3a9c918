"""The DAG that pulls a crawl lands it below the landing, and tries no refusal again."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.landing.listing import list_snapshot
from tests.chain import command
from tests.crawl_mirror import CRAWL, Fault, archives, mirrored
from tests.embedded import PLUGINS, embed

RUNS = """
import json, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from pull_common_crawl import dag
from pipeline_tasks.sources import budget

budget.PLACE = Path(sys.argv[4])
run = dag.test(run_conf=json.loads(sys.argv[3]))
(task,) = run.get_task_instances()
print("RUN", json.dumps([str(run.state), task.try_number, task.xcom_pull(task_ids="pull")]))
"""


def test_a_crawl_is_pulled_once_a_week_by_one_task(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["pull_common_crawl"]
    assert [(task["id"], task["retries"], task["policy"]) for task in dag["tasks"]] == [("pull", 3, True)]
    named = {"crawl", "kind", "segments", "files", "sample", "landing", "seed", "address", "rate", "workers"}
    assert set(dag["params"]) == named
    assert (dag["schedule"], dag["catchup"], dag["assets"], dag["most_runs"]) == ("0 6 * * 1", False, [], 1)
    assert "Runbook" in dag["doc"]


@pytest.mark.slow
def test_a_run_lands_the_newest_crawl_and_a_refusal_ends_it_at_the_first_try(tmp_path: Path) -> None:
    """Only this runs the pull as a task of Airflow: its params, its XCom, and the retry policy."""
    (tmp_path / "home").mkdir()
    (tmp_path / "budgets").mkdir()
    environment = embed(tmp_path / "home")
    files = archives(3, 20_000)
    with mirrored() as mirror:
        mirror.add(files)
        mirror.files["/collinfo.json"] = json.dumps([{"id": CRAWL}]).encode()

        def run(landing: str) -> list[Any]:
            params = {"landing": f"{tmp_path}/{landing}", "address": mirror.address, "files": 2, "rate": 1000}
            places = [str(PLUGINS.parent / "dags"), str(PLUGINS), json.dumps(params), str(tmp_path / "budgets")]
            done = command("-c", RUNS, *places, **environment)
            assert done.returncode == 0, done.stderr[-3000:]
            return list(json.loads(done.stdout.partition("RUN ")[2].splitlines()[0]))

        state, tries, landed = run("landing")
        assert (state, tries, landed["snapshot"], landed["files"]) == ("success", 1, CRAWL, 2)
        assert landed["input"] == f"{tmp_path}/landing/{CRAWL}"
        assert len(list_snapshot(landed["input"]).files) == 2
        mirror.fault = lambda asked: Fault(403) if asked.is_data else None
        asked = len(mirror.data())
        assert run("another")[:2] == ["failed", 1]
        assert len(mirror.data()) == asked + 1
