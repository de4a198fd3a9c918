"""A dataset in S3: fetched ahead into a bounded cache, through busy servers and broken answers."""

import contextlib
import multiprocessing
import os
import re
import resource
import signal
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import boto3
import numpy as np
import pytest

from pipeline_tasks.errors import ContractError, DigestMismatch, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store.s3.client import s3_client
from pipeline_tasks.store.storage import connect
from pipeline_tasks.testing.training_dataset import Packed, write_dataset
from pipeline_tasks.training import bucket_folder
from pipeline_tasks.training.cache import Cache
from pipeline_tasks.training.dataset import TokenDataset
from pipeline_tasks.training.reader import Reader
from pipeline_tasks.training.share import Passes, Split
from tests.cluster.containers import wait_until
from tests.faulty_s3 import FaultyS3

PASSES = Passes(epochs=2, shuffle="later", block=8)


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    return write_dataset(tmp_path / "written", [100, 1, 57, 143])


@pytest.fixture
def uri(packed: Packed, s3_root: str) -> str:
    """The dataset in S3."""
    bucket, _, prefix = s3_root.removeprefix("s3://").partition("/")
    root = packed.folder.parents[1]
    client = boto3.session.Session().client("s3")
    for path in sorted(root.rglob("*.*")):
        client.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(root).as_posix()}", Body=path.read_bytes())
    return f"{s3_root}/publish/{packed.folder.name}"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let refused fetches be repeated at once."""
    monkeypatch.setattr(bucket_folder, "FIRST_PAUSE", 0.01)


def cache(folder: Path, **settings: float) -> Cache:
    """Return a cache of chunks of eight sequences, for the smallest number of bytes that its settings allow."""
    sizes = {"chunk_bytes": 8 * 32, "ahead": 4, "threads": 4} | settings
    return Cache(str(folder / "cache"), **{"bytes": 1 << 20, **sizes})  # type: ignore[arg-type]


def key(uri: str, suffix: str) -> tuple[str, str]:
    """Return bucket and key of the first shard's file."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    dataset = TokenDataset(uri)
    file = getattr(dataset.index.shards[0], suffix)
    return bucket, f"{prefix.rpartition('/')[0]}/{file.path.removeprefix('../')}"


def test_s3_and_disk_give_the_same_run(packed: Packed, uri: str, tmp_path: Path) -> None:
    split = Split(1, 2, 3)
    local = TokenDataset(str(packed.folder), split, PASSES).batches()
    remote = TokenDataset(f"{uri}/dataset.json", split, PASSES, cache(tmp_path)).batches()
    expected, fetched = (
        [{name: repr(value) for name, value in batch.items()} for batch in run] for run in (local, remote)
    )
    assert expected
    assert fetched == expected


@pytest.mark.parametrize("any_bucket", ["gs", "az"], indirect=True)
def test_other_buckets_and_disk_give_the_same_run(packed: Packed, any_bucket: str, tmp_path: Path) -> None:
    store, root = connect(any_bucket), packed.folder.parents[1]
    for path in sorted(root.rglob("*.*")):
        store.put_file(path.relative_to(root).as_posix(), path, "")
    uri = f"{any_bucket}/publish/{packed.folder.name}"
    runs = (
        TokenDataset(place, Split(1, 2, 3), PASSES, cache(tmp_path)).batches() for place in (uri, str(packed.folder))
    )
    fetched, expected = ([{name: repr(value) for name, value in batch.items()} for batch in run] for run in runs)
    assert expected
    assert fetched == expected


def test_a_chunk_is_fetched_once_for_all_epochs_ranks_and_versions(uri: str, tmp_path: Path) -> None:
    datasets = [TokenDataset(uri, Split(rank, 2), PASSES, cache(tmp_path)) for rank in range(2)]
    taken = Counter(item["index"] for dataset in datasets for item in dataset if item["index"] >= 0)
    assert set(taken.values()) == {2}
    files = [file for shard in datasets[0].index.shards for file in (shard.bin, shard.ends, shard.lineage)]
    assert sum(dataset.fetching.bytes for dataset in datasets) <= sum(file.bytes for file in files)
    assert datasets[1].fetching.requests == 0


