"""Writes bytes in memory as a part of a landing."""

import hashlib
from pathlib import Path

from pipeline_tasks.store.local_store import flush, os_errors
from refinery_sources.source import Flow, Part, Received


def write_whole(data: bytes, part: Part, partial: Path, flow: Flow) -> Received:
    """Write a small file to the local file `partial`; return what was written."""
    with os_errors(str(partial)), partial.open("wb") as stream:
        stream.write(data)
        flush(stream)
    flow.on_bytes(part.name, len(data))
    return Received(len(data), hashlib.sha256(data).hexdigest())
