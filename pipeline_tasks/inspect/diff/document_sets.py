"""Compares sets of documents by id, exactly and in bounded memory.

Ids are spread uniformly, so they are cut by their first byte into parts that fit into memory. The parts lie in a
temporary folder, 16 bytes per document.
"""

import binascii
import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa

from pipeline_tasks.errors import ContractError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.store.reading import read_history, read_shards

ID_BYTES, HEX = 16, 32
"""Bytes of an id, and its digits."""

PART_BYTES = 16 * 1024 * 1024
"""Bytes of ids that a part is to have."""

MOST_PARTS = 256
"""Parts, each of which is an open file; from 268 million documents on, parts grow."""

BY = ("source", "language")
"""Columns by whose values documents and tokens are counted."""

ID, TOKENS, SUPERSEDED = "id", "n_tokens", "superseded"
UNKNOWN = "-"
"""The group of documents without a value."""

Ids = np.ndarray[Any, Any]
Groups = Mapping[str, Mapping[str, "Amount"]]
"""Amounts by column and value."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Documents of a group, and their tokens; a document that a build uses several times counts as often."""

    documents: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many ids two versions share, which the second adds and removes, and how many of these it supersedes."""

    common: int
    added: int
    removed: int
    superseded: int


@dataclass(slots=True)
class _Tally:
    """Documents and tokens by column and value, while rows are read."""

    documents: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch."""
        for column in (name for name in BY if name in batch.schema.names):
            weight = batch.column(TOKENS) if TOKENS in batch.schema.names else pa.nulls(batch.num_rows, pa.int64())
            table = pa.table({"group": batch.column(column), "tokens": weight})
            counted = table.group_by("group").aggregate([("tokens", "sum"), ([], "count_all")])
            for row in counted.to_pylist():
                key = column, row["group"] or UNKNOWN
                self.documents[key] += row["count_all"]
                self.tokens[key] += row["tokens_sum"] or 0

    def groups(self) -> Groups:
        """Return the amounts, names in their order."""
        return {
            by: {
                name: Amount(count, self.tokens[by, name])
                for (column, name), count in sorted(self.documents.items())
                if column == by
            }
            for by in BY
        }


@dataclass(frozen=True, slots=True)
class Side:
    """One of two versions: its root, its documents, and the manifests that may list what it supersedes."""

    root: str
    documents: Manifest
    manifests: tuple[Manifest, ...]


def compare_documents(first: Side, second: Side, to: str = "") -> tuple[Comparison, Groups, Groups]:
    """Return how the documents of two versions differ, and the amounts of both by group.

    Every shard of both is read once. `to` is a folder for the sorted ids, in `added.txt`, `removed.txt` and
    `superseded.txt`; an id that occurs several times counts once.
    """
    tallies = _Tally(), _Tally()
    rows = max(first.documents.rows, second.documents.rows)
    parts = min(1 << max(rows * ID_BYTES // PART_BYTES, 0).bit_length(), MOST_PARTS)
    with tempfile.TemporaryDirectory(prefix="refinery-") as folder:
        streams = {
            "first": _documents(first, tallies[0]),
            "second": _documents(second, tallies[1]),
            SUPERSEDED: _superseded(second),
        }
        for name, batches in streams.items():
            _cut(batches, Path(folder), name, parts)
        comparison = _compare(Path(folder), parts, to)
    return comparison, tallies[0].groups(), tallies[1].groups()


def _documents(side: Side, tally: _Tally) -> Iterator[pa.Array]:
    for batch in read_shards(side.root, side.documents.shards, [ID, TOKENS, *BY]):
        tally.add(batch)
        yield batch.column(ID)


def _superseded(side: Side) -> Iterator[pa.Array]:
    """Yield the ids that a version's stages list as superseded, in a section of history that has this name."""
    for manifest in side.manifests:
        for batch in read_history(side.root, manifest, SUPERSEDED, [ID]):
            if ID in batch.schema.names:
                yield batch.column(ID)


def _cut(batches: Iterable[pa.Array], folder: Path, name: str, parts: int) -> None:
    """Write the ids of batches to a file per part."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(_part(folder, name, part).open("wb")) for part in range(parts)]
        for batch in batches:
            ids = _packed(batch)
            part_of = ids.view(np.uint8).reshape(-1, ID_BYTES)[:, 0].astype(np.int64) * parts >> 8
            order = np.argsort(part_of, kind="stable")
            ends = np.searchsorted(part_of[order], np.arange(parts), side="right")
            for part, own in enumerate(np.split(ids[order], ends[:-1])):
                files[part].write(own.tobytes())


def _part(folder: Path, name: str, part: int) -> Path:
    return folder / f"{name}-{part}"


def _packed(ids: pa.Array) -> Ids:
    """Return ids as 16 bytes each; ContractError for one that is no hash of a text."""
    if not len(ids):
        return np.empty(0, f"S{ID_BYTES}")
    try:
        digits = ids.cast(pa.binary(HEX))
        start = digits.offset * HEX
        raw = binascii.unhexlify(digits.buffers()[1][start : start + len(digits) * HEX])
        return np.frombuffer(raw, f"S{ID_BYTES}")
    except (pa.ArrowInvalid, binascii.Error) as error:
        message = "an id of a document is not 32 hexadecimal digits; `refinery verify` names the shard that was changed"
        raise ContractError(message) from error


def _compare(folder: Path, parts: int, to: str) -> Comparison:
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        lists = {name: _list_of(stack, to, name) for name in ("added", "removed", SUPERSEDED)}
        for part in range(parts):
            first, second, gone = (_read(_part(folder, name, part)) for name in ("first", "second", SUPERSEDED))
            removed = np.setdiff1d(first, second, assume_unique=True)
            sets = {
                "added": np.setdiff1d(second, first, assume_unique=True),
                "removed": removed,
                SUPERSEDED: np.intersect1d(removed, gone, assume_unique=True),
            }
            counts["common"] += len(first) - len(removed)
            for name, ids in sets.items():
                counts[name] += len(ids)
                _write(lists[name], ids)
    return Comparison(**{name: counts[name] for name in Comparison.__slots__})


def _read(path: Path) -> Ids:
    """Return the ids of a part, sorted and each once."""
    ids: Ids = np.sort(np.fromfile(path, f"S{ID_BYTES}"))
    repeats = np.flatnonzero(ids[1:] == ids[:-1])
    return np.delete(ids, repeats)


def _list_of(stack: contextlib.ExitStack, to: str, name: str) -> TextIO | None:
    if not to:
        return None
    Path(to).mkdir(parents=True, exist_ok=True)
    return stack.enter_context((Path(to) / f"{name}.txt").open("w", encoding="ascii"))


def _write(file: TextIO | None, ids: Ids) -> None:
    """Write ids one a line; numpy leaves out zero bytes at the end of one."""
    if file is not None:
        file.writelines(f"{id_.ljust(ID_BYTES, bytes(1)).hex()}\n" for id_ in ids.tolist())
