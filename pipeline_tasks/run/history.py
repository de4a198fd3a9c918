"""Takes apart what earlier snapshots remembered, and refuses what was remembered in another form."""

from pipeline_tasks.errors import ContractError
from pipeline_tasks.stage import HistoryReader, Shards


def require_keys(stage: str, history: Shards) -> None:
    """Raise ContractError if something was remembered without keys to look it up by, as stages once did."""
    for shard in history:
        if not shard.root:
            message = (
                f"{stage}: {shard.path} was remembered by an older version of this stage, without keys; "
                "refine that snapshot again, or start without history"
            )
            raise ContractError(message)


def by_snapshot(stage: str, history: Shards, each: int) -> list[Shards]:
    """Cut the memory of earlier snapshots into one run of `each` shards per snapshot; ContractError if it cannot be."""
    require_keys(stage, history)
    if len(history) % each:
        message = (
            f"{stage}: {len(history)} remembered shards cannot be {each} per snapshot; "
            "set `buckets` as it was in the earlier snapshots, or start without history"
        )
        raise ContractError(message)
    return [history[start : start + each] for start in range(0, len(history), each)]


def check_buckets(stage: str, past: HistoryReader, buckets: int) -> None:
    """Raise ContractError if the `buckets` that a snapshot wrote into its memory are not those of this run."""
    snapshot, remembered = past.first("snapshot"), past.first("buckets")
    if remembered not in {None, buckets}:
        message = (
            f"{stage}: snapshot {snapshot} was remembered in {remembered} buckets and this run has {buckets}; "
            f"set `buckets: {remembered}` in the recipe, or start without history"
        )
        raise ContractError(message)
