"""Sends requests of HTTP within the budget of their host, and says what each answer means."""

import contextlib
import logging
import random
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from pipeline_tasks.errors import ContractError, RecipeError, SnapshotIncomplete, SourceBusy
from refinery_sources.admission import Gate
from refinery_sources.budget import Budget, Rate, Stopped, Turn, host_of
from refinery_sources.rate_limits import retry_after, until_reset
from refinery_sources.redirects import HOPS, REDIRECTS, Leads, carried, followed, origin_of, shown, within_site

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

AGENT = "refinery-pull"
"""The name of a pull in a robots.txt."""

_USER_AGENT = f"{AGENT}/1 (crawl snapshots by refinery)"
_UNKNOWN, _REFUSED = 401, 403
_ABSENT = frozenset({404, 410})
_ASKS_TO_WAIT = frozenset({_REFUSED, 429, 503})
_BUSY = frozenset({408, 425, 429})
_ANSWERED = frozenset({200, 206, 416})
_UNPACKED = ("gzip", "x-gzip", "deflate")
_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Web:
    """A client, the rate of all its requests, and what ends them; `backoff` is the longest pause after a first try.

    `gate` is what its client may ask.
    """

    client: "httpx.Client"
    rate: Rate
    stop: threading.Event = field(default_factory=threading.Event)
    backoff: float = 1.0
    gate: Gate = field(default_factory=Gate)

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
    """Have a client that follows no redirects by itself, and believes no proxy's compression."""
    import httpx

    timeout = httpx.Timeout(SILENT, connect=CONNECTING)
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    headers = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"}
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, whose query may be a secret
    gate = Gate()
    hooks: dict[str, list[Callable[..., None]]] = {"request": [gate.require], "response": [gate.follow]}
    with httpx.Client(timeout=timeout, limits=limits, headers=headers, event_hooks=hooks) as client:
        yield Web(client, rate, backoff=backoff, gate=gate)


def require_address(address: str) -> None:
    """Raise RecipeError unless requests can be sent below an address, and it can be stored: it has no password."""
    parts = urlsplit(address)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc or parts.query:
        message = f"{address.rpartition('@')[2]!a}: name an address of https:// or http://, without user and query"
        raise RecipeError(message)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a kind of source knows of its hosts.

    `judge` raises the error of an answer that says more than its status; `leads` is where redirects may lead.
    """

    judge: "Callable[[httpx.Response], None]" = lambda _response: None
    leads: Leads = within_site


WITHIN_SITE = Rule()


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: str
    headers: Mapping[str, str]
    secret: Mapping[str, str]

    def led(self, asked: str, location: str, leads: Leads) -> "_Request":
        """Return the request that a redirect leads to, of an address that was `asked` first."""
        target = followed(asked, self.url, location, leads)
        secret = self.secret if origin_of(asked) == origin_of(target) else {}
        return _Request(self.method, target, carried(self.headers, asked, target), secret)


@contextlib.contextmanager
def answered(
    on: Web,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] = _NONE,
    secret: Mapping[str, str] = _NONE,
    accepted: Collection[int] = _ANSWERED,
    by: Rule = WITHIN_SITE,
) -> Iterator["httpx.Response"]:
    """Send a request, go where its answer leads, and yield the answer of an `accepted` status, with its body unread.

    `secret` are params of its query that no message and no file names; neither they nor headers that may be secret go
    to another origin.

    SourceRefused for 403, after which nobody sends a request; SnapshotIncomplete for 404 and 410; SourceBusy for what
    may go well later, also while the body is read; RecipeError for 401, for redirects that are not followed, and for
    other answers.
    """
    request = _Request(method, url, headers, secret)
    for _ in range(HOPS + 1):
        with _sent(on, request, accepted, by) as response:
            if response.status_code not in REDIRECTS:
                yield response
                return
            location = response.headers.get("Location", "")
        request = request.led(url, location, by.leads)
    message = f"{shown(url)} is redirected more than {HOPS} times; name the right address"
    raise RecipeError(message)


@contextlib.contextmanager
def _sent(on: Web, asked: _Request, accepted: Collection[int], by: Rule) -> Iterator["httpx.Response"]:
    import httpx

    place = shown(asked.url)
    try:
        target = httpx.URL(asked.url).copy_merge_params(asked.secret) if asked.secret else asked.url
        request = on.client.build_request(asked.method, target, headers=asked.headers)
        with on.budget(asked.url).turn() as turn:
            response = on.client.send(request, stream=True)
            with _closed_on_error(response):
                by.judge(response)
                _heed(turn, response, place, accepted)
        with contextlib.closing(response):
            yield response
    except httpx.HTTPError as error:
        message = f"{place}: the answer broke off, or none came ({type(error).__name__}: {error}); try again later"
        raise SourceBusy(message) from error
    except httpx.InvalidURL as error:
        message = f"{place} is no address of the web ({error}); name the right address"
        raise RecipeError(message) from error


@contextlib.contextmanager
def _closed_on_error(response: "httpx.Response") -> Iterator[None]:
    try:
        yield
    except BaseException:
        response.close()
        raise


def _heed(turn: Turn, response: "httpx.Response", place: str, accepted: Collection[int]) -> None:
    """Write down what an answer forbids, and raise its error."""
    status, used_up = response.status_code, until_reset(response.headers)
    asked = max(retry_after(response.headers.get("Retry-After", "")), used_up)
    turn.pause(used_up)
    if status in accepted or status in REDIRECTS:
        turn.recover()
        return
    if status == _UNKNOWN:
        message = (
            f"{place} was answered with 401: it does not know who asks. Correct the credential that the recipe names, "
            "or name one, and pull again"
        )
        raise RecipeError(message)
    if status == _REFUSED and not asked:  # one that says when to come back is a limit of requests, as GitHub's
        reason = f"{place} was answered with {status}"
        raise turn.refuse(reason)
    if status in _ABSENT:
        message = f"{place} does not exist ({status})"
        raise SnapshotIncomplete(message)
    if status in _BUSY or status == _REFUSED or status >= 500:  # noqa: PLR2004 -- errors of servers
        if status in _ASKS_TO_WAIT:
            turn.slow()
            turn.pause(asked)
        message = f"{place} was answered with {status}; try again later"
        raise SourceBusy(message)
    message = f"{place} was answered with {status}; name the right address"
    raise RecipeError(message)


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


def contents(response: "httpx.Response", url: str) -> Iterator[bytes]:
    """Yield the content of an answer by pieces of at most `PIECE` bytes: gzip is unpacked, which some send unasked.

    RecipeError for another coding, in which few bytes may be gigabytes; ContractError for one that is damaged.
    """
    coding, raw = response.headers.get("Content-Encoding", "").strip().lower(), response.iter_raw(PIECE)
    if coding in ("", "identity"):
        yield from raw
        return
    if coding not in _UNPACKED:
        message = f"{shown(url)} was answered in the coding {coding[:50]!a}, which nobody asked for"
        raise RecipeError(message)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)  # by its header gzip or zlib
    try:
        for packed in raw:
            rest = packed
            while rest and not unpacking.eof:
                yield unpacking.decompress(rest, PIECE)
                rest = unpacking.unconsumed_tail
        yield unpacking.flush()
    except zlib.error as error:
        message = f"{shown(url)} was answered in {coding} that is damaged ({error}); pull again later"
        raise ContractError(message) from error


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
