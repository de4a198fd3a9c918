"""Reads a landing whose list points to objects elsewhere: each by its name in the landing, and only as it was listed.

The landing is then named by its list, `folder/snapshot.json`, so that whoever joins a name to it reads the object where
it is, on any worker: the address and the name of its store are in the list. Which store that is and whose keys its
requests have the operator says, and also below which places an address may be (`named_store`, `places`).
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from pipeline_tasks.errors import ContractError
from pipeline_tasks.sealed import canonical
from pipeline_tasks.store.named_store import NAME, require_as_set
from pipeline_tasks.store.places import require_pointed
from pipeline_tasks.store.protocol import Entry, Store
from pipeline_tasks.store.s3.store import S3Store

LIST = "snapshot.json"

_NAME = re.compile(r"(?!/)(?!(?:.*/)?\.{0,2}(?:/|\Z))[^\0-\x1f\x7f\ud800-\udfff]+")
"""A path below a folder, in characters that can be written."""

_ADDRESS = re.compile(r"s3://[^/]+/[^\0-\x1f\x7f\ud800-\udfff]*[^/\0-\x1f\x7f\ud800-\udfff]")
_ETAG = re.compile(r'"?(?!\*"?\Z)[!#-~]+"?')
"""An ETag (RFC 9110, 8.8.3) that tells bytes apart, with or without its marks of quotation: `*` is that of any."""

_OF_LIST = re.compile(rf"(.+)/{re.escape(LIST)}(?:/(.*))?")


@dataclass(frozen=True, slots=True)
class Listed:
    """An object elsewhere: its address, its bytes and ETag as they were listed, and its store, "": the process's."""

    address: str
    bytes: int
    etag: str
    store: str = ""

    @property
    def digest(self) -> str:
        """What stands for the digest of bytes that nobody has read: SHA-256 of their number and the ETag."""
        return hashlib.sha256(canonical([self.etag, self.bytes])).hexdigest()

    def found(self, landing: str) -> tuple[S3Store, str]:
        """Return the store of the object, which refuses it if it was changed, and its path there.

        RecipeError for a place that the list of a landing may not point to.
        """
        require_pointed(landing, [(self.address, self.store)])
        folder, _, name = self.address.rpartition("/")
        return S3Store(folder, self.store, (self.bytes, self.etag)), name


def split_list(uri: str) -> tuple[str, str] | None:
    """Return the folder of a landing that is named by its list, and the prefix behind the list; None of another URI."""
    match = _OF_LIST.fullmatch(uri)
    return (match[1], f"{match[2]}/" if match[2] else "") if match else None


def listed_files(promise: Mapping[str, Any]) -> dict[str, Listed]:
    """Return the files of a `snapshot.json` that are elsewhere, by name; ValueError, TypeError, KeyError if wrong."""
    for name, block in promise.get("stores", {}).items():  # as lists of earlier releases have them
        if not isinstance(block, dict):
            message = f"stores: {_store_name(name)} has no fields"
            raise TypeError(message)
    return {file["path"]: _listed(file) for file in promise["files"] if "address" in file}


def require_named(promise: Mapping[str, Any], files: Mapping[str, Listed], landing: str) -> None:
    """Raise RecipeError for a list that points to places, or says of stores, what the operator has not named."""
    for name, block in promise.get("stores", {}).items():
        require_as_set(name, block)
    require_pointed(landing, [(file.address, file.store) for file in files.values()])


def _store_name(name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(NAME, name):
        message = f"{str(name)[:100]!a} is no name of a store, in small letters, digits and _"
        raise ValueError(message)
    return name


def _listed(file: Mapping[str, Any]) -> Listed:
    address, etag, store = file["address"], file.get("etag"), file.get("store", "")
    if not isinstance(file["path"], str) or not _NAME.fullmatch(file["path"]) or file["path"] == LIST:
        message = f"{str(file['path'])[:100]!a} is no path of a file in the folder, which is its name"
        raise ValueError(message)
    if type(file["bytes"]) is not int or not 0 <= file["bytes"] < 1 << 63:
        message = f"{file['path'][:100]!a} has no number of bytes that could be true"
        raise ValueError(message)
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        message = f"{str(address)[:200]!a} is no address of an object, as s3://bucket/key"
        raise ValueError(message)
    if not isinstance(etag, str) or not etag:
        message = f"{address} has no `etag`, by which a change of it would be noticed"
        raise ValueError(message)
    if not _ETAG.fullmatch(etag):
        message = f"{address} has the `etag` {etag[:100]!a}, which none is"
        raise ValueError(message)
    return Listed(address, file["bytes"], etag.strip('"'), _store_name(store) if store else "")


class ListedStore:
    """A landing by its list: files that the list says are elsewhere are read there, others in the folder."""

    def __init__(self, uri: str, folder: Store, prefix: str) -> None:
        self.root = uri
        self._folder, self._prefix = folder, prefix
        try:
            self._files: Mapping[str, Listed] = _read(folder, folder.stamp(LIST))
        except FileNotFoundError:  # whoever asks for its files says what is missing
            self._files = {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{folder.root}/{LIST} is no list of files ({str(error)[:200]!a}); correct it"
            raise ContractError(message) from error

    def listed(self, path: str) -> Listed | None:
        """Return what the list says of a file elsewhere, None of one in the folder."""
        return self._files.get(f"{self._prefix}{path}")

    def _at(self, path: str) -> tuple[Store, str]:
        """Return the store of a file, and its path there."""
        listed = self.listed(path)
        return listed.found(self._folder.root) if listed else (self._folder, f"{self._prefix}{path}")

    def read(self, path: str) -> bytes:
        store, path = self._at(path)
        return store.read(path)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        store, path = self._at(path)
        return store.read_ranges(path, ranges)

    def open(self, path: str) -> BinaryIO:
        store, path = self._at(path)
        return store.open(path)

    def size(self, path: str) -> int | None:
        store, path = self._at(path)
        return store.size(path)

    def stamp(self, path: str) -> str:
        store, path = self._at(path)
        return store.stamp(path)

    def list(self, prefix: str) -> Iterator[Entry]:
        yield from self._folder.list(f"{self._prefix}{prefix}")

    def folders(self) -> Iterator[str]:
        yield from self._folder.folders()

    def unfinished(self, prefix: str) -> Iterator[Entry]:
        yield from self._folder.unfinished(f"{self._prefix}{prefix}")

    def create(self, path: str, body: bytes) -> bool:
        return self._folder.create(f"{self._prefix}{path}", body)

    def put_file(self, path: str, local: Path, digest: str, *, spare: bool = False) -> None:
        self._folder.put_file(f"{self._prefix}{path}", local, digest, spare=spare)

    def put_scratch(self, path: str, local: Path) -> None:
        self._folder.put_scratch(f"{self._prefix}{path}", local)

    def delete(self, path: str) -> None:
        self._folder.delete(f"{self._prefix}{path}")

    def delete_many(self, paths: Sequence[str]) -> None:
        self._folder.delete_many([f"{self._prefix}{path}" for path in paths])

    def transition(self, path: str, storage_class: str) -> str:
        return self._folder.transition(f"{self._prefix}{path}", storage_class)


@lru_cache(maxsize=8)
def _read(folder: Store, stamp: str) -> Mapping[str, Listed]:
    """Read a list, once for each state of it."""
    del stamp
    return listed_files(cast("Mapping[str, Any]", json.loads(folder.read(LIST))))
