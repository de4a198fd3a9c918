"""The parameters of semantic deduplication, and the number that marks comparable history."""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated

from pipeline_tasks.constraints import Buckets, Count, Positive, Range, Seed
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.text.near.ranking import require_policy
from pipeline_tasks.text.near.vectors import rows_for

VECTORS = "embedding"
"""The column of history that has vectors."""

MEASURES = ("embedding_numbers", "unsettled_semantic_bands")
"""Columns of documents: the numbers of the vector that was compared, and bands that are left unsettled."""


@dataclass(frozen=True, slots=True)
class Params:
    """When two documents say the same, and which of a cluster is kept.

    Two documents are a candidate pair when no plane of one of `bands` bands is between their vectors: with as many
    planes per band as let a pair at the `threshold` be a candidate with probability `recall`
    (`text.near.vectors.rows_for`), and more similar ones oftener. A candidate pair is an edge when the cosine of its
    vectors is at least `threshold`. Of each connected cluster, over all snapshots, the first document by `policy` is
    kept: an ordered list as of `dedup_minhash`, and the same as that stage's if the recipe has both. No snapshot is
    privileged: an earlier winner that is no longer the first is superseded.
    Members of a band are compared as in `dedup_minhash` (`rounds`, `pairs`); bands that are not compared to the end are
    counted in `unsettled_semantic_bands`. Documents without a vector are kept.
    Whatever decides on edges and winners must stay the same as long as there is history: the model of `embed`, too.
    `buckets` is the number of shards of documents and of history (0: that in which they come).
    """

    threshold: Annotated[float, Range(0.5, 1)] = 0.9
    recall: Annotated[float, Range(0.5, 0.9999)] = 0.95
    bands: Annotated[int, Range(1, 1024)] = 64
    policy: tuple[str, ...] = ("url", "newest", "lowest_id")
    sources: tuple[str, ...] = ()
    quality: str = "score"
    seed: Seed = 1
    rounds: Positive = 8
    pairs: Positive = 20_000
    buckets: Buckets = 0
    edges_in_memory: Count = 4_000_000

    def __post_init__(self) -> None:
        require_policy("dedup_semantic", self.policy, self.sources)

    @property
    def rows(self) -> int:
        """Planes of a band."""
        return rows_for(self.threshold, self.bands, self.recall)


def history_version(params: Params) -> int:
    """Return the number that marks comparable history, but for the model: a hash of all that decides on edges."""
    edges = (params.threshold, params.bands, params.rows, params.seed)
    name = json.dumps(["dedup_semantic", 1, edges, params.policy, params.sources, params.quality])
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def likeness_of(params: Params) -> Likeness:
    """Return how documents are compared, and which is kept."""
    return Likeness(
        stage="dedup_semantic",
        compared=VECTORS,
        similarity="cosine",
        threshold=params.threshold,
        history_version=history_version(params),
        measures=MEASURES,
        policy=params.policy,
        sources=params.sources,
        quality=params.quality,
        rounds=params.rounds,
        pairs=params.pairs,
        buckets=params.buckets,
        edges_in_memory=params.edges_in_memory,
    )
