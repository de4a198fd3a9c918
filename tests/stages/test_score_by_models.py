"""Documents are scored by models on every engine alike, once for all runs, and none is changed or lost for it."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import DigestMismatch, RecipeError
from pipeline_tasks.recipe import bind, parse_recipe
from pipeline_tasks.run.plan import plan
from pipeline_tasks.run.recipe_faults import recipe_faults
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.run.tasks import row_cache, task
from pipeline_tasks.run.tasks.state_cost import StateCost
from pipeline_tasks.scorers import encoder
from pipeline_tasks.stages.score_quality import LOW_COMPONENT, STAGE
from pipeline_tasks.store import storage
from pipeline_tasks.store.files import digest_of_named, localize
from tests.documents import documents
from tests.refining import commit_parent, refined, rows
from tests.scorers.networks import WORDS, onnx_folder

TEXTS = [" ".join(WORDS[(row * 3 + at * at) % 10] for at in range(20 + row)) for row in range(40)]
BAD = "bad " * 30


def table(texts: list[str]) -> pa.Table:
    count = len(texts)
    return documents(texts, language=pa.array(["en"] * count), language_score=pa.array([0.9] * count))


def params(model: str, **more: object) -> dict[str, Any]:
    """Return params by which the model alone decides."""
    word = {"model": model, "lowest": -10, "highest": 10, "length": 32, **more}
    return {"classifiers": {"word": word}, "weights": {"word": 1.0}, "minima": {}, "minimum": 0.3}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was given to a network in this process."""
    seen, scores = Counter[str](), encoder.EncoderScorer.scores

    def noted(self: Any, texts: Any) -> Any:
        seen.update(texts.to_pylist())
        return scores(self, texts)

    monkeypatch.setattr(encoder.EncoderScorer, "scores", noted)
    return seen


def score(root: Path, parent: str, written: dict[str, Any], on: tuple[str, str] = ("local", ""), **how: Any) -> Any:
    return refine(RefineRequest(str(root), STAGE.name, written, parent, **how), engine(*on)).manifest


def spent(root: Path, parent: str, written: dict[str, Any], on: tuple[str, str] = ("local", "")) -> StateCost:
    """Return what a run's models took."""
    return refine(RefineRequest(str(root), STAGE.name, written, parent), engine(*on)).cost.states


def test_a_model_decides_and_changes_no_text(tmp_path: Path) -> None:
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    manifest = score(root, commit_parent(root, [table([*TEXTS, BAD])]), params(model))
    kept, rejected = rows(root, manifest), rows(root, manifest, "rejects")
    assert sorted([*kept["text"].to_pylist(), *rejected["text"].to_pylist()]) == sorted([*TEXTS, BAD])
    assert BAD in rejected["text"].to_pylist()
    assert kept["score"].to_pylist() == pytest.approx(kept["score_word"].to_pylist(), abs=1e-6)
    assert set(kept["seen"].to_pylist()) == {1.0}
    assert str(tmp_path) not in str(manifest.params)


def test_a_bound_of_a_classifier_rejects_without_a_weight(tmp_path: Path) -> None:
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    written = {**params(model, minimum=0.45), "weights": {"length": 1.0}, "minimum": 0.0}
    manifest = score(root, commit_parent(root, [table([*TEXTS, BAD])]), written)
    assert manifest.rejected[LOW_COMPONENT] >= 1
    assert min(rows(root, manifest)["score_word"].to_pylist()) >= 0.45


def test_nothing_is_scored_twice(read: Counter[str], tmp_path: Path) -> None:
    """Over days, recipes and restarts: other bounds and weights, other documents beside them, another model's folder."""
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    first = score(root, commit_parent(root, [table(TEXTS[:20])], "first"), params(model))
    assert read == Counter(TEXTS[:20])
    other = {**params(model), "minimum": 0.6, "weights": {"word": 2.0, "length": 1.0}}
    score(root, commit_parent(root, [table(TEXTS[:20])], "first"), other)
    assert read == Counter(TEXTS[:20])
    second = score(root, commit_parent(root, [table([*TEXTS[10:30], BAD])], "second"), params(model))
    assert read == Counter([*TEXTS[:30], BAD])
    shutil.copytree(model, tmp_path / "elsewhere")
    score(root, commit_parent(root, [table(TEXTS)], "third"), params(str(tmp_path / "elsewhere")))
    assert read == Counter([*TEXTS, BAD])
    known = dict(zip(*(rows(root, first)[name].to_pylist() for name in ("id", "score_word")), strict=True))
    again = dict(zip(*(rows(root, second)[name].to_pylist() for name in ("id", "score_word")), strict=True))
    shared = known.keys() & again.keys()
    assert len(shared) > 3
    assert {key: known[key] for key in shared} == {key: again[key] for key in shared}


