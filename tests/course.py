"""Takes a snapshot or a build through a recipe by the requests that its tasks make, step by step: for tests and benchmarks.

Runs go by `flow.loop`, which asks every gate; here stages run alone, with other params, or without gates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipeline_tasks.errors import GateRefused, RecipeError
from pipeline_tasks.recipe import BUILD, COMPOSE, LAND, LOCAL, PUBLISH, VERDICT, Recipe, Versions
from pipeline_tasks.run.request import RefineRequest, Request
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.gates import JudgeRecipeRequest, JudgeRequest, JudgeSnapshotRequest
from pipeline_tasks.service.requests.publication import PublishRequest
from pipeline_tasks.service.requests.stages import (
    ComposeRequest,
    HistoryRequest,
    LandRequest,
    PlannedStep,
)
from pipeline_tasks.service.requests.wire import Wire
from pipeline_tasks.service.work.earlier import Earlier, read_earlier

Send = Callable[[Request[Any]], Wire]
"""Handles a request."""


class Begun(NamedTuple):
    """What a course begins with: `stage` is `land` or `compose`, `manifest` its reference, `landing` its files."""

    stage: str
    manifest: str
    snapshot: str
    landing: str = ""
    earlier: Earlier = Earlier()


class Made(NamedTuple):
    """References of manifests and of verdicts, by stage and gate."""

    manifests: dict[str, str]
    verdicts: dict[str, str]


@dataclass(frozen=True, slots=True)
class Course:
    """A recipe over one snapshot, or over the versions that it builds from.

    Stages run whole, on `engine` at `address`. `override` says by gate why that is to let pass what it refuses; None
    asks no gate.
    """

    root: str
    recipe: Recipe
    send: Send = handle
    engine: str = LOCAL
    address: str = ""
    override: Mapping[str, str] | None = field(default_factory=dict)

    def _planned(self) -> tuple[PlannedStep, ...]:
        return tuple(PlannedStep(step.stage, step.params, self.engine) for step in self.recipe.steps)

    def landed(self, landing: str, snapshot: str = "") -> Begun:
        """Land a snapshot, and name what earlier ones of the recipe left for it."""
        recipe = self.recipe
        how: Mapping[str, Any] = {"fields": recipe.fields, "accept": recipe.accept_partial}
        landed = self.send(LandRequest(self.root, landing, recipe.name, snapshot, **how))
        return self.begun(landed)

    def begun(self, landed: Mapping[str, str]) -> Begun:
        """Return what a course begins with, by the reply of a landing."""
        snapshot = landed["snapshot"]
        left = self.send(HistoryRequest(self.root, self.recipe.name, snapshot))
        history = {stage: tuple(manifests) for stage, manifests in left["history"].items()}
        return Begun(LAND, landed["manifest"], snapshot, landed["landing"], Earlier(history, tuple(left["snapshots"])))

    def composed(self) -> Begun:
        """Compose the versions that the recipe builds from."""
        reply = self.send(ComposeRequest(self.root, self.recipe.name, self._versions(), BUILD))
        return Begun(COMPOSE, reply["manifest"], BUILD, earlier=read_earlier(self.root, reply["earlier"]))

    def _versions(self) -> Versions:
        """Return what the recipe builds from; RecipeError for one that refines a snapshot."""
        if self.recipe.versions is None:
            message = f"recipe {self.recipe.name} refines a snapshot; a build has `versions`"
            raise RecipeError(message)
        return self.recipe.versions

    def stages(self, begun: Begun) -> Made:
        """Refine by every stage, each judged by its gate."""
        made = Made({begun.stage: begun.manifest}, {})
        if self.recipe.requires and self.override is not None:
            made.verdicts[VERDICT] = self._required(begun)
        parent = begun.manifest
        for step in self.recipe.steps:
            stage = step.stage
            request = RefineRequest(
                root=self.root,
                stage=stage,
                params=dict(step.params),
                parent=parent,
                history=tuple(begun.earlier.history.get(stage, ())),
                landing=begun.landing,
                error_budget=self.recipe.error_budget,
                engine=self.engine,
                address=self.address,
                resources=step.resources,
                recipe=self.recipe.name,
                snapshot=begun.snapshot,
            )
            parent = made.manifests[stage] = self.send(request)["manifest"]
            if self.override is not None:
                made.verdicts[stage] = self._judged(stage, self._gate(begun, stage, parent))
        return made

    def _gate(self, begun: Begun, stage: str, manifest: str) -> JudgeRequest:
        return JudgeRequest(
            root=self.root,
            manifest=manifest,
            previous=begun.earlier.previous.get(stage, ""),
            trailing=tuple(begun.earlier.trailing.get(stage, ())),
            bounds=self.recipe.gates.get(stage, {}),
            override=self._why(stage),
            recipe=self.recipe.name,
            snapshot=begun.snapshot,
        )

    def _required(self, begun: Begun) -> str:
        """Return the verdict of models on the recipe."""
        assert self.recipe.requires
        request = JudgeRecipeRequest(
            root=self.root,
            recipe=self.recipe.name,
            manifest=begun.manifest,
            steps=self._planned(),
            requires=self.recipe.requires,
            override=self._why(VERDICT),
            snapshot=begun.snapshot,
        )
        return self._judged(VERDICT, request)

    def publish(self, begun: Begun, made: Made) -> None:
        """Publish what was made, a snapshot behind its own gate."""
        about = {"root": self.root, "recipe": self.recipe.name, "snapshot": begun.snapshot}
        verdicts = dict(made.verdicts)
        if begun.stage == LAND and self.override is not None:
            judged = JudgeSnapshotRequest(
                manifests={stage: manifest for stage, manifest in made.manifests.items() if stage != LAND},
                trailing=begun.earlier.snapshots,
                bounds=self.recipe.gates.get(PUBLISH, {}),
                override=self._why(PUBLISH),
                **about,
            )
            verdicts[PUBLISH] = self._judged(PUBLISH, judged)
        self.send(PublishRequest(manifests=made.manifests, verdicts=verdicts, landing=begun.landing, **about))

    def _why(self, gate: str) -> str:
        return (self.override or {}).get(gate, "")

    def _judged(self, gate: str, request: JudgeRequest | JudgeSnapshotRequest | JudgeRecipeRequest) -> str:
        """Return the reference of the verdict; GateRefused, with the bounds that are broken, if the gate refuses."""
        verdict = self.send(request)
        if verdict["outcome"] == "refuse":
            way_out = (
                f"Look at {verdict['docs']} in {self.root}. If it is right, run again with a reason in "
                f'`override={{"{gate}": "..."}}`'
            )
            lines = [f"the gate of {gate} refuses {self.recipe.name}", *verdict["lines"], way_out]
            raise GateRefused("\n".join(lines))
        path: str = verdict["verdict"]
        return path
