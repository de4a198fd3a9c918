"""What a request is: one object that says what to do, and whose type says what the reply has.

Requests and replies travel as JSON between processes. The types of replies exist for the type checker alone, which
follows a key from the worker that writes it to the task and the page that read it.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NotRequired, TypedDict, TypeVar

ReplyT = TypeVar("ReplyT")


class Request(Generic[ReplyT]):
    """What all requests have; `ReplyT` is the type of the reply."""

    __slots__ = ()

    verb: ClassVar[str]

    if TYPE_CHECKING:  # at run time it would be the default of the dataclasses' own field

        @property
        def root(self) -> str:
            """The root of the dataset."""


class Reply(TypedDict):
    """What any reply may have: `s3_waits` are requests that were sent again as S3 was busy, and their seconds."""

    s3_waits: NotRequired[Mapping[str, Any]]


class LoggedReply(Reply):
    """A reply whose `lines` say to people what was done: the task logs them, and takes them out of the reply."""

    lines: NotRequired[list[str]]


LoggedT = TypeVar("LoggedT", bound=LoggedReply)


class RefineReply(Reply):
    """Where the rows of a stage went, or those of one span of it.

    `manifest` is a reference. `rejected` and `quarantined` are rows by reason; `ran` and `reused` are partitions.
    `wall`, `cpu` and `gpu` are seconds; `states` is what models took. `idle` names what had nothing to work with.
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
    tokenizer: NotRequired[str]
    poison: NotRequired[list[dict[str, str]]]
    times: NotRequired[Mapping[str, Any]]
