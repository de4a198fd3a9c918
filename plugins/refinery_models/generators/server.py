"""Sends requests to the operator's server of models, and waits for it while it is busy.

Nothing is followed to another host, no proxy is asked, and each request has a connection to itself.
"""

import http.client
import json
import os
import queue
import random
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from pipeline_tasks.errors import RecipeError, Transient
from pipeline_tasks.store.credential import Credential

ENDPOINT = "REFINERY_ENDPOINT"
"""Names the address of the server, to which `/models` and `/chat/completions` are appended: `http://gpu:8000/v1`."""

KEY = "REFINERY_ENDPOINT_KEY"
"""Holds the key that requests carry as `Authorization: Bearer`; without it they carry none."""

REQUESTS = "REFINERY_ENDPOINT_REQUESTS"
"""Names how many requests one worker has on their way at a time."""

PATIENCE = "REFINERY_ENDPOINT_PATIENCE"
"""Names the seconds for which a request is sent again while the server is busy or away."""

SECONDS = "REFINERY_ENDPOINT_SECONDS"
"""Names the seconds that one answer may take."""

DEFAULTS: Mapping[str, float] = {REQUESTS: 16, PATIENCE: 120, SECONDS: 600}

LONGEST_PAUSE = 30.0
"""Seconds between two tries at most."""

FIRST_PAUSE = 0.5
"""Seconds that the longest pause behind a first try has; the next ones double."""

MOST_BYTES = 16 << 20
"""Bytes of an answer: 4 million tokens."""

DONE = 200
_ASKED_LATER = frozenset({408, 425, 429})
_UNKNOWN = frozenset({401, 403})
_ABSENT = 404
_FIRST_OF_SERVERS = 500
_REDIRECTS = range(300, 400)


class Busy(Exception):
    """The server failed, or asks to come back; `after` are the seconds that it names, `status` is its answer's."""

    def __init__(self, why: str, after: float = 0.0, status: int = 0) -> None:
        super().__init__(why)
        self.after, self.status = after, status


class Stopped(Exception):
    """Nobody waits for the answer any more."""


