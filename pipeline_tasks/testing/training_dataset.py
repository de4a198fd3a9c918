"""Small published training datasets, in the format that `build` publishes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PAD = 0

PIECES = pa.schema(
    [
        ("sequence", pa.int64()),
        ("start", pa.int32()),
        ("length", pa.int32()),
        ("id", pa.string()),
        ("copy", pa.int32()),
        ("doc_start", pa.int64()),
        ("snapshot", pa.string()),
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("record_id", pa.string()),
        ("url", pa.string()),
    ]
)
"""As `publish.exports.shards.PIECES`, which a training machine cannot import."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The folder of a dataset's version, and the pieces of every sequence: the ids of each, in order."""

    folder: Path
    length: int
    sequences: tuple[tuple[tuple[int, ...], ...], ...]

    def ids(self, index: int) -> list[int]:
        """Return the ids of a sequence, with its pads."""
        ids = [token for piece in self.sequences[index] for token in piece]
        return ids + [PAD] * (self.length - len(ids))

    def borders(self, index: int) -> list[int]:
        """Return 0 and the ends of the pieces of a sequence, and its end."""
        borders = [0, *np.cumsum([len(piece) for piece in self.sequences[index]]).tolist()]
        return borders if borders[-1] == self.length else [*borders, self.length]

    def tokens(self, index: int) -> int:
        """Return the ids of a sequence that are no pads."""
        return sum(len(piece) for piece in self.sequences[index])


def write_dataset(
    root: Path, shards: Sequence[int], length: int = 16, dtype: str = "uint16", *, pads: bool = True
) -> Packed:
    """Write a dataset with shards of so many sequences; no two sequences are equal, and some end with pads."""
    folder = root / "publish" / "0123456789abcdef01234567"
    folder.mkdir(parents=True)
    drawn = np.random.default_rng(7)
    sequences = tuple(_pieces(number, length, drawn, pads=pads) for number in range(sum(shards)))
    bounds = np.cumsum([0, *shards]).tolist()
    parts = [sequences[start:stop] for start, stop in pairwise(bounds)]
    entries = [_write_shard(root / "publish" / "shards", part, length, dtype) for part in parts]
    tokens = sum(entry["tokens"] for entry in entries)
    facts = {"format": 1, "name": "corpus", "length": length, "dtype": dtype, "byte_order": "little"}
    counts = {"sequences": len(sequences), "tokens": tokens, "pads": len(sequences) * length - tokens}
    facts |= {"pad_id": PAD, "tokenizer": "ab" * 32, **counts, "shards": entries}
    (folder / "dataset.json").write_text(json.dumps(facts))
    return Packed(folder, length, sequences)


def _pieces(number: int, length: int, drawn: np.random.Generator, *, pads: bool) -> tuple[tuple[int, ...], ...]:
    """Return pieces of ids, of which one may be the id of pads: the first id and the second name the sequence."""
    used = length - int(drawn.integers(0, length // 3)) if pads and number % 3 == 0 else length
    ids = [number % 60_000 + 1, number // 60_000 + 1, *drawn.integers(0, 50_000, used - 2).tolist()]
    cuts = sorted(set(drawn.integers(1, used, 3).tolist()))
    return tuple(tuple(ids[start:stop]) for start, stop in zip([0, *cuts], [*cuts, used], strict=True))


def _write_shard(folder: Path, sequences: Sequence[Sequence[Sequence[int]]], length: int, dtype: str) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    ids = np.full((len(sequences), length), PAD, np.dtype(dtype).newbyteorder("<"))
    ends, rows = [], []
    for number, pieces in enumerate(sequences):
        at = 0
        for piece in pieces:
            ids[number, at : at + len(piece)] = piece
            place = ("2026-11-20", "a, b.warc.gz", number, f"<urn:{number}>", "https://example.org/")
            rows.append((number, at, len(piece), f"{number:032x}", 0, 0, *place))
            at += len(piece)
            ends.append(number * length + at)
        if at < length:
            ends.append((number + 1) * length)
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [[]] * len(PIECES)
    lineage = pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, PIECES.types, strict=True)], schema=PIECES
    )
    sink = pa.BufferOutputStream()
    pq.write_table(lineage, sink)
    bodies = {"bin": ids.tobytes(), "ends": np.array(ends, "<i8").tobytes(), "lineage": sink.getvalue().to_pybytes()}
    files = {name: _write(folder, name, body) for name, body in bodies.items()}
    return {"sequences": len(sequences), "tokens": sum(row[2] for row in rows), **files}


def _write(folder: Path, name: str, body: bytes) -> dict[str, object]:
    digest = hashlib.sha256(body).hexdigest()
    file = f"{digest[:32]}.{'lineage.parquet' if name == 'lineage' else name}"
    (folder / file).write_bytes(body)
    return {"path": f"../shards/{file}", "bytes": len(body), "sha256": digest}
