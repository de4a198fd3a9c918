"""The card of a format: how it writes one shard, and what it says of all shards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline_tasks.training.index import DatasetIndex, StoredFile
from refinery_exports.stretch import Stretch

DATA, LINEAGE = "data", "lineage"
"""Folders of an export: the shards in its format, and the lineage of each."""


@dataclass(frozen=True, slots=True)
class Written:
    """An exported shard: what it has, by name, and its files, relative to the place of the export."""

    counts: Mapping[str, int]
    files: tuple[StoredFile, ...]


def no_index(index: DatasetIndex, shards: Sequence[Written]) -> Mapping[str, bytes]:
    """Return that a format has no files about all shards."""
    del index, shards
    return {}


@dataclass(frozen=True, slots=True)
class Format:
    """A format that stores the sequences of a dataset.

    `write` writes the files of a stretch into a local folder, with names that begin with a stem. `index` returns the
    files about all shards by their names. `shard_bytes` is what the ids of a shard take if nobody says otherwise, as
    they are stored in the dataset. `reading` is a program for the card that reads the first sequence: `{dtype}` and
    `{length}` are filled in. `dtypes` are the types of ids that a reader gets instead of those of the dataset.
    `pattern` is how Hugging Face's hub finds files that it can show, "" if it can show none.
    """

    write: Callable[[Stretch, Path, str], None]
    shard_bytes: int
    reading: str
    pattern: str = ""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    index: Callable[[DatasetIndex, Sequence[Written]], Mapping[str, bytes]] = no_index
