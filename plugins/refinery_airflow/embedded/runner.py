"""Does the tasks of `refinery run` and `refinery build` by Airflow's operators, where the environment asks for Airflow.

It asks where it has what only Airflow reads, such as a connection. Airflow is imported when it runs.
"""

import atexit
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline_tasks.deployment import DEPLOYMENT
from pipeline_tasks.engines.early_start import CONNECTION, SECRETS, connections, embedded, engines_of, variable_of
from pipeline_tasks.flow.running import with_variables
from pipeline_tasks.recipe import BUILDS, DEFAULT_BUILD, Recipe, recipe_names
from pipeline_tasks.run.runners import Runner
from pipeline_tasks.shipped import shipped
from refinery_airflow.embedded import airflow_home
from refinery_airflow.embedded.connections import is_set

OF_AIRFLOW = ("OPENLINEAGE_URL", DEPLOYMENT)
"""Other variables by which a run needs Airflow: a server of lineage, and a file that names connections."""


def asks_airflow() -> bool:
    """Return whether this process was given what only Airflow reads.

    That is a connection (but those of engines of this machine), a backend that may have some, the file of a deployment,
    which names some, or a server of lineage.
    """
    local = {variable_of(name) for name in embedded()}
    given = {name for name, value in os.environ.items() if value} - local
    return any(name.startswith((*SECRETS, CONNECTION)) or name in OF_AIRFLOW for name in given)


def run(recipe: Recipe, given: str, params: Mapping[str, Any]) -> None:
    """Do the tasks of a recipe's DAG; clusters that connections name have to answer first."""
    clusters = engines_of(recipe, params["engines"]) & connections()
    module, variable = ("build", "REFINERY_BUILD") if recipe.versions else ("refine", "REFINERY_RECIPE")
    settings = airflow_home.environment(_home()) | {
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "REFINERY_LAUNCH_HERE": "1",
        variable: _wired(given),
    }
    with with_variables(settings):
        _walk(module, recipe, params, clusters)


@lru_cache(maxsize=1)
def _home() -> Path:
    """Return the Airflow home of this process, which has no database and is removed at exit."""
    home = Path(tempfile.mkdtemp(prefix="refinery-airflow-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


def _wired(given: str) -> str:
    """Return what the module of a DAG wires when it is imported; the DAG of a run is wired by its recipe."""
    if given.endswith((".yaml", ".yml")):
        return str(Path(given).absolute())
    return given if given in (*recipe_names(), *recipe_names(BUILDS)) else DEFAULT_BUILD


def _walk(module: str, recipe: Recipe, params: Mapping[str, Any], clusters: frozenset[str]) -> None:
    """Do the tasks by Airflow's operators, which find what its connections say."""
    sys.path.insert(0, str(shipped("dags")))
    try:
        wiring = importlib.import_module(module)
    finally:
        sys.path.pop(0)
    importlib.import_module("refinery_airflow.tasks.launch").require_clusters(
        clusters, recipe=recipe.name, uris=[params.get("root", ""), params.get("input", "")]
    )
    importlib.import_module("refinery_airflow.tasks.walk").walk(wiring.wire(recipe), params)


RUNNER = Runner(asks_airflow, run, is_set)
"""The part of the seam `refinery.runners`."""
