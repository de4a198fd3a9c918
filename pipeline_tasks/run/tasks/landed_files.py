"""Reads the records of landed files for tasks: of a whole file, which is checked at its end, or those at places."""

import json
import socket
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple, cast

import pyarrow as pa

from pipeline_tasks.errors import ContractError, DigestMismatch
from pipeline_tasks.libraries import require_same
from pipeline_tasks.profiles.field_types import FieldCounts, ShapeCounter
from pipeline_tasks.stage import LANDING, WHOLE, Batches, Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.protocol import mismatch
from pipeline_tasks.store.shards.file import HashingStream, PieceStream
from pipeline_tasks.store.shards.rows import Places, picked


class LandedFiles(NamedTuple):
    """The files of a landed snapshot, and the rows that a batch of their records has at most.

    What fields the records of a whole file have is added to `counted`, when it was read to its end.
    """

    landing: str
    snapshot: str
    batch_rows: int
    counted: list[FieldCounts] | None = None

    def read(self, shard: Shard, columns: Sequence[str], places: Places | None = None) -> Batches:
        """Yield columns of the records of a file or of a piece: of all, or of those at `places`."""
        from pipeline_tasks.landing.archives.placed_records import is_worth_it

        done = 0
        if places is not None and is_worth_it(places.records, shard.bytes):
            for batch in self._placed(shard, columns, places):
                if batch is None:
                    break
                done += batch.num_rows
                yield batch
            else:
                return
        yield from picked(self._whole(shard, columns), None if places is None else places.rows[done:])

    def _placed(self, shard: Shard, columns: Sequence[str], places: Places) -> Iterator[pa.RecordBatch | None]:
        """Yield columns of the records at `places`; None where the file has to be read from its beginning."""
        from pipeline_tasks.landing.archives.placed_records import read_placed

        name = shard.path.removeprefix(LANDING)
        read = partial(storage.connect(self.landing).read_ranges, name)
        try:
            for batch in read_placed(name, read, places.records, snapshot=self.snapshot, columns=columns):
                yield from [None] if batch is None else _sliced(batch, self.batch_rows)
        except (FileNotFoundError, DigestMismatch):  # gone, or cut short: who reads it whole says so
            yield None

    def _whole(self, shard: Shard, columns: Sequence[str]) -> Batches:
        """Yield columns of all records, and check at the end that the file is what was listed."""
        from pipeline_tasks.landing.brought_formats import library_of, versions_of
        from pipeline_tasks.landing.formats import read_records
        from pipeline_tasks.landing.json_lines import names_of

        name, fields = shard.path.removeprefix(LANDING), json.loads(shard.fields or "{}")
        shapes = None if self.counted is None else ShapeCounter(names_of(fields))
        require_same(versions_of(shard.library), versions_of(library_of(name)), socket.gethostname())
        uri = f"{self.landing}/{name}"
        about = {"snapshot": self.snapshot, "start": max(shard.start, 0), "fields": fields, "shapes": shapes}
        try:
            with storage.open_landed(uri) as raw:
                stream = HashingStream(raw if shard.start == WHOLE else PieceStream(raw, shard.start, shard.bytes))
                for batch in read_records(name, cast("BinaryIO", stream), columns=columns, **about):
                    yield from _sliced(batch, self.batch_rows)
                digest = stream.drain()
        except FileNotFoundError as error:
            if storage.connect(self.landing).size(name) is not None:
                raise  # something else is not there, such as TMPDIR
            message = (
                f"{uri} vanished after snapshot {self.snapshot} was listed; bring the same file back and run again, or "
                "run again without it: the snapshot is listed anew"
            )
            raise ContractError(message) from error
        if shard.digest not in ("", digest, storage.listed_digest(uri)):
            raise mismatch(uri, shard.digest, digest)
        if shapes is not None and self.counted is not None:
            self.counted.append(shapes.counts())


def _sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(start, rows)
