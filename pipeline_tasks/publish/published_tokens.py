"""Reads single sequences of a published version, and the documents behind their tokens, and no more than these."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, RefineryError
from pipeline_tasks.publish.packed import Counts, piece_of, read_index
from pipeline_tasks.publish.published import PublishedFile, read_published_file, require_size
from pipeline_tasks.publish.version_log import Version
from pipeline_tasks.store import storage


@dataclass(frozen=True, slots=True)
class PublishedTokens:
    """The tokens of a version; `sequence` and `locate` read the bytes that they need from the version's files."""

    root: str
    version: Version
    counts: Counts
    dtype: np.dtype[Any]

    def sequence(self, at: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return sequence `at` without pads, read as one range of `tokens.bin`; IndexError past it."""
        counts = self.counts
        if not 0 <= at < counts.sequences:
            message = f"sequence {at}: there are {counts.sequences}, numbered from 0"
            raise IndexError(message)
        size = counts.length * self.dtype.itemsize
        path = self.version.file("tokens.bin").path
        [body] = storage.connect(self.root).read_ranges(path, [(at * size, (at + 1) * size)])
        row: npt.NDArray[np.unsignedinteger[Any]] = np.frombuffer(body, self.dtype)
        return row[: counts.length - counts.pads] if at == counts.sequences - 1 else row

    def locate(self, position: int) -> tuple[int, dict[str, Any]]:
        """Return the sequence, and the lineage row of the piece, that have token `position`; IndexError past it."""
        sequence = self.counts.sequence_of(position)
        pieces = pieces_near(self.root, self.version.file("lineage.parquet"), sequence, self.version.way_out)
        return sequence, piece_of(position, self.counts, pieces)


def pieces_near(root: str, file: PublishedFile, sequence: int, way_out: str) -> pa.Table:
    """Return the rows of the row groups of a lineage that can have pieces of a sequence."""
    with open_lineage(root, file, way_out) as lineage:
        ranks = range(lineage.metadata.num_row_groups)
        near = [rank for rank in ranks if _has(lineage.metadata.row_group(rank), sequence)]
        return lineage.read_row_groups(near)


@contextlib.contextmanager
def open_lineage(root: str, file: PublishedFile, way_out: str) -> Iterator[pq.ParquetFile]:
    """Open a published lineage; ContractError if it is damaged, also while it is read."""
    require_size(root, file, way_out)
    try:
        with storage.connect(root).open(file.path) as stream:
            yield pq.ParquetFile(stream, page_checksum_verification=True)
    except RefineryError:
        raise
    except (pa.ArrowException, OSError) as error:  # pyarrow raises either for a damaged file
        message = f"{root}/{file.path} is damaged ({error}); {way_out}"
        raise ContractError(message) from error


def _has(group: pq.RowGroupMetaData, sequence: int) -> bool:
    """Return whether a row group can have pieces of a sequence, which is the first column."""
    bounds = group.column(0).statistics
    return bounds is None or bounds.min <= sequence <= bounds.max


def open_published(root: str, version: Version) -> PublishedTokens:
    """Open a version's tokens; ContractError unless its files have the sizes that the version promises."""
    counts, dtype, _ = read_index(read_published_file(root, version.file("tokens.json"), version.way_out))
    require_size(root, version.file("tokens.bin"), version.way_out)
    return PublishedTokens(root, version, counts, dtype)
