"""Exported datasets, read back by what other trainers read them with; `make train-test` runs this file."""

import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

# The package imports its vision datasets, and these torchvision, whose build must fit torch's; none is used here.
sys.modules.setdefault("streaming.vision", types.ModuleType("streaming.vision"))

REASON = "{} is not installed here; `make train-test` runs this file"
datasets, megatron, streaming, torch, webdataset = (
    pytest.importorskip(name, reason=REASON.format(name), exc_type=ImportError)
    for name in ("datasets", "megatron.core.datasets.indexed_dataset", "streaming", "torch", "webdataset")
)
from refinery_exports.testing import exported  # noqa: E402 -- after the skip

from pipeline_tasks.testing.training_dataset import Packed, write_dataset  # noqa: E402 -- after the skip
from tests.own_formats import FORMATS, TEXT_FORMATS  # noqa: E402 -- after the skip

SHARDS = [40, 1, 23, 36]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return write_dataset(tmp_path_factory.mktemp("dataset"), SHARDS)


def expected(packed: Packed) -> list[tuple[list[int], list[int], int]]:
    return [(packed.ids(index), packed.borders(index), packed.tokens(index)) for index in range(sum(SHARDS))]


def plain(rows: Iterator[tuple[Any, Any, Any]]) -> list[tuple[list[int], list[int], int]]:
    return [(np.asarray(ids).tolist(), np.asarray(borders).tolist(), int(tokens)) for ids, borders, tokens in rows]


def test_datasets_reads_parquet(packed: Packed, tmp_path: Path) -> None:
    exported(packed, str(tmp_path / "to"))
    for streamed in (False, True):
        found = datasets.load_dataset(
            "parquet",
            data_files=str(tmp_path / "to/data/*.parquet"),
            split="train",
            cache_dir=str(tmp_path / "cache"),
            streaming=streamed,
        )
        rows = ((row["input_ids"], row["cu_seqlens"], row["n_tokens"]) for row in found)
        assert plain(rows) == expected(packed)
    (lineage, *_) = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "to/lineage/*.parquet"), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert lineage["id"] == f"{0:032x}"


def test_datasets_finds_shards_and_lineage_by_the_head_of_the_card(packed: Packed, tmp_path: Path) -> None:
    from refinery_exports.format import DATA, LINEAGE

    exported(packed, str(tmp_path / "to"))
    head = ["---", "configs:"]
    for name, pattern in (("default", f"{DATA}/{FORMATS['parquet'].pattern}"), ("lineage", f"{LINEAGE}/*.parquet")):
        head += [f"- config_name: {name}", f"  data_files: {pattern}"]
    (tmp_path / "to" / "README.md").write_text("\n".join([*head, "---", ""]))
    found = datasets.load_dataset(str(tmp_path / "to"), split="train", cache_dir=str(tmp_path / "cache"))
    assert [row["input_ids"] for row in found] == [packed.ids(index) for index in range(sum(SHARDS))]
    lineage = datasets.load_dataset(str(tmp_path / "to"), "lineage", split="train", cache_dir=str(tmp_path / "cache"))
    assert sum(lineage["length"]) == sum(packed.tokens(index) for index in range(sum(SHARDS)))


@pytest.mark.parametrize("remote", [False, True])
def test_streaming_reads_mds(remote: bool, packed: Packed, tmp_path: Path) -> None:
    exported(packed, str(tmp_path / "to"), "mds")
    places = {"local": str(tmp_path / "to")}
    if remote:
        places = {"remote": str(tmp_path / "to"), "local": str(tmp_path / "cache")}
    found = streaming.StreamingDataset(**places, batch_size=1, shuffle=False, validate_hash="sha256")
    rows = (found[index] for index in range(len(found)))
    assert plain((row["input_ids"], row["cu_seqlens"], row["n_tokens"]) for row in rows) == expected(packed)
    assert found[0]["input_ids"].dtype == np.uint16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = list(torch.utils.data.DataLoader(found, batch_size=1, collate_fn=lambda items: items[0]["n_tokens"]))
    assert batches == [packed.tokens(index) for index in range(sum(SHARDS))]


