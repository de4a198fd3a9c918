"""Downloads one file: continued where it broke off, and taken for whole only if its length and checksums say so.

A partial file has a note beside it: the file's ETag and length at its source, and how many bytes are on the disk. A
later try believes these bytes and no others, and asks for the rest. So a killed pull writes at most `FLUSH` bytes of
each of its open files a second time, and one whose connection broke off none. What comes twice besides is less than a
`PIECE`, and what the network had under way.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline_tasks.errors import ContractError, SourceBusy
from pipeline_tasks.store.local_store import flush, os_errors
from pipeline_tasks.store.protocol import CHUNK
from refinery_sources.budget import Stopped
from refinery_sources.members import Members
from refinery_sources.source import UNKNOWN, Flow, Part, Received
from refinery_sources.web import PIECE, TRIES, Web, answered

if TYPE_CHECKING:
    import httpx

DAMAGED_TRIES = 3
"""How often a file is downloaded from its beginning whose bytes are damaged."""

NUMBER = "[0-9]{1,18}"
"""A number of bytes that a server says: `int` takes no more than 4,300 digits, and no disk has more than these."""

_RANGE = re.compile(f"bytes ({NUMBER})-({NUMBER})/({NUMBER})")


Ask = Callable[[Web, str, dict[str, str]], contextlib.AbstractContextManager["httpx.Response"]]
"""Sends one request with headers, as `web.answered` does."""


def _asked(on: Web, url: str, headers: dict[str, str]) -> contextlib.AbstractContextManager["httpx.Response"]:
    return answered(on, url, headers=headers)


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a partial file: ETag and bytes of the whole one, and the bytes that are on the disk."""

    etag: str = ""
    total: int = UNKNOWN
    flushed: int = 0


def download(on: Web, part: Part, partial: Path, flow: Flow, ask: Ask = _asked) -> Received:
    """Download a part to `partial`, which may have the beginning of it; `ask` sends each request.

    SourceBusy if nothing more came in `TRIES` tries; ContractError if the source's bytes are not whole or not those
    that it promises; SourceRefused and SnapshotIncomplete as `web.answered`.
    """
    tries = damaged = 0
    reached = read_note(partial).flushed
    while True:
        try:
            return _attempt(on, part, partial, flow, ask)
        except SourceBusy:
            flushed = read_note(partial).flushed
            tries = 1 if flushed > reached else tries + 1
            reached = max(flushed, reached)
            if tries == TRIES:
                raise
        except ContractError:
            discard(partial)
            damaged += 1
            reached = 0
            if damaged == DAMAGED_TRIES:
                raise
        on.pause(max(tries, damaged))


