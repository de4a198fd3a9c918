"""Finds versions whose stages read another history than the snapshots that are published before them now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.store.reading import read_manifest

Manifests = Mapping[tuple[int, str], Manifest]
"""Manifests of stages that read history, by version number and stage."""


@dataclass(frozen=True, slots=True)
class StaleVersion:
    """A version that was refined with another history than there is now, and the first stage that would differ."""

    version: Version
    stage: str


def stale_versions(root: str, versions: Sequence[Version]) -> list[StaleVersion]:
    """Return those of `versions`, one per snapshot in order, that are stale given the versions before them."""
    manifests = _manifests(root, versions)
    stages = [_first_stale_stage(version, versions[:rank], manifests) for rank, version in enumerate(versions)]
    return [StaleVersion(version, stage) for version, stage in zip(versions, stages, strict=True) if stage]


def _manifests(root: str, versions: Sequence[Version]) -> Manifests:
    return {
        (version.number, stage): read_manifest(root, version.manifests[stage])
        for version in versions
        for stage in STAGES
        if stage in version.manifests and stage_card(stage).reads_history
    }


def _first_stale_stage(version: Version, earlier: Sequence[Version], manifests: Manifests) -> str:
    """Return the first stage that did not read exactly the history of the earlier versions, "" if there is none."""
    for stage in STAGES:
        manifest = manifests.get((version.number, stage))
        if manifest is not None and list(manifest.parents[1:]) != list(_history(stage, earlier, manifests)):
            return stage
    return ""


def _history(stage: str, earlier: Sequence[Version], manifests: Manifests) -> Iterator[str]:
    """Yield the fingerprints of the earlier manifests of a stage that saved history."""
    for version in earlier:
        manifest = manifests.get((version.number, stage))
        if manifest is not None and manifest.history_shards:
            yield manifest.fingerprint
