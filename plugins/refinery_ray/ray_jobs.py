"""Asks a Ray cluster's Jobs API by its REST: Airflow's environment needs no Ray to start a driver there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline_tasks.errors import JobLost

if TYPE_CHECKING:
    import httpx

PATIENCE = 60.0
"""Seconds within which the Jobs API has to answer: a job is started before the reply to its submission."""

ENDED = ("STOPPED", "SUCCEEDED", "FAILED")
"""The states of a job that has ended, as `ray.job_submission.JobStatus` names them."""


DENIED = (401, 403)
"""Statuses of who has no token, or a wrong one."""


def submit(address: str, entrypoint: str, name: str) -> None:
    """Start a shell command as a job of this name at `http://host:port`; JobLost if the Jobs API does not take it."""
    _asked(address, "POST", "api/jobs/", json={"entrypoint": entrypoint, "submission_id": name})


def has_ended(address: str, name: str) -> bool:
    """Return whether a job has ended, in whatever way; JobLost if the Jobs API does not say."""
    return str(_asked(address, "GET", f"api/jobs/{name}")["status"]) in ENDED


def log_end(address: str, name: str, characters: int) -> str:
    """Return the end of the log of a job; JobLost if the Jobs API does not have it."""
    return str(_asked(address, "GET", f"api/jobs/{name}/logs")["logs"])[-characters:]


def _asked(address: str, method: str, path: str, json: object = None) -> dict[str, Any]:
    with _client(address) as client:
        reply = client.request(method, path, json=json)
        if reply.is_error:
            way_out = "check RAY_AUTH_TOKEN" if reply.status_code in DENIED else "it is tried again later"
            message = f"{address}: Ray's Jobs API answered {reply.status_code} ({reply.text[-300:]}); {way_out}"
            raise JobLost(message)
        return dict(reply.json())


@contextmanager
def _client(address: str) -> Iterator["httpx.Client"]:
    import httpx

    token = _token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=PATIENCE) as client:
            yield client
    except (httpx.HTTPError, ValueError) as error:
        message = f"{address}: Ray's Jobs API did not answer ({str(error)[:300]}); it is tried again later"
        raise JobLost(message) from error


def _token() -> str:
    """Return the token of the cluster, from where Ray itself takes it; "" if there is none."""
    if os.environ.get("RAY_AUTH_MODE", "token") != "token":
        return ""
    file = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token")).expanduser()
    stored = file.read_text(encoding="utf-8") if file.is_file() else ""
    return os.environ.get("RAY_AUTH_TOKEN", stored).strip()
