"""Reads where a Spark runs: every way to write it, and what to write instead of what leads nowhere."""

import re
from dataclasses import dataclass

from pipeline_tasks.engines.address import Addresses

EMR = "emr-serverless"
"""The scheme of an application of EMR Serverless, which starts whole drivers as its job runs."""

SUBMITTED = "submitted"
"""Where a driver that `spark-submit` has started finds its Spark: around itself. No connection can say it."""

PORTS = {"sc": 15002, "spark": 7077}
"""The port that each scheme means when none is written."""

OF_SPARK = Addresses(
    "spark",
    "spark://host:7077, sc://host:15002 (Spark Connect), `yarn`, k8s://https://host:443, "
    "emr-serverless://APPLICATION/;role=ARN (EMR Serverless) or `local[N]`",
)

_LOCAL = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|yarn|k8s://.+")

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


def spark_address(written: str) -> str:
    """Return a Spark's address with its port; "" is every core of this machine. RecipeError where no Spark can be."""
    if not written or _LOCAL.fullmatch(written):
        return written or "local[*]"
    if is_emr(written):
        return application_of(written).written()
    scheme, _, rest = written.rpartition("://")
    if scheme not in ("spark", "sc"):
        raise OF_SPARK.refusal(written, f"{scheme}:// is no scheme of Spark" if scheme else "it has no scheme")
    endpoints, slash, params = rest.partition("/")
    hosts = [OF_SPARK.host_and_port(written, endpoint) for endpoint in endpoints.split(",")]
    whole = ",".join(f"{host}:{port or PORTS[scheme]}" for host, port in hosts)
    return f"{scheme}://{whole}{slash if params else ''}{params}"


def is_emr(address: str) -> bool:
    """Return whether an address is that of an application of EMR Serverless."""
    return address.startswith(f"{EMR}://")


def application_of(written: str) -> Application:
    """Return the application of EMR Serverless at an address; RecipeError where it names none, or no role."""
    name, _, params = written.removeprefix(f"{EMR}://").partition("/")
    if not _APPLICATION.fullmatch(name):
        raise OF_SPARK.refusal(written, "it names no id of an application, such as 00fg0oh5mvbu4d0l")
    given = dict(param.partition("=")[::2] for param in params.split(";") if param)
    if unknown := given.keys() - _OF_EMR.keys():
        where, others = f"{EMR}://{name}", ", ".join(sorted(unknown))
        raise OF_SPARK.refusal(where, f"it knows role and region, and not {others}")
    if "role" not in given:
        raise OF_SPARK.refusal(written, "it has no role, by which its job runs reach the root; add ;role=ARN")
    for key, value in given.items():
        if not _OF_EMR[key].fullmatch(value):
            raise OF_SPARK.refusal(written, f"its {key} is none of AWS")
    return Application(name, **given)
