"""`refinery run` does what Airflow runs, by a plain loop or by a walk of the DAG: the same bytes by all three."""

import json
from pathlib import Path

import pytest

from tests.archives import response, zipped
from tests.chain import command
from tests.dags.test_run import REPEATED, page
from tests.embedded import PLUGINS, embed

pytestmark = pytest.mark.slow

ALL_WAYS = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import refine
from pipeline_tasks.recipe import load_recipe

def run(how, root):
    events = []
    dag = refine.wire(load_recipe(sys.argv[3]))
    def record(context):
        events.append([context["ti"].task_id, context["ti"].map_index])
    for task in dag.tasks:
        callbacks = [record]
        if task.is_mapped:
            task.partial_kwargs["on_execute_callback"] = callbacks
        else:
            task.on_execute_callback = callbacks
    conf = {"input": sys.argv[4], "root": root, "snapshot": "2026-11-19", "patience": 0, "approval": 0, "engines": {"*": "local"}}
    if how == "loop":
        from pipeline_tasks.flow.loop import run_recipe
        run_recipe(load_recipe(sys.argv[3]), {**conf, "partitions": 0, "override": {}}, {})
    elif how == "walk":
        from refinery_airflow.tasks.walk import walk
        walk(dag, conf)
    else:
        assert str(dag.test(run_conf=conf).state) == "success"
    return events

print("EVENTS", json.dumps([run("airflow", sys.argv[5] + "/airflow"), run("walk", sys.argv[5] + "/walk"), run("loop", sys.argv[5] + "/loop")]))
"""


def test_the_loop_a_walk_and_airflow_run_the_same_tasks_into_the_same_bytes(tmp_path: Path) -> None:
    crawl = tmp_path / "crawl"
    crawl.mkdir()
    for name in ("a", "b", "c"):
        records = [response(f"https://{name}.example.org/{number}", page(number)) for number in range(3)]
        (crawl / f"{name}.warc.gz").write_bytes(b"".join(zipped(records)))
    (tmp_path / "small.yaml").write_text(REPEATED)
    (tmp_path / "home").mkdir()
    environment = embed(tmp_path / "home")
    recipe = str(tmp_path / "small.yaml")
    places = [str(PLUGINS.parent / "dags"), str(PLUGINS), recipe, str(crawl), str(tmp_path)]
    done = command("-c", ALL_WAYS, *places, **environment, REFINERY_RECIPE=recipe, REFINERY_LAUNCH_HERE="1")
    assert done.returncode == 0, done.stderr[-3000:]
    by_airflow, by_walk, _ = json.loads(done.stdout.partition("EVENTS ")[2])
    assert sorted(by_walk) == sorted(by_airflow)
    assert tasks_of(by_walk) == tasks_of(by_airflow)  # parts of a mapped task end in any order
    stages = ("ingest", "extract", "filter_url")
    parts = [
        [f"{stage}.{part}", at]
        for stage in stages
        for part, at in (("partition", 0), ("partition", 1), ("seal", -1), ("gate", -1))
    ]
    assert by_walk == [["sense", -1], ["turn", -1], ["land", -1], *parts, ["publish_gate", -1], ["publish", -1]]
    for how in ("walk", "loop"):
        assert manifests(tmp_path / how) == manifests(tmp_path / "airflow") != {}
        assert objects(tmp_path / how) == objects(tmp_path / "airflow") != set()


def tasks_of(events: list[tuple[str, int]]) -> list[str]:
    """The tasks in the order in which they first ran."""
    return list(dict.fromkeys(task for task, _ in events))


def manifests(root: Path) -> dict[str, bytes]:
    """Every sealed manifest and verdict of a root, by path."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*.json"))
        if path.name in ("manifest.json", "verdict.json")
    }


def objects(root: Path) -> set[str]:
    """The objects of a root by path, without those that have the times of the run: alerts, the report, the ledger."""
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return {
        str(path) for path in paths if path.parts[0] != "alerts" and not path.name.startswith(("ledger.", "report-"))
    }
