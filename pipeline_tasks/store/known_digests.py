"""Digests of large files that a process of this user has read: a model is not read again to learn what is known.

A digest is kept by the URI and what changes whenever the file does: on disk its inode, size and times, of which nobody
can set the change time; in a bucket the ETag. A file that changed a moment ago may change again within the same tick
of its clock, so it is not kept.
"""

import contextlib
import time
from pathlib import Path

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.sealed import sha256
from pipeline_tasks.store.temporary import user_folder

LARGE = 16 << 20
"""Bytes from which on a digest is kept: a smaller file is read as fast as what is known of it."""

SETTLED = 2.0
"""Seconds after which the time of a change tells two changes apart, on any file system."""


def known_digest(uri: str, stamp: str) -> tuple[int, str] | None:
    """Return (bytes, SHA-256) of a file with that stamp, None if they are not known."""
    with contextlib.suppress(OSError, ValueError, RefineryError):
        size, digest = _path(uri, stamp).read_text(encoding="ascii").split()
        return (int(size), digest) if len(digest) == len(sha256(b"")) else None
    return None


def keep_digest(uri: str, stamp: str, size: int, digest: str) -> None:
    """Keep the digest of a large file; one that cannot be kept is computed again."""
    if size < LARGE:
        return
    with contextlib.suppress(OSError, RefineryError):
        if not is_bucket(uri) and time.time() - Path(uri.removeprefix("file://")).stat().st_ctime < SETTLED:
            return
        path = _path(uri, stamp)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part = path.with_suffix(f".{time.monotonic_ns()}")
        part.write_text(f"{size} {digest}\n", encoding="ascii")
        part.replace(path)


def _path(uri: str, stamp: str) -> Path:
    return user_folder() / "digests" / sha256(f"{uri}\n{stamp}".encode())[:32]
