"""A run whose recipe has a model write stops at its hours and goes on with more; its texts are written again to verify.

What only this proves: a recipe's hours reach the tasks of a run, and its model is found again by who verifies.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from tests.brought import site
from tests.stages import rephrasing
from tests.stages.rephrasing import asked


def recipe(folder: Path, generator: dict[str, Any], hours: float) -> str:
    stages = {"ingest": {}, "extract": {}, "rephrase": {"generator": generator, "prompts": {"rewrite": {}}}}
    run = {"engines": dict.fromkeys(stages, "local"), "model_hours": {"rephrase": hours}}
    (folder / "recipes" / "own.yaml").write_text(json.dumps({"name": "own", "stages": stages, "run": run}))
    return "own"


def test_a_run_stops_at_its_hours_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recipes").mkdir()
    monkeypatch.setenv("REFINERY_RECIPES", str(tmp_path / "recipes"))
    generator = rephrasing.model(tmp_path, batch=1, pause=0.1)
    pages = [
        {"text": f"The harbor of town {at} lay still. " * 20, "url": f"https://a.example/{at}"} for at in range(12)
    ]
    (tmp_path / "2026-11-20").mkdir()
    (tmp_path / "2026-11-20" / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    words = ["run", "--input", str(tmp_path / "2026-11-20"), "--output", str(tmp_path / "root"), "--recipe"]
    with site(tmp_path / "site") as place:
        rephrasing.install(place)
        assert main([*words, recipe(tmp_path, generator, 0.5 / 3600)]) == 78
        said = capsys.readouterr()
        assert "`run: model_hours`" in said.out + said.err
        stopped = asked(tmp_path).total()
        assert 0 < stopped < 12
        assert main([*words, recipe(tmp_path, generator, 1)]) == 0
        assert len(asked(tmp_path)) == 12
        assert asked(tmp_path).total() <= 13
        capsys.readouterr()
        assert main(["verify", str(tmp_path / "root"), "--scores", "4"]) == 0
    out = capsys.readouterr().out
    assert "4 of 12 documents computed again on cpu; largest difference 0, tolerated 0" in out
