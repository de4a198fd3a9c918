"""A shard is read as it was written, from memory or from a checked file, and never if it was changed."""

import hashlib
import io
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import ContractError, DigestMismatch, NoSpace
from pipeline_tasks.stage import QUICK, Shard
from pipeline_tasks.store.shards import file as shard_file
from pipeline_tasks.store.shards.file import HashingStream, PieceStream, ShardWriter, checked
from pipeline_tasks.store.shards.rows import read_shard
from pipeline_tasks.store.storage import connect
from tests.descriptors import descriptors

TABLE = pa.table(
    {"id": [f"{at:032x}" for at in range(5000)], "text": pa.array(["text " * 9] * 5000, pa.large_string())}
)


def stored(root: Path | str, table: pa.Table = TABLE) -> Shard:
    writer = ShardWriter(table.schema)
    for batch in table.to_batches(700):
        writer.write(batch)
    return writer.store(str(root), "data")


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_a_shard_is_read_as_it_was_written(any_root: str, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", in_memory)
    shard = stored(any_root)
    assert pa.Table.from_batches(list(read_shard(any_root, shard, batch_rows=999))).equals(TABLE)
    assert next(read_shard(any_root, shard, columns=["id"])).schema.names == ["id"]


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_a_changed_shard_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", in_memory)
    shard = stored(tmp_path)
    path = tmp_path / shard.path
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DigestMismatch, match=re.escape(f"{path}: ")):
        next(read_shard(str(tmp_path), shard))


def test_a_copy_without_room_is_no_space(s3_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", 0)
    shard = stored(s3_root)
    monkeypatch.setattr(shard_file.tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115 -- what is under test closes it
    with pytest.raises(NoSpace, match=rf"{re.escape(shard.path)}: .*TMPDIR"):
        next(read_shard(s3_root, shard))


def test_the_bytes_of_a_shard_follow_from_its_rows_and_not_from_its_batches(tmp_path: Path) -> None:
    digests = set()
    for size in (1, 700, 4096, 5000):
        writer = ShardWriter(TABLE.schema.with_metadata({"made": str(size)}))
        for batch in TABLE.slice(0, 4500).to_batches(size):
            writer.write(batch)
            writer.write(batch.slice(0, 0))
        shard = writer.store(str(tmp_path), "data")
        assert shard.rows == 4500
        assert (tmp_path / shard.path).stat().st_size == shard.bytes
        digests.add((shard.path, shard.digest))
    ((path, digest),) = digests
    assert path == f"data/{digest[:32]}.parquet"


def test_a_shard_is_read_in_batches_of_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    shard = stored(tmp_path)
    batches = list(read_shard(str(tmp_path), shard, batch_rows=1000, columns=["text", "none"]))
    assert {tuple(batch.schema.names) for batch in batches} == {("text",)}
    assert [batch.num_rows for batch in batches] == [1000, 1000, 1000, 1000, 96, 904]  # a row group has 4,096 rows


def test_a_shard_without_rows_has_one_batch_that_names_its_columns(tmp_path: Path) -> None:
    shard = ShardWriter(TABLE.schema).store(str(tmp_path), "data")
    (batch,) = read_shard(str(tmp_path), shard)
    assert (shard.rows, batch.num_rows, batch.schema) == (0, 0, TABLE.schema)


def test_hashes_that_are_compressed_quickly_are_read_as_they_were_and_take_no_more_bytes(tmp_path: Path) -> None:
    digests = [hashlib.sha256(str(at).encode()) for at in range(5_000)]
    hashes = pa.table({"id": [digest.hexdigest()[:32] for digest in digests], "bits": [d.digest() for d in digests]})
    usual, quick = (
        stored(tmp_path, hashes.replace_schema_metadata(metadata)) for metadata in ({}, {**QUICK, b"more": b"1"})
    )
    assert quick.bytes < 1.01 * usual.bytes
    assert quick.digest != usual.digest
    assert pa.Table.from_batches(list(read_shard(str(tmp_path), quick))).equals(hashes)
    assert QUICK.keys().isdisjoint(pq.read_schema(tmp_path / quick.path).metadata or {})


def test_a_writer_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file.tempfile, "tempdir", str(tmp_path))
    stored(tmp_path / "root")
    given_up = ShardWriter(TABLE.schema)
    given_up.discard()
    given_up.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_writers_leave_no_open_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file.tempfile, "tempdir", str(tmp_path))
    for _ in range(3):
        stored(tmp_path / "root")
        ShardWriter(TABLE.schema).discard()
    assert descriptors(tmp_path) == []


def test_a_shard_that_was_removed_is_named(any_root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = stored(any_root)
    connect(any_root).delete(shard.path)
    for in_memory in (0, 1 << 30):
        monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", in_memory)
        with pytest.raises(ContractError, match=re.escape(f"{any_root}/{shard.path} ")):
            next(read_shard(any_root, shard))


def test_a_shard_is_in_memory_up_to_its_bound_and_then_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = stored(tmp_path)
    for bound, kind in ((shard.bytes, pa.BufferReader), (shard.bytes - 1, io.BufferedReader)):
        monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", bound)
        with checked(str(tmp_path), shard) as source:
            assert type(source) is kind


def test_a_piece_of_a_stream_ends_where_the_piece_ends() -> None:
    body = bytes(range(100))
    assert PieceStream(io.BytesIO(body), 10, 30).read() == body[10:40]
    piece = PieceStream(io.BytesIO(body), 10, 30)
    assert [piece.read(20), piece.read(20), piece.read(20)] == [body[10:30], body[30:40], b""]
    assert PieceStream(io.BytesIO(body), 90, 30).read() == body[90:]


def test_a_hashing_stream_has_the_digest_of_all_that_it_read_and_of_the_rest() -> None:
    body = bytes(range(256)) * 100
    for first in (0, 10, len(body)):
        stream = HashingStream(io.BytesIO(body))
        assert stream.read(first) == body[:first]
        assert stream.drain() == hashlib.sha256(body).hexdigest()
    assert HashingStream(io.BytesIO(body)).readable()
