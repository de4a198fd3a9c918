"""Sends a request to where it runs: this process, the worker daemon of this machine, Spark or Ray.

The connections `spark_default` and `ray_default` alone decide:

`local[N]` / `local`          the worker daemon of this machine (`pipeline_tasks.service.daemon`); the default
`sc://host`                   the worker daemon, as a client of Spark Connect
`spark://host` port 7077      spark-submit in client mode, as SparkSubmitOperator does it
`http://ray-head` port 8265   a job of Ray's Jobs API, looked up by its id when a try is repeated
`ray://ray-head` port 10001   the worker daemon, as a Ray client
`node` port 6379, or `auto`   the worker daemon, as a driver on a node of the Ray cluster

`refinery run` has no worker daemon: its own process is what the daemon is above, and Spark's driver.

S3 credentials come from the environment, else from the connection `aws_default` (a cluster's workers need them in
their own environment). The key of pseudonyms comes from the environment, else from the connection `refinery_pii`; it
is never part of a request, so a Ray cluster needs it in its own environment, too.

Only `refine` runs on a cluster; all other requests are small and are handled on this machine.
"""

import json
import os
import time
from dataclasses import replace
from typing import Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException, AirflowTaskTerminated
from refinery_credentials import adopt_credentials, adopt_secret

from pipeline_tasks.engines.address import JOBS_API, Place, is_jobs_api, ray_address, spark_address
from pipeline_tasks.engines.reach import require_answer
from pipeline_tasks.errors import JobLost
from pipeline_tasks.recipe import RAY, SPARK
from pipeline_tasks.run.plan import RefineRequest, secret_variable
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.service import daemon
from pipeline_tasks.service.requests import LandRequest, Reply, Request, SealRequest, encode, raise_refusal
from pipeline_tasks.store import storage

HERE = "REFINERY_LAUNCH_HERE"
"""Set by `refinery run`: requests are handled in this process."""

_SCHEMES: dict[str, dict[str, str]] = {
    SPARK: {"spark": "spark", "spark_connect": "sc", "sc": "sc", "k8s": "k8s"},
    RAY: {"ray": "ray", "http": "http", "https": "https"},
}
"""The scheme that a connection's type stands for, by engine; Airflow makes a URI's scheme the type."""

ABOVE = "above, in the task's own"

POLL = 2.0
"""Seconds between two polls of a Ray job."""


def send(request: Request, try_number: int = 1) -> Reply:
    """Send a request to where the connections point, and return the reply; a refusal is raised as its own class."""
    adopt_credentials(*uris_of(request))
    adopt_secret(_secret_variable_of(request))
    if isinstance(request, RefineRequest):
        request = replace(request, address=address_of(request.engine))
    if isinstance(request, RefineRequest) and is_jobs_api(request.address):
        return _ray_job(request, try_number)
    if os.environ.get(HERE):
        from pipeline_tasks.service.handle import handle

        return handle(request)
    if isinstance(request, RefineRequest) and request.address.startswith("spark://"):
        return _spark_submit(request, try_number)
    return daemon.send(request)


def _secret_variable_of(request: Request) -> str:
    refining = request.stage if isinstance(request, SealRequest) else request
    return secret_variable(refining) if isinstance(refining, RefineRequest) else ""


def uris_of(request: Request) -> tuple[str, ...]:
    """Return the URIs that a request reads or writes."""
    if isinstance(request, LandRequest):
        return (request.root, request.input)
    return (request.root, request.landing) if isinstance(request, RefineRequest) else (request.root,)


def address_of(engine: str) -> str:
    """Return the address of an engine from its connection; "" where none is set, which means this machine."""
    if engine not in (SPARK, RAY):
        return ""
    try:
        connection = Connection.get(f"{engine}_default")
    except AirflowNotFoundException:
        return ""
    scheme = _SCHEMES[engine].get(connection.conn_type, "")
    if connection.conn_type in JOBS_API and connection.schema in JOBS_API:
        scheme = connection.schema  # as Airflow's own HTTP connections say it
    written = Place(connection.host or "", connection.port or 0, scheme).written()
    return ray_address(written) if engine == RAY else spark_address(written)