class Failing(Transient):
    """The server was busy or away for longer than was worth waiting for; `status` is that of its last answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Reply(NamedTuple):
    """An answer: its status, and its body, an empty mapping unless it is an object of JSON."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is."""

    scheme: str
    host: str
    port: int | None
    path: str

    @classmethod
    def of(cls, written: str) -> Self:
        """Return an address; RecipeError for what is none."""
        try:
            parts = urlsplit(written)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
            message = f"{ENDPOINT} is no address of a server; set it to http://HOST:PORT/v1, without user and query"
            raise RecipeError(message)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    def __str__(self) -> str:
        """Return it as messages name it."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}{self.path}"

    def connection(self, seconds: float) -> http.client.HTTPConnection:
        """Return a connection that is opened by its first request."""
        if self.scheme == "http":
            return http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        return http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=ssl.create_default_context())


@dataclass(slots=True, eq=False)
class Server:
    """The operator's server: its address and key, and how long is waited for it. Several threads may ask it."""

    address: Address
    key: str = field(default="", repr=False)
    requests: int = int(DEFAULTS[REQUESTS])
    patience: float = DEFAULTS[PATIENCE]
    seconds: float = DEFAULTS[SECONDS]
    stop: threading.Event = field(default_factory=threading.Event)
    _idle: "queue.LifoQueue[http.client.HTTPConnection]" = field(default_factory=queue.LifoQueue)

    @classmethod
    def of_environment(cls) -> Self:
        """Return the server that the operator names; RecipeError if that is none."""
        written = os.environ.get(ENDPOINT, "").strip()
        if not written:
            message = (
                f"a server writes the texts, and {ENDPOINT} is not set; set it to its address, http://HOST:PORT/v1"
            )
            raise RecipeError(message)
        address, key = Address.of(written), ""
        if os.environ.get(KEY):
            _, key = Credential(env=KEY).read(str(address), "the key of the server", has_user=False)
        return cls(address, key, int(max(_number(REQUESTS), 1)), _number(PATIENCE), max(_number(SECONDS), 1.0))

    def ask(self, path: str, body: Mapping[str, object] | None = None) -> Reply:
        """Return the answer to a request, sent again while the server is busy: a GET without a body, else a POST.

        Failing (Transient) if it stays so for longer than `patience`; Stopped if nobody waits any more; RecipeError for
        a key that it does not take, an address where it has nothing, and a redirect.
        """
        end = time.monotonic() + self.patience
        for tries in count():
            try:
                return self._once(path, body)
            except Busy as busy:
                pause = max(busy.after, random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**tries)))  # noqa: S311 -- no secret
                if time.monotonic() + pause > end:
                    message = f"{self.address}{path}: {busy}, for {self.patience:g} s ({PATIENCE}); try again later"
                    raise Failing(message, busy.status) from busy
            if self.stop.wait(pause):
                raise Stopped
        raise AssertionError

    def close(self) -> None:
        """Close the connections that no request has."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()

    def _once(self, path: str, body: Mapping[str, object] | None) -> Reply:
        """Send a request once; Busy for what may go well later."""
        status, after, content = self._sent(path, None if body is None else json.dumps(body).encode())
        if status in _UNKNOWN:
            message = f"{self.address}{path} was answered with {status}: it does not take the key; set {KEY}"
            raise RecipeError(message)
        if status == _ABSENT and body is not None:
            message = f"{self.address}{path} was answered with 404; set {ENDPOINT} to the address that has it"
            raise RecipeError(message)
        if status in _REDIRECTS:
            message = f"{self.address}{path} leads elsewhere ({status}), where no request goes; set {ENDPOINT} to that"
            raise RecipeError(message)
        if status in _ASKED_LATER or status >= _FIRST_OF_SERVERS:
            message = f"it was answered with {status}"
            raise Busy(message, after, status)
        parsed = _parsed(content)
        if status == DONE and parsed is None:
            message = "it was answered with what is no object of JSON"
            raise Busy(message)
        return Reply(status, parsed or {})

    def _sent(self, path: str, body: bytes | None) -> tuple[int, float, bytes]:
        """Return status, the seconds that `Retry-After` names, and body of an answer; Busy if there is none.

        A connection that was kept may have been closed by the server meanwhile: then a new one has the request.
        """
        try:
            with suppress(queue.Empty, ConnectionError):
                return self._through(self._idle.get_nowait(), path, body)
            return self._through(self.address.connection(self.seconds), path, body)
        except (OSError, http.client.HTTPException) as error:
            message = f"it did not answer ({type(error).__name__})"
            raise Busy(message) from error

    def _through(self, line: http.client.HTTPConnection, path: str, body: bytes | None) -> tuple[int, float, bytes]:
        """Send a request through a connection, which waits for the next one behind it, and is closed by an error."""
        headers = {"Accept": "application/json", "User-Agent": "refinery-generator/1"}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Authorization": f"Bearer {self.key}"} if self.key else {}
        try:
            line.request("GET" if body is None else "POST", f"{self.address.path}{path}", body, headers)
            response = line.getresponse()
            content = response.read(MOST_BYTES + 1)
        except BaseException:
            line.close()
            raise
        if len(content) > MOST_BYTES:
            line.close()
            message = f"it was answered with more than {MOST_BYTES:,} bytes"
            raise Busy(message)
        self._idle.put(line)
        return response.status, _seconds(response.headers.get("Retry-After", "")), content


def _number(variable: str) -> float:
    """Return the number that a variable has, or its default; RecipeError for what is none."""
    written = os.environ.get(variable, "").strip() or str(DEFAULTS[variable])
    with suppress(ValueError):
        if 0 <= (number := float(written)) < float("inf"):
            return number
    message = f"{variable} is {written[:50]!r}; set it to a number from 0 on"
    raise RecipeError(message)


def _seconds(written: str) -> float:
    """Return the seconds that a header `Retry-After` names, `LONGEST_PAUSE` at most; 0 for anything else."""
    with suppress(ValueError):
        return min(max(float(written), 0.0), LONGEST_PAUSE)
    return 0.0


def _parsed(content: bytes) -> dict[str, Any] | None:
    """Return an object of JSON, None for anything else."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
