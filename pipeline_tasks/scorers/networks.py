"""Says which kinds of networks score and embed texts: extensions bring them, and a file of a folder says its kind."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from pipeline_tasks.scorers.classifier import Classifier
from pipeline_tasks.seams import own_parts

if TYPE_CHECKING:  # each of them asks for networks
    from pipeline_tasks.scorers.embedder import Embedder, EmbeddingModel
    from pipeline_tasks.scorers.scorer import Scorer

SEAM = "refinery.scorers"
"""The seam of networks: each part is a `Network`. Our own extensions alone are asked, as no score's identity names who
brought what read its model."""


@dataclass(frozen=True, slots=True)
class Network:
    """A kind of networks: its name in reports, the file that a folder of it has, and how it is loaded.

    `is_last`: models of other kinds have that file, too, and are asked for first. `is_heavy`: not every machine has
    what loads it, so that a check reads its words and labels alone.
    """

    name: str
    file: str
    scorer: Callable[[Classifier], "Scorer"]
    embedder: Callable[["EmbeddingModel"], "Embedder"]
    is_last: bool = False
    is_heavy: bool = False


@cache
def networks() -> tuple[Network, ...]:
    """Return the kinds of networks, in the order in which a folder is asked for their files."""
    return tuple(sorted((part.load(Network) for part in own_parts(SEAM).values()), key=lambda each: each.is_last))


def known_files(own: str) -> str:
    """Return the files that say of which kind a folder is, as messages name them: those of networks, and our `own`."""
    return ", ".join([*(f"{network.file} ({network.name})" for network in networks()), own])


def network_of(files: Collection[str]) -> Network | None:
    """Return the kind of network that a folder with these files has, None if it has none."""
    return next((network for network in networks() if network.file in files), None)
