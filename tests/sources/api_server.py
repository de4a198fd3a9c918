"""An API on loopback: records in pages by each way of paging, what goes wrong on the way, and what was asked."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: when it came, its path, params and headers, and how many came before it."""

    at: float
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    number: int

    @property
    def url(self) -> str:
        return f"{self.path}?{urlencode(self.params)}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; `drop_after` bytes of it are sent, of the length that it has, after `hold` has returned."""

    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    status: int = 200
    drop_after: int = -1
    hold: Callable[[], object] = lambda: None


@dataclass(slots=True)
class Api:
    """What a server answers: `reply` to each request, unless `fault` has another answer."""

    address: str = ""
    reply: Callable[[Asked], Reply] = lambda _asked: Reply(status=404)
    fault: Callable[[Asked], Reply | None] = lambda _asked: None
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.address}/items"


class _Handler(BaseHTTPRequestHandler):
    api: Api
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        with self.api.lock:
            params = dict(parse_qsl(parts.query, keep_blank_values=True))
            asked = Asked(time.time(), parts.path, params, dict(self.headers), len(self.api.asked))
            self.api.asked.append(asked)
            reply = self.api.fault(asked) or self.api.reply(asked)
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        reply.hold()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body if reply.drop_after < 0 else body[: reply.drop_after])
        self.close_connection = reply.drop_after >= 0

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing of clients that were killed."""


@contextlib.contextmanager
def serving() -> Iterator[Api]:
    """Run an API; it is stopped at the end."""
    api = Api()
    with _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": api})) as server:
        api.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()


# --- Records and pages --------------------------------------------------------------------------------------------

STYLES: dict[str, dict[str, Any]] = {
    "cursor": {"by": "cursor", "param": "after", "next": "meta.next"},
    "header": {"by": "cursor", "param": "after", "next": "header:X-Next"},
    "last id": {"by": "cursor", "param": "after", "next": "data.items.-1.id", "end": "empty"},
    "more": {"by": "cursor", "param": "after", "next": "meta.always", "more": "meta.more"},
    "next": {"by": "next", "next": "meta.url"},
    "link": {"by": "link"},
    "page": {"by": "page", "param": "page"},
    "offset": {"by": "offset", "param": "offset"},
    "short": {"by": "page", "param": "page", "size": 5, "size_param": "limit", "end": "short"},
    "total": {"by": "offset", "param": "offset", "size": 5, "size_param": "limit", "end": "total"},
}
"""Ways of paging, as recipes write them."""


def item(number: int, **other: Any) -> dict[str, Any]:
    return {
        "id": number,
        "body": {"text": f"Text {number} of an API. " * 8, "lang": "en"},
        "link": f"https://site.example/{number}",
        "published": f"2026-01-{1 + number % 28:02}T00:00:00Z",
        "score": number / 2,
        **other,
    }


def items(count: int, start: int = 1) -> list[dict[str, Any]]:
    return [item(number) for number in range(start, start + count)]


def page_of(address: str, asked: Asked, records: Sequence[Any], size: int, total: int | None = None) -> Reply:
    """The page of a server that knows all ways of paging at once; where it begins is read from each param."""
    params, size = asked.params, int(asked.params.get("limit", size))
    after = params.get("after", "")
    ids = [record["id"] if isinstance(record, dict) else record for record in records]
    start = (
        int(params["offset"])
        if "offset" in params
        else (int(params["page"]) - 1) * size
        if "page" in params
        else ids.index(int(after)) + 1
        if after
        else 0
    )
    some = list(records[start : start + size])
    is_last = start + size >= len(records)
    last = None if is_last or not some else ids[start + size - 1]
    url = f"{address}{asked.path}?{urlencode({**params, 'after': last})}"
    meta = {
        "next": last and str(last),
        "always": str(ids[start : start + size][-1]) if some else "0",
        "more": not is_last,
        "url": None if is_last else url,
        "total": len(records) if total is None else total,
    }
    headers = (("X-Next", str(last)), ("Link", f'<{url}>; rel="next"')) if last else (("Link", '<x>; rel="first"'),)
    return Reply({"data": {"items": some}, "meta": meta}, headers)


def paged(api: Api, records: Sequence[Any], size: int = 7, total: int | None = None) -> None:
    """Let an API give records in pages."""
    api.reply = lambda asked: page_of(api.address, asked, records, size, total)
