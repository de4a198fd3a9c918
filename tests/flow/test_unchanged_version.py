"""A run that finds its version in the root says so, and whether a stage had to do anything again."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Refinery
from tests.flow.test_replaced_landing import RECIPE, folder_of

pytestmark = pytest.mark.slow

SAID = "  unchanged version 1 was there already"


def test_an_identical_run_says_that_nothing_was_made_again(tmp_path: Path, refinery: Refinery) -> None:
    recipe, root, day = tmp_path / "own.yaml", tmp_path / "root", folder_of(tmp_path / "crawl" / "day", 12)
    recipe.write_text(RECIPE)

    def run(*words: str) -> str:
        places = ("--input", day, "--output", root, "--recipe", recipe, "--engine", "local")
        done = refinery("run", *places, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert json.loads(run("--json"))["unchanged"] is False
    again = run().splitlines()
    assert again.count(f"{SAID}, and nothing was made again") == 1
    shutil.rmtree(root / "ingest")
    assert SAID in run().splitlines(), "what was lost was made again, and is the same"
