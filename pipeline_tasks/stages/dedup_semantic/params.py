"""The parameters of semantic deduplication, and the number that marks comparable history."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from xxhash import xxh3_64_intdigest

from pipeline_tasks.constraints import OMITTED, Buckets, Count, Positive, Range, Seed
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.text.near.ranking import preferred, require_policy
from pipeline_tasks.text.near.vectors import rows_for
from pipeline_tasks.text.words.language_codes import parse_language

LANGUAGE = "language"
"""The column of documents that has their language."""

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
    kept: an ordered list as of `dedup_minhash`, as is `prefer`, and the same as those of that stage if the recipe has
    both. No snapshot is privileged: an earlier winner that is no longer the first is superseded.
    Members of a band are compared as in `dedup_minhash` (`rounds`, `pairs`); bands that are not compared to the end are
    counted in `unsettled_semantic_bands`. Documents without a vector are kept.
    `languages` are those that the model knows, written as in `filter_language`: documents in others are neither
    compared nor removed. Left out, they are those that the model's card names, as `embed` found them; where it names
    none, or documents have no language, all are compared.
    Whatever decides on edges and winners must stay the same as long as there is history: the model of `embed`, too.
    `buckets` is the number of shards of documents and of history (0: that in which they come).
    """

    threshold: Annotated[float, Range(0.5, 1)] = 0.9
    recall: Annotated[float, Range(0.5, 0.9999)] = 0.95
    bands: Annotated[int, Range(1, 1024)] = 64
    languages: tuple[str, ...] = ()
    policy: tuple[str, ...] = ("url", "newest", "lowest_id")
    sources: tuple[str, ...] = ()
    quality: str = "score"
    seed: Seed = 1
    rounds: Positive = 8
    pairs: Positive = 20_000
    buckets: Buckets = 0
    edges_in_memory: Count = 4_000_000
    prefer: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata={OMITTED: {}})

    def __post_init__(self) -> None:
        require_policy("dedup_semantic", self.policy, self.sources, self.prefer)

    @property
    def rows(self) -> int:
        """Planes of a band."""
        return rows_for(self.threshold, self.bands, self.recall)


DECIDING = ("threshold", "bands", "rows", "seed", "policy", "sources", "quality", "prefer")
"""What `history_version` follows from."""


def history_version(params: Params) -> int:
    """Return the number that marks comparable history, but for model and languages: a hash of what decides on edges."""
    edges = (params.threshold, params.bands, params.rows, params.seed)
    name = json.dumps(
        ["dedup_semantic", 1, edges, params.policy, params.sources, params.quality, *preferred(params.prefer)]
    )
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def history_version_of(params: Params, model: str, languages: Sequence[str]) -> int:
    """Return the number that marks comparable history: of the model by its name, and of the languages compared."""
    known = number_of(",".join(languages)) if languages else 0
    return history_version(params) ^ (number_of(model) >> 8) ^ (known >> 8)


def number_of(name: str) -> int:
    """Return a number of 63 bits for a name."""
    return int(xxh3_64_intdigest(name.encode())) >> 1


def is_listed(language: str, codes: Iterable[str]) -> bool:
    """Return whether a language is one of those; a code without a script means any."""
    of = parse_language(language)
    return not {str(of), of.language}.isdisjoint(codes)


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
        prefer=preferred(params.prefer),
        rounds=params.rounds,
        pairs=params.pairs,
        buckets=params.buckets,
        edges_in_memory=params.edges_in_memory,
    )
