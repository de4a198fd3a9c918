"""Chooses an engine by name and address, importing only the one that is chosen."""

from functools import partial

from pipeline_tasks.engines.local import LocalEngine
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.runner import EngineFactory


def engine(name: str, address: str = "") -> EngineFactory:
    """Return the factory of engine `name` (`local`, `spark` or `ray`) at `address` (default: on this machine)."""
    if name == "local":
        return LocalEngine
    if name == "spark":
        from pipeline_tasks.engines.spark import SparkEngine

        return partial(SparkEngine, master=address or "local[*]")
    if name == "ray":
        from pipeline_tasks.engines.ray import RayEngine

        return partial(RayEngine, address=address or "local")
    message = f"no engine {name!r}; engines are local, spark and ray"
    raise RecipeError(message)
