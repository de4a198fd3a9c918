"""Parses DAG files or their folder as Airflow's DAG processor does, and prints what came of it as JSON."""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pendulum
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.decoders import decode_timetable
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from refinery_airflow.tasks import wiring

from pipeline_tasks.flow.plan import Flow

HEAVY = ("great_expectations", "pyspark", "ray", "numba", "boto3", "fasttext", "tokenizers", "trafilatura")


def facts(task: Any) -> dict[str, Any]:
    """What a test asks of a task."""
    return {
        "id": task.task_id,
        "mapped": task.is_mapped,
        "retries": task.retries,
        "policy": task.retry_policy is not None,
        "hours": task.execution_timeout and task.execution_timeout.total_seconds() / 3600,
        "pool": task.pool,
        "queue": task.queue,
        "upstream": sorted(task.upstream_task_ids),
        "downstream": sorted(task.downstream_task_ids),
        "outlets": [asset.name for asset in task.outlets],
    }


def next_run(serialized: dict[str, Any]) -> list[str]:
    """Return the logical date of the first run after 1 November, and when it starts; nothing for no periodic DAG."""
    timetable = decode_timetable(serialized["timetable"])
    if not timetable.periodic:
        return []
    after = TimeRestriction(pendulum.datetime(2026, 11, 1, 0, 1, tz="UTC"), None, catchup=True)
    run = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=after)
    return [run.logical_date.isoformat(), run.run_after.isoformat()]


FLOWS: dict[str, dict[str, Any]] = {}
"""The tasks of each flow that was rendered, by its DAG: whether each is mapped, and what it waits for."""


def noted(flow: Flow, *operators: Any, **own: Any) -> None:
    """Render a flow, and note its tasks."""
    FLOWS[flow.dag] = {task.name: [bool(task.over), sorted(task.upstream)] for task in flow.tasks}
    RENDER(flow, *operators, **own)


RENDER, wiring.render = wiring.render, noted


def dag_facts(dag: DAG) -> dict[str, Any]:
    """What a test asks of a DAG."""
    condition = dag.timetable.asset_condition
    serialized = DagSerialization.serialize_dag(dag)  # Airflow checks every param of every task in it: dear
    return {
        "tasks": [facts(task) for task in dag.topological_sort()],
        "file": Path(dag.fileloc).name,
        "flow": FLOWS.get(dag.dag_id, {}),
        "groups": [name for name in dag.task_group.get_task_group_dict() if name],
        "schedule": getattr(getattr(dag.timetable, "timetable", dag.timetable), "expression", ""),
        "assets": [asset.name for asset in condition.objects] if condition else [],
        "next": next_run(serialized),
        "most_runs": dag.max_active_runs,
        "catchup": dag.catchup,
        "params": list(dag.params),
        "doc": dag.doc_md,
        "serialized": json.dumps(serialized, sort_keys=True, default=str),
    }


logging.disable(logging.WARNING)
bag = DagBag(collect_dags=False)
for place in sys.argv[1:]:
    bag.collect_dags(place)
sys.stdout.write(
    json.dumps(
        {
            "errors": bag.import_errors,
            "dags": {name: dag_facts(dag) for name, dag in bag.dags.items()},
            "heavy": [name for name in HEAVY if name in sys.modules],
        }
    )
)
