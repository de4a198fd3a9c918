"""Finds versions whose stages read another history than the snapshots that are published before them now."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline_tasks.cards import known_card
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import is_trial
from pipeline_tasks.report.summary import Summary, read_summary


@dataclass(frozen=True, slots=True)
class StaleVersion:
    """A version that was refined with another history than there is now, and the first stage that would differ."""

    version: Version
    stage: str


def stale_now(root: str, recipe: str) -> list[StaleVersion]:
    """Return the stale versions of a recipe's dataset, in the order of their snapshots."""
    return stale_versions(root, version_log.latest_by_snapshot(root, recipe))


def stale_versions(root: str, versions: Sequence[Version]) -> list[StaleVersion]:
    """Return those of `versions`, one per snapshot in order, that are stale given the versions before them."""
    return stale_among(versions, {version.number: read_summary(root, version) for version in versions})


def stale_among(versions: Sequence[Version], summaries: Mapping[int, Summary]) -> list[StaleVersion]:
    """As `stale_versions`, from the summaries of the versions by number; a trial is never stale."""
    saved: defaultdict[str, list[str]] = defaultdict(list)
    stale = []
    for version in versions:
        if is_trial(version.recipe):
            continue
        stages = [stage for stage in summaries[version.number].stages if _reads_history(stage.stage)]
        differing = [stage.stage for stage in stages if list(stage.history) != saved[stage.stage]]
        if differing:
            stale.append(StaleVersion(version, differing[0]))
        for stage in stages:
            saved[stage.stage] += [stage.fingerprint] if stage.saves_history else []
    return stale


def _reads_history(stage: str) -> bool:
    card = known_card(stage)
    return card is not None and card.reads_history
