"""The engine `ray` as others know it: what it needs here, and every place where it may be."""

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version

from pipeline_tasks.engines.card import EngineCard
from pipeline_tasks.engines.cluster_jobs import ClusterJobs
from pipeline_tasks.errors import RecipeError
from refinery_ray.address import is_jobs_api, ray_address

WAY_OUT = "pip install 'refinery-tokens[ray]'"


def jobs(address: str) -> type[ClusterJobs] | None:
    """Return what starts drivers by Ray's Jobs API, None for any other address."""
    if not is_jobs_api(address):
        return None
    from refinery_ray.cluster_jobs import RayJobs

    return RayJobs


def checks(_place: str, _root: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is looked at of the package, on this machine."""
    yield "ray", _version


def _version() -> str:
    try:
        return f"ray {version('ray')}"
    except PackageNotFoundError as error:
        message = f"ray is not installed: {WAY_OUT}"
        raise RecipeError(message) from error


ENGINE = EngineCard(
    "refinery_ray.ray",
    title="Ray",
    library="ray",
    way_out=WAY_OUT,
    checks=checks,
    address=ray_address,
    schemes={"ray": "ray", "http": "http", "https": "https"},
    jobs=jobs,
)