def test_a_cache_that_is_damaged_or_gone_changes_nothing(read: Counter[str], tmp_path: Path) -> None:
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    calm = score(tmp_path / "calm", commit_parent(tmp_path / "calm", [table(TEXTS)], "second"), params(model))
    score(root, commit_parent(root, [table(TEXTS[:20])], "first"), params(model))
    store = storage.connect(str(root))
    cached = [entry.path for entry in store.list("cache")]
    assert len(cached) == 2
    (root / next(path for path in cached if path.endswith(".segment"))).write_bytes(b"damaged")
    read.clear()
    assert score(root, commit_parent(root, [table(TEXTS)], "second"), params(model)) == calm
    assert read == Counter(TEXTS)


def test_an_edited_text_is_scored_though_its_id_is_known(read: Counter[str], tmp_path: Path) -> None:
    """An id is that of the text as it was extracted: stages that cut lines out leave it as it is."""
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    whole = table([f"{text} {BAD}" for text in TEXTS])
    cut = whole.set_column(whole.schema.get_field_index("text"), "text", pa.array(TEXTS, whole.field("text").type))
    score(root, commit_parent(root, [whole], "first"), params(model))
    after = score(root, commit_parent(root, [cut], "second"), params(model))
    alone = score(tmp_path / "alone", commit_parent(tmp_path / "alone", [cut], "second"), params(model))
    assert after == alone
    assert read == Counter([*whole["text"].to_pylist(), *TEXTS, *TEXTS])


