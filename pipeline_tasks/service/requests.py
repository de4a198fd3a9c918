"""Requests: what the worker daemon, the command line, the plugins and `python -m pipeline_tasks` send.

A request is one of these types within a process, and JSON between processes (`encode`, `decode`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Union

from pipeline_tasks import errors
from pipeline_tasks.ablate.sizes import SMOKE
from pipeline_tasks.binding import bind_fields, shown
from pipeline_tasks.constraints import (
    Count,
    FieldName,
    Note,
    ObjectPath,
    OptionalPath,
    OptionalSnapshot,
    OptionalUri,
    OptionalWord,
    PlainWord,
    Positive,
    Ratio,
    Seed,
    Share,
    SnapshotName,
    Uri,
    Weight,
)
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.recipe import LOCAL, EngineWord, Partitions, Requirement, ShardBytes, Versions
from pipeline_tasks.run.plan import RefineRequest, Span
from pipeline_tasks.run.state_cost import NO_STATES, StateCost

Reply = dict[str, Any]
"""A reply is JSON."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A stage of a run, with its params as written and the engine that it will run on."""

    stage: PlainWord
    params: Mapping[str, Any]
    engine: EngineWord = LOCAL


@dataclass(frozen=True, slots=True)
class PreflightRequest:
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


@dataclass(frozen=True, slots=True)
class LandRequest:
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


