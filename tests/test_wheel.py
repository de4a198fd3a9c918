"""The wheel is whole: alone it proves that what runs from a checkout runs from an installed package, too."""

import json
import shutil
import venv
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from pipeline_tasks.cli.commands.sbom import components
from pipeline_tasks.gate.suites import EXPECTATIONS
from pipeline_tasks.ledger import queries
from pipeline_tasks.recipe import BUILDS, recipe_names
from pipeline_tasks.text.base.compiled import cache_place
from tests.embedded import PROJECT, migrated
from tests.installed import Installed, build_wheel, install, source_files
from tests.small_root import SmallRoot

pytestmark = pytest.mark.slow

CONSTRAINTS = "pipeline_tasks/constraints.txt"

INSTALLED = """
import json, pipeline_tasks, sys
from pathlib import Path
from pipeline_tasks.gate.suites import EXPECTATIONS, load_suite
from pipeline_tasks.ledger import Ledger, queries
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
from refinery_airflow.embedded.airflow_home import environment, require_plugin
require_plugin()
os.environ.update(environment(Path("airflow").absolute()))
from airflow import plugins_manager as core
from airflow.sdk import plugins_manager as sdk
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
from refinery_airflow.pages import rendering as refinery_rendering
files = [str(getattr(module, "__file__", None)) for module in sys.modules.values()]
print(json.dumps({
    "plugins": [[plugin.name for plugin in manager._get_plugins()[0]] for manager in (core, sdk)],
    "faults": [manager._get_plugins()[1] for manager in (core, sdk)],
    "copies": {file: files.count(file) for file in files if "/refinery_airflow/" in file},
    "dags": sorted(bag.dags),
    "import_errors": bag.import_errors,
    "page": refinery_rendering.render("error.html", title="Not found", message="It is not there.", root="r"),
    "style": len(refinery_rendering.static_file("refinery.css")),
}))
"""
"""What Airflow finds, of an environment as `refinery run` and `refinery up` make it."""


SENT = """
import json, sys
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.service import daemon
from pipeline_tasks.service.requests.stages import LandRequest
root, day = sys.argv[1:]
landed = daemon.send(LandRequest(root, day, snapshot="day"))
request = RefineRequest(root, "ingest", {}, landed["manifest"], landing=day, recipe="web", snapshot="day", run_id="r")
ingested = daemon.send(request)
daemon.stop()
heavy = [name for name in ("numba", "pyspark", "ray", "great_expectations", "torch") if name in sys.modules]
print(json.dumps({"land": landed, "ingest": ingested, "here": heavy}))
"""
"""What a task does: it sends requests; `here` are the libraries of the work that it has loaded."""

WALKED = """
import html, json, re, sys
from collections import defaultdict
from urllib.parse import urljoin, urlsplit
from refinery_airflow import plugin as refinery_plugin
from airflow.api_fastapi.app import init_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient
init_auth_manager()
app = refinery_plugin.app
app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="ada", role="OP")
visitor, waiting, seen, pages = TestClient(app), ["/page", "/sources", "/find"], set(), defaultdict(list)
while waiting:
    page = waiting.pop(0)
    kind = page.split("?")[0].split("/")[1]
    if page in seen or len(pages[kind]) == 12:
        continue
    seen.add(page)
    answer = visitor.get(page)
    pages[kind].append(answer.status_code)
    for link in re.findall(r'href="([^"]+)"', answer.text):
        at = urlsplit(urljoin(f"http://here/refinery{page}", html.unescape(link)))
        if at.netloc == "here" and at.path.startswith("/refinery/"):
            waiting.append(at.path.removeprefix("/refinery") + (f"?{at.query}" if at.query else ""))
heavy = [name for name in ("numba", "pyspark", "ray", "great_expectations", "torch") if name in sys.modules]
print(json.dumps({"pages": pages, "here": heavy}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(wheel, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def thin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment for Airflow alone: it has no engine and no kernel."""
    return install(wheel, tmp_path_factory.mktemp("thin"), "airflow")


def printed(here: Installed, script: str, *arguments: str | Path, **variables: str) -> Any:
    done = here.run("-c", script, *arguments, **variables)
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
    assert names == {in_wheel(path) for path in source_files()} | {CONSTRAINTS}


def test_the_wheel_has_the_pins_of_the_requirements(wheel: Path) -> None:
    """An Airflow of one's own takes them, so that the libraries that are identity are those of a checkout."""
    with zipfile.ZipFile(wheel) as archive:
        lines = archive.read(CONSTRAINTS).decode().splitlines()
    pinned = components((PROJECT / "requirements.txt").read_text())
    assert lines == [f"{each['name']}=={each['version']}" for each in pinned]


