"""Connects to the store of a URI, and commits to it: put-if-absent is the only commit."""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, TypeVar

from pipeline_tasks.constraints import S3, STORES, is_brought, is_bucket, kind_of
from pipeline_tasks.errors import DeterminismViolation, DigestMismatch, RecipeError, RefineryError, Transient
from pipeline_tasks.seams import parts
from pipeline_tasks.store.brought_store import brought_store
from pipeline_tasks.store.clouds import client as cloud_client
from pipeline_tasks.store.clouds.store import CloudStore
from pipeline_tasks.store.known_digests import keep_digest, known_digest
from pipeline_tasks.store.listed_store import ListedStore, split_list
from pipeline_tasks.store.local_store import Fence, LocalStore, flush, new_file, os_errors, sha256_of
from pipeline_tasks.store.protocol import CHUNK, PARALLEL_REQUESTS, Store
from pipeline_tasks.store.s3 import client as s3_client
from pipeline_tasks.store.s3.client import require_reachable
from pipeline_tasks.store.s3.store import S3Store
from pipeline_tasks.store.temporary import user_folder

_OTHER_KIND = re.compile(r"(?!(?:s3|gs|az)://[^/]|file:///)(?:[A-Za-z][A-Za-z0-9+.-]*:(?:/|\Z)|(?:s3|gs|az)//)")
"""The start of a URI that names no store, or of one that is mistyped: `s3:/bucket`, `s3//bucket`, `s3://` alone."""

_MISTYPED = re.compile(r"(?i)(s3|gs|az)(?::/{0,3}|//+)([^/:].*)")
"""What is meant for a bucket: its kind, and the rest."""

KEEPS = 3
"""Tries to store an object that is found empty, or is removed by another attempt between two requests."""

T = TypeVar("T")
U = TypeVar("U")


def connect(uri: str, named: str = "", fence: Fence | None = None) -> Store:
    """Return the store at `uri`: `s3://`, `gs://` or `az://bucket/prefix`, `file:///path` or a local path.

    Another distribution may bring the store of another scheme: a function of the URI that returns a `Store`.
    `folder/snapshot.json` is a landing by its list, whose files may be elsewhere. A bucket may be of a `named` store.
    Files of a disk are opened within a `fence`.
    """
    uri = uri.rstrip("/") if uri != "/" else uri
    listed = split_list(uri)
    if listed is not None:
        folder, prefix = listed
        return ListedStore(uri, _connect(folder, named, fence), prefix)
    return _connect(uri, named, fence)


def is_other_kind(uri: str) -> bool:
    """Return whether a text names a kind of store that there is none of, or is mistyped; `connect` refuses it."""
    return _OTHER_KIND.match(uri) is not None and not is_brought(uri)


@lru_cache(maxsize=64)
def _connect(uri: str, named: str, fence: Fence | None) -> Store:
    if is_other_kind(uri):
        brought = "".join(f" or {scheme}://" for scheme in parts(STORES))
        meant = _MISTYPED.fullmatch(uri)
        hint = f" (did you mean {meant[1].lower()}://{meant[2]}?)" if meant else ""
        kinds = f"s3://, gs:// or az://bucket/prefix{brought}"
        message = f"{uri}: no storage of this kind{hint}; give {kinds}, or a local path"
        raise RecipeError(message)
    if uri.startswith("s3://"):
        return S3Store(uri, named)
    if named:
        message = f"{uri} is no bucket of S3, and the store {named} is one; name s3://bucket/prefix"
        raise RecipeError(message)
    if is_brought(uri):
        return brought_store(uri)
    if is_bucket(uri):
        return CloudStore(uri)
    return LocalStore(uri.removeprefix("file://"), fence)


def commit(store: Store, path: str, body: bytes) -> None:
    """Put-if-absent that never trusts a status code: another attempt's equal bytes are success."""
    if keep(store, path, body) != body:
        message = (
            f"{store.root}/{path} was committed with other bytes by another attempt at the same work; "
            "the first stays. Compare the two (versions of models or packages differ?) and remove its folder to redo it"
        )
        raise DeterminismViolation(message)


def keep(store: Store, path: str, body: bytes) -> bytes:
    """Put-if-absent of bytes that may differ between attempts; return those that are stored, the first ones.

    No commit is empty, but some servers keep an empty object of a PUT whose client died before its body
    (MiniStack 1.4 does). An empty object is removed, and the commit is tried again, as it is where another attempt
    removes an object that stood in the way.
    """
    for _ in range(KEEPS):
        if store.create(path, body):
            return body
        with contextlib.suppress(FileNotFoundError):
            if stored := store.read(path):
                return stored
            store.delete(path)
    message = f"{store.root}/{path} is neither there nor can be created: {KEEPS} tries met an empty or a removed object"
    raise Transient(message)


def each(store: Store, call: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """Yield what a call that asks the store returns for each item, in order; several wait for a bucket at once.

    The first error in the order of items is raised, and what has not begun is left out.
    """
    if not is_bucket(store.root):
        yield from map(call, items)
        return
    with ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="store") as pool:
        yield from pool.map(call, items)


def options_of_other_clients(uri: str) -> dict[str, str] | None:
    """Return the options by which a library with a client of its own reads and writes at a URI; None for a disk."""
    if is_brought(uri):
        message = (
            f"{uri}: libraries with clients of their own do not read {kind_of(uri)}; name a bucket or a local path"
        )
        raise RecipeError(message)
    if uri.startswith(S3):
        return s3_client.options_of_other_clients(uri)
    return cloud_client.options_of_other_clients(uri) if is_bucket(uri) else None


