"""Gives the distributions of a version's columns with those of the previous version and of the trailing ones."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pipeline_tasks.cards import has_sequences, is_stage
from pipeline_tasks.gate.suites import SNAPSHOTS
from pipeline_tasks.plots.distributions import SERIES
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.sums import SUMS
from pipeline_tasks.publish.logs.version_log import Version, stages_of
from pipeline_tasks.store.reading import read_manifest

THIS, PREVIOUS, EARLIER = SERIES

AFTER, BEFORE = "after", "before"
REFINED: Mapping[str, str] = {AFTER: "--plot-1", BEFORE: "--plot-3"}
"""The colors of a snapshot after its stages, and before them."""

INNER = (
    *("clusters", "origins", "similarity", "unsettled_bands", "repaired", "extractor", "truncated", "copies"),
    *("pii_", "shingles", "n_bytes", "lost_chars", "contaminated_by", *SUMS),
)
"""What the names of columns begin with that no plot shows.

They are counted for gates and nearly always have one value, or they only serve to compute another number: sums and
their squares by language, the bytes that tokens are compared with, the shingles of a similarity.
"""

Profile = Mapping[str, Any]


def distributions(
    root: str, version: Version, earlier: Sequence[Version]
) -> Iterator[tuple[str, str, dict[str, Profile]]]:
    """Yield each column with the last stage that profiled it, and its profiles: this version's, then earlier ones'.

    A column that has one value in all of them is left out.
    """
    for column, stage in sorted(_last_stages(root, version).items()):
        profiles = {THIS: _profile(root, version, stage, column)}
        before = [_profile(root, each, stage, column) for each in earlier[-SNAPSHOTS:]]
        profiles |= {PREVIOUS: before[-1]} if before else {}
        profiles |= {EARLIER: merge([{column: each} for each in before if each]).get(column)} if len(before) > 1 else {}
        known = {series: profile for series, profile in profiles.items() if profile}
        if len({value for profile in known.values() for value in profile["bins"]}) > 1:
            yield stage, column, known


def before_and_after(root: str, version: Version) -> Iterator[tuple[str, str, str, dict[str, Profile]]]:
    """Yield each column with the first and the last stage that profiled it, and its profiles before and after them.

    Before the first stage are all of its rows, kept and rejected; after the last one are those that it kept. A column
    that has the same values in both is left out, and one that has one value in both.
    """
    for column, last in sorted(_last_stages(root, version).items()):
        first = next(stage for stage in _stages(root, version) if column in _kept(root, version.manifests[stage]))
        parts = [_profiles(root, version.manifests[first], rows) for rows in ("kept", "rejects")]
        before = merge([{column: part[column]} for part in parts if column in part])[column]
        after = _kept(root, version.manifests[last])[column]
        if _differ(before["bins"], after["bins"]):
            yield column, first, last, {AFTER: after, BEFORE: before}


def paired_distributions(root: str, a: Version, b: Version) -> Iterator[tuple[str, str, tuple[Profile, Profile]]]:
    """Yield each column that both versions have after the same stage, the last of `b` that profiled it.

    A column that has the same values in both is left out, and one that has one value in both.
    """
    for column, stage in sorted(_last_stages(root, b).items()):
        first, second = (_profile(root, version, stage, column) for version in (a, b))
        if first and second and first["kind"] == second["kind"] and _differ(first["bins"], second["bins"]):
            yield stage, column, (first, second)


def is_measure(column: str) -> bool:
    """Return whether a profiled column says something of documents by itself."""
    return not column.startswith(INNER)


def _differ(first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    return first != second and len({*first, *second}) > 1


def _last_stages(root: str, version: Version) -> dict[str, str]:
    """Return the last stage that profiled each column, of those before packing."""
    last: dict[str, str] = {}
    for stage in _stages(root, version):
        if not has_sequences(stage):
            kept = _kept(root, version.manifests[stage])
            last |= {column: stage for column in kept if kept[column]["count"] and is_measure(column)}
    return last


def _stages(root: str, version: Version) -> list[str]:
    return [stage for stage in stages_of(root, version) if is_stage(stage)]


def _profile(root: str, version: Version, stage: str, column: str) -> Profile | None:
    """Return the profile of a column after a stage; None if it has no values there."""
    profile = _kept(root, version.manifests[stage]).get(column) if stage in version.manifests else None
    return profile if profile and profile["count"] else None


def _kept(root: str, referred: str) -> Mapping[str, Profile]:
    """Return the profiles of kept rows of a manifest."""
    return _profiles(root, referred, "kept")


@lru_cache(maxsize=512)
def _profiles(root: str, referred: str, rows: str) -> Mapping[str, Profile]:
    """Return the profiles of kept rows or rejects; a manifest that its reference names by digest never changes."""
    profiles: Mapping[str, Profile] = read_manifest(root, referred).metrics[rows]
    return profiles
