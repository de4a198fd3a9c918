"""Requests to judge: a stage, a snapshot, or a recipe; each reply is a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NotRequired

from pipeline_tasks.constraints import Note, ObjectPath, OptionalPath, OptionalSnapshot, OptionalWord, PlainWord, Uri
from pipeline_tasks.recipe import Requirement
from pipeline_tasks.run.request import Reply, Request
from pipeline_tasks.service.requests.stages import PlannedStep


class JudgeReply(Reply):
    """A verdict: `outcome` is pass, warn or refuse, `lines` says it to people, and `verdict` is its reference.

    `docs` is the path of its page. `spending` is what the stage and those before it cost. A snapshot's has `facts`.
    """

    outcome: str
    failures: list[dict[str, Any]]
    lines: list[str]
    verdict: str
    docs: str
    spending: Mapping[str, Any]
    facts: NotRequired[Mapping[str, float | None]]


@dataclass(frozen=True, slots=True)
class JudgeRequest(Request[JudgeReply]):
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
class JudgeSnapshotRequest(Request[JudgeReply]):
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
class JudgeRecipeRequest(Request[JudgeReply]):
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
