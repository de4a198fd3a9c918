"""Maps files of a dataset into memory: from a folder of this machine, or what `bucket_folder` fetches to it."""

import mmap
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store.local_store import open_regular
from pipeline_tasks.training.index import NAME, WAY_OUT, StoredFile

Mapped = npt.NDArray[np.uint8]

WHOLE = 1 << 62
"""Bytes of a chunk where files are not cut into chunks."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [start, stop) of a file."""

    file: StoredFile
    start: int
    stop: int


class Folder(Protocol):
    """The files of one dataset; `chunk_bytes` is what one fetch brings, and `ahead` how many are worth asking early."""

    chunk_bytes: int
    ahead: int

    def index(self) -> tuple[bytes, str]:
        """Return `dataset.json`, and where it is."""

    def map(self, span: Span) -> Mapped:
        """Return the bytes of a span; ContractError if the file is missing, cut or damaged."""

    def prefetch(self, spans: Iterable[Span]) -> None:
        """Start to fetch spans that will be mapped soon."""

    def close(self) -> None:
        """Fetch nothing more."""


class LocalFolder:
    """A dataset's folder on this machine."""

    chunk_bytes = WHOLE
    ahead = 0

    def __init__(self, path: Path) -> None:
        self._path = path.parent if path.name == NAME else path

    def index(self) -> tuple[bytes, str]:
        path = self._path / NAME
        try:
            with open_regular(path) as stream:
                return stream.read(), str(path)
        except OSError as error:
            message = (
                f"{path} cannot be read ({error.strerror}); name a training dataset as ROOT/NAME@latest, or the "
                "folder of one of its versions"
            )
            raise RecipeError(message) from error

    def map(self, span: Span) -> Mapped:
        where = self._path / span.file.path
        return map_file(where, span.file.bytes)[span.start : span.stop]

    def prefetch(self, spans: Iterable[Span]) -> None:
        del spans  # the kernel reads ahead

    def close(self) -> None:
        """Nothing is under way."""


def map_file(path: Path, size: int) -> Mapped:
    """Return a file of this machine as bytes; ContractError unless it has `size` of them."""
    try:
        with open_regular(path) as stream:
            actual = stream.seek(0, 2)
            if actual != size:
                message = f"{path} has {actual} bytes, and {NAME} promises {size}; it was cut or changed; {WAY_OUT}"
                raise ContractError(message)
            return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b"", np.uint8)
    except FileNotFoundError as error:
        raise missing(str(path)) from error


def missing(path: str) -> ContractError:
    """Return the error for a file that is not there."""
    return ContractError(f"{path} is missing, and {NAME} names it; {WAY_OUT}. Shards lie beside the versions' folders")


def require_digest(body: bytes | Mapped, file: StoredFile, where: str) -> None:
    """Raise DigestMismatch unless a whole file has the digest that the index promises."""
    actual = sha256(body)  # type: ignore[arg-type]  # any buffer
    if actual != file.sha256:
        message = (
            f"{where}: SHA-256 is {actual}, and {NAME} promises {file.sha256}; the file was changed after it was "
            f"published; {WAY_OUT}"
        )
        raise DigestMismatch(message)


def beside(own: str, path: str) -> str:
    """Return a path relative to a dataset's folder as one relative to the folder above, in which `own` is its name."""
    return posixpath.normpath(posixpath.join(own, path))
