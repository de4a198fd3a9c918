"""Names the files of published snapshots that came, or grew, after these were refined."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.landing.landed import is_sample, missing_of
from pipeline_tasks.landing.listing import list_snapshot, missing_line
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LAND
from pipeline_tasks.stage import LANDING, WHOLE
from pipeline_tasks.store.reading import read_manifest

LOOKED = 16
"""The newest snapshots that are looked at: what comes later than weeks is another snapshot, and each is a listing."""

NAMED = 5
"""Files that a line names."""


def late_files(root: str, versions: Sequence[Version]) -> dict[str, list[str]]:
    """Return the files, by snapshot, that the newest of these versions did not read and that a rerun would.

    A snapshot whose landing is gone, or cannot be listed from here, has none, and neither has a trial.
    """
    newest = sorted(versions, key=lambda version: version.snapshot)[-LOOKED:]
    with ThreadPoolExecutor(LOOKED) as pool:
        found = pool.map(lambda version: _late(root, version), newest)
        return {version.snapshot: names for version, names in zip(newest, found, strict=True) if names}


def late_line(names: Sequence[str]) -> str:
    """Return what to do about the late files of a snapshot."""
    more = f" and {counted(len(names) - NAMED, 'other')}" if len(names) > NAMED else ""
    files = f"{counted(len(names), 'file')} came after it was refined ({', '.join(names[:NAMED])}{more})"
    return f"{files}: run it again, which takes {'it' if len(names) == 1 else 'them'}"


def lacked_files(root: str, versions: Sequence[Version]) -> dict[str, tuple[str, ...]]:
    """Return the promised files, by snapshot, that the newest of these versions were refined without."""
    newest = sorted(versions, key=lambda version: version.snapshot)[-LOOKED:]
    landed = [(version.snapshot, version.manifests[LAND]) for version in newest if LAND in version.manifests]
    lacked = {snapshot: _landed(root, manifest).missing for snapshot, manifest in landed}
    return {snapshot: names for snapshot, names in lacked.items() if names}


def lacked_line(names: Sequence[str]) -> str:
    """Return what a version was refined without, and what to do."""
    return f"{counted(len(names), 'promised file')} {missing_line(names)}; when they have landed, run it again"


def _late(root: str, version: Version) -> list[str]:
    if LAND not in version.manifests:
        return []
    try:
        landed = _landed(root, version.manifests[LAND])
        if landed.is_sample:
            return []  # what a trial leaves out came before it
        read = landed.files
        is_folder = version.landing.rstrip("/").endswith(f"/{version.snapshot}")
        if len(read) == 1 and not is_folder:
            return []  # the input may have been that file, and its neighbors be others'
        files = list_snapshot(version.landing, version.snapshot, accept=0.0).files
    except (RefineryError, OSError):
        return []
    return sorted(name for name, size, _ in files if read.get(name, -1) < size)


@dataclass(frozen=True, slots=True)
class _Landed:
    """The bytes of each landed file that was read, infinite for one that was read in pieces, and files that lacked.

    `is_sample` is whether a trial left files out.
    """

    files: Mapping[str, float]
    missing: tuple[str, ...]
    is_sample: bool


@lru_cache(maxsize=4 * LOOKED)
def _landed(root: str, landed: str) -> _Landed:
    """Return what the manifest of a landing has: a page that is shown again reads it once.

    `landed` refers to a manifest by its digest, which never changes.
    """
    manifest = read_manifest(root, landed)
    sizes = {
        shard.path.removeprefix(LANDING): float(shard.bytes) if shard.start == WHOLE else math.inf
        for shard in manifest.shards
    }
    return _Landed(sizes, missing_of(manifest), is_sample(manifest))
