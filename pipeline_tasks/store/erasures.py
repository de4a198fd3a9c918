"""Erasures: the log of objects that were rewritten without a document, or removed, and what is read in their place.

A takedown is completed by them, or a policy of retention applied (`Erasure.retention`).

Manifests and versions go on to name an object by its digest. The log says which object has come in its place, with both
digests: a reader that misses an object, or finds that it has another digest, asks here before it complains. So
nothing that names an object changes, and the chain from the newest version to the last byte stays whole.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from pipeline_tasks.errors import ContractError, cause
from pipeline_tasks.sealed import split_reference
from pipeline_tasks.store import storage
from pipeline_tasks.store.log_chain import ChainEntry, Log, numbers, read_chain

FOLDER = "erasures"
CERTIFICATES = f"{FOLDER}/certificates"
"""Where certificates are, each named by the number of the last entry that it tells of."""

CERTIFIED_ANEW = (
    "restore it from a backup; without one, remove it, and run `refinery erase` again, which certifies anew"
)
"""The way out of a damaged certificate."""

LOG = Log(
    FOLDER,
    {"log": FOLDER},
    "erasure {number}",
    "restore it from a backup: without it, nothing says what came in the place of objects that were erased",
)

TAKEDOWNS = Log(
    "takedowns",
    {"log": "takedowns"},
    "takedown {number}",
    "restore it from a backup: without it, what was taken down would be used again",
)
"""The log of what erasures complete (`publish.takedowns`)."""

Span = tuple[int, int]
"""First token of a stretch of a packed shard's stream of tokens, and the one behind its last."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object: its path below the root, its bytes, its SHA-256, and that of the top page of a segment."""

    path: str
    bytes: int
    digest: str
    index_digest: str = ""


@dataclass(frozen=True, slots=True)
class Erased:
    """An object before and after: nothing came in its place if it was removed.

    `rows` counts the rows, pieces or files of documents in it; `spans` are the tokens that are pads now.
    """

    before: Stored
    after: Stored | None
    rows: int
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Erasure:
    """An entry of the log: what was erased, when (ISO 8601 in UTC), by whom, after which takedown.

    The first of an erasure names no object: it is a fence. What was read before it is not committed after it
    (`run.tasks.fence`), and what was committed before it is looked at.
    Of an expiry `takedown` is 0 and `retention` names the policy. Of an erasure, as of every entry of an earlier
    release, `retention` is "", and is not stored. The last of an erasure refers to its `certificate`; it names no
    object, and its `takedown` is 0: it is no fence.
    """

    number: int
    objects: tuple[Erased, ...]
    takedown: int
    at: str
    by: str
    retention: str = ""
    certificate: str = ""

    @property
    def stored(self) -> dict[str, Any]:
        """The fields of the entry as the log has them."""
        optional = ("retention", "certificate")
        return {name: value for name, value in asdict(self).items() if name not in optional or value}


def erasures(root: str) -> list[Erasure]:
    """Return all erasures, oldest first; ContractError unless their chain is whole."""
    return [_erasure(root, entry) for entry in read_chain(root, LOG)]


def certificates(root: str) -> dict[str, str]:
    """Return the SHA-256 of each certificate by its path, as the last entry that names it has it."""
    return dict(split_reference(entry.certificate) for entry in erasures(root) if entry.certificate)


def newest(root: str) -> int:
    """Return the number of the last entry of the log, 0 for none; its entries are not read."""
    return max(numbers(storage.connect(root), LOG)[0], default=0)


def begun(root: str) -> int:
    """Return the number of the newest takedown that an erasure has begun to complete, 0 for none."""
    return max((erasure.takedown for erasure in erasures(root)), default=0)


def completed(root: str) -> int:
    """Return the number of the newest takedown after which objects were erased, 0 for none."""
    return max((erasure.takedown for erasure in erasures(root) if erasure.objects), default=0)


def _erasure(root: str, entry: ChainEntry) -> Erasure:
    try:
        fields = {name: value for name, value in entry.fields.items() if name != "log"}
        return Erasure(**{**fields, "objects": tuple(map(_erased, fields["objects"]))})
    except (ValueError, TypeError, KeyError) as error:
        message = f"{root}/{LOG.entry_path(entry.number)} is no erasure of this release ({cause(error)}); {LOG.way_out}"
        raise ContractError(message) from error


def _erased(raw: Mapping[str, Any]) -> Erased:
    after = Stored(**raw["after"]) if raw["after"] else None
    spans = tuple((int(start), int(stop)) for start, stop in raw["spans"])
    return Erased(Stored(**raw["before"]), after, raw["rows"], spans)


def erased_by_path(root: str) -> Mapping[str, Erased]:
    """Return every object that was erased, by the path that it had."""
    chain = read_chain(root, LOG)
    return _by_path(root, len(chain), chain[-1].digest) if chain else {}


@lru_cache(maxsize=16)
def _by_path(root: str, number: int, digest: str) -> Mapping[str, Erased]:
    del number, digest  # they name the state of the log
    return {erased.before.path: erased for erasure in erasures(root) for erased in erasure.objects}


def erased(root: str, path: str, digest: str) -> Erased | None:
    """Return what became of an object in the end; None if no object of this path and digest was erased."""
    by_path = erased_by_path(root)
    first = by_path.get(path)
    if first is None or first.before.digest != digest:
        return None
    found = first
    while found.after is not None and (later := by_path.get(found.after.path)) is not None:
        spans = (*found.spans, *later.spans)
        found = replace(found, after=later.after, rows=found.rows + later.rows, spans=tuple(sorted(spans)))
    return found


def current(root: str, path: str) -> str:
    """Return the path of what is stored in the place of an object now; "" if it was removed."""
    by_path = erased_by_path(root)
    while path in by_path:
        after = by_path[path].after
        if after is None:
            return ""
        path = after.path
    return path


def expired(root: str) -> Mapping[str, Erasure]:
    """Return the entry by which each object expired, by the path that it had, and by that of what came in its place."""
    chain = read_chain(root, LOG)
    return _expired(root, len(chain), chain[-1].digest) if chain else {}


@lru_cache(maxsize=16)
def _expired(root: str, number: int, digest: str) -> Mapping[str, Erasure]:
    del number, digest  # they name the state of the log
    by_path: dict[str, Erasure] = {}
    for entry in erasures(root):
        for each in entry.objects:
            # What an erasure leaves of an expired object is expired, too, and the object itself is erased now.
            expiry = entry if entry.retention else by_path.pop(each.before.path, None)
            if expiry is not None and each.after is not None:
                by_path[each.after.path] = expiry
            if entry.retention:
                by_path[each.before.path] = entry
    return by_path


def removed(root: str, path: str) -> ContractError:
    """Return the error for an object that an erasure or an expiry has removed."""
    if (entry := expired(root).get(path)) is not None:
        return ContractError(
            f"{root}/{path} expired on {entry.at[:10]} by the retention policy {entry.retention}; make it again, or "
            "read a newer version"
        )
    return ContractError(
        f"{root}/{path} was removed by an erasure, as it had a document that was taken down; read a newer version, or "
        "make it again"
    )


def after_paths(root: str) -> frozenset[str]:
    """Return the paths of all objects that came in the place of erased ones."""
    return frozenset(each.after.path for each in erased_by_path(root).values() if each.after is not None)
