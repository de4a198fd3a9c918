"""Pulls of an API on loopback, and what has landed of it."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from refinery_sources.budget import Rate
from refinery_sources.pull import Landed
from refinery_sources.recipe import parse_source, pull_recipe

from tests.sources.api_server import STYLES, Api
from tests.sources.pulling import FAST, on_loopback

NOW = datetime(2026, 2, 1, 6, tzinfo=UTC)
FIELDS = {"text": "body.text", "url": "link", "date": "published"}


def query_of(api: Api, style: str = "cursor", **changed: Any) -> dict[str, Any]:
    query = {"url": api.url, "id": "id", "records": "data.items", "fields": FIELDS, "pages": STYLES[style], **changed}
    return {name: value for name, value in query.items() if value is not None}


def pulled(
    api: Api,
    to: Path,
    style: str = "cursor",
    *,
    hours: float = 0,
    rate: Rate = FAST,
    workers: int = 4,
    name: str = "news",
    **changed: Any,
) -> tuple[Path, Landed]:
    """Pull a query as a recipe below a folder; `hours` after the first one."""
    recipe = parse_source({"source": {"api": query_of(api, style, **changed)}, "workers": workers}, f"{name}.yaml", {})
    with on_loopback(rate, workers) as on:
        place, landed = pull_recipe(recipe, str(to), to / "spool", on, NOW + timedelta(hours=hours))
    return Path(place), landed


def rows_of(place: Path) -> list[dict[str, Any]]:
    """The rows of a landing, in the order of its files."""
    promise = json.loads((place / "snapshot.json").read_bytes())
    return [
        json.loads(line)
        for file in promise["files"]
        for line in gzip.decompress((place / file["path"]).read_bytes()).splitlines()
    ]


def ids_of(place: Path) -> list[int]:
    return sorted(int(row["id"]) for row in rows_of(place))


def facts_of(place: Path, part: str = "records.jsonl.gz") -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((place / "snapshot.json").read_bytes())["source"]["facts"][part]
    return facts


def landed_in(to: Path) -> list[str]:
    """The snapshots that have landed below a folder."""
    return sorted(path.parent.name for path in to.glob("*/snapshot.json"))


def deleted_of(place: Path) -> list[dict[str, Any]]:
    """What has landed as deleted."""
    file = place / "_deleted.jsonl"
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []
