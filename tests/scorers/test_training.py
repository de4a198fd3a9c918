"""A linear head over static embeddings has the least loss, is the same for the same texts, and is read as it was trained."""

from pathlib import Path

import numpy as np
import pytest
from refinery_models.training import PENALTY, fit_logistic, train_head

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.report import digest_of_model
from pipeline_tasks.scorers.scorer import kind_of, load
from pipeline_tasks.stage import FilePath
from tests.static_embeddings import write_embeddings
from tests.text.words.test_fasttext_training import column

RIVER, CITY = ("water", "river", "bank", "fish"), ("street", "house", "tram", "noise")


def texts() -> list[str]:
    pairs = [(RIVER, CITY)[at % 2] for at in range(60)]
    return [" ".join(words[(at + step) % 4] for step in range(3)) for at, words in enumerate(pairs)]


def test_a_regression_has_the_least_loss() -> None:
    draws = np.random.default_rng(1)
    vectors = draws.standard_normal((400, 5)).astype(np.float32)
    targets = (vectors @ np.array([2.0, -1, 0, 0.5, 0]) + 0.3 + draws.standard_normal(400)) > 0
    weights, bias = fit_logistic(vectors, targets)
    odds = 1 / (1 + np.exp(-(vectors @ weights + bias)))
    assert np.abs(vectors.T @ (odds - targets) / 400 + PENALTY * weights).max() < 1e-4
    assert abs((odds - targets).mean()) < 1e-4
    assert weights[0] > 1
    assert weights[1] < 0


def test_texts_that_a_plane_parts_have_a_finite_head() -> None:
    """Without its penalty the weights of a regression that errs nowhere grow for ever."""
    vectors = np.array([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]] * 10, np.float32)
    weights, bias = fit_logistic(vectors, np.array([True, True, False, False] * 10))
    assert np.isfinite([*weights, bias]).all()
    assert weights[0] > 0 > weights[1]


def test_a_trained_head_is_a_scorer(tmp_path: Path) -> None:
    embeddings = Path(write_embeddings(tmp_path / "embeddings", [*RIVER, *CITY]))
    targets = np.array([at % 2 == 0 for at in range(60)])
    for name in ("a", "b"):
        train_head(embeddings, texts(), targets, tmp_path / name)
    assert digest_of_model(str(tmp_path / "a")) == digest_of_model(str(tmp_path / "b"))
    assert kind_of(str(tmp_path / "a")) == "static embeddings"
    values = load(Classifier(FilePath(str(tmp_path / "a")), label="high")).scores(column([*texts(), "unknown"])).values
    assert ((values[:60] > 0.5) == targets).all()
    assert np.isnan(values[60])


def test_a_folder_without_embeddings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"model\.safetensors"):
        train_head(tmp_path, texts(), np.array([True, False] * 30), tmp_path / "a")
