"""Speaks to Airflow as an operator does: through its web server."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tests.cluster.containers import wait_until

ENDED = ("success", "failed")


@dataclass(frozen=True, slots=True)
class Airflow:
    """A web server, the token of a person who may do everything, and the DAG that they run."""

    url: str
    token: str
    dag: str

    @classmethod
    def login(cls, url: str, password: str, dag: str = "refine") -> "Airflow":
        """Log in as compose's first user, to run a DAG."""
        return cls(url, _request(f"{url}/auth/token", {"username": "admin", "password": password})["access_token"], dag)

    def unpause(self) -> None:
        """Let the DAG run, as soon as the DAG processor has read it."""
        self._request_when_read(f"dags/{self.dag}", {"is_paused": False}, "PATCH")

    def trigger(self, run: str, conf: Mapping[str, Any]) -> None:
        """Start a run by hand."""
        body = {"dag_run_id": run, "logical_date": None, "conf": dict(conf)}
        self._request_when_read(f"dags/{self.dag}/dagRuns", body, "POST")

    def _request_when_read(self, path: str, body: object, method: str) -> None:
        """Ask until the DAG is known: it is not while a starved DAG processor has not read it for ten minutes."""
        for _ in wait_until("the DAG is there", 900, each=2):
            try:
                self._request(path, body, method)
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
            else:
                return

    def state(self, run: str) -> str:
        """The state of a run."""
        return str(self._request(f"dags/{self.dag}/dagRuns/{quote(run)}")["state"])

    def tasks(self, run: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        tasks: list[dict[str, Any]] = self._request(f"dags/{self.dag}/dagRuns/{quote(run)}/taskInstances?limit=100")[
            "task_instances"
        ]
        return tasks

    def states(self, run: str, seconds: float) -> Iterator[str]:
        """Yield the state of a run until it has ended; a web server that is busy is asked again."""
        for _ in wait_until(f"run {run} ends", seconds, each=3):
            try:
                state = self.state(run)
            except OSError:
                continue
            yield state
            if state in ENDED:
                return

    def _request(self, path: str, body: object = None, method: str | None = None) -> Any:
        return _request(f"{self.url}/api/v2/{path}", body, method, self.token)


def _request(url: str, body: object = None, method: str | None = None, token: str = "") -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)
