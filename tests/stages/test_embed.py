"""Texts get vectors by models of several kinds, on every engine alike, once for all runs; none is changed or lost."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pipeline_tasks.engines.choose import engine
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.run.request import RefineRequest
from pipeline_tasks.run.runner import refine
from pipeline_tasks.scorers import embedder
from pipeline_tasks.scorers.embedder import EmbeddingModel, load_embedder
from pipeline_tasks.stages.embed import STAGE, Params, check_embedder
from pipeline_tasks.text.near.vectors import unpacked
from tests.documents import documents
from tests.refining import commit_parent, rows
from tests.scorers.networks import WORDS, embedding_folder, static_folder

TEXTS = [" ".join(WORDS[(row * 3 + at * at) % 10] for at in range(20 + row)) for row in range(40)]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each text was given to a network in this process."""
    seen, embed = Counter[str](), embedder.WindowEmbedder.embed

    def noted(self: Any, texts: list[str]) -> Any:
        seen.update(texts)
        return embed(self, texts)

    monkeypatch.setattr(embedder.WindowEmbedder, "embed", noted)
    return seen


def embedded(root: Path, parent: str, params: dict[str, Any], on: tuple[str, str] = ("local", ""), **how: Any) -> Any:
    return refine(RefineRequest(str(root), STAGE.name, params, parent, **how), engine(*on)).manifest


def test_vectors_are_those_of_the_model_and_no_text_changes(tmp_path: Path) -> None:
    model, root = static_folder(tmp_path / "model"), tmp_path / "root"
    manifest = embedded(root, commit_parent(root, [documents([*TEXTS, "", "unheard of"])]), {"model": model})
    kept = rows(root, manifest)
    assert sorted(kept["text"].to_pylist()) == sorted([*TEXTS, "", "unheard of"])
    without = [
        text for text, body in zip(kept["text"].to_pylist(), kept["embedding"].to_pylist(), strict=True) if not body
    ]
    assert sorted(without) == ["", "unheard of"]
    of = dict(zip(kept["text"].to_pylist(), kept["embedding"].to_pylist(), strict=True))
    own = load_embedder(EmbeddingModel(model)).embed(TEXTS).vectors  # type: ignore[arg-type]
    ours = unpacked(pa.array([of[text] for text in TEXTS], pa.large_binary()))
    assert np.abs(ours - own).max() < 2**-11
    assert len(set(kept["embedding_model"].to_pylist())) == 1
    assert str(tmp_path) not in str(manifest.params)


def test_windows_of_a_long_text_are_pooled_by_their_tokens(tmp_path: Path) -> None:
    model = EmbeddingModel(embedding_folder(tmp_path / "model"), length=18, windows=0)  # type: ignore[arg-type]
    parts = ["good " * 16, "bad " * 16, "good " * 8]
    vectors = load_embedder(model).embed([*parts, "".join(parts)]).vectors.astype(np.float64)
    whole = 16 * vectors[0] + 16 * vectors[1] + 8 * vectors[2]
    assert vectors[3] == pytest.approx(whole / np.linalg.norm(whole), abs=1e-6)
    few = load_embedder(EmbeddingModel(model.model, length=18, windows=2)).embed(["".join(parts)])
    assert few.seen.tolist() == pytest.approx([24 / 40], abs=0.02)


def test_the_tokens_of_a_window_are_pooled_as_the_folder_says(tmp_path: Path) -> None:
    folder = embedding_folder(tmp_path / "model")
    mean = load_embedder(EmbeddingModel(folder)).embed(["good bad"]).vectors  # type: ignore[arg-type]
    first = load_embedder(EmbeddingModel(folder, pool="cls")).embed(["good bad"]).vectors  # type: ignore[arg-type]
    assert not np.allclose(mean, first)
    (Path(folder) / "1_Pooling").mkdir()
    said = Path(folder) / "1_Pooling" / "config.json"
    said.write_text(
        '{"word_embedding_dimension": 8, "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    assert np.array_equal(load_embedder(EmbeddingModel(folder)).embed(["good bad"]).vectors, first)  # type: ignore[arg-type]
    said.write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(RecipeError, match="pooling_mode_max_tokens"):
        load_embedder(EmbeddingModel(folder))  # type: ignore[arg-type]


def test_nothing_is_embedded_twice(read: Counter[str], tmp_path: Path) -> None:
    params, root = {"model": embedding_folder(tmp_path / "model")}, tmp_path / "root"
    embedded(root, commit_parent(root, [documents(TEXTS[:20])], "first"), params)
    assert read == Counter(TEXTS[:20])
    second = embedded(root, commit_parent(root, [documents(TEXTS[10:30])], "second"), params)
    assert read == Counter(TEXTS[:30])
    alone = tmp_path / "alone"
    assert embedded(alone, commit_parent(alone, [documents(TEXTS[10:30])], "second"), params) == second
    embedded(root, commit_parent(root, [documents(TEXTS[:5])], "third"), {**params, "length": 32})
    assert read == Counter([*TEXTS[:30], *TEXTS[10:30], *TEXTS[:5]])


def test_the_languages_of_the_models_card_go_with_the_vectors(tmp_path: Path) -> None:
    """Those of a model whose card changed, too: its answers are not those of another card in the cache."""
    root, folder = tmp_path / "root", Path(static_folder(tmp_path / "model"))
    parent = commit_parent(root, [documents(TEXTS[:3])])
    found = []
    for card in ("", "---\nlanguage: [de, en]\n---\n"):
        (folder / "README.md").write_text(card)
        kept = rows(root, embedded(root, parent, {"model": str(folder)}))
        found.append(set(kept["embedding_languages"].to_pylist()))
    assert found == [{None}, {"de,en"}]


def test_a_text_that_a_model_fails_on_is_quarantined_alone_and_asked_again(tmp_path: Path) -> None:
    model, root = embedding_folder(tmp_path / "model", breaks_on="house"), tmp_path / "root"
    broken = [f"house {word} house" for word in WORDS]
    whole = ["good river " * 5, "stone"]
    for name in ("first", "second"):
        parent = commit_parent(root, [documents([*broken[:5], *whole])], name)
        manifest = embedded(root, parent, {"model": model})
        assert manifest.quarantined == {"error:embed": 5}
        assert sorted(rows(root, manifest)["text"].to_pylist()) == sorted(whole)


def test_a_folder_that_embeds_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecipeError, match="tokenizer"):
        check_embedder(Params(str(tmp_path / "empty")))  # type: ignore[arg-type]


def test_tensors_that_cannot_be_read_are_named_and_not_taken_for_a_network(tmp_path: Path) -> None:
    folder = Path(static_folder(tmp_path / "model"))
    (folder / "model.safetensors").write_bytes(b"no tensors at all")
    for check in (check_embedder, load_embedder):
        with pytest.raises(RecipeError, match=r"model\.safetensors cannot be read"):
            check(Params(str(folder)))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_every_engine_and_batch_gives_the_same_vectors(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    params = {"model": embedding_folder(tmp_path / "model")}
    tables = [documents(TEXTS[start::3]) for start in range(3)]
    calm = embedded(tmp_path / "local", commit_parent(tmp_path / "local", tables), params)
    there = (name, request.getfixturevalue(name))
    for batch in (1, 7):
        root = tmp_path / f"{name}-{batch}"
        assert embedded(root, commit_parent(root, tables), params, there, batch_rows=batch) == calm