# --- Clusters: the request and its reply travel as objects under the root -------------------------------------


def _post(request: RefineRequest, job: str) -> tuple[str, str]:
    """Store a request where the cluster can read it; return the URIs of request and reply."""
    folder = f"{request.root.rstrip('/')}/requests"
    reply = f"{folder}/{job}.reply.json"
    body = json.dumps({**encode(request), "reply": reply}, sort_keys=True).encode()
    storage.commit(storage.connect(folder), f"{job}.json", body)
    return f"{folder}/{job}.json", reply


def _collect(reply: str, log: str) -> Reply:
    """Return a job's reply, or raise what it reports; `log` is the path of its log, or its text."""
    folder, _, name = reply.rpartition("/")
    try:
        body: Reply = json.loads(storage.connect(folder).read(name))
    except FileNotFoundError as error:
        message = f"the job ended without a reply at {reply}; its log: {log}. Finished tasks are kept"
        raise JobLost(message) from error
    raise_refusal(body)
    return body


def job_id(request: RefineRequest, try_number: int) -> str:
    """Return the id of a request's job; a later try of the same run computes the ids of earlier tries."""
    return f"refinery-{request.stage}-{digest_of(request, 16)}-{try_number}"


def _spark_submit(request: RefineRequest, try_number: int) -> Reply:
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
    hook._connection["master"] = request.address  # noqa: SLF001 -- it reads the connection by rules of its own
    try:
        hook.submit(str(daemon.PACKAGE / "__main__.py"))
    except AirflowException as error:
        if _exists(reply):
            return _collect(reply, ABOVE)
        message = f"spark-submit of {job} failed ({str(error)[:300]}); its output is above. Finished tasks are kept"
        raise JobLost(message) from error
    except AirflowTaskTerminated:
        hook.on_kill()
        raise
    return _collect(reply, ABOVE)


def _exists(uri: str) -> bool:
    folder, _, name = uri.rpartition("/")
    return storage.connect(folder).size(name) is not None


def _ray_job(request: RefineRequest, try_number: int) -> Reply:
    from ray.job_submission import JobSubmissionClient

    os.environ.setdefault("RAY_AUTH_MODE", "token")  # the token itself: RAY_AUTH_TOKEN or ~/.ray/auth_token
    address, request = request.address, replace(request, address="auto")  # the job finds the Ray that it runs on
    require_answer(address)
    os.environ["RAY_API_SERVER_ADDRESS"] = address  # or a RAY_ADDRESS would win over the connection
    try:
        client = JobSubmissionClient(address)
        job, reply = _running(client, request, try_number) or _submit(client, request, try_number)
        log = _await(client, job)
    except (ConnectionError, RuntimeError) as error:
        message = f"{address}: Ray's Jobs API did not answer ({str(error)[:300]}); it is tried again later"
        raise JobLost(message) from error
    return _collect(reply, log)


def _submit(client: Any, request: RefineRequest, try_number: int) -> tuple[str, str]:  # noqa: ANN401 -- a JobSubmissionClient
    job = job_id(request, try_number)
    uri, reply = _post(request, job)
    client.submit_job(entrypoint=f"python -m pipeline_tasks {uri}", submission_id=job)
    return job, reply


def _running(client: Any, request: RefineRequest, try_number: int) -> tuple[str, str] | None:  # noqa: ANN401
    """Return the job of this request that an earlier try left running when its worker died."""
    known = {job.submission_id: str(job.status.value) for job in client.list_jobs()}
    for number in range(try_number - 1, 0, -1):
        job = job_id(request, number)
        if known.get(job) in ("PENDING", "RUNNING"):
            return job, _post(request, job)[1]
    return None


def _await(client: Any, job: str) -> str:  # noqa: ANN401
    """Wait until a job has ended, however it ended; return the end of its log. A stopped task or run stops its job."""
    try:
        while str(client.get_job_status(job).value) in ("PENDING", "RUNNING"):
            time.sleep(POLL)
    except (AirflowTaskTerminated, KeyboardInterrupt, SystemExit):
        client.stop_job(job)
        raise
    return str(client.get_job_logs(job))[-1000:]
