"""A mirror of Common Crawl on loopback: its layout over small files, with what goes wrong on the way, and what was asked."""

import contextlib
import gzip
import hashlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CRAWL = "CC-MAIN-2026-45"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: when it came, its method, path, first byte, and how many came before it of any path."""

    at: float
    method: str
    path: str
    start: int
    number: int

    @property
    def is_data(self) -> bool:
        return self.path.endswith((".warc.gz", ".warc.wet.gz"))


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens in place of an answer: a status, a connection that is dropped after some bytes, a wrong length."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    drop_after: int = -1
    longer: int = 0


@dataclass(slots=True)
class Mirror:
    """The files of a server by path; `fault` says what goes wrong with a request."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    fault: Callable[[Asked], Fault | None] = lambda _asked: None
    heeds_if_range: bool = True
    heeds_range: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def data(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.is_data and asked.method == "GET"]

    def add(self, archives: dict[str, bytes], kind: str = "warc", crawl: str = CRAWL, segments: int = 2) -> list[str]:
        """Add archives to a crawl, one after the other to each segment, and their list; return their paths."""
        paths = []
        for number, (name, body) in enumerate(archives.items()):
            path = f"crawl-data/{crawl}/segments/{1700000000 + number % segments}.{number % segments}/{kind}/{name}"
            self.files[f"/{path}"] = body
            paths.append(path)
        self.list_paths(paths, kind, crawl)
        return paths

    def list_paths(self, paths: list[str], kind: str = "warc", crawl: str = CRAWL) -> None:
        body = "".join(f"{path}\n" for path in paths).encode()
        self.files[f"/crawl-data/{crawl}/{kind}.paths.gz"] = gzip.compress(body, mtime=0)


MEMBER = 16 * 1024
"""Bytes of a gzip member, so that a piece of a download ends where one ends: only an ETag tells two files apart there."""


def archive(name: str, size: int) -> bytes:
    """Gzip members of at least `size` bytes together, whose content follows from the name."""
    members = [gzip.compress(_noise(f"{name} {at}"), compresslevel=0, mtime=0) for at in range(0, size, MEMBER)]
    assert {len(member) for member in members} == {MEMBER}
    return b"".join(members)


def _noise(name: str) -> bytes:
    blocks = b"".join(hashlib.sha256(f"{name} {at}".encode()).digest() for at in range(MEMBER // 32))
    return blocks[: MEMBER - 23]  # gzip adds 18 bytes, and 5 to what is stored as it is


def archives(count: int, size: int = 200_000) -> dict[str, bytes]:
    return {f"part-{number:05}.warc.gz": archive(str(number), size) for number in range(count)}


def _span(header: str, size: int) -> tuple[int, int] | None:
    """Return first byte and end of a range: from a byte on, up to a byte, or the last ones."""
    span = re.fullmatch(r"bytes=(\d*)-(\d*)", header)
    if span is None:
        return None
    return (int(span[1]), int(span[2] or size - 1) + 1) if span[1] else (max(size - int(span[2]), 0), size)


class _Handler(BaseHTTPRequestHandler):
    mirror: Mirror
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        header = self.headers.get("Range", "") if self.mirror.heeds_range else ""
        span = _span(header, len(self.mirror.files.get(self.path, b"")))
        with self.mirror.lock:
            first = span[0] if span else 0
            asked = Asked(time.time(), self.command, self.path, first, len(self.mirror.asked))
            self.mirror.asked.append(asked)
            fault = self.mirror.fault(asked) or Fault()
        content = self.mirror.files.get(self.path)
        if fault.status or content is None:
            self._short(fault.status or 404, fault.headers)
        else:
            self._whole(content, span, fault)

    def _short(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _whole(self, content: bytes, span: tuple[int, int] | None, fault: Fault) -> None:
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        if span and self.mirror.heeds_if_range and self.headers.get("If-Range") not in (None, etag):
            span = None
        if span and span[0] >= len(content):
            self._short(416, ())
            return
        start, stop = span or (0, len(content))
        body = content[start:stop]
        self.send_response(206 if span else 200)
        if span:
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(content)}")
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body) + fault.longer))
        self.end_headers()
        if self.command == "HEAD":
            return
        body = body[: fault.drop_after] if fault.drop_after >= 0 else body[: len(body) + min(fault.longer, 0)]
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)
        with self.mirror.lock:
            self.mirror.sent[self.path] = self.mirror.sent.get(self.path, 0) + len(body)
        self.close_connection = fault.drop_after >= 0 or fault.longer != 0

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing of clients that were killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def mirrored() -> Iterator[Mirror]:
    """Run a mirror; it is stopped at the end."""
    mirror = Mirror()
    handler = type("Handler", (_Handler,), {"mirror": mirror})
    with _Server(("127.0.0.1", 0), handler) as server:
        mirror.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield mirror
        finally:
            server.shutdown()
            thread.join()


def http_date(moment: float) -> str:
    return formatdate(moment, usegmt=True)
