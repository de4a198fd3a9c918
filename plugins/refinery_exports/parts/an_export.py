"""An export: a line of JSON per sequence, with its ids and where its documents end."""

import json
from pathlib import Path

from refinery_exports.format import Format
from refinery_exports.stretch import Stretch

READING = """
import json

with open("data/shard-00000.jsonl") as lines:
    ids = json.loads(next(lines))["ids"]
"""


def write(stretch: Stretch, folder: Path, stem: str) -> None:
    """Write `<stem>.jsonl`."""
    offsets = stretch.offsets
    rows = [
        {"ids": ids.tolist(), "borders": stretch.borders[offsets[at] : offsets[at + 1]].tolist()}
        for at, ids in enumerate(stretch.ids)
    ]
    (folder / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


EXPORT = Format(write=write, shard_bytes=1 << 28, reading=READING)
