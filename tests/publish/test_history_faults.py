"""Settings that history was not made by are refused before the first stage, and named; others are let through."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from refinery_models.topics import train_topics

from pipeline_tasks.binding import bind
from pipeline_tasks.cards import stage_card
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.preflight import PlannedRun, findings, refuse
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.recipe import Recipe, parse_recipe
from pipeline_tasks.scorers.topics import dump_topics
from pipeline_tasks.stages.dedup_minhash.params import history_version as of_words
from pipeline_tasks.stages.dedup_semantic.params import history_version as of_meaning
from pipeline_tasks.store.reading import read_committed
from pipeline_tasks.text.near.vectors import unpacked
from tests import refining
from tests.documents import documents
from tests.scorers.networks import embedding_folder, static_folder
from tests.vector_root import texts

DAY, NEXT = "2026-11-19", "2026-11-20"
STAGES: dict[str, Any] = {"ingest": {}, "extract": {}, "filter_language": {}, "dedup_exact": {}}


def recipe_of(model: str, name: str = "web", words: Any = None, **semantic: Any) -> Recipe:
    stages = STAGES | {"dedup_minhash": words or {}, "embed": {"model": model}, "dedup_semantic": semantic}
    return parse_recipe({"name": name, "title": "T", "stages": stages}, "web.yaml")


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = static_folder(tmp_path / "model")
    (Path(folder) / "README.md").write_text("---\nlanguage: en\n---\n")
    return folder


@pytest.fixture
def root(tmp_path: Path, model: str) -> str:
    """A published day of texts that both stages have compared."""
    where = tmp_path / "root"
    table = documents(texts(1, 12), language=pa.array(["en"] * 12, pa.string())).sort_by("id")
    manifests = {"dedup_exact": refining.commit_parent(where, [table], "dedup_exact")}
    for stage, params in (("dedup_minhash", {}), ("embed", {"model": model}), ("dedup_semantic", {"threshold": 0.95})):
        manifests[stage] = refining.refined(where, stage, [*manifests.values()][-1], params)[0]
    sealed = {stage: f"{path}@sha256:{read_committed(str(where), path)[1]}" for stage, path in manifests.items()}
    fields = {"recipe": "web", "snapshot": DAY, "landing": "file:///landing", "manifests": sealed, "verdicts": {}}
    counts = {"documents": 12, "tokens": 0, "sequences": 0, "files": (), "prefix": "publish/0"}
    version_log.append(str(where), fields | counts)
    return str(where)


def said(root: str, recipe: Recipe, snapshot: str = NEXT, **how: Any) -> list[str]:
    landing = Path(root).parent / "landing" / snapshot
    landing.mkdir(parents=True, exist_ok=True)
    (landing / "a.jsonl").write_text(json.dumps({"text": "The ferry left the harbor before noon."}) + "\n")
    planned = PlannedRun(root, (recipe,), input=str(landing), fields={}, engines={"*": "local"}, **how)
    return [finding.message for finding in findings(planned) if finding.fault]


def test_what_history_was_made_by_is_let_through(root: str, model: str) -> None:
    assert said(root, recipe_of(model, threshold=0.95)) == []
    assert said(root, recipe_of(model, threshold=0.95, languages=["eng"], rounds=9, buckets=4)) == []


def test_changed_settings_are_named_before_the_first_stage(root: str, model: str, tmp_path: Path) -> None:
    other = embedding_folder(tmp_path / "other")
    [message] = said(root, recipe_of(model, threshold=0.9))
    assert "threshold was 0.95 and is 0.9" in message
    assert DAY in message
    [message] = said(root, recipe_of(other, threshold=0.95))
    assert "the model of embed was" in message
    [message] = said(root, recipe_of(model, threshold=0.95, languages=["en", "de"]))
    assert "languages was en and is de, en" in message
    [message] = said(root, recipe_of(model, threshold=0.95, words={"ngram": 7}))
    assert "dedup_minhash" in message
    assert "ngram was 5 and is 7" in message
    found = findings(PlannedRun(root, (recipe_of(model),), snapshot=NEXT, engines={"*": "local"}))
    with pytest.raises(ContractError, match="dedup_semantic"):
        refuse(found)


def test_a_dataset_without_that_history_is_no_other(root: str, model: str) -> None:
    changed = recipe_of(model, threshold=0.9)
    assert said(root, replace(changed, name="mine")) == []
    assert said(root, changed, sample=0.5) == []
    assert said(root, changed, snapshot=DAY) == []
    version_log.retract(root, "web", DAY, "spam")
    assert said(root, changed) == []


def test_topics_of_another_model_are_refused_before_the_first_stage(model: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    vectors = unpacked(pa.array([bytes(6) + b"\0<", b"\0<" + bytes(6)], pa.large_binary()))
    path.write_bytes(dump_topics(train_topics(vectors, ["a", "b"], "other", 2, 1)))
    stages = STAGES | {"embed": {"model": model}, "topics": {"topics": str(path)}}
    recipe = parse_recipe({"name": "web", "title": "T", "stages": stages}, "web.yaml")
    [message] = said(str(tmp_path / "root"), recipe)
    assert "topics: its topics are of vectors of other" in message


@pytest.mark.parametrize(("stage", "version"), [("dedup_minhash", of_words), ("dedup_semantic", of_meaning)])
def test_all_that_marks_history_is_looked_at(stage: str, version: Any) -> None:
    """A param is deciding, or makes no difference to the mark."""
    card, changed = (
        stage_card(stage),
        {
            "policy": ["longest"],
            "prefer": {"type": ["html"]},
            "quality": "q",
            "threshold": 0.77,
            "similarity": "containment",
        },
    )
    moved = set()
    for name in card.params.__dataclass_fields__:
        before = bind(card, {})
        value = changed.get(name)
        if value is None and isinstance(getattr(before, name), int):
            value = getattr(before, name) + 1
        if value is not None:
            after = bind(card, {name: value})
            moved |= {name} if version(after) != version(before) else set()
    assert moved <= set(card.copies.deciding), moved
    assert len(moved) >= len(card.copies.deciding) - 2
