"""A mixture search as a folder: its plan, and the proxies of each round; later rounds are added behind.

A proxy is a model that is trained on one mixture: whole sequences of each group, so that shares are exact.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import ContractError
from refinery_ablate.job import RESULT, TrainingPlan

SEARCH = "search.json"

Kind = Literal["prior", "without", "sampled", "found"]
"""Of a proxy: the prior (repeated, for the noise), the prior without a group, a sampled mixture, or the found one."""

PRIOR: Kind = "prior"
WITHOUT: Kind = "without"
SAMPLED: Kind = "sampled"
FOUND: Kind = "found"

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of documents: what a mixture weighs.

    `members` are the groups of `mix` that it is made of, each with its tokens: several where small ones are joined.
    `tokens` are those of all its documents, and `pooled` the sequences of them that proxies may take. `most` sequences
    of it may be in a proxy. `prior` is its share in the mixture that is to be beaten.
    """

    name: str
    members: Mapping[str, int]
    pooled: int
    most: int
    prior: float

    @property
    def tokens(self) -> int:
        """The tokens of all its documents."""
        return sum(self.members.values())


@dataclass(frozen=True, slots=True)
class Proxy:
    """One run: its number, which is its seed, too; its round; and the sequences that it takes of each group."""

    number: int
    kind: Kind
    round: int
    rate: float
    sequences: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"proxy-{self.number:04d}"

    @property
    def seed(self) -> int:
        """What decides its first weights and the order of its data."""
        return self.number

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """The share of each group."""
        return np.array(self.sequences, np.float64) / sum(self.sequences)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asks for; a folder has one search, of which only `rounds` may grow.

    `dataset` is ROOT/NAME@VERSION, and `prefix` where that version is in its root. Groups are the values of `by`, with
    `bands` cut at these bounds. `budget` are the tokens of the training that the weights are for, and no group may be
    used more than `max_epochs` times in it. Groups below the share `least` of all tokens are joined. `prior` are
    weights by group, none for those of the dataset. `mixtures` are those of the first round.
    """

    dataset: str
    prefix: str
    by: str
    bands: tuple[float, ...]
    sets: tuple[str, ...]
    prior: Mapping[str, float]
    budget: int
    max_epochs: float
    least: float
    mixtures: int
    rounds: int
    seeds: int
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(TrainingPlan):
    """What is trained: groups, and the proxies of all rounds that were planned so far.

    `pool` is the digest of the tokens for proxies. `left_out` are groups that have no sequence for them.
    """

    asked: Asked
    groups: tuple[Group, ...]
    left_out: tuple[str, ...]
    pool: str
    proxies: tuple[Proxy, ...]

    @property
    def sequences(self) -> int:
        """The sequences of a run."""
        return self.steps * self.batch

    @property
    def prior(self) -> npt.NDArray[np.float64]:
        """The share of each group in the mixture that is to be beaten."""
        return np.array([group.prior for group in self.groups])

    @property
    def most(self) -> Counts:
        """The sequences of each group that a proxy may have."""
        return np.array([group.most for group in self.groups], np.int64)

    @property
    def rate(self) -> float:
        """The learning rate that trains well."""
        return max(self.asked.rates)

    def of_kind(self, *kinds: str) -> list[Proxy]:
        """Return the proxies of some kinds."""
        return [proxy for proxy in self.proxies if proxy.kind in kinds]


def write_search(folder: Path, search: Search) -> None:
    """Write a search under another name, and rename it: there is a whole one at any moment."""
    temporary = folder / f"{SEARCH}.tmp"
    temporary.write_bytes(search.body())
    temporary.replace(folder / SEARCH)


def read_search(folder: Path) -> Search:
    """Return the search of a folder; ContractError for another file."""
    path = folder / SEARCH
    try:
        raw: dict[str, Any] = json.loads(path.read_bytes())
        asked = raw.pop("asked")
        asked |= {name: tuple(asked[name]) for name in ("bands", "sets", "rates")}
        groups, left_out = tuple(Group(**group) for group in raw.pop("groups")), tuple(raw.pop("left_out"))
        proxies = (Proxy(**proxy | {"sequences": tuple(proxy["sequences"])}) for proxy in raw.pop("proxies"))
        return Search(asked=Asked(**asked), groups=groups, left_out=left_out, proxies=tuple(proxies), **raw)
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is no plan of a mixture search ({str(error)[:100]}); name another folder"
        raise ContractError(message) from error


def untrained(folder: Path, search: Search, kinds: Sequence[str] = ()) -> list[Proxy]:
    """Return the proxies, of some kinds or of all, that have no result yet."""
    proxies = search.of_kind(*kinds) if kinds else search.proxies
    return [proxy for proxy in proxies if not (folder / proxy.name / RESULT).exists()]
