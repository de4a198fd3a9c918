"""Requests of a run from its pre-flight to the last stage: what landed, what came before, and what is refined."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pipeline_tasks.constraints import (
    FieldName,
    Note,
    ObjectPath,
    OptionalPath,
    OptionalSnapshot,
    OptionalUri,
    OptionalWord,
    PlainWord,
    Share,
    SnapshotName,
    Uri,
    Weight,
)
from pipeline_tasks.recipe import LOCAL, Partitions, Versions
from pipeline_tasks.run.request import RefineReply, RefineRequest, Reply, Request, Span
from pipeline_tasks.run.tasks.state_cost import NO_STATES, StateCost


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A stage of a run, with its params as written and the engine that it will run on."""

    stage: PlainWord
    params: Mapping[str, Any]
    engine: PlainWord = LOCAL


class PreflightReply(Reply):
    """What does not end a run, and may be wrong."""

    notes: list[str]


@dataclass(frozen=True, slots=True)
class PreflightRequest(Request[PreflightReply]):
    """Find what would end a run before its first stage; the reply has notes, and faults are raised together.

    `landing` is where the snapshot is, "" for a build. `addresses` are those of the engines. `accept` is as in `land`.
    """

    verb: ClassVar[str] = "preflight"

    root: Uri
    recipe: PlainWord
    steps: tuple[PlannedStep, ...]
    landing: OptionalUri = ""
    snapshot: OptionalSnapshot = ""
    sample: Share = 1.0
    fields: Mapping[str, FieldName] = field(default_factory=dict)
    addresses: Mapping[PlainWord, Note] = field(default_factory=dict)
    accept: Share = 1.0
    run_id: Note = ""


class LandReply(Reply):
    """What landed: `files` and `bytes` are those that are refined, `landed` those that there are.

    `landing` is the folder of the files. `ignored` are no crawl files, `skipped` have a reason, and `missing` were
    promised. `replaces` says which published version of the name came from another folder, "" where none did.
    """

    manifest: str
    snapshot: str
    landing: str
    files: int
    bytes: int
    landed: Mapping[str, int]
    ignored: list[str]
    skipped: list[list[str]]
    missing: list[str]
    replaces: str


@dataclass(frozen=True, slots=True)
class LandRequest(Request[LandReply]):
    """List the snapshot that landed at `input`, or a `sample` of its files, and commit its manifest.

    `fields` are the names of some of `schema.FIELDS` in its JSON lines and tables. `accept` is the share of the
    promised files that has to have landed whole.
    """

    verb: ClassVar[str] = "land"

    root: Uri
    input: Uri
    recipe: OptionalWord = ""
    snapshot: OptionalSnapshot = ""
    sample: Share = 1.0
    fields: Mapping[str, FieldName] = field(default_factory=dict)
    accept: Share = 1.0
    run_id: Note = ""


class ComposeReply(Reply):
    """What a build is made from; `stale` are those of its `snapshots`, and `earlier` names what is compared with."""

    manifest: str
    snapshots: list[str]
    stale: list[str]
    documents: int
    earlier: str


@dataclass(frozen=True, slots=True)
class ComposeRequest(Request[ComposeReply]):
    """Commit the manifest of the versions that the training dataset `recipe` is built from."""

    verb: ClassVar[str] = "compose"

    root: Uri
    recipe: PlainWord
    versions: Versions
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


class HistoryReply(Reply):
    """References of manifests by stage; `earlier` names the object that has them, "" if none was stored."""

    earlier: str
    history: Mapping[str, list[str]]
    previous: Mapping[str, str]
    trailing: Mapping[str, list[str]]
    snapshots: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class HistoryRequest(Request[HistoryReply]):
    """Name the manifests whose history this snapshot of a recipe reads.

    With `landed`, the manifest of the landing, they are also stored beside it in one object, for the tasks of the run.
    """

    verb: ClassVar[str] = "history"

    root: Uri
    recipe: PlainWord
    snapshot: SnapshotName
    run_id: Note = ""
    landed: OptionalPath = ""


class SpansReply(Reply):
    """Spans of shards, [start, stop), each with a name for people."""

    spans: list[list[int]]
    names: list[str]


@dataclass(frozen=True, slots=True)
class SpansRequest(Request[SpansReply]):
    """Cut a manifest's shards into spans of about equal bytes for `stage`, which reads them.

    There are at most `partitions`; with 0, as many as the bytes and the cost of the stage ask for.
    """

    verb: ClassVar[str] = "spans"

    root: Uri
    parent: ObjectPath
    stage: PlainWord
    partitions: Partitions = 0
    recipe: OptionalWord = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class SealRequest(Request[RefineReply]):
    """Concatenate a stage's partitions, one per span, into its manifest; `wall`, `cpu`, `gpu`: their seconds together.

    `states` is what their models took, and `poison` are those of the spans that were quarantined.
    """

    verb: ClassVar[str] = "seal"

    stage: RefineRequest
    spans: tuple[Span, ...]
    poison: tuple[Span, ...] = ()
    wall: Weight = 0.0
    cpu: Weight = 0.0
    gpu: Weight = 0.0
    states: StateCost = NO_STATES

    @property
    def root(self) -> str:
        """The root of the dataset."""
        return self.stage.root


@dataclass(frozen=True, slots=True)
class QuarantineRequest(Request[RefineReply]):
    """Quarantine a partition that failed every try: every row of the span that `stage` names."""

    verb: ClassVar[str] = "quarantine"

    stage: RefineRequest

    @property
    def root(self) -> str:
        """The root of the dataset."""
        return self.stage.root


class RecordReply(Reply):
    """The manifest whose cost is in the ledger."""

    manifest: str


@dataclass(frozen=True, slots=True)
class RecordRequest(Request[RecordReply]):
    """Record in the ledger what a stage cost: its driver on a cluster reaches the root, and maybe not the ledger."""

    verb: ClassVar[str] = "record"

    stage: RefineRequest
    manifest: ObjectPath
    wall: Weight = 0.0
    cpu: Weight = 0.0
    gpu: Weight = 0.0
    states: StateCost = NO_STATES

    @property
    def root(self) -> str:
        """The root of the dataset."""
        return self.stage.root
