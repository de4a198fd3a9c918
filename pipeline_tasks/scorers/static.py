"""Scores texts by static embeddings (model2vec) and a linear head: the mean over all tokens, without torch."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.scorers.encoder import Head, Tokens
from pipeline_tasks.scorers.scorer import Scores, in_steps

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TEXTS = 256
"""Texts that are tokenized together."""

Vectors = npt.NDArray[np.float32]


class StaticEmbeddings:
    """A folder of model2vec: a vector per token, weights of tokens if it has any, and a tokenizer."""

    def __init__(self, folder: Path) -> None:
        tensors = read_tensors(folder / "model.safetensors")
        vectors = tensors.get("embeddings", tensors.get("embedding.weight"))
        if vectors is None:
            message = f"{folder / 'model.safetensors'} has no tensor `embeddings`; it is no model of static embeddings"
            raise RecipeError(message)
        self._tokens, vocabulary = Tokens.of(folder / "tokenizer.json"), vectors.shape[0]
        mapping = tensors.get("mapping", np.arange(vocabulary)).astype(np.int64)
        weights = tensors.get("weights")
        self._rows, self._vectors = mapping, vectors.astype(np.float32)
        self._weights = None if weights is None else weights.astype(np.float32)
        self._require_whole(folder)
        self._unknown = self._tokens.tokenizer.token_to_id(_unknown_token(self._tokens.tokenizer))

    def _require_whole(self, folder: Path) -> None:
        """Raise RecipeError unless every token of the tokenizer has a vector and a weight, all of them numbers."""
        highest = max(self._tokens.tokenizer.get_vocab().values(), default=0)
        listed: list[npt.NDArray[Any]] = [self._rows, *([] if self._weights is None else [self._weights])]
        if self._vectors.ndim != 2 or any(part.ndim != 1 or len(part) <= highest for part in listed):  # noqa: PLR2004 -- a matrix
            why = f"it has vectors or weights of fewer tokens than its tokenizer, whose highest id is {highest}"
        elif len(self._rows) and not 0 <= self._rows.min() <= self._rows.max() < len(self._vectors):
            why = "its `mapping` names a vector that it does not have"
        elif not all(bool(np.isfinite(part).all()) for part in (self._vectors, *listed)):
            why = "some of its vectors or weights are no numbers"
        else:
            return
        message = f"{folder / 'model.safetensors'} is damaged ({why}); restore the model's folder"
        raise RecipeError(message)

    @property
    def dimensions(self) -> int:
        """Numbers of a vector."""
        return int(self._vectors.shape[1])

    def embed(self, texts: list[str]) -> Vectors:
        """Return the mean vector of the tokens of each text, of length 1; NaN for a text without a token."""
        embedded = np.full((len(texts), self.dimensions), np.nan, np.float32)
        for start in range(0, len(texts), TEXTS):
            encoded = self._tokens.tokenizer.encode_batch_fast(texts[start : start + TEXTS], add_special_tokens=False)
            for row, encoding in enumerate(encoded, start):
                ids = np.array(encoding.ids, np.int64)
                ids = ids[ids != self._unknown] if self._unknown is not None else ids
                if len(ids):
                    embedded[row] = self._mean(ids)
        return embedded

    def _mean(self, ids: npt.NDArray[np.int64]) -> Vectors:
        """Return the mean vector of tokens: each distinct one is read once, and counts as often as it stands there."""
        distinct, counts = np.unique(ids, return_counts=True)
        vectors = self._vectors[self._rows[distinct]].astype(np.float64)
        weights = counts if self._weights is None else counts * self._weights[distinct]
        mean = (weights[:, None] * vectors).sum(axis=0) / len(ids)
        length = float(np.sqrt((mean * mean).sum()))
        return np.asarray(mean / (length or 1.0), np.float32)


def _unknown_token(tokenizer: "Tokenizer") -> str:
    model = json.loads(tokenizer.to_str()).get("model", {})
    unknown = model.get("unk_token")
    return unknown if isinstance(unknown, str) else ""


def read_tensors(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a `.safetensors` file by name; RecipeError if it is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except (OSError, SafetensorError) as error:
        message = f"{path} cannot be read as tensors ({error}); restore the model's folder"
        raise RecipeError(message) from error


class StaticScorer:
    """Static embeddings with a linear head (`weight`: labels by dimensions, `bias`), which read a text whole."""

    hardware = "cpu"

    def __init__(self, classifier: Classifier) -> None:
        folder = Path(classifier.model)
        self._embeddings, self._head = StaticEmbeddings(folder), Head.of(classifier)
        head = read_tensors(folder / "head.safetensors")
        if "weight" not in head or "bias" not in head or head["weight"].shape[-1] != self._embeddings.dimensions:
            message = (
                f"{folder / 'head.safetensors'} has no `weight` and `bias` of {self._embeddings.dimensions} numbers"
            )
            raise RecipeError(message)
        self._weight, self._bias = head["weight"].astype(np.float64), head["bias"].astype(np.float64)
        labels = self._weight.shape[:-1]
        is_whole = len(labels) == 1 and self._bias.shape == labels and self._head.at < labels[0]
        if not (is_whole and np.isfinite(self._weight).all() and np.isfinite(self._bias).all()):
            message = (
                f"{folder / 'head.safetensors'} is damaged: its `weight` and `bias` are of other labels than those of "
                "config.json, or are no numbers; restore the model's folder"
            )
            raise RecipeError(message)

    def scores(self, texts: pa.Array) -> Scores:
        """Return the score of each text by the mean of its tokens' vectors."""
        vectors = self._embeddings.embed([text or "" for text in texts.to_pylist()]).astype(np.float64)
        outputs = np.stack([(vectors * weight).sum(axis=1) for weight in self._weight], axis=1) + self._bias
        values = self._head.values(outputs)
        return Scores(in_steps(values), np.where(np.isnan(values), np.nan, 1.0))
