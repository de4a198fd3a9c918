"""Writes lines of JSON as a part of a landing."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pipeline_tasks.store.credential import masked
from pipeline_tasks.store.local_store import flush, os_errors
from refinery_sources.budget import Stopped
from refinery_sources.source import Flow, Part, Received
from refinery_sources.web import Web


def write_lines(lines: Iterable[bytes], part: Part, partial: Path, web: Web, flow: Flow) -> Received:
    """Write lines without line feeds to the local file `partial`, from its beginning; return what was written.

    Secrets of the deployment are masked, and counted among its facts.
    """
    digest, size, rows, secrets = hashlib.sha256(), 0, 0, 0
    with os_errors(str(partial)), partial.open("wb") as stream:
        for line in lines:
            if web.stop.is_set():
                raise Stopped
            written, found = masked(line)
            secrets += found
            whole = written + b"\n"
            stream.write(whole)
            digest.update(whole)
            size, rows = size + len(whole), rows + 1
            flow.on_bytes(part.name, len(whole))
        flush(stream)
    return Received(size, digest.hexdigest(), rows=rows, facts={"masked": secrets} if secrets else {})
