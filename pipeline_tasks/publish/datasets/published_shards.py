"""Reads single sequences of a training dataset, and the documents behind their tokens, and no more than these."""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError, RecipeError, RefineryError
from pipeline_tasks.publish.datasets.building import Entry, file_of, files_of
from pipeline_tasks.publish.datasets.origin import INDEX
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import PublishedFile, read_published_file, require_size
from pipeline_tasks.recipe import COMPOSE
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import expired
from pipeline_tasks.store.reading import read_manifest


@dataclass(frozen=True, slots=True)
class Spot:
    """A token of a training dataset: its shard, its sequence in the shard, and its place in the sequence."""

    shard: int
    sequence: int
    token: int


@dataclass(frozen=True, slots=True)
class PublishedShards:
    """The shards of a version of a training dataset; each call reads the bytes that it needs."""

    root: str
    version: Version
    index: Mapping[str, Any]

    def spot(self, position: int) -> Spot:
        """Return the spot of a position in the stream of all shards, pads included; RecipeError past it."""
        sequence, token = divmod(position, self.index["length"])
        for shard, entry in enumerate(self.index["shards"]):
            if 0 <= sequence < entry["sequences"]:
                return Spot(shard, sequence, token)
            sequence -= entry["sequences"]
        positions = self.index["sequences"] * self.index["length"]
        message = f"position {position}: version {self.version.number} has {positions}, numbered from 0, pads included"
        raise RecipeError(message)

    def entry(self, spot: Spot) -> Entry:
        """Return the shard of a spot as the index has it; RecipeError if there is no such spot."""
        shards, length = self.index["shards"], self.index["length"]
        if not 0 <= spot.shard < len(shards):
            message = f"shard {spot.shard}: version {self.version.number} has {len(shards)}, numbered from 0"
            raise RecipeError(message)
        entry: Entry = shards[spot.shard]
        if not 0 <= spot.sequence < entry["sequences"]:
            message = f"sequence {spot.sequence}: shard {spot.shard} has {entry['sequences']}, numbered from 0"
            raise RecipeError(message)
        if not 0 <= spot.token < length:
            message = f"token {spot.token}: a sequence has {length}, numbered from 0"
            raise RecipeError(message)
        return entry

    def sequence(self, spot: Spot) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return the sequence of a spot with its pads, read as one range of its shard."""
        file = require_size(self.root, file_of(self.entry(spot)["bin"]), self.version.way_out)
        dtype, length = np.dtype(self.index["dtype"]).newbyteorder("<"), self.index["length"]
        begin = spot.sequence * length * dtype.itemsize
        [body] = storage.connect(self.root).read_ranges(file.path, [(begin, begin + length * dtype.itemsize)])
        row: npt.NDArray[np.unsignedinteger[Any]] = np.frombuffer(body, dtype)
        return row

    def piece(self, spot: Spot) -> dict[str, Any]:
        """Return the lineage row of the piece that has a spot's token; RecipeError if it is a pad."""
        pieces = pieces_near(self.root, file_of(self.entry(spot)["lineage"]), spot.sequence, self.version.way_out)
        starts = pieces["sequence"].to_numpy() * self.index["length"] + pieces["start"].to_numpy()
        at = int(np.searchsorted(starts, spot.sequence * self.index["length"] + spot.token, side="right")) - 1
        rows: list[dict[str, Any]] = pieces.slice(max(at, 0), 1).to_pylist()
        for row in rows:
            if row["sequence"] == spot.sequence and row["start"] <= spot.token < row["start"] + row["length"]:
                return row
        message = f"token {spot.token} of sequence {spot.sequence} of shard {spot.shard} is a pad; it has no document"
        raise RecipeError(message)


def open_build(root: str, version: Version) -> PublishedShards:
    """Open a version of a training dataset."""
    return PublishedShards(root, version, json.loads(read_published_file(root, version.file(INDEX), version.way_out)))


def named_files(root: str, version: Version) -> list[PublishedFile]:
    """Return the files of a version: those that its entry names, and those of its shards, which its index names.

    ContractError if the index is damaged or gone. Of one that expired, the shards went with it.
    """
    files = {file.path: file for file in version.files}
    index = f"{version.prefix}/{INDEX}"
    if index in files and (storage.connect(root).size(index) is not None or index not in expired(root)):
        files |= {file.path: file for file in files_of(open_build(root, version).index["shards"])}
    return list(files.values())


def refined_version(root: str, build: Version, snapshot: str) -> Version:
    """Return the version of a snapshot that a build was composed of; ContractError if the log does not have it."""
    composed = read_manifest(root, build.manifests[COMPOSE])
    [named] = [version for version in composed.params["versions"] if version["snapshot"] == snapshot]
    for version in reversed(version_log.versions(root, named["recipe"])):
        if version.snapshot == snapshot and path_of(version.refined) == named["manifest"]:
            return version
    message = (
        f"{root}: no version of recipe {named['recipe']} has {named['manifest']}, of which version {build.number} of "
        f"{build.recipe} was built; restore the log from a backup"
    )
    raise ContractError(message)


def pieces_near(root: str, file: PublishedFile, sequence: int, way_out: str) -> pa.Table:
    """Return the rows of the row groups of a lineage that can have pieces of a sequence."""
    with open_lineage(root, file, way_out) as lineage:
        ranks = range(lineage.metadata.num_row_groups)
        near = [rank for rank in ranks if _has(lineage.metadata.row_group(rank), sequence)]
        return lineage.read_row_groups(near)


@contextlib.contextmanager
def open_lineage(root: str, file: PublishedFile, way_out: str) -> Iterator[pq.ParquetFile]:
    """Open a published lineage; ContractError if it is damaged, also while it is read."""
    file = require_size(root, file, way_out)
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
