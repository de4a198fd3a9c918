"""The engine `spark` as others know it: what it needs here, and every place where it may be."""

import os
import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import unquote

from pipeline_tasks.engines import reach
from pipeline_tasks.engines.card import EngineCard
from pipeline_tasks.engines.cluster_jobs import ClusterJobs
from pipeline_tasks.errors import RecipeError
from refinery_spark.address import EMR, application_of, is_emr, spark_address
from refinery_spark.java import require_java

CONNECT_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 -- a variable's name, as PySpark reads it
"""The variable from which PySpark takes the token of Spark Connect."""

PACKAGES = ("pyspark", "pyspark-client")
"""What is installed of Spark: both own the same folder."""

WAY_OUT = "pip install 'refinery-tokens[spark]'"


def address(written: str) -> str:
    """Return a Spark's address without its token, which becomes this process's: requests are stored."""
    return without_token(spark_address(written))


def without_token(address: str) -> str:
    """Return a Spark Connect address without its token, which becomes this process's."""
    place, _, params = address.partition("/;")
    token = re.search(r"(?:^|;)token=([^;]*)", params)
    if token is None:
        return address.removesuffix("/")
    os.environ[CONNECT_TOKEN] = unquote(token[1])
    others = ";".join(param for param in params.split(";") if not param.startswith("token="))
    return f"{place}/;{others}" if others else place


def require_answer(address: str) -> None:
    """Raise ClusterUnreachable unless a cluster answers; of an application of EMR Serverless AWS says what it is."""
    if is_emr(address):
        from refinery_spark.emr_jobs import require_application

        require_application(address)
    else:
        reach.require_answer(address)


def require_reach(address: str, *uris: str) -> None:
    """Raise RecipeError for a root or a landing that no job run of EMR Serverless reaches."""
    if is_emr(address):
        from refinery_spark.emr_jobs import require_buckets

        require_buckets(address, *uris)


def jobs(address: str) -> type[ClusterJobs] | None:
    """Return what starts drivers as job runs of EMR Serverless, None for any other Spark."""
    if not is_emr(address):
        return None
    from refinery_spark.cluster_jobs import EmrJobs

    return EmrJobs


def checks(place: str, root: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is looked at of Java, of the packages, and of an application of EMR Serverless that is named."""
    yield "java", lambda: str(require_java())
    yield "spark", _versions
    if is_emr(place):
        yield "emr", lambda: _application(spark_address(unquote(place)), root)


def _versions() -> str:
    try:
        found = {package: version(package) for package in PACKAGES}
    except PackageNotFoundError as error:
        message = f"{error.name} is not installed: {WAY_OUT}"
        raise RecipeError(message) from error
    text = ", ".join(f"{package} {number}" for package, number in found.items())
    if len(set(found.values())) > 1:
        message = f"{text}: versions must be equal; install requirements.txt again"
        raise RecipeError(message)
    return text


def _application(address: str, root: str) -> str:
    require_reach(address, root)
    require_answer(address)
    return f"application {application_of(address).id} runs what it is given"


ENGINE = EngineCard(
    "refinery_spark.spark",
    title="Spark",
    library="pyspark",
    way_out=WAY_OUT,
    here=f"local[{os.cpu_count()}]",
    conn_type="spark",
    needs=require_java,
    checks=checks,
    address=address,
    schemes={"spark": "spark", "spark_connect": "sc", "sc": "sc", "k8s": "k8s", "emr_serverless": EMR},
    path_schemes=(EMR,),
    require_answer=require_answer,
    require_reach=require_reach,
    jobs=jobs,
)
