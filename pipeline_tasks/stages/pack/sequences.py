"""The packed sequences' columns, and the params of `pack`."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.constraints import OMITTED, Count, Range

PIECE = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("doc_start", pa.int64()),  # first token of the piece, counted in its document
        pa.field("start", pa.int32()),  # first token of the piece, counted in its sequence
        pa.field("length", pa.int32()),
        pa.field("copy", pa.int32()),  # the how-manieth use of the document it is, from 0
    ]
)
"""A stretch of one document in one sequence."""

SEQUENCE = pa.schema(
    [
        pa.field("sequence", pa.int64()),  # 0, 1, 2, ...: through all shards in order, or (packed by shard) within it
        pa.field("tokens", pa.list_(pa.int32())),  # `length` of them, pads included
        pa.field("n_tokens", pa.int64()),  # without the pads
        pa.field("pieces", pa.list_(PIECE)),
    ]
)


def copies_of(batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
    """Return the number of each document's copy: 0 where documents are used once."""
    if "copy" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int32)
    return np.asarray(batch["copy"], np.int32)


PLACED = SEQUENCE.remove(SEQUENCE.get_field_index("tokens"))
"""Sequences whose tokens are not written again: each piece says where they are in its document."""


TAIL = "pack:tail"
"""The reason of a sequence that is dropped because the tokens at the end of its shard do not fill it."""


@dataclass(frozen=True, slots=True)
class Params:
    """Tokens per sequence, how documents are packed into sequences, and the id that pads them.

    `concat` puts documents end to end and splits them at every `length` tokens. `tail` says what becomes of the tokens
    at the end of a shard that fill no sequence. `carry`: they go on in the next shard; sequence k is tokens
    [k * length, (k + 1) * length) of all shards, and only the last sequence of a run is padded with `pad_id`. `pad`:
    each shard is packed by itself, and its last sequence is padded. `drop`: each shard is packed by itself, and a last
    sequence that is not full is rejected as `pack:tail`, so that no sequence has pads.

    `best_fit`: a document is split only if it is longer than a sequence; each shard is packed by itself into as few
    sequences as best-fit decreasing finds, and each of these may end with pads. It has no tails.

    Without `drop` no token is lost or repeated; `n_tokens` of a sequence does not count pads.
    """

    method: Literal["concat", "best_fit"] = "concat"
    length: Annotated[int, Range(1, 1 << 24)] = 2048
    pad_id: Count = 0
    tail: Literal["carry", "pad", "drop"] = field(default="carry", metadata={OMITTED: "carry"})

    def __post_init__(self) -> None:
        if self.method == "best_fit" and self.tail != "carry":
            message = f"tail: {self.tail} is for method: concat; any sequence of best_fit may end with pads: remove it"
            raise ValueError(message)

    @property
    def by_shard(self) -> bool:
        """Whether each shard is packed by itself, so that no sequence has tokens of two."""
        return self.method == "best_fit" or self.tail != "carry"
