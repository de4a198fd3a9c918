"""Compares the logs of a root with their witnesses, so that a log that was removed or cut does not count as whole.

The entries of a log name each other, and heads name them; its last entries may be removed together with their heads.
The ledger then still knows them, with their digests, and the lists that manifests pin still have what was taken down.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.ledger import Ledger, is_absent, ledger_of, name_in_ledger
from pipeline_tasks.ledger.database import Row
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.takedowns import unrecorded
from pipeline_tasks.recipe import BUILD, LAND
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import Log, dataset_log, numbers
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.taken_down import FOLDER, LOG, takedowns

DATASETS = "datasets/"
"""Prefix of the logs of recipes."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the ledger at `dsn` has of a log: the SHA-256 of its entries by number, "" where it does not know it."""

    dsn: str
    digests: Mapping[int, str] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The number of the last entry, 0 for none."""
        return max(self.digests, default=0)


def recorded(root: str, log: Log) -> Recorded:
    """Return what the ledger has of a log of a root."""
    dsn = ledger_of(root)
    return Recorded(dsn, {row["number"]: row["digest"] for row in _entries(root, dsn, log.folder)})


def recorded_datasets(root: str) -> list[str]:
    """Return the recipes whose logs the ledger of a root knows, sorted; none if it cannot be read."""
    with contextlib.suppress(RefineryError):
        logs = {row["log"] for row in _entries(root, ledger_of(root), "")}
        return sorted(log.removeprefix(DATASETS) for log in logs if log.startswith(DATASETS))
    return []


def _entries(root: str, dsn: str, log: str) -> list[Row]:
    if is_absent(dsn):
        return []
    with Ledger.open(dsn) as ledger:
        return [row for row in ledger.query("logs", log=log) if row["root"] == name_in_ledger(root)]


def last_and_recorded(root: str, log: Log) -> tuple[int, Recorded]:
    """Return the number of a log's last entry, 0 for none, and what the ledger has of the log.

    An entry is in the log before it is in the ledger. So the ledger is read first: what others append meanwhile may be
    missing from it, and never from the log.
    """
    known = recorded(root, log)
    return max(set[int]().union(*numbers(storage.connect(root), log)), default=0), known


def require_log(root: str, recipe: str) -> None:
    """Raise ContractError if the root's own ledger knows later entries of a recipe's log than the log has."""
    last, known = last_and_recorded(root, dataset_log(recipe))
    version_log.log(root, recipe)  # its chain has to be whole
    if last < known.last:
        message = (
            f"{root}/datasets/{recipe} was removed or cut: it ends with entry {last}, and the ledger {known.dsn} "
            f"has entry {known.last}. Restore it from a backup. Without one, run `refinery keep ledger {root}`, "
            f"then {_again(known.dsn, root, recipe)}"
        )
        raise ContractError(message)


def require_takedowns(root: str, recipe: str = "") -> None:
    """Raise ContractError if the log of takedowns lacks what a witness has: without it, it would be used again.

    Witnesses are the root's ledger, and the list that the landing of a recipe's newest version pins. What builds pin
    is none: a dataset of another root may be built again with that root's list.
    """
    last, known = last_and_recorded(root, LOG)
    takedowns(root)  # its chain has to be whole
    way_out = (
        f"Restore it from a backup. Without one, run `refinery keep ledger {root}`, and `refinery takedown` for "
        "what was taken down"
    )
    if last < known.last:
        message = (
            f"{root}/{FOLDER} was removed or cut: it ends with entry {last}, and the ledger "
            f"{known.dsn} has entry {known.last}. {way_out}"
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


def _again(dsn: str, root: str, recipe: str) -> str:
    """Return how the versions of a recipe are published again, by what the ledger knows of them."""
    with Ledger.open(dsn) as ledger:
        if ledger.query("versions", recipe=recipe, snapshot=BUILD):
            return f"`refinery build {root} --recipe {recipe}`: what is made already is reused"
        rows = [row for row in ledger.query("retractions", recipe=recipe) if row["restored_in_version"] is None]
    snapshots = ", ".join(f"{row['snapshot']} ({account_of(row)})" for row in rows)
    left_out = f". Leave out what was retracted, or retract it again: {snapshots}" if snapshots else ""
    return f"every snapshot again in order: what is refined already is reused{left_out}"
