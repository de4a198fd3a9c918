"""Writes the WARC files of one snapshot, then `snapshot.json`, which lists them."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline_tasks.demo import warc
from pipeline_tasks.demo.captures import STATUS, Capture


class Place(NamedTuple):
    """Where a record is, and when it was captured."""

    file: str
    offset: int
    length: int
    date: str


def write_snapshot(
    folder: Path, snapshot: str, captures: Sequence[Capture], files: int
) -> tuple[dict[str, Place], dict[str, int]]:
    """Write the files of one snapshot, then `snapshot.json`.

    Returns the place of each record by URL, and the number of records by WARC type.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, Place] = {}
    counts = Counter[str]()
    listing = []
    per_file = -(-len(captures) // files)
    for number in range(files):
        name = f"demo-{snapshot}-{number:05d}.warc.gz"
        start = number * per_file
        data = _warc_file(name, snapshot, captures[start : start + per_file], start, places, counts)
        (folder / name).write_bytes(data)
        listing.append({"path": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    text = json.dumps({"snapshot": snapshot, "files": listing}, indent=1, sort_keys=True) + "\n"
    (folder / "snapshot.json").write_text(text)
    return places, dict(counts)


def _warc_file(
    name: str,
    snapshot: str,
    captures: Sequence[Capture],
    start: int,
    places: dict[str, Place],
    counts: Counter[str],
) -> bytes:
    """Return the bytes of one file, a second per capture; adds its records to `places` and `counts`."""
    data = bytearray(warc.member(warc.warcinfo(name, f"{snapshot}T00:00:00Z")))
    counts["warcinfo"] += 1
    for rank, capture in enumerate(captures):
        seconds = start + rank
        date = f"{snapshot}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"
        if rank % 3 == 0:
            data += warc.member(warc.request(_exchange(capture, date), record_id(snapshot, capture)))
            counts["request"] += 1
        member = _member(capture, snapshot, date)
        places[capture.url] = Place(name, len(data), len(member), date)
        data += member
        counts["revisit" if capture.form == "revisit" else "response"] += 1
    return bytes(data)


def record_id(snapshot: str, capture: Capture) -> str:
    """Return the WARC-Record-ID of a capture in a snapshot."""
    return warc.record_id(snapshot, capture.url)


def _exchange(capture: Capture, date: str) -> warc.Exchange:
    headers = (("Date", date), ("Server", "demo"), ("Content-Type", capture.content_type), *capture.coding)
    length = () if ("Transfer-Encoding", "chunked") in capture.coding else (("Content-Length", str(len(capture.body))),)
    return warc.Exchange(capture.url, date, STATUS[capture.status], headers + length, capture.body)


def _member(capture: Capture, snapshot: str, date: str) -> bytes:
    """Return the gzip member of `capture`, damaged as its form says."""
    exchange, identifier = _exchange(capture, date), record_id(snapshot, capture)
    if capture.form == "revisit":
        return warc.member(warc.revisit(exchange, identifier, *capture.earlier))
    lie = {"short": -300, "long": 4000}.get(capture.form, 0)
    member = warc.member(warc.response(exchange, identifier, lie))
    middle = len(member) // 2
    if capture.form == "flipped":
        return member[:middle] + bytes([member[middle] ^ 0xFF]) + member[middle + 1 :]
    return member[:middle] if capture.form == "cut" else member
