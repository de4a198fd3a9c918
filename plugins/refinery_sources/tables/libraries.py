"""Says which library a kind of table needs, where it is not installed."""

from importlib.util import find_spec

from pipeline_tasks.errors import RecipeError


def require_library(name: str) -> None:
    """Raise RecipeError unless a library is installed."""
    if find_spec(name) is None:
        message = f"this kind of table needs the package {name}: install the extra `tables` (pip install '.[tables]')"
        raise RecipeError(message)
