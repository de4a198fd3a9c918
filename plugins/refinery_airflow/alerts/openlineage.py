"""Sends OpenLineage events of a run's tasks to a lineage server, if one is set.

Where Airflow's provider of OpenLineage sends the events of a task (`openlineage_provider`), nothing else is sent.
Without it, or where it has no server, events are sent from here:

`OPENLINEAGE_URL`       the server, as OpenLineage's own clients read it, with `_ENDPOINT`, `_API_KEY` and `_DISABLED`
`refinery_openlineage`  without that variable, this connection: HTTP; login and password, or headers as extra

That a server fails or does not answer is said in the task's log. It never fails a task, and holds it up for seconds.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseOperator, Connection, Context
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline_tasks.alerts.open_lineage import (
    NOTHING,
    EventType,
    Lineage,
    Work,
    dataset_of,
    manifest_dataset,
    run_event,
)
from pipeline_tasks.alerts.sent import harmless
from pipeline_tasks.alerts.verdicts import failure_reason
from pipeline_tasks.flow.attempt import Run
from refinery_airflow.alerts.openlineage_provider import provider_sends
from refinery_airflow.runs.run import run_of

log = logging.getLogger("refinery")

CONNECTION = "refinery_openlineage"
"""Id of the connection; without it and without OPENLINEAGE_URL nothing is sent."""

ENDPOINT = "api/v1/lineage"
"""Where servers take events, below their address."""

NAMESPACE = "refinery"
"""Namespace of the jobs, unless OPENLINEAGE_NAMESPACE has another."""

ANSWER = 2.0
"""Seconds that the server has for each step of a request."""

ALL = 4.0
"""Seconds that a task waits for it: looking an address up has no limit of its own."""

READING = 10.0
"""Seconds in which the manifests are read that the facets are of; without them an event has the counts of the reply."""

TAKEN = range(200, 300)
"""Statuses of HTTP with which a server has taken an event; a redirected POST would lose it."""

WAITS = ("sense", "turn")
"""Tasks that read and write nothing."""

PARTITION, PARTS = ".partition", (".partition", ".refine", ".seal")
"""Ends of the ids of tasks that do a part of a stage."""


def lineage_started(context: Context) -> None:
    """Send that a job started, at its first try: the `on_execute_callback` of every task.

    A task that is resumed after it has waited sends the same event again.
    """
    task = context["ti"]
    is_first = task.try_number + (context["task"].retries or 0) <= task.max_tries + 1
    if is_first and not _is_silent(context):
        _emit(context, "START", time=task.start_date)


def lineage_completed(context: Context) -> None:
    """Send what a job read and wrote, or keep it for Airflow's provider: the `on_success_callback` of every task.

    Airflow calls it before its listeners. The provider's forks this process, where clients of buckets must not be used.
    """
    if _is_silent(context):
        return
    with harmless("lineage", "the provider's event has no datasets"):
        if provider_sends(context):
            context["task"].lineage = lineage_of(context)
    _emit(context, "COMPLETE")


def lineage_failed(context: Context) -> None:
    """Send that a job failed for good, and why: an `on_failure_callback` of every task.

    A partition that fails is a run of its stage that failed.
    """
    if context["ti"].task_id.endswith(PARTITION):
        _emit(context, "START", time=context["ti"].start_date)
    if context["ti"].task_id not in WAITS:
        _emit(context, "FAIL")


def _is_silent(context: Context) -> bool:
    """Return whether a task has no events unless it fails: those that wait, and partitions, which a seal completes."""
    return context["ti"].task_id in WAITS or context["ti"].task_id.endswith(PARTITION)


def _emit(context: Context, event: EventType, *, time: datetime | None = None) -> None:
    with harmless("lineage", "the event could not be sent"):
        address = "" if provider_sends(context) else _address()
        if address:
            at = (time or datetime.now(UTC)).astimezone(UTC).isoformat()
            lineage = lineage_of(context) if event == "COMPLETE" else NOTHING
            error = failure_reason(context.get("exception")) if event == "FAIL" else ""
            _post(address, run_event(event, at, work_of(context), lineage, error=error))


def work_of(context: Context) -> Work:
    """Return the job of a task: a stage for each task of its own, a gate, or the task."""
    task = context["ti"]
    job = next((task.task_id.removesuffix(end) for end in PARTS if task.task_id.endswith(end)), task.task_id)
    name = f"{task.task_id} {task.map_index} {task.max_tries}"  # the tries that it may have grow when it is cleared
    return Work(os.environ.get("OPENLINEAGE_NAMESPACE") or NAMESPACE, task.dag_id, task.run_id, job, name)


# --- What was read and written ------------------------------------------------------------------------------------


def lineage_of(context: Context) -> Lineage:
    """Return what a task that succeeded read and wrote, with its facets; without those that cannot be read in time."""
    run, reply, plain = run_of(context), _reply_of(context), datasets_of(context)
    verdict = reply if isinstance(reply, str) else reply[0]["verdict"] if isinstance(reply, list) and reply else ""
    outcomes: list[Lineage] = []

    def describe() -> None:
        with harmless("lineage", "the event has no facets of columns and rows"):
            from pipeline_tasks.alerts.lineage_facets import described  # parsing DAGs needs none of its 30 modules

            outcomes.append(described(run.root, plain, snapshot=run.snapshot, verdict=verdict))

    _within(READING, describe)
    return outcomes[0] if outcomes else plain


def datasets_of(context: Context) -> Lineage:
    """Return what a task that succeeded read and wrote: manifests, landed files, or a version of the dataset."""
    task, run, reply = context["task"], run_of(context), _reply_of(context)
    recipe = task.dataset(run)
    read = [manifest_dataset(run.root, recipe, manifest) for manifest in _manifests_read(task)]
    if isinstance(reply, Mapping) and "rows_in" in reply:
        written = manifest_dataset(run.root, recipe, reply["manifest"], rows=reply["rows"], size=reply["bytes"])
        return Lineage([replace(dataset, rows=reply["rows_in"]) for dataset in read], [written])
    if isinstance(reply, Mapping) and "documents" in reply:
        version = {"version": str(reply["version"]), "rows": reply["documents"]}
        return Lineage(read, [dataset_of(run.root, "datasets", recipe, **version)])
    return Lineage(read) if read or not task.manifest else _of_first_task(task, run, recipe)


def _reply_of(context: Context) -> object:
    return context["ti"].xcom_pull(task_ids=context["ti"].task_id)


def _of_first_task(task: BaseOperator, run: Run, recipe: str) -> Lineage:
    """Return what the first task of a run read and wrote: it has no manifest before its own."""
    return Lineage([dataset_of(run.input)] if run.input else [], [manifest_dataset(run.root, recipe, task.manifest)])


def _manifests_read(task: BaseOperator) -> Sequence[str]:
    """Return the references of the manifests that a task reads, of a run's last task that of the last stage."""
    if gates := getattr(task, "gates", None):
        return [list(gates.values())[-1][0]["manifest"]]
    if parts := getattr(task, "parts_in", None) or getattr(task, "part", None):
        return [(parts[0] if isinstance(parts, list) else parts)["manifest"]]
    refined = getattr(task, "refined", None)
    return [refined["manifest"]] if refined else []


