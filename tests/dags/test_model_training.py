"""The DAG that trains a model of the quality of texts ends with a published model, or red with the reason of its gate."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.publish.logs.model_log import published_models
from tests.chain import command
from tests.embedded import PLUGINS, embed
from tests.inspect.test_publishing_models import MARKS, write
from tests.scorer_samples import passages

RUNS = """
import json, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from train_quality_model import train_quality_model as dag
from airflow.sdk.exceptions import ParamValidationError

def run(params):
    run = dag.test(run_conf={"root": sys.argv[3], **params})
    return {"state": str(run.state), "tasks": {task.task_id: str(task.state) for task in run.get_task_instances()}}

print("RUNS", json.dumps([run(params) for params in json.loads(sys.argv[4])]))
"""


def test_a_model_is_trained_checked_and_published_in_turn(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["train_quality_model"]
    assert {task["id"]: task["downstream"] for task in dag["tasks"]} == {
        "train": ["check", "publish"],
        "check": ["publish"],
        "publish": [],
    }
    assert {(task["retries"], task["policy"]) for task in dag["tasks"]} == {(3, True)}
    named = {"positives", "negatives", "sample", "name", "accepted", "root", "against", "embeddings", "texts", "seed"}
    assert set(dag["params"]) == named
    assert (dag["schedule"], dag["assets"], dag["most_runs"]) == ("", [], 1)
    assert "Runbook" in dag["doc"]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_publishes_a_model_and_one_that_its_check_refuses_ends_red(tmp_path: Path) -> None:
    """Only this runs the tasks by Airflow: params, XComs and the retry policy, which tries no refusal again."""
    own = passages()
    shouted = [" ".join(f"buy {word} now" for word in text.split()[:40]) for text in own[200:400]]
    sided = [text + MARKS[at % 2] for at, text in enumerate(own[240:480])]
    good = {
        "positives": [write(tmp_path / "good.jsonl", own[:200])],
        "negatives": [write(tmp_path / "crawl.jsonl", shouted)],
        "sample": [write(tmp_path / "sample.jsonl", own[400:460], sites=60)],
    }
    by_site = {
        "positives": [write(tmp_path / "alpha.jsonl", [text + MARKS[0] for text in own[:120]])],
        "negatives": [write(tmp_path / "beta.jsonl", [text + MARKS[1] for text in own[120:240]])],
        "sample": [write(tmp_path / "sided.jsonl", sided, sites=8)],
    }
    (tmp_path / "home").mkdir()
    environment = embed(tmp_path / "home")
    root, runs = str(tmp_path / "root"), json.dumps([good, by_site])
    places = [str(PLUGINS.parent / "dags"), str(PLUGINS), root, runs]
    done = command("-c", RUNS, *places, **environment, REFINERY_LAUNCH_HERE="1")
    assert done.returncode == 0, done.stderr[-3000:]
    passed, refused = json.loads(done.stdout.partition("RUNS ")[2])
    assert passed == {"state": "success", "tasks": dict.fromkeys(("train", "check", "publish"), "success")}
    assert refused["state"] == "failed"
    assert refused["tasks"] == {"train": "success", "check": "failed", "publish": "upstream_failed"}
    logged = done.stdout + done.stderr
    assert "the check refuses the model: " in logged
    assert "source_auc" in logged.partition("the check refuses the model: ")[2][:400]
    [published] = published_models(root, "quality")
    assert (published.number, published.outcome) == (1, "warn")
