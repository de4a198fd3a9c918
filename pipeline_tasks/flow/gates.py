"""The gates of a run: of a stage, of the whole snapshot, of the recipe; and what a refusal says."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, Protocol

from pipeline_tasks.alerts.alert import Alert
from pipeline_tasks.alerts.stages import Spending, stage_alerts
from pipeline_tasks.alerts.verdicts import gate_warned
from pipeline_tasks.cards import plans_mixture
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import GateRefused
from pipeline_tasks.flow.attempt import Attempt, Part
from pipeline_tasks.flow.lines import log, log_verdict
from pipeline_tasks.flow.work import earlier_of, parts_of
from pipeline_tasks.recipe import PUBLISH, VERDICT, AlertLimits, Requirement
from pipeline_tasks.run.request import RefineReply, rows_due
from pipeline_tasks.sealed import path_of
from pipeline_tasks.service.requests.gates import JudgeRecipeRequest, JudgeReply, JudgeRequest, JudgeSnapshotRequest
from pipeline_tasks.service.requests.stages import PlannedStep

REMOVED = ("rejected", "quarantined")
"""What a stage's reply counts by reason."""

MOST_REASONS = 20
"""Reasons whose rows the form counts, the most frequent ones; the manifest's page has all."""

WIDTH = 100
"""Columns of a line of the log."""


class Refusal(GateRefused):
    """A gate's refusal, or a person's, which its gate has sent; `decision` is what a person decided, "" for nobody."""

    def __init__(self, text: str, decision: str = "") -> None:
        super().__init__(text)
        self.decision = decision


@dataclass(frozen=True, slots=True)
class Review:
    """What a person decides on: the gate, what it refuses, the lines of its verdict, and what would pass.

    `subject` is what is refused, as the log names it; `data` is whose it is, in words. `passing` are the rows that go
    on if it is approved, by name; `pages` are the addresses of pages that show more, by title. `docs` is the path of
    the Data Docs below the root. None has text of a record: who may look at the DAG may read the form.
    """

    gate: str
    subject: str
    data: str
    lines: Sequence[str]
    docs: str
    passing: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)


class Gate(Protocol):
    """What each kind of gate has of its own."""

    def judge(self, at: Attempt, override: str = "") -> JudgeReply:
        """Return the verdict, under the run's override unless another is given."""

    def review(self, at: Attempt, verdict: JudgeReply) -> Review:
        """Return what a person decides on."""

    def alerts(self, verdict: JudgeReply) -> Iterable[Alert]:
        """Return the alerts of what was judged, beside those of the verdict; an error must wait for their use."""

    def end(self, at: Attempt, verdict: JudgeReply) -> object:
        """Return what the task returns when the gate lets pass."""


@dataclass(frozen=True, slots=True)
class StageGate:
    """Checks the manifest by the stage's expectations; passes it on to the next stage, or refuses it."""

    stage: str
    step: Mapping[str, Any]
    landed: Mapping[str, Any]
    refined: RefineReply
    next_cut: Mapping[str, Any]

    def judge(self, at: Attempt, override: str = "") -> JudgeReply:
        """Return the verdict on the manifest, under the run's override unless another is given."""
        request = JudgeRequest(
            manifest=self.refined["manifest"],
            **earlier_of(
                self.landed,
                previous=lambda then: then["previous"].get(self.stage, ""),
                trailing=lambda then: tuple(then["trailing"].get(self.stage, ())),
            ),
            bounds=self.step["bounds"],
            override=override or at.run.override.get(self.stage, ""),
            **at.about,
        )
        verdict = at.send(request)
        log_verdict(at, self.stage, verdict)
        return verdict

    def review(self, at: Attempt, verdict: JudgeReply) -> Review:
        """Return what a person decides on: the rows that the stage kept and rejected."""
        return Review(
            gate=self.stage,
            subject=path_of(self.refined["manifest"]),
            data=at.data,
            lines=verdict["lines"],
            docs=verdict["docs"],
            passing=rows_of(self.refined),
        )

    def alerts(self, verdict: JudgeReply) -> Iterator[Alert]:
        """Yield the alerts of the stage: its errors, its time, its cost."""
        limits, spending = AlertLimits(**self.step["alerts"]), Spending(**verdict.get("spending", {}))
        yield from stage_alerts(limits, self.stage, self.refined, spending)

    def end(self, at: Attempt, verdict: JudgeReply) -> list[Part]:
        """Return the parts of the next stage."""
        return parts_of(at, self.refined["manifest"], verdict["verdict"], self.next_cut)


