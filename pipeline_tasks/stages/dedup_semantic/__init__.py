"""Keeps one document of each cluster that says the same: planes through vectors propose, the exact cosine decides."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline_tasks.counted import counted
from pipeline_tasks.facets import Copies, Grouped, UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.graph import keep_first
from pipeline_tasks.near_duplicates.history import sections
from pipeline_tasks.near_duplicates.id_order import in_buckets
from pipeline_tasks.profiles.removals import OF_LANGUAGE
from pipeline_tasks.schema import DOCUMENT, EMBEDDING, EMBEDDING_LANGUAGES, EMBEDDING_MODEL
from pipeline_tasks.scorers.model_card import listed
from pipeline_tasks.stage import Engine, Idle, Shards, Stage, always
from pipeline_tasks.stages.dedup_semantic.params import (
    DECIDING,
    LANGUAGE,
    MEASURES,
    VECTORS,
    Params,
    is_listed,
    likeness_of,
)
from pipeline_tasks.stages.dedup_semantic.signing import columns_signed, sign_documents


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sign vectors by the sides of planes that they are on, and keep the first of each cluster.

    `near_duplicates.graph` says how, and what holds over days. docs/decisions/0051 says why planes and no k-means.
    """
    documents, buckets = in_buckets(shards, params.buckets, on)
    params = replace(params, buckets=buckets)
    sign = partial(sign_documents, params=params)
    return keep_first(documents, sign, columns_signed(params), likeness_of(params), on)


def reads_for(params: Params) -> tuple[str, ...]:
    """Return the columns that the policy `quality` and `prefer` compare, and that of languages if they are named."""
    of_policy = (*((params.quality,) if "quality" in params.policy else ()), *params.prefer)
    return (*of_policy, *((LANGUAGE,) if params.languages else ()))


def idle(params: Params, profiles: Mapping[str, Any]) -> tuple[Idle, ...]:
    """Return that no kept document is in a language that is compared."""
    rows = {
        key.removeprefix(OF_LANGUAGE): count for key, count in profiles.get("languages", {}).get("bins", {}).items()
    }
    named = profiles.get(EMBEDDING_LANGUAGES, {}).get("bins", {})
    compared = listed(params.languages or (code for codes in named for code in codes.split(",")))
    if not compared or not rows or any(is_listed(language, compared) for language in rows):
        return ()
    most = sorted(rows, key=lambda language: (-rows[language], language))[:3]
    has = ", ".join(f"{language} ({counted(rows[language], 'document')})" for language in most)
    return (Idle(f"no document in {', '.join(compared)}; most are in {has}", REMEDY),)


REMEDY = "name languages that the model knows in `languages`, or take a model that knows these"


VECTOR = (pa.field(EMBEDDING, pa.large_binary()), pa.field(EMBEDDING_MODEL, pa.string()))

STAGE = Stage(
    name="dedup_semantic",
    run=run,
    params=Params,
    reads_for=reads_for,
    idle=idle,
    reads=pa.schema([*DOCUMENT, *VECTOR]),
    writes=pa.schema([*DOCUMENT, *VECTOR, *(pa.field(name, pa.int64()) for name in MEASURES)]),
    version=3,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    history=sections(VECTORS),
    profiled=(*MEASURES, EMBEDDING_LANGUAGES, "origins", "languages", "clusters", "similarity"),
    reasons=("dedup_semantic:near_duplicate",),
    title="documents that say the same out",
    removes="copies",
    bounds=lambda params: (likeness_of(params).bound,),
    copies=Copies("some", over_snapshots=True, deciding=DECIDING, title="Documents that say the same"),
    cost=UnitCost(0.5, 1.00, 0.5, 8),
    buckets=Grouped(by_id=True, keeps=True),
    wiring=Wiring(follows=("dedup_exact",)),
)
