"""Answers what is asked first of a snapshot: what is left, why the rest is not, its health, and what has changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.gate.judging import Failure
from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.inspect.diff import Diff, compare
from pipeline_tasks.inspect.diff.stages import Shift
from pipeline_tasks.inspect.funnel import funnel
from pipeline_tasks.inspect.report.distributions import is_measure
from pipeline_tasks.inspect.report.judged_bounds import bounded_facts
from pipeline_tasks.plots.room import BoundedFact
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LAND

REASONS_SHOWN = 9
"""Reasons that are listed, the most frequent; the table of stages has all."""

FINDINGS_SHOWN = 4
"""Findings of gates that are listed, the worst first."""

CHANGES_SHOWN = 3
"""Reasons and columns that are listed of those that changed, the largest change first."""

LEAST_CHANGE = 0.001
"""Change of a reason's share of the records from which on it is listed."""

Steps = Sequence[Mapping[str, Any]]
"""The entries of `inspect.funnel`."""


@dataclass(frozen=True, slots=True)
class RankedReason:
    """A reason of a stage, its rows, and their share of the records that landed."""

    stage: str
    reason: str
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Balance:
    """The records that came in, and what became of each of them; `reasons` has the most frequent first.

    `offspring` are generated texts, which became rows of their own, and `generated` those of the documents that are.
    """

    records: int
    documents: int
    rejected: int
    quarantined: int
    reasons: Sequence[RankedReason]
    offspring: int = 0
    generated: int = 0

    @property
    def is_conserved(self) -> bool:
        """Return whether every record is accounted for."""
        return self.records + self.offspring == self.documents + self.rejected + self.quarantined

    @property
    def share(self) -> float | None:
        """The share of the records that are left; None without records."""
        return (self.documents - self.generated) / self.records if self.records else None

    @property
    def shown(self) -> Sequence[RankedReason]:
        """The reasons that are listed."""
        return self.reasons[:REASONS_SHOWN]


@dataclass(frozen=True, slots=True)
class GateFinding:
    """What a gate found: a bound that is broken or undecided, and the address of its Data Docs below the root."""

    gate: str
    outcome: str
    failure: Failure
    docs: str


@dataclass(frozen=True, slots=True)
class Health:
    """What the gates said: how many passed of all, what they found, and the fact with the least room to its bound.

    `overridden` are the gates that a person let pass, with the reason.
    """

    gates: int
    passed: int
    findings: Sequence[GateFinding]
    overridden: Mapping[str, str]
    nearest: BoundedFact | None

    @property
    def shown(self) -> Sequence[GateFinding]:
        """The findings that are listed."""
        return self.findings[:FINDINGS_SHOWN]


@dataclass(frozen=True, slots=True)
class ChangedReason:
    """A reason of a stage, and its share of the records of the earlier snapshot and of this one."""

    stage: str
    reason: str
    before: float
    now: float

    @property
    def change(self) -> float:
        """The difference of both shares."""
        return self.now - self.before


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from the snapshot before: its balance, reasons, and columns whose distribution surely shifted."""

    before: Version
    balance: Balance
    reasons: Sequence[ChangedReason]
    shifts: Sequence[Shift]
    settings: int


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers on one screen; `changes` is None of a first snapshot."""

    balance: Balance
    health: Health
    changes: Changes | None


def answers_of(
    root: str, version: Version, steps: Steps, verdicts: Mapping[str, Verdict], before: Version | None
) -> Answers:
    """Return the answers about a version, read from manifests and verdicts alone."""
    balance = balance_of(steps)
    changes = _changes(root, balance, before, version) if before else None
    return Answers(balance, health_of(version.recipe, verdicts), changes)


def balance_of(steps: Steps) -> Balance:
    """Return what became of the records that came into the first stage."""
    records = steps[0]["rows_in"] if steps else 0
    reasons = sorted(_reasons(steps, records), key=lambda reason: (-reason.rows, reason.reason))
    rejected, quarantined = (sum(sum(step[kind].values()) for step in steps) for kind in ("rejected", "quarantined"))
    documents, generated = (steps[-1]["rows"], steps[-1]["generated"]) if steps else (0, 0)
    offspring = sum(step["offspring_in"] for step in steps)
    return Balance(records, documents, rejected, quarantined, reasons, offspring, generated)


def _reasons(steps: Steps, records: int) -> Iterator[RankedReason]:
    for step in steps:
        for reason, rows in (*step["rejected"].items(), *step["quarantined"].items()):
            yield RankedReason(step["stage"], reason, rows, rows / records if records else 0.0)


def health_of(recipe: str, verdicts: Mapping[str, Verdict]) -> Health:
    """Return what the gates found: violations that refuse first, then warnings, then what few rows leave open."""
    findings = [
        GateFinding(gate, "refuse" if failure.severity == "critical" else "warn", failure, verdict.page)
        for gate, verdict in verdicts.items()
        for failure in verdict.failures
    ]
    findings.sort(key=lambda finding: finding.outcome)
    findings += [
        GateFinding(gate, "undecided", failure, verdict.page)
        for gate, verdict in verdicts.items()
        for failure in verdict.undecided
    ]
    met = [fact for fact in bounded_facts(recipe, verdicts) if fact.finding == "met" and fact.has_scale]
    return Health(
        gates=len(verdicts),
        passed=sum(verdict.outcome == "pass" for verdict in verdicts.values()),
        findings=findings,
        overridden={gate: verdict.override for gate, verdict in verdicts.items() if verdict.override},
        nearest=min(met, key=lambda fact: fact.room, default=None),
    )


def _changes(root: str, balance: Balance, before: Version, version: Version) -> Changes:
    earlier, diff = balance_of(funnel(root, before)), compare(root, before, version)
    sure = [shift for shift in diff.shifts if shift.is_sure]
    shifted = [shift for shift in sure if is_measure(shift.column)]
    changed = _changed_reasons(earlier, balance)
    return Changes(before, earlier, changed[:CHANGES_SHOWN], shifted[:CHANGES_SHOWN], _settings(diff))


def _settings(diff: Diff) -> int:
    """Return how many settings differ, but what is another for each snapshot: its name, its files and its history."""
    names = [setting.setting for stage in diff.stages if stage.stage != LAND for setting in stage.differences]
    return sum(name.startswith(("params", "resources")) or name == "version" for name in names)


def _changed_reasons(before: Balance, now: Balance) -> list[ChangedReason]:
    """Return the reasons whose share of the records changed, the largest change first."""
    sides = [{(each.stage, each.reason): each.share for each in balance.reasons} for balance in (before, now)]
    names = sorted({*sides[0], *sides[1]})
    reasons = [ChangedReason(*name, *(side.get(name, 0.0) for side in sides)) for name in names]
    changed = [reason for reason in reasons if abs(reason.change) >= LEAST_CHANGE]
    return sorted(changed, key=lambda reason: -abs(reason.change))
