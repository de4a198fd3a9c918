"""Finds what ships beside the code, DAGs with their recipes, suites, SQL and extensions, and where its state is kept.

A checkout has these folders beside the package. The wheel has the DAGs, suites and SQL in the package, and the modules
of `plugins/` beside it (`setup.py`).
"""

import os
from pathlib import Path

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.seams import own_packages

PACKAGE = Path(__file__).resolve().parent

SHIPPED = ("dags", "expectations", "sql")
"""The folders that are in the package in a wheel, and beside it in a checkout."""


def shipped(name: str) -> Path:
    """Return the folder `dags`, `expectations` or `sql`."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def code() -> list[Path]:
    """Return the folders of our modules: the package, and the extensions that plug into it."""
    beside = PACKAGE.parent / "plugins" if is_checkout() else PACKAGE.parent
    return [PACKAGE, *(beside / name for name in own_packages())]


def is_checkout() -> bool:
    """Return whether the code runs from a checkout, and not from an installed wheel."""
    return shipped("dags").parent != PACKAGE


def checkout() -> Path:
    """Return the checkout that the code runs from; RecipeError if it is an installed wheel, which has no documents."""
    if not is_checkout():
        message = f"{PACKAGE} is an installed package; run this in a checkout of the project"
        raise RecipeError(message)
    return PACKAGE.parent


def python_path() -> str:
    """Return PYTHONPATH for a process that imports the code: of a checkout, it and its plugins come first.

    A wheel adds nothing: its folder is one of Python's own, and before the standard library it could shadow that.
    """
    ours = [str(PACKAGE.parent), str(PACKAGE.parent / "plugins")] if is_checkout() else []
    inherited = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return os.pathsep.join([*ours, *(folder for folder in inherited if folder not in ours)])


def state_folder() -> Path:
    """Return the folder of this machine's state: `REFINERY_HOME`, else `.refinery` in the checkout, else at home."""
    if named := os.environ.get("REFINERY_HOME"):
        return Path(named).absolute()
    return (checkout() if is_checkout() else Path.home()) / ".refinery"


def numba_folder() -> str:
    """Return where compiled loops are kept: `NUMBA_CACHE_DIR`, else with the state of this machine."""
    return os.environ.get("NUMBA_CACHE_DIR", str(state_folder() / "numba"))
