"""Makes a ledger anew from its root, and keeps what the root does not know: costs, prices, unpublished stages.

The root knows every version and retraction, the manifests that a version names, and their verdicts. It does not know
what a stage cost, on which engine it ran, or for which snapshot an unpublished stage was refined: those rows are
copied from the old ledger as far as it can be read.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.gate.verdicts import read_verdict
from pipeline_tasks.ledger import (
    DIFFERENCE_KEY,
    FAILURE_KEY,
    HARDWARE_KEY,
    MISSING_KEY,
    STAGE_KEY,
    name_in_ledger,
    put_ablations,
    put_log,
    put_manifest,
    put_retraction,
    put_takedowns,
    put_verdict,
    put_version,
)
from pipeline_tasks.ledger.database import Database, Row, is_postgres, sqlite_path
from pipeline_tasks.ledger.lost_log import account_of
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.ablation_log import LOG as ABLATIONS
from pipeline_tasks.publish.logs.ablation_log import ablations
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import LOG as ERASURES
from pipeline_tasks.store.erasures import TAKEDOWNS
from pipeline_tasks.store.log_chain import dataset_log, read_chain
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.taken_down import takedowns

COPIED: Mapping[str, tuple[str, ...]] = {
    "prices": ("resource",),
    "manifests": ("manifest",),
    "rejections": ("manifest", "reason"),
    "missing_files": MISSING_KEY,
    "stage_metrics": STAGE_KEY,
    "stage_hardware": HARDWARE_KEY,
    "stage_models": STAGE_KEY,
    "gate_verdicts": ("recipe", "snapshot", "verdict"),
    "gate_failures": ("verdict", "rank"),
    "failures": FAILURE_KEY,
}
"""Tables with rows that only the ledger knows, and their keys."""

LOGGED: Mapping[str, tuple[str, ...]] = {
    "dataset_versions": ("recipe", "number"),
    "version_manifests": ("recipe", "number", "stage"),
    "retractions": ("recipe", "number"),
    "takedowns": ("root", "number"),
    "ablations": ("root", "number"),
    "ablation_differences": DIFFERENCE_KEY,
    "log_entries": ("root", "log", "number"),
}
"""Tables that repeat logs of the root: rows of other roots are copied, where a ledger serves several."""


@dataclass(slots=True)
class Rebuilt:
    """What a rebuilt ledger has: counts of what the root says, rows `copied` from the old one by table.

    `old` is where the old file is now ("" if there was none). `unread` are tables of the old ledger that could be read
    in part or not at all. `missing` says what of the root could not be read, and is therefore not in the ledger.
    `retracted` are the snapshots that the old ledger has as retracted, and the log of the root has not.
    """

    ledger: str
    versions: int = 0
    retractions: int = 0
    manifests: int = 0
    verdicts: int = 0
    old: str = ""
    copied: dict[str, int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)


def rebuild(root: str, dsn: str) -> Rebuilt:
    """Rebuild the ledger of a root at `dsn`.

    A file of SQLite is written anew and put in the place of the old one, which is kept beside it. A PostgreSQL is
    filled in place: rows that the root knows become what the root says, and no row is removed.
    """
    rebuilt = Rebuilt(dsn)
    if is_postgres(dsn):
        with contextlib.closing(Database.open(dsn)) as database:
            _fill(database, root, rebuilt)
        return rebuilt
    path = Path(sqlite_path(dsn))
    new = path.with_name(f"{path.name}.new-{os.getpid()}")
    try:
        with contextlib.closing(Database.open(str(new))) as database:
            _fill(database, root, rebuilt, path)
        if path.exists():
            rebuilt.old = str(_put_aside(path))
        new.replace(path)
    finally:
        for left in _files(new):
            left.unlink(missing_ok=True)
    return rebuilt


def _fill(database: Database, root: str, rebuilt: Rebuilt, old: Path | None = None) -> None:
    """Put the root's manifests, then the old rows that are absent, then everything else that the root says."""
    entries = [entry for recipe in version_log.recipes(root) for entry in _entries(root, recipe, rebuilt)]
    versions = [(entry, at) for entry, at in entries if isinstance(entry, Version)]
    with database.transaction():
        stored = _put_manifests(database, root, [version for version, _ in versions], rebuilt)
        if old is not None and old.exists():
            own = str(old) == f"{storage.connect(root).root}/ledger.sqlite"
            _copy(database, old, COPIED if own else {**COPIED, **LOGGED}, rebuilt)
            known = {(entry.recipe, entry.number) for entry, _ in entries}
            rebuilt.retracted = _lost_retractions(old, known) if own else []
        for entry, at in entries:
            if isinstance(entry, Version):
                put_version(database, entry, at)
                _put_run(database, root, entry, at, stored, rebuilt)
                rebuilt.versions += 1
            else:
                put_retraction(database, entry)
                rebuilt.retractions += 1
        _put_logs(database, root)
        try:
            put_takedowns(database, root, takedowns(root))
        except ContractError as error:
            rebuilt.missing.append(f"takedowns: {error}")
        try:
            put_ablations(database, root, ablations(root))
        except ContractError as error:
            rebuilt.missing.append(f"ablations: {error}")


