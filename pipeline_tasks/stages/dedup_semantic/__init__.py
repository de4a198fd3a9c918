"""Keeps one document of each cluster that says the same: planes through vectors propose, the exact cosine decides."""

from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipeline_tasks.near_duplicates.graph import in_buckets, keep_first
from pipeline_tasks.near_duplicates.history import sections
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Engine, Shards, Stage
from pipeline_tasks.stages.dedup_semantic.params import MEASURES, VECTORS, Params, likeness_of
from pipeline_tasks.stages.dedup_semantic.signing import columns_signed, sign_documents
from pipeline_tasks.stages.embed import EMBEDDING, EMBEDDING_MODEL


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sign vectors by the sides of planes that they are on, and keep the first of each cluster.

    `near_duplicates.graph` says how, and what holds over days. docs/decisions/0051 says why planes and no k-means.
    """
    documents, buckets = in_buckets(shards, params.buckets, on)
    params = replace(params, buckets=buckets)
    sign = partial(sign_documents, params=params)
    return keep_first(documents, sign, columns_signed(params), likeness_of(params), on)


def reads_for(params: Params) -> tuple[str, ...]:
    """Return the column that the policy `quality` compares."""
    return (params.quality,) if "quality" in params.policy else ()


VECTOR = (pa.field(EMBEDDING, pa.large_binary()), pa.field(EMBEDDING_MODEL, pa.string()))

STAGE = Stage(
    name="dedup_semantic",
    run=run,
    params=Params,
    reads_for=reads_for,
    reads=pa.schema([*DOCUMENT, *VECTOR]),
    writes=pa.schema([*DOCUMENT, *VECTOR, *(pa.field(name, pa.int64()) for name in MEASURES)]),
    version=1,
    splits=False,
    history=sections(VECTORS),
    profiled=(*MEASURES, "origins", "languages", "clusters", "similarity"),
    reasons=("dedup_semantic:near_duplicate",),
    title="documents that say the same out",
)
