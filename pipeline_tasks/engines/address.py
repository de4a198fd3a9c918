"""Reads where an engine runs: every way to write it, and what to write instead of what leads nowhere."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import RAY, SPARK

JOBS_API = ("http", "https")
"""Schemes of Ray's Jobs API, which takes whole requests; an engine cannot send its tasks there."""

EMR = "emr-serverless"
"""The scheme of an application of EMR Serverless, which starts whole drivers as its job runs."""

SUBMITTED = "submitted"
"""Where a driver that `spark-submit` has started finds its Spark: around itself. No connection can say it."""

PORTS = {"http": 80, "https": 443, "ray": 10001, "sc": 15002, "spark": 7077}
"""The port that each scheme means when none is written."""

FORMS: Mapping[str, str] = {
    RAY: "ray://host:10001 (Ray client), http://host:8265 (Jobs API), host:6379 (on a node of it), `auto` or `local`",
    SPARK: (
        "spark://host:7077, sc://host:15002 (Spark Connect), `yarn`, k8s://https://host:443, "
        "emr-serverless://APPLICATION/;role=ARN (EMR Serverless) or `local[N]`"
    ),
}
"""What an address may be, by engine."""

_RAY_PORTS = {"8265": "http", "10001": "ray"}
"""Ports of Ray that speak another protocol than a bare host:port is taken for."""

_LOCAL_SPARK = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|k8s://.+")

_NO_SCHEME = re.compile(r"local(\[.*\])?|auto|yarn")

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")


_APPLICATION = re.compile(r"[0-9a-z]{1,64}")

_OF_EMR = {
    "role": re.compile(r"arn:aws[a-zA-Z0-9-]*:iam::\d{12}:role/[\w+=,.@/-]+"),
    "region": re.compile(r"[a-z]{2}(-[a-z]+)+-\d"),
}
"""Parameters of an address of EMR Serverless, as its API takes them."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application of EMR Serverless: its id, the role of its job runs, and its region, "" for the usual one."""

    id: str
    role: str
    region: str = ""

    def written(self) -> str:
        """Return the application as an address."""
        region = f";region={self.region}" if self.region else ""
        return f"{EMR}://{self.id}/;role={self.role}{region}"


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
    if is_emr(written):
        return application_of(written).written()
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


def is_emr(address: str) -> bool:
    """Return whether an address is that of an application of EMR Serverless."""
    return address.startswith(f"{EMR}://")


def starts_drivers(address: str) -> bool:
    """Return whether what is at an address starts whole drivers, and takes no tasks of a process elsewhere."""
    return is_jobs_api(address) or is_emr(address)


def application_of(written: str) -> Application:
    """Return the application of EMR Serverless at an address; RecipeError where it names none, or no role."""
    name, _, params = written.removeprefix(f"{EMR}://").partition("/")
    if not _APPLICATION.fullmatch(name):
        raise _refusal(SPARK, written, "it names no id of an application, such as 00fg0oh5mvbu4d0l")
    given = dict(param.partition("=")[::2] for param in params.split(";") if param)
    if unknown := given.keys() - _OF_EMR.keys():
        raise _refusal(SPARK, f"{EMR}://{name}", f"it knows role and region, and not {', '.join(sorted(unknown))}")
    if "role" not in given:
        raise _refusal(SPARK, written, "it has no role, by which its job runs reach the root; add ;role=ARN")
    for key, value in given.items():
        if not _OF_EMR[key].fullmatch(value):
            raise _refusal(SPARK, written, f"its {key} is none of AWS")
    return Application(name, **given)


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
