"""Training datasets in the formats of other trainers: for any shard size and number of processes they have every
sequence once, with its borders and lineage; damage, and places that are taken, are refused."""

import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import struct
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refinery_exports.exporting import Export, processes, run
from refinery_exports.stretch import open_dataset, read_stretch
from refinery_exports.testing import PREFIX, SHARDS, check_export, dataset_of, exported, files
from refinery_exports.tokens import mds, parquet, token_shards
from refinery_exports.tokens.token_shards import Span, cuts, shards_of_tokens

from pipeline_tasks.engines.each import HERE, On
from pipeline_tasks.errors import ContractError, JobLost, RecipeError, RowsVanished
from pipeline_tasks.publish.exports.shards import PIECES
from pipeline_tasks.store import storage
from pipeline_tasks.testing import training_dataset
from pipeline_tasks.testing.training_dataset import Packed, write_dataset
from tests.own_formats import FORMATS


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    return write_dataset(tmp_path_factory.mktemp("dataset"), SHARDS)


def pieces(packed: Packed, index: int) -> list[tuple[int, int, str]]:
    """Start, length and id of the pieces of a sequence; the ids of a shard count from 0."""
    lengths = [len(piece) for piece in packed.sequences[index]]
    starts = np.cumsum([0, *lengths[:-1]]).tolist()
    number = index - max(first for first in np.cumsum([0, *SHARDS]).tolist() if first <= index)
    return [(start, length, f"{number:032x}") for start, length in zip(starts, lengths, strict=True)]


def lineage_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [table[name].to_pylist() for name in ("sequence", "start", "length", "id")]
    return list(zip(*columns, strict=True))


