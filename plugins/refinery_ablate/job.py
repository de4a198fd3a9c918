"""A comparison as a folder: its plan, and the runs that it needs; a run's result is written last and once.

The folder is all that a machine for training needs besides the arms: the plan, the held-out documents, and one folder
for each run with its state and its result.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Protocol

from pipeline_tasks.errors import ContractError
from refinery_ablate.sizes import size_of

PLAN, HELD_OUT, RESULT = "plan.json", "held-out.npz", "result.json"

ARMS = ("a", "b")


WIDTHS = 64
"""Vocabularies are as wide as a multiple of it: matrices of such widths are multiplied faster."""


def widened(entries: int) -> int:
    """Return the width of a vocabulary with so many entries."""
    return -(-entries // WIDTHS) * WIDTHS


@dataclass(frozen=True, slots=True)
class Arm:
    """A training dataset: its name for people, where it is, and what it has."""

    name: str
    uri: str
    digest: str
    tokens: int
    sequences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """How each model of a folder is trained: its size, the tokens of a run, and how often the end is scored.

    `length` is that of sequences in tokens. `eos` and `vocabulary` are those of the tokenizer, `held_out` is the digest
    of the held-out documents. `threads` are those of torch on a CPU: sums follow from them.
    """

    size: str
    tokens: int
    length: int
    vocabulary: int
    eos: int
    held_out: str
    scored: int = 3
    threads: int = 2

    @property
    def batch(self) -> int:
        """The sequences of a step."""
        return max(size_of(self.size).batch_tokens // self.length, 1)

    @property
    def steps(self) -> int:
        """The steps of a run."""
        return max(self.tokens // (self.batch * self.length), 1)

    def body(self) -> bytes:
        """Return the plan as JSON."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode() + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(TrainingPlan):
    """What a comparison trains: both arms for the same tokens, with each rate and seed."""

    arms: tuple[Arm, ...]
    rates: tuple[float, ...]
    seeds: tuple[int, ...]


class Model(Protocol):
    """One run: the name of its folder, its peak learning rate and its seed."""

    @property
    def name(self) -> str:
        """The name of its folder."""

    @property
    def rate(self) -> float:
        """The peak of its learning rate."""

    @property
    def seed(self) -> int:
        """What decides its first weights and the order of its data."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: the number of its arm, its rate and its seed."""

    arm: int
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{ascii_lowercase[self.arm]}-rate{self.rate:g}-seed{self.seed}"


def jobs_of(plan: Plan) -> Iterator[Job]:
    """Yield the runs of a plan: first all of the first arm, from which follows what the comparison can see."""
    for arm in range(len(plan.arms)):
        for rate in plan.rates:
            for seed in plan.seeds:
                yield Job(arm, rate, seed)


def read_plan(folder: Path) -> Plan:
    """Return the plan of a folder; ContractError for another file."""
    try:
        raw = json.loads((folder / PLAN).read_bytes())
        arms = tuple(Arm(**arm) for arm in raw.pop("arms"))
        sequences: dict[str, Any] = {name: tuple(raw.pop(name)) for name in ("rates", "seeds")}
        return Plan(arms=arms, **sequences, **raw)
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{folder / PLAN} is no plan of a comparison ({str(error)[:100]}); name another folder"
        raise ContractError(message) from error


def runs_of(jobs: Iterable[Job], *, first: bool) -> list[str]:
    """Return the names of those of the first arm, or of all others."""
    return [job.name for job in jobs if (job.arm == 0) == first]


def unfinished(folder: Path, plan: Plan) -> list[Job]:
    """Return the runs that have no result yet."""
    return [job for job in jobs_of(plan) if not (folder / job.name / RESULT).exists()]


def read_result(folder: Path, job: Model) -> dict[str, Any]:
    """Return the result of a run; ContractError for a broken one."""
    path = folder / job.name / RESULT
    try:
        result: dict[str, Any] = json.loads(path.read_bytes())
        assert isinstance(result["bits"], list)
    except (ValueError, KeyError, AssertionError, TypeError) as error:
        message = f"{path} is no result of a run; remove its folder, and run the same command again"
        raise ContractError(message) from error
    return result
