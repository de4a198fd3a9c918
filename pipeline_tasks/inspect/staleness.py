"""Finds versions whose stages read another history than the snapshots that are published before them now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.store.reading import read_manifest


@dataclass(frozen=True, slots=True)
class StaleVersion:
    """A version that was refined with another history than there is now, and the first stage that would differ."""

    version: Version
    stage: str


@dataclass(frozen=True, slots=True)
class HistoryUse:
    """The history that a stage's manifest was made with, as fingerprints, and its own if it saved some ("" if not)."""

    read: tuple[str, ...]
    saved: str


Uses = Mapping[tuple[int, str], HistoryUse]
"""Uses of history, by version number and stage."""


def stale_versions(root: str, versions: Sequence[Version]) -> list[StaleVersion]:
    """Return those of `versions`, one per snapshot in order, that are stale given the versions before them."""
    return stale_among(versions, _uses(root, versions))


def stale_from(root: str, recipe: str, snapshot: str) -> list[str]:
    """Return the published snapshots of a recipe that are stale, from this one on, in order."""
    stale = stale_versions(root, version_log.latest_by_snapshot(root, recipe))
    return [found.version.snapshot for found in stale if found.version.snapshot >= snapshot]


def _uses(root: str, versions: Sequence[Version]) -> Uses:
    return {
        (version.number, stage): _use(root, version.manifests[stage])
        for version in versions
        for stage in historic_stages()
        if stage in version.manifests
    }


def historic_stages() -> list[str]:
    """Return the stages that read history, in order."""
    return [stage for stage in STAGES if stage_card(stage).reads_history]


def _use(root: str, referred: str) -> HistoryUse:
    manifest = read_manifest(root, referred)
    return HistoryUse(tuple(manifest.parents[1:]), manifest.fingerprint if manifest.history_shards else "")


def stale_among(versions: Sequence[Version], uses: Uses) -> list[StaleVersion]:
    """Return the stale ones of `versions`, which are one per snapshot and in order, by their uses of history."""
    saved: dict[str, list[str]] = {stage: [] for stage in historic_stages()}
    stale = []
    for version in versions:
        known = {stage: uses[version.number, stage] for stage in saved if (version.number, stage) in uses}
        differing = [stage for stage, use in known.items() if list(use.read) != saved[stage]]
        if differing:
            stale.append(StaleVersion(version, differing[0]))
        for stage, use in known.items():
            saved[stage] += [use.saved] if use.saved else []
    return stale