# --- Stretches --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 99), st.integers(1, 100))
def test_a_stretch_has_its_sequences_borders_and_lineage(packed: Packed, first: int, size: int) -> None:
    stop = min(first + size, 100)
    stretch = read_stretch(dataset_of(packed), first, stop)
    assert stretch.ids.tolist() == [packed.ids(index) for index in range(first, stop)]
    borders = np.split(stretch.borders, stretch.offsets[1:-1])
    assert [own.tolist() for own in borders] == [packed.borders(index) for index in range(first, stop)]
    assert stretch.tokens.tolist() == [packed.tokens(index) for index in range(first, stop)]
    rows = [(index - first, *piece) for index in range(first, stop) for piece in pieces(packed, index)]
    assert lineage_rows(stretch.lineage) == rows
    assert stretch.lineage.schema == PIECES


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**9))
def test_shards_are_even_and_no_larger_than_is_asked(sequences: int, row_bytes: int, shard_bytes: int) -> None:
    bounds = list(cuts(sequences, row_bytes, max(shard_bytes, sequences * row_bytes // 1000)))
    sizes = np.diff(bounds)
    assert bounds[0] == 0
    assert bounds[-1] == sequences
    assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 1
    assert sizes.max() == 1 or sizes.max() * row_bytes <= max(shard_bytes, sequences * row_bytes // 1000)


# --- Every format -----------------------------------------------------------------------------------------------------


def read_parquet(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    del packed
    for path in sorted((folder / "data").iterdir()):
        for row in pq.read_table(path).to_pylist():
            assert row["n_tokens"] in row["cu_seqlens"]
            yield row["input_ids"], row["cu_seqlens"]


def read_mds(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    """Read as `MDSReader` does: offsets by sample, sizes of variable columns first."""
    for shard in json.loads((folder / "index.json").read_bytes())["shards"]:
        body = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(body) == shard["raw_data"]["bytes"]
        assert hashlib.sha256(body).hexdigest() == shard["raw_data"]["hashes"]["sha256"]
        (samples,) = np.frombuffer(body, "<u4", 1)
        assert samples == shard["samples"]
        offsets = np.frombuffer(body, "<u4", samples + 1, 4)
        config = json.loads(body[4 * (samples + 2) : offsets[0]])
        assert config == {name: shard[name] for name in config}
        dtype = shard["column_encodings"][1].split(":")[1]
        for start, stop in pairwise(offsets.tolist()):
            size = int(np.frombuffer(body, "<u4", 1, start)[0])
            kind = {4: ("<u1", 6), 5: ("<u2", 7)}[body[start + 4]]
            borders = int(np.frombuffer(body, kind[0], 1, start + 5)[0])
            at = start + kind[1]
            assert at + borders * 4 == start + 4 + size
            ids = np.frombuffer(body, dtype, packed.length, start + 4 + size).tolist()
            own = np.frombuffer(body, "<i4", borders, at).tolist()
            assert int.from_bytes(body[stop - 8 : stop], "little") in own
            yield ids, own


def read_webdataset(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    count = 0
    for path in sorted((folder / "data").iterdir()):
        with tarfile.open(path) as archive:
            members = archive.getmembers()
            assert {(member.mtime, member.uid, member.uname) for member in members} == {(0, 0, "")}
            for ids, facts in zip(members[::2], members[1::2], strict=True):
                assert (ids.name, facts.name) == (f"{count:012}.input_ids.npy", f"{count:012}.json")
                own = json.loads(archive.extractfile(facts).read())
                assert own["n_tokens"] == packed.tokens(count)
                yield np.load(io.BytesIO(archive.extractfile(ids).read())).tolist(), own["cu_seqlens"]
                count += 1


def read_numpy(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    dtype = dataset_of(packed).index.dtype
    for path in sorted((folder / "data").glob("*.npy")):
        ids = np.memmap(path, dtype, "r").reshape(-1, packed.length)
        with gzip.open(path.with_suffix("").with_suffix(".csv.gz"), "rt") as stream:
            lines = list(csv.reader(stream))
        assert path.with_suffix(".csv.gz").read_bytes()[4:8] == bytes(4), "no time"
        assert {(src, len(id_)) for _, _, id_, src, _ in lines} == {("2026-11-20/a, b.warc.gz", 32)}
        for row, sequence in enumerate(ids):
            first = row * packed.length
            spans = [
                (int(start) - first, int(end) - first) for start, end, *_ in lines if int(start) // packed.length == row
            ]
            assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])]
            yield sequence.tolist(), list(dict.fromkeys([0, *(end for _, end in spans), packed.length]))


def read_megatron(folder: Path, packed: Packed) -> Iterator[tuple[list[int], list[int]]]:
    """Read as Megatron-LM's documentation has the layout (`megatron/core/datasets/readme.md`); borders are the lineage's."""
    for path in sorted((folder / "data").glob("*.idx")):
        body, ids = path.read_bytes(), path.with_suffix(".bin").read_bytes()
        magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", body)
        assert (magic, version) == (b"MMIDIDX\0\0", 1)
        dtype = {8: np.uint16, 4: np.int32}[code]
        lengths = np.frombuffer(body, "<i4", sequences, 34)
        pointers = np.frombuffer(body, "<i8", sequences, 34 + 4 * sequences)
        borders = np.frombuffer(body, "<i8", documents, 34 + 12 * sequences)
        assert len(body) == 34 + 12 * sequences + 8 * documents
        assert borders.tolist() == list(range(sequences + 1))
        pieces_ = pq.read_table(folder / "lineage" / f"{path.stem}.parquet")
        for number, (length, pointer) in enumerate(zip(lengths.tolist(), pointers.tolist(), strict=True)):
            own = pieces_.filter(pc.equal(pieces_["sequence"], number))
            ends = pc.add(own["start"], own["length"]).to_pylist()
            yield np.frombuffer(ids, dtype, length, pointer).tolist(), list(dict.fromkeys([0, *ends, packed.length]))


READERS = {
    "parquet": read_parquet,
    "mds": read_mds,
    "webdataset": read_webdataset,
    "numpy": read_numpy,
    "megatron": read_megatron,
}


@pytest.mark.parametrize("name", FORMATS)
def test_it_keeps_what_every_format_promises(name: str) -> None:
    check_export(name, READERS[name])


def type_in(folder: Path, name: str) -> str:
    """The type of ids that the files of an export state."""
    path = min((folder / "data").iterdir())
    if name == "parquet":
        return str(pq.read_schema(path).field("input_ids").type.value_type)
    if name == "mds":
        shard = json.loads((folder / "index.json").read_text())["shards"][0]
        return str(shard["column_encodings"][1].split(":")[1])
    if name == "webdataset":
        with tarfile.open(path) as archive:
            member = next(member for member in archive if member.name.endswith(".npy"))
            return str(np.load(io.BytesIO(archive.extractfile(member).read())).dtype)  # type: ignore[union-attr]
    code = min((folder / "data").glob("*.idx")).read_bytes()[17]
    return {8: "uint16", 4: "int32"}[code]


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "numpy"])  # bytes without a type
def test_the_type_of_ids_on_the_card_is_that_of_the_files(name: str, dtype: str, tmp_path: Path) -> None:
    exported(write_dataset(tmp_path, SHARDS, dtype=dtype), str(tmp_path / "to"), name)
    assert FORMATS[name].dtypes.get(dtype, dtype) == type_in(tmp_path / "to", name)


@pytest.mark.parametrize("name", FORMATS)
def test_the_bytes_are_the_same_for_any_number_of_processes(name: str, packed: Packed, tmp_path: Path) -> None:
    exported(packed, str(tmp_path / "alone"), name)
    exported(packed, str(tmp_path / "together"), name, workers=3)
    assert files(tmp_path / "alone") == files(tmp_path / "together")


@pytest.mark.parametrize("name", FORMATS)
def test_every_shard_has_its_lineage_and_every_file_is_listed(name: str, packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path), name)
    lineages = sorted((tmp_path / "lineage").iterdir())
    assert [path.stem for path in lineages] == sorted(
        {path.name.split(".")[0] for path in (tmp_path / "data").iterdir()}
    )
    assert len(lineages) == len(listed["shards"]) > 2
    first = 0
    for path, shard in zip(lineages, listed["shards"], strict=True):
        table = pq.read_table(path)
        rows = [
            (index - first, *piece)
            for index in range(first, first + shard["sequences"])
            for piece in pieces(packed, index)
        ]
        assert lineage_rows(table) == rows
        assert f"lineage/{path.name}" in shard["files"]
        first += shard["sequences"]
    assert first == 100
    there = files(tmp_path)
    listing = json.loads(there.pop("files.json"))
    assert listing.pop("sha256")
    assert listing == listed
    assert {file["path"]: (file["bytes"], file["sha256"]) for file in listing["files"]} == {
        path: (len(body), hashlib.sha256(body).hexdigest()) for path, body in there.items()
    }


def test_borders_of_many_pieces_fit_their_sample_of_mds(tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [2], length=600, pads=False)
    ones = tuple((token,) for piece in packed.sequences[0] for token in piece)
    shutil.rmtree(tmp_path / "publish")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_dataset, "_pieces", lambda *_, **__: ones)
        packed = write_dataset(tmp_path, [2], length=600)
    exported(packed, str(tmp_path / "to"), "mds", 1 << 20)
    assert [borders for _, borders in read_mds(tmp_path / "to", packed)] == [list(range(601))] * 2


def test_an_mds_shard_is_not_larger_than_its_offsets_count(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mds, "_MOST_BYTES", 1000)
    with pytest.raises(RecipeError, match=r"shard-00000\.mds .*--shard-size"):
        exported(packed, str(tmp_path), "mds")


def test_rows_of_parquet_are_grouped(packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 16 * 4 * 7)
    exported(packed, str(tmp_path), shard_bytes=1 << 20)
    metadata = pq.ParquetFile(tmp_path / "data/shard-00000.parquet").metadata
    assert [metadata.row_group(rank).num_rows for rank in range(metadata.num_row_groups)] == [7] * 14 + [2]
    assert [ids for ids, _ in read_parquet(tmp_path, packed)] == [packed.ids(index) for index in range(100)]


# --- The place --------------------------------------------------------------------------------------------------------


def test_an_export_to_any_store_goes_on_and_is_found_again(any_root: str, packed: Packed) -> None:
    store = storage.connect(any_root)
    listed = exported(packed, any_root)
    before = {entry.path: entry.modified for entry in store.list("")}
    assert exported(packed, any_root) == listed
    assert {entry.path: entry.modified for entry in store.list("")} == before
    store.delete("files.json")
    store.delete("data/shard-00001.parquet")
    assert exported(packed, any_root) == listed
    assert {entry.path for entry in store.list("")} == before.keys()


def test_a_dataset_is_read_from_any_store(any_root: str, packed: Packed, tmp_path: Path) -> None:
    there = packed.folder.parent.parent
    for path in (path for path in there.rglob("*") if path.is_file()):
        storage.put_file(any_root, str(path.relative_to(there)), path)
    dataset = open_dataset(any_root, PREFIX)
    expected = {"sequences": 100}
    run(Export({}, shards_of_tokens(dataset, "parquet", 700), lambda _: {}, expected), str(tmp_path / "to"), HERE)
    exported(packed, str(tmp_path / "same"))
    assert files(tmp_path / "to" / "data") == files(tmp_path / "same" / "data")
    assert files(tmp_path / "to" / "lineage") == files(tmp_path / "same" / "lineage")


def killed(write: Callable[[Span, Path], Mapping[str, int]], shard: Span, folder: Path) -> Mapping[str, int]:
    """Write a shard, but for the last one, whose process is killed, as by a kernel without memory."""
    if shard[1][1] == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(shard, folder)


def test_a_process_that_is_killed_is_named_and_the_export_goes_on(packed: Packed, tmp_path: Path) -> None:
    dataset = dataset_of(packed)
    facts = {"export": "parquet", "dataset": dataset.index.digest, "shard_bytes": 700}
    shards = shards_of_tokens(dataset, "parquet", 700)
    dying = replace(shards, write=partial(killed, shards.write))
    with pytest.raises(JobLost, match=r"fewer workers, or smaller shards"):
        run(Export(facts, dying, lambda _: {}, {}), str(tmp_path), On(workers=processes(2)))
    assert not (tmp_path / "files.json").exists()
    assert exported(packed, str(tmp_path))["sequences"] == 100


def test_a_lost_file_of_a_complete_export_is_written_again(packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path))
    before = files(tmp_path)
    (tmp_path / "data/shard-00002.parquet").unlink()
    assert exported(packed, str(tmp_path)) == listed
    assert files(tmp_path) == before


