"""Airflow's environment for tests, in a home of the test's own."""

import os
import shutil
import sys
from pathlib import Path

from refinery_airflow.embedded import airflow_home

from pipeline_tasks.shipped import state_folder

_homes: list[Path] = []
"""The home of this process's Airflow, once it has one: Airflow reads its settings when it is imported."""

PROJECT = Path(__file__).parents[1]

PLUGINS = PROJECT / "plugins"


def embed(home: Path) -> dict[str, str]:
    """Return this process's environment with Airflow's home in `home`, its database migrated."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "REFINERY_"))}
    env = airflow_home.environment(home)  # which makes the folder
    shutil.copyfile(template() / "airflow.db", home / "airflow.db")
    return {**keep, **env, "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}


def migrated(home: Path) -> None:
    """Give a home a database, and the mark that it is migrated."""
    home.mkdir(parents=True, exist_ok=True)
    for path in (template() / "airflow.db", *template().glob("migrated-*")):
        shutil.copyfile(path, home / path.name)


def template() -> Path:
    """Return the home whose database others are copied from; to migrate it, once per version, takes ten seconds."""
    home = state_folder() / "airflow-template"
    airflow_home.migrate(home, airflow_home.environment(home))
    return home


def embed_here(home: Path) -> None:
    """Give this process that environment and the plugins' folder to import from, and import Airflow.

    Airflow opens the database of the environment in which it is imported; that of `refinery run` has none.
    """
    if not _homes:
        assert "airflow" not in sys.modules, "a test imported Airflow without the fixture `airflow_here`"
        os.environ.update({key: value for key, value in embed(home).items() if key.startswith("AIRFLOW")})
        _homes.append(home)
        import airflow  # noqa: F401 -- as above
    if str(PLUGINS) not in sys.path:
        sys.path.insert(0, str(PLUGINS))
