"""The DAG that compares recipes: its form, its tasks, and what it refuses before an arm is made."""

import json
import venv
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.chain import command
from tests.embedded import PLUGINS, embed

RUN = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from ablate import refinery_ablate as dag

run = dag.test(run_conf=json.loads(sys.argv[3]))
print("TASKS", json.dumps({task.task_id: str(task.state) for task in run.get_task_instances()}))
"""


def test_runs_of_an_arm_are_a_mapped_task(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["refinery_ablate"]
    in_turn = ["plan", "train_a", "forecast", "train_b", "judge"]
    downstream = {before: [after] for before, after in pairwise(in_turn)}
    assert {task["id"]: task["downstream"] for task in dag["tasks"]} == downstream | {"judge": []}
    assert [task["id"] for task in dag["tasks"] if task["mapped"]] == ["train_a", "train_b"]
    assert {(task["retries"], task["policy"]) for task in dag["tasks"]} == {(3, True)}
    options = {"recipes", "datasets", "input", "held_out", "to", "size", "tokens", "seeds", "rates", "threads"}
    assert set(dag["params"]) == options | {"wanted", "usd_per_hour", "require", "override", "root"}
    assert (dag["schedule"], dag["assets"], dag["most_runs"]) == ("", [], 1)


def test_a_pool_and_a_queue_are_those_of_the_devices(parse: Any) -> None:
    dag = parse("ablate.py", REFINERY_TRAIN_POOL="devices", REFINERY_TRAIN_QUEUE="gpu")["dags"]["refinery_ablate"]
    assert {task["id"] for task in dag["tasks"] if task["pool"] == "devices"} == {"train_a", "train_b"}
    assert {task["queue"] for task in dag["tasks"]} == {"gpu"}


@pytest.mark.slow
@pytest.mark.nightly
def test_without_torch_a_run_ends_before_an_arm_is_made_and_is_not_tried_again(tmp_path: Path) -> None:
    """Only this runs it by Airflow without torch, by an interpreter that has nothing but Python."""
    venv.create(tmp_path / "bare", with_pip=False)
    for name in ("home", "root"):
        (tmp_path / name).mkdir()
    held_out = tmp_path / "held-out.jsonl"
    held_out.write_text('{"text": "a"}\n')
    params = {"recipes": ["web", "web_en"], "input": [str(tmp_path)], "held_out": [str(held_out)]}
    params |= {"to": str(tmp_path / "to"), "root": str(tmp_path / "root")}
    bare = str(tmp_path / "bare" / "bin" / "python")
    environment = embed(tmp_path / "home") | {"REFINERY_LAUNCH_HERE": "1", "REFINERY_TRAIN_PYTHON": bare}
    places = [str(PLUGINS.parent / "dags"), str(PLUGINS), json.dumps(params)]
    done = command("-c", RUN, *places, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    tasks = json.loads(done.stdout.partition("TASKS ")[2])
    assert (tasks["plan"], tasks["judge"]) == ("failed", "upstream_failed")
    logged = done.stdout + done.stderr
    assert "RecipeError" in logged
    assert bare in logged
    assert not (tmp_path / "to").exists()
