"""Declares what every store does with the bytes under one root, and the errors for objects that are damaged."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pipeline_tasks.errors import ContractError, DigestMismatch, StorageBusy

CHUNK = 8 * 1024 * 1024
"""Bytes that are copied, hashed or fetched at a time."""

DELETED_AT_ONCE = 1000
"""Objects that one request removes at most: S3's own bound."""


MERGE_GAP = 128 * 1024
"""A gap of at most this many bytes is fetched to save a request: Hadoop's `fs.s3a.vectored.read.min.seek.size`."""

PARALLEL_REQUESTS = 10
"""Requests that are sent at the same time, of ranges of an object or of objects: as many as boto3 keeps connections."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored object: its path relative to the root, its size, and its time of modification as the server has it.

    `storage_class` is what a bucket names it ("" where the store has none, or does not say).
    """

    path: str
    bytes: int
    modified: float
    storage_class: str = ""


class Store(Protocol):
    """The objects under one root; paths are relative, with `/`."""

    root: str

    def __hash__(self) -> int:
        """Return the hash by which what is read of a store is kept in memory."""

    def read(self, path: str) -> bytes:
        """Return a whole object; FileNotFoundError if there is none."""

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return bytes [start, stop) of an object for each range; DigestMismatch if the object ends before a stop."""

    def open(self, path: str) -> BinaryIO:
        """Open an object as a seekable file; FileNotFoundError if there is none."""

    def create(self, path: str, body: bytes) -> bool:
        """Store `body` if the path is free; False if it has other bytes. Every commit is such a put-if-absent."""

    def put_file(self, path: str, local: Path, digest: str, *, spare: bool = False) -> None:
        """Store a local file under a name that follows from its content; storing it twice changes nothing.

        A `spare` file, which the caller has no further use for, may be moved there.
        """

    def put_scratch(self, path: str, local: Path) -> None:
        """Store a local file that nobody misses after a crash, under a path of this attempt alone; it may be moved."""

    def size(self, path: str) -> int | None:
        """Return the bytes of an object, None if there is none."""

    def stamp(self, path: str) -> str:
        """Return a text that changes when the object changes; FileNotFoundError or OSError if there is none to read."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield every object under `prefix`, sorted by path."""

    def folders(self) -> Iterator[str]:
        """Yield the names of the folders right under the root that are not hidden, sorted."""

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove objects, in any order and several at once; nothing happens for one that is not there."""

    def transition(self, path: str, storage_class: str) -> str:
        """Bring an object into a storage class, with the same bytes at the same path; return the class that it has.

        "" on a store without storage classes, where nothing happens. FileNotFoundError if there is no object.
        """

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        """Yield the files under `prefix` that killed writers left half-written. `list` never yields them."""


def confined(root: str, path: str) -> str:
    """Return a path relative to the root; ContractError if it leads out. A manifest may be forged."""
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        message = (
            f"{root}: the path {path!r} leads out of the root; the manifest or entry that has it is damaged or forged. "
            "Restore it, or remove it and run again"
        )
        raise ContractError(message)
    return path


def mismatch(path: str, promised: str, actual: str, *, has_manifest: bool = True) -> DigestMismatch:
    """Return the error for an object whose SHA-256 is not the promised one; one may have no manifest of its own."""
    way_out = "remove it and its manifest and run again" if has_manifest else "remove it and run again"
    message = (
        f"{path}: SHA-256 is {actual}, its manifest promised {promised}; the file was changed or damaged after it "
        f"was written. Restore it, or {way_out}"
    )
    return DigestMismatch(message)


def require_whole(uri: str, size: int | None, whole: int, digest: str) -> None:
    """Raise StorageBusy unless an object that was uploaded has all bytes of its file; None if it is not there."""
    if size != whole:
        message = (
            f"{uri}: the upload was cut: the store has {size or 0} of {whole} bytes (SHA-256 {digest}); nothing was "
            "committed, and it is tried again later"
        )
        raise StorageBusy(message)


def cut_short(path: str, size: int, stop: int) -> DigestMismatch:
    """Return the error for an object that ends before bytes which its manifest promised."""
    message = (
        f"{path} has {size} bytes and its manifest promised {stop} or more; the file was cut short after it was "
        "written. Restore it, or remove it and its manifest and run again"
    )
    return DigestMismatch(message)
