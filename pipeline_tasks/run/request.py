"""What a request is: one object that says what to do, and whose type says what the reply has.

Requests and replies travel as JSON between processes. The types of replies exist for the type checker alone, which
follows a key from the worker that writes it to the task and the page that read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    NotRequired,
    Protocol,
    TypedDict,
    TypeVar,
    runtime_checkable,
)

from pipeline_tasks.constraints import (
    Count,
    Note,
    ObjectPath,
    OptionalPath,
    OptionalSnapshot,
    OptionalUri,
    OptionalWord,
    PlainWord,
    Range,
    Uri,
    Weight,
)
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.recipe import LOCAL, ErrorBudget, Resources

ReplyT = TypeVar("ReplyT")


class Request(Generic[ReplyT]):
    """What all requests have; `ReplyT` is the type of the reply."""

    __slots__ = ()

    verb: ClassVar[str]

    if TYPE_CHECKING:  # at run time it would be the default of the dataclasses' own field

        @property
        def root(self) -> str:
            """The root of the dataset."""


@runtime_checkable
class OnEngine(Protocol):
    """A request whose work runs on an engine, at an address that the sender fills in ("" is this machine)."""

    @property
    def engine(self) -> str:
        """The engine."""

    @property
    def address(self) -> str:
        """Its address."""


class Reply(TypedDict):
    """What any reply may have: `s3_waits` are requests that were sent again as S3 was busy, and their seconds."""

    s3_waits: NotRequired[Mapping[str, Any]]


class LoggedReply(Reply):
    """A reply whose `lines` say to people what was done: the task logs them, and takes them out of the reply."""

    lines: NotRequired[list[str]]


LoggedT = TypeVar("LoggedT", bound=LoggedReply)


def rows_due(reply: Mapping[str, Any]) -> int:
    """Return the rows that a reply of a stage accounts for: those that came in, and their offspring."""
    due: int = reply["rows_in"] + reply.get("offspring_in", 0)
    return due


class RefineReply(Reply):
    """Where the rows of a stage went, or those of one span of it.

    `manifest` is a reference. `rejected` and `quarantined` are rows by reason; `ran` and `reused` are partitions.
    `wall`, `cpu` and `gpu` are seconds; `states` is what models took. `idle` names what had nothing to work with.
    `offspring_in` are generated texts of the rows that came in: each became a row.
    `tokenizer` is the pin of the dataset's tokenizer. `poison` are partitions that failed every try, `times` the
    seconds of partitions: tasks add both.
    """

    manifest: str
    rows_in: int
    rows: int
    rejected: Mapping[str, int]
    quarantined: Mapping[str, int]
    bytes: int
    tokens: int
    ran: int
    reused: int
    history_reads: Mapping[str, int]
    wall: float
    cpu: float
    gpu: float
    states: Mapping[str, Any]
    idle: list[str]
    offspring_in: NotRequired[int]
    tokenizer: NotRequired[str]
    poison: NotRequired[list[dict[str, str]]]
    times: NotRequired[Mapping[str, Any]]


Span = tuple[Count, Count]
"""Shards [start, stop) of a manifest."""


@dataclass(frozen=True, slots=True)
class RefineRequest(Request[RefineReply]):
    """Run a stage over its input, or over one span of its shards.

    `root`, `stage`, `params`, `parent` and `history` decide the output: `parent` and `history` are references of
    manifests (`path@sha256:digest`, relative to `root`; a path alone is not checked), and `history` lists this
    stage's manifests of earlier snapshots, oldest first; in its place `earlier` may name the object that has them. The
    rest decides how to run and is not part of identity. `landing` is the folder of the snapshot's landed files;
    `recipe`, `snapshot` and `run_id` name the run that the request belongs to. `model_hours` are the most that the
    stage's model may have for this parent, 0 for no bound.
    """

    verb: ClassVar[str] = "refine"

    root: Uri
    stage: PlainWord
    params: Mapping[str, Any]
    parent: ObjectPath
    history: tuple[ObjectPath, ...] = ()
    landing: OptionalUri = ""
    span: Span | None = None
    error_budget: ErrorBudget = field(default_factory=ErrorBudget)
    batch_rows: Annotated[int, Range(1, 1 << 20)] = 4096
    engine: PlainWord = LOCAL
    address: Note = ""
    resources: Resources = field(default_factory=Resources)
    recipe: OptionalWord = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""
    earlier: OptionalPath = ""
    model_hours: Weight = 0.0

    def __post_init__(self) -> None:
        """Raise RecipeError for a span that runs backwards; the only span of a parent without shards is [0, 0]."""
        if self.span and self.span[0] > self.span[1]:
            message = f"span {list(self.span)} runs backwards; its start must not be above its stop"
            raise RecipeError(message)