def put_file(root: str, path: str, local: Path) -> None:
    """Store a local file at `path`, relative to the root."""
    connect(root).put_file(path, local, sha256_of(local))


# --- Roots --------------------------------------------------------------------------------------------------------


def require_folder(root: str) -> None:
    """Raise RecipeError if `root` is a file: nothing can be below it."""
    path = Path(root.removeprefix("file://"))
    if not is_bucket(root) and path.exists() and not path.is_dir():
        message = f"{root} is a file, not a root; name a folder, or s3://, gs:// or az://bucket/prefix"
        raise RecipeError(message)


def existing(root: str) -> Path:
    """Return a local root, or the first folder above it that is there."""
    place = Path(root.removeprefix("file://")).absolute()
    return next(folder for folder in (place, *place.parents) if folder.exists())


def require_usable(root: str) -> None:
    """Raise RecipeError or Transient within seconds if `root` cannot be reached, or not be written to.

    Whether a bucket may be written to is not tried: a probe would stay in it where objects cannot be removed.
    """
    connect(root)
    if root.startswith(S3):
        require_reachable(root)
        return
    if is_brought(root):
        next(connect(root).list(""), None)
        return
    if is_bucket(root):
        CloudStore(root).require_reachable()
        return
    parent = existing(root)
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        message = f"{root}: this user may not write to {parent}; choose another root"
        raise RecipeError(message)


PROBE = "doctor/conditional"
"""What is put into a bucket to see whether a commit there is one; it is removed again, where that is allowed."""


def require_conditional(root: str) -> None:
    """Raise RecipeError unless a bucket heeds put-if-absent, without which a retry overwrites what is committed.

    A disk does. The object may stay where objects cannot be removed: the next look finds it there.
    """
    if not is_bucket(root):
        return
    store = connect(root)
    if store.create(PROBE, b"refinery"):
        with contextlib.suppress(RefineryError):
            store.delete(PROBE)


def require_root(root: str) -> None:
    """Raise RecipeError unless `root` is a folder that exists, or a prefix with objects."""
    require_folder(root)
    store = connect(root)
    exists = any(True for _ in store.list("")) if is_bucket(root) else Path(store.root).is_dir()
    if not exists:
        what = "has no objects" if is_bucket(root) else "does not exist"
        message = f"{root} {what}; name the root that a run wrote to (`refinery run ROOT` makes one)"
        raise RecipeError(message)


# --- Files by URI -------------------------------------------------------------------------------------------------


def absolute(uri: str) -> str:
    """Return a URI without a trailing slash, or a local path made absolute."""
    is_path = "://" not in uri and not is_other_kind(uri)  # which is refused as it was written
    return str(Path(uri).absolute()) if is_path else uri.rstrip("/")


def is_absolute(path: str) -> bool:
    """Return whether a path is a landed file's own URI, and not relative to the root."""
    return "://" in path or path.startswith("/")


def open_landed(uri: str, named: str = "", fence: Fence | None = None) -> BinaryIO:
    """Open a landed file by its absolute URI; its bucket may be of a store that is `named`."""
    folder, _, name = uri.rpartition("/")
    return connect(folder or "/", named, fence).open(name)


def listed_digest(uri: str) -> str:
    """Return what stands for the digest of a file that a landing lists elsewhere, "" for any other file.

    It is that of the ETag, which the store compares whenever it reads.
    """
    folder, _, name = uri.rpartition("/")
    store = connect(folder or "/")
    listed = store.listed(name) if isinstance(store, ListedStore) else None
    return listed.digest if listed else ""


def localize(uri: str, digest: str) -> str:
    """Return a local path of the file at `uri`: itself if local, else a copy in this user's cache.

    DigestMismatch unless the file has the digest. A copy that has not is made again.
    """
    if not is_bucket(uri):
        _require_planned(uri, digest_of_file(uri)[1], digest)
        return uri.removeprefix("file://")
    target = user_folder() / digest / uri.rpartition("/")[2]
    fetch(uri, digest, target)
    return str(target)


def fetch(uri: str, digest: str, target: Path) -> None:
    """Have a copy of the file at `uri` at a local path: one that is there is believed by its digest alone.

    DigestMismatch unless the file at `uri` has the digest.
    """
    if target.is_file() and digest_of_file(str(target))[1] == digest:
        return
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os_errors(str(target)), new_file(target) as (stream, path):
        with open_landed(uri) as source:
            shutil.copyfileobj(source, stream, CHUNK)
        flush(stream)
        _require_planned(uri, sha256_of(path), digest)
        path.replace(target)


def _require_planned(uri: str, actual: str, planned: str) -> None:
    if actual != planned:
        message = f"{uri}: SHA-256 is {actual}, not {planned} as when the run was planned; run it again"
        raise DigestMismatch(message)


def digest_of_file(uri: str) -> tuple[int, str]:
    """Return (bytes, SHA-256) of the file at `uri`.

    A later call reads the file again only if it has changed, and so does a later process of this user a large file. One
    that a landing lists elsewhere is not read: its digest is `listed_digest`.
    """
    folder, _, name = uri.rpartition("/")
    store = connect(folder or "/")
    if isinstance(store, ListedStore) and (listed := store.listed(name)):
        return listed.bytes, listed.digest
    return _digest(uri, store.stamp(name))


@lru_cache(maxsize=4096)
def _digest(uri: str, stamp: str) -> tuple[int, str]:
    if known := known_digest(uri, stamp):
        return known
    hasher, size = hashlib.sha256(), 0
    with open_landed(uri) as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
            size += len(chunk)
    keep_digest(uri, stamp, size, hasher.hexdigest())
    return size, hasher.hexdigest()
