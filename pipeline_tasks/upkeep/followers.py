"""Has what keeps copies of published documents, such as a store of vectors, follow what is published."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from pipeline_tasks.seams import all_parts

SEAM = "refinery.followers"
"""The seam of followers: each of its parts is a `Follower`."""


@dataclass(frozen=True, slots=True)
class Follower:
    """What has copies of published documents, in its `folder` of a root unless the environment names another place.

    `folder` is "" if it has none, as a catalog, which has a `name` instead. `follow` removes from them what left a
    root, and yields a line for a person of each that it looked at. `hindered` says why this machine cannot do so, "" if
    it can, or has nothing to do.
    """

    folder: str
    follow: Callable[[str], Iterator[str]]
    hindered: Callable[[str], str]
    name: str = ""


@cache
def followers() -> tuple[Follower, ...]:
    """Return the followers that are installed here."""
    return tuple(part.load(Follower) for part in all_parts(SEAM).values())


def follower_prefixes() -> tuple[str, ...]:
    """Return the prefixes of what followers have below a root."""
    return tuple(f"{each.folder}/" for each in followers() if each.folder)


def follow(root: str) -> Iterator[str]:
    """Have every follower of a root follow, as documents may have left; yield their lines."""
    for each in followers():
        yield from each.follow(root)
