"""Makes one vector of each text: by static embeddings, or by encoders, which extensions load."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.scorers.classifier import Numerics
from pipeline_tasks.scorers.encoder import Model, Tokens, Window, read_windows, require_whole
from pipeline_tasks.scorers.model_card import languages_of
from pipeline_tasks.scorers.networks import known_files, network_of
from pipeline_tasks.scorers.report import digest_of_model
from pipeline_tasks.scorers.scorer import Column
from pipeline_tasks.stage import FilePath

DIGITS = 16
"""Hex digits of a model's digest in the name of its vectors."""


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model that makes vectors of texts, and how it reads them.

    `model` is a folder: static embeddings of model2vec (`model.safetensors` with a tensor `embeddings`,
    `tokenizer.json`), an encoder exported to ONNX (`model.onnx`, `tokenizer.json`), or one of transformers
    (`config.json`, `model.safetensors`, `tokenizer.json`; needs torch). `hf://owner/name@commit` names one of the hub.
    Static embeddings read a text whole. Of all others `length` is the tokens of a window, and `windows` the most of a
    text, spread evenly from its first to its last (0: all). `pool` makes a vector of a window's tokens: their `mean`,
    or `cls`, the first; left out, what the folder says (`1_Pooling/config.json`), else `mean`. The vector of a text is
    the mean of those of its windows by their tokens, each of length 1. `numerics` is what a GPU computes with.
    """

    model: FilePath
    length: Annotated[int, Range(16, 8192)] = 256
    windows: Annotated[int, Range(0, 1 << 20)] = 8
    pool: Literal["", "mean", "cls"] = ""
    numerics: Numerics = "fp32"


class Embedded(NamedTuple):
    """Vectors of texts (texts, dimensions), of length 1 and NaN for a text without a token; the share that was read."""

    vectors: npt.NDArray[np.float32]
    seen: Column


class Embedder(Protocol):
    """A loaded model. One thread uses it at a time."""

    hardware: str
    name: str
    """Digest of the model, and what else its vectors follow from: vectors of one name can be compared."""
    languages: tuple[str, ...]
    """The languages that the model's card names; empty where they are unknown."""

    def embed(self, texts: list[str]) -> Embedded:
        """Return the vector of each text, which follows from that text alone."""


def load_embedder(model: EmbeddingModel) -> Embedder:
    """Load a model; RecipeError if the folder has none."""
    folder, files = Path(model.model), _files(model)
    if "tokenizer.json" not in files:
        message = f"{folder} has no tokenizer.json: it is no folder of a model that embeds texts; name one that is"
        raise RecipeError(message)
    if _is_static(folder, files):
        return StaticEmbedder(model)
    if network := network_of(files):
        return network.embedder(model)
    known = known_files("model.safetensors (static embeddings)")
    message = f"{folder} is no folder of a model that embeds texts: it has none of {known}; name one that has"
    raise RecipeError(message)


def check_embedder(model: EmbeddingModel) -> None:
    """Raise RecipeError for a model that cannot be used, as far as every machine can tell."""
    folder, files = Path(model.model), _files(model)
    network = network_of(files)
    if network and network.is_heavy and not _is_static(folder, files):
        Tokens.of(folder / "tokenizer.json")
        return
    load_embedder(model)


def _files(model: EmbeddingModel) -> set[str]:
    """Return the names in a model's folder, none where it is no folder."""
    folder = Path(model.model)
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()


def name_of(model: EmbeddingModel, *, is_static: bool) -> str:
    """Return the name of a model's vectors."""
    digest = digest_of_model(model.model)[:DIGITS]
    return digest if is_static else f"{digest}-{model.length}x{model.windows}-{pool_of(model)}-{model.numerics}"


def name_of_vectors(model: EmbeddingModel) -> str:
    """Return the name that vectors of a model have, which is not loaded for it."""
    return name_of(model, is_static=_is_static(Path(model.model), _files(model)))


def pool_of(model: EmbeddingModel) -> str:
    """Return how the tokens of a window become one vector; RecipeError if the folder names a way that is unknown."""
    path = Path(model.model) / "1_Pooling" / "config.json"
    if model.pool or not path.exists():
        return model.pool or "mean"
    try:
        said = [name for name, value in json.loads(path.read_bytes()).items() if value is True]
    except ValueError as error:
        message = f"{path} cannot be read ({error}); restore the model's folder"
        raise RecipeError(message) from error
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    ways = [name for name in said if name.startswith("pooling_mode")]
    if len(ways) != 1 or ways[0] not in known:
        message = f"{path} asks for {', '.join(ways) or 'nothing'}; known are mean and cls: name one by `pool`"
        raise RecipeError(message)
    return known[ways[0]]


def _is_static(folder: Path, files: Collection[str]) -> bool:
    """Return whether a folder has static embeddings: its tensors say so, which are not loaded for it.

    One with a network of its own file has that. RecipeError for a `model.safetensors` that is none.
    """
    from safetensors import SafetensorError, safe_open

    network = network_of(files)
    if network and not network.is_last:
        return False
    try:
        with safe_open(folder / "model.safetensors", "numpy") as tensors:
            names = set(tensors.keys())
    except OSError:
        return False
    except SafetensorError as error:
        message = f"{folder / 'model.safetensors'} cannot be read as tensors ({error}); restore the model's folder"
        raise RecipeError(message) from error
    return bool(names & {"embeddings", "embedding.weight"})


class StaticEmbedder:
    """Static embeddings: the mean over all tokens."""

    hardware = "cpu"

    def __init__(self, model: EmbeddingModel) -> None:
        from pipeline_tasks.scorers.static import StaticEmbeddings

        folder = Path(model.model)
        self._embeddings, self.name = StaticEmbeddings(folder), name_of(model, is_static=True)
        self.languages = languages_of(folder)

    def embed(self, texts: list[str]) -> Embedded:
        """Return the vector of each text."""
        vectors = self._embeddings.embed(texts)
        return Embedded(vectors, np.where(np.isnan(vectors).any(axis=1), np.nan, 1.0))


class WindowEmbedder:
    """An encoder that reads windows of tokens."""

    def __init__(self, model: EmbeddingModel, network: Model, probed: int | None = None) -> None:
        self._model, self._network = model, network
        folder = Path(model.model)
        self._tokens, self.languages = Tokens.of(folder / "tokenizer.json"), languages_of(folder)
        require_whole(network, self._tokens, model.length, folder, probed)
        self.hardware, self.name = network.hardware, name_of(model, is_static=False)

    def embed(self, texts: list[str]) -> Embedded:
        """Return the vector of each text: the mean of those of its windows by their tokens."""
        windows, outputs, seen = read_windows(self._tokens, self._network, self._model, texts)
        return Embedded(_by_text(windows, outputs, len(texts)), np.array(seen, np.float64))


def _by_text(windows: list[Window], outputs: npt.NDArray[np.float64], texts: int) -> npt.NDArray[np.float32]:
    """Return one vector per text, of length 1, from those of its windows, each taken at length 1."""
    if not windows:
        return np.full((texts, 1), np.nan, np.float32)
    units = outputs / np.maximum(np.sqrt((outputs * outputs).sum(axis=1, keepdims=True)), 1e-12)
    whole = np.zeros((texts, outputs.shape[1]))
    tokens = np.array([window.tokens for window in windows])
    np.add.at(whole, [window.text for window in windows], units * tokens[:, None])
    lengths = np.sqrt((whole * whole).sum(axis=1, keepdims=True))
    return np.asarray(np.divide(whole, lengths, out=np.full_like(whole, np.nan), where=lengths > 0), np.float32)
