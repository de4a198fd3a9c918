"""A model is looked at whole when it is loaded: its own fault refuses the run, and is booked to no text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.answers import NothingKnown, answered
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.embedder import EmbeddingModel, check_embedder
from pipeline_tasks.scorers.networks import networks
from pipeline_tasks.scorers.scorer import FASTTEXT, HEAD, STATIC, check, kind_of
from pipeline_tasks.stage import FilePath
from tests.scorers.networks import embedding_folder, onnx_folder, static_folder

Damage = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def short(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return rows[:-5].copy()


def no_numbers(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(np.arange(len(rows)).reshape(-1, *[1] * (rows.ndim - 1)) % 3 == 0, np.nan, rows).astype(rows.dtype)


def damaged_tensors(folder: Path, file: str, name: str, damage: Damage) -> str:
    static_folder(folder)
    tensors = dict(load_file(folder / file))
    save_file({**tensors, name: damage(tensors[name])}, folder / file)
    return str(folder)


def damaged_network(folder: Path, damage: Damage) -> str:
    from onnx import load, numpy_helper, save

    onnx_folder(folder)
    model = load(str(folder / "model.onnx"))
    [table] = [entry for entry in model.graph.initializer if entry.name == "table"]
    table.CopyFrom(numpy_helper.from_array(damage(numpy_helper.to_array(table)), "table"))
    save(model, str(folder / "model.onnx"))
    return str(folder)


def classifier(folder: str) -> Classifier:
    is_static = (Path(folder) / "head.safetensors").exists()
    bounds: dict[str, Any] = {"label": "good"} if is_static else {"lowest": -10, "highest": 10}
    return Classifier(FilePath(folder), length=32, windows=4, **bounds)


@pytest.mark.parametrize("damage", [short, no_numbers])
@pytest.mark.parametrize(
    ("file", "name"),
    [("model.safetensors", "embeddings"), ("head.safetensors", "weight"), ("head.safetensors", "bias")],
)
def test_static_embeddings_are_whole(file: str, name: str, damage: Damage, tmp_path: Path) -> None:
    """Of a matrix that was five rows short 45 of 60 texts were quarantined; with NaN no document had a vector."""
    folder = damaged_tensors(tmp_path / "model", file, name, damage)
    with pytest.raises(RecipeError, match="is damaged"):
        check(classifier(folder))
    if name == "embeddings":
        with pytest.raises(RecipeError, match="is damaged"):
            check_embedder(EmbeddingModel(FilePath(folder)))


@pytest.mark.parametrize("damage", [short, no_numbers])
def test_a_network_has_numbers_for_all_of_its_tokens(damage: Damage, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is damaged"):
        check(classifier(damaged_network(tmp_path / "model", damage)))


def test_an_encoder_has_a_vector_for_all_of_its_tokens(tmp_path: Path) -> None:
    check_embedder(EmbeddingModel(FilePath(embedding_folder(tmp_path / "whole", breaks_on="house"))))
    with pytest.raises(RecipeError, match="is damaged"):
        check_embedder(EmbeddingModel(FilePath(embedding_folder(tmp_path / "short", lacks="house"))))


def test_every_kind_of_model_is_in_these_tests() -> None:
    """fastText's are in `test_damaged_models`, those of transformers in `test_torch_scorers`."""
    assert {network.name for network in networks()} == {"ONNX", "Hugging Face"}


def test_a_folder_is_of_the_kind_that_its_file_says(tmp_path: Path) -> None:
    """Static embeddings and what was exported have a `config.json`, too: the kind that it stands for is asked last."""
    assert kind_of(str(tmp_path)) == "unknown"
    for network in networks():
        (folder := tmp_path / network.name).mkdir()
        (folder / network.file).touch()
        assert kind_of(str(folder)) == network.name
    for network in reversed(networks()):
        (tmp_path / network.file).touch()
        assert kind_of(str(tmp_path)) == network.name
    (tmp_path / HEAD).touch()
    assert kind_of(str(tmp_path)) == STATIC
    assert kind_of(str(tmp_path / HEAD)) == FASTTEXT


@pytest.mark.parametrize("answers", [0, 1, 3])
def test_a_model_that_answers_for_other_texts_is_refused(answers: int) -> None:
    texts = pa.array(["one", "two"])
    with pytest.raises(RecipeError, match=f"{answers} answers for 2 texts"):
        answered(
            texts, NothingKnown().rows(texts), None, pa.struct([("a", pa.int64())]), lambda _: [{"a": 1}] * answers
        )


def test_a_refusal_is_no_fault_of_a_text() -> None:
    texts = pa.array(["one"])

    def refuse(_: pa.Array) -> list[Any]:
        message = "the model is gone"
        raise RecipeError(message)

    with pytest.raises(RecipeError, match="the model is gone"):
        answered(texts, NothingKnown().rows(texts), None, pa.struct([("a", pa.int64())]), refuse)