def read_note(partial: Path) -> Note:
    """Return what is known of a partial file; nothing where there is no note, or a broken one."""
    try:
        return Note(**json.loads(_note_path(partial).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return Note()


def discard(partial: Path) -> None:
    """Remove a partial file and its note."""
    _note_path(partial).unlink(missing_ok=True)
    partial.unlink(missing_ok=True)


def _note_path(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


class _Partial:
    """An open partial file, its digest, and the check of its members; all three have the same bytes."""

    def __init__(self, part: Part, path: Path, flow: Flow) -> None:
        self._part, self._path, self._flow = part, path, flow
        self.note, self.at = read_note(path), 0
        self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        if self._file.seek(0, os.SEEK_END) < self.note.flushed:
            self.note = Note()

    def begin(self, note: Note) -> None:
        """Go on with the file that the note is of: from its beginning, unless it is the note of what is here."""
        if note != self.note:
            self.note = note
            self.keep()
            self.flush()

    def keep(self) -> None:
        """Keep the bytes that the note says are on the disk, and read them again."""
        self._file.truncate(self.note.flushed)
        self._file.seek(0)
        self.at, self._hash, self._members = 0, hashlib.sha256(), Members(self._part.address)
        self._is_gzip = self._part.name.endswith(".gz")
        while chunk := self._file.read(CHUNK):
            self._take(chunk)

    def write(self, chunk: bytes) -> None:
        """Append bytes that have arrived."""
        rest = memoryview(chunk)
        while rest:  # an unbuffered write may be short
            rest = rest[self._file.write(rest) :]
        self._take(chunk)
        self._flow.on_bytes(self._part.name, len(chunk))
        if self.at - self.note.flushed >= self._flow.flush:
            self.flush()

    def _take(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.at += len(chunk)
        if self._is_gzip:
            self._members.feed(chunk)

    def flush(self) -> None:
        """Wait until all bytes are on the disk, and note how many they are."""
        os.fsync(self._file.fileno())
        self.note = replace(self.note, flushed=self.at)
        _write_note(self._path, self.note)

    def received(self) -> Received:
        """Return the whole file; ContractError if it is not what the source promises."""
        if self._is_gzip:
            self._members.finish()
        received = Received(self.at, self._hash.hexdigest(), self.note.etag)
        part = self._part
        if part.bytes not in (UNKNOWN, received.bytes) or part.sha256 not in ("", received.sha256):
            message = (
                f"{part.address} has {received.bytes:,} bytes and the SHA-256 {received.sha256}; its source promises "
                f"{part.bytes:,} and {part.sha256 or 'no digest'}"
            )
            raise ContractError(message)
        return received

    def close(self) -> None:
        """Keep what has arrived for the next try."""
        try:
            if self.at > self.note.flushed:
                self.flush()
        finally:
            self._file.close()


def _write_note(path: Path, note: Note) -> None:
    target = _note_path(path)
    temporary = target.with_name(f"{target.name}.tmp")
    with temporary.open("wb") as stream:
        stream.write(json.dumps(asdict(note)).encode())
        flush(stream)
    temporary.replace(target)


def _attempt(on: Web, part: Part, path: Path, flow: Flow, ask: Ask) -> Received:
    with os_errors(str(path)), contextlib.closing(_Partial(part, path, flow)) as partial:
        partial.keep()
        if partial.at != partial.note.total:
            with ask(on, part.address, _headers(partial.note)) as response:
                partial.begin(_begun(partial.note, response, part.address))
                _read_body(on, part, response, partial)
        return partial.received()


def _headers(note: Note) -> dict[str, str]:
    """Return the headers that ask for what is missing, if the file is still the same; of the whole one otherwise."""
    if not note.flushed or not note.etag:
        return {}
    headers = {"Range": f"bytes={note.flushed}-"}
    return headers if note.etag.startswith("W/") else {**headers, "If-Range": note.etag}


def _begun(note: Note, response: "httpx.Response", url: str) -> Note:
    """Return what is known of the file by an answer, which has all of it, or its rest.

    The note is an empty one where the answer has the rest of another file.
    """
    etag = response.headers.get("ETag", "")
    if response.status_code == HTTPStatus.OK:
        length = response.headers.get("Content-Length", "")
        if not re.fullmatch(NUMBER, length):
            message = f"{url} is sent without its length, so nothing proves that it is whole; name another mirror"
            raise ContractError(message)
        return Note(etag, int(length))
    rest = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    expected = (str(note.flushed), str(note.total - 1), str(note.total))
    is_rest = response.status_code == HTTPStatus.PARTIAL_CONTENT and rest is not None and rest.groups() == expected
    return note if is_rest and etag == note.etag else Note()


def _read_body(on: Web, part: Part, response: "httpx.Response", partial: _Partial) -> None:
    """Append a body; SourceBusy if it is that of another file, or ends early."""
    if partial.note.total == UNKNOWN:
        message = f"{part.address} has changed since its first bytes were downloaded; it is downloaded anew"
        raise SourceBusy(message)
    budget = on.budget(part.address)
    for chunk in response.iter_raw(PIECE):
        if on.stop.is_set():
            raise Stopped
        budget.spend(len(chunk))
        partial.write(chunk)
    if partial.at != partial.note.total:
        message = f"{part.address} broke off at byte {partial.at:,} of {partial.note.total:,}; try again later"
        raise SourceBusy(message)
