"""Stores the files that are published with a version, and describes them by size and digest."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.errors import ContractError, DeterminismViolation, DigestMismatch
from pipeline_tasks.sealed import require_digest
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import erased, removed
from pipeline_tasks.store.shards.file import Source, checked

WAY_OUT = "run its snapshot again: publishing writes it anew"
"""The way out of a damaged file of a snapshot's version; `Version.way_out` has that of each version."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file that was published with a version: its path relative to the root, bytes, and SHA-256."""

    path: str
    bytes: int
    digest: str


Promised = Mapping[str, PublishedFile]
"""The files that existing versions name, by path."""


def publish_file(root: str, path: str, local: Path, promised: Promised, *, spare: bool = False) -> PublishedFile:
    """Store a local file at `path`; a missing or damaged file is written again. A `spare` file may be moved there.

    DeterminismViolation if a version promises other bytes there: they are in use, and are not replaced.
    """
    size, digest = storage.digest_of_file(str(local.absolute()))
    file = PublishedFile(path, size, digest)
    known = promised.get(path, file)
    if known != file:
        message = (
            f"{root}/{path}: a published version promises SHA-256 {known.digest}, and this export gives {digest}; "
            "nothing was replaced. If another release published the version, refine or build it again with this one"
        )
        raise DeterminismViolation(message)
    storage.connect(root).put_file(path, local, digest, spare=spare)
    return file


def read_published_file(root: str, file: PublishedFile, way_out: str = WAY_OUT) -> bytes:
    """Return the bytes of a published file; ContractError if it is gone, DigestMismatch if it was changed."""
    file = require_size(root, file, way_out)
    body = storage.connect(root).read(file.path)
    require_digest(body, file.digest, f"{root}/{file.path}", way_out)
    return body


@contextlib.contextmanager
def open_published_file(root: str, file: PublishedFile, way_out: str = WAY_OUT) -> Iterator[Source]:
    """Open a published file, as `read_published_file` reads it: a large one from this machine's disk."""
    file = require_size(root, file, way_out)
    with contextlib.ExitStack() as stack:
        try:
            source = stack.enter_context(checked(root, Shard(file.path, 0, file.bytes, file.digest)))
        except DigestMismatch as error:
            message = f"{root}/{file.path} is not what a version promises; {way_out} ({error})"
            raise DigestMismatch(message) from error
        yield source


def require_size(root: str, file: PublishedFile, way_out: str = WAY_OUT) -> PublishedFile:
    """Return a published file, or the one that an erasure put in its place.

    ContractError if it is gone, DigestMismatch if it has another size.
    """
    size = storage.connect(root).size(file.path)
    if size is None and (found := erased(root, file.path, file.digest)) is not None:
        if found.after is None:
            raise removed(root, file.path)
        return require_size(root, PublishedFile(found.after.path, found.after.bytes, found.after.digest), way_out)
    if size is None:
        message = f"{root}/{file.path} was removed, and a version names it; {way_out}"
        raise ContractError(message)
    if size != file.bytes:
        message = f"{root}/{file.path} has {size} bytes, and the version that names it promises {file.bytes}; {way_out}"
        raise DigestMismatch(message)
    return file
