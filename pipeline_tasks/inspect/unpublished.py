"""Finds runs that have published nothing: what of them is committed, and where and why they stopped.

The ledger knows for which snapshot a manifest was committed and judged, and why a task failed. The root has the
manifests and verdicts themselves. A ledger may serve several roots: what is not in this root does not count.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, takewhile
from typing import Literal

from pipeline_tasks.cards import is_stage
from pipeline_tasks.errors import GateRefused, RecipeError, RefineryError
from pipeline_tasks.gate.explaining import allowed, explain, number
from pipeline_tasks.gate.verdicts import Verdict, read_verdict
from pipeline_tasks.ledger import Ledger, is_absent, ledger_of, name_in_ledger, recorded_recipes
from pipeline_tasks.ledger.database import Row
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.recipe import COMPOSE, LAND, PUBLISH
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import commit_slot, read_manifest

State = Literal["refused", "failed", "unfinished"]
"""How a run stopped; one that is in progress, or whose process was killed, is `unfinished`."""

EXPORT = "export"
"""The task after `publish`."""

_NEXT: Mapping[State, str] = {
    "refused": (
        "mend the data and run the snapshot again, or let the gate pass with a reason (`--override {stage}=WHY`, or "
        "the form in Airflow)"
    ),
    "failed": (
        "mend what it names, and run the snapshot again (in Airflow: clear the failed task); what is committed is "
        "used again"
    ),
    "unfinished": "wait for it, or run the snapshot again; what is committed is used again",
}


@dataclass(frozen=True)
class UnpublishedRun:
    """The newest run of a snapshot, of which no version was published.

    It stopped at `stage`; of an unfinished run that is the last stage with a manifest. `failure` is the row of the
    ledger on the task that failed for good, `events` are those on manifests and verdicts, in order; `at` is the time
    of the last of them, ISO 8601 in UTC.
    """

    root: str
    recipe: str
    snapshot: str
    state: State
    stage: str
    at: str
    failure: Row | None
    events: Sequence[Row]

    @cached_property
    def manifests(self) -> Mapping[str, str]:
        """The paths of its manifests by stage, each after the one that it was made of."""
        chain = _chain(self.root, self.events)
        if self.failure is None or self.failure["stage"] == PUBLISH:
            return chain
        return _before(chain, self.failure["stage"], judged=self.failure["task"].endswith("gate"))

    @cached_property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The newest verdict of each gate on these manifests, as far as it can be read."""
        paths = set(self.manifests.values())
        newest = {row["stage"]: row["verdict"] for row in self.events if row["verdict"] and row["manifest"] in paths}
        return {gate: verdict for gate, path in newest.items() if (verdict := _verdict(self.root, path))}

    @cached_property
    def refusal(self) -> Verdict | None:
        """The verdict that refuses it; None if none does."""
        refused = [row["verdict"] for row in self.events if row["outcome"] == "refuse" and row["stage"] == self.stage]
        return _verdict(self.root, refused[-1]) if self.state == "refused" and refused else None

    @property
    def where(self) -> str:
        """Where it stopped, and when."""
        when = f"{self.at[:16].replace('T', ' ')} UTC"
        if self.state == "unfinished":
            return f"no stage after {self.stage} is committed ({when})"
        return f"stopped at {self.stage} ({self.state} {when})"

    @property
    def why(self) -> str:
        """Why it stopped, in one line: the bounds that are broken and what a person decided, or the error."""
        if self.state == "unfinished":
            return "its run is in progress, or was interrupted"
        critical = (
            [failure for failure in self.refusal.failures if failure.severity == "critical"] if self.refusal else []
        )
        broken = [f"{failure.column} is {number(failure.observed)}, and {allowed(failure)}" for failure in critical]
        return ". ".join(filter(None, ["; ".join(broken), self.decision])) or f"the gate of {self.stage} refuses"

    @property
    def decision(self) -> str:
        """What a person decided on a refusal, or the error; "" without either."""
        return str(self.failure["message"]) if self.failure else ""

    @property
    def lines(self) -> list[str]:
        """What the refusing gate says of each broken bound; none for another run."""
        return explain(self.refusal.failures, self.refusal.undecided) if self.refusal else []

    @property
    def next_step(self) -> str:
        """What a person does next."""
        return _NEXT[self.state].format(stage=self.stage)

    @property
    def account(self) -> str:
        """Where and why it stopped, in one line."""
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, slots=True)
class Committed:
    """What is committed of a snapshot: its version, and the run that is newer and has published none.

    One of them is None, unless a newer run than that of the version stopped. `unknown` says why it is not known whether
    there is such a run.
    """

    version: Version | None
    run: UnpublishedRun | None
    unknown: str = ""

    @property
    def shown(self) -> Version | UnpublishedRun:
        """The version if there is one, else the run."""
        known = self.version or self.run
        assert known, "one of them is known"
        return known

    @property
    def note(self) -> str:
        """The line on a run that is newer than the version that is shown; "" without one."""
        if self.version and self.run:
            newer = "a newer run of " if self.run.snapshot == self.version.snapshot else ""
            return f"{newer}snapshot {self.run.snapshot} is not published: {self.run.account}"
        return unknown_line(self.unknown)


