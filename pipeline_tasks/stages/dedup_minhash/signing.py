"""Sign documents: MinHash band keys, shingle sets and the order in which they are kept."""

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.dedup_minhash.params import Params
from pipeline_tasks.stages.dedup_minhash.tables import BANDS, OUTLINES, SIGNATURES
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near.ranking import Policy, columns_ranked, nodes

pc: Any = pyarrow.compute


OUT_OF_PLACE = "dedup_minhash: {}; run dedup_exact before, with the same `buckets`"
"""The message for documents that are not where `dedup_exact` leaves them."""


def columns_signed(params: Params) -> tuple[str, ...]:
    """Return the columns of documents that `sign_documents` reads."""
    return ("text", *columns_ranked(params.policy, params.quality))


def sign_documents(documents: Batches, *, params: Params) -> Batches:
    """Yield `SIGNATURES`. A document of fewer than `ngram` words (or characters) has no near duplicates."""
    from pipeline_tasks.text.near import minhash, shingle_sets

    family = minhash.Family(params.ngram, params.bands, params.rows, params.seed, params.shingle)
    policy = Policy(params.policy, params.sources, params.quality)
    last = ""
    for batch in documents:
        _check_order(batch, last)
        _check_columns(batch, params)
        last = batch.column("id")[-1].as_py() if batch.num_rows else last
        keys, shingles = minhash.sign(batch.column("text"), family)
        columns = {"keys": keys, "shingles": shingles, "size": pa.array(shingle_sets.sizes(shingles))}
        yield batch_of(SIGNATURES, id=batch.column("id"), node=nodes(batch, policy), **columns)


def _check_order(batch: pa.RecordBatch, last: str) -> None:
    for before, after in pairwise([last, *batch.column("id").to_pylist()]):
        if not before < after:
            message = OUT_OF_PLACE.format(f"document {after} follows {before}")
            raise ContractError(message)


def _check_columns(batch: pa.RecordBatch, params: Params) -> None:
    if "quality" in params.policy and params.quality not in batch.schema.names:
        message = (
            f"dedup_minhash: policy `quality` needs a column {params.quality!r}, and documents have none; "
            "put the stage that writes it before, or name another by `quality:`"
        )
        raise RecipeError(message)


def outline_signatures(signatures: Batches) -> Batches:
    """Yield `OUTLINES`."""
    for batch in signatures:
        yield batch.select(OUTLINES.names)


def spread_bands(outlines: Batches) -> Batches:
    """Yield `BANDS`."""
    for batch in outlines:
        keys = batch.column("keys")
        node = batch.column("node").take(pc.list_parent_indices(keys))
        yield batch_of(BANDS, key=pc.list_flatten(keys), node=node)
