"""Keeps fetched bytes in a bounded folder of this machine, which its ranks and workers share.

A file appears under its name when it is complete. The bytes that were used longest ago go first. Each process looks at
the whole folder after it has added a sixteenth of what may be kept, or one file if that is more. What has another name
than a cache gives is neither counted nor removed.
"""

import contextlib
import errno
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.errors import ContractError, NoSpace, RecipeError
from pipeline_tasks.training.folder import Mapped, Span, map_file

_LOOKS = 16
"""A process looks at the folder after it has added this part of it."""

_UNFINISHED = ".tmp-"
_OWN = re.compile(rf"[0-9a-f]{{32}}-\d+-\d+|{re.escape(_UNFINISHED)}\w{{8}}")
"""Names that a cache gives: spans, and what a killed process left half-written. All else is not its own."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Where bytes from S3 are kept on this machine, for all its ranks and workers, and how much of them.

    `ahead` chunks are fetched before they are needed, by `threads` threads of every worker. A fetch that S3 refuses
    because it is busy is repeated for `patience_s` seconds. Local datasets need no cache.
    """

    folder: str = "~/.cache/refinery/training"
    bytes: int = 16 << 30
    chunk_bytes: int = 1 << 20
    ahead: int = 16
    threads: int = 8
    patience_s: float = 900.0

    def __post_init__(self) -> None:
        """Refuse a cache that cannot keep what is fetched ahead."""
        least = 2 * (self.ahead + self.threads) * self.chunk_bytes
        if min(self.ahead, self.threads, self.chunk_bytes) < 1 or self.bytes < least:
            message = (
                f"a cache of {self.bytes} bytes is too small for {self.ahead} chunks ahead by {self.threads} threads; "
                f"give it {least} bytes or more, and at least 1 for each of the others"
            )
            raise RecipeError(message)


@dataclass(slots=True)
class Fetching:
    """What this process fetched from S3, how often S3 was too busy to answer, and how long reading waited for it."""

    requests: int = 0
    bytes: int = 0
    throttled: int = 0
    waited_s: float = 0.0


class ChunkFiles:
    """The files of a cache, one per span."""

    def __init__(self, cache: Cache) -> None:
        self._folder, self._most = Path(cache.folder).expanduser(), cache.bytes
        self._added = cache.bytes  # a look at the first addition: another run may have left files
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self._folder} cannot be a cache ({error.strerror}); name another folder in Cache(folder=...)"
            raise RecipeError(message) from error

    def map(self, span: Span) -> Mapped | None:
        """Return the bytes of a span, None if they are not here."""
        path = self._path(span)
        if not self.has(span):
            return None
        with contextlib.suppress(FileNotFoundError):  # another process removed it just now
            os.utime(path)
        with contextlib.suppress(ContractError):
            return map_file(path, span.stop - span.start)
        return None

    def has(self, span: Span) -> bool:
        """Return whether the bytes of a span are here."""
        return self._path(span).exists()

    def add(self, span: Span, body: bytes) -> None:
        """Keep the bytes of a span, and remove what was used longest ago if there are too many."""
        try:
            self._write(span, body)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            message = f"{self._folder}: the disk of the cache is full; free space, or give Cache fewer bytes"
            raise NoSpace(message) from error
        self._added += len(body)
        if self._added >= self._most // _LOOKS:
            self._added = 0
            self._trim()

    def _write(self, span: Span, body: bytes) -> None:
        """Write a file under its name at once; another process may remove it before, and then it is fetched again."""
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=_UNFINISHED, delete=False) as out:
            try:
                out.write(body)
                out.flush()
            except OSError:
                Path(out.name).unlink(missing_ok=True)
                raise
        with contextlib.suppress(FileNotFoundError):
            Path(out.name).replace(self._path(span))

    def _trim(self) -> None:
        entries = []
        for entry in os.scandir(self._folder):
            if not _OWN.fullmatch(entry.name):
                continue
            with contextlib.suppress(FileNotFoundError):  # another process removed it just now
                facts = entry.stat()
                entries.append((facts.st_mtime_ns, facts.st_size, entry.path))
        excess = sum(size for _, size, _ in entries) - self._most * (_LOOKS - 1) // _LOOKS
        for _, size, path in sorted(entries):
            if excess <= 0:
                break
            Path(path).unlink(missing_ok=True)
            excess -= size

    def _path(self, span: Span) -> Path:
        return self._folder / f"{span.file.sha256[:32]}-{span.start}-{span.stop}"