def test_an_installed_wheel_has_recipes_suites_and_sql(installed: Installed) -> None:
    seen = printed(installed, INSTALLED)
    assert seen["package"].startswith(str(installed.packages))
    assert [place for place in seen["path"] if place.startswith(str(PROJECT))] == []
    assert seen["dags"] == str(installed.packages / "pipeline_tasks" / "dags")
    assert (seen["recipes"], seen["builds"]) == (recipe_names(), recipe_names(BUILDS))
    assert seen["bounds"].keys() == {path.stem for path in EXPECTATIONS.glob("*.json")}
    assert all(seen["bounds"].values())
    assert seen["queries"] == queries()


@pytest.mark.parametrize("environment", ["installed", "thin"])
def test_airflow_finds_the_dags_and_the_plugin_of_an_installed_wheel_once(
    environment: str, request: pytest.FixtureRequest
) -> None:
    seen = printed(request.getfixturevalue(environment), REGISTERED)
    assert seen["faults"] == [{}, {}]
    assert [names.count("refinery") for names in seen["plugins"]] == [1, 1]
    assert [file for file in seen["copies"] if file.endswith("/alerts/alerts.py")]
    assert set(seen["copies"].values()) == {1}
    assert seen["import_errors"] == {}
    assert {"refine", "build_corpus", "arrivals", "maintenance"} <= set(seen["dags"])
    assert "It is not there." in seen["page"]
    assert seen["style"] > 0


def test_an_airflow_without_engines_and_kernels_sends_its_work_to_another_environment(
    thin: Installed, installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "day").mkdir()
    (tmp_path / "day" / "a.jsonl").write_text('{"text": "hello"}\n')
    elsewhere = {"REFINERY_PYTHON": str(installed.python), "PYTHONPATH": "/nowhere"}
    seen = printed(thin, SENT, tmp_path / "root", tmp_path / "day", **elsewhere)
    assert seen["here"] == []
    assert seen["land"]["files"] == 1
    assert seen["ingest"]["rows"] == 1


@pytest.mark.parametrize("fault", ["other code", "no package", "no interpreter"])
def test_an_environment_that_cannot_do_the_work_is_named(
    thin: Installed, installed: Installed, fault: str, tmp_path: Path
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    interpreter = {
        "other code": installed.python,
        "no package": tmp_path / "bare" / "bin" / "python",
        "no interpreter": tmp_path / "python",
    }[fault]
    later = installed.packages / "pipeline_tasks" / "later.py"
    if fault == "other code":
        later.write_text("# a later release\n")
    done = thin.run("-c", SENT, tmp_path / "root", tmp_path / "day", REFINERY_PYTHON=str(interpreter))
    later.unlink(missing_ok=True)
    assert done.returncode != 0
    [*_, last] = done.stderr.splitlines()
    refusal = {"other code": "RecipeError", "no package": "JobLost", "no interpreter": "RecipeError"}[fault]
    assert refusal in last
    assert str(interpreter) in last


def test_pages_of_an_airflow_without_kernels_are_whole_or_say_what_they_need(
    thin: Installed, small_root: SmallRoot, tmp_path: Path
) -> None:
    """Every page that a link of another leads to is opened; pages that show texts write looks into the root."""
    root = shutil.copytree(small_root.root, tmp_path / "root")
    migrated(thin.folder)
    seen = printed(thin, WALKED, AIRFLOW_HOME=str(thin.folder), REFINERY_ROOT=str(root))
    assert seen["here"] == []
    assert {"page", "snapshot", "rejects", "document", "compare", "ask", "manifest"} <= seen["pages"].keys()
    lacking = {kind for kind, statuses in seen["pages"].items() if 501 in statuses}
    assert {kind for kind, statuses in seen["pages"].items() if not {200, 404, 501}.issuperset(statuses)} == set()
    assert lacking <= {"read", "breakdown", "ask"}


@pytest.mark.nightly
@pytest.mark.timeout(1800)  # a cold cache, on a busy machine
def test_an_installed_wheel_refines_the_first_day_of_the_demo(installed: Installed) -> None:
    loops = {"NUMBA_CACHE_DIR": str(cache_place())}  # they are those of the checkout, wherever they are installed
    wrote = installed.run("-m", "pipeline_tasks.demo", ".refinery/demo/crawl", "--scale", "0.1", **loops)
    assert wrote.returncode == 0, wrote.stderr[-3000:]
    command = [installed.python.with_name("refinery"), "run", "--input", ".refinery/demo/crawl/2026-11-19"]
    done = installed.run(*command, "--output", "root", "--recipe", "demo", "--engine", "local", "--json", **loops)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["build"]["tokens"] > 0
