"""Keeps the requests to one host within a rate, over all threads and processes of this user on this machine.

The budget of a host is a file. Who holds its lock may send a request, and holds it until the status of the answer is
known; bodies arrive side by side. So no request is sent before an answer that forbids it was heeded, by any process.
"""

import contextlib
import fcntl
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

from pipeline_tasks.errors import RecipeError, SourceBusy, SourceRefused
from pipeline_tasks.store.temporary import SHORT, user_folder
from refinery_sources.rate_limits import LONGEST

PLACE = SHORT
"""Where the budgets of a user are: one place for all processes, whatever their TMPDIR."""

LONGEST_WAIT = 600.0
"""Seconds that a pull waits because a source asks for it; for more it ends, and says when to go on."""

REFUSAL = 3600.0
"""Seconds after a refusal in which no request is sent."""

ASKED = 0.02
"""Seconds after which a lock is asked for again."""

SLOWEST = 0.01
"""Requests per second of the slowest budget: one in 100 seconds."""

MOST_SLOWED, RECOVERY = 64.0, 0.01
"""How many times as far apart as by the rate requests are at most; the share of the rate that an answer gives back."""


class Stopped(Exception):
    """The pull ends; this request is not sent."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per second, and bytes per second (0 is no bound)."""

    requests: float
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class _State:
    """When the next request may be sent, or the next bytes read; until when the source asked to wait, or refused.

    Requests are `slowed` times as far apart as by the rate.
    """

    next: float = 0.0
    paused_until: float = 0.0
    refused_until: float = 0.0
    refusal: str = ""
    host: str = ""
    slowed: float = 1.0


OPEN, PAUSED, REFUSED = "open", "paused", "refused"
"""Whether requests are sent to a host: yes, not before it asked for the next one, or not as it has refused one."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """Whether requests are sent to a host; until when they are not (UTC, "" if they are), and which answer said so."""

    host: str
    state: str
    until: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """The right to send one request; what its answer forbids is written here, before the next one is sent."""

    stream: TextIO

    def pause(self, seconds: float) -> None:
        """Let no request be sent for some seconds, if any."""
        if not seconds:
            return
        state = _read(self.stream)
        _write(self.stream, replace(state, paused_until=max(state.paused_until, time.time() + seconds)))

    def slow(self) -> None:
        """Let requests be twice as far apart as before: the source says that they are too many."""
        state = _read(self.stream)
        _write(self.stream, replace(state, slowed=min(2 * state.slowed, MOST_SLOWED)))

    def recover(self) -> None:
        """Come back to the rate by a small step: the source has answered."""
        state = _read(self.stream)
        if state.slowed > 1:
            _write(self.stream, replace(state, slowed=max(1 / (1 / state.slowed + RECOVERY), 1.0)))

    def refuse(self, why: str) -> SourceRefused:
        """Let no request be sent for `REFUSAL` seconds; return the error."""
        state = replace(_read(self.stream), refused_until=time.time() + REFUSAL, refusal=why)
        _write(self.stream, state)
        return _refused(state)


@dataclass(frozen=True, slots=True)
class Budget:
    """What one host is asked for; `stop` ends every wait."""

    host: str
    rate: Rate
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def path(self) -> Path:
        """The file of the state, and of the lock."""
        return user_folder(PLACE) / f"budget-{hashlib.sha256(self.host.encode()).hexdigest()[:16]}.json"

    @contextlib.contextmanager
    def turn(self) -> Iterator[Turn]:
        """Wait for the turn of a request, and hold it.

        SourceRefused while the source refuses; SourceBusy if it asked to wait for longer than a pull waits.
        """
        with self._locked(self.path) as stream:
            self.wait(_seconds_left(_read(stream), self.host))
            state = _read(stream)
            _write(stream, replace(state, next=time.time() + state.slowed / self.rate.requests, host=self.host))
            yield Turn(stream)

    def spend(self, size: int) -> None:
        """Wait until bytes that were read are within the rate."""
        if not self.rate.bytes:
            return
        with self._locked(self.path.with_suffix(".bytes.json")) as stream:  # bodies go on while a request waits
            now = time.time()
            begin = min(max(_read(stream).next, now), now + LONGEST_WAIT)
            _write(stream, _State(next=begin + size / self.rate.bytes))
        self.wait(begin - now)

    def wait(self, seconds: float) -> None:
        """Wait; Stopped if the pull ends meanwhile."""
        if self.stop.wait(max(seconds, 0.0)):
            raise Stopped

    def reopen(self) -> None:
        """Forget a refusal and a request to wait: a person has decided to go on."""
        with self._locked(self.path) as stream:
            _write(stream, replace(_read(stream), paused_until=0.0, refused_until=0.0, refusal=""))

    @contextlib.contextmanager
    def _locked(self, path: Path) -> Iterator[TextIO]:
        """Hold the lock of a file; who has it may wait for minutes, so that this asks again, and Stopped ends it."""
        with path.open("a+") as stream:
            while not _is_free(stream):
                self.wait(ASKED)
            yield stream


def circuits() -> list[Circuit]:
    """Return what is known of each host that this user has asked on this machine, sorted; other machines have more."""
    states = []
    for path in user_folder(PLACE).glob("budget-*.json"):
        with contextlib.suppress(FileNotFoundError), path.open() as stream:
            states.append(_read(stream))
    return sorted((_circuit(state) for state in states if state.host), key=lambda circuit: circuit.host)


def reopen(host: str) -> None:
    """Send requests to a host again that has refused them, or asked to wait; RecipeError for one that was not asked."""
    known = [circuit.host for circuit in circuits()]
    if host not in known:
        message = f"this machine's user has asked no host {host[:100]!a}; it has asked {', '.join(known) or 'none'}"
        raise RecipeError(message)
    Budget(host, Rate(1.0)).reopen()


def _circuit(state: _State) -> Circuit:
    now = time.time()
    if state.refused_until > now:
        return Circuit(state.host, REFUSED, _clock(state.refused_until), state.refusal)
    if state.paused_until > now:
        return Circuit(state.host, PAUSED, _clock(state.paused_until), "it asked to wait")
    return Circuit(state.host, OPEN)


def _is_free(stream: TextIO) -> bool:
    """Take the lock of a file, unless somebody has it."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def host_of(url: str) -> str:
    """Return the host and port of a URL."""
    return urlsplit(url).netloc.lower()


