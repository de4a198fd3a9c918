"""The suite of formats of exports: what is written is read back whole, from shards of any size, and is the same."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pipeline_tasks.engines.each import On
from pipeline_tasks.testing.training_dataset import Packed, write_dataset
from refinery_exports.exporting import Export, processes, run
from refinery_exports.format import Format
from refinery_exports.formats import format_of
from refinery_exports.stretch import Dataset, open_dataset
from refinery_exports.tokens.token_shards import shards_of_tokens

PREFIX = "publish/0123456789abcdef01234567"

SHARDS = (40, 1, 0, 23, 36)
"""Sequences of the shards of the dataset that is exported."""

SIZES = (90, 700, 1 << 20)
"""Bytes of the shards of exports: of a few sequences each, and of all."""

Read = Callable[[Path, Packed], Iterable[tuple[list[int], list[int]]]]
"""Reads an export in a folder, without Refinery: the ids of each sequence with its pads, and where documents end.

These borders are 0, the ends of the documents, and the end of the sequence. The dataset says what the files of a format
may leave out: length of sequences, type of ids.
"""


def check_export(name: str, read: Read) -> None:
    """Raise AssertionError unless `read` finds every sequence of a dataset, in order, in its exports in a format.

    `name` is that of the entry point, or `module:NAME`.
    """
    for dtype in ("uint16", "uint32"):
        with tempfile.TemporaryDirectory() as folder:
            packed = write_dataset(Path(folder), SHARDS, dtype=dtype)
            for shard_bytes in SIZES:
                _check_whole(packed, name, read, Path(folder, str(shard_bytes)), shard_bytes)
            exported(packed, f"{folder}/again", name, SIZES[0])
            assert files(Path(folder, "again")) == files(Path(folder, str(SIZES[0]))), f"{name}: other bytes again"


def _check_whole(packed: Packed, name: str, read: Read, to: Path, shard_bytes: int) -> None:
    listed = exported(packed, str(to), name, shard_bytes)
    where = f"{name}, shards of {shard_bytes} bytes"
    assert listed["tokens"] == sum(map(packed.tokens, range(len(packed.sequences)))), f"{where}: other tokens"
    rows = list(read(to, packed))
    assert len(rows) == len(packed.sequences), f"{where}: {len(rows)} of {len(packed.sequences)} sequences"
    for index, (ids, borders) in enumerate(rows):
        assert list(ids) == packed.ids(index), f"{where}: sequence {index} has the ids {ids}, not {packed.ids(index)}"
        expected = packed.borders(index)
        assert list(borders) == expected, f"{where}: sequence {index} has the borders {borders}, not {expected}"


def files(folder: Path) -> dict[str, bytes]:
    """Return the files of an export by their names."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def dataset_of(packed: Packed) -> Dataset:
    """Return a dataset as exports read it."""
    return open_dataset(str(packed.folder.parent.parent), PREFIX)


def exported(
    packed: Packed, to: str, name: str = "parquet", shard_bytes: int = 700, workers: int = 1
) -> dict[str, Any]:
    """Export a dataset as `refinery export` does, without the card and tokenizer of a version; return its files."""
    dataset = dataset_of(packed)
    facts = {"export": name, "dataset": dataset.index.digest, "shard_bytes": shard_bytes}
    expected = {field: getattr(dataset.index, field) for field in ("sequences", "tokens", "pads")}
    shards = shards_of_tokens(dataset, name, shard_bytes)
    format_ = format_of(name)
    assert isinstance(format_, Format), f"{name} has texts; this suite is of formats of tokens"
    export = Export(facts, shards, lambda written: format_.index(dataset.index, written), expected)
    return run(export, to, On(workers=processes(workers)))
