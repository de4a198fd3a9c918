"""What differs between stages that keep one of each cluster of documents that are alike."""

from dataclasses import dataclass
from typing import Literal

from pipeline_tasks.facets import Bound
from pipeline_tasks.profiles.removals import similarity
from pipeline_tasks.text.near.ranking import Policy, Preferred

Similarity = Literal["jaccard", "containment", "cosine"]


@dataclass(frozen=True, slots=True)
class Likeness:
    """How documents are compared, which of a cluster is kept, and how far bands are searched.

    `stage` is the name of the stage, and `compared` the column of its history that has what is compared: sets as of
    `text.near.shingle_sets`, or vectors as of `text.near.vectors` for `cosine`. `history_version` marks comparable
    history. Two documents are an edge if their `similarity` is at least `threshold`. The other fields are params of the
    stages: `dedup_minhash.params` says what they do. `measures` are the columns that documents get: the size of what
    was compared, and the number of bands that are left unsettled.
    """

    stage: str
    compared: str
    similarity: Similarity
    threshold: float
    history_version: int
    measures: tuple[str, str]
    policy: tuple[str, ...]
    sources: tuple[str, ...]
    quality: str
    rounds: int
    pairs: int
    buckets: int
    edges_in_memory: int
    prefer: Preferred = ()

    @property
    def reach(self) -> float:
        """The largest distance of an edge; infinite where 1 - similarity is no metric."""
        return 1 - self.threshold if self.similarity == "jaccard" else float("inf")

    @property
    def order(self) -> Policy:
        """The order in which the documents of a cluster are kept."""
        return Policy(self.policy, self.sources, self.quality, self.prefer)

    @property
    def rejected(self) -> str:
        """The reason of documents that are not the first of their cluster."""
        return f"{self.stage}:near_duplicate"

    @property
    def bound(self) -> Bound:
        """The threshold, as a bound on what evidence has: documents that were kept store no similarity."""
        note = "At most so many come back: a document may be near to another one, too."
        return Bound(
            "threshold",
            self.threshold,
            self.rejected,
            measured=similarity,
            rejects="from",
            side="higher",
            is_exact=False,
            note=note,
        )
