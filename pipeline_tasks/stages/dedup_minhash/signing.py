"""Sign documents: MinHash band keys, shingle sets and the order in which they are kept."""

import pyarrow as pa

from pipeline_tasks.near_duplicates.signing import in_place
from pipeline_tasks.near_duplicates.tables import SIGNATURES
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.dedup_minhash.params import Params, likeness_of
from pipeline_tasks.text.base.tables import batch_of
from pipeline_tasks.text.near.ranking import columns_ranked, nodes


def columns_signed(params: Params) -> tuple[str, ...]:
    """Return the columns of documents that `sign_documents` reads."""
    return ("text", *columns_ranked(params.policy, params.quality, params.prefer))


def sign_documents(documents: Batches, *, params: Params) -> Batches:
    """Yield `SIGNATURES`. A document of fewer than `ngram` words (or characters) has no near duplicates."""
    from pipeline_tasks.text.near import minhash, shingle_sets

    family = minhash.Family(params.ngram, params.bands, params.rows, params.seed, params.shingle)
    likeness = likeness_of(params)
    for batch in in_place(documents, likeness):
        keys, shingles = minhash.sign(batch.column("text"), family)
        yield batch_of(
            SIGNATURES,
            id=batch.column("id"),
            node=nodes(batch, likeness.order),
            keys=keys,
            compared=shingles,
            size=pa.array(shingle_sets.sizes(shingles)),
            history_version=pa.repeat(pa.scalar(likeness.history_version, pa.int64()), batch.num_rows),
        )