# --- The server ---------------------------------------------------------------------------------------------------


def _address() -> str:
    """Return the address of the server, `CONNECTION` where that has it, "" without one."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1"):
        return ""
    if url := os.environ.get("OPENLINEAGE_URL"):
        return f"{url.rstrip('/')}/{os.environ.get('OPENLINEAGE_ENDPOINT', ENDPOINT).lstrip('/')}"
    try:
        Connection.get(CONNECTION)
    except AirflowNotFoundException:
        return ""
    return CONNECTION


def _post(address: str, event: Mapping[str, Any]) -> None:
    """Send an event, and wait for the answer for a while; log why it was not taken, without the address."""
    outcomes: list[str] = []
    _within(ALL, lambda: _deliver(address, event, outcomes))
    outcome = outcomes[0] if outcomes else f"the server has not answered for {ALL:.0f} s"
    if outcome:
        log.warning("lineage  %s was not sent: %s", event["eventType"], outcome)


def _within(seconds: float, work: Callable[[], None]) -> None:
    """Do work, and wait for it for so many seconds; what it does later is for nothing."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)


def _deliver(address: str, event: Mapping[str, Any], outcomes: list[str]) -> None:
    """Send an event; note why it failed, without the error's text: that may have the address."""
    try:
        session, url = _session(address)
        response = session.post(url, json=dict(event), timeout=ANSWER, allow_redirects=False)
        outcomes.append("" if response.status_code in TAKEN else f"status {response.status_code}")
    except Exception as error:  # noqa: BLE001 -- whatever a provider raises, and the run goes on
        outcomes.append(type(error).__name__)


def _session(address: str) -> tuple[Any, str]:
    """Return the session that has what the server asks for, and the URL to send events to."""
    import requests

    if address == CONNECTION:
        from airflow.providers.http.hooks.http import HttpHook

        hook = HttpHook(method="POST", http_conn_id=CONNECTION)
        return hook.get_conn(), hook.url_from_endpoint(ENDPOINT)
    session = requests.Session()
    if key := os.environ.get("OPENLINEAGE_API_KEY"):
        session.headers["Authorization"] = f"Bearer {key}"
    return session, address
