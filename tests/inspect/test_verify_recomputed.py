"""What a model wrote is written again for a sample of documents, where hardware of one name promises the same."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.recomputed import check_again, recomputes
from pipeline_tasks.inspect.verify.scores import Rescored, Sample
from pipeline_tasks.run.tasks import states
from tests.brought import site
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.stages import rephrasing

STAGES: dict[str, Any] = {"ingest": {}, "extract": {}, "filter_language": {}}


@pytest.fixture(autouse=True)
def brought(tmp_path: Path) -> Iterator[None]:
    with site(tmp_path / "site") as place:
        rephrasing.install(place)
        states._waiting.clear()
        yield


@pytest.fixture
def params(tmp_path: Path) -> dict[str, Any]:
    return {"generator": rephrasing.model(tmp_path), "prompts": {"rewrite": {}}, "where": {"chars": {"least": 9}}}


@pytest.fixture
def read(tmp_path: Path, params: dict[str, Any]) -> Committed:
    """Documents of which a model wrote, and short ones of which it did not; the recipe is beside them."""
    root = tmp_path / "root"
    texts = [*(f"Lake {number} is {number} m deep." for number in range(20)), *"abcdefgh"]
    path, manifest = refined(root, "rephrase", commit_parent(root, [documents(texts)]), params)
    (tmp_path / "own.yaml").write_text(json.dumps({"stages": {**STAGES, "rephrase": params}}))
    return Committed(f"{root}/{path}", path, manifest, "")


def again(folder: Path, read: Committed) -> tuple[Rescored, list[Problem]]:
    findings = Findings()
    (found,) = check_again(str(folder / "root"), str(folder / "own.yaml"), read, Sample(8), findings)
    return found, findings.problems


def test_the_same_model_writes_the_same(tmp_path: Path, read: Committed) -> None:
    found, problems = again(tmp_path, read)
    assert recomputes(read.manifest)
    assert found == Rescored(read.path, "rephrase", 8, 28, 0.0, 0.0, "cpu", {"cpu": 20}, done="computed")
    assert problems == []


def test_other_texts_are_a_problem(tmp_path: Path, read: Committed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTING_MARK", "another library")
    found, problems = again(tmp_path, read)
    assert (found.largest, len(problems)) == (1.0, 8)
    assert "100% of what its model computed comes out otherwise" in problems[0].problem


def test_other_hardware_may_write_other_texts(tmp_path: Path, read: Committed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTING_MARK", "another GPU")
    monkeypatch.setenv("NOTING_HARDWARE", "a GPU")
    found, problems = again(tmp_path, read)
    assert (found.largest, found.tolerance, found.hardware) == (1.0, 1.0, "a GPU")
    assert problems == []


def test_another_recipe_is_skipped_and_said(tmp_path: Path, read: Committed, params: dict[str, Any]) -> None:
    stages = {**STAGES, "rephrase": {**params, "window": 500}}
    (tmp_path / "own.yaml").write_text(json.dumps({"stages": stages}))
    found, problems = again(tmp_path, read)
    assert "other params of rephrase" in found.skipped
    assert (found.documents, problems) == (0, [])
