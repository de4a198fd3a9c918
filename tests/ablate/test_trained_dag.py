"""The DAG `refinery_ablate` trains to the same bytes and the same verdict as the command."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from refinery_ablate import running
from refinery_ablate.arms.data import ArmData
from refinery_ablate.job import RESULT, jobs_of, read_plan

from pipeline_tasks.cli.main import main
from pipeline_tasks.publish.logs.ablation_log import ablations
from tests.ablate import planted
from tests.embedded import PLUGINS, embed

pytest.importorskip("torch", reason="needs torch: make models-test")

from refinery_ablate import training_run

RUN = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from ablate import refinery_ablate as dag

run = dag.test(run_conf=json.loads(sys.argv[3]))
found = [(task.task_id, task.map_index, str(task.state)) for task in run.get_task_instances()]
print("TASKS", json.dumps(found))
"""

RECIPE = """
name: {name}
stages:
  ingest: {{}}
  extract: {{min_chars: {least}}}
  dedup_exact: {{buckets: 1}}
run: {{partitions: 1}}
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A landed snapshot, two recipes of which one keeps long texts alone, and held-out documents."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "landing").mkdir()
    texts = enumerate(planted.texts(500, 1))
    records = ({"text": " ".join(words), "url": f"https://a.example/{at}"} for at, words in texts)
    (folder / "landing" / "a.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    recipes = []
    for name, least in (("all", 1), ("long", 350)):
        (folder / f"{name}.yaml").write_text(RECIPE.format(name=name, least=least))
        recipes.append(str(folder / f"{name}.yaml"))
    return {
        "recipes": recipes,
        "input": [str(folder / "landing")],
        "held_out": [planted.held_out(folder, 30)],
        "tokens": 16_000,
        "seeds": 2,
        "rates": [0.004],
        "threads": 1,
    }


def datasets_of(folder: Path) -> list[str]:
    """Return the arms that the DAG has made: they are in a root of its folder."""
    return [f"{folder}/root/{name}_arm@latest" for name in ("all", "long")]


def command_of(asked: dict[str, Any], datasets: list[str], to: Path, root: Path) -> list[str]:
    """Return the command that compares the same."""
    numbers = {name: str(asked[name]) for name in ("tokens", "seeds", "threads")}
    given = {"datasets": ",".join(datasets), "held-out": asked["held_out"][0], "rates": str(asked["rates"][0])}
    given |= {"to": str(to), "record": str(root), **numbers}
    return ["ablate", *(part for name, value in given.items() for part in (f"--{name}", value))]


def said_by(folder: Path) -> dict[str, Any]:
    """Return what a comparison says, and the bytes of its models, without places and times."""
    plan, verdict = read_plan(folder), json.loads((folder / "verdict.json").read_bytes())
    models = [json.loads((folder / job.name / RESULT).read_bytes()) for job in jobs_of(plan)]
    own = {name: verdict[name] for name in ("outcome", "differences", "groups", "means", "deviation", "shared")}
    arms = [(arm.digest, arm.tokens, arm.sequences) for arm in plan.arms]
    return own | {"arms": arms, "models": [(model["model"], model["bits"]) for model in models]}


def stop_at(folder: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train a run for so many steps, and end as one that is killed then."""

    class Stopping(ArmData):
        def batches(self, step: int) -> Iterator[Mapping[str, Any]]:
            yield from islice(super().batches(step), steps)
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(running, "ArmData", Stopping)
        patched.setattr(training_run, "KEPT_AFTER", 0.0)
        with pytest.raises(KeyboardInterrupt):
            running.run_job(folder, "a-rate0.004-seed1", lambda _: None)


@pytest.mark.slow
def test_a_run_of_the_dag_that_is_killed_and_tried_again_says_what_the_command_says(
    asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only this trains by tasks: arms, plan, mapped runs and verdict in an Airflow that is killed as it trains."""
    for name in ("root", "own", "home", "dag"):
        (tmp_path / name).mkdir()
    planted.write_tokenizer(tmp_path / "dag" / "tokenizer.json")  # the default one has many more words to train
    params = asked | {"to": str(tmp_path / "dag"), "root": str(tmp_path / "root"), "usd_per_hour": 2.0}
    environment = embed(tmp_path / "home") | {"REFINERY_LAUNCH_HERE": "1", "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO"}
    command = [sys.executable, "-c", RUN, str(PLUGINS.parent / "dags"), str(PLUGINS)]

    killed = subprocess.Popen(
        [*command, json.dumps(params)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while killed.poll() is None and not (tmp_path / "dag" / "plan.json").exists():
        time.sleep(0.05)
    assert killed.poll() is None, "it ended before it trained"
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    stop_at(tmp_path / "dag", 3, monkeypatch)

    params |= {"recipes": None, "input": None, "datasets": datasets_of(tmp_path / "dag")}  # which it has made of them
    done = subprocess.run([*command, json.dumps(params)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    tasks = json.loads(done.stdout.partition("TASKS ")[2])
    assert {state for _, _, state in tasks} == {"success"}
    mapped = [(task, index) for task, index, _ in tasks if index >= 0]
    assert sorted(mapped) == [(task, at) for task in ("train_a", "train_b") for at in range(2)]
    logged = done.stdout + done.stderr
    assert f"a-rate0.004-seed1: goes on behind step 3 of {read_plan(tmp_path / 'dag').steps}" in logged
    assert "US dollars" in logged

    assert main(command_of(asked, params["datasets"], tmp_path / "own-to", tmp_path / "own")) == 0
    assert said_by(tmp_path / "dag") == said_by(tmp_path / "own-to")
    (by_dag,), (by_command,) = ablations(str(tmp_path / "root")), ablations(str(tmp_path / "own"))
    assert by_dag.arms[1].choices == by_command.arms[1].choices
    assert (by_dag.outcome, by_dag.differences) == (by_command.outcome, by_command.differences)
