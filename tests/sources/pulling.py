"""Clients for mirrors on loopback."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from refinery_sources.pull import Landed
from refinery_sources.recipe import load_source, parse_source, pull_recipe
from refinery_sources.source import Flow, Source
from refinery_sources.testing import FAST, NOW, Killed, digests_of, killed_after, on_loopback

from pipeline_tasks.landing.formats import read_records

__all__ = [
    "FAST",
    "NOW",
    "SLEW",
    "Killed",
    "digests_of",
    "killed_after",
    "on_loopback",
    "promise_of",
    "pull_source",
    "query_of",
    "records_of",
]

SLEW = 0.005
"""Seconds by which a clock that is being corrected differs from the one that waits are measured by."""


def query_of(source: Mapping[str, Any]) -> Source:
    """Return the query that a recipe has of a source."""
    return parse_source({"source": source}, "mine.yaml", {}).source


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
