"""Records stages, costs, verdicts and versions in the ledger, queries them, and makes it anew from a root.

It is a witness of logs, too: it knows what was removed from them. Imports `publish` and the rooms below.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from pipeline_tasks.cards import stage_names
from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.deployment import is_connection, ledger_at, plain
from pipeline_tasks.errors import RecipeError, RefineryError
from pipeline_tasks.gate.verdicts import Verdict
from pipeline_tasks.landing.landed import missing_of
from pipeline_tasks.ledger.database import (
    PARAMETER,
    SQL,
    Database,
    Row,
    is_postgres,
    sqlite_path,
    without_comments,
)
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.origins import generated_kept
from pipeline_tasks.publish.logs.ablation_log import Ablation
from pipeline_tasks.publish.logs.version_log import Retraction, Version
from pipeline_tasks.recipe import LAND, PUBLISH, VERDICT
from pipeline_tasks.run.tasks.state_cost import NO_STATES, SECONDS, StateCost
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.credential import database_of, variable_of
from pipeline_tasks.store.log_chain import ChainEntry, Log, read_chain
from pipeline_tasks.store.taken_down import Takedown

_GIVEN: dict[str, str] = {}
"""The DSN of roots whose ledger a process was told, which keeps it out of its environment."""


def give(root: str, connection: str) -> None:
    """Let this process open the ledger of a root that an Airflow connection, written as a URI, names."""
    _GIVEN[plain(root)] = database_of(connection)


def ledger_of(root: str) -> str:
    """Return the DSN of a root's ledger: that of the deployment's file for it, or of `REFINERY_LEDGER`.

    Without both it is SQLite, in a local root, else in the home directory.
    """
    if named := ledger_at(root):
        return _dsn(root, named) if is_connection(named) else named
    if of_all := os.environ.get("REFINERY_LEDGER"):
        return of_all
    if is_bucket(root):
        folder = Path.home() / ".refinery"
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder / "ledger.sqlite")
    Path(storage.connect(root).root).mkdir(parents=True, exist_ok=True)
    return f"{storage.connect(root).root}/ledger.sqlite"


def _dsn(root: str, connection: str) -> str:
    """Return the DSN of a ledger by its connection; RecipeError if this process does not have it."""
    if given := _GIVEN.get(plain(root)):
        return given
    if written := os.environ.get(variable := variable_of(connection), ""):
        return database_of(written)
    message = (
        f"the ledger of {root} is the connection {connection}; set {variable} to postgresql://user:password@host/name"
    )
    raise RecipeError(message)


def name_in_ledger(root: str) -> str:
    """Return what a ledger that serves several roots calls a root; "" for a root with a ledger of its own."""
    is_own = not ledger_at(root) and not os.environ.get("REFINERY_LEDGER") and not is_bucket(root)
    return "" if is_own else str(storage.connect(root).root)


def is_absent(dsn: str) -> bool:
    """Return whether no run has made a ledger yet: to open it would make an empty one."""
    return not is_postgres(dsn) and not Path(sqlite_path(dsn)).exists()


def recorded_recipes(root: str) -> list[str]:
    """Return the recipes with runs or failures in the ledger of a root, sorted; none if it cannot be read."""
    if is_absent(dsn := ledger_of(root)):
        return []
    with contextlib.suppress(RefineryError), Ledger.open(dsn) as ledger:
        failed = [row["recipe"] for row in ledger.query("failures") if row["root"] == name_in_ledger(root)]
        return sorted({*failed, *(row["recipe"] for row in ledger.query("runs"))} - {""})
    return []


def recorded_seconds(root: str, version: Version) -> dict[str, float]:
    """Return the seconds of one core that the ledger has of a version's stages; empty without a ledger."""
    if is_absent(dsn := ledger_of(root)):
        return {}
    with Ledger.open(dsn) as ledger:
        rows = ledger.query("stage_cost", recipe=version.recipe, number=str(version.number))
    return {row["stage"]: row["cpu_hours"] * 3600 for row in rows if row["cpu_hours"]}


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why a run of a snapshot ended without a version: the task, the class of its error, and the reason.

    `error` is `GateRefused` for a gate's refusal; its message is what a person decided ("" if nobody was asked).
    """

    recipe: str
    snapshot: str
    task: str
    error: str
    message: str

    @property
    def stage(self) -> str:
        """The stage that the task is of, else the task."""
        stage = self.task.partition(".")[0]
        return stage.removesuffix("_gate") if stage in (f"{PUBLISH}_gate", f"{VERDICT}_gate") else stage


class Ledger:
    """An open ledger; use it as a context manager.

    Records have keys that follow from their content, so recording again changes nothing: a retried task, a backfill
    and two schedulers may all write. Each call is one transaction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, dsn: str) -> Self:
        """Open the ledger at a path, `sqlite:///path` or `postgresql://...` (see `Database.open`)."""
        return cls(Database.open(dsn))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    # --- Recording ------------------------------------------------------------------------------------------------

    def record_stage(  # noqa: PLR0913 -- one keyword per fact of the record
        self,
        path: str,
        manifest: Manifest,
        *,
        wall: float = 0.0,
        cpu: float = 0.0,
        gpu: float = 0.0,
        states: StateCost = NO_STATES,
        snapshot: str = "",
        recipe: str = "",
        engine: str = "",
        attempt: int = 1,
    ) -> None:
        """Record a committed manifest, and what an attempt spent on it in seconds of wall clock, CPU and GPU.

        An attempt that finds a committed manifest spends nothing, so the largest recorded cost is kept, that of a plan
        of the recipe (which has no snapshot) too. `states` has what computed the rows of models, and how long these and
        their actors waited.
        """
        with self._database.transaction():
            put_manifest(self._database, path, manifest)
            cost = {"attempt": attempt, "wall_seconds": wall, "cpu_hours": cpu / 3600, "gpu_hours": gpu / 3600}
            cost["cost_usd"] = self._usd(cost)
            cost = self._or_planned(recipe, path, cost)
            row = {"recipe": recipe, "snapshot": snapshot, "manifest": path, "engine": engine, **cost}
            self._database.put("stage_metrics", STAGE_KEY, {**row, "recorded_at": _now()}, largest=tuple(cost))
            key = {name: row[name] for name in STAGE_KEY}
            for computed, by in states.hardware.items():
                for hardware, rows in by.items():
                    kind = {**key, "computed": computed, "hardware": hardware, "row_count": rows}
                    self._database.put("stage_hardware", HARDWARE_KEY, kind, largest=("row_count",))
            if states.tasks:
                waits = {"actors": states.actors, **{f"{name}_seconds": getattr(states, name) for name in SECONDS}}
                self._database.put("stage_models", STAGE_KEY, {**key, **waits}, largest=tuple(waits))

    def _or_planned(self, recipe: str, path: str, cost: dict[str, float]) -> dict[str, float]:
        """Return the larger of what a stage cost now, and in a plan of the recipe that ran before."""
        planned = (
            f"SELECT {', '.join(cost)} FROM stage_metrics WHERE (recipe, snapshot, manifest) = (:recipe, '', :path)"  # noqa: S608 -- names are ours
        )
        for row in self._database.run(planned, {"recipe": recipe, "path": path}) if recipe else ():
            cost = {name: max(spent, row[name]) for name, spent in cost.items()}
        return cost

    def record_landing(self, path: str, manifest: Manifest) -> None:
        """Record what a snapshot is refined from, with the promised files that had not landed."""
        with self._database.transaction():
            put_manifest(self._database, path, manifest)

    def _usd(self, cost: Mapping[str, float]) -> float:
        prices = {row["resource"]: row["usd_per_hour"] for row in self._database.run("SELECT * FROM prices", {})}
        return float(sum(cost[f"{resource}_hours"] * price for resource, price in prices.items()))

    def record_verdict(self, verdict: Verdict, *, snapshot: str = "", recipe: str = "") -> None:
        """Record the outcome of a gate, with every bound that was broken."""
        with self._database.transaction():
            put_verdict(self._database, verdict, {"recipe": recipe, "snapshot": snapshot, "recorded_at": _now()})

    def record_version(self, version: Version) -> None:
        """Record a published version and its manifests."""
        with self._database.transaction():
            put_version(self._database, version, _now())

    def record_retraction(self, retraction: Retraction) -> None:
        """Record that a snapshot is retracted, until a version with a higher number is recorded."""
        with self._database.transaction():
            put_retraction(self._database, retraction)

    def record_takedowns(self, root: str, log: Iterable[Takedown]) -> None:
        """Record the log of a root's takedowns: all of it, so that a ledger that missed an entry gets it now."""
        with self._database.transaction():
            put_takedowns(self._database, root, log)

    def record_ablations(self, root: str, log: Iterable[Ablation]) -> None:
        """Record the log of a root's ablations: all of it, so that a ledger that missed an entry gets it now."""
        with self._database.transaction():
            put_ablations(self._database, root, log)

    def record_log(self, root: str, log: Log) -> None:
        """Record the digests of a log's entries, so that the ledger is a witness of each."""
        chain = read_chain(root, log)
        with self._database.transaction():
            put_log(self._database, root, log, chain)

    def record_failure(self, root: str, failure: RunFailure) -> None:
        """Record why the newest run of a snapshot into a root has ended."""
        row = {**asdict(failure), "stage": failure.stage, "root": name_in_ledger(root), "recorded_at": _now()}
        with self._database.transaction():
            self._database.put("failures", FAILURE_KEY, row)

    def set_price(self, resource: str, usd_per_hour: float) -> None:
        """Set what an hour of `cpu` or `gpu` costs from now on."""
        if resource not in ("cpu", "gpu"):
            message = f"there is no price of {resource!r}; set that of cpu or gpu"
            raise RecipeError(message)
        with self._database.transaction():
            self._database.put("prices", ("resource",), {"resource": resource, "usd_per_hour": usd_per_hour})

    # --- Querying -------------------------------------------------------------------------------------------------

    def query(self, name: str, **parameters: str) -> list[Row]:
        """Return the rows of `sql/queries/<name>.sql`; a parameter that is not given selects all rows.

        RecipeError when there is no such query, or the query has no such parameter.
        """
        if name not in queries():
            message = f"there is no query {name!r}; the ledger has {', '.join(queries())}"
            raise RecipeError(message)
        statement = without_comments((SQL / "queries" / f"{name}.sql").read_text(encoding="utf-8"))
        known = set(PARAMETER.findall(statement))
        if not parameters.keys() <= known:
            message = f"query {name} has no parameter {sorted(parameters.keys() - known)}; it has {sorted(known)}"
            raise RecipeError(message)
        with self._database.transaction(write=False):
            return self._database.run(statement, dict.fromkeys(known, "") | parameters)


