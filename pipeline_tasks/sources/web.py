"""Sends requests of HTTP within the budget of their host, and says what each answer means."""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urljoin, urlsplit

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete, SourceBusy
from pipeline_tasks.sources.budget import Budget, Rate, Stopped, Turn, host_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

TRIES = 8
"""How often something is requested, of which no more has come since."""

LONGEST_PAUSE = 60.0
"""Seconds between two tries at most."""

PIECE = 64 * 1024
"""Bytes that are taken from the network at a time."""

SILENT, CONNECTING = 60.0, 20.0
"""Seconds after which a server that sends nothing, or does not answer a call, is not there."""

_AGENT = "refinery-pull/1 (crawl snapshots by refinery)"
_REFUSED = frozenset({401, 403})
_UNKNOWN = 401
_ABSENT = frozenset({404, 410})
_ASKS_TO_WAIT = frozenset({429, 503})
_BUSY = frozenset({408, 425, 429})
_ANSWERED = frozenset({200, 206, 416})
_NO_PARAMS: Mapping[str, str] = {}
_MOMENT = 1e9
"""Numbers from here on are moments (Unix time) in headers that others fill with seconds."""


@dataclass(frozen=True, slots=True)
class Web:
    """A client, the rate of all its requests, and what ends them; `backoff` is the longest pause after a first try."""

    client: "httpx.Client"
    rate: Rate
    stop: threading.Event = field(default_factory=threading.Event)
    backoff: float = 1.0

    def budget(self, url: str) -> Budget:
        """Return the budget of a URL's host."""
        return Budget(host_of(url), self.rate, self.stop)

    def pause(self, tries: int) -> None:
        """Wait before the next try: any time up to a bound that doubles, so that clients do not come back together."""
        longest = min(LONGEST_PAUSE, self.backoff * 2.0 ** (tries - 1))
        if self.stop.wait(random.uniform(0, longest)):  # noqa: S311 -- no secret
            raise Stopped


@contextlib.contextmanager
def web(rate: Rate, connections: int, backoff: float = 1.0) -> Iterator[Web]:
    """Have a client that follows no redirects and believes no proxy's compression."""
    import httpx

    timeout = httpx.Timeout(SILENT, connect=CONNECTING)
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    headers = {"User-Agent": _AGENT, "Accept-Encoding": "identity"}
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, whose query may be a secret
    with httpx.Client(timeout=timeout, limits=limits, headers=headers) as client:
        yield Web(client, rate, backoff=backoff)


def require_address(address: str) -> None:
    """Raise RecipeError unless requests can be sent below an address, and it can be stored: it has no password."""
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc or parts.query:
        message = f"{address.rpartition('@')[2]!a}: name an address of https:// or http://, without user and query"
        raise RecipeError(message)


@contextlib.contextmanager
def answered(
    on: Web,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    secret: Mapping[str, str] = _NO_PARAMS,
    accepted: Collection[int] = _ANSWERED,
    judge: "Callable[[httpx.Response], None]" = lambda _response: None,
) -> Iterator["httpx.Response"]:
    """Send one request and yield its answer of a status that is `accepted`, whose body is not read yet.

    `judge` raises the error of an answer that says more than its status. `secret` are params of its query that no
    message and no file names.

    SourceRefused for 401 and 403, after which nobody sends a request; SnapshotIncomplete for 404 and 410; SourceBusy
    for what may go well later, also while the body is read; RecipeError for redirects and other answers.
    """
    import httpx

    try:
        target = httpx.URL(url).copy_merge_params(secret) if secret else url
        request = on.client.build_request(method, target, headers=headers)
        with on.budget(url).turn() as turn:
            response = on.client.send(request, stream=True)
            with _closed_on_error(response):
                judge(response)
                _heed(turn, response, url, accepted)
        with contextlib.closing(response):
            yield response
    except httpx.HTTPError as error:
        message = f"{url}: the answer broke off, or none came ({type(error).__name__}: {error}); try again later"
        raise SourceBusy(message) from error


@contextlib.contextmanager
def _closed_on_error(response: "httpx.Response") -> Iterator[None]:
    try:
        yield
    except BaseException:
        response.close()
        raise


def _heed(turn: Turn, response: "httpx.Response", url: str, accepted: Collection[int]) -> None:
    """Write down what an answer forbids, and raise its error."""
    status, seconds = response.status_code, retry_after(response.headers.get("Retry-After", ""))
    if status in _REFUSED:
        unknown = " (it does not know who asks)" if status == _UNKNOWN else ""
        reason = f"{url} was answered with {status}{unknown}"
        raise turn.refuse(reason, seconds)
    turn.pause(until_reset(response.headers))
    if status in accepted:
        turn.recover()
        return
    if status in _ABSENT:
        message = f"{url} does not exist ({status})"
        raise SnapshotIncomplete(message)
    if status in _BUSY or status >= 500:  # noqa: PLR2004 -- errors of servers
        if status in _ASKS_TO_WAIT:
            turn.slow()
            turn.pause(seconds)
        message = f"{url} was answered with {status}; try again later"
        raise SourceBusy(message)
    location = response.headers.get("Location")
    target = f" (it leads to {_shown(urljoin(url, location))})" if location else ""
    message = f"{url} was answered with {status}{target}, which is not followed; name the right address"
    raise RecipeError(message)


def _shown(url: str) -> str:
    """Return a URL without what may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200]


def until_reset(headers: Mapping[str, str]) -> float:
    """Return the seconds until more requests are allowed, if headers say that none is left; 0 otherwise.

    `X-RateLimit-Reset` is a moment with GitHub, seconds with others; `RateLimit-Reset` is seconds (IETF draft
    ratelimit-headers-06).
    """
    for kind in ("X-RateLimit", "RateLimit"):
        reset = headers.get(f"{kind}-Reset", "").strip()
        if headers.get(f"{kind}-Remaining", "").strip() == "0" and reset.isdigit():
            return max(float(reset) - (time.time() if float(reset) > _MOMENT else 0.0), 0.0)
    return 0.0


def retry_after(value: str) -> float:
    """Return the seconds that a header `Retry-After` asks for (RFC 9110, 10.2.3), 0 if it is wrong."""
    if value.strip().isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def fetched(on: Web, url: str, most: int) -> bytes:
    """Return a small body, tried again while the source is busy; ContractError if it has more than `most` bytes."""

    def body() -> bytes:
        with answered(on, url) as response:
            return body_of(on, response, url, most)

    return tried(on, body)


def tried(on: Web, request: Callable[[], T]) -> T:
    """Return what a request gives, which is sent `TRIES` times while the source is busy."""
    for attempt in range(1, TRIES):
        try:
            return request()
        except SourceBusy:
            on.pause(attempt)
    return request()


def body_of(on: Web, response: "httpx.Response", url: str, most: int) -> bytes:
    """Return the body of an answer as it was sent; ContractError if it has more than `most` bytes."""
    body = bounded(on, url, response.iter_raw(PIECE), most)
    if body is None:
        message = f"{url} has more than {most:,} bytes; it is not what its name says"
        raise ContractError(message)
    return body


def bounded(on: Web, url: str, chunks: Iterable[bytes], most: int) -> bytes | None:
    """Return the bytes that arrive, within the budget of their host; None if they are more than `most`."""
    body, budget = bytearray(), on.budget(url)
    for chunk in chunks:
        if on.stop.is_set():
            raise Stopped
        budget.spend(len(chunk))
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
