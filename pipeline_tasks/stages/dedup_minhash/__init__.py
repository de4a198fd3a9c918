"""Keeps one document of each cluster of near duplicates of all snapshots: MinHash proposes, exact overlap decides."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipeline_tasks.facets import Canceled, Copies, Grouped, Requests, UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.graph import keep_first
from pipeline_tasks.near_duplicates.history import sections
from pipeline_tasks.near_duplicates.id_order import in_buckets
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Engine, Shards, Stage, always
from pipeline_tasks.stages.dedup_minhash.params import DECIDING, SHINGLES, Params, likeness_of
from pipeline_tasks.stages.dedup_minhash.signing import columns_signed, sign_documents


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sign documents by MinHash, and keep the first of each cluster (`near_duplicates.graph`)."""
    documents, buckets = in_buckets(shards, params.buckets, on)
    params = replace(params, buckets=buckets)
    sign = partial(sign_documents, params=params)
    return keep_first(documents, sign, columns_signed(params), likeness_of(params), on)


def reads_for(params: Params) -> tuple[str, ...]:
    """Return the columns that the policy `quality` and `prefer` compare."""
    return (*((params.quality,) if "quality" in params.policy else ()), *params.prefer)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    if not params.threshold:
        yield Canceled("similarity", "`threshold: 0` verifies no pair", "raise `threshold`")
    if "quality" not in params.policy:
        yield Canceled("quality", "`policy` does not name `quality`", "add it to `policy`")
    behind = params.policy[params.policy.index("lowest_id") + 1 :] if "lowest_id" in params.policy else ()
    if behind:
        yield Canceled("policy", f"{', '.join(behind)}: `lowest_id` before it leaves no tie", "put `lowest_id` last")


STAGE = Stage(
    name="dedup_minhash",
    run=run,
    params=Params,
    reads_for=reads_for,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field(SHINGLES, pa.int64()), pa.field("unsettled_bands", pa.int64())]),
    version=7,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    history=sections(SHINGLES),
    profiled=(SHINGLES, "unsettled_bands", "origins", "clusters", "similarity"),
    reasons=("dedup_minhash:near_duplicate",),
    title="near duplicates out",
    removes="copies",
    copies=Copies("all", over_snapshots=True, deciding=DECIDING, title="Near duplicates"),
    canceled=canceled,
    bounds=lambda params: (likeness_of(params).bound,),
    cost=UnitCost(0.27, 1.00, 1.73, 8, requests=Requests(180, 72), rows=0.992, published=0.50),
    buckets=Grouped(by_id=True, keeps=True),
    wiring=Wiring(follows=("dedup_exact",)),
)
