"""What every format of exports promises, by a reader that knows nothing of Refinery."""

import json
from collections.abc import Iterator
from pathlib import Path

from pipeline_tasks.testing.training_dataset import Packed
from refinery_exports.testing import check_export


def read(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the ids of each sequence, and where its documents end."""
    del packed
    for path in sorted((folder / "data").iterdir()):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            yield row["ids"], row["borders"]


def test_it_keeps_what_every_export_promises() -> None:
    """Every sequence is read back, for shards of any size."""
    check_export("an_export", read)
