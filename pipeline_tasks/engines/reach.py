"""Checks that a cluster answers: an engine's own client would wait for minutes before it reports a wrong address."""

import re
import socket

from pipeline_tasks.errors import ClusterUnreachable, RecipeError

PORTS = {"http": 80, "https": 443}
"""The port that a scheme means when none is written."""

PATIENCE = 10.0
"""Seconds within which a TCP connection to a cluster must be established."""


def require_answer(address: str) -> None:
    """Raise ClusterUnreachable unless something listens at `scheme://host:port` (or one of several, between commas)."""
    scheme, _, rest = address.rpartition("://")
    failures = []
    for endpoint in rest.split("/")[0].split(","):
        named = re.search(r":\d+$", endpoint)
        host, _, port = (endpoint if named else f"{endpoint}:{PORTS.get(scheme, '')}").rpartition(":")
        if not host or not port.isdigit():
            message = f"{address}: a cluster's address is host:port, such as spark://spark-master:7077"
            raise RecipeError(message)
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PATIENCE):
                return
        except OSError as error:
            failures.append(f"{endpoint}: {error}")
    message = f"{address} does not answer ({'; '.join(failures)}); start that cluster, or correct its address"
    raise ClusterUnreachable(message)
