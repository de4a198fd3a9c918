"""`verify` scores a sample of documents again: a changed score is found though all that names it agrees with it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.inspect.verify.manifests import Committed
from pipeline_tasks.inspect.verify.scores import Rescored, Sample, check_scores
from pipeline_tasks.scorers.scorer import STEPS, tolerance
from pipeline_tasks.stages.score_quality import STAGE
from pipeline_tasks.store.shards.file import ShardWriter
from tests.chain import reply
from tests.commands import Refinery
from tests.documents import documents
from tests.fasttext_file import write_model
from tests.refining import commit_parent, refined, rows
from tests.scorers.networks import WORDS, onnx_folder, static_folder

TEXTS = [" ".join(WORDS[(row * 3 + at * at) % 10] for at in range(20 + row)) for row in range(40)]


def network(folder: Path) -> dict[str, Any]:
    return {"model": onnx_folder(folder / "model"), "lowest": -10, "highest": 10, "length": 32}


def fasttext(folder: Path) -> dict[str, Any]:
    words = {word: "hq" if rank % 3 else "cc" for rank, word in enumerate(WORDS)}
    return {"model": write_model(folder / "model.bin", words), "label": "__label__hq"}


def static(folder: Path) -> dict[str, Any]:
    return {"model": static_folder(folder / "model"), "label": "good"}


KINDS: list[Callable[[Path], dict[str, Any]]] = [network, fasttext, static]


def scored(root: Path, classifier: dict[str, Any]) -> Committed:
    """Return the manifest of documents that a classifier has scored, some of them rejected."""
    table = documents(TEXTS, language=pa.array(["en"] * 40), language_score=pa.array([0.9] * 40))
    params = {"classifiers": {"word": classifier}, "weights": {"word": 1.0}, "minima": {"word": 0.5}, "minimum": 0.0}
    path, manifest = refined(root, STAGE.name, commit_parent(root, [table.slice(0, 25), table.slice(25)]), params)
    return Committed(f"{root}/{path}", path, manifest, "")


def again(root: Path, read: Committed, count: int, **models: str) -> tuple[list[Rescored], list[Problem]]:
    findings = Findings()
    found = list(check_scores(str(root), "none", read, Sample(count, models), findings))
    return found, findings.problems


def moved(root: Path, read: Committed, by: float, at: int = 0) -> tuple[Committed, str]:
    """Move the score of one kept document, in a shard and a manifest that agree; return the manifest and the id."""
    shard = read.manifest.shards[0]
    table = pq.read_table(root / shard.path)
    values = table.column("score_word").to_pylist()
    values[at] += by
    column = table.schema.get_field_index("score_word")
    changed = table.set_column(column, table.schema.field(column), pa.array(values, pa.float64()))
    metadata = {key.decode(): value.decode() for key, value in (changed.schema.metadata or {}).items()}
    writer = ShardWriter(changed.schema.remove_metadata(), metadata)
    for batch in changed.to_batches():
        writer.write(batch)
    other = replace(writer.store(str(root), "score_quality/changed/data"), below=shard.below)
    manifest = replace(read.manifest, shards=(other, *read.manifest.shards[1:]))
    return replace(read, manifest=manifest), rows(root, manifest).column("id")[at].as_py()


@pytest.mark.parametrize("kind", KINDS)
def test_all_scores_are_computed_again_as_they_are_stored(
    kind: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    classifier, root = kind(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    assert sum(read.manifest.rejected.values()) > 0
    assert read.manifest.rows > 0
    found, problems = again(root, read, 100, word=classifier["model"])
    assert problems == []
    most = 1 / STEPS if kind is network else 0.0
    assert found == [Rescored(read.path, "word", 40, 40, 0.0, most, "cpu", {"cpu": 40})]


@pytest.mark.parametrize("kind", KINDS)
def test_a_moved_score_is_named_beyond_the_tolerance_alone(
    kind: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    classifier, root = kind(tmp_path), tmp_path / "root"
    read, most = scored(root, classifier), 1 / STEPS if kind is network else 0.0
    within, _ = moved(root, read, most)
    (found,), problems = again(root, within, 100, word=classifier["model"])
    assert (problems, found.largest) == ([], most)
    beyond, document = moved(root, read, most + 1 / STEPS)
    (found,), (problem,) = again(root, beyond, 100, word=classifier["model"])
    assert found.largest == pytest.approx(most + 1 / STEPS)
    assert problem.object == f"{root}/{beyond.manifest.shards[0].path}"
    assert document in problem.problem
    assert "score_word" in problem.problem
    assert float(problem.actual) - float(problem.expected) == pytest.approx(most + 1 / STEPS, abs=2e-6)


def test_a_sample_is_drawn_by_hash_and_from_kept_and_rejected_rows(tmp_path: Path) -> None:
    classifier, root = network(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    drawn = set()
    for at in range(read.manifest.shards[0].rows):
        changed, document = moved(root, read, 0.5, at)
        _, problems = again(root, changed, 10, word=classifier["model"])
        drawn |= {document} if problems else set()
    (found,), _ = again(root, read, 10, word=classifier["model"])
    assert (found.documents, found.of) == (10, 40)
    assert 0 < len(drawn) < 10


def other_model(root: Path, model: str) -> str:
    Path(model, "config.json").write_text(json.dumps({"id2label": {"0": "other"}, "problem_type": "regression"}))
    return model


def no_model(root: Path, model: str) -> str:
    return str(root / "nowhere.bin")


@pytest.mark.parametrize("lost", [other_model, no_model])
def test_a_model_that_is_not_to_be_had_is_skipped_and_said(lost: Callable[[Path, str], str], tmp_path: Path) -> None:
    classifier, root = network(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    named = lost(root, classifier["model"])
    (found,), problems = again(root, read, 10, word=named)
    assert (problems, found.documents) == ([], 0)
    assert named in found.skipped
    (found,), problems = again(root, read, 10)
    assert (problems, found.documents) == ([], 0)
    assert "--model word=PATH" in found.skipped


def test_a_model_is_where_the_recipe_has_it(tmp_path: Path) -> None:
    classifier, root = network(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    judging = {"classifiers": {"word": classifier}, "weights": {"word": 1.0}}
    stages = {"ingest": {}, "extract": {}, "filter_language": {}, "score_quality": judging}
    (tmp_path / "own.yaml").write_text(json.dumps({"stages": stages}))
    (found,) = check_scores(str(root), str(tmp_path / "own.yaml"), read, Sample(10), Findings())
    assert (found.skipped, found.documents) == ("", 10)


def test_a_classifier_needs_its_model_alone_and_not_its_check(tmp_path: Path) -> None:
    """The bound, the report of a check and what follows from it decide by a score, and do not compute it."""
    classifier, root = network(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    written = {**read.manifest.params["classifiers"]["word"], "report": "sha256:gone", "later": True, "minimum": 0.7}
    checked = replace(read, manifest=replace(read.manifest, params={"classifiers": {"word": written}}))
    (found,), problems = again(root, checked, 10, word=classifier["model"])
    assert (problems, found.skipped, found.documents) == ([], "", 10)


def test_scores_of_another_version_of_the_stage_are_skipped(tmp_path: Path) -> None:
    classifier, root = network(tmp_path), tmp_path / "root"
    read = scored(root, classifier)
    earlier = replace(read, manifest=replace(read.manifest, version=STAGE.version - 1))
    (found,), problems = again(root, earlier, 10, word=classifier["model"])
    assert (problems, found.documents) == ([], 0)
    assert f"version {STAGE.version - 1}" in found.skipped


def test_other_hardware_is_tolerated_by_its_numerics() -> None:
    networks = [tolerance("ONNX", "fp32"), tolerance("Hugging Face", "tf32"), tolerance("Hugging Face", "bf16")]
    assert tolerance("fastText", "fp32") == 0.0 < networks[0]
    assert networks == sorted(networks)


# --- The command ------------------------------------------------------------------------------------------------------


def published(folder: Path, classifier: dict[str, Any]) -> str:
    """Land, refine, judge and publish documents that a classifier has scored; return the root."""
    landing, root = folder / "landing" / "2026-11-20", str(folder / "root")
    landing.mkdir(parents=True)
    lines = [json.dumps({"text": text, "url": f"https://example.org/{at}"}) for at, text in enumerate(TEXTS)]
    (landing / "a.jsonl").write_text("\n".join(lines) + "\n")
    named = {"root": root, "recipe": "judged", "snapshot": "2026-11-20"}
    landed = reply("land", **named, input=str(landing))
    parent, manifests = landed["manifest"], {"land": landed["manifest"]}
    judging = {"classifiers": {"word": classifier}, "weights": {"word": 1.0}, "minima": {}, "minimum": 0.3}
    steps: dict[str, dict[str, Any]] = {"ingest": {}, "extract": {"min_chars": 10}}
    steps |= {"filter_language": {"keep": ["en"], "threshold": 0.0}, "score_quality": judging}
    for stage, params in steps.items():
        request = {**named, "stage": stage, "params": params, "parent": parent, "landing": landed["landing"]}
        parent = manifests[stage] = reply("refine", **request, engine="local")["manifest"]
    kept = {stage: manifests[stage] for stage in steps}
    verdict = reply("judge_snapshot", **named, manifests=kept, override="a test")["verdict"]
    verdicts = {"publish": verdict}
    reply("publish", **named, landing=landed["landing"], manifests=manifests, verdicts=verdicts)
    return root


def test_the_command_says_what_was_scored_again_and_what_was_not(tmp_path: Path, refinery: Refinery) -> None:
    classifier = network(tmp_path)
    root = published(tmp_path, classifier)
    plain = refinery("verify", root)
    assert plain.returncode == 0, plain.stdout
    assert "--scores N" in plain.stdout
    done = refinery("verify", root, "--scores", "5", "--model", f"word={classifier['model']}", "--json")
    assert done.returncode == 0, done.stdout
    (facts,) = json.loads(done.stdout)["scores"]
    assert (facts["documents"], facts["skipped"], set(facts["computed_by"])) == (5, "", {"cpu"})
    Path(classifier["model"], "model.onnx").write_bytes(b"another")
    skipped = refinery("verify", root, "--fast", "--scores", "5", "--model", f"word={classifier['model']}")
    assert skipped.returncode == 0, skipped.stdout
    assert "SKIPPED" in skipped.stdout
    assert "scores of word were not computed again" in skipped.stdout.splitlines()[-1]
    assert refinery("verify", root, "--scores", "5", "--model", "word").returncode != ContractError.exit_code
