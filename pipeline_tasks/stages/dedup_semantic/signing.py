"""Sign documents: the sides of planes on which their vectors are, and the order in which they are kept."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from xxhash import xxh3_64_intdigest

from pipeline_tasks.errors import ContractError
from pipeline_tasks.near_duplicates.signing import in_place
from pipeline_tasks.near_duplicates.tables import SIGNATURES
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.dedup_semantic.params import VECTORS, Params, likeness_of
from pipeline_tasks.stages.embed import EMBEDDING_MODEL
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near.ranking import columns_ranked, nodes
from pipeline_tasks.text.near.vectors import KIND, band_keys, unpacked

pc: Any = pyarrow.compute


def columns_signed(params: Params) -> tuple[str, ...]:
    """Return the columns of documents that `sign_documents` reads."""
    return (VECTORS, EMBEDDING_MODEL, *columns_ranked(params.policy, params.quality))


def sign_documents(documents: Batches, *, params: Params) -> Batches:
    """Yield `SIGNATURES`. A document without a vector has no others that say the same.

    ContractError for vectors of two models, which cannot be compared.
    """
    likeness, model = likeness_of(params), ""
    for batch in in_place(documents, likeness):
        model = _model(batch, model)
        vectors = batch.column(VECTORS).cast(pa.large_binary()).fill_null(b"")
        version = likeness.history_version ^ (_number(model) >> 8)
        yield batch_of(
            SIGNATURES,
            id=batch.column("id"),
            node=nodes(batch, likeness.order),
            keys=_keys(vectors, params, model),
            compared=vectors,
            size=pc.divide(pc.binary_length(vectors).cast(pa.int64()), KIND.itemsize),
            history_version=pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows),
        )


def _model(batch: pa.RecordBatch, model: str) -> str:
    """Return the name of the model whose vectors a batch has; ContractError if it is not that of the one before."""
    names = pc.unique(batch.column(EMBEDDING_MODEL)).drop_null().to_pylist()
    others = sorted({*names, model} - {""})
    if len(others) > 1:
        message = (
            f"dedup_semantic: documents have vectors of {others[0]} and of {others[1]}, which cannot be compared; "
            "refine `embed` again with one model"
        )
        raise ContractError(message)
    return others[0] if others else model


def _keys(vectors: pa.Array, params: Params, model: str) -> pa.ListArray:
    """Return the keys of each document's bands, none for a document without a vector.

    Keys of two models never agree.
    """
    known = np.asarray(pc.greater(pc.binary_length(vectors), 0).to_numpy(zero_copy_only=False), np.bool_)
    dense = unpacked(vectors.filter(pa.array(known)))
    keys = band_keys(dense, params.bands, params.rows, params.seed) if len(dense) else np.empty((0, params.bands))
    ends = np.concatenate([[0], np.cumsum(known * params.bands)]).astype(np.int32)
    mixed: npt.NDArray[np.int64] = keys.astype(np.int64).ravel() ^ np.int64(_number(model))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(mixed))


def _number(model: str) -> int:
    """Return a number of 63 bits for the name of a model."""
    return int(xxh3_64_intdigest(model.encode())) >> 1
