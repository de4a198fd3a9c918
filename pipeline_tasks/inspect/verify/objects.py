"""Checks the size and the digest of stored objects, several at a time, with progress on a terminal."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from pipeline_tasks.inspect.verify.findings import Findings, Problem
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import Erased, erased, expired
from pipeline_tasks.store.listed_store import LIST
from pipeline_tasks.store.protocol import CHUNK

THREADS = 8
"""Objects that are read at the same time."""

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


def run_all(checks: Iterable[Callable[[], None]]) -> None:
    """Run checks on several threads; show how many are done if stderr is a terminal."""
    shown = sys.stderr.isatty()
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(check) for check in checks]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            if shown:
                sys.stderr.write(f"\r{done:,} of {len(futures):,} checks")
                sys.stderr.flush()
    if shown:
        sys.stderr.write("\r\x1b[K")
