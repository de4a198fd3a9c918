"""The bytes of exported tokens: spelled out, read back as they were written, and refused where they would be wrong."""

import io
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.tokens.megatron import index_bytes

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.tokens import Counts, DType, dtype_for, write_bin
from pipeline_tasks.stages.pack.sequences import SEQUENCE


def piece(name: str, doc_start: int, start: int, length: int) -> dict[str, object]:
    return {"id": name, "doc_start": doc_start, "start": start, "length": length}


SEQUENCES = pa.RecordBatch.from_pylist(
    [
        {"sequence": 0, "tokens": [1, 2, 9, 3], "n_tokens": 4, "pieces": [piece("a", 0, 0, 3), piece("b", 0, 3, 1)]},
        {"sequence": 1, "tokens": [9, 4, 0, 0], "n_tokens": 2, "pieces": [piece("b", 1, 0, 1), piece("c", 0, 1, 1)]},
    ],
    schema=SEQUENCE,
)
COUNTS = Counts(sequences=2, length=4, tokens=6)


def written(dtype: DType = "uint16", *batches: pa.RecordBatch) -> tuple[Counts, bytes]:
    out = io.BytesIO()
    return write_bin(iter(batches or [SEQUENCES]), out, dtype), out.getvalue()


def test_bytes_are_little_endian_sequences_end_to_end() -> None:
    assert written("uint16") == (COUNTS, struct.pack("<8H", 1, 2, 9, 3, 9, 4, 0, 0))
    assert written("uint32") == (COUNTS, struct.pack("<8I", 1, 2, 9, 3, 9, 4, 0, 0))


def test_batches_do_not_matter_and_slices_are_respected() -> None:
    empty = SEQUENCES.slice(0, 0)
    assert written("uint16", empty, SEQUENCES.slice(0, 1), empty, SEQUENCES.slice(1, 1)) == written("uint16")


def test_the_type_follows_from_the_vocabulary() -> None:
    assert [dtype_for(size) for size in (256, 65536, 65537)] == ["uint16", "uint16", "uint32"]


def sequences_of(*tokens: list[int]) -> pa.RecordBatch:
    rows = [{"sequence": at, "tokens": ids, "n_tokens": len(ids), "pieces": []} for at, ids in enumerate(tokens)]
    return pa.RecordBatch.from_pylist(rows, schema=SEQUENCE)


@pytest.mark.parametrize(
    ("batch", "named"),
    [
        (sequences_of([1, 65536]), "0 .*65536.*uint16"),
        (sequences_of([-1, 1]), "0 .*-1 .*uint16"),
        (sequences_of([1, 2], [3]), "0 .* 2 "),
    ],
)
def test_what_would_be_written_wrong_is_refused(batch: pa.RecordBatch, named: str) -> None:
    with pytest.raises(ContractError, match=named):
        written("uint16", batch)


def test_megatron_index_has_its_layout() -> None:
    body = index_bytes(2, 4, "uint16")
    assert struct.unpack_from("<9sQBQQ", body) == (b"MMIDIDX\x00\x00", 1, 8, 2, 3)
    assert struct.unpack_from("<2i2q3q", body, 34) == (4, 4, 0, 8, 0, 1, 2)
    assert len(body) == 34 + 8 + 16 + 24


@given(
    tokens=st.lists(st.integers(0, 2**31 - 1), max_size=60), length=st.integers(1, 7), batch=st.integers(1, 5)
)  # fmt: skip
def test_what_is_written_is_read(tokens: list[int], length: int, batch: int) -> None:
    chunks = [tokens[at : at + length] for at in range(0, len(tokens), length)]
    rows: list[dict[str, Any]] = [
        {"sequence": at, "tokens": chunk + [0] * (length - len(chunk)), "n_tokens": len(chunk), "pieces": []}
        for at, chunk in enumerate(chunks)
    ]
    table = pa.Table.from_pylist(rows, schema=SEQUENCE)
    counts, data = written("uint32", *table.to_batches(max_chunksize=batch), SEQUENCES.slice(0, 0))
    ids = np.frombuffer(data, "<u4").tolist()
    assert ids == tokens + [0] * (len(chunks) * length - len(tokens))
    assert (counts.sequences, counts.tokens) == (len(chunks), len(tokens))
