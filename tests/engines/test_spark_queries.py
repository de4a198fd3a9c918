"""What Spark's users see of a stage: a query for each verb that has work, and the columns of keys in its plan."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.testing.refining import commit_parent
from tests.documents import documents

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toys", "workers_find_tests")]

TEXTS = [f"The common paragraph of all pages, again.\n\nOne of its own, of page {page}." for page in range(30)]


def events_of(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the event log of a Spark of this machine that refines one stage in a process of its own."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.faults.victim", *arguments, "", "", "-1", "spark", "local[1]"]
    env = os.environ | {"REFINERY_SPARK_EVENTS": folder.as_uri()}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    logged: list[dict[str, Any]] = []
    for path in sorted(folder.rglob("events_*")):
        with pa.input_stream(str(path), compression="zstd") as log:
            logged += [json.loads(line) for line in log.read().splitlines()]
    return logged


def test_keys_are_exchanged_by_columns_with_their_names_under_adaptive_execution(tmp_path: Path) -> None:
    """Every plan was Range and MapInArrow, and the rows of a group were one column `body`."""
    parent = commit_parent(tmp_path, [documents(TEXTS[:15]).sort_by("id"), documents(TEXTS[15:]).sort_by("id")])
    logged = events_of(tmp_path / "events", str(tmp_path), "dedup_paragraphs", parent)
    started = [event for event in logged if event["Event"].endswith("SparkListenerSQLExecutionStart")]
    keyed = {
        event["description"]: event["physicalPlanDescription"]
        for event in started
        if "__bucket" in event["physicalPlanDescription"]
    }
    columns = {
        "group by hash into 1 bucket, then elect_winners": r"hash#\d+L, check#\d+L, id#\d+, snapshot#\d+",
        "group by id into 1 bucket, then unchanged": r"id#\d+, hash#\d+L, check#\d+L, winner#\d+, snapshot#\d+",
    }
    assert list(keyed) == [f"dedup_paragraphs: {words}" for words in columns]
    for plan, named in zip(keyed.values(), columns.values(), strict=True):
        assert plan.startswith("== Physical Plan ==\nAdaptiveSparkPlan")
        assert re.search(rf"\) Exchange\nInput \[\d+\]: \[__bucket#\d+, __turn#\d+, __body#\d+, {named}\]\n", plan), (
            plan
        )
    jobs = [
        event["Properties"]["spark.job.description"] for event in logged if event["Event"] == "SparkListenerJobStart"
    ]
    assert set(jobs) == {event["description"] for event in started}
    assert len(jobs) == sum(1 + ("Exchange" in event["physicalPlanDescription"]) for event in started)
