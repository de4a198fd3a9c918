"""Clients for mirrors on loopback."""

import contextlib
import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.sources.admission import Admission
from pipeline_tasks.sources.budget import Rate
from pipeline_tasks.sources.pull import Landed
from pipeline_tasks.sources.recipe import load_source, pull_recipe
from pipeline_tasks.sources.redirects import Origin
from pipeline_tasks.sources.source import Flow
from pipeline_tasks.sources.web import Web, web

FAST = Rate(1_000.0)

SLEW = 0.005
"""Seconds by which a clock that is being corrected differs from the one that waits are measured by."""


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


NOW = datetime(2026, 1, 5, 6, tzinfo=UTC)


def pull_source(
    source: Mapping[str, Any],
    landings: Path,
    *,
    name: str = "news",
    rights: Sequence[str] = (),
    moment: datetime = NOW,
    on_bytes: Callable[[str, int], None] = lambda _name, _size: None,
) -> tuple[Path, Landed]:
    """Write a recipe with a source, and pull what it asks for below `landings`; return the place, and what landed."""
    file = landings.parent / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"source": source, "workers": 2, "rights": [*rights]}))
    recipe = load_source(str(file))
    with on_loopback() as on:
        place, landed = pull_recipe(recipe, str(landings), landings / "spool", on, moment, Flow(1 << 20, on_bytes))
    return Path(place), landed


def records_of(place: Path) -> list[dict[str, Any]]:
    """Return the records of a landed snapshot as `ingest` reads them, by the names of its fields."""
    promise = promise_of(place)
    fields = promise.get("fields", {})
    return [
        record
        for file in promise["files"]
        for batch in read_records(
            file["path"], io.BytesIO((place / file["path"]).read_bytes()), snapshot="s", fields=fields
        )
        for record in batch.to_pylist()
    ]


def promise_of(place: Path) -> dict[str, Any]:
    """Return the `snapshot.json` of a landing."""
    promise: dict[str, Any] = json.loads((place / "snapshot.json").read_bytes())
    return promise


def digests_of(place: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a landing, by name, without its `snapshot.json`."""
    files = (file for file in sorted(place.rglob("*")) if file.is_file() and file.name != "snapshot.json")
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
