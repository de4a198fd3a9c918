"""Trains models that score: a linear head over static embeddings, and fastText; both the same for the same texts."""

import json
import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.static import StaticEmbeddings

HIGH, LOW = "high", "low"
"""Labels of the trained models; in fastText with `__label__` before them."""

EMBEDDINGS = ("model.safetensors", "tokenizer.json")
"""Files of static embeddings that a trained model takes over as they are."""

PENALTY = 1e-4
"""Half the square of the weights that is added to the mean loss, so that the loss has one minimum."""

MOST_STEPS = 50
ENOUGH = 1e-9
"""Steps of Newton's method, and the largest change of a weight that is the last one."""

ROUNDED = 1 << 16
"""Parts of the largest weight to which weights are rounded: what sums lose by another order of threads is far less."""

Column = npt.NDArray[np.float64]


def fit_logistic(vectors: npt.NDArray[np.float32], targets: npt.NDArray[np.bool_]) -> tuple[Column, float]:
    """Return weights and bias of a logistic regression on all rows at once, by Newton's method with halved steps.

    Shapes (rows, dimensions) and (rows,). Weights are rounded, so that they do not depend on the machine's sums.
    """
    rows = np.concatenate([vectors.astype(np.float64), np.ones((len(vectors), 1))], axis=1)
    penalty = np.full(rows.shape[1], PENALTY)
    penalty[-1] = 0.0
    weights, loss = np.zeros(rows.shape[1]), _loss(rows, targets, np.zeros(rows.shape[1]), penalty)
    for _ in range(MOST_STEPS):
        odds = 1 / (1 + np.exp(-(rows @ weights)))
        gradient = rows.T @ (odds - targets) / len(rows) + penalty * weights
        curvature = (rows * (odds * (1 - odds))[:, None]).T @ rows / len(rows) + np.diag(penalty + 1e-12)
        step = np.linalg.solve(curvature, gradient)
        while (lower := _loss(rows, targets, weights - step, penalty)) > loss and np.abs(step).max() > ENOUGH:
            step = step / 2
        weights, loss = weights - step, lower
        if np.abs(step).max() <= ENOUGH:
            break
    scale = 2.0 ** np.ceil(np.log2(max(float(np.abs(weights).max()), 1e-6))) / ROUNDED
    rounded: Column = np.round(weights / scale) * scale
    return rounded[:-1], float(rounded[-1])


def _loss(rows: Column, targets: npt.NDArray[np.bool_], weights: Column, penalty: Column) -> float:
    outputs = rows @ weights
    losses = np.logaddexp(0.0, np.where(targets, -outputs, outputs))
    return float(losses.mean() + (penalty * weights * weights).sum() / 2)


def train_head(embeddings: Path, texts: list[str], targets: npt.NDArray[np.bool_], folder: Path) -> None:
    """Write the folder of static embeddings with a linear head that tells texts by their targets.

    RecipeError if `embeddings` is no folder of them, or `folder` cannot be written.
    """
    vectors = StaticEmbeddings(embeddings).embed(texts)
    known = ~np.isnan(vectors[:, 0])
    weights, bias = fit_logistic(vectors[known], targets[known])
    write_head(embeddings, weights, bias, folder)


def write_head(embeddings: Path, weights: Column, bias: float, folder: Path) -> None:
    """Write a folder that `static.StaticScorer` reads: probabilities of the labels `low` and `high`."""
    from safetensors.numpy import save_file

    half = (np.stack([-weights, weights]) / 2).astype(np.float32)
    config = {"id2label": {"0": LOW, "1": HIGH}, "problem_type": "single_label_classification"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in EMBEDDINGS:
            shutil.copyfile(embeddings / name, folder / name)
        head = {"weight": half, "bias": (np.array([-bias, bias]) / 2).astype(np.float32)}
        save_file(head, folder / "head.safetensors")
        (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        message = f"cannot write {folder}: {error}; name another folder"
        raise RecipeError(message) from error
