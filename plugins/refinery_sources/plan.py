"""Says what a pull would take: files, bytes, time at its rate, and space; nothing is written."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import SnapshotIncomplete, SourceBusy
from pipeline_tasks.store import storage
from refinery_sources.admission import admitted
from refinery_sources.pull import Landing, Pull, all_parts, sizes
from refinery_sources.source import UNKNOWN, InPlace, Part, Source
from refinery_sources.web import Web, answered

SIZED = 5
"""Files whose sizes a plan asks for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a pull would take: files, bytes by an estimate, seconds at the rate at least, free bytes if known."""

    snapshot: str
    files: int
    complete: int
    bytes: int
    estimate: str
    seconds: float
    free: int | None


def plan(source: Source, landing: Landing, by: Pull) -> Plan:
    """Return what a pull would take, by the sizes of a few files; nothing is written."""
    with admitted(source, by.web.gate, by.rights):
        return _planned(source, landing, by)


def _planned(source: Source, landing: Landing, by: Pull) -> Plan:
    parts = all_parts(source, by)
    stays = isinstance(source, InPlace) and source.in_place
    there = sizes(landing) if is_bucket(landing.uri) or Path(landing.uri).is_dir() else {}
    missing = [part for part in parts if part.name not in there and part.requests]
    known = (
        []
        if stays
        else [size for part in missing[:: max(len(missing) // SIZED, 1)][:SIZED] if (size := _size(by.web, part))]
    )
    mean = sum(known) / len(known) if known else source.typical_bytes
    total = 0 if stays else round(mean * len(missing))
    rate = by.web.rate
    return Plan(
        source.snapshot,
        len(parts),
        sum(part.name in there for part in parts),
        total,
        "they are read in place" if stays else _basis(len(known)),
        max(sum(part.requests for part in missing) / rate.requests, total / rate.bytes if rate.bytes else 0.0),
        None if is_bucket(landing.uri) else shutil.disk_usage(storage.existing(landing.uri)).free,
    )


def _basis(known: int) -> str:
    return f"by the sizes of {counted(known, 'file')}" if known else "by the size that such files usually have"


def _size(web: Web, part: Part) -> int:
    """Return the bytes of a part, 0 where the source does not say."""
    if part.bytes != UNKNOWN:
        return part.bytes
    if not part.address.startswith(("https://", "http://")):  # a table's file becomes one of ours, of another size
        return 0
    with (
        contextlib.suppress(SourceBusy, SnapshotIncomplete),
        answered(web, part.address, method="HEAD") as head,
    ):
        return int(head.headers.get("Content-Length", "0"))
    return 0
