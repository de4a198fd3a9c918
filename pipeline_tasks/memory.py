"""Takes apart what earlier snapshots remembered, and refuses what was remembered in other buckets."""

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import Remembered, Shards


def by_snapshot(stage: str, history: Shards, each: int) -> list[Shards]:
    """Cut the memory of earlier snapshots into one run of `each` shards per snapshot; ContractError if it cannot be."""
    if len(history) % each:
        message = (
            f"{stage}: {len(history)} remembered shards cannot be {each} per snapshot; "
            "set `buckets` as it was in the earlier snapshots, or start without history"
        )
        raise ContractError(message)
    return [history[start : start + each] for start in range(0, len(history), each)]


def check_buckets(stage: str, past: Remembered, buckets: int) -> None:
    """Raise ContractError if the `buckets` that a snapshot wrote into its memory are not those of this run."""
    snapshot, remembered = past.first("snapshot"), past.first("buckets")
    if remembered not in {None, buckets}:
        message = (
            f"{stage}: snapshot {snapshot} was remembered in {remembered} buckets and this run has {buckets}; "
            f"set `buckets: {remembered}` in the recipe, or start without history"
        )
        raise ContractError(message)
