"""Reads where a Ray runs: every way to write it, and what to write instead of what leads nowhere."""

from pipeline_tasks.engines.address import Addresses

JOBS_API = ("http", "https")
"""Schemes of Ray's Jobs API, which takes whole requests; an engine cannot send its tasks there."""

PORT = 10001
"""The port of Ray's clients."""

OF_RAY = Addresses(
    "ray",
    "ray://host:10001 (Ray client), http://host:8265 (Jobs API), host:6379 (on a node of it), `auto` or `local`",
)

_PORTS = {"8265": "http", "10001": "ray"}
"""Ports of Ray that speak another protocol than a bare host:port is taken for."""


def ray_address(written: str) -> str:
    """Return a Ray's address with its port; "" is `local`. RecipeError where no Ray can be."""
    scheme, mark, rest = written.rpartition("://")
    if written in ("", "local", "auto"):
        return written or "local"
    if mark and scheme not in (*JOBS_API, "ray"):
        raise OF_RAY.refusal(written, f"{scheme}:// is no scheme of Ray")
    endpoint, _, path = rest.partition("/")
    host, port = OF_RAY.host_and_port(written, endpoint)
    if path and scheme not in JOBS_API:
        raise OF_RAY.refusal(written, "it has a path")
    if not mark and not port:
        raise OF_RAY.refusal(written, "it has no port")
    if not mark and port in _PORTS:
        raise OF_RAY.refusal(written, f"port {port} is reached as {_PORTS[port]}://{written}")
    return f"ray://{host}:{port or PORT}" if scheme == "ray" else written.rstrip("/")


def is_jobs_api(address: str) -> bool:
    """Return whether an address is that of Ray's Jobs API."""
    return address.startswith(tuple(f"{scheme}://" for scheme in JOBS_API))
