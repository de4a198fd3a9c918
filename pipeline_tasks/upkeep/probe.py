"""Says whether a part of a cluster can do its work, for health checks of containers: exit code 0, or 1 with the reason.

As `python -m pipeline_tasks.upkeep.probe spark-worker http://127.0.0.1:8082 http://spark-master:8081`. A process that
listens may still be useless: a worker that no master knows, a head without a Jobs API, a web server without a database.
"""

import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline_tasks.errors import JobLost

PATIENCE = 20.0
"""Seconds that an answer may take: all services of a small machine start at once."""

ALIVE = "ALIVE"


def spark_master(master: str) -> None:
    """A Spark master at work: it is no standby, and workers are registered with it."""
    state = _json(f"{master}/json/")
    if state["status"] != ALIVE:
        message = f"the Spark master at {master} is {state['status']}"
        raise JobLost(message)
    if not any(worker["state"] == ALIVE for worker in state["workers"]):
        message = f"no Spark worker is registered with the master at {master}"
        raise JobLost(message)


def spark_worker(worker: str, master: str) -> None:
    """A Spark worker at work: its master lists it as alive."""
    own = _json(f"{worker}/json/")["id"]
    states = {known["id"]: known["state"] for known in _json(f"{master}/json/")["workers"]}
    if states.get(own) != ALIVE:
        message = f"the Spark master at {master} lists this worker, {own}, as {states.get(own, 'unknown')}"
        raise JobLost(message)


def ray_head(dashboard: str, agent: str) -> None:
    """A Ray head at work: it keeps the cluster's state, lists jobs, and its own node is alive."""
    _text(f"{dashboard}/api/gcs_healthz")
    _text(f"{dashboard}/api/jobs/", os.environ.get("RAY_AUTH_TOKEN", ""))
    _text(f"{agent}/api/local_raylet_healthz")


def ray_worker(dashboard: str, agent: str) -> None:
    """A Ray node at work: its head lists its address as alive."""
    _text(f"{agent}/api/local_raylet_healthz")
    own = socket.gethostbyname(socket.gethostname())
    nodes = _json(f"{dashboard}/nodes?view=summary", os.environ.get("RAY_AUTH_TOKEN", ""))["data"]["summary"]
    raylets = [node["raylet"] for node in nodes]
    if not any(raylet.get("nodeManagerAddress") == own and raylet["state"] == ALIVE for raylet in raylets):
        message = f"the Ray head at {dashboard} has no living node at {own}"
        raise JobLost(message)


def airflow_server(server: str) -> None:
    """An Airflow web server at work: it reaches its database."""
    if _json(f"{server}/api/v2/monitor/health")["metadatabase"]["status"] != "healthy":
        message = f"the web server at {server} does not reach its database"
        raise JobLost(message)


PROBES: Mapping[str, Callable[..., None]] = {
    "spark-master": spark_master,
    "spark-worker": spark_worker,
    "ray-head": ray_head,
    "ray-worker": ray_worker,
    "airflow-server": airflow_server,
}
"""What can be probed, with the URLs that each probe asks as its arguments."""


def _json(url: str, token: str = "") -> Any:  # noqa: ANN401 -- as the server wrote it
    try:
        return json.loads(_text(url, token))
    except ValueError as error:
        message = f"{url} did not answer in JSON ({error})"
        raise JobLost(message) from error


def _text(url: str, token: str = "") -> str:
    """Return what is at a URL; JobLost unless it answers, and with a status of success."""
    request = urllib.request.Request(url)  # noqa: S310 -- of the compose file
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:  # noqa: S310 -- as above
            return str(reply.read().decode())
    except urllib.error.HTTPError as error:
        message = f"{url} answered {error.code}: {error.read(300).decode(errors='replace')}"
        raise JobLost(message) from error
    except OSError as error:
        message = f"{url} did not answer ({error})"
        raise JobLost(message) from error


def main(words: Sequence[str]) -> int:
    """Run the probe that the words name; return the exit code."""
    probe = PROBES.get(words[0]) if words else None
    if probe is None:
        sys.stderr.write(f"usage: python -m pipeline_tasks.upkeep.probe {{{','.join(PROBES)}}} URL...\n")
        return 2
    try:
        probe(*words[1:])
    except JobLost as error:
        sys.stderr.write(f"{words[0]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