def test_what_computed_each_row_is_recorded_and_no_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is found again keeps what computed it: in the cache, and in a layer that another run has stored."""
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("pipeline_tasks.run.tasks.task.hardware_of", lambda _: "a GPU")
        first = spent(root, commit_parent(root, [table(TEXTS[:20])], "first"), params(model))
    assert first.hardware == {"word": {"a GPU": 20}}
    parent = commit_parent(root, [table([*TEXTS[10:25], None]), table(TEXTS[25:30])], "second")  # type: ignore[list-item]
    second = spent(root, parent, params(model))
    assert second.hardware == {"word": {"a GPU": 10, "cpu": 11}}
    assert spent(root, parent, {**params(model), "minimum": 0.5}).hardware == second.hardware
    calm = score(tmp_path / "calm", commit_parent(tmp_path / "calm", [table(TEXTS[:20])], "first"), params(model))
    assert score(root, commit_parent(root, [table(TEXTS[:20])], "first"), params(model)) == calm


def test_a_cache_of_an_earlier_release_says_not_what_computed_it(
    read: Counter[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, root = onnx_folder(tmp_path / "model"), tmp_path / "root"
    with monkeypatch.context() as earlier:
        earlier.setattr(row_cache, "HARDWARE", "forgotten")
        score(root, commit_parent(root, [table(TEXTS[:20])], "first"), params(model))
    assert spent(root, commit_parent(root, [table(TEXTS)], "second"), params(model)).hardware == {
        "word": {"cpu": 20, "unknown": 20}
    }
    assert read == Counter(TEXTS)


def test_a_row_that_a_model_fails_on_is_quarantined_alone(tmp_path: Path) -> None:
    model, root = onnx_folder(tmp_path / "model", breaks_on="house"), tmp_path / "root"
    broken = [f"house {word} house" for word in WORDS]
    whole = ["good river " * 5, "stone"]
    written = {**params(model), "minimum": 0.0}
    manifest = score(root, commit_parent(root, [table([*broken[:5], *whole])]), written)
    assert manifest.quarantined == {"error:score_quality:word": 5}
    assert sorted(rows(root, manifest)["text"].to_pylist()) == sorted(whole)
    assert {row["text"] for row in rows(root, manifest, "quarantine").to_pylist()} == set(broken[:5])


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("spark", marks=pytest.mark.nightly), "ray"])
def test_every_engine_and_batch_gives_the_same_scores(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model, tables = onnx_folder(tmp_path / "model"), [table(TEXTS[start::3]) for start in range(3)]
    calm = score(tmp_path / "local", commit_parent(tmp_path / "local", tables), params(model))
    there = (name, request.getfixturevalue(name))
    for batch in (1, 7):
        root = tmp_path / f"{name}-{batch}"
        assert score(root, commit_parent(root, tables), params(model), there, batch_rows=batch) == calm


# --- Folders as params -------------------------------------------------------------------------------------------------


def test_a_folder_is_known_by_the_names_and_contents_of_its_files(any_root: str, tmp_path: Path) -> None:
    model = Path(onnx_folder(tmp_path / "model"))
    for path in model.iterdir():
        storage.put_file(any_root, f"models/word/{path.name}", path)
    (model / ".cache").mkdir()
    (model / ".cache" / "note").write_text("not of the model")
    digest = digest_of_named(str(model))
    assert digest_of_named(f"{any_root}/models/word") == digest
    copy = Path(localize(f"{any_root}/models/word", digest))
    assert (copy / "model.onnx").read_bytes() == (model / "model.onnx").read_bytes()
    (model / "config.json").rename(model / "other.json")
    assert digest_of_named(str(model)) != digest
    with pytest.raises(DigestMismatch, match=str(model)):
        localize(str(model), digest)


def test_another_file_of_a_model_is_another_identity(tmp_path: Path) -> None:
    model, root, prints = Path(onnx_folder(tmp_path / "model")), tmp_path / "root", set()
    parent = commit_parent(root, [table(TEXTS[:3])])
    for labels in ("LABEL_0", "educational"):
        (model / "config.json").write_text(f'{{"id2label": {{"0": "{labels}"}}, "problem_type": "regression"}}')
        prints.add(refined(root, STAGE.name, parent, params(str(model)))[1].fingerprint)
    assert len(prints) == 2


@pytest.mark.parametrize("name", ["hf://owner/name", "hf://owner/name@main", "hf://name@" + "a" * 40])
def test_a_model_of_the_hub_needs_a_commit(name: str, tmp_path: Path) -> None:
    parent = commit_parent(tmp_path, [table(TEXTS[:3])])
    with pytest.raises(RecipeError, match=name):
        score(tmp_path, parent, params(name))


def test_a_classifier_is_written_as_a_mapping() -> None:
    with pytest.raises(RecipeError, match="classifiers: word"):
        bind(STAGE, {"classifiers": {"word": "model.bin"}, "weights": {"word": 1.0}})
    with pytest.raises(RecipeError, match="model"):
        bind(STAGE, {"classifiers": {"word": {}}, "weights": {"word": 1.0}})


@pytest.mark.parametrize(("stage", "faults"), [("score_quality", 0), ("filter_url", 1)])
def test_a_gpu_that_nothing_uses_is_a_fault_of_the_recipe(stage: str, faults: int, tmp_path: Path) -> None:
    model = onnx_folder(tmp_path / "model")
    written = {"name": "gpus", "stages": {"ingest": {}, "extract": {}, "filter_url": {}, "filter_language": {}}}
    written["stages"] |= {"score_quality": params(model)}  # type: ignore[operator]
    recipe = parse_recipe({**written, "run": {"resources": {stage: {"gpus": 0.5}}}}, "gpus.yaml")
    found = [fault for fault in recipe_faults(recipe) if "GPU" in fault.message]
    assert [fault.where for fault in found] == [stage] * faults


# --- Who reads a model -------------------------------------------------------------------------------------------------


def stored_model(root: str, folder: Path) -> tuple[str, int]:
    """Store a model in a root; return its URI and its bytes."""
    model = Path(onnx_folder(folder))
    for path in model.iterdir():
        storage.put_file(root, f"models/word/{path.name}", path)
    return f"{root}/models/word", sum(path.stat().st_size for path in model.iterdir())


def test_a_model_in_a_store_scores_as_one_on_disk(any_root: str, tmp_path: Path, cold: None) -> None:
    uri, _ = stored_model(any_root, tmp_path / "model")
    roots = [tmp_path / "there", tmp_path / "here"]
    models = [uri, str(tmp_path / "model")]
    scored = [
        score(root, commit_parent(root, [table(TEXTS)]), params(model))
        for root, model in zip(roots, models, strict=True)
    ]
    assert scored[0] == scored[1]


def test_deciding_reads_no_model(
    any_root: str, tmp_path: Path, bytes_read: Counter[str], cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning hashes a model, for identity; scoring reads it once, and deciding by another bound not at all."""
    (uri, size), root = stored_model(any_root, tmp_path / "model"), tmp_path / "root"
    parent = commit_parent(root, [table(TEXTS[:20]), table(TEXTS[20:])])
    planned = plan(RefineRequest(str(root), STAGE.name, params(uri), parent))
    assert sum(bytes_read.values()) == size
    prepared: list[str] = []
    monkeypatch.setattr(task, "localize", lambda uri, digest: prepared.append(uri) or localize(uri, digest))
    first = score(root, parent, params(uri))
    assert prepared == [uri]
    assert first.fingerprint == planned.fingerprint
    before = bytes_read.copy()
    second = score(root, parent, {**params(uri), "minimum": 0.6})
    assert second.rejected != first.rejected
    assert (prepared, bytes_read) == ([uri], before)