def test_the_size_of_a_file_is_asked_for_once(uri: str, faults: FaultyS3, tmp_path: Path) -> None:
    dataset = TokenDataset(uri, passes=PASSES, cache=cache(tmp_path, threads=1))
    before = faults.requests
    assert len(list(dataset)) == dataset.places
    files = {path.name.partition("-")[0] for path in (tmp_path / "cache").iterdir()}
    assert len(files) > 8
    assert faults.requests - before == dataset.fetching.requests + len(files)


def size_of(path: Path) -> int:
    """The bytes of a file, 0 if another thread has removed it."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def test_the_cache_keeps_no_more_than_it_may(uri: str, tmp_path: Path) -> None:
    least = 64 * 1024
    dataset = TokenDataset(uri, passes=Passes(epochs=20, shuffle="always", block=1), cache=cache(tmp_path, bytes=least))
    folder, most = tmp_path / "cache", 0
    for number, _ in enumerate(dataset):
        if number % 50 == 0:
            most = max(most, sum(map(size_of, folder.iterdir())))
    assert 0 < most <= least


def test_a_cache_removes_nothing_but_its_own_files(packed: Packed, uri: str, tmp_path: Path) -> None:
    """It removed what lay longest in its folder, and ended at the first folder in it."""
    least = 64 * 1024
    others = [
        tmp_path / "cache" / name for name in ("thesis.tex", "folder/notes.txt", ".tmp-0123456789abcdef", "a-1-2")
    ]
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_bytes(b"x" * least)
        os.utime(other, (1, 1))
    (tmp_path / "cache" / ".tmp-abcd_123").write_bytes(b"x" * least)
    os.utime(tmp_path / "cache" / ".tmp-abcd_123", (1, 1))
    dataset = TokenDataset(uri, passes=Passes(epochs=3, shuffle="always", block=1), cache=cache(tmp_path, bytes=least))
    assert sum(item["input_ids"].tolist() == packed.ids(item["index"]) for item in dataset) == dataset.places
    assert [other for other in others if not other.exists()] == []
    assert not (tmp_path / "cache" / ".tmp-abcd_123").exists(), "a killed process left it"


def test_a_cache_that_is_removed_under_a_run_is_fetched_again(packed: Packed, uri: str, tmp_path: Path) -> None:
    taken, removed = {}, 0
    for item in TokenDataset(uri, cache=cache(tmp_path)):
        taken[item["index"]] = item["input_ids"].tolist()
        for path in (tmp_path / "cache").glob("[0-9a-f]*"):
            path.unlink(missing_ok=True)
            removed += 1
    assert taken == {index: packed.ids(index) for index in range(301)}
    assert removed


def test_a_damaged_file_of_the_cache_is_fetched_again(packed: Packed, uri: str, tmp_path: Path) -> None:
    list(TokenDataset(uri, cache=cache(tmp_path)))
    cached = list((tmp_path / "cache").iterdir())
    assert cached
    for path in cached:
        path.write_bytes(path.read_bytes()[:-1])
    taken = {item["index"]: item["input_ids"].tolist() for item in TokenDataset(uri, cache=cache(tmp_path))}
    assert taken == {index: packed.ids(index) for index in range(301)}


@pytest.mark.usefixtures("quick")
def test_a_busy_server_is_waited_for_and_counted(packed: Packed, uri: str, faults: FaultyS3, tmp_path: Path) -> None:
    """boto3 sends a request three times here; the loader goes on after more refusals than that."""
    dataset = TokenDataset(uri, cache=cache(tmp_path, threads=1))
    faults.coming += [("HEAD", (503, "SlowDown")), *[("GET", (503, "SlowDown"))] * 8]
    taken = [item["input_ids"].tolist() for item in dataset]
    assert taken == [packed.ids(index) for index in range(301)]
    assert len(faults.happened) == dataset.fetching.throttled == 9


@pytest.mark.usefixtures("quick")
def test_broken_answers_are_asked_again(packed: Packed, uri: str, faults: FaultyS3, tmp_path: Path) -> None:
    dataset = TokenDataset(uri, cache=cache(tmp_path, threads=1))
    faults.coming += [("GET", fault) for fault in ("short_body", "lost_answer", "lost_request", "short_body")]
    assert [item["input_ids"].tolist() for item in dataset] == [packed.ids(index) for index in range(301)]
    assert len(faults.happened) == 4


def test_who_stops_reading_waits_for_no_busy_server(
    uri: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fetch that waits for its next try ends with the iterator, and neither it nor one behind it asks again."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(bucket_folder, "FIRST_PAUSE", 30.0)
    dataset = TokenDataset(uri, cache=cache(tmp_path, chunk_bytes=32, ahead=100, threads=1, patience_s=3600.0))
    items = iter(dataset)
    next(items)
    faults.busy = 100
    items.close()  # type: ignore[attr-defined]  # a generator
    assert dataset.fetching.throttled <= 1


def test_a_fetch_that_waits_as_reading_ends_asks_no_more(
    uri: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(bucket_folder, "FIRST_PAUSE", 600.0)
    dataset = TokenDataset(uri, cache=cache(tmp_path, chunk_bytes=32, ahead=100, threads=1, patience_s=3600.0))
    index = dataset.index
    folder = bucket_folder.BucketFolder(uri, dataset.cache, dataset.fetching)
    faults.busy = 100
    folder.prefetch(Reader(index, folder).spans(np.arange(index.sequences)))
    for _ in wait_until("a fetch waits", 60, each=0.01):
        if dataset.fetching.throttled:
            break
    folder.close()
    assert dataset.fetching.throttled == 1


@pytest.mark.usefixtures("quick")
def test_patience_ends(uri: str, closed_port: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dataset = TokenDataset(uri, cache=cache(tmp_path, patience_s=0.0))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StorageBusy, match=re.escape(uri.partition("/publish/")[0])):
        next(iter(dataset))


def test_what_was_fetched_whole_has_its_digest(uri: str, tmp_path: Path) -> None:
    bucket, name = key(uri, "ends")
    client = s3_client()
    body = client.get_object(Bucket=bucket, Key=name)["Body"].read()
    client.put_object(Bucket=bucket, Key=name, Body=body[:-1] + b"\x7f")
    with pytest.raises(DigestMismatch, match=re.escape(name)):
        list(TokenDataset(uri, cache=cache(tmp_path)))


@pytest.mark.parametrize("body", [b"short", bytes(100 * 32 + 1)])
def test_a_shard_of_another_size_is_named(body: bytes, uri: str, tmp_path: Path) -> None:
    bucket, name = key(uri, "bin")
    s3_client().put_object(Bucket=bucket, Key=name, Body=body)
    with pytest.raises(ContractError, match=rf"{name} .*{len(body)} .*dataset\.json .*3200;"):
        list(TokenDataset(uri, cache=cache(tmp_path)))


def test_a_missing_shard_or_dataset_is_named(uri: str, tmp_path: Path) -> None:
    bucket, name = key(uri, "bin")
    s3_client().delete_object(Bucket=bucket, Key=name)
    with pytest.raises(ContractError, match=rf"{name} .*dataset\.json"):
        list(TokenDataset(uri, cache=cache(tmp_path)))
    with pytest.raises(RecipeError, match=re.escape(f"{uri}0/dataset.json ")):
        TokenDataset(f"{uri}0", cache=cache(tmp_path))


def test_a_changed_chunk_is_found_by_verify(uri: str, tmp_path: Path) -> None:
    bucket, name = key(uri, "bin")
    s3_client().put_object(Bucket=bucket, Key=name, Body=bytes(3200))
    with pytest.raises(DigestMismatch, match=re.escape(name)):
        TokenDataset(uri, cache=cache(tmp_path)).verify()


def test_a_cache_that_is_too_small_or_no_folder_is_refused(uri: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"{1 << 20} "):
        Cache(bytes=1 << 20)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecipeError, match=re.escape(str(tmp_path / "file" / "cache"))):
        TokenDataset(uri, cache=Cache(str(tmp_path / "file" / "cache")))


def test_a_full_disk_of_the_cache_is_named_and_leaves_no_part(uri: str, tmp_path: Path) -> None:
    dataset = TokenDataset(uri, cache=cache(tmp_path, chunk_bytes=4096))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
        with pytest.raises(NoSpace, match=re.escape(str(tmp_path / "cache"))):
            next(iter(dataset))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list((tmp_path / "cache").glob(".tmp-*"))


def _indexes(dataset: TokenDataset) -> list[int]:
    return [item["index"] for item in dataset]


@pytest.mark.slow
def test_forked_processes_have_connections_of_their_own(uri: str, tmp_path: Path) -> None:
    datasets = [TokenDataset(uri, Split(rank, 4), cache=cache(tmp_path / str(rank))) for rank in range(4)]
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        shares = list(pool.map(_indexes, datasets))
    assert sorted(index for share in shares for index in share if index >= 0) == list(range(301))
