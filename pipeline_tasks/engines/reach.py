"""Checks that a cluster answers: an engine's own client would wait for minutes before it reports a wrong address."""

import socket

from pipeline_tasks.errors import JobLost, RecipeError

PATIENCE = 10.0
"""Seconds within which a TCP connection to a cluster must be established."""


def require_answer(address: str) -> None:
    """Raise JobLost unless something listens at `scheme://host:port` (or one of several, between commas)."""
    endpoints = address.rpartition("://")[2].split("/")[0].split(",")
    failures = []
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdigit():
            message = f"{address}: a cluster's address is host:port, such as spark://spark-master:7077"
            raise RecipeError(message)
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PATIENCE):
                return
        except OSError as error:
            failures.append(f"{endpoint}: {error}")
    message = f"{address} does not answer ({'; '.join(failures)}); start that cluster, or correct its address"
    raise JobLost(message)
