"""Gives the state of every snapshot of a recipe from the root and its ledger, by few reads: one summary a version."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pipeline_tasks.inspect.unpublished import UnpublishedRun, runs_among
from pipeline_tasks.inspect.versions.late_files import lacked_files, lacked_line, late_files, late_line
from pipeline_tasks.inspect.versions.staleness import stale_among
from pipeline_tasks.ledger import Ledger, ledger_of
from pipeline_tasks.ledger.database import Row
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.report.summary import Summary, read_summary

State = Literal["published", "approved", "partial", "stale", "retracted", "refused", "failed", "unfinished"]
"""What the root and its ledger say of a snapshot: `approved` is published after a person let a refused gate pass.

`partial` is published without partitions that failed every try. The last three are of a run that published nothing.
"""


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The state of a snapshot and what to do next ("" if nothing); `version` and `summary` are of its newest version.

    `versions` counts those that were published, `cost` is in dollars by the ledger's prices. `run` is a run that is
    newer than the version, or the only one, and has published nothing; beside a version its next step is its own.
    """

    snapshot: str
    state: State
    next_step: str = ""
    version: Version | None = None
    summary: Summary | None = None
    versions: int = 0
    cost: float | None = None
    run: UnpublishedRun | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """The snapshots of a recipe in order, with those that are not published; `builds` is whether they are builds."""

    recipe: str
    snapshots: tuple[SnapshotState, ...]
    builds: bool = False

    @property
    def published(self) -> list[SnapshotState]:
        """The snapshots that have a version in the dataset."""
        return [snapshot for snapshot in self.snapshots if snapshot.version]

    @property
    def stages(self) -> list[str]:
        """The stages of the newest published snapshot."""
        newest = self.published[-1].summary if self.published else None
        return [stage.stage for stage in newest.stages] if newest else []


Costs = Mapping[int, Mapping[str, Any]]
"""Rows of the ledger's query `cost_of_tokens`, by version number."""

_QUERIES = ("cost_of_tokens", "runs", "failures")

_Records = Mapping[str, Sequence[Row]]
"""The rows of the ledger by these queries."""


def overviews(root: str) -> list[Overview]:
    """Return the overview of every recipe that has published into `root`, or has a run in its ledger."""
    with Ledger.open(ledger_of(root)) as ledger:
        records = {name: ledger.query(name) for name in _QUERIES}
    published = version_log.recipes(root)
    run = {row["recipe"] for name in ("runs", "failures") for row in records[name]}
    names = published + sorted(run - {*published, ""})
    return [overview for name in names if (overview := _overview(root, name, records)).snapshots]


def overview_of(root: str, recipe: str) -> Overview:
    """Return the overview of one recipe; the summaries of others are not read."""
    with Ledger.open(ledger_of(root)) as ledger:
        return _overview(root, recipe, {name: ledger.query(name, recipe=recipe) for name in _QUERIES})


def _overview(root: str, recipe: str, records: _Records) -> Overview:
    entries = version_log.log(root, recipe)
    newest = dict(sorted({entry.snapshot: entry for entry in entries}.items()))
    numbers = {row["number"]: row for row in records["cost_of_tokens"] if row["recipe"] == recipe}
    known = _published(root, entries, [entry for entry in newest.values() if isinstance(entry, Version)], numbers)
    known += [_retracted(root, entry) for entry in newest.values() if isinstance(entry, Retraction)]
    runs = runs_among(root, recipe, records["runs"], records["failures"])
    known = [replace(state, run=runs.get(state.snapshot)) for state in known]
    known += [
        SnapshotState(name, run.state, run.next_step, run=run) for name, run in runs.items() if name not in newest
    ]
    builds = any(COMPOSE in state.version.manifests for state in known if state.version)
    return Overview(recipe, tuple(sorted(known, key=lambda state: state.snapshot)), builds)


def _published(
    root: str, entries: Sequence[Version | Retraction], live: Sequence[Version], costs: Costs
) -> list[SnapshotState]:
    """Return the states of the versions of the dataset, one per snapshot and in order."""
    summaries = {version.number: read_summary(root, version) for version in live}
    numbers = Counter(entry.snapshot for entry in entries if isinstance(entry, Version))
    stale = {version.version.number: version.stage for version in stale_among(live, summaries)}
    late, lacked = late_files(root, live), lacked_files(root, live)
    return [
        SnapshotState(
            snapshot=version.snapshot,
            state=_state_of(summaries[version.number], stale.get(version.number, "")),
            next_step=_next_step(
                summaries[version.number],
                stale.get(version.number, ""),
                late.get(version.snapshot, ()),
                lacked.get(version.snapshot, ()),
            ),
            version=version,
            summary=summaries[version.number],
            versions=numbers[version.snapshot],
            cost=costs.get(version.number, {}).get("cost_usd"),
        )
        for version in live
    ]


def _state_of(summary: Summary, stale: str) -> State:
    if summary.partial:
        return "partial"
    return "stale" if stale else "approved" if summary.overrides else "published"


def _next_step(summary: Summary, stale: str, late: Sequence[str], lacked: Sequence[str]) -> str:
    steps = [f"run it again: earlier snapshots changed since, which {stale} reads"] if stale else []
    steps += [lacked_line(lacked)] if lacked else []
    steps += [late_line(late)] if late else []
    if lacking := summary.lacking:
        steps.insert(0, f"{lacking} failed with their partitions: mend what their tasks' logs name, and run it again")
    return "; ".join(steps)


def _retracted(root: str, entry: Retraction) -> SnapshotState:
    undo = f"`refinery retract --undo {entry.snapshot} {root} --recipe {entry.recipe}` publishes it again"
    return SnapshotState(entry.snapshot, "retracted", f"{entry.account}; {undo}", versions=len(entry.retracts))
