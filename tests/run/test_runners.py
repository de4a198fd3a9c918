"""Who else does the tasks of a run is asked before anything of it is imported."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pipeline_tasks import seams
from pipeline_tasks.recipe import Recipe
from pipeline_tasks.run.runners import SEAM, Runner, asked, has_connection
from tests.chain import command

ASKED = """
import json, sys
from pipeline_tasks import seams
from pipeline_tasks.run.runners import SEAM, Runner
runner = seams.own_parts(SEAM)[sys.argv[1]].load(Runner)
print(json.dumps([runner.is_asked(), [name for name in ("airflow", "numba", "pyarrow.dataset") if name in sys.modules]]))
"""


@pytest.mark.parametrize("name", seams.own_parts(SEAM))
def test_a_runner_that_is_not_asked_for_imports_nothing_heavy(name: str) -> None:
    done = command("-c", ASKED, name)
    assert json.loads(done.stdout) == [False, []], done.stderr


class Part:
    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    def load(self, *_: type) -> Runner:
        return self.runner


@pytest.mark.parametrize("wanted", [False, True])
def test_the_runner_that_the_environment_asks_for_is_taken(monkeypatch: pytest.MonkeyPatch, *, wanted: bool) -> None:
    def run(recipe: Recipe, given: str, params: Mapping[str, Any]) -> None:
        raise AssertionError

    runner = Runner(lambda: wanted, run, lambda name: name == "known")
    monkeypatch.setattr(seams, "own_parts", lambda _: {})
    monkeypatch.setattr(seams, "parts", lambda *_: {"other": Part(runner)})
    assert asked() == (runner if wanted else None)
    assert has_connection("known")
    assert not has_connection("unknown")
