"""Reads where an engine runs: every way to write it, and what to write instead of what leads nowhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import RAY, SPARK

JOBS_API = ("http", "https")
"""Schemes of Ray's Jobs API, which takes whole requests; an engine cannot send its tasks there."""

PORTS = {"http": 80, "https": 443, "ray": 10001, "sc": 15002, "spark": 7077}
"""The port that each scheme means when none is written."""

FORMS: Mapping[str, str] = {
    RAY: "ray://host:10001 (Ray client), http://host:8265 (Jobs API), host:6379 (on a node of it), `auto` or `local`",
    SPARK: "spark://host:7077, sc://host:15002 (Spark Connect), `yarn`, k8s://https://host:443 or `local[N]`",
}
"""What an address may be, by engine."""

_RAY_PORTS = {"8265": "http", "10001": "ray"}
"""Ports of Ray that speak another protocol than a bare host:port is taken for."""

_LOCAL_SPARK = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|k8s://.+")

_NO_SCHEME = re.compile(r"local(\[.*\])?|auto|yarn")

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True)
class Place:
    """What a connection says of an engine's place; "" and 0 are what it leaves out."""

    host: str
    port: int = 0
    scheme: str = ""

    def written(self) -> str:
        """Return the place as one address; RecipeError where host and port name two ports."""
        scheme, mark, rest = self.host.strip().rpartition("://")
        endpoint, slash, path = rest.partition("/")
        if not mark and (not endpoint or _NO_SCHEME.fullmatch(endpoint)):
            return endpoint
        named = re.search(r":(\d+)$", endpoint) if "," not in endpoint else None
        if named and self.port and int(named[1]) != self.port:
            message = (
                f"the connection names two ports, {named[1]} in its host {self.host} and {self.port}; leave one out"
            )
            raise RecipeError(message)
        port = f":{self.port}" if self.port and not named and "," not in endpoint else ""
        scheme = scheme or self.scheme
        return f"{scheme}{'://' if scheme else ''}{endpoint}{port}{slash}{path}"


def ray_address(written: str) -> str:
    """Return a Ray's address with its port; "" is `local`. RecipeError where no Ray can be."""
    scheme, mark, rest = written.rpartition("://")
    if written in ("", "local", "auto"):
        return written or "local"
    if mark and scheme not in (*JOBS_API, "ray"):
        raise _refusal(RAY, written, f"{scheme}:// is no scheme of Ray")
    endpoint, _, path = rest.partition("/")
    host, port = _host_and_port(RAY, written, endpoint)
    if path and scheme not in JOBS_API:
        raise _refusal(RAY, written, "it has a path")
    if not mark and not port:
        raise _refusal(RAY, written, "it has no port")
    if not mark and port in _RAY_PORTS:
        raise _refusal(RAY, written, f"port {port} is reached as {_RAY_PORTS[port]}://{written}")
    return f"ray://{host}:{port or PORTS['ray']}" if scheme == "ray" else written.rstrip("/")


def spark_address(written: str) -> str:
    """Return a Spark's address with its port; "" is every core of this machine. RecipeError where no Spark can be."""
    if not written or _LOCAL_SPARK.fullmatch(written):
        return written or "local[*]"
    scheme, _, rest = written.rpartition("://")
    if scheme not in ("spark", "sc"):
        raise _refusal(SPARK, written, f"{scheme}:// is no scheme of Spark" if scheme else "it has no scheme")
    endpoints, slash, params = rest.partition("/")
    hosts = [_host_and_port(SPARK, written, endpoint) for endpoint in endpoints.split(",")]
    whole = ",".join(f"{host}:{port or PORTS[scheme]}" for host, port in hosts)
    return f"{scheme}://{whole}{slash if params else ''}{params}"


def is_jobs_api(address: str) -> bool:
    """Return whether an address is that of Ray's Jobs API."""
    return address.startswith(tuple(f"{scheme}://" for scheme in JOBS_API))


def _host_and_port(engine: str, written: str, endpoint: str) -> tuple[str, str]:
    parts = _HOST.fullmatch(endpoint)
    if parts is None:
        raise _refusal(engine, written, "it names no host and port")
    return parts[1], parts[2] or ""


def _refusal(engine: str, written: str, why: str) -> RecipeError:
    return RecipeError(
        f"{written!r} is no address of {engine.capitalize()}: {why}. Set the connection {engine}_default (its host, or "
        f"host and port) to {FORMS[engine]}"
    )