def unknown_line(why: str) -> str:
    """Return the line on a ledger that cannot be read, "" for none."""
    return f"whether a newer run stopped is not known: {why}" if why else ""


def title_of(shown: Version | UnpublishedRun) -> str:
    """Return a version or a run in words."""
    if isinstance(shown, Version):
        return f"{shown.recipe} version {shown.number}, snapshot {shown.snapshot}"
    return f"{shown.recipe} snapshot {shown.snapshot}, which is not published"


def committed(root: str, recipe: str, snapshot: str = "") -> Committed:
    """Return what is committed of a snapshot of a recipe, or of the newest one; RecipeError if nothing is."""
    runs, unknown = readable_runs(root, recipe, snapshot)
    newest = max(runs.values(), key=lambda run: run.at, default=None)
    try:
        version = version_log.current(root, recipe, snapshot)
    except RecipeError as error:
        if newest is None:
            message = f"{error}. Whether a run stopped is not known: {unknown}"
            raise (RecipeError(message) if unknown else error) from None
        return Committed(None, newest)
    is_newer = newest is not None and (newest.snapshot == version.snapshot or newest.at > version.at)
    return Committed(version, newest if is_newer else None, unknown)


def stopped_runs(root: str, recipe: str = "", snapshot: str = "") -> str:
    """Return where and why the newest runs stopped that published nothing, of all recipes or one; "" without any."""
    names = [recipe] if recipe else recorded_recipes(root)
    runs = [run for name in names for run in readable_runs(root, name, snapshot)[0].values()]
    return "; ".join(f"snapshot {run.snapshot} of recipe {run.recipe} {run.account}; {run.next_step}" for run in runs)


def current_version(root: str, recipe: str, snapshot: str = "") -> Version:
    """Return the newest version of a recipe, or of one snapshot; RecipeError, with the runs that stopped, for none."""
    try:
        return version_log.current(root, recipe, snapshot)
    except RecipeError as error:
        stopped = stopped_runs(root, recipe, snapshot)
        raise (RecipeError(f"{error}. {stopped}") if stopped else error) from None


def say(note: str) -> None:
    """Print a note on stderr, unless it is empty: what a command prints on stdout may be read by a program."""
    if note:
        sys.stderr.write(f"refinery: {note}\n")


def unpublished_runs(root: str, recipe: str, snapshot: str = "") -> dict[str, UnpublishedRun]:
    """Return the newest run of each snapshot of a recipe, or of one, if it is newer than the snapshot's version.

    RefineryError if the ledger cannot be read; a root without one has no such runs.
    """
    dsn = ledger_of(root)
    if is_absent(dsn):
        return {}
    with Ledger.open(dsn) as ledger:
        about = {"recipe": recipe, "snapshot": snapshot}
        events, failures = ledger.query("runs", **about), ledger.query("failures", **about)
    return runs_among(root, recipe, events, failures)


def readable_runs(root: str, recipe: str, snapshot: str = "") -> tuple[dict[str, UnpublishedRun], str]:
    """As `unpublished_runs`, and "" or why the ledger cannot be read: what is published is shown without it, too."""
    try:
        return unpublished_runs(root, recipe, snapshot), ""
    except RefineryError as error:
        return {}, str(error)


