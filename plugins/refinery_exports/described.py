"""What every export says of itself: which version in which format, and the card beside its files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.publish.datasets.building import plan_of
from pipeline_tasks.publish.datasets.card import origin
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store.reading import read_manifest

CARD = "README.md"

NO_REJECTS, REASONS, TEXTS = "none", "reasons", "texts"
"""What a format of all rows writes of those that were not kept: nothing, all but their texts, or all of them.

Stages before the one that replaces personal data have rejected texts as they were.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """In which format a version is exported, and how many bytes a shard has (0: as the format has it).

    An export in the root is that of all versions with the same files, and says no number. `rejects` is what a
    format of all rows writes of those that were not kept; in the root it is nothing, as takedowns change which.
    """

    format: str
    shard_bytes: int = 0
    in_root: bool = False
    rejects: str = REASONS


def facts_of_version(version: Version, target: Target) -> dict[str, Any]:
    """Return by what the place of an export knows it again."""
    number = {} if target.in_root else {"version": version.number}
    return {"export": target.format, "recipe": version.recipe, **number}


def made_by(version: Version, target: Target) -> Iterator[str]:
    """Yield the line of a card that says what is exported."""
    number = "" if target.in_root else f"Version {version.number} of the "
    yield from (f"{number or 'The '}training dataset `{version.recipe}`, exported by Refinery.", "")


def configs(files: Mapping[str, str]) -> Iterator[str]:
    """Yield lines for the head of a card: patterns of files by the name under which the hub shows them."""
    yield from (["configs:"] if files else [])
    for shown, pattern in files.items():
        yield from (f"- config_name: {shown}", f"  data_files: {pattern}")


def how_to_read(reading: str) -> Iterator[str]:
    """Yield the section of a card with the program that reads the files."""
    yield from ("## Read it", "", "In this folder:", "", "```python", reading.strip(), "```", "")


def card_of(root: str, versions: Sequence[Version], lines: Sequence[str]) -> bytes:
    """Return a card from its first lines, with what a training dataset was made from; of snapshots, with manifests."""
    return ("\n".join([*lines, *_origin(root, versions)]) + "\n").encode()


def _origin(root: str, versions: Sequence[Version]) -> Iterator[str]:
    by_stage = {stage: read_manifest(root, referred) for stage, referred in versions[0].manifests.items()}
    if COMPOSE in by_stage:
        yield from origin(by_stage[COMPOSE], plan_of(root, by_stage))
        return
    yield from ("## Made from", "")
    for version in versions:
        yield f"- snapshot `{version.snapshot}` of recipe `{version.recipe}`: `{path_of(version.refined)}`"
