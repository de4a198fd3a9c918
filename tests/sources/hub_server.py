"""A Hugging Face Hub on loopback: its API over small files, large ones at another host, and what each was asked."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"

SIGNATURE = "Signature=abc123"

PAGE = 2
"""Entries of a page of a list of files."""


class Asked(NamedTuple):
    """A request: at which host, its path, the token, and the first byte."""

    host: str
    path: str
    token: str
    start: int


class Answer(NamedTuple):
    """What is answered in place of the Hub's own answer."""

    status: int
    headers: dict[str, str]


@dataclass(slots=True)
class HubServer:
    """A dataset: its files, those of them that are large, and what the Hub says of it."""

    repository: str = "kelp/ferries"
    address: str = ""
    storage: str = ""
    commit: str = COMMIT
    files: dict[str, bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    info: dict[str, Any] = field(default_factory=lambda: {"cardData": {"license": "cc-by-4.0"}, "gated": False})
    served: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    instead: Callable[[Asked], Answer | None] = lambda _asked: None
    drop_after: int = -1
    pages_at: str = ""
    last_page: int = 1 << 30

    def downloads(self) -> list[Asked]:
        return [asked for asked in self.asked if "/resolve/" in asked.path or asked.host == "storage"]

    def entries(self) -> list[dict[str, Any]]:
        folders = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "data"}]
        return folders + [self.entry(path) for path in sorted(self.files)]

    def entry(self, path: str) -> dict[str, Any]:
        body = self.files[path]
        blob = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
        entry: dict[str, Any] = {"type": "file", "oid": blob, "size": len(body), "path": path}
        if path in self.large:
            entry["lfs"] = {"oid": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 130}
        return entry


@contextlib.contextmanager
def hub_server() -> Iterator[HubServer]:
    """Have a Hub and its storage, each at a port of its own."""
    hub = HubServer()
    with _running(hub, "hub") as hub.address, _running(hub, "storage") as hub.storage:
        yield hub


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    host: str
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        begin = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-")
        asked = Asked(self.host, self.path, self.headers.get("Authorization", ""), int(begin))
        self.hub.asked.append(asked)
        instead = self.hub.instead(asked)
        if instead is not None:
            self._send(instead.status, b"", instead.headers)
        elif self.host == "storage":
            self._file(unquote(urlsplit(self.path).path.removeprefix("/store/")), asked.start)
        else:
            self._hub(urlsplit(self.path))

    def _hub(self, url: Any) -> None:
        api, files = (
            f"/api/datasets/{self.hub.repository}",
            f"/datasets/{self.hub.repository}/resolve/{self.hub.commit}/",
        )
        if url.path in (f"{api}/revision/main", f"{api}/revision/{self.hub.commit}"):
            about = {"id": self.hub.repository, "sha": self.hub.commit, "lastModified": "2026-01-02T03:04:05.000Z"}
            siblings = [{"rfilename": path} for path in sorted(self.hub.files)]
            self._send(200, json.dumps({**about, "siblings": siblings, **self.hub.info}).encode())
        elif url.path == f"{api}/tree/{self.hub.commit}":
            self._page(url)
        elif url.path.startswith(files) and unquote(url.path.removeprefix(files)) in self.hub.large:
            to = f"{self.hub.storage}/store/{url.path.removeprefix(files)}?{SIGNATURE}"
            self._send(302, b"", {"Location": to})
        elif url.path.startswith(files):
            self._file(unquote(url.path.removeprefix(files)), 0)
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _page(self, url: Any) -> None:
        start = int(parse_qs(url.query).get("cursor", ["0"])[0])
        entries = self.hub.entries()
        more = f'<{self.hub.pages_at or self.hub.address}{url.path}?recursive=true&cursor={start + PAGE}>; rel="next"'
        headers = {"Link": more} if start + PAGE < min(len(entries), self.hub.last_page) else {}
        self._send(200, json.dumps(entries[start : start + PAGE]).encode(), headers)

    def _file(self, path: str, start: int) -> None:
        body = self.hub.served.get(path, self.hub.files.get(path))
        if body is None:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        headers = {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        cut = self.hub.drop_after if not start and len(body) > self.hub.drop_after >= 0 else len(body)
        self._send(206 if start else 200, body[start:], headers, cut)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: int = -1) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if cut < 0 else body[:cut])
        if 0 <= cut < len(body):
            self.close_connection = True

    def log_message(self, *_words: object) -> None:
        pass


@contextlib.contextmanager
def _running(hub: HubServer, host: str) -> Iterator[str]:
    handler = type("Handler", (_Handler,), {"hub": hub, "host": host})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
