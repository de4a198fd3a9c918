"""A shard is read as it was written, whole or by way of a checked copy, and never if it was changed."""

from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.errors import DigestMismatch, NoSpace
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import shard_file
from pipeline_tasks.store.shard_file import ShardWriter, read_shard

TABLE = pa.table(
    {"id": [f"{at:032x}" for at in range(5000)], "text": pa.array(["text " * 9] * 5000, pa.large_string())}
)


def stored(root: Path) -> Shard:
    writer = ShardWriter(TABLE.schema)
    for batch in TABLE.to_batches(700):
        writer.write(batch)
    return writer.store(str(root), "data")


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_a_shard_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", in_memory)
    shard = stored(tmp_path)
    assert pa.Table.from_batches(list(read_shard(str(tmp_path), shard, batch_rows=999))).equals(TABLE)
    assert next(read_shard(str(tmp_path), shard, columns=["id"])).schema.names == ["id"]


@pytest.mark.parametrize("in_memory", [0, 1 << 30])
def test_a_changed_shard_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", in_memory)
    shard = stored(tmp_path)
    path = tmp_path / shard.path
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DigestMismatch, match="was changed or damaged"):
        next(read_shard(str(tmp_path), shard))


def test_a_copy_without_room_is_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_file, "IN_MEMORY_BYTES", 0)
    shard = stored(tmp_path)
    monkeypatch.setattr(shard_file.tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("wb", buffering=0))  # noqa: SIM115 -- what is under test closes it
    with pytest.raises(NoSpace, match="set TMPDIR"):
        next(read_shard(str(tmp_path), shard))
