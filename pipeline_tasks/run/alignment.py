"""Lines up the inputs of a map: shard by shard, and history that was saved in another number of buckets by its ranges.

A bucket is a range of the hash of a key, so a bucket of one number overlaps few buckets of another. Kernels look up
history by key, so each bucket is given the shards of all buckets that overlap its own: what else they have is not
requested. `buckets` may therefore change from one snapshot to the next.
"""

from collections.abc import Sequence

from pipeline_tasks.errors import ContractError
from pipeline_tasks.run.made import Made
from pipeline_tasks.stage import Shards


def aligned(inputs: Sequence[Shards], prefix: str) -> Sequence[tuple[Shards, ...]]:
    """Return the inputs of each task, in the order of the first input's shards; ContractError if they do not fit.

    `prefix` names the stage in the error.
    """
    count = len(inputs[0])
    misfits = [stream for stream in inputs if len(stream) != count and not (count and _has_keys(stream))]
    if misfits:
        lengths = sorted({count, *map(len, misfits)})
        message = f"{prefix}: map zips its inputs shard by shard, but they have {lengths} shards"
        raise ContractError(message)
    return Made(count, lambda rank: tuple(overlapping(stream, rank, count) for stream in inputs))


def _has_keys(stream: Shards) -> bool:
    return bool(stream) and all(shard.index_digest for shard in stream)


def overlapping(stream: Shards, rank: int, count: int) -> Shards:
    """Return the shards of `stream` that overlap range `rank` of `count` equal ranges."""
    return stream[rank * len(stream) // count : -(-(rank + 1) * len(stream) // count)]