def runs_among(root: str, recipe: str, events: Iterable[Row], failures: Iterable[Row]) -> dict[str, UnpublishedRun]:
    """As `unpublished_runs`, given the rows of the ledger's queries `runs` and `failures`."""
    name = name_in_ledger(root)
    failed = {row["snapshot"]: row for row in failures if (row["recipe"], row["root"]) == (recipe, name)}
    own = [row for row in events if row["recipe"] == recipe]
    by_snapshot = {key: list(rows) for key, rows in groupby(own, key=lambda row: str(row["snapshot"]))}
    if not failed and not by_snapshot:
        return {}
    entries: dict[str, list[Version | Retraction]] = {}
    for entry in version_log.log(root, recipe):
        entries.setdefault(entry.snapshot, []).append(entry)
    found = {
        snapshot: _run((root, recipe, snapshot), by_snapshot.get(snapshot, []), failed.get(snapshot), entries)
        for snapshot in sorted({*failed, *by_snapshot})
    }
    return {snapshot: run for snapshot, run in found.items() if run}


def _run(
    named: tuple[str, str, str],
    events: Sequence[Row],
    failure: Row | None,
    entries: Mapping[str, Sequence[Version | Retraction]],
) -> UnpublishedRun | None:
    """Return the newest run of a snapshot; None if it has published what it committed, or is not of this root."""
    root, _, snapshot = named
    known = entries.get(snapshot, ())
    since = known[-1].at if known else ""
    events = _own(root, events, since)
    last = events[-1] if events and events[-1]["recorded_at"] > since else None
    if failure and failure["recorded_at"] <= max(since, last["recorded_at"] if last else ""):
        failure = None
    published = _published(known)
    is_published = last is not None and last["manifest"] in published
    if failure and not (is_published and failure["stage"] in (PUBLISH, EXPORT)):
        state: State = "refused" if failure["error"] == GateRefused.__name__ else "failed"
        return UnpublishedRun(*named, state, failure["stage"], failure["recorded_at"], failure, events)
    if last is None or (is_published and last["outcome"] != "refuse"):
        return None
    state = "refused" if last["outcome"] == "refuse" else "unfinished"
    stage = last["stage"] if state == "refused" else last["manifest"].partition("/")[0]
    return UnpublishedRun(*named, state, stage, last["recorded_at"], None, events)


def _own(root: str, events: Sequence[Row], since: str) -> Sequence[Row]:
    """Return the rows up to the last whose manifest is in this root; those until `since` are not looked at."""
    store, end = storage.connect(root), len(events)
    while end and events[end - 1]["recorded_at"] > since and store.size(events[end - 1]["manifest"]) is None:
        end -= 1
    return events[:end]


def _published(entries: Sequence[Version | Retraction]) -> frozenset[str]:
    """Return the paths of the manifests of a snapshot's last version."""
    versions = [entry for entry in entries if isinstance(entry, Version)]
    return frozenset(path_of(referred) for version in versions[-1:] for referred in version.manifests.values())


def _chain(root: str, events: Sequence[Row]) -> dict[str, str]:
    """Return the manifest that was recorded last and those that it was made of, by stage and the first one first.

    The rows have manifests of earlier runs, too, which had other params or other landed files.
    """
    paths = {row["fingerprint"]: row["manifest"] for row in events if row["fingerprint"]}
    chain: dict[str, str] = {}
    path = events[-1]["manifest"] if events else ""
    while path:
        try:
            manifest = read_manifest(root, path)
        except RecipeError:  # it was vacuumed, or is of another root
            break
        chain[manifest.stage] = path
        parent = next(iter(manifest.parents), "")
        path = paths.get(parent) or _origin(root, parent)
    return dict(reversed(chain.items()))


def _origin(root: str, fingerprint: str) -> str:
    """Return the path of what a run begins with, which no ledger has: a landed snapshot, or a selection of versions."""
    store = storage.connect(root)
    for stage in (LAND, COMPOSE) if fingerprint else ():
        path = commit_slot(store, stage, fingerprint)
        if store.size(path) is not None:
            return path
    return ""


def _before(chain: Mapping[str, str], stage: str, *, judged: bool) -> dict[str, str]:
    """Return the manifests of a chain before a stage, with its own if its gate failed; later ones are of other runs."""
    if not is_stage(stage):  # a task before all stages
        return {}
    before = dict(takewhile(lambda entry: entry[0] != stage, chain.items()))
    return before | ({stage: chain[stage]} if judged and stage in chain else {})


def _verdict(root: str, path: str) -> Verdict | None:
    """Return a verdict, None if it was removed or is damaged: what it says is then not known."""
    try:
        return read_verdict(root, path)
    except RefineryError:
        return None
