"""What a scorer is, and which kind of model a file or folder is."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier

STEPS = 1024
"""Steps of a network's score: what floats lose by another order of sums, or another GPU, is far less than one.

fastText's scores, which compiled loops sum in one order, are rounded to six digits: DCLM's bound is .018112.
"""

FASTTEXT, STATIC, ONNX, HUGGING_FACE = "fastText", "static embeddings", "ONNX", "Hugging Face"
"""Kinds of models, as reports name them."""

OF_FOLDER = (("head.safetensors", STATIC), ("model.onnx", ONNX), ("config.json", HUGGING_FACE))
"""The file by which a folder is of a kind; the first that is there decides."""

APART: Mapping[str, int] = {"fp32": 1, "tf32": 4, "bf16": 64}
"""Steps by which a network's score may differ where other hardware computes it again, by the numerics of a GPU.

Of fp32 a CPU and a GPU differ by 7e-6 of a range of 1.9, which moves a score on the border of two steps; tf32 differs
from a CPU's fp32 by .005 of it, bf16 by .1 (one H200, a BERT of 12 layers, decision 50).
"""

Column = npt.NDArray[np.float64]


class Scores(NamedTuple):
    """The scores of texts from 0 to 1, NaN for a text without a token, and the share of each text that was read."""

    values: Column
    seen: Column


class Scorer(Protocol):
    """A loaded model. One thread uses it at a time; whoever is done with it returns it (`run.tasks.states`)."""

    hardware: str
    """What computes: `cpu`, or the name of a GPU."""

    def scores(self, texts: pa.Array) -> Scores:
        """Return the score of each text, which follows from that text alone; a null is a text without a token."""


def load(classifier: Classifier) -> Scorer:
    """Load a model; RecipeError if the file or folder is none, or has no such label."""
    kind = kind_of(classifier.model)
    if kind == FASTTEXT:
        from pipeline_tasks.scorers.fasttext import FastTextScorer

        return FastTextScorer(classifier)
    if kind == STATIC:
        from pipeline_tasks.scorers.static import StaticScorer

        return StaticScorer(classifier)
    if kind == ONNX:
        from pipeline_tasks.scorers.onnx import onnx_scorer

        return onnx_scorer(classifier)
    if kind == HUGGING_FACE:
        from pipeline_tasks.scorers.huggingface import huggingface_scorer

        return huggingface_scorer(classifier)
    message = (
        f"{classifier.model} is no model's folder: it has neither config.json (Hugging Face), model.onnx nor "
        "head.safetensors (static embeddings); name the folder that has"
    )
    raise RecipeError(message)


def check(classifier: Classifier) -> None:
    """Raise RecipeError for a model that cannot be used, as far as this machine can tell without torch."""
    if kind_of(classifier.model) != HUGGING_FACE:
        load(classifier)
        return
    from pipeline_tasks.scorers.encoder import Head, Tokens

    Head.of(classifier)
    Tokens.of(Path(classifier.model) / "tokenizer.json")


def in_steps(values: Column) -> Column:
    """Return scores in steps of 1/1,024, NaN as it is."""
    return np.asarray(np.round(np.clip(values, 0.0, 1.0) * STEPS) / STEPS, np.float64)


def tolerance(kind: str, numerics: str) -> float:
    """Return the largest difference of two scores of one text by one model: 0 where sums have one order everywhere."""
    return 0.0 if kind in (FASTTEXT, STATIC) else APART[numerics] / STEPS


def kind_of(path: str) -> str:
    """Return the kind of model at a path, in words."""
    folder = Path(path)
    if not folder.is_dir():
        return FASTTEXT
    names = {entry.name for entry in folder.iterdir()}
    return next((kind for name, kind in OF_FOLDER if name in names), "unknown")
