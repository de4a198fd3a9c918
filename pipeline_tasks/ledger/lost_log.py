"""Compares the logs of a root with their witnesses, so that a log that was removed or cut does not count as whole.

The entries of a log name each other, and heads name them; its last entries may be removed together with their heads.
The root's ledger then still knows them, and the lists that manifests pin still have what was taken down.
"""

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline_tasks.errors import ContractError
from pipeline_tasks.ledger import Ledger, is_absent, ledger_of, name_in_ledger
from pipeline_tasks.ledger.database import Row, sqlite_path
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import unrecorded
from pipeline_tasks.recipe import LAND
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import Log, dataset_log, numbers
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.taken_down import FOLDER, LOG, takedowns


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the ledger at `dsn` has of a log: the number of its last entry, 0 for none, and the snapshots retracted."""

    dsn: str
    last: int = 0
    retractions: tuple[Row, ...] = ()


def recorded_versions(root: str, recipe: str) -> Recorded:
    """Return what the root's own ledger has of a recipe's log.

    A ledger that serves several roots, as PostgreSQL or that of buckets in the home directory, says nothing of one.
    """
    dsn = ledger_of(root)
    if sqlite_path(dsn) != f"{storage.connect(root).root}/ledger.sqlite" or not Path(sqlite_path(dsn)).exists():
        return Recorded(dsn)
    with Ledger.open(dsn) as ledger:
        versions, retractions = (ledger.query(name, recipe=recipe) for name in ("versions", "retractions"))
    return Recorded(dsn, max((int(row["number"]) for row in (*versions, *retractions)), default=0), tuple(retractions))


def recorded_takedowns(root: str) -> Recorded:
    """Return what the ledger has of the root's log of takedowns."""
    return _recorded(root, "takedowns")


def recorded_ablations(root: str) -> Recorded:
    """Return what the ledger has of the root's log of ablations."""
    return _recorded(root, "ablations")


def _recorded(root: str, query: str) -> Recorded:
    dsn, name = ledger_of(root), name_in_ledger(root)
    if is_absent(dsn):
        return Recorded(dsn)
    with Ledger.open(dsn) as ledger:
        entries = [int(row["number"]) for row in ledger.query(query) if row["root"] == name]
    return Recorded(dsn, max(entries, default=0))


def last_and_recorded(root: str, log: Log, recorded: Callable[[str], Recorded]) -> tuple[int, Recorded]:
    """Return the number of a log's last entry, 0 for none, and what the ledger has of the log.

    An entry is in the log before it is in the ledger. So the ledger is read first: what others append meanwhile may be
    missing from it, and never from the log.
    """
    known = recorded(root)
    return max(set[int]().union(*numbers(storage.connect(root), log)), default=0), known


def require_log(root: str, recipe: str) -> None:
    """Raise ContractError if the root's own ledger knows later entries of a recipe's log than the log has."""
    last, recorded = last_and_recorded(root, dataset_log(recipe), partial(recorded_versions, recipe=recipe))
    version_log.log(root, recipe)  # its chain has to be whole
    if last < recorded.last:
        message = (
            f"{root}/datasets/{recipe} was removed or cut: it ends with entry {last}, and the ledger {recorded.dsn} "
            f"has entry {recorded.last}. Restore it from a backup. Without one, run `refinery keep ledger {root}`, "
            f"then every snapshot again in order: what is refined already is reused{_retracted(recorded.retractions)}"
        )
        raise ContractError(message)


def require_takedowns(root: str, recipe: str = "") -> None:
    """Raise ContractError if the log of takedowns lacks what a witness has: without it, it would be used again.

    Witnesses are the root's ledger, and the list that the landing of a recipe's newest version pins. What builds pin
    is none: a dataset of another root may be built again with that root's list.
    """
    last, recorded = last_and_recorded(root, LOG, recorded_takedowns)
    takedowns(root)  # its chain has to be whole
    way_out = (
        f"Restore it from a backup. Without one, run `refinery keep ledger {root}`, and `refinery takedown` for "
        "what was taken down"
    )
    if last < recorded.last:
        message = (
            f"{root}/{FOLDER} was removed or cut: it ends with entry {last}, and the ledger "
            f"{recorded.dsn} has entry {recorded.last}. {way_out}"
        )
        raise ContractError(message)
    landing = _newest_landing(root, recipe)
    if landing and (lost := unrecorded(root, landing)):
        message = f"{root}/{FOLDER} was removed or cut: it lacks {lost}. {way_out}"
        raise ContractError(message)


def _newest_landing(root: str, recipe: str) -> Manifest | None:
    """Return the landing of a recipe's newest version; None if it has none that can be read."""
    newest = version_log.versions(root, recipe)[-1:] if recipe else []
    for version in newest:
        if LAND in version.manifests:
            with contextlib.suppress(ContractError):  # a damaged manifest is an error of its own readers
                return read_manifest(root, version.manifests[LAND])
    return None


def account_of(retraction: Row) -> str:
    """Return the time and the reason of a row of the ledger's retractions as text."""
    return version_log.Retraction(0, "", "", (), retraction["reason"], retraction["retracted_at"]).account


def _retracted(retractions: Iterable[Row]) -> str:
    snapshots = [f"{row['snapshot']} ({account_of(row)})" for row in retractions if row["restored_in_version"] is None]
    return f". Leave out what was retracted, or retract it again: {', '.join(snapshots)}" if snapshots else ""
