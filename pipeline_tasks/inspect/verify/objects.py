"""Checks the size and the digest of stored objects, wherever the work runs."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pipeline_tasks.engines.each import Work
from pipeline_tasks.inspect.verify.findings import Findings, Problem, found, is_sound
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import Erased, erased, expired
from pipeline_tasks.store.listed_store import LIST
from pipeline_tasks.store.protocol import CHUNK

SMALL = 64 * 1024
"""Bytes up to which an object is read in the fast mode as well."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An object by its URI, what it has to be, what names it, and the way to heal it.

    `sizes` and `digests` are those of its pieces from the first on: one, but for a large landed file. `optional`
    objects may be gone: a landed file may have been removed since it was refined. With `root` an erasure may have put
    another object in its place, or none.
    """

    uri: str
    kind: str
    sizes: tuple[int, ...]
    digests: tuple[str, ...]
    heal: str
    optional: bool = False
    root: str = ""

    @property
    def bytes(self) -> int:
        """Bytes of the whole object."""
        return sum(self.sizes)


def check_objects(work: Work, expected: Sequence[Expected], findings: Findings, *, full: bool) -> None:
    """Check objects where the work runs; of one that is named several times, what names it first counts."""
    by_uri = {each.uri: each for each in reversed(expected)}
    for facts in work.each(
        "bytes",
        partial(_found, full=full),
        [*by_uri.values()][::-1],
        key=lambda each: [each.uri, each.sizes, each.digests, full],
        weight=lambda each: each.bytes if full else 0,
        keeps=is_sound,
    ):
        findings.take(facts)


def _found(expected: Expected, *, full: bool) -> dict[str, Any]:
    return found(partial(check_object, expected, full=full))


def check_object(expected: Expected, findings: Findings, *, full: bool) -> None:
    """Compare an object's size with what was promised, and its digest if all bytes are to be read or it is small."""
    with findings.guarded(expected.uri, expected.heal):
        folder, _, name = expected.uri.rpartition("/")
        size = storage.connect(folder or "/").size(name)
        if size is None and (found := _erased(expected)) is not None:
            if found.after is None:
                findings.note(f"{expected.uri}: {how_removed(expected.root, found.before.path)}")
                return
            after = found.after
            uri = f"{expected.root}/{after.path}"
            now = replace(expected, uri=uri, sizes=(after.bytes,), digests=(after.digest,))
            check_object(now, findings, full=full)
            return
        if size is None and expected.optional:
            findings.note(f"{expected.uri}: not there any more")
            return
        is_listed = storage.listed_digest(expected.uri) in expected.digests  # and asking for its size compared the ETag
        if is_listed and size == expected.bytes:
            findings.note(f"{expected.uri.partition(LIST)[0]}{LIST}: its files elsewhere have their ETags; not read")
        read = size == expected.bytes and (full or expected.bytes <= SMALL) and not is_listed
        findings.count(expected.kind, expected.bytes if read else 0)
        if size is None:
            findings.add(Problem(expected.uri, "is missing", f"{expected.bytes} bytes", "nothing", expected.heal))
        elif size != expected.bytes:
            sizes = (f"{expected.bytes} bytes", f"{size} bytes")
            findings.add(Problem(expected.uri, "has another size", *sizes, expected.heal))
        elif read:
            actual = digests_of(expected.uri, expected.sizes)
            for promised, digest in zip(expected.digests, actual, strict=True):
                if digest != promised:
                    digests = (f"SHA-256 {promised}", f"SHA-256 {digest}")
                    findings.add(Problem(expected.uri, "its bytes were changed", *digests, expected.heal))


def how_removed(root: str, path: str) -> str:
    """Return what removed an object that the log of erasures names: an erasure, or a policy."""
    entry = expired(root).get(path)
    return f"expired by the retention policy {entry.retention}" if entry else "removed by an erasure"


def _erased(expected: Expected) -> Erased | None:
    """Return what became of an object that was erased; None of any other."""
    path = expected.uri.removeprefix(f"{expected.root}/")
    return erased(expected.root, path, expected.digests[0]) if expected.root else None


def digest_of(uri: str) -> str:
    """Return the SHA-256 of the object at `uri`; it is read anew, whatever was read before."""
    hasher = hashlib.sha256()
    with storage.open_landed(uri) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def digests_of(uri: str, sizes: Sequence[int]) -> list[str]:
    """Return the SHA-256 of each piece of the object at `uri`; it is read anew, whatever was read before."""
    digests = []
    with storage.open_landed(uri) as stream:
        for size in sizes:
            hasher, left = hashlib.sha256(), size
            while left and (chunk := stream.read(min(left, CHUNK))):
                hasher.update(chunk)
                left -= len(chunk)
            digests.append(hasher.hexdigest())
    return digests
