"""Compares a dataset's log with the root's own ledger, so that a log that was removed does not count as a new one."""

from collections.abc import Iterable
from pathlib import Path

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish import version_log
from pipeline_tasks.publish.database import Row, sqlite_path
from pipeline_tasks.publish.ledger import Ledger, ledger_of
from pipeline_tasks.store import storage


def require_log(root: str, recipe: str) -> None:
    """Raise ContractError if the root's own ledger knows later entries of a recipe's log than the log has.

    A ledger that serves several roots, as PostgreSQL or that of buckets in the home directory, says nothing of one.
    """
    dsn = ledger_of(root)
    if sqlite_path(dsn) != f"{storage.connect(root).root}/ledger.sqlite" or not Path(sqlite_path(dsn)).exists():
        return
    with Ledger.open(dsn) as ledger:
        versions, retractions = (ledger.query(name, recipe=recipe) for name in ("versions", "retractions"))
    known = max((int(row["number"]) for row in (*versions, *retractions)), default=0)
    last = max((entry.number for entry in version_log.log(root, recipe)), default=0)
    if last < known:
        message = (
            f"{root}/datasets/{recipe} was removed or cut: it ends with entry {last}, and the ledger {dsn} has entry "
            f"{known}. Restore it from a backup. Without one, run `refinery ledger rebuild {root}`, then every "
            f"snapshot again in order: what is refined already is reused{_retracted(retractions)}"
        )
        raise ContractError(message)


def account_of(retraction: Row) -> str:
    """Return the time and the reason of a row of the ledger's retractions as text."""
    return version_log.Retraction(0, "", "", (), retraction["reason"], retraction["retracted_at"]).account


def _retracted(retractions: Iterable[Row]) -> str:
    snapshots = [f"{row['snapshot']} ({account_of(row)})" for row in retractions if row["restored_in_version"] is None]
    return f". Leave out what was retracted, or retract it again: {', '.join(snapshots)}" if snapshots else ""