def queries() -> list[str]:
    """Return the names of the ledger's queries, sorted."""
    return sorted(path.stem for path in (SQL / "queries").glob("*.sql"))


# --- Rows ---------------------------------------------------------------------------------------------------------

STAGE_KEY = ("recipe", "snapshot", "manifest")
"""Key of `stage_metrics`: a manifest may serve several recipes and snapshots."""

HARDWARE_KEY = (*STAGE_KEY, "computed", "hardware")
"""Key of `stage_hardware`."""

MISSING_KEY = ("manifest", "file")
"""Key of `missing_files`."""

FAILURE_KEY = ("recipe", "snapshot", "root")
"""Key of `failures`: of a snapshot's runs, the last one that failed counts."""

DIFFERENCE_KEY = ("root", "number", "rate")
"""Key of `ablation_differences`."""


def put_manifest(database: Database, path: str, manifest: Manifest) -> None:
    """Put a manifest, and its rejected and quarantined rows by reason."""
    database.put("manifests", ("manifest",), _manifest_row(path, manifest))
    for kind, tally in (("rejected", manifest.rejected), ("quarantined", manifest.quarantined)):
        for reason, count in tally.items():
            row = {"manifest": path, "reason": reason, "kind": kind, "row_count": count}
            database.put("rejections", ("manifest", "reason"), row)
    if manifest.stage == LAND:
        for name in missing_of(manifest):
            database.put("missing_files", MISSING_KEY, {"manifest": path, "file": name})


