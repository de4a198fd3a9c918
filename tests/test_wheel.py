"""The wheel is whole: alone it proves that what runs from a checkout runs from an installed package, too."""

import json
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pipeline_tasks.gate.suites import EXPECTATIONS
from pipeline_tasks.publish.ledger import queries
from pipeline_tasks.recipe import BUILDS, recipe_names
from tests.embedded import PROJECT
from tests.installed import Installed, build_wheel, install, share_compiled, source_files

pytestmark = pytest.mark.slow

INSTALLED = """
import json, pipeline_tasks, sys
from pathlib import Path
from pipeline_tasks.gate.suites import EXPECTATIONS, load_suite
from pipeline_tasks.publish.ledger import Ledger, queries
from pipeline_tasks.recipe import BUILDS, load_build, load_recipe, recipe_names
from pipeline_tasks.shipped import shipped
Ledger.open(str(Path("ledger.sqlite").absolute())).close()
suites = sorted(path.stem for path in EXPECTATIONS.glob("*.json"))
print(json.dumps({
    "package": pipeline_tasks.__file__,
    "recipes": [load_recipe(name).name for name in recipe_names()],
    "builds": [load_build(name).name for name in recipe_names(BUILDS)],
    "bounds": {name: len(load_suite(name)) for name in suites},
    "queries": queries(),
    "dags": str(shipped("dags")),
    "path": sys.path,
}))
"""

REGISTERED = """
import json, os, sys
from pathlib import Path
from pipeline_tasks.embedded.airflow_home import environment, require_plugin
require_plugin()
os.environ.update(environment(Path("airflow").absolute()))
from airflow import plugins_manager as core
from airflow.sdk import plugins_manager as sdk
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
import refinery_rendering
files = [str(getattr(module, "__file__", None)) for module in sys.modules.values()]
print(json.dumps({
    "plugins": [[plugin.name for plugin in manager._get_plugins()[0]] for manager in (core, sdk)],
    "faults": [manager._get_plugins()[1] for manager in (core, sdk)],
    "copies": {Path(file).stem: files.count(file) for file in files if Path(file).name.startswith("refinery_")},
    "dags": sorted(bag.dags),
    "import_errors": bag.import_errors,
    "page": refinery_rendering.render("error.html", title="Not found", message="It is not there.", root="r"),
    "style": len(refinery_rendering.static_file("refinery.css")),
}))
"""
"""What Airflow finds, of an environment as `refinery run` and `refinery up` make it."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("installed"))


def printed(here: Installed, script: str) -> Any:
    done = here.run("-c", script)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def in_wheel(path: Path) -> str:
    """Return where a file of the checkout is in the wheel."""
    top, *rest = path.parts
    return str(
        PurePosixPath(
            *([] if top == "plugins" else [top] if top == "pipeline_tasks" else ["pipeline_tasks", top]), *rest
        )
    )


def test_the_wheel_has_every_file_that_the_code_may_read(wheel: Path) -> None:
    """The kind, and not a list: a file of a new sort beside the code must be named in `pyproject.toml`."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {in_wheel(path) for path in source_files()}


def test_an_installed_wheel_has_recipes_suites_and_sql(installed: Installed) -> None:
    seen = printed(installed, INSTALLED)
    assert seen["package"].startswith(str(installed.packages))
    assert [place for place in seen["path"] if place.startswith(str(PROJECT))] == []
    assert seen["dags"] == str(installed.packages / "pipeline_tasks" / "dags")
    assert (seen["recipes"], seen["builds"]) == (recipe_names(), recipe_names(BUILDS))
    assert seen["bounds"].keys() == {path.stem for path in EXPECTATIONS.glob("*.json")}
    assert all(seen["bounds"].values())
    assert seen["queries"] == queries()


def test_airflow_finds_the_dags_and_the_plugin_of_an_installed_wheel_once(installed: Installed) -> None:
    seen = printed(installed, REGISTERED)
    assert seen["faults"] == [{}, {}]
    assert [names.count("refinery") for names in seen["plugins"]] == [1, 1]
    assert seen["copies"]["refinery_alerts"] == 1
    assert set(seen["copies"].values()) == {1}
    assert seen["import_errors"] == {}
    assert {"refine", "build_corpus", "arrivals", "maintenance"} <= set(seen["dags"])
    assert "It is not there." in seen["page"]
    assert seen["style"] > 0


@pytest.mark.timeout(1800)  # a cold cache, on a busy machine
def test_an_installed_wheel_refines_the_first_day_of_the_demo(installed: Installed, tmp_path: Path) -> None:
    loops = {"NUMBA_CACHE_DIR": str(share_compiled(installed, tmp_path))}
    wrote = installed.run("-m", "pipeline_tasks.demo", ".refinery/demo/crawl", "--scale", "0.1", **loops)
    assert wrote.returncode == 0, wrote.stderr[-3000:]
    command = [installed.python.with_name("refinery"), "run", "--input", ".refinery/demo/crawl/2026-11-19"]
    done = installed.run(*command, "--output", "root", "--recipe", "demo", "--engine", "local", "--json", **loops)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["build"]["tokens"] > 0