@dataclass(frozen=True, slots=True)
class ComposeRequest:
    """Commit the manifest of the versions that the training dataset `recipe` is built from."""

    verb: ClassVar[str] = "compose"

    root: Uri
    recipe: PlainWord
    versions: Versions
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Name the manifests whose history this snapshot of a recipe reads.

    With `landed`, the manifest of the landing, they are also stored beside it in one object, for the tasks of the run.
    """

    verb: ClassVar[str] = "history"

    root: Uri
    recipe: PlainWord
    snapshot: SnapshotName
    run_id: Note = ""
    landed: OptionalPath = ""


@dataclass(frozen=True, slots=True)
class SpansRequest:
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
class SealRequest:
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
class QuarantineRequest:
    """Quarantine a partition that failed every try: every row of the span that `stage` names."""

    verb: ClassVar[str] = "quarantine"

    stage: RefineRequest

    @property
    def root(self) -> str:
        """The root of the dataset."""
        return self.stage.root


@dataclass(frozen=True, slots=True)
class RecordRequest:
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


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Check a manifest by the stage's gate; `previous` is the previous snapshot's manifest of the same stage.

    `trailing` are those of the last snapshots, in order. In place of both, `earlier` may name the object that has them.
    """

    verb: ClassVar[str] = "judge"

    root: Uri
    manifest: ObjectPath
    previous: OptionalPath = ""
    trailing: tuple[ObjectPath, ...] = ()
    earlier: OptionalPath = ""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    override: Note = ""
    recipe: OptionalWord = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class JudgeSnapshotRequest:
    """Check a snapshot from what landed to what would be published; `manifests` are those of its stages.

    `trailing` are those of the last published snapshots, in order; in its place `earlier` may name the object that has
    them.
    """

    verb: ClassVar[str] = "judge_snapshot"

    root: Uri
    manifests: Mapping[str, ObjectPath]
    trailing: tuple[Mapping[str, ObjectPath], ...] = ()
    earlier: OptionalPath = ""
    bounds: Mapping[str, Any] = field(default_factory=dict)
    override: Note = ""
    recipe: OptionalWord = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class JudgeRecipeRequest:
    """Check that the ablations of the root say of a recipe what it requires, before its first stage.

    `manifest` is that of the landing or the composition. `steps` are those of the recipe, with the params of this run.
    """

    verb: ClassVar[str] = "judge_recipe"

    root: Uri
    recipe: PlainWord
    manifest: ObjectPath
    steps: tuple[PlannedStep, ...]
    requires: Requirement
    override: Note = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """Make a dataset version of a snapshot's manifests, `land`'s included, and of their verdicts, by stage.

    Manifests with one of `compose` make a version of a training dataset.
    """

    verb: ClassVar[str] = "publish"

    root: Uri
    recipe: PlainWord
    snapshot: SnapshotName
    manifests: Mapping[str, ObjectPath]
    verdicts: Mapping[str, OptionalPath] = field(default_factory=dict)
    landing: OptionalUri = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Export a version of the training dataset `recipe` in formats of other trainers, each with the bytes of a shard.

    The files are kept in the root, below the version's own.
    """

    verb: ClassVar[str] = "export"

    root: Uri
    recipe: PlainWord
    version: Count
    exports: Mapping[str, ShardBytes]
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """Bring the store of vectors in line with what a recipe has published, or every store that there is ("").

    Of a named snapshot the map is made, too, if there is none.
    `store` is its folder or prefix; "" is that of the root.
    """

    verb: ClassVar[str] = "index"

    root: Uri
    recipe: OptionalWord = ""
    store: OptionalUri = ""
    snapshot: OptionalSnapshot = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """Merge the history of many snapshots."""

    verb: ClassVar[str] = "compact"

    root: Uri
    engine: EngineWord = LOCAL
    address: Note = ""


@dataclass(frozen=True, slots=True)
class VacuumRequest:
    """List what no manifest names, or `delete` it: `grace` and `expire` are seconds, `limit` a share of all bytes."""

    verb: ClassVar[str] = "vacuum"

    root: Uri
    grace: Weight
    expire: Weight
    limit: Ratio
    delete: bool = False


@dataclass(frozen=True, slots=True)
class RetentionRequest:
    """List what the `policy` of retention asks for, by its name or the path of its YAML, or `apply` it."""

    verb: ClassVar[str] = "retention"

    root: Uri
    policy: Uri
    apply: bool = False
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """Verify everything that is published; `full` reads every byte."""

    verb: ClassVar[str] = "verify"

    root: Uri
    full: bool = False


@dataclass(frozen=True, slots=True)
class TrainModelRequest:
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
    against: Note = ""
    texts: Positive = 50_000
    seed: Seed = 1
    run_id: Note = ""

    @property
    def read(self) -> tuple[str, ...]:
        """What is read besides the root."""
        return (*self.positives, *self.negatives, self.embeddings, self.against)


@dataclass(frozen=True, slots=True)
class CheckModelRequest:
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

    @property
    def read(self) -> tuple[str, ...]:
        """What is read besides the root."""
        return self.sample


@dataclass(frozen=True, slots=True)
class PublishModelRequest:
    """Publish a stored model with the reports of its training and of its check, which may not refuse it."""

    verb: ClassVar[str] = "publish_model"

    root: Uri
    name: PlainWord
    model: ObjectPath
    training: ObjectPath
    check: ObjectPath
    accepted: Note = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class PlanAblationRequest:
    """Make the arms of a comparison, and write its plan; what is made already is found.

    Two `recipes` refine the landed snapshots of `inputs`; or two `datasets`, ROOT/NAME@VERSION, are the arms.
    `held_out` are files of documents, and `folder` is where the comparison is. `tokens` are those of a run (0: those of
    the smaller arm), `rates` learning rates (none: those of the size). `require` and `override` are those of `refinery
    ablate`: what is wrong with them is said now. The reply has the names of the `runs` of the first arm.
    """

    verb: ClassVar[str] = "plan_ablation"

    root: Uri
    folder: Uri
    held_out: tuple[Uri, ...]
    recipes: tuple[Uri, ...] = ()
    datasets: tuple[Uri, ...] = ()
    inputs: tuple[Uri, ...] = ()
    size: PlainWord = SMOKE
    tokens: Count = 0
    seeds: Positive = 3
    rates: tuple[Share, ...] = ()
    threads: Positive = 2
    require: OptionalWord = ""
    override: Note = ""
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class ForecastAblationRequest:
    """Say by the runs of the first arm what a comparison can see, and what it costs; the reply names the other `runs`.

    `wanted` is a difference to see, in bits per byte (0: half of what is seen).
    """

    verb: ClassVar[str] = "forecast_ablation"

    root: Uri
    folder: Uri
    wanted: Weight = 0.0
    usd_per_hour: Weight = 0.0
    run_id: Note = ""


@dataclass(frozen=True, slots=True)
class JudgeAblationRequest:
    """Judge a comparison whose runs have ended, and record the verdict in the root, and in the roots of its arms.

    GateRefused for a verdict that is not what is required, unless it is overridden.
    """

    verb: ClassVar[str] = "judge_ablation"

    root: Uri
    folder: Uri
    require: OptionalWord = ""
    override: Note = ""
    usd_per_hour: Weight = 0.0
    run_id: Note = ""


Request = Union[  # noqa: UP007 -- `get_args` lists its members
    PreflightRequest,
    LandRequest,
    ComposeRequest,
    HistoryRequest,
    SpansRequest,
    RefineRequest,
    SealRequest,
    QuarantineRequest,
    RecordRequest,
    JudgeRequest,
    JudgeSnapshotRequest,
    JudgeRecipeRequest,
    PublishRequest,
    ExportRequest,
    IndexRequest,
    CompactRequest,
    VacuumRequest,
    RetentionRequest,
    VerifyRequest,
    TrainModelRequest,
    CheckModelRequest,
    PublishModelRequest,
    PlanAblationRequest,
    ForecastAblationRequest,
    JudgeAblationRequest,
]

REQUESTS: Mapping[str, type[Request]] = {kind.verb: kind for kind in Request.__args__}  # type: ignore[attr-defined]
"""The type of each verb's request."""


def encode(request: Request) -> dict[str, Any]:
    """Return a request as JSON: its fields, and its verb."""
    return {"verb": request.verb, **asdict(request)}


def decode(raw: object) -> Request:
    """Return the request that JSON describes; RecipeError for an unknown verb, or a wrong or missing field."""
    if not isinstance(raw, dict):
        message = f"{json.dumps(raw)[:100]} is not a JSON object; a request is an object with a verb"
        raise RecipeError(message)
    verb = str(raw.get("verb"))
    if verb not in REQUESTS:
        message = f"unknown verb {shown(verb)}; a request's verb is one of {', '.join(REQUESTS)}"
        raise RecipeError(message)
    written = {name: value for name, value in raw.items() if name != "verb"}
    return bind_fields(REQUESTS[verb], written, f"the request to {verb}")


def raise_refusal(reply: Mapping[str, Any], unknown: type[Exception] = RefineryError) -> None:
    """Raise the error that a reply reports, as the class it was raised as; as `unknown` if that is not one of ours."""
    if "error" in reply:
        name, message = str(reply["error"]), str(reply["message"])
        kind = getattr(errors, name, None)
        raise kind(message) if kind else unknown(f"{name}: {message}")
