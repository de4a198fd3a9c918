"""Topics: directions of vectors with terms that name them; another sample moves a topic, and leaves it its number."""

import base64
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.sealed import seal, unseal
from pipeline_tasks.text.near.vectors import packed, unpacked

Vectors = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

_WAY_OUT = "train topics again with `refinery model topics`"


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its number, which it keeps, the words that name it, and the texts of the sample that are of it."""

    number: int
    terms: tuple[str, ...]
    texts: int

    @property
    def key(self) -> str:
        """Its number as a value of a column."""
        return f"t{self.number:04d}"

    @property
    def name(self) -> str:
        """The first words that name it, for people."""
        return " ".join(self.terms[:4])


@dataclass(frozen=True, slots=True)
class TopicModel:
    """Topics of the vectors of one embedding model; row n of `vectors`, of length 1, is the center of topic n.

    `model` is the name of the embedding model (`embedding_model`); numbers up to `highest` are taken for good.
    """

    model: str
    topics: tuple[Topic, ...]
    vectors: Vectors
    highest: int

    def nearest(self, vectors: Vectors) -> tuple[Numbers, Vectors]:
        """Return the topic of each vector (rows, dimensions), as a row of `topics`, and its cosine.

        Both are exact, whatever the processor (`text.near.vectors`); of equally near topics it is the first.
        """
        products = vectors @ self.vectors.T
        rows = products.argmax(axis=1)
        lengths = np.sqrt((vectors * vectors).sum(axis=1)) * np.sqrt((self.vectors[rows] ** 2).sum(axis=1))
        return rows, products[np.arange(len(vectors)), rows] / lengths


def dump_topics(model: TopicModel) -> bytes:
    """Return a model as a sealed file."""
    bodies = [base64.b64encode(body).decode() for body in packed(model.vectors).to_pylist()]
    topics = [{**asdict(topic), "vector": body} for topic, body in zip(model.topics, bodies, strict=True)]
    return seal({"kind": "topics", "model": model.model, "highest": model.highest, "topics": topics})


def read_topics(path: str) -> TopicModel:
    """Read a model; RecipeError if there is none, ContractError if it was changed."""
    try:
        body = Path(path).read_bytes()
    except OSError as error:
        message = f"cannot read {path} ({error.strerror or error}); {_WAY_OUT}"
        raise RecipeError(message) from error
    raw = unseal(body, path, _WAY_OUT)
    try:
        topics = tuple(Topic(row["number"], tuple(row["terms"]), row["texts"]) for row in raw["topics"])
        vectors = pa.array([base64.b64decode(row["vector"]) for row in raw["topics"]], pa.large_binary())
        model = TopicModel(raw["model"], topics, unpacked(vectors), raw["highest"])
    except (KeyError, TypeError, ValueError) as error:
        message = f"{path} has no topics ({error}); {_WAY_OUT}"
        raise ContractError(message) from error
    if not np.isfinite(model.vectors).all():
        message = f"{path} has a vector that is no number; {_WAY_OUT}"
        raise ContractError(message)
    return model
