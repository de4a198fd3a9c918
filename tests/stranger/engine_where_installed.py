"""What `test_stranger` runs in a process that has the package: its engine, and who asks of it."""

import json
from pathlib import Path

import pytest
from refinery_airflow.runs.form import params_of_runs
from stranger import threads

from pipeline_tasks.cli.main import main
from pipeline_tasks.cli.reference.engines import engines_page
from pipeline_tasks.deployment import parse_deployment
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.flow.loop import run_recipe
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import load_recipe, parse_recipe
from pipeline_tasks.testing.engines import check_engine
from pipeline_tasks.upkeep.doctor import checks

RECIPE = """
name: threaded
stages: {ingest: {}, extract: {min_chars: 1}}
run: {engines: {ingest: threads, extract: threads}}
"""


def test_an_engine_keeps_what_every_engine_promises() -> None:
    check_engine("threads")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "threaded.yaml"
    path.write_text(RECIPE)
    return path


def test_a_recipe_runs_on_an_engine_and_gives_what_local_gives(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = tmp_path / "2026-11-19"
    landing.mkdir()
    texts = [f"This is sentence {at} of a document. " * 20 for at in range(9)]
    (landing / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    used: list[str] = []
    make = threads.factory
    monkeypatch.setattr(threads, "factory", lambda *where: used.append("threads") or make(*where))
    made = []
    for root, engines in ((tmp_path / "threads", {}), (tmp_path / "local", {"*": "local"})):
        params = {"root": str(root), "input": str(landing), "snapshot": landing.name, "partitions": 0}
        run_recipe(load_recipe(str(recipe)), params | {"engines": engines, "override": {}}, {})
        made.append(version_log.current(str(root), "threaded").manifests)
    assert made[0] == made[1]
    assert used == ["threads"] * 2


def test_an_unknown_engine_is_told_the_nearest_one() -> None:
    written = {"stages": {"ingest": {}}, "run": {"engines": {"ingest": "thread"}}}
    with pytest.raises(RecipeError, match="did you mean 'threads'"):
        parse_recipe(written, "mine.yaml")


def test_lint_and_doctor_know_an_engine(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", str(recipe)])
    assert "threads" not in capsys.readouterr().out
    assert next(check for check in checks("") if check.name == "threads").ok


def test_forms_pages_and_a_deployment_know_an_engine() -> None:
    assert "threads" in params_of_runs(())["engine"].schema["enum"]
    assert "## threads" in engines_page()
    known = parse_deployment(b"defaults: {connections: {threads: ours}}", "d.yaml")
    assert known.defaults.connections.engines == {"threads": "ours"}
