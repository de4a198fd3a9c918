"""With the extra `text` alone a folder is refined, gated by intervals, published, verified and looked at."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.gate.checks import gate_names
from pipeline_tasks.gate.judging import INTERVALS
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.libraries import EXTRAS
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.run.machine import named as named_fault
from tests.embedded import PLUGINS, PROJECT
from tests.installed import distributions_of, lines_of

DAY = "2026-11-19"

PUBLISH, LINES = "pipeline_tasks.publish", 15_800
"""A room, and the most lines that it and all it imports may have."""

WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {absent} else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Without, sys.meta_path)
"""
"""What each process of a run begins with: what is `absent` is as if it were not installed."""

pytestmark = pytest.mark.slow


OURS = {"pipeline_tasks", *(each.name for each in PLUGINS.glob("refinery_*"))}


def modules_of(extra: str) -> set[str]:
    """Return the modules that an extra brings."""
    names = {found.name for found in distributions_of(extra)}
    return {module for module, owners in packages_distributions().items() if names & {*owners}}


class Alone:
    """A root that was refined, and commands, without the other extras."""

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(
            WITHOUT.format(absent=sorted({*packages_distributions()} - modules_of("text") - OURS))
        )
        self.root = str(folder / "root")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "REFINERY_"))},
            "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT), str(PROJECT / "plugins")]),
        }

    def does(self, *words: str) -> str:
        command = [sys.executable, "-m", "pipeline_tasks.cli", *words]
        done = subprocess.run(command, env=self.environment, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    write_crawl(folder / "crawl", [DAY], scale=0.05)
    here = Alone(folder)
    overrides = [f"--override={gate}=a small sample" for gate in gate_names(load_recipe("web"))]
    places = ("--input", str(folder / "crawl" / DAY), "--output", here.root)
    here.does("run", *places, "--recipe", "web", "--engine", "local", "--no-build", *overrides)
    return here


def test_the_libraries_of_other_extras_are_absent(alone: Alone) -> None:
    others = sorted({*EXTRAS} & modules_of("refine") - modules_of("text"))
    assert {"airflow", "duckdb", "great_expectations", "pandas", "pyspark", "ray"} <= {*others}
    tried = f"from importlib.util import find_spec\nprint([name for name in {others} if find_spec(name)])"
    done = subprocess.run(
        [sys.executable, "-c", tried], env=alone.environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_gate_judged_by_intervals_and_has_no_page(alone: Alone) -> None:
    [version] = version_log.versions(alone.root, "web")
    assert len(version.verdicts) == len(gate_names(load_recipe("web")))
    for referred in version.verdicts.values():
        verdict = read_verdict(alone.root, referred)
        assert (verdict.judge, verdict.docs) == (INTERVALS, "")


def test_what_was_published_is_verified_and_looked_at(alone: Alone) -> None:
    assert alone.does("verify", alone.root)
    assert DAY in alone.does("status", alone.root)
    report = alone.does("report", alone.root, "--recipe", "web", "--snapshot", DAY).strip()
    assert "<svg" not in Path(report).read_text()
    steps = json.loads(alone.does("funnel", alone.root, "--recipe", "web", "--snapshot", DAY, "--json"))
    assert [step["stage"] for step in steps] == [step.stage for step in load_recipe("web").steps]


@pytest.mark.parametrize("module", sorted({*EXTRAS} & {*packages_distributions()}))
def test_a_missing_library_is_named_with_an_extra_that_brings_it(module: str) -> None:
    named = {re.split(r"[^\w.-]", line)[0] for line in lines_of(EXTRAS[module])}
    assert named & {owner.replace("_", "-") for owner in packages_distributions()[module]}
    assert f"extra `{EXTRAS[module]}`" in str(named_fault(ModuleNotFoundError("", name=f"{module}.part")))


def test_the_closure_of_publish_only_shrinks() -> None:
    """Lines of all modules that `publish` imports, itself with them: what somebody reads to know what leaves."""
    graph = grimp.build_graph("pipeline_tasks", cache_dir=None)
    room = {PUBLISH, *graph.find_descendants(PUBLISH)}
    closure = room.union(*map(graph.find_upstream_modules, room))
    files = (PROJECT.joinpath(*module.split(".")) for module in closure)
    paths = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in files]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths if path.exists()) <= LINES
