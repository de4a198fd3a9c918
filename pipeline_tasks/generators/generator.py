"""What a generator is, and which kind a recipe asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from pipeline_tasks.constraints import OMITTED, Note, Positive, Ratio
from pipeline_tasks.stage import NO_FILE, FilePath

SEAM = "refinery.generators"
"""The seam of kinds of generators."""

Stop = Literal["stop", "length", "too_long", "refused", "error"]
"""Why a text ends (`stop`: the model ended it; `length`: it had `max_tokens`), or why there is none."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. A temperature of 0 is greedy: no seed decides then."""

    temperature: float = 0.0
    top_p: Ratio = 1.0
    max_tokens: Positive = 1024


@dataclass(frozen=True, slots=True)
class Model:
    """Which generator writes: its `kind` (a part of the seam), and the model.

    `model` is a folder or file on this machine, whose digest is identity. A server has no file: `name` is what it calls
    the model, and `revision` says which one that is (a commit, a digest): identity takes these at their word. Where the
    server is, the operator says, and no recipe. `license` is that of a model that has no card.
    """

    kind: str = "transformers"
    model: FilePath = NO_FILE
    name: str = ""
    revision: str = ""
    license: Note = field(default="", metadata={OMITTED: ""})


class Request(NamedTuple):
    """What a model is to answer: a system message ("" for none), what the user says, and the seed of this request."""

    system: str
    user: str
    seed: int


def plain_prompt(request: Request) -> str:
    """Return what a model without a template for chats goes on with."""
    return "\n\n".join(part for part in (request.system, request.user) if part) + "\n\n"


class Written(NamedTuple):
    """What a model wrote: the text, None where there is none, why it ends there, and the tokens read and written."""

    text: str | None
    stop: Stop
    tokens_in: int
    tokens_out: int
    detail: str = ""


class Generator(Protocol):
    """A loaded model, or a connection to a server. One thread uses it at a time.

    What it writes for a request follows from that request, the model and the sampling alone: never from its neighbors,
    their order or number.
    """

    hardware: str
    """What computes: `cpu`, the name of a GPU, or what a server says of itself."""
    name: str
    """The model: its name, `@`, and 16 hex digits of its digest."""
    license: str
    """As the model's card says; "" if it says none."""

    def write(self, requests: Sequence[Request]) -> Iterator[tuple[int, Written]]:
        """Yield the place of each request with what was written, as soon as it is there, in any order.

        A request that the model cannot read (too long) or refuses costs itself alone. Transient if the server or the
        machine failed: what was yielded before stays.
        """