def _put_logs(database: Database, root: str) -> None:
    """Put the digests of all logs as the root has them now: who makes a ledger anew takes the root for right."""
    database.run("DELETE FROM log_entries WHERE root = :root", {"root": name_in_ledger(root)})
    for log in (*map(dataset_log, version_log.recipes(root)), TAKEDOWNS, ABLATIONS, ERASURES):
        with contextlib.suppress(RefineryError):  # a damaged log is named where its entries are read
            put_log(database, root, log, read_chain(root, log))


def _entries(
    root: str, recipe: str, rebuilt: Rebuilt
) -> Iterator[tuple[version_log.Version | version_log.Retraction, str]]:
    """Yield the entries of a recipe's log, oldest first, each with its time; one without has that of its file."""
    try:
        times = {
            entry.path: datetime.fromtimestamp(entry.modified, UTC).isoformat(timespec="microseconds")
            for entry in storage.connect(root).list(f"datasets/{recipe}")
        }
        entries = version_log.log(root, recipe)
    except RefineryError as error:
        rebuilt.missing.append(f"versions of recipe {recipe}: {error}")
        return
    latest = ""
    for entry in entries:  # a copied root may have its times in any order, and later entries have later times
        latest = max(latest, entry.at or times.get(version_log.version_path(recipe, entry.number), ""))
        yield entry, latest


def _put_manifests(database: Database, root: str, versions: Sequence[Version], rebuilt: Rebuilt) -> frozenset[str]:
    """Put every manifest that a version names; return the references of those that could be read."""
    stored = set()
    for referred in dict.fromkeys(referred for version in versions for referred in version.manifests.values()):
        try:
            put_manifest(database, path_of(referred), read_manifest(root, referred))
        except RefineryError as error:
            rebuilt.missing.append(str(error))
            continue
        stored.add(referred)
    rebuilt.manifests = len(stored)
    return frozenset(stored)


def _put_run(
    database: Database, root: str, version: Version, at: str, stored: frozenset[str], rebuilt: Rebuilt
) -> None:
    """Put the stages and verdicts of a version, where the old ledger had none."""
    run = {"recipe": version.recipe, "snapshot": version.snapshot, "recorded_at": at}
    unknown = {"engine": "", "attempt": 1, "wall_seconds": 0.0, "cpu_hours": 0.0, "gpu_hours": 0.0, "cost_usd": 0.0}
    for stage, referred in version.manifests.items():
        if referred in stored and stage != "land":
            row = {**run, **unknown, "manifest": path_of(referred)}
            database.put("stage_metrics", STAGE_KEY, row, first=tuple(row))
    for path in filter(None, version.verdicts.values()):
        try:
            put_verdict(database, read_verdict(root, path), run, first=("recorded_at",))
        except RefineryError as error:
            rebuilt.missing.append(str(error))
            continue
        rebuilt.verdicts += 1


# --- The old ledger -----------------------------------------------------------------------------------------------


def _copy(database: Database, old: Path, tables: Mapping[str, tuple[str, ...]], rebuilt: Rebuilt) -> None:
    """Copy the readable rows of the old ledger that the new one does not have."""
    for table, key in tables.items():
        columns = {row["name"] for row in database.run(f"SELECT name FROM pragma_table_info('{table}')", {})}  # noqa: S608 -- names are ours
        try:
            for row in _rows(old, table):
                values = {name: value for name, value in row.items() if name in columns}
                rebuilt.copied[table] = rebuilt.copied.get(table, 0) + _copied(database, table, key, values)
        except sqlite3.DatabaseError:  # the rows before the damage are copied
            rebuilt.unread.append(table)


def _lost_retractions(old: Path, known: set[tuple[str, int]]) -> list[str]:
    """Return the snapshots that the old ledger has as retracted, in entries that the logs do not have."""
    try:
        newest: dict[tuple[str, str], int] = {}
        for row in _rows(old, "dataset_versions"):
            key = (row["recipe"], row["snapshot"])
            newest[key] = max(newest.get(key, 0), row["number"])
        rows = sorted(_rows(old, "retractions"), key=lambda row: (row["recipe"], row["number"]))
    except sqlite3.DatabaseError:  # `unread` names the damage
        return []
    return [
        f"{row['snapshot']} of recipe {row['recipe']} ({account_of(row)})"
        for row in rows
        if (row["recipe"], row["number"]) not in known
        and newest.get((row["recipe"], row["snapshot"]), 0) < row["number"]
    ]


def _rows(old: Path, table: str) -> Iterator[Row]:
    with contextlib.closing(sqlite3.connect(old)) as connection:
        cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 -- names are ours
        names = [column[0] for column in cursor.description]
        yield from (dict(zip(names, values, strict=True)) for values in cursor)


def _copied(database: Database, table: str, key: Sequence[str], row: Row) -> bool:
    first = () if table == "prices" else tuple(row)  # every new ledger has prices: the old ones are what was paid
    try:
        database.put(table, key, row, first=first)
    except sqlite3.IntegrityError:  # a damaged row, or one of a manifest that nobody knows
        return False
    return True


def _files(path: Path) -> list[Path]:
    """Return a database of SQLite and the files beside it, which belong to it alone."""
    return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]


def _put_aside(path: Path) -> Path:
    """Rename a database, with the files beside it, to a free name; return that name."""
    number = 1
    while path.with_name(f"{path.name}.old-{number}").exists():
        number += 1
    aside = path.with_name(f"{path.name}.old-{number}")
    for file, target in zip(_files(path), _files(aside), strict=True):
        if file.exists():
            file.replace(target)
    return aside
