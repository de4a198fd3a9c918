"""What a model would take to write of all documents is foretold by a sample, which the run does not pay again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from tests.brought import site
from tests.documents import documents
from tests.refining import commit_parent, refined
from tests.stages import rephrasing
from tests.stages.rephrasing import asked, batches

PAUSE = 0.05


@pytest.fixture(autouse=True)
def brought(tmp_path: Path) -> Iterator[None]:
    with site(tmp_path / "site") as place:
        rephrasing.install(place)
        yield


def written(folder: Path) -> dict[str, Any]:
    """Return the params of a model that takes `PAUSE` for two requests; the recipe is written beside them."""
    generator = rephrasing.model(folder, batch=2, pause=PAUSE)
    params = {"generator": generator, "prompts": {"rewrite": {}, "summary": {}}, "where": {"score": {"least": 0.5}}}
    stages = {"ingest": {}, "extract": {}, "filter_language": {}, "score_quality": {}, "rephrase": params}
    (folder / "own.yaml").write_text(json.dumps({"name": "own", "stages": stages}))
    return params


def cost(folder: Path, path: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    options = ["--recipe", str(folder / "own.yaml"), "--manifest", path, "--json", *more]
    assert main(["model", "cost", str(folder / "root"), *options]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_sample_foretells_the_whole_and_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    params, root = written(tmp_path), tmp_path / "root"
    texts = [f"Lake number {number:03d} is deep and has many islands of all sizes." for number in range(120)]
    scores = pa.array([number % 2 * 0.9 for number in range(120)])
    parent = commit_parent(root, [documents(texts, score=scores)])
    path = parent.partition("@")[0]
    found = cost(tmp_path, path, capsys, "--documents", "10", "--hour-price", "3600")
    assert (found["documents"], found["chosen"], found["sampled"], found["requests"]) == (120, 60, 10, 20)
    assert found["expected_requests"] == 120
    assert batches(tmp_path) == 10
    assert 60 * PAUSE * 0.9 < found["expected_seconds"] < 60 * PAUSE * 2.5
    assert found["dollars"] == pytest.approx(found["expected_seconds"])
    again = cost(tmp_path, path, capsys, "--documents", "10")
    assert (again["known"], again["expected_seconds"]) == (20, None)
    _, manifest = refined(root, "rephrase", parent, params)
    assert asked(tmp_path).total() == len(asked(tmp_path)) == 120
    [tokens] = [manifest.metrics["kept"]["n_generated"]["sum"]]
    assert tokens == found["expected_requests"]
    everything = cost(tmp_path, path, capsys, "--documents", "60")
    assert found["expected_tokens_out"] == pytest.approx(everything["expected_tokens_out"], rel=0.02)


def test_a_recipe_that_has_no_model_write_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "cost", str(tmp_path), "--recipe", "web"]) == 78
    assert "no stage that has a model write" in capsys.readouterr().err
