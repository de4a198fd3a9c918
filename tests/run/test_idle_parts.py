"""What has nothing to work with says so in one word, wherever the stage is shown."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.flow.summary import summary_lines
from pipeline_tasks.inspect.funnel import funnel, funnel_lines
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.run.idle_parts import idle_parts
from tests.documents import documents
from tests.refining import commit_parent, refined

TEXTS = ["The river rises in the hills to the north of the town.", "People who live on its banks have built mills."]


def run(root: Path, stage: str, params: dict[str, Any], language: str = "en") -> tuple[str, list[str]]:
    """Run a stage over two documents; return its manifest's path, and what is idle."""
    columns = {"language": pa.array([language] * 2), "language_score": pa.array([0.9] * 2)}
    parent = commit_parent(root, [documents(TEXTS, ["https://a.org/1", "https://a.org/2"], **columns)])
    path, manifest = refined(root, stage, parent, params)
    return path, [str(part) for part in idle_parts(manifest)]


@pytest.mark.parametrize(
    ("stage", "params", "lacks", "remedy"),
    [
        ("filter_url", {}, "idle: no lists", "fetch url-lists"),
        ("decontaminate", {}, "idle: no evaluation sets", "fetch evaluation-sets"),
        ("score_quality", {}, "idle: no model for toxicity", "classifiers"),
    ],
)
def test_a_stage_without_anything_to_work_with_is_idle(
    stage: str, params: dict[str, Any], lacks: str, remedy: str, tmp_path: Path
) -> None:
    path, (line,) = run(tmp_path, stage, params)
    assert line.startswith(lacks)
    assert remedy in line
    version = Version(1, "web", "2026-45", "s3://in", {stage: path}, {}, "publish/1", 2, 0, 0)
    assert line in "\n".join(funnel_lines(funnel(str(tmp_path), version)))


def test_a_stage_with_a_list_or_a_set_is_not_idle(tmp_path: Path) -> None:
    domains, items = tmp_path / "domains", tmp_path / "items.jsonl"
    domains.write_text("b.org\n")
    items.write_text(json.dumps({"question": "What color is the sky above the port when the rain has ended?"}) + "\n")
    assert run(tmp_path, "filter_url", {"domains": str(domains)})[1] == []
    assert run(tmp_path, "decontaminate", {"benchmarks": {"mine": str(items)}})[1] == []


def test_languages_without_a_model_are_counted(tmp_path: Path) -> None:
    weights = {"length": 1.0, "perplexity": 1.0}
    assert run(tmp_path, "score_quality", {"weights": weights, "minimum": 0})[1] == []
    _, (line,) = run(tmp_path, "score_quality", {"weights": weights, "minimum": 0}, language="ko")
    assert line.startswith("idle: no model for perplexity in ko (2 documents)")
    assert run(tmp_path, "score_quality", {"weights": {"length": 1.0}, "minimum": 0}, language="ko")[1] == []


def test_a_manifest_of_an_older_version_says_nothing(tmp_path: Path) -> None:
    columns = {"language": pa.array(["en"] * 2), "language_score": pa.array([0.9] * 2)}
    _, manifest = refined(tmp_path, "score_quality", commit_parent(tmp_path, [documents(TEXTS, **columns)]), {})
    assert len(idle_parts(manifest)) == 1
    assert idle_parts(replace(manifest, version=manifest.version - 1)) == ()


def test_the_summary_of_a_run_names_what_was_idle() -> None:
    reply = {"rejected": {}, "quarantined": {}, "wall": 1.0, "idle": ["idle: no lists (name files)"]}
    assert "filter_url idle: no lists (name files)" in list(summary_lines({"filter_url": reply}, []))
