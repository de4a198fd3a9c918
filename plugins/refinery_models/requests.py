"""Requests of a model of the quality of texts: its training, its check, its publication."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pipeline_tasks.constraints import PLACE, FieldName, Note, ObjectPath, OptionalUri, PlainWord, Positive, Seed, Uri
from pipeline_tasks.run.request import LoggedReply, Request


class TrainModelReply(LoggedReply):
    """The stored model, the report of its training, its digest, and the label that it scores."""

    model: str
    training: str
    digest: str
    label: str


@dataclass(frozen=True, slots=True)
class TrainModelRequest(Request[TrainModelReply]):
    """Train a model of likeness to `positives`, and store it below the root with its report; nothing is published.

    Texts are files of records, `ROOT`, `ROOT@SNAPSHOT` or `ROOT@RECIPE:SNAPSHOT`; with no root the request's own.
    Without `negatives` the others are nonsense that is made of the positives. `against` is the model to compare with;
    "" is the one of this name that was published last. At most `texts` are read of each side, drawn by `seed`.
    """

    verb: ClassVar[str] = "train_model"

    root: Uri
    name: PlainWord
    positives: tuple[Uri, ...]
    negatives: tuple[Uri, ...] = ()
    embeddings: OptionalUri = ""
    against: Annotated[Note, PLACE] = ""
    texts: Positive = 50_000
    seed: Seed = 1
    run_id: Note = ""


class CheckModelReply(LoggedReply):
    """The report of the check, and its outcome."""

    check: str
    outcome: str


@dataclass(frozen=True, slots=True)
class CheckModelRequest(Request[CheckModelReply]):
    """Check a stored model on a `sample`; GateRefused if the check refuses it, unless `accepted` has a reason."""

    verb: ClassVar[str] = "check_model"

    root: Uri
    name: PlainWord
    model: ObjectPath
    label: FieldName
    sample: tuple[Uri, ...]
    texts: Positive = 2_000
    seed: Seed = 1
    accepted: Note = ""
    run_id: Note = ""


class PublishModelReply(LoggedReply):
    """The entry of the log of models."""

    number: int
    name: str
    model: str
    digest: str
    kind: str
    label: str
    training: str
    check: str


@dataclass(frozen=True, slots=True)
class PublishModelRequest(Request[PublishModelReply]):
    """Publish a stored model with the reports of its training and of its check, which may not refuse it."""

    verb: ClassVar[str] = "publish_model"

    root: Uri
    name: PlainWord
    model: ObjectPath
    training: ObjectPath
    check: ObjectPath
    accepted: Note = ""
    run_id: Note = ""
