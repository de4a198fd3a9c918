"""Cuts the input of a stage into partitions: how many follow from its bytes and what the stage costs, and which shards.

The cut is a function of the stage and of the input's shards. It does not depend on workers, engine or batch size, and
no output byte depends on it.
"""

from pipeline_tasks.recipe import MAX_PARTITIONS
from pipeline_tasks.run.request import Span
from pipeline_tasks.run.unit_costs import MEGABYTE, cost_of
from pipeline_tasks.stage import Shards

PARTITION_SECONDS = 300.0
"""CPU seconds that a partition is to take: about a minute on four cores, five on one; a killed one loses no more."""


def partition_bytes(stage: str) -> int:
    """Return how many bytes a partition of a stage is to read."""
    return int(PARTITION_SECONDS / cost_of(stage).seconds * MEGABYTE)


def partitions_for(stage: str, shards: Shards) -> int:
    """Return over how many partitions a stage is mapped: at least one, at most one per shard and `MAX_PARTITIONS`."""
    total = sum(shard.weight for shard in shards)
    return max(1, min(-(-total // partition_bytes(stage)), len(shards), MAX_PARTITIONS))


def spans(shards: Shards, partitions: int) -> list[Span]:
    """Cut shards into at most `partitions` spans [start, stop) of about equal bytes, none empty."""
    wanted = max(1, min(partitions, len(shards)))
    total = sum(shard.weight for shard in shards) or 1
    cut: list[Span] = []
    start, spent = 0, 0
    for rank, shard in enumerate(shards):
        spent += shard.weight
        left = len(shards) - rank - 1
        due = spent * wanted >= total * (len(cut) + 1)
        if (due or left < wanted - len(cut)) and len(cut) < wanted - 1:
            cut.append((start, rank + 1))
            start = rank + 1
    return [*cut, (start, len(shards))] if start < len(shards) or not cut else cut
