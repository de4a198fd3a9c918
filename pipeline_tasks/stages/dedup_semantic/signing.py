"""Sign documents: the sides of planes on which their vectors are, and the order in which they are kept."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.near_duplicates.signing import in_place
from pipeline_tasks.near_duplicates.tables import SIGNATURES
from pipeline_tasks.schema import EMBEDDING_LANGUAGES, EMBEDDING_MODEL
from pipeline_tasks.scorers.model_card import listed
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.dedup_semantic.params import (
    LANGUAGE,
    VECTORS,
    Params,
    history_version_of,
    is_listed,
    likeness_of,
    number_of,
)
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near.ranking import columns_ranked, nodes
from pipeline_tasks.text.near.vectors import KIND, band_keys, unpacked

pc: Any = pyarrow.compute


def columns_signed(params: Params) -> tuple[str, ...]:
    """Return the columns of documents that `sign_documents` reads."""
    return (
        VECTORS,
        EMBEDDING_MODEL,
        EMBEDDING_LANGUAGES,
        LANGUAGE,
        *columns_ranked(params.policy, params.quality, params.prefer),
    )


def sign_documents(documents: Batches, *, params: Params) -> Batches:
    """Yield `SIGNATURES`. A document without a vector, or in a language that is not compared, has no like.

    ContractError for vectors of two models, which cannot be compared.
    """
    likeness, model = likeness_of(params), ""
    for batch in in_place(documents, likeness):
        model = _model(batch, model)
        compared = languages_compared(batch, params)
        vectors = pc.if_else(
            _is_compared(batch, compared), batch.column(VECTORS).cast(pa.large_binary()).fill_null(b""), b""
        )
        version = history_version_of(params, model, compared)
        yield batch_of(
            SIGNATURES,
            id=batch.column("id"),
            node=nodes(batch, likeness.order),
            keys=_keys(vectors, params, model),
            compared=vectors,
            size=pc.divide(pc.binary_length(vectors).cast(pa.int64()), KIND.itemsize),
            history_version=pa.repeat(pa.scalar(version, pa.int64()), batch.num_rows),
        )


def languages_compared(batch: pa.RecordBatch, params: Params) -> tuple[str, ...]:
    """Return the languages whose documents are compared, sorted; empty for all of them.

    They are those of the params, else those that the model's card names, if the documents have languages.
    RecipeError for languages of the params and documents that have none.
    """
    if LANGUAGE not in batch.schema.names:
        if params.languages:
            message = (
                f"dedup_semantic: `languages` needs the column {LANGUAGE!r}, and documents have none; put "
                "filter_language before, or leave `languages` out"
            )
            raise RecipeError(message)
        return ()
    if params.languages:
        return listed(params.languages)
    has_languages = EMBEDDING_LANGUAGES in batch.schema.names
    named = pc.unique(batch.column(EMBEDDING_LANGUAGES)).drop_null().to_pylist() if has_languages else []
    return listed(code for codes in named for code in codes.split(","))


def _is_compared(batch: pa.RecordBatch, languages: Sequence[str]) -> pa.Array:
    """Return which rows are in one of these languages, in any script where one is named without."""
    if not languages:
        return pa.repeat(pa.scalar(value=True), batch.num_rows)
    of = batch.column(LANGUAGE).cast(pa.string())
    found = [name for name in pc.unique(of).drop_null().to_pylist() if is_listed(name, languages)]
    return pc.is_in(of, value_set=pa.array(found, pa.string()))


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
    mixed: npt.NDArray[np.int64] = keys.astype(np.int64).ravel() ^ np.int64(number_of(model))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(mixed))
