"""Puts objects in the place of others, so that a kill at any moment leaves either the old one or the new in force.

Who rewrites stores the new object first, under the name of its content. Then an entry of the log of erasures puts it in
the place of the old one, for every reader at once. The old object is removed last.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pipeline_tasks.errors import Transient
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import LOG, Erased, Erasure, erasures
from pipeline_tasks.store.log_chain import append, next_number, read_chain

TOGETHER = 64
"""Objects of one entry of the log."""


class ErasedMeanwhile(Transient):
    """Another erasure has replaced or removed an object first."""


def meanwhile(root: str) -> ErasedMeanwhile:
    """Return the error for an object that is gone since it was found."""
    return ErasedMeanwhile(f"{root}: another erasure, expiry or vacuum works there; run this again when it has ended")


def commit(
    root: str,
    objects: Sequence[Erased],
    by: str,
    since: int,
    *,
    takedown: int = 0,
    retention: str = "",
    certificate: str = "",
) -> None:
    """Log that objects are gone or replaced, whose successors are stored, and remove them; or what was certified.

    ErasedMeanwhile if an entry after `since`, the newest before the objects were read, has one of them.
    """
    while True:
        chain = read_chain(root, LOG)
        others = {each.before.path for entry in erasures(root)[since : len(chain)] for each in entry.objects}
        if any(each.before.path in others for each in objects):
            raise meanwhile(root)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Erasure(next_number(chain), tuple(objects), takedown, now, by, retention, certificate)
        if append(root, LOG, chain, entry.stored):
            break
    store = storage.connect(root)
    for erased in objects:  # one by one: the list of an export goes before its files
        store.delete(erased.before.path)
