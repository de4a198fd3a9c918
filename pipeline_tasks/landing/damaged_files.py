"""Says in words which landed files damaged records are of, and why."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from pipeline_tasks.counted import counted

COLUMNS = ("file", "offset", "reason", "evidence")
"""The columns that are read of rows that were quarantined."""

NAMED = 10
"""Files that are named, those with most damaged records."""


def damaged_files(batches: Iterable[pa.RecordBatch]) -> str:
    """Return the files of damaged records: how many each has, and reason, evidence and place of its first one."""
    counts, first = Counter[str](), dict[str, str]()
    for batch in batches:
        for row in batch.to_pylist():
            file = str(row.get("file"))
            counts[file] += 1
            first.setdefault(file, f"{row['reason']} {row['evidence'] or ''} at {row.get('offset')}")
    most = sorted(counts, key=lambda file: (-counts[file], file))
    named = [f"{counts[file]:,} of {file} ({first[file]})" for file in most[:NAMED]]
    more = [f"those of {counted(len(most) - NAMED, 'other file')}"] if len(most) > NAMED else []
    return ", ".join([*named, *more])
