"""Takes a request to wherever it should run: this process, this machine's warm host, Spark or Ray.

The connections `spark_default` and `ray_default` alone decide:

`local[N]` / `local`          the warm host of this machine (`pipeline_tasks.service.daemon`); the embedded default
`sc://host`                   the warm host, as a client of Spark Connect
`spark://host` port 7077      spark-submit in client mode, as SparkSubmitOperator does it
`http://ray-head` port 8265   a job of Ray's Jobs API, found again by its id when a try is repeated

S3 credentials come from the environment, else from the connection `aws_default` (a cluster's workers need them in
their own environment).

Land, history, spans, seal, judge and publish are small and always run on this machine.
"""

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowTaskTerminated
from refinery_credentials import adopt

from pipeline_tasks import errors
from pipeline_tasks.errors import JobLost, RefineryError
from pipeline_tasks.manifest import digest_of
from pipeline_tasks.service import daemon
from pipeline_tasks.store import storage

Request = Mapping[str, Any]
Reply = dict[str, Any]

HERE = "REFINERY_LAUNCH_HERE"
"""Set by `refinery run`: requests are answered in the process that asks."""

ABOVE = "above, in the task's own"

POLL = 2.0
"""Seconds between two looks at a Ray job."""


def launch(request: Request, try_number: int = 1) -> Reply:
    """Answer a request where the connections say, and return the reply; a refusal is raised as its own class."""
    adopt(request.get("root"), request.get("input"), request.get("landing"))
    address = address_of(str(request.get("engine", ""))) if request["verb"] == "refine" else ""
    request = {**request, "address": address}
    if os.environ.get(HERE):
        from pipeline_tasks.service.requests import handle

        return handle(request)
    if address.startswith("spark://"):
        return _spark_submit(request, try_number)
    if address.startswith(("http://", "https://")):
        return _ray_job(request, address, try_number)
    return daemon.send(request)


def address_of(engine: str) -> str:
    """Return the address of an engine from its connection; "" where none is set, which means this machine."""
    if engine not in ("spark", "ray"):
        return ""
    try:
        found = Connection.get(f"{engine}_default")
    except AirflowNotFoundException:
        return ""
    host, port = found.host or "", found.port
    if found.conn_type == "spark_connect" and "://" not in host:
        host = f"sc://{host}"
    return f"{host}:{port}" if port and "://" in host else host


# --- Clusters: the request and its reply travel as objects under the root -------------------------------------


def _post(request: Request, job: str) -> tuple[str, str]:
    """Store a request where the cluster can read it; return the URIs of request and reply."""
    folder = f"{request['root'].rstrip('/')}/requests"
    reply = f"{folder}/{job}.reply.json"
    body = json.dumps({**request, "reply": reply}, sort_keys=True).encode()
    storage.commit(storage.connect(folder), f"{job}.json", body)
    return f"{folder}/{job}.json", reply


def _collect(reply: str, log: str) -> Reply:
    """Return a job's reply, or raise what it reports; `log` says where (or what) its log is."""
    folder, _, name = reply.rpartition("/")
    try:
        body: Reply = json.loads(storage.connect(folder).read(name))
    except FileNotFoundError as error:
        message = f"the job ended without a reply at {reply}; its log: {log}. What it finished is kept"
        raise JobLost(message) from error
    raise_refusal(body)
    return body


def raise_refusal(reply: Mapping[str, Any]) -> None:
    """Raise the refusal that a reply reports, as the class it was raised as."""
    if "error" in reply:
        kind = getattr(errors, str(reply["error"]), RefineryError)
        raise kind(str(reply["message"]))


def job_id(request: Request, try_number: int) -> str:
    """Return the id of a request's job: a later try of the same run works out the ids of the tries before it."""
    return f"refinery-{request['stage']}-{digest_of(request, 16)}-{try_number}"


def _spark_submit(request: Request, try_number: int) -> Reply:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk.exceptions import AirflowException

    job = job_id(request, try_number)
    uri, reply = _post(request, job)
    hook = SparkSubmitHook(
        conn_id="spark_default",
        name=job,
        deploy_mode="client",  # PySpark applications cannot use standalone cluster mode
        application_args=[uri],
        conf={"spark.sql.adaptive.enabled": "false", "spark.sql.execution.arrow.maxRecordsPerBatch": "4"},
    )
    try:
        hook.submit(str(daemon.PACKAGE / "__main__.py"))
    except AirflowException as error:
        if _there(reply):
            return _collect(reply, ABOVE)
        message = f"spark-submit of {job} failed ({str(error)[:300]}); its output is above. What it finished is kept"
        raise JobLost(message) from error
    except AirflowTaskTerminated:
        hook.on_kill()
        raise
    return _collect(reply, ABOVE)


def _there(uri: str) -> bool:
    folder, _, name = uri.rpartition("/")
    return storage.connect(folder).size(name) is not None


def _ray_job(request: Request, address: str, try_number: int) -> Reply:
    from ray.job_submission import JobSubmissionClient

    os.environ.setdefault("RAY_AUTH_MODE", "token")  # the token itself: RAY_AUTH_TOKEN or ~/.ray/auth_token
    request = {**request, "address": "auto"}  # where the job runs, Ray is what it finds there
    try:
        client = JobSubmissionClient(address)
        job, reply = _running(client, request, try_number) or _submit(client, request, try_number)
        log = _await(client, job)
    except (ConnectionError, RuntimeError) as error:
        message = f"{address}: Ray's Jobs API did not answer ({str(error)[:300]}); it is tried again later"
        raise JobLost(message) from error
    return _collect(reply, log)


def _submit(client: Any, request: Request, try_number: int) -> tuple[str, str]:  # noqa: ANN401 -- a JobSubmissionClient
    job = job_id(request, try_number)
    uri, reply = _post(request, job)
    client.submit_job(entrypoint=f"python -m pipeline_tasks {uri}", submission_id=job)
    return job, reply


def _running(client: Any, request: Request, try_number: int) -> tuple[str, str] | None:  # noqa: ANN401
    """Return the job of this request that an earlier try left running when its worker died."""
    known = {one.submission_id: str(one.status.value) for one in client.list_jobs()}
    for number in range(try_number - 1, 0, -1):
        job = job_id(request, number)
        if known.get(job) in ("PENDING", "RUNNING"):
            return job, _post(request, job)[1]
    return None


def _await(client: Any, job: str) -> str:  # noqa: ANN401
    """Wait until a job has ended, however it ended; return the end of its log. A stopped task stops its job."""
    try:
        while str(client.get_job_status(job).value) in ("PENDING", "RUNNING"):
            time.sleep(POLL)
    except AirflowTaskTerminated:
        client.stop_job(job)
        raise
    return str(client.get_job_logs(job))[-1000:]
