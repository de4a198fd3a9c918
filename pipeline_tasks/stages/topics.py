"""Say what each document is about: the topic whose direction its vector is nearest to, or that none is near."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import ContractError
from pipeline_tasks.facets import UnitCost, VectorModel
from pipeline_tasks.schema import DOCUMENT, EMBEDDING, EMBEDDING_MODEL
from pipeline_tasks.scorers.topics import TopicModel, read_topics
from pipeline_tasks.stage import Batches, Engine, FilePath, Layer, Shards, Stage, replace_column
from pipeline_tasks.text.base.cached import cached
from pipeline_tasks.text.near.vectors import unpacked

pc: Any = pyarrow.compute

UNKNOWN = "unknown"
"""The topic of a document without a vector, or near to no topic."""

TOPIC, TOPIC_NAME, SIMILARITY = "topic", "topic_name", "topic_similarity"


@dataclass(frozen=True, slots=True)
class Params:
    """The topics (a file of `refinery model topics`), and how near one must be.

    `topic` is the number of the nearest topic (`t0012`), which it keeps when topics are trained again with `--base`,
    and `unknown` below a cosine of `minimum`. `topic_name` has words that name it, for people; another training may
    change them. `topic_similarity` is the cosine, null without a vector.
    """

    topics: FilePath
    minimum: Annotated[float, Range(-1, 1)] = 0.25


def assign(docs: Batches, *, params: Params) -> Batches:
    """Append the topic of each document, its name, and its cosine."""
    model = cached(read_topics, params.topics)
    names = pa.array([topic.name for topic in model.topics], pa.string())
    keys = pa.array([topic.key for topic in model.topics], pa.string())
    for batch in docs:
        _check_model(batch, model)
        rows, cosines = _nearest(batch.column(EMBEDDING).cast(pa.large_binary()), model)
        known = pc.fill_null(pc.greater_equal(cosines, params.minimum), fill_value=False)
        at = pc.if_else(known, rows, pa.scalar(None, pa.int64()))
        topics = replace_column(batch, TOPIC, keys.take(at).fill_null(UNKNOWN))
        topics = replace_column(topics, TOPIC_NAME, names.take(at))
        yield replace_column(topics, SIMILARITY, cosines)


def _check_model(batch: pa.RecordBatch, model: TopicModel) -> None:
    names = pc.unique(batch.column(EMBEDDING_MODEL)).drop_null().to_pylist()
    if others := sorted(set(names) - {model.model}):
        message = (
            f"topics: documents have vectors of {others[0]}, and the topics are of {model.model}, which cannot be "
            "compared; train topics with the model of `embed`"
        )
        raise ContractError(message)


def _nearest(vectors: pa.Array, model: TopicModel) -> tuple[pa.Array, pa.Array]:
    """Return the row of the nearest topic and its cosine, rounded to six digits; null without a vector."""
    known = np.asarray(pc.fill_null(pc.binary_length(vectors), 0).to_numpy(zero_copy_only=False)) > 0
    nearest, cosines = np.zeros(len(vectors), np.int64), np.full(len(vectors), np.nan)
    if known.any():
        nearest[known], cosines[known] = model.nearest(unpacked(vectors.filter(pa.array(known))))
    return pa.array(nearest, mask=~known), pa.array(np.round(cosines, 6), pa.float64(), mask=~known)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Give every shard's documents their topics."""
    layer = Layer(reads=(EMBEDDING, EMBEDDING_MODEL), stores=(TOPIC, TOPIC_NAME, SIMILARITY))
    return on.map(partial(assign, params=params), shards, layer=layer)


def resources(params: Params) -> tuple[FilePath, ...]:
    """Return the file of topics."""
    return (params.topics,)


def check_files(params: Params) -> None:
    """Raise RecipeError or ContractError unless the file has topics."""
    read_topics(params.topics)


def vectors(params: Params) -> VectorModel:
    """Return the model whose vectors the topics are of."""
    return VectorModel(read_topics(params.topics).model)


VECTOR = (pa.field(EMBEDDING, pa.large_binary()), pa.field(EMBEDDING_MODEL, pa.string()))

STAGE = Stage(
    name="topics",
    run=run,
    params=Params,
    resources=resources,
    check_files=check_files,
    reads=pa.schema([*DOCUMENT, *VECTOR]),
    writes=pa.schema(
        [
            *DOCUMENT,
            *VECTOR,
            pa.field(TOPIC, pa.string()),
            pa.field(TOPIC_NAME, pa.string()),
            pa.field(SIMILARITY, pa.float64()),
        ]
    ),
    version=1,
    splits=True,
    profiled=(TOPIC, TOPIC_NAME),
    title="topics",
    cost=UnitCost(0.1, 1.00, 0.02, 4),
    vectors=vectors,
    derived_from=("embedding", "embedding_model"),
)
