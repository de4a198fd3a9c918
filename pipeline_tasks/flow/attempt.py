"""What a task knows while it works: its run, its try, and how its requests are answered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

from pipeline_tasks.recipe import BUILD, trial_of
from pipeline_tasks.run.request import ReplyT, Request


class Part(TypedDict):
    """What one task of the next stage reads: a manifest's reference, and the span of its shards (None: all of them)."""

    manifest: str
    span: list[int] | None
    name: str
    of: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where its snapshot lands, the root of its dataset, and how it runs; a build has no snapshot or input.

    `partitions` is 0 for as many as the recipe says. `engines` maps stages to engines that differ from the
    recipe's; `override` maps stages to the reason why a person lets a refused gate pass. `patience` is how
    many hours to wait for the snapshot; with 0 an absent snapshot is an error. `settling` is for how many minutes a
    snapshot without a list of its files must not change before it is whole. `approval` is how many hours a refused
    gate waits for a person; with 0 it refuses at once. `sample` is the share of the landed bytes that a trial reads.
    `text_field` is the name of the text in JSON lines and tables, "" for that of the recipe. `accept` is the share of
    the promised files that has to have landed whole. `mixture` are params of the stage that plans it, and
    `snapshots` names or patterns, that a build has in place of the recipe's.
    """

    input: str
    root: str
    snapshot: str
    partitions: int
    engines: Mapping[str, str]
    override: Mapping[str, str]
    patience: float
    approval: float
    sample: float = 1.0
    text_field: str = ""
    settling: float = 0.0
    accept: float = 1.0
    mixture: Mapping[str, Any] = field(default_factory=dict)
    snapshots: tuple[str, ...] = ()

    @property
    def is_trial(self) -> bool:
        """Return whether the run reads a sample, so that what it publishes is no version of the dataset."""
        return self.sample < 1

    def dataset(self, recipe: str) -> str:
        """Return the name of the dataset that it publishes into: of the recipe, or of its trials."""
        return trial_of(recipe) if self.is_trial else recipe


class Send(Protocol):
    """Sends a request to where it is handled, and returns the reply; a refusal is raised as its own class."""

    def __call__(self, request: Request[ReplyT]) -> ReplyT:
        """Return the reply to a request."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try of a task: the run, the recipe and the task that it is of; `index` is that of its part, -1 without one.

    `push` keeps a value under a key for the tasks behind this one, beside what it returns.
    """

    run: Run
    run_id: str
    recipe: str
    task: str
    send: Send
    push: Callable[[str, Any], None]
    index: int = -1
    number: int = 1

    @property
    def dataset(self) -> str:
        """The name of the dataset that the run publishes into."""
        return self.run.dataset(self.recipe)

    @property
    def about(self) -> dict[str, Any]:
        """The fields of every request: root, recipe, snapshot (`BUILD` without one) and run id."""
        snapshot = self.run.snapshot or BUILD
        return {"root": self.run.root, "recipe": self.dataset, "snapshot": snapshot, "run_id": self.run_id}

    @property
    def data(self) -> str:
        """In words what the run makes: a snapshot, or a training dataset."""
        run = self.run
        return f"snapshot {run.snapshot} of recipe {self.dataset}" if run.snapshot else f"dataset {self.recipe}"