def test_a_list_of_files_that_was_changed_is_named(packed: Packed, tmp_path: Path) -> None:
    listed = exported(packed, str(tmp_path))
    body = (tmp_path / "files.json").read_bytes()
    (tmp_path / "files.json").write_bytes(body.replace(b'"tokens":', b'"token5":', 1))
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path / 'files.json'} ")):
        exported(packed, str(tmp_path))
    (tmp_path / "files.json").unlink()
    assert exported(packed, str(tmp_path)) == listed


def test_a_place_with_other_files_is_refused_and_left_as_it_is(packed: Packed, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path} ") + r".*notes/mine\.txt"):
        exported(packed, str(tmp_path))
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path / 'notes' / 'mine.txt'} ")):
        exported(packed, str(tmp_path / "notes" / "mine.txt"))
    assert files(tmp_path) == {"notes/mine.txt": b"mine"}


def test_a_place_of_another_export_is_refused(packed: Packed, tmp_path: Path) -> None:
    exported(packed, str(tmp_path))
    before = files(tmp_path)
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path} ") + r".*shard_bytes 700"):
        exported(packed, str(tmp_path), shard_bytes=800)
    (tmp_path / "export.json").write_text("[")
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path} ") + r".*export\.json"):
        exported(packed, str(tmp_path))
    assert files(tmp_path) == before | {"export.json": b"["}


