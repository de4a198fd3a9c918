"""The exports: their bytes spelled out, tokens read back as they were written, and traced to their records."""

import io
import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError
from pipeline_tasks.publish.exports.formats import FORMATS, export
from pipeline_tasks.publish.exports.lineage import LINEAGE, lineage_batches
from pipeline_tasks.publish.exports.megatron_index import megatron_index_bytes
from pipeline_tasks.publish.exports.sequences import Packing
from pipeline_tasks.publish.exports.source import Source, Tokenizer
from pipeline_tasks.publish.exports.tokens import dtype_for, index_bytes, write_bin
from pipeline_tasks.publish.packed import Counts, DType, Packed, read_packed
from pipeline_tasks.stage import Shards
from pipeline_tasks.stages.pack.sequences import SEQUENCE
from pipeline_tasks.store import storage
from pipeline_tasks.store.shard_file import ShardWriter


def piece(name: str, doc_start: int, start: int, length: int) -> dict[str, object]:
    return {"id": name, "doc_start": doc_start, "start": start, "length": length}


SEQUENCES = pa.RecordBatch.from_pylist(
    [
        {"sequence": 0, "tokens": [1, 2, 9, 3], "n_tokens": 4, "pieces": [piece("a", 0, 0, 3), piece("b", 0, 3, 1)]},
        {"sequence": 1, "tokens": [9, 4, 0, 0], "n_tokens": 2, "pieces": [piece("b", 1, 0, 1), piece("c", 0, 1, 1)]},
    ],
    schema=SEQUENCE,
)
COUNTS = Counts(sequences=2, length=4, tokens=6, pads=2)
DOCUMENTS = pa.RecordBatch.from_pylist(
    [
        {"id": id_, "snapshot": "s", "file": f"{id_}.warc", "offset": rank, "record_id": f"r{rank}", "url": f"u{rank}"}
        for rank, id_ in enumerate(["a", "skipped", "b", "c"])
    ]
)


def written(dtype: DType = "uint16", *batches: pa.RecordBatch) -> tuple[Counts, bytes]:
    out = io.BytesIO()
    return write_bin(iter(batches or [SEQUENCES]), out, dtype), out.getvalue()


def lineage(size: int = 10) -> pa.Table:
    documents = pa.Table.from_batches([DOCUMENTS]).to_batches(max_chunksize=size)
    sequences = [SEQUENCES.slice(at, min(size, 2)) for at in range(0, 2, size)]
    return pa.Table.from_batches(lineage_batches(sequences, documents))


def stored(root: Path, batch: pa.RecordBatch) -> Shards:
    writer = ShardWriter(batch.schema)
    writer.write(batch)
    return (writer.store(str(root), "data"),)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """The sequences and documents above, stored, with a tokenizer."""
    tokenizer = Tokenizer("tokenizers", "tiny", b"{}", 10, 0)
    packed, documents = stored(tmp_path, SEQUENCES), stored(tmp_path, DOCUMENTS)
    return Source(Packing(str(tmp_path), packed, documents, 4, 0, carried=True), tokenizer)


def test_formats_do_not_share_file_names(source: Source, tmp_path: Path) -> None:
    names: list[str] = []
    for name, write in FORMATS.items():
        folder = tmp_path / name
        folder.mkdir()
        write(source, folder)
        names += [file.name for file in folder.iterdir()]
    assert sorted(names) == ["lineage.parquet", "tokenizer.json", "tokens.bin", "tokens.idx", "tokens.json"]


def test_every_format_is_exported_under_the_prefix(source: Source, tmp_path: Path) -> None:
    files = export(source, "publish/ab", {})
    assert [file.path.removeprefix("publish/ab/") for file in files] == [
        "tokens.bin",
        "tokens.idx",
        "tokens.json",
        "lineage.parquet",
        "tokenizer.json",
    ]
    assert [storage.digest_of_file(f"{tmp_path}/{file.path}") for file in files] == [
        (file.bytes, file.digest) for file in files
    ]
    folder = tmp_path / "publish/ab"
    packed = read_packed((folder / "tokens.json").read_bytes(), (folder / "tokens.bin").read_bytes())
    assert (packed.counts, packed.tokenizer) == (COUNTS, source.tokenizer.digest)
    assert (folder / "tokens.idx").read_bytes() == megatron_index_bytes(COUNTS, "uint16")
    assert (folder / "tokenizer.json").read_bytes() == b"{}"
    assert pq.read_table(folder / "lineage.parquet").equals(lineage())


def opened() -> Packed:
    counts, data = written()
    return read_packed(index_bytes(counts, "uint16", "abc"), data)


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


