"""The suite of sources: what is pulled again is the same, a killed pull goes on, and what is cut is refused."""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from pipeline_tasks.errors import RefineryError
from pipeline_tasks.landing.listing import PROMISE
from refinery_sources.admission import Admission, admitted
from refinery_sources.budget import Rate
from refinery_sources.pull import Landed, Pull, landing_at, pull
from refinery_sources.redirects import Origin
from refinery_sources.source import UNKNOWN, Flow, Occasion, Part, Source
from refinery_sources.web import Web, web

FAST = Rate(1_000.0)

NOW = datetime(2026, 1, 5, 6, tzinfo=UTC)


def check_source(source: Source, cut: Source | None = None) -> None:
    """Raise AssertionError unless a source lands whole, the same each time, or not at all.

    `cut` is a query of the kind whose data is not whole, by a server of a test for instance. Without one the parts
    promise more than there is; that needs parts that promise rows, bytes or a digest.
    """
    with tempfile.TemporaryDirectory() as folder:
        first, again, killed, refused = (Path(folder, name) for name in ("first", "again", "killed", "refused"))
        written: list[int] = []
        landed = _pulled(source, first, lambda _name, size: written.append(size))
        assert landed.files, f"{source}: no file landed"
        assert not _pulled(source, first).is_new, f"{source}: a query that has landed is pulled again"
        _pulled(source, again)
        _require_same(first, again, f"{source}: pulled again")
        _check_killed(source, killed, sum(written) // 2)
        _require_same(first, killed, f"{source}: after a kill")
        _check_refused(cut or cast("Source", _Promised(source)), refused)


def _pulled(source: Source, to: Path, on_bytes: Callable[[str, int], None] = lambda _name, _size: None) -> Landed:
    with on_loopback() as on, admitted(source, on.gate):
        query = source.resolved(Occasion(on, "mine", NOW))
        facts = json.loads(json.dumps(dict(query.query())))
        assert facts.get("source"), f"{source}: its query does not name its kind as `source`"
        return pull(query, landing_at(str(to), to.parent / "spool"), Pull(on, 1, Flow(1 << 20, on_bytes)))


def _require_same(first: Path, other: Path, how: str) -> None:
    was, now = digests_of(first), digests_of(other)
    differing = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
    assert not differing, f"{how}, {', '.join(differing)} differ"


def _check_killed(source: Source, to: Path, after: int) -> None:
    """A pull that ends in the middle has landed nothing, and the next one goes on."""
    try:
        _pulled(source, to, killed_after(after))
    except Killed:
        assert not (to / PROMISE).exists(), f"{source}: a pull that was killed has landed"
    else:
        message = f"{source}: it tells `flow.on_bytes` nothing of what it writes"
        raise AssertionError(message)
    _pulled(source, to)


def _check_refused(source: Source, to: Path) -> None:
    try:
        _pulled(source, to)
    except RefineryError:
        assert not (to / PROMISE).exists(), f"{source}: what was refused has landed"
    else:
        message = f"{source}: what is not whole has landed; prove in `receive` that a part has what it promises"
        raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class _Promised:
    """A source whose first part promises more than there is."""

    source: Source

    def __getattr__(self, name: str) -> object:
        return getattr(self.source, name)

    def resolved(self, occasion: Occasion) -> "_Promised":
        return _Promised(self.source.resolved(occasion))

    def parts(self, on: Web) -> Sequence[Part]:
        parts = list(self.source.parts(on))
        at = next(at for at, part in enumerate(parts) if not part.beside)
        parts[at] = _more(parts[at])
        return parts


def _more(part: Part) -> Part:
    if part.rows != UNKNOWN:
        return replace(part, rows=part.rows + 1)
    if part.bytes != UNKNOWN:
        return replace(part, bytes=part.bytes + 1)
    assert part.sha256, f"{part.name} promises no rows, bytes or digest; give a query that is `cut`"
    return replace(part, sha256="0" * 64)


@contextlib.contextmanager
def on_loopback(rate: Rate = FAST, workers: int = 4) -> Iterator[Web]:
    """Have a client that does not wait for long between two tries, and asks servers of this machine by itself.

    Within a pull it asks what the source declares, as any client does.
    """
    with web(rate, workers, backoff=0.001) as on:
        on.gate.admission = Admission(origins=_Loopback())
        yield on


class _Loopback(frozenset[Origin]):
    """The origins of servers of a test."""

    def __contains__(self, origin: object) -> bool:
        return isinstance(origin, tuple) and origin[:2] == ("http", "127.0.0.1")


def digests_of(place: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a landing, by name, without its `snapshot.json`."""
    files = (file for file in sorted(place.rglob("*")) if file.is_file() and file.name != PROMISE)
    return {str(file.relative_to(place)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


class Killed(BaseException):
    """Ends a pull in the middle, as a kill does."""


def killed_after(size: int) -> Callable[[str, int], None]:
    """Return what ends a pull once so many bytes were written."""
    left = [size]

    def on_bytes(_name: str, written: int) -> None:
        left[0] -= written
        if left[0] <= 0:
            raise Killed

    return on_bytes