@dataclass(frozen=True, slots=True)
class SnapshotGate:
    """Checks the snapshot from what landed to what would be published; no override of a stage lets it pass."""

    landed: Mapping[str, Any]
    gates: Mapping[str, Sequence[Part]]
    bounds: Mapping[str, Any]

    def judge(self, at: Attempt, override: str = "") -> JudgeReply:
        """Return the verdict on the snapshot, under the run's override unless another is given."""
        request = JudgeSnapshotRequest(
            manifests={stage: parts[0]["manifest"] for stage, parts in self.gates.items()},
            **earlier_of(self.landed, trailing=lambda then: tuple(then.get("snapshots", ()))),
            bounds=self.bounds,
            override=override or at.run.override.get(PUBLISH, ""),
            **at.about,
        )
        verdict = at.send(request)
        log_verdict(at, PUBLISH, verdict)
        return verdict

    def review(self, at: Attempt, verdict: JudgeReply) -> Review:
        """Return what a person decides on: the facts of the snapshot."""
        return Review(
            gate=PUBLISH,
            subject=f"snapshot {at.run.snapshot}",
            data=at.data,
            lines=verdict["lines"],
            docs=verdict["docs"],
            passing={name: f"{value:,.6g}" for name, value in verdict["facts"].items() if value is not None},
        )

    def alerts(self, _verdict: JudgeReply) -> Iterable[Alert]:
        """Return none: what a snapshot's stages took, their own gates have sent."""
        return ()

    def end(self, _at: Attempt, verdict: JudgeReply) -> str:
        """Return the path of the verdict."""
        return verdict["verdict"]


@dataclass(frozen=True, slots=True)
class RecipeGate:
    """Checks that trained models say of the recipe what it requires, before its first stage; passes the parts on.

    A trial is not asked: what it publishes is no version of the dataset.
    """

    requires: Mapping[str, str]
    steps: Sequence[Mapping[str, Any]]
    landed: Mapping[str, Any]
    parts_in: Sequence[Part]

    def judge(self, at: Attempt, override: str = "") -> JudgeReply:
        """Return the verdict on the recipe as this run has it, under the run's override unless another is given."""
        if at.run.is_trial:
            log.info("%s gate  a trial needs no verdict of models", VERDICT)
            return {"outcome": "pass", "failures": [], "lines": [], "docs": "", "verdict": "", "spending": {}}
        chosen = at.run.mixture
        request = JudgeRecipeRequest(
            manifest=self.landed["manifest"],
            steps=tuple(
                PlannedStep(step["stage"], {**step["params"], **(chosen if plans_mixture(step["stage"]) else {})})
                for step in self.steps
            ),
            requires=Requirement(**self.requires),
            override=override or at.run.override.get(VERDICT, ""),
            **at.about,
        )
        verdict = at.send(request)
        log_verdict(at, VERDICT, verdict)
        return verdict

    def review(self, at: Attempt, verdict: JudgeReply) -> Review:
        """Return what a person decides on: what is known of the recipe."""
        subject = f"recipe {at.recipe}"
        return Review(gate=VERDICT, subject=subject, data=at.data, lines=verdict["lines"], docs=verdict["docs"])

    def alerts(self, _verdict: JudgeReply) -> Iterable[Alert]:
        """Return none: no stage has run."""
        return ()

    def end(self, at: Attempt, verdict: JudgeReply) -> list[Part]:
        """Push the verdict for `publish`; return the parts of the first stage."""
        at.push(VERDICT, verdict["verdict"])
        return list(self.parts_in)


def warnings_of(review: Review, verdict: JudgeReply) -> list[Alert]:
    """Return the alert of a gate that lets pass and warns: a bound is broken, and not just undecided by few rows."""
    warns = verdict["outcome"] == "warn" and verdict["failures"]
    return [gate_warned(review.gate, review.data, review.lines)] if warns else []


def rows_of(reply: Mapping[str, Any]) -> dict[str, str]:
    """Return what a stage's reply says of its rows, by name: kept, and rejected or quarantined by reason."""
    removed = Counter({f"{name}, {reason}": rows for name in REMOVED for reason, rows in reply[name].items()})
    shown = {name: f"{rows:,}" for name, rows in removed.most_common(MOST_REASONS)}
    rest = removed.total() - sum(removed[name] for name in shown)
    kept = {"kept": f"{reply['rows']:,} of {counted(rows_due(reply), 'row')}"}
    return kept | shown | ({"removed for other reasons": f"{rest:,}"} if rest else {})


def refusal_text(review: Review, decision: str = "") -> str:
    """Return the lines of a refusal: what is out of bounds, what a person decided, and the way out."""
    gate, again = review.gate, "; or clear this task, and approve it" if decision else ""
    way_out = [
        f"Look at {review.docs} in the root.",
        f"If the data is as it should be, run again with --override {gate}=WHY. In Airflow, trigger the",
        f"DAG with {gate} under Gates to accept, and a reason{again}.",
    ]
    decided = wrap(decision, WIDTH, break_long_words=False)
    return "\n".join([f"the gate of {gate} refuses {review.subject}", *review.lines, *decided, *way_out])
