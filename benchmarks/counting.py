"""Counts what a process asks of its stores, as requests to S3: by verb, and the bytes read and written.

A store on a disk answers, and what it is asked is counted as `S3Store` would send it: a file that is opened is a HEAD
and a GET for each `CHUNK`, an object that is put is a PUT, and a HEAD behind it that looks at its length, a list is a
LIST for each thousand. So counts of a simulated crawl of 90,000 files need no server, and every machine has the same.
"""

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.protocol import CHUNK, MERGE_GAP, Entry

PAGE = 1000
"""Objects that a LIST names at most."""


@dataclass(slots=True)
class Requests:
    """Requests by verb, and bytes read and written, of stores whose root is `below` a place; of all if it is ""."""

    below: str = ""
    verbs: Counter[str] = field(default_factory=Counter)
    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.verbs.values())

    def of(self, store: LocalStore) -> "Requests":
        """Return these counts for a store that they count, else some that nobody reads."""
        return self if store.root.startswith(self.below) else Requests()


class _CountedFile(io.RawIOBase):
    """An open file that counts the bytes read and, for each `CHUNK` of them, a GET."""

    def __init__(self, file: BinaryIO, requests: Sequence[Requests]) -> None:
        super().__init__()
        self._file, self._requests, self._rest = file, requests, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 -- any writable buffer
        part = self._file.read(len(buffer))
        buffer[: len(part)] = part
        for counts in self._requests:
            counts.read += len(part)
            counts.verbs["GET"] += -(-max(len(part) - self._rest, 0) // CHUNK)
        self._rest = max(self._rest - len(part), 0) if len(part) <= self._rest else -len(part) % CHUNK
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextlib.contextmanager
def counted(*requests: Requests) -> Iterator[None]:
    """Count what is asked of stores on disks until the end."""
    originals = {name: getattr(LocalStore, name) for name in _COUNTED}
    for name, count in _COUNTED.items():
        setattr(LocalStore, name, count(originals[name], requests))
    try:
        yield
    finally:
        for name, method in originals.items():
            setattr(LocalStore, name, method)


Method = Callable[..., Any]


def _open(method: Method, requests: Sequence[Requests]) -> Method:
    def opened(store: LocalStore, path: str) -> BinaryIO:
        chosen = _add(store, requests, "HEAD")
        return cast("BinaryIO", io.BufferedReader(_CountedFile(method(store, path), chosen), CHUNK))

    return opened


def _read(method: Method, requests: Sequence[Requests]) -> Method:  # noqa: ARG001 -- as the others
    def read(store: LocalStore, path: str) -> bytes:
        chosen = _add(store, requests, "GET")
        body = Path(store.root, path).read_bytes()
        for counts in chosen:
            counts.read += len(body)
        return body

    return read


def _ranges(method: Method, requests: Sequence[Requests]) -> Method:  # noqa: ARG001 -- as the others
    def ranges(store: LocalStore, path: str, wanted: Sequence[tuple[int, int]]) -> list[bytes]:
        chosen, last = [counts.of(store) for counts in requests], -MERGE_GAP - 1
        with Path(store.root, path).open("rb") as file:
            bodies = []
            for start, stop in wanted:
                if not 0 <= start - last <= MERGE_GAP:
                    for counts in chosen:
                        counts.verbs["GET"] += 1
                last = stop
                file.seek(start)
                bodies.append(file.read(stop - start))
        for counts in chosen:
            counts.read += sum(map(len, bodies))
        return bodies

    return ranges


def _create(method: Method, requests: Sequence[Requests]) -> Method:
    def create(store: LocalStore, path: str, body: bytes) -> bool:
        for counts in _add(store, requests, "PUT"):
            counts.written += len(body)
        return cast("bool", method(store, path, body))

    return create


def _put_file(method: Method, requests: Sequence[Requests]) -> Method:
    def put_file(store: LocalStore, path: str, local: Path, digest: str, *, spare: bool = False) -> None:
        for counts in _add(store, requests, "PUT", "HEAD"):
            counts.written += local.stat().st_size
        method(store, path, local, digest, spare=spare)

    return put_file


def _put_scratch(method: Method, requests: Sequence[Requests]) -> Method:
    def put_scratch(store: LocalStore, path: str, local: Path) -> None:
        for counts in _add(store, requests, "PUT", "HEAD"):
            counts.written += local.stat().st_size
        method(store, path, local)

    return put_scratch


def _delete_many(method: Method, requests: Sequence[Requests]) -> Method:
    def delete_many(store: LocalStore, paths: Sequence[str]) -> None:
        for _ in range(0, len(paths), PAGE):
            _add(store, requests, "POST")
        method(store, paths)

    return delete_many


def _asked(verb: str) -> Callable[[Method, Sequence[Requests]], Method]:
    def patch(method: Method, requests: Sequence[Requests]) -> Method:
        def asked(store: LocalStore, path: str) -> Any:  # noqa: ANN401 -- as the method
            _add(store, requests, verb)
            return method(store, path)

        return asked

    return patch


def _list(method: Method, requests: Sequence[Requests]) -> Method:
    def listed(store: LocalStore, prefix: str) -> Iterator[Entry]:
        for number, entry in enumerate(method(store, prefix)):
            if number % PAGE == 0:
                _add(store, requests, "LIST")
            yield entry

    return listed


def _add(store: LocalStore, requests: Sequence[Requests], *verbs: str) -> list[Requests]:
    chosen = [counts.of(store) for counts in requests]
    for counts in chosen:
        counts.verbs.update(verbs)
    return chosen


_COUNTED: dict[str, Callable[[Method, Sequence[Requests]], Method]] = {
    "open": _open,
    "read": _read,
    "read_ranges": _ranges,
    "create": _create,
    "put_file": _put_file,
    "put_scratch": _put_scratch,
    "size": _asked("HEAD"),
    "stamp": _asked("HEAD"),
    "delete": _asked("DELETE"),
    "delete_many": _delete_many,
    "list": _list,
}
