"""Counts the records of a file before it lands: exactly in small files and Parquet, else from its beginning."""

from collections.abc import Iterator, Sequence
from io import BytesIO

from pipeline_tasks.landing.formats import first_rows
from pipeline_tasks.landing.parquet.footer import read_footer
from pipeline_tasks.landing.parquet.rows import FAULTS, MAGIC
from pipeline_tasks.store import storage

READ = 1 << 20
"""Bytes that are read of a file: of a smaller one, all its records are counted."""

FILES = 8
"""Files of a snapshot that are read, evenly spaced among all."""

MOST = 1_000_000
"""Records that are counted in `READ` bytes at most: compressed ones may have any number."""


def counted_records(folder: str, files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield name and records of some of a snapshot's files, which have a name and bytes each.

    A file that cannot be read is left out.
    """
    step = max(len(files) / FILES, 1.0)
    for at in range(min(len(files), FILES)):
        name, size = files[int(at * step)]
        records = _records_in(f"{folder}/{name}", name, size)
        if records:
            yield name, records


def _records_in(uri: str, name: str, size: int) -> int:
    """Return the records of a file; 0 if that cannot be known."""
    try:
        with storage.open_landed(uri) as stream:
            start = stream.read(READ)
            if start.startswith(MAGIC):
                return sum(group.rows for group in read_footer(stream, size).groups)
    except FAULTS as error:  # whoever lands it says so
        if isinstance(error, OSError) and error.errno is not None:
            raise
        return 0
    rows = sum(1 for _ in first_rows(name, BytesIO(start), {}, MOST))
    if len(start) >= size:
        return rows
    return (rows - 1) * size // len(start)  # the last one is cut
