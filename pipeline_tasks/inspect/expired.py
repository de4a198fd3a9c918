"""Says which rejected rows have expired, so that nobody takes their empty texts for what was rejected."""

from collections.abc import Iterable, Mapping

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.store.erasures import expired
from pipeline_tasks.store.reading import read_manifest


def expired_in(root: str, manifests: Mapping[str, str]) -> str:
    """Return the note on the stages of a version or run, by the references of its manifests; "" if all is there."""
    if not expired(root):
        return ""
    return expired_note(root, [read_manifest(root, referred) for referred in manifests.values()])


def expired_note(root: str, manifests: Iterable[Manifest]) -> str:
    """Return which stages have rejected or quarantined rows that expired, when, and by which policy; "" if none."""
    by_path = expired(root)
    stages: dict[str, tuple[str, str]] = {}
    for manifest in manifests if by_path else ():
        for shard in (*manifest.rejects, *manifest.quarantine):
            if not shard.below and (entry := by_path.get(shard.path)) is not None:  # a layer has no texts to lose
                stages[manifest.stage] = max(stages.get(manifest.stage, ("", "")), (entry.at[:10], entry.retention))
    named = ", ".join(f"{stage} (on {day} by the policy {policy})" for stage, (day, policy) in stages.items())
    return f"rejected rows have expired: the texts and addresses that were stored by {named} are gone" if named else ""