def put_verdict(database: Database, verdict: Verdict, run: Row, *, first: Sequence[str] = ()) -> None:
    """Put a verdict and the bounds that were broken; `run` is recipe, snapshot and time, `first` as in `put`."""
    row = {
        **run,
        "verdict": verdict.path,
        "manifest": path_of(verdict.manifest),
        "stage": verdict.stage,
        "stage_rank": _stage_rank(verdict.stage),
        "outcome": verdict.outcome,
        "override_reason": verdict.override,
        "evaluated": verdict.evaluated,
        "docs": verdict.docs,
    }
    database.put("gate_verdicts", ("recipe", "snapshot", "verdict"), row, first=first)
    for rank, failed in enumerate(verdict.failures):
        failure = {
            "verdict": verdict.path,
            "rank": rank,
            "fact": failed.column,
            "severity": failed.severity,
            "observed": failed.observed,
            "min_value": failed.bound.get("min_value"),
            "max_value": failed.bound.get("max_value"),
            "why": failed.why,
        }
        database.put("gate_failures", ("verdict", "rank"), failure)


def put_version(database: Database, version: Version, at: str) -> None:
    """Put a version and its manifests; `at` is the time, unless one is recorded."""
    key = {"recipe": version.recipe, "number": version.number}
    names = ("snapshot", "prefix", "documents", "tokens", "sequences")
    row = {**key, **{name: getattr(version, name) for name in names}, "recorded_at": at}
    database.put("dataset_versions", tuple(key), row, first=("recorded_at",))
    for stage, referred in version.manifests.items():
        part = {**key, "stage": stage, "manifest": path_of(referred)}
        database.put("version_manifests", ("recipe", "number", "stage"), part)


