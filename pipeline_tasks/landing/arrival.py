"""Says how far a snapshot has landed: nothing, a part, or all of it."""

from dataclasses import dataclass

from pipeline_tasks.counted import counted
from pipeline_tasks.errors import NothingLanded, SnapshotIncomplete
from pipeline_tasks.landing.folder import last_change
from pipeline_tasks.landing.listing import list_snapshot, missing_line
from pipeline_tasks.sealed import digest_of

MISSING, INCOMPLETE, COMPLETE = "missing", "incomplete", "complete"
"""States of a snapshot: it has nothing to read; a list promises files that are not there whole; it can be read."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """How far a snapshot has landed, and `detail`, which names the place and the files that are waited for.

    A snapshot without a list of its files is complete as soon as one file is there, and one with a list as soon as the
    share of its files is there that a recipe accepts. `settling` is then a digest of the
    names and sizes: more may come while it changes. It is "" where a list says what belongs to the snapshot. `changed`
    is when the newest of the files was written, by its store's clock (Unix time).
    """

    state: str
    detail: str
    settling: str = ""
    changed: float = 0.0


def arrival_of(uri: str, accept: float = 1.0) -> Arrival:
    """Return how far the snapshot at `uri` has landed; errors that waiting cannot mend are raised.

    A snapshot of whose promised files the share `accept` is there can be read as soon as nothing changes any more.
    """
    try:
        listing = list_snapshot(uri, accept=accept)
    except SnapshotIncomplete as error:
        return Arrival(INCOMPLETE, str(error))
    except NothingLanded as error:
        return Arrival(MISSING, str(error))
    size = sum(size for _, size, _ in listing.files)
    by = f"as {listing.promise} promises" if listing.promise else "and no list says whether that is all"
    detail = f"{uri}: {counted(len(listing.files), 'file')}, {counted(size, 'byte')}, {by}"
    if listing.missing:
        detail = f"{detail}, but for {counted(len(listing.missing), 'file')} that {missing_line(listing.missing)}"
    elif listing.promise:
        return Arrival(COMPLETE, detail)
    return Arrival(COMPLETE, detail, digest_of(listing.files), last_change(uri))
