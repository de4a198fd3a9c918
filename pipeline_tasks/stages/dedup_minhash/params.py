"""The parameters of near deduplication, their checks, and the number that marks comparable history."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pipeline_tasks.constraints import OMITTED, Buckets, Count, Positive, Range, Ratio, Seed
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.near_duplicates.likeness import Likeness
from pipeline_tasks.text.near.ranking import preferred, require_policy

SHINGLES = "shingles"
"""The column of history that has sets of shingles, and that of documents that has their size."""

SIGNATURE_FORM = 2
"""The form of what history stores of signatures: another form is no history of this stage."""

MOST_MINIMA = 20_000
"""Minima of a signature: 8 bytes each per document. FineWeb has 112, RefinedWeb 9,000."""


@dataclass(frozen=True, slots=True)
class Params:
    """How documents are signed, when two are near duplicates, and which document of a cluster is kept.

    A document is the set of `ngram`s of its folded words or, with `shingle: char`, of its folded characters with one
    space between words (`text.near.shingles`). Two documents are a candidate pair when all `rows` minima of one of
    `bands` bands agree: with probability 1 - (1 - J**rows)**bands at Jaccard similarity J (14 x 8 as FineWeb: 0.92 at
    0.8, 0.56 at 0.7). A candidate pair is an edge only when its exact `similarity` is at least `threshold`: `jaccard`,
    or `containment`, the share of the smaller set that is in the larger one. A threshold of 0 turns verification off.
    Of each connected cluster, over all snapshots, the first document by `policy` is kept: an ordered list of `url`
    (shortest address; states of a page have the same), `quality` (highest value of the column `quality`), `newest`,
    `oldest`, `longest`, `source` (first of `sources` that is the document's source or the end of its host) and
    `lowest_id`, which always breaks the last tie. So by default the newest state of a page stays. `prefer` comes before
    all of `policy`: a column of names with its values, the best first (`{type: [html, pdf]}`: of a page and its PDF the
    page stays); documents with other values come behind, in the order of `policy`. No snapshot is
    privileged: an earlier winner that is no longer the first is superseded, and the next version lists it.
    Members of a band are compared by stars, then pair by pair, until all that are not connected were compared, for at
    most `rounds` rounds of at most `pairs` comparisons per band (or one per new member, where that is more). Bands
    that are not compared to the end by then are counted in `unsettled_bands`.
    Up to `edges_in_memory` edges, and never more than 131,072, are clustered in one task, more by rounds of large-star
    and small-star; the result is the same. Whatever decides on edges and winners must stay the same as long as there is
    history. `buckets` is the number of shards of documents and of history. It should be that of `dedup_exact` (0 takes
    it), and may change from one snapshot to the next. A task takes about 100 bytes for each page of the largest band.
    """

    ngram: Annotated[int, Range(1, 100)] = 5
    shingle: Literal["word", "char"] = "word"
    bands: Annotated[int, Range(1, 1000)] = 14
    rows: Annotated[int, Range(1, 1000)] = 8
    threshold: Ratio = 0.8
    similarity: Literal["jaccard", "containment"] = "jaccard"
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
        require_policy("dedup_minhash", self.policy, self.sources, self.prefer)
        if self.bands * self.rows > MOST_MINIMA:
            message = f"dedup_minhash: bands {self.bands} x rows {self.rows} are more than {MOST_MINIMA:,} minima"
            raise RecipeError(message)


DECIDING = (
    "ngram",
    "shingle",
    "bands",
    "rows",
    "seed",
    "similarity",
    "threshold",
    "policy",
    "sources",
    "quality",
    "prefer",
)
"""What `history_version` follows from, beside the form of signatures."""


def history_version(params: Params) -> int:
    """Return the number that marks comparable history: a hash of all that decides on signatures, edges and winners."""
    edges = (
        params.ngram,
        params.shingle,
        params.bands,
        params.rows,
        params.seed,
        params.similarity,
        params.threshold,
    )
    name = json.dumps([SIGNATURE_FORM, edges, params.policy, params.sources, params.quality, *preferred(params.prefer)])
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


def likeness_of(params: Params) -> Likeness:
    """Return how documents are compared, and which is kept."""
    return Likeness(
        stage="dedup_minhash",
        compared=SHINGLES,
        similarity=params.similarity,
        threshold=params.threshold,
        history_version=history_version(params),
        measures=(SHINGLES, "unsettled_bands"),
        policy=params.policy,
        sources=params.sources,
        quality=params.quality,
        prefer=preferred(params.prefer),
        rounds=params.rounds,
        pairs=params.pairs,
        buckets=params.buckets,
        edges_in_memory=params.edges_in_memory,
    )
