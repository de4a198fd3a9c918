"""Finds the snapshots that have landed and are to be refined, and those that are to be refined again."""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from pipeline_tasks.alerts.backlog import Backlog, backlog_alert, backlog_of
from pipeline_tasks.alerts.sent import harmless
from pipeline_tasks.constraints import SNAPSHOT_NAME
from pipeline_tasks.landing.arrival import COMPLETE, arrival_of
from pipeline_tasks.landing.listing import PROMISE
from pipeline_tasks.stage import LANDING
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import Store
from refinery_airflow.alerts.alerts import send
from refinery_airflow.runs.credentials import adopt_credentials
from refinery_airflow.tasks.wiring import asset_of

if TYPE_CHECKING:
    from pipeline_tasks.publish.logs.version_log import Version

log = logging.getLogger("refinery")

BACKLOG = "backlog"
"""What the key of the XCom begins with that says which backlog was sent, and when."""

AGAIN = 86_000.0
"""Seconds after which the same backlog is sent again: a day, less the time between two looks."""

MOST_FILES = 1000
"""Files that are looked at for when a snapshot landed."""

Start = dict[str, Any]
"""The arguments of the operator that starts a run."""


class Look(BaseOperator):  # type: ignore[misc]  # loaded lazily: Any
    """Returns the runs to start, each DAG's in the order of snapshots; `dags` are recipes by the ids of their DAGs.

    `backlog` are the hours, by recipe, after which an alert says that a snapshot is not published. `accept` are the
    shares, by recipe, of the promised files that have to have landed whole: all, where nothing is said. `rollouts` are
    the DAGs, by recipe, that are started for what has landed in place of its own.
    """

    def __init__(
        self,
        *,
        dags: Mapping[str, str],
        backlog: Mapping[str, float],
        accept: Mapping[str, float] | None = None,
        rollouts: Mapping[str, str] | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.dags, self.backlog, self.accept = dict(dags), dict(backlog), dict(accept or {})
        self.rollouts = dict(rollouts or {})

    def execute(self, context: Context) -> list[Start]:
        """Look at what has landed (with the param `stale`: is published) for each DAG that is not paused."""
        params = context["params"]
        adopt_credentials(params["landing"], params["root"])
        starts: list[Start] = []
        for dag_id, recipe in self.dags.items():
            if context["ti"].get_dag(dag_id).is_paused:
                log.info("%s is paused: what has landed is not refined by it until you unpause it", dag_id)
            elif params["stale"]:
                starts += stale_starts(dag_id, recipe, params["root"], context["dag_run"].run_id)
            else:
                names, started = self.unseen(context, dag_id, recipe), self.rollouts.get(recipe, dag_id)
                starts += [
                    start
                    for name in names
                    for start in landed_start(started, name, params, self.accept.get(recipe, 1.0))
                ]
                with harmless("arrivals", "whether files came late is unknown"):
                    log_late(dag_id, recipe, params["root"])
                with harmless("alert", "whether there is a backlog is unknown"):
                    self.send_backlog(context, recipe, time.time())
        return starts

    def send_backlog(self, context: Context, recipe: str, now: float) -> None:
        """Send an alert of the oldest snapshot that is not published in time, once a day."""
        backlog = backlog_now(context["params"]["landing"], context["params"]["root"], recipe, now)
        alert = backlog_alert(recipe, backlog, self.backlog[recipe], now)
        if alert is None:
            return
        key, task = f"{BACKLOG}_{recipe}", context["ti"]
        last = task.xcom_pull(task_ids=self.task_id, key=key, include_prior_dates=True)
        if last and last["headline"] == alert.headline and now - last["at"] < AGAIN:
            return
        task.xcom_push(key=key, value={"headline": alert.headline, "at": now})
        send(context, [alert], recipe=recipe)

    def unseen(self, context: Context, dag_id: str, recipe: str) -> Iterator[str]:
        """Yield the names of landed folders that no run of a DAG has seen complete, or waits for."""
        from pipeline_tasks.publish.logs import version_log

        events = context["inlet_events"][asset_of(recipe, "arrivals")]
        seen = {event.partition_key for event in events}
        seen |= {entry.snapshot for entry in version_log.log(context["params"]["root"], recipe)}
        store = storage.connect(context["params"]["landing"])
        for name in store.folders():
            if name in seen or is_empty(store, name):
                continue
            if not SNAPSHOT_NAME.admits(name):
                log.warning("%r is no name of a snapshot, which must be %s; rename the folder", name, SNAPSHOT_NAME)
            elif dates := midnights(name):
                if not context["ti"].get_dr_count(dag_id, logical_dates=dates, states=["queued", "running"]):
                    yield name
            else:
                yield name


def backlog_now(landing: str, root: str, recipe: str, now: float) -> Backlog:
    """Return the snapshots of a recipe that have landed, or are expected, and are not published."""
    from pipeline_tasks.publish.logs import version_log

    published = {entry.snapshot for entry in version_log.log(root, recipe)}
    store = storage.connect(landing)
    unpublished = [name for name in store.folders() if name not in published]
    landed = {name: landed_at(store, name) for name in unpublished if not is_empty(store, name)}
    return backlog_of(landed, published, now)


def is_empty(store: Store, name: str) -> bool:
    """Return whether a snapshot has landed that has no files: its source has only deleted records since the last."""
    try:
        return bool(json.loads(store.read(f"{name}/{PROMISE}"))["files"] == [])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False  # `sense` says what is wrong with it


def landed_at(store: Store, name: str) -> float:
    """Return when a folder was last written to, by its first files; 0 for a date, which needs no look."""
    if midnights(name):
        return 0.0
    return max((entry.modified for entry in islice(store.list(name), MOST_FILES)), default=0.0)


def landed_start(dag_id: str, name: str, params: Mapping[str, Any], accept: float = 1.0) -> Iterator[Start]:
    """Yield the start of a snapshot's run if it is complete, and log how far it has landed."""
    place = f"{params['landing'].rstrip('/')}/{name}"
    arrival = arrival_of(place, accept)
    log.info("%s  snapshot %s is %s: %s", dag_id, name, arrival.state, arrival.detail)
    if arrival.state == COMPLETE:
        conf = {"snapshot": name, "input": place, "root": params["root"]}
        yield start_of(dag_id, f"arrival__{name}", conf, f"It has landed: {arrival.detail}")


def log_late(dag_id: str, recipe: str, root: str) -> None:
    """Log which published snapshots have files that came after they were refined; a rerun is a person's decision."""
    from pipeline_tasks.inspect.versions.late_files import late_files, late_line
    from pipeline_tasks.publish.logs import version_log

    for snapshot, names in late_files(root, version_log.latest_by_snapshot(root, recipe)).items():
        log.warning("%s  snapshot %s: %s", dag_id, snapshot, late_line(names))


def stale_starts(dag_id: str, recipe: str, root: str, run_id: str) -> list[Start]:
    """Return the starts of the first stale snapshot and of all after it, whose history its new version changes.

    What a person let pass in a stage that reads nothing else than before passes again, for the same reason.
    """
    from pipeline_tasks.inspect.versions.staleness import stale_now
    from pipeline_tasks.landing.landed import text_field_of
    from pipeline_tasks.publish.logs import version_log
    from pipeline_tasks.recipe import LAND
    from pipeline_tasks.store.reading import read_manifest

    versions = version_log.latest_by_snapshot(root, recipe)
    stale = {version.version.snapshot: version.stage for version in stale_now(root, recipe)}
    for snapshot, stage in stale.items():
        log.info("%s  snapshot %s is stale from %s on: earlier snapshots changed since", dag_id, snapshot, stage)
    if not stale:
        return []
    first = min(stale)
    again = [version for version in versions if version.snapshot >= first]
    changed = {version.snapshot: [stale[first], stale.get(version.snapshot, stale[first])] for version in again}
    return [
        start_of(
            dag_id,
            f"stale__{version.snapshot}__{run_id}",
            {
                "snapshot": version.snapshot,
                "input": input_of(root, version),
                "root": root,
                "text_field": text_field_of(read_manifest(root, version.manifests[LAND])) or None,
                "patience": 0,
                "override": accepted_before(changed[version.snapshot], root, version),
            },
            f"Refined again, as {first} is stale from {stale[first]} on",
        )
        for version in again
    ]


def accepted_before(stages: Sequence[str], root: str, version: "Version") -> dict[str, str]:
    """Return why refused gates of a version were let pass, by gate, for its stages that run before all of `stages`."""
    from pipeline_tasks.report.summary import read_summary

    summary = read_summary(root, version)
    ran = [stage.stage for stage in summary.stages]
    earlier = ran[: min((ran.index(stage) for stage in stages if stage in ran), default=len(ran))]
    return {gate: reason for gate, reason in summary.overrides.items() if gate in earlier}


def input_of(root: str, version: "Version") -> str:
    """Return where a version's snapshot landed: its folder, or its one file."""
    from pipeline_tasks.recipe import LAND
    from pipeline_tasks.store.reading import read_manifest

    files = {shard.path.removeprefix(LANDING) for shard in read_manifest(root, version.manifests[LAND]).shards}
    return f"{version.landing}/{files.pop()}" if len(files) == 1 else str(version.landing)


def start_of(dag_id: str, run_id: str, conf: Mapping[str, Any], note: str) -> Start:
    """Return the arguments of the operator that starts a run."""
    return {"trigger_dag_id": dag_id, "trigger_run_id": run_id, "conf": dict(conf), "note": note}


def midnights(name: str) -> list[datetime]:
    """Return the date of the daily run of a snapshot, none if its name is no date."""
    try:
        day = date.fromisoformat(name)
    except ValueError:
        return []
    return [datetime(day.year, day.month, day.day, tzinfo=UTC)] if day.isoformat() == name else []