def test_reads_sequences_without_pads(tmp_path: Path) -> None:
    counts, data = written("uint32")
    (tmp_path / "tokens.bin").write_bytes(data)
    with (tmp_path / "tokens.bin").open("rb") as file:
        packed = read_packed(index_bytes(counts, "uint32", "abc"), mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        assert [packed.sequence(at).tolist() for at in range(len(packed))] == [[1, 2, 9, 3], [9, 4]]
        assert (packed.tokenizer, packed.counts, packed.tokens.shape) == ("abc", COUNTS, (2, 4))
        with pytest.raises(IndexError, match=r"sequence 2: .* 2,"):
            packed.sequence(2)
        del packed


def test_nothing_packed_is_read_as_nothing() -> None:
    counts, data = written("uint16", SEQUENCES.slice(0, 0))
    assert len(read_packed(index_bytes(counts, "uint16", "abc"), data)) == 0


@pytest.mark.parametrize(("index", "named"), [(b"{", "column 2"), (b"{}", "'sequences'"), (b"[]", r"\.json .*\.bin")])
def test_another_file_is_not_taken_for_an_index(index: bytes, named: str) -> None:
    with pytest.raises(ContractError, match=named):
        read_packed(index, b"")


def test_data_that_is_cut_short_is_refused() -> None:
    counts, data = written()
    with pytest.raises(ContractError, match=r"14 .* 16"):
        read_packed(index_bytes(counts, "uint16", "abc"), data[:-2])


def test_megatron_index_has_its_layout() -> None:
    body = megatron_index_bytes(COUNTS, "uint16")
    assert struct.unpack_from("<9sQBQQ", body) == (b"MMIDIDX\x00\x00", 1, 8, 2, 3)
    assert struct.unpack_from("<2i2q3q", body, 34) == (4, 4, 0, 8, 0, 1, 2)
    assert len(body) == 34 + 8 + 16 + 24


@pytest.mark.parametrize("size", [1, 10])
def test_lineage_names_the_record_of_every_piece(size: int) -> None:
    table = lineage(size)
    assert table.schema.equals(LINEAGE)
    assert table.select(["sequence", "start", "length", "id", "doc_start", "file", "offset"]).to_pylist() == [
        {"sequence": 0, "start": 0, "length": 3, "id": "a", "doc_start": 0, "file": "a.warc", "offset": 0},
        {"sequence": 0, "start": 3, "length": 1, "id": "b", "doc_start": 0, "file": "b.warc", "offset": 2},
        {"sequence": 1, "start": 0, "length": 1, "id": "b", "doc_start": 1, "file": "b.warc", "offset": 2},
        {"sequence": 1, "start": 1, "length": 1, "id": "c", "doc_start": 0, "file": "c.warc", "offset": 3},
    ]


def test_lineage_has_no_empty_row_group(source: Source, tmp_path: Path) -> None:
    FORMATS["lineage"](source, tmp_path)
    written = pq.ParquetFile(tmp_path / "lineage.parquet").metadata
    assert [written.row_group(rank).num_rows for rank in range(written.num_row_groups)] == [4]


@pytest.mark.parametrize("size", [1, 2, 10])
def test_lineage_of_documents_of_one_id_follows_their_order(size: int) -> None:
    rows = DOCUMENTS.to_pylist()
    documents = pa.RecordBatch.from_pylist([{**rows[rank], "id": id_} for rank, id_ in enumerate("aaba")])
    pieces = [piece("a", 0, 0, 1), piece("a", 0, 1, 1), piece("b", 0, 2, 2)]
    batch = pa.RecordBatch.from_pylist(
        [
            {"sequence": 0, "tokens": [1, 2, 3, 4], "n_tokens": 4, "pieces": pieces},
            {
                "sequence": 1,
                "tokens": [5, 6, 0, 0],
                "n_tokens": 2,
                "pieces": [piece("b", 2, 0, 1), piece("a", 0, 1, 1)],
            },
        ],
        schema=SEQUENCE,
    )
    batches = [batch.slice(at, size) for at in range(0, 2, size)]
    table = pa.Table.from_batches(lineage_batches(batches, pa.Table.from_batches([documents]).to_batches(size)))
    assert table["offset"].to_pylist() == [0, 1, 2, 2, 3]


def test_documents_of_another_run_are_refused() -> None:
    with pytest.raises(ContractError, match="document b"):
        list(lineage_batches([SEQUENCES], [DOCUMENTS.slice(0, 2)]))


def test_locates_every_token() -> None:
    located = [opened().locate(position, lineage()) for position in range(6)]
    assert [(at, row["id"]) for at, row in located] == [(0, "a"), (0, "a"), (0, "a"), (0, "b"), (1, "b"), (1, "c")]
    with pytest.raises(IndexError, match=r"token 6: .* 6,"):
        opened().locate(6, lineage())
    with pytest.raises(ContractError, match=r"token 5 .*lineage\.parquet"):
        opened().locate(5, lineage().slice(0, 3))


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
    packed = read_packed(index_bytes(counts, "uint32", ""), np.frombuffer(data, np.uint8))
    assert [packed.sequence(at).tolist() for at in range(len(packed))] == chunks
    assert counts.tokens == len(tokens)