# --- Damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "workers"),
    [
        ("bin", 1),
        ("ends", 1),
        ("lineage.parquet", 1),
        ("bin", 2),
        pytest.param("ends", 2, marks=pytest.mark.nightly),
        pytest.param("lineage.parquet", 2, marks=pytest.mark.nightly),
    ],
)
def test_a_changed_byte_of_any_shard_is_found_and_nothing_is_listed(suffix: str, workers: int, tmp_path: Path) -> None:
    packed = write_dataset(tmp_path, [20, 30])
    paths = sorted((tmp_path / "publish" / "shards").glob(f"*.{suffix}"))
    assert len(paths) == 2
    for number, path in enumerate(paths):
        body = path.read_bytes()
        path.write_bytes(body[:-9] + bytes([body[-9] ^ 1]) + body[-8:])
        with pytest.raises(ContractError, match=re.escape(str(path))):
            exported(packed, str(tmp_path / f"to{number}"), shard_bytes=200, workers=workers)
        assert not (tmp_path / f"to{number}" / "files.json").exists()
        path.unlink()
        with pytest.raises(ContractError, match=re.escape(str(path))):
            exported(packed, str(tmp_path / f"gone{number}"), shard_bytes=1 << 20)
        path.write_bytes(body)


def test_ends_that_are_not_those_of_the_lineage_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = training_dataset._write
    moved = {"ends": lambda body: (np.frombuffer(body, "<i8") + (np.arange(len(body) // 8) == 0)).tobytes()}
    monkeypatch.setattr(
        training_dataset, "_write", lambda folder, name, body: write(folder, name, moved.get(name, bytes)(body))
    )
    packed = write_dataset(tmp_path, [20])
    with pytest.raises(ContractError, match=r"\.ends: .* 0 to 19 .*lineage"):
        exported(packed, str(tmp_path / "to"), shard_bytes=1 << 20)


def test_sequences_that_are_lost_are_counted(packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_shards, "cuts", lambda *_: [0, 50, 99])
    with pytest.raises(RowsVanished, match=r"99 .*100"):
        exported(packed, str(tmp_path))
    assert not (tmp_path / "files.json").exists()


def test_a_dataset_without_sequences_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"{PREFIX}: "):
        exported(write_dataset(tmp_path, [0]), str(tmp_path / "to"))
