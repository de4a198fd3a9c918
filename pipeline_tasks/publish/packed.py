"""The published form of packed sequences: token files, their index, the lineage beside them, and a reader.

`.bin` holds the tokens of all sequences end to end, little-endian, `uint16` if every id of the vocabulary
fits and `uint32` if not; sequence i is tokens [i * length, (i + 1) * length). The JSON index says
the type, the length, the counts and the tokenizer's digest; `.idx` says the same in Megatron's
layout, so that Megatron-LM, NeMo and what else reads it can train from the same `.bin`.
The lineage names the document, and the landed record, behind every stretch of tokens.
"""

import json
import mmap
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import ContractError

DType = Literal["uint16", "uint32"]

Data = bytes | memoryview | mmap.mmap | npt.NDArray[Any]
"""The bytes of a `.bin`, however they were opened."""

LINEAGE = pa.schema(
    [
        pa.field("sequence", pa.int64()),
        pa.field("start", pa.int32()),  # first token of the piece, counted in its sequence
        pa.field("length", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("doc_start", pa.int64()),  # first token of the piece, counted in its document
        pa.field("snapshot", pa.string()),
        pa.field("file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("record_id", pa.string()),
        pa.field("url", pa.string()),
    ]
)
"""One row per piece, by sequence and start; the last five columns locate the landed record."""

_ORIGIN = ("snapshot", "file", "offset", "record_id", "url")

_MEGATRON_MAGIC = b"MMIDIDX\x00\x00"
_MEGATRON_CODES = {"uint16": 8, "uint32": 4}
"""Megatron-LM `indexed_dataset.DType`: 8 is uint16, 4 is int32, which ids below 2**31 share with uint32."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a `.bin` holds; `tokens` leaves the pads of the last sequence out."""

    sequences: int
    length: int
    tokens: int
    pads: int


def dtype_for(vocab_size: int) -> DType:
    """Return the smallest type that holds every id below `vocab_size`."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


# --- Writing --------------------------------------------------------------------------------------------------


def write_bin(sequences: Iterable[pa.RecordBatch], out: BinaryIO, dtype: DType) -> Counts:
    """Write the tokens of `sequences` (as `pack` leaves them, in order) to `out`; return what was written.

    ContractError if sequences differ in length or an id does not fit `dtype`: a cut-off id would be another word.
    """
    rows = tokens = length = 0
    for batch in sequences:
        if not batch.num_rows:
            continue
        values = batch["tokens"].flatten().to_numpy()
        length = length or len(batch["tokens"][0])
        _check_batch(batch, values, length, dtype)
        out.write(values.astype(np.dtype(dtype).newbyteorder("<")).tobytes())
        rows += batch.num_rows
        tokens += int(batch["n_tokens"].to_numpy().sum())
    return Counts(rows, length, tokens, rows * length - tokens)


def _check_batch(batch: pa.RecordBatch, values: npt.NDArray[np.int32], length: int, dtype: DType) -> None:
    lengths = np.diff(batch["tokens"].offsets.to_numpy())
    first = batch["sequence"][0].as_py()
    if (lengths != length).any():
        message = f"sequences from {first} on are not all {length} tokens long; pack them again with one length"
        raise ContractError(message)
    if len(values) and (values.min() < 0 or values.max() > np.iinfo(dtype).max):
        message = f"sequences from {first} on hold ids from {values.min()} to {values.max()}, which {dtype} cannot hold"
        raise ContractError(message)


def index_bytes(counts: Counts, dtype: DType, tokenizer: str) -> bytes:
    """Return the JSON index of a `.bin`; `tokenizer` is the digest of the vocabulary's definition."""
    facts = {**asdict(counts), "byte_order": "little", "dtype": dtype, "format": 1, "tokenizer": tokenizer}
    return json.dumps(facts, sort_keys=True, indent=1).encode() + b"\n"


def megatron_index_bytes(counts: Counts, dtype: DType) -> bytes:
    """Return the `.idx` that Megatron-LM's `IndexedDataset` wants beside a `.bin`: each sequence is a document.

    Magic, version 1, type code, counts; then int32 lengths, int64 byte offsets, int64 document borders
    (`megatron/core/datasets/indexed_dataset.py`, `_IndexWriter`).
    """
    size = np.dtype(dtype).itemsize * counts.length
    header = struct.pack("<QBQQ", 1, _MEGATRON_CODES[dtype], counts.sequences, counts.sequences + 1)
    lengths = np.full(counts.sequences, counts.length, "<i4")
    offsets = np.arange(counts.sequences, dtype="<i8") * size
    borders = np.arange(counts.sequences + 1, dtype="<i8")
    return b"".join([_MEGATRON_MAGIC, header, lengths.tobytes(), offsets.tobytes(), borders.tobytes()])


def lineage_batches(
    sequences: Iterable[pa.RecordBatch], documents: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield `LINEAGE` rows for `sequences`, with origins from the `documents` that were packed, both in order.

    Both are read once, side by side, so memory does not grow with the data: pieces come in the order
    of the documents. ContractError if they do not, which means that the two do not belong together.
    """
    walk = _Walk(documents)
    yield pa.RecordBatch.from_pylist([], schema=LINEAGE)
    for batch in sequences:
        yield _lineage(batch, walk)


def _lineage(batch: pa.RecordBatch, walk: "_Walk") -> pa.RecordBatch:
    pieces = batch["pieces"].flatten()
    counts = np.diff(batch["pieces"].offsets.to_numpy())
    ids = pieces.field("id")
    columns = {
        "sequence": pa.array(np.repeat(batch["sequence"].to_numpy(), counts)),
        "start": pieces.field("start"),
        "length": pieces.field("length"),
        "id": ids,
        "doc_start": pieces.field("doc_start"),
        **walk.origins(ids.to_pylist(), pieces.field("doc_start").to_pylist()),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in LINEAGE.names], schema=LINEAGE)


class _Walk:
    """Follows documents in order, and gives the origins of pieces that come in the same order."""

    def __init__(self, documents: Iterable[pa.RecordBatch]) -> None:
        self._documents = self._each(documents)
        self._id: str | None = None
        self._origin: dict[str, Any] = {}

    def _each(self, documents: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, dict[str, Any]]]:
        for batch in documents:
            for row in batch.select(["id", *_ORIGIN]).to_pylist():
                yield row["id"], row

    def origins(self, ids: list[str], doc_starts: list[int]) -> dict[str, pa.Array]:
        found = [self._to(one, start) for one, start in zip(ids, doc_starts, strict=True)]
        return {name: pa.array([one[name] for one in found], LINEAGE.field(name).type) for name in _ORIGIN}

    def _to(self, wanted: str, doc_start: int) -> dict[str, Any]:
        if self._id == wanted and doc_start:
            return self._origin
        for one, origin in self._documents:
            if one == wanted:
                self._id, self._origin = one, origin
                return origin
        message = f"document {wanted} is not among the documents in the order of packing; give those that pack read"
        raise ContractError(message)


# --- Reading --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Packed:
    """Sequences to train on: `tokens` is (sequences, length), a view of the `.bin`'s bytes and never a copy."""

    counts: Counts
    tokens: npt.NDArray[np.unsignedinteger[Any]]
    tokenizer: str

    def __len__(self) -> int:
        """Return how many sequences there are."""
        return self.counts.sequences

    def sequence(self, at: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return sequence `at` without pads: `length` ids, fewer only for the last; IndexError past it."""
        if not 0 <= at < len(self):
            message = f"sequence {at}: there are {len(self)}, numbered from 0"
            raise IndexError(message)
        row: npt.NDArray[np.unsignedinteger[Any]] = self.tokens[at]
        return row[: self.counts.length - self.counts.pads] if at == len(self) - 1 else row

    def locate(self, position: int, lineage: pa.Table) -> tuple[int, dict[str, Any]]:
        """Return the sequence, and the `LINEAGE` row of the piece, that hold token `position` of the whole stream."""
        if not 0 <= position < self.counts.tokens:
            message = f"token {position}: there are {self.counts.tokens}, numbered from 0"
            raise IndexError(message)
        sequence, start = divmod(position, self.counts.length)
        numbers = lineage["sequence"].to_numpy() * self.counts.length + lineage["start"].to_numpy()
        at = int(np.searchsorted(numbers, position, side="right")) - 1
        row: dict[str, Any] = lineage.slice(max(at, 0), 1).to_pylist()[0]
        if row["sequence"] != sequence or not row["start"] <= start < row["start"] + row["length"]:
            message = f"token {position} has no piece in this lineage; give the lineage published with this data"
            raise ContractError(message)
        return sequence, row


def read_packed(index: bytes, data: Data) -> Packed:
    """Open a `.bin`, given as bytes, a memory map or an array, by its JSON index.

    ContractError if the index is not one, or the data has another size than it says.
    """
    try:
        facts = json.loads(index)
        counts = Counts(*(facts[name] for name in ("sequences", "length", "tokens", "pads")))
        dtype, tokenizer = np.dtype(facts["dtype"]).newbyteorder("<"), str(facts["tokenizer"])
    except (ValueError, TypeError, KeyError) as error:
        message = f"this is not an index of packed tokens ({error!r}); give the .json that lies beside the .bin"
        raise ContractError(message) from error
    size, wanted = np.frombuffer(data, np.uint8).size, counts.sequences * counts.length * dtype.itemsize
    if size != wanted:
        message = (
            f"the data has {size} bytes and its index says {wanted}; it is cut short or another one: fetch it again"
        )
        raise ContractError(message)
    return Packed(counts, np.frombuffer(data, dtype).reshape(counts.sequences, counts.length), tokenizer)
