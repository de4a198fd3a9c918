"""What a scorer is, and which kind of model a file or folder is."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.networks import known_files, network_of

STEPS = 1024
"""Steps of a network's score: what floats lose by another order of sums, or another GPU, is far less than one.

fastText's scores, which compiled loops sum in one order, are rounded to six digits: DCLM's bound is .018112.
"""

FASTTEXT, STATIC = "fastText", "static embeddings"
"""Kinds of models that are no networks, as reports name them."""

HEAD = "head.safetensors"
"""The file by which a folder is one of static embeddings that score."""

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
    if network := network_of(_files(classifier.model)):
        return network.scorer(classifier)
    known = known_files(f"{HEAD} ({STATIC})")
    message = f"{classifier.model} is no model's folder: it has none of {known}; name the folder that has"
    raise RecipeError(message)


def check(classifier: Classifier) -> None:
    """Raise RecipeError for a model that cannot be used, as far as every machine can tell."""
    files = _files(classifier.model)
    network = network_of(files)
    if network is None or not network.is_heavy or HEAD in files:
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
    if not Path(path).is_dir():
        return FASTTEXT
    files = _files(path)
    if HEAD in files:
        return STATIC
    network = network_of(files)
    return network.name if network else "unknown"


def _files(path: str) -> set[str]:
    """Return the names in a model's folder, none of a file."""
    return {entry.name for entry in Path(path).iterdir()} if Path(path).is_dir() else set()
