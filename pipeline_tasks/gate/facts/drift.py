"""Computes how far the rows that a stage keeps, or a snapshot publishes, have moved since the previous snapshot."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline_tasks.gate.estimates import Estimate, Facts
from pipeline_tasks.gate.facts.comparison import alike, binned, psi, stability
from pipeline_tasks.gate.facts.subject import EMPTY, Family, Subject, profiles_of
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.distributions import DISTRIBUTIONS, changes_rows
from pipeline_tasks.profiles.merging import merge

Profile = Mapping[str, Any]


def compare_own(subject: Subject) -> Facts:
    """Return the drift of each distribution that a stage itself brings; none of a stage that leaves rows as they are.

    None without a previous manifest, or where just one of both snapshots was compared with others.
    """
    if not changes_rows(subject.card):
        return {}
    now, before = subject.manifest, subject.previous
    if before is None or not alike(now, before):
        return dict.fromkeys(f"{name}_own_psi" for name in DISTRIBUTIONS)
    return {f"{name}_own_psi": own_drift(_sides(now, name), _sides(before, name)) for name in DISTRIBUTIONS}


def _sides(manifest: Manifest, name: str) -> tuple[Profile | None, Profile | None]:
    """Return the profiles of a column over the rows that a stage kept, and over all that it read."""
    kept, rejected = (profiles_of(manifest, rows).get(name) for rows in ("kept", "rejects"))
    return kept, merge({name: part} for part in (kept, rejected) if part).get(name)


def own_drift(
    now: tuple[Profile | None, Profile | None], before: tuple[Profile | None, Profile | None]
) -> Estimate | None:
    """Return the population stability index of what a stage kept against what it would have kept as it did before.

    Each of `now` and `before` are the profiles of the kept rows and of all that were read. Of each name, or tenth of
    the numbers that were read before, it would keep the share that it kept then: so a drift of its input is none of its
    own. What did not occur before says nothing.
    """
    profiles = [profile for profile in (*now, *before) if profile and profile["count"]]
    if len(profiles) < len((*now, *before)):
        return None
    kept, read, kept_before, read_before = binned(profiles, profiles[-1])
    known = [name for name, rows in read_before.items() if rows]
    expected = {name: round(read.get(name, 0) * kept_before.get(name, 0) / read_before[name]) for name in known}
    return stability({name: kept.get(name, 0) for name in known}, expected)


OWN = Family(
    compare_own,
    {
        "<column>_own_psi": "population stability index of what the stage keeps, by `chars`, `language` and `source`, "
        "against what it would keep if it kept of each name, or tenth of the lengths, the share that it kept of the "
        "previous snapshot, less what chance gives: so a drift of its input is none of its own"
    },
)


Snapshot = Sequence[Manifest]
"""The manifests of a snapshot, in the order of stages."""


def snapshot_drift(now: Snapshot, before: Snapshot | None) -> Facts:
    """Return how far what a snapshot publishes has moved since the previous one, by each distribution.

    None without a previous one, or where a stage of just one of both was compared with other snapshots.
    """
    if before is None or not _all_alike(now, before):
        return dict.fromkeys(f"{name}_psi" for name in DISTRIBUTIONS)
    sides = last_profiles(now), last_profiles(before)
    drifts = {name: [side.get(name, EMPTY) for side in sides] for name in DISTRIBUTIONS}
    return {f"{name}_psi": psi(*of) for name, of in drifts.items()}


def _all_alike(now: Snapshot, before: Snapshot) -> bool:
    stages = {manifest.stage: manifest for manifest in before}
    return all(alike(each, stages[each.stage]) for each in now if each.stage in stages)


def last_profiles(manifests: Snapshot) -> dict[str, Profile]:
    """Return the profiles of the rows that a snapshot publishes, each from the last stage that has it."""
    found: dict[str, Profile] = {}
    for manifest in manifests:
        found |= {name: of for name, of in profiles_of(manifest).items() if name in DISTRIBUTIONS}
    return found