def _seconds_left(state: _State, host: str) -> float:
    """Return the seconds until the next request; a state of a clock that was set back holds nobody for long."""
    now = time.time()
    if state.refused_until > now:
        raise _refused(state)
    if state.paused_until - now > LONGEST_WAIT:
        until = _clock(state.paused_until)
        message = f"{host} asks to send no request until {until}; run the same command then. {_way_out(host)}"
        raise SourceBusy(message)
    return max(min(state.next - now, 1 / SLOWEST), state.paused_until - now)


def _refused(state: _State) -> SourceRefused:
    message = (
        f"{state.refusal}: the source refuses more requests, and none is sent until {_clock(state.refused_until)}. Run "
        f"the same command then, with a smaller --rate. {_way_out(state.host)}"
    )
    return SourceRefused(message)


def _way_out(host: str) -> str:
    return (
        "Who knows that the source allows requests again sends them before: `--again` of the command, `again` of the "
        f"DAG's form, or `refinery look sources --reopen {host}` where it ran"
    )


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _read(stream: TextIO) -> _State:
    """Return the stored state, the first one where a process was killed while it wrote.

    What closes a host for longer than any answer may was written by another clock, or another release: it is left out.
    """
    stream.seek(0)
    try:
        state = _State(**json.loads(stream.read() or "{}"))
        latest = time.time() + LONGEST
        is_possible = state.paused_until <= latest and state.refused_until <= latest
        return state if is_possible else replace(state, paused_until=0.0, refused_until=0.0, refusal="")
    except (ValueError, TypeError):
        return _State()


def _write(stream: TextIO, state: _State) -> None:
    stream.seek(0)
    stream.truncate()
    stream.write(json.dumps(asdict(state)))
    stream.flush()
