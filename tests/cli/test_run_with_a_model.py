"""A model that was trained here rejects what was planted, on Ray's actors, and commands show what it did.

What only this proves: training, a recipe with a classifier, a run on Ray, its funnel, rejects and what-if fit together.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.commands import Refinery
from tests.shop import prose, shop, write

pytestmark = pytest.mark.slow


def recipe(model: Path, label: str) -> dict[str, Any]:
    classifier = {"model": str(model), "label": label, "minimum": 0.5, "accepted": "a test that plants texts"}
    return {
        "stages": {
            "ingest": {},
            "extract": {},
            "filter_language": {"keep": ["en"], "threshold": 0.0},
            "score_quality": {"classifiers": {"prose": classifier}},
        },
        "run": {
            "engines": dict.fromkeys(("ingest", "extract", "filter_language"), "local") | {"score_quality": "ray"},
            "resources": {"score_quality": {"actors": 1}},
        },
        "gates": {},
    }


def test_a_trained_model_rejects_what_was_planted(tmp_path: Path, refinery: Refinery, ray: str) -> None:
    del ray  # the one Ray of this session
    texts = prose()
    half = len(texts) // 2
    good, planted = texts[half : half + 150], shop(texts[half + 150 :])[:30]
    sides = (
        write(tmp_path / "good.jsonl", texts[:half], "good"),
        write(tmp_path / "shop.jsonl", shop(texts[:half]), "shop"),
    )
    model = tmp_path / "prose.bin"
    trained = refinery(
        "model", "quality", "--positives", sides[0], "--negatives", sides[1], "--output", model, "--json"
    )
    assert trained.returncode == 0, trained.stderr
    label = json.loads(trained.stdout)["label"]
    (tmp_path / "judged.yaml").write_text(json.dumps(recipe(model, label)))
    write(tmp_path / "2026-11-20" / "pages.jsonl", [*good, *planted], "page")
    words = ("--input", tmp_path / "2026-11-20", "--output", tmp_path / "root", "--recipe", tmp_path / "judged.yaml")
    done = refinery("run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    exported = refinery("rejects", tmp_path / "root", "--stage", "score_quality", "--to", tmp_path / "rejects")
    assert exported.returncode == 0, exported.stderr
    found = {text for path in (tmp_path / "rejects").iterdir() for text in pq.read_table(path)["text"].to_pylist()}
    assert len(found & set(planted)) >= 28
    assert len(found & set(good)) <= 3
    funnel = refinery("look", "funnel", tmp_path / "root").stdout
    assert "low_component" in funnel