def put_retraction(database: Database, retraction: Retraction) -> None:
    """Put an entry that retracts a snapshot."""
    key = {"recipe": retraction.recipe, "number": retraction.number}
    row = {**key, "snapshot": retraction.snapshot, "reason": retraction.reason, "retracted_at": retraction.at}
    database.put("retractions", tuple(key), row)


def put_log(database: Database, root: str, log: Log, chain: Iterable[ChainEntry]) -> None:
    """Put the entries of a log of which the ledger has no digest; one that it has is not changed."""
    key = {"root": name_in_ledger(root), "log": log.folder}
    known = database.run("SELECT number FROM log_entries WHERE root = :root AND log = :log AND digest <> ''", key)
    numbers = {row["number"] for row in known}
    for entry in chain:
        if entry.number not in numbers:
            row = {**key, "number": entry.number, "digest": entry.digest}
            database.put("log_entries", ("root", "log", "number"), row)


def put_takedowns(database: Database, root: str, log: Iterable[Takedown]) -> None:
    """Put the entries of a root's log of takedowns."""
    for takedown in log:
        key = {"root": name_in_ledger(root), "number": takedown.number}
        told = {"undo": int(takedown.undo), "reason": takedown.reason, "taken_down_at": takedown.at}
        database.put("takedowns", tuple(key), {**key, "entries": takedown.count, **told})


def put_ablations(database: Database, root: str, log: Iterable[Ablation]) -> None:
    """Put the entries of a root's log of ablations, each with its differences by learning rate."""
    for ablation in log:
        key = {"root": name_in_ledger(root), "number": ablation.number}
        names = ("kind", "size", "tokens", "seeds", "held_out", "outcome", "detectable", "seconds", "code")
        row = {**key, **{name: getattr(ablation, name) for name in names}}
        for side, arm in zip("ab", ablation.arms, strict=True):
            told = {name: getattr(arm, name) for name in ("dataset", "recipe", "version", "fingerprint", "digest")}
            row |= {f"{side}_{name}": value for name, value in told.items()}
            row[f"{side}_made_from"] = ",".join(arm.made_from)
        row |= {"override_reason": ablation.override, "ablated_at": ablation.at}
        database.put("ablations", tuple(key), row)
        for difference in ablation.differences:
            database.put("ablation_differences", DIFFERENCE_KEY, {**key, **asdict(difference)})


def _manifest_row(path: str, manifest: Manifest) -> Row:
    return {
        "manifest": path,
        "stage": manifest.stage,
        "stage_rank": _stage_rank(manifest.stage),
        "fingerprint": manifest.fingerprint,
        "version": manifest.version,
        "rows_in": manifest.rows_in,
        "offspring_in": manifest.offspring_in,
        "rows_kept": manifest.rows,
        "rows_generated": generated_kept(manifest),
        "rows_rejected": sum(manifest.rejected.values()),
        "rows_quarantined": sum(manifest.quarantined.values()),
        "bytes_in": manifest.bytes_in,
        "bytes_out": manifest.bytes,
        "tokens": manifest.tokens,
    }


def _stage_rank(stage: str) -> int:
    ranked = (*stage_names(), PUBLISH)  # the gate before a snapshot is published comes last
    return ranked.index(stage) if stage in ranked else -1


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