def test_the_streaming_library_writes_the_same_samples(packed: Packed, tmp_path: Path) -> None:
    """Its own writer, given the same samples and no limit of size, makes the same shard but for how it is described."""
    exported(packed, str(tmp_path / "to"), "mds", 1 << 20)
    columns = {"cu_seqlens": "ndarray:int32", "input_ids": "ndarray:uint16:16", "n_tokens": "int"}
    with streaming.MDSWriter(out=str(tmp_path / "theirs"), columns=columns, size_limit=None, hashes=["sha256"]) as out:
        for ids, borders, tokens in expected(packed):
            row = {"input_ids": np.array(ids, np.uint16), "cu_seqlens": np.array(borders, np.int32), "n_tokens": tokens}
            out.write(row)
    theirs = (tmp_path / "theirs" / "shard.00000.mds").read_bytes()
    assert (tmp_path / "to" / "data" / "shard-00000.mds").read_bytes() == theirs


def test_webdataset_reads_tars(packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path), "webdataset")
    urls = f"{tmp_path}/data/shard-{{00000..{len(listed['shards']) - 1:05}}}.tar"
    found = list(webdataset.WebDataset(urls, shardshuffle=False).decode())
    rows = ((row["input_ids.npy"], row["json"]["cu_seqlens"], row["json"]["n_tokens"]) for row in found)
    assert plain(rows) == expected(packed)
    assert [row["__key__"] for row in found] == [f"{number:012}" for number in range(sum(SHARDS))]


def test_torch_reads_a_map_of_numpy(packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path), "numpy")
    shards = [path for shard in listed["shards"] for path in shard["files"] if path.endswith(".npy")]
    tensors = [torch.from_numpy(np.memmap(tmp_path / path, "uint16", "c").reshape(-1, 16)) for path in shards]
    assert torch.cat([tensor.to(torch.int64) for tensor in tensors]).tolist() == [ids for ids, *_ in expected(packed)]


def test_megatron_reads_its_files(packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path), "megatron")
    rows: list[list[int]] = []
    for number, shard in enumerate(listed["shards"]):
        found = megatron.IndexedDataset(str(tmp_path / f"data/shard-{number:05}"))
        rows += [found[index].tolist() for index in range(len(found))]
        assert found.document_indices.tolist() == list(range(shard["sequences"] + 1))
    assert rows == [packed.ids(index) for index in range(sum(SHARDS))]


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_datasets_reads_texts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    texts = ['One line.\nAnother, "quoted".', "Grüße aus Köln \u2028 \U0001f600", "\x00\ttabs"]
    columns = {"id": ["a", "b", "c"], "score": [0.5, None, 1e-9], "mixed": [True, None, False], "copies": [1, 2, 3]}
    table = pa.table({**columns, "text": pa.array(texts, pa.large_string())})
    for number, part in enumerate((table.slice(0, 2), table.slice(2))):
        format_ = TEXT_FORMATS[name]
        format_.write(iter([part]), tmp_path / f"data/documents-{number:05}-000.{format_.ending}")
    names: dict[str, Any] = {}
    exec(compile(TEXT_FORMATS[name].reading, "README.md", "exec"), names)
    assert list(names["dataset"]) == table.to_pylist()


@pytest.mark.parametrize("name", FORMATS)
def test_the_program_of_the_card_reads_the_first_sequence(
    name: str, packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(packed, str(tmp_path), name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    names: dict[str, Any] = {}
    exec(compile(FORMATS[name].reading.format(dtype="uint16", length=16), "README.md", "exec"), names)
    assert np.asarray(names["ids"]).tolist() == packed.ids(0)
    if name == "megatron":  # the lineage has its borders
        return
    own = sorted(set(np.asarray(names["borders"]).ravel().tolist()) | {16})
    assert own == packed.borders(0)
