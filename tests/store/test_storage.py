"""Every store keeps the same promises, and names the cause when the disk, the network or the server fails."""

import contextlib
import hashlib
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.constraints import is_bucket
from pipeline_tasks.errors import ContractError, DeterminismViolation, DigestMismatch, NoSpace, RecipeError, StorageBusy
from pipeline_tasks.store import storage, temporary
from pipeline_tasks.store.s3 import errors as s3_errors
from pipeline_tasks.store.s3 import store as s3_store
from pipeline_tasks.store.s3.client import s3_client
from pipeline_tasks.store.storage import commit, connect, open_landed
from tests.descriptors import descriptors
from tests.faulty_s3 import Fault, FaultyS3

WRITERS = 16
ROUNDS = 12


def paths(root: str, prefix: str = "") -> list[str]:
    return [entry.path for entry in connect(root).list(prefix)]


def put(root: str, path: str, body: bytes, tmp_path: Path) -> None:
    local = tmp_path / "local"
    local.write_bytes(body)
    connect(root).put_file(path, local, hashlib.sha256(body).hexdigest())


# --- What every store promises -----------------------------------------------------------------------------------


def test_what_is_created_is_read_back_listed_and_deleted(any_root: str) -> None:
    store = connect(any_root)
    assert store.create("a/b/one.json", b"one")
    assert store.read("a/b/one.json") == b"one"
    assert store.size("a/b/one.json") == 3
    assert [(entry.path, entry.bytes) for entry in store.list("a")] == [("a/b/one.json", 3)]
    store.delete("a/b/one.json")
    store.delete("a/b/one.json")
    assert store.size("a/b/one.json") is None
    assert list(store.list("")) == []


@pytest.mark.parametrize("count", [0, 1, 7])
def test_many_are_deleted_and_no_others(any_root: str, count: int) -> None:
    store = connect(any_root)
    names = [f"a/{number} & <ż>" for number in range(count)]
    for path in (*names, "b"):
        store.create(path, b"body")
    store.delete_many([*names, "a/never"] if names else [])
    assert paths(any_root) == ["b"]


@pytest.mark.parametrize(("count", "requests"), [(999, 1), (1000, 1), (1001, 2), (2500, 3)])
def test_a_request_deletes_a_thousand(s3_root: str, faults: FaultyS3, count: int, requests: int) -> None:
    store = connect(s3_root)
    store.create("there", b"body")
    before = faults.requests
    store.delete_many([f"gone/{number}" for number in range(count - 1)] + ["there"])
    assert faults.requests - before == requests
    assert paths(s3_root) == []


REFUSED = [("AccessDenied", RecipeError), ("InvalidArgument", ContractError), ("InternalError", StorageBusy)]


@pytest.mark.parametrize(("code", "kind"), REFUSED)
def test_an_object_that_stays_is_named(
    s3_root: str, faults: FaultyS3, code: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the request is 200: what it lists of single objects went unread."""
    monkeypatch.setattr(s3_errors, "PAUSE", 0.001)
    faults.coming += [("POST", ("kept", f"{s3_root.split('/', 3)[3]}/b", code))] * s3_store.BODY_TRIES
    with pytest.raises(kind, match=re.escape(f"{s3_root}/b")):
        connect(s3_root).delete_many(["a", "b"])
    assert len(faults.happened) == (s3_store.BODY_TRIES if kind is StorageBusy else 1)


def test_an_object_that_the_store_was_too_busy_for_is_deleted_by_another_request(
    s3_root: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_errors, "PAUSE", 0.001)
    connect(s3_root).create("b", b"body")
    faults.coming.append(("POST", ("kept", f"{s3_root.split('/', 3)[3]}/b", "SlowDown")))
    connect(s3_root).delete_many(["a", "b"])
    assert paths(s3_root) == []


@pytest.mark.parametrize("spare", [False, True])
def test_a_file_is_stored_as_any_new_file_and_kept_unless_spare(any_root: str, tmp_path: Path, *, spare: bool) -> None:
    body, (handle, name) = b"rows" * 9999, tempfile.mkstemp(dir=tmp_path)  # which its owner alone may read
    with os.fdopen(handle, "wb") as stream:
        stream.write(body)
    local, plain, store = Path(name), tmp_path / "plain", connect(any_root)
    for _ in range(2):  # the second time it is stored already
        store.put_file("a/rows", local, hashlib.sha256(body).hexdigest(), spare=spare)
        assert store.read("a/rows") == body
        local.write_bytes(body)
    assert list(store.unfinished("")) == []
    if not is_bucket(any_root):
        plain.touch()
        assert Path(any_root, "a/rows").stat().st_mode == plain.stat().st_mode
        local.write_bytes(b"something else")
        assert store.read("a/rows") == body


def test_a_pipe_in_place_of_an_object_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """It was opened, which waits for a writer."""
    store = connect(str(tmp_path))
    os.mkfifo(tmp_path / "manifest.json")
    calls: list[Callable[[], object]] = [
        lambda: store.read("manifest.json"),
        lambda: store.read_ranges("manifest.json", [(0, 1)]),
        lambda: commit(store, "manifest.json", b"body"),
        lambda: open_landed(str(tmp_path / "manifest.json")),
    ]
    for call in calls:
        with pytest.raises(ContractError, match=str(tmp_path / "manifest.json")):
            call()
    assert descriptors(tmp_path) == [], "a refused file stays open"
    assert store.size("manifest.json") is None
    assert paths(str(tmp_path)) == []


@pytest.mark.parametrize("size", [0, 3, 9 << 20])
def test_scratch_is_read_back_and_leaves_nothing_beside_it(any_root: str, size: int, tmp_path: Path) -> None:
    store, body, local = connect(any_root), bytes(size), tmp_path / "local"
    local.write_bytes(body)
    store.put_scratch("scratch/attempt/piece", local)
    assert store.read("scratch/attempt/piece") == body
    assert paths(any_root) == ["scratch/attempt/piece"]
    assert list(store.unfinished("")) == []


def test_uploads_of_killed_writers_are_listed_and_removed(s3_root: str) -> None:
    """They take room and have texts, and no listing of objects shows them."""
    store, bucket = connect(s3_root), s3_root.removeprefix("s3://").removesuffix("/root")
    keys = ("root/data/new", "root/data/there", "root-of-others/data", "root/other")
    for key in keys:
        begun = s3_client().create_multipart_upload(Bucket=bucket, Key=key)
        s3_client().upload_part(Bucket=bucket, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=bytes(7))
    store.create("data/there", b"a whole object")
    names = {entry.path.partition("?")[0]: entry for entry in store.unfinished("")}
    assert {name: entry.bytes for name, entry in names.items()} == {"data/new": 7, "data/there": 7, "other": 7}
    assert {entry.path for entry in store.unfinished("data")} == {names[name].path for name in names if "data" in name}
    store.delete(names["data/new"].path)
    store.delete_many([names["data/new"].path, names["data/there"].path])  # one that is gone is no error
    assert [entry.path for entry in store.unfinished("")] == [names["other"].path]
    assert store.read("data/there") == b"a whole object"


def test_ranges_are_read_whole_or_refused(any_root: str) -> None:
    store, body = connect(any_root), bytes(range(256)) * 40
    store.create("object", body)
    ranges = [(0, 5), (10_000, 10_240), (300, 300), (7, 8), *((at, at + 9) for at in range(1000, 1500, 20))]
    assert store.read_ranges("object", ranges) == [body[start:stop] for start, stop in ranges]
    for beyond in ((10_239, 10_241), (20_000, 20_001)):
        with pytest.raises(DigestMismatch, match=f"{re.escape(any_root)}/object .*{len(body)}.*{beyond[1]}"):
            store.read_ranges("object", [(0, 5), beyond])
    with pytest.raises(FileNotFoundError):
        store.read_ranges("two", [(0, 1), (2, 3)])


@pytest.mark.parametrize("body", [b"", b"\x00\xff" * 5, "żółć".encode()], ids=["empty", "binary", "text"])
def test_bytes_are_kept_as_they_are(any_root: str, body: bytes) -> None:
    connect(any_root).create("folder/ż ó+%20", body)
    assert connect(any_root).read("folder/ż ó+%20") == body
    assert paths(any_root) == ["folder/ż ó+%20"]


def test_a_missing_object_is_file_not_found(any_root: str) -> None:
    store = connect(any_root)
    store.create("present", b"")
    for call in (store.read, store.open, store.stamp):
        with pytest.raises(FileNotFoundError):
            call("not/present")
    assert store.size("not/present") is None
    assert list(store.list("not")) == []


@pytest.mark.parametrize("path", ["../outside", "stage/../../outside", "/etc/passwd", "stage/..", "a\0b"])
def test_no_path_leads_out_of_the_root(any_root: str, path: str, tmp_path: Path) -> None:
    """A forged manifest read, wrote and removed files beside the root."""
    store, body = connect(any_root), tmp_path / "body"
    body.write_bytes(b"body")
    (tmp_path / "outside").write_bytes(b"not ours")
    for call in (
        lambda: store.read(path),
        lambda: store.open(path),
        lambda: store.size(path),
        lambda: store.stamp(path),
        lambda: store.read_ranges(path, [(0, 1)]),
        lambda: store.create(path, b"body"),
        lambda: store.put_file(path, body, hashlib.sha256(b"body").hexdigest()),
        lambda: store.delete(path),
        lambda: list(store.list(path)),
    ):
        with pytest.raises(ContractError, match=re.escape(f"{any_root}: ") + f".*{re.escape(repr(path)[:-1])}/?'"):
            call()
    assert (tmp_path / "outside").read_bytes() == b"not ours"


def test_a_folder_that_may_not_be_listed_is_refused_and_its_files_are_not_taken_for_gone() -> None:
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place) / "day" / "closed"
        for folder in (closed, Path(place) / "lost+found"):
            folder.mkdir(parents=True)
            (folder / "a").touch()
            folder.chmod(0)
        Path(place).chmod(0o755)
        (Path(place) / "b").touch()
        user = os.geteuid()
        if not user:
            os.seteuid(65534)  # nobody: the superuser may list any folder
        try:
            for listing in (connect(place).list, connect(place).unfinished):
                with pytest.raises(RecipeError, match=re.escape(f"{closed}: permission denied")):
                    list(listing(""))
            assert [entry.path for entry in connect(f"{place}/lost+found").list("")] == []
        finally:
            os.seteuid(user)
            closed.chmod(0o700)
            (Path(place) / "lost+found").chmod(0o700)


def test_create_never_replaces(any_root: str) -> None:
    store = connect(any_root)
    assert store.create("object", b"first")
    assert not store.create("object", b"second")
    assert store.read("object") == b"first"


def test_exactly_one_of_many_racing_writers_wins(any_root: str) -> None:
    store = connect(any_root)

    def race(name: str) -> tuple[list[bytes], bytes]:
        bodies = [f"writer {rank} of {name} {'x' * 4000}".encode() for rank in range(WRITERS)]
        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(lambda body: store.create(name, body), bodies))
        return [body for body, mine in zip(bodies, won, strict=True) if mine], store.read(name)

    races = [race(f"race/{number}") for number in range(ROUNDS)]
    assert [winners for winners, _ in races] == [[kept] for _, kept in races]
    assert len(races) == ROUNDS > 1


def test_twins_that_race_with_equal_bytes_all_succeed(any_root: str) -> None:
    store = connect(any_root)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda _: commit(store, "twin", b"the same"), range(WRITERS)))
    assert store.read("twin") == b"the same"
    assert paths(any_root) == ["twin"]


def test_a_commit_of_other_bytes_is_refused_and_the_first_stays(any_root: str) -> None:
    store = connect(any_root)
    commit(store, "stage/print/manifest.json", b"first")
    commit(store, "stage/print/manifest.json", b"first")
    with pytest.raises(DeterminismViolation, match=re.escape(f"{any_root}/stage/print/manifest.json ")):
        commit(store, "stage/print/manifest.json", b"second")
    assert store.read("stage/print/manifest.json") == b"first"


def test_a_stored_file_can_be_read_in_pieces_and_out_of_order(any_root: str, tmp_path: Path) -> None:
    body = os.urandom(9 * 1024 * 1024)  # more than is fetched at a time
    put(any_root, "data/file", body, tmp_path)
    with connect(any_root).open("data/file") as stream:
        assert stream.read(10) == body[:10]
        stream.seek(-100, os.SEEK_END)
        assert stream.read() == body[-100:]
        assert stream.read() == b""
        stream.seek(5)
        assert stream.read() == body[5:]


def test_a_stored_file_heals_a_damaged_twin(any_root: str, tmp_path: Path) -> None:
    put(any_root, "data/file", b"right", tmp_path)
    connect(any_root).delete("data/file")
    connect(any_root).create("data/file", b"wrong")
    put(any_root, "data/file", b"right", tmp_path)
    assert connect(any_root).read("data/file") == b"right"


def test_listing_is_whole_and_in_the_order_of_text(any_root: str) -> None:
    store = connect(any_root)
    names = [f"many/{number:04d}" for number in range(1050)]  # S3 answers a thousand at a time
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.create(name, b"x"), names))
    for name in ("many-more", "many.txt", "manya/b"):  # around the `/` of many/ in the order of bytes
        store.create(name, b"")
    assert paths(any_root, "many") == names
    assert paths(any_root) == sorted([*names, "many-more", "many.txt", "manya/b"])


def test_a_file_that_is_removed_meanwhile_is_not_there(tmp_path: Path) -> None:
    """A vacuum beside a run ended with a stack trace where a file was written to its end after it was found."""
    store, names = connect(str(tmp_path)), [tmp_path / f"a/.tmp-{number}" for number in range(3)]
    (tmp_path / "a").mkdir()
    for name in names:
        name.write_bytes(b"half")
    unfinished = store.unfinished("")
    assert next(unfinished).path == "a/.tmp-0"
    names[1].unlink()
    assert [entry.path for entry in unfinished] == ["a/.tmp-2"]


def test_the_size_of_a_file_that_comes_and_goes_is_its_own_or_none(tmp_path: Path) -> None:
    store, file, done = connect(str(tmp_path)), tmp_path / "object", threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            file.write_bytes(b"x")
            file.unlink()

    with ThreadPoolExecutor(1) as pool:
        comes_and_goes = pool.submit(come_and_go)
        try:
            sizes = {store.size("object") for _ in range(20_000)}
            while len(sizes) == 1 and not comes_and_goes.done():  # the other thread may not have run yet
                sizes.add(store.size("object"))
        finally:
            done.set()
        comes_and_goes.result()
    assert sizes <= {None, 0, 1}
    assert len(sizes) > 1


def test_nothing_is_listed_below_a_name_that_no_folder_can_have(any_root: str) -> None:
    connect(any_root).create("a/1.json", b"{}")
    assert paths(any_root, f"a/{'x' * 300}") == []


def test_a_stamp_changes_with_the_object(any_root: str) -> None:
    store = connect(any_root)
    store.create("object", b"first")
    before = store.stamp("object")
    assert store.stamp("object") == before
    store.delete("object")
    store.create("object", b"other")
    assert store.stamp("object") != before


def test_the_digest_of_a_file_follows_its_content(any_root: str) -> None:
    store = connect(any_root)
    store.create("model.bin", b"first")
    assert storage.digest_of_file(f"{any_root}/model.bin") == (5, hashlib.sha256(b"first").hexdigest())
    store.delete("model.bin")
    store.create("model.bin", b"other")
    assert storage.digest_of_file(f"{any_root}/model.bin") == (5, hashlib.sha256(b"other").hexdigest())


def test_a_file_is_brought_to_this_machine_and_checked(
    any_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    connect(any_root).create("model.bin", b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    for _ in range(2):
        assert Path(storage.localize(f"{any_root}/model.bin", digest)).read_bytes() == b"weights"
    assert temporary.user_folder().stat().st_mode & 0o077 == 0, (
        "the worker daemon refuses a folder that others may enter"
    )


def test_a_file_that_changed_since_it_was_planned_is_not_used(
    s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    connect(s3_root).create("model.bin", b"other weights")
    with pytest.raises(DigestMismatch, match=re.escape(f"{s3_root}/model.bin: ")):
        storage.localize(f"{s3_root}/model.bin", hashlib.sha256(b"weights").hexdigest())
    assert not list(tmp_path.rglob("model.bin"))


def test_a_local_file_that_changed_since_it_was_planned_is_not_used(tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    assert storage.localize(str(model), digest) == storage.localize(f"file://{model}", digest) == str(model)
    model.write_bytes(b"other weights")
    with pytest.raises(DigestMismatch, match=re.escape(f"{model}: ")):
        storage.localize(str(model), digest)


def test_a_damaged_copy_in_the_cache_is_made_again(
    s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    connect(s3_root).create("model.bin", b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    copy = Path(storage.localize(f"{s3_root}/model.bin", digest))
    bodies = []
    for damaged in (b"weight", b"weightz"):
        copy.write_bytes(damaged)
        bodies.append(Path(storage.localize(f"{s3_root}/model.bin", digest)).read_bytes())
    assert bodies == [b"weights"] * 2


# --- Processes that die ------------------------------------------------------------------------------------------

WRITER = textwrap.dedent(
    """
    import hashlib, sys
    from pathlib import Path
    from pipeline_tasks.store.storage import connect
    root, local = sys.argv[1:]
    body = bytes(40 * 1024 * 1024)
    Path(local).write_bytes(body)
    store, number = connect(root), 0
    print("ready", flush=True)
    while True:
        number += 1
        store.create(f"created/{number}", body)
        store.put_file(f"stored/{number}", Path(local), hashlib.sha256(body).hexdigest())
    """
)


@pytest.mark.parametrize(
    "delay", [0.05, 0.6, *(pytest.param(delay, marks=pytest.mark.nightly) for delay in (0.2, 0.35))]
)
def test_a_killed_writer_leaves_nothing_half_written(
    any_root: str, tmp_path: Path, delay: float, request: pytest.FixtureRequest
) -> None:
    if any_root.startswith("s3://"):
        request.getfixturevalue("faults")  # Drops a request without its whole body, as S3 does and MiniStack does not.
    command = [sys.executable, "-c", WRITER, any_root, str(tmp_path / "body")]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(delay)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    store = connect(any_root)
    assert {entry.bytes for entry in store.list("")} <= {40 * 1024 * 1024}
    assert store.create("created/next", b"next")


def test_an_empty_object_is_no_commit(any_root: str) -> None:
    store = connect(any_root)
    assert store.create("stage/manifest.json", b"")
    commit(store, "stage/manifest.json", b"body")
    commit(store, "stage/manifest.json", b"body")
    with pytest.raises(DeterminismViolation, match=re.escape(f"{any_root}/stage/manifest.json ")):
        commit(store, "stage/manifest.json", b"other")
    assert store.read("stage/manifest.json") == b"body"


# --- Disks, networks and servers that fail ----------------------------------------------------------------------------------


@contextlib.contextmanager
def small_files() -> Iterator[None]:
    """Let files of this process have 64 KiB at most: the kernel refuses more, as a full disk would.

    Not a fixture: pytest writes its own (redirected) output between a fixture and its test.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_full_disk_is_no_space_and_shows_nothing(tmp_path: Path) -> None:
    store = connect(str(tmp_path / "root"))
    with small_files(), pytest.raises(NoSpace, match=re.escape(f"{tmp_path}/root/stage/")):
        store.create("stage/manifest.json", bytes(100_000))
    assert list((tmp_path / "root").rglob("*")) == [tmp_path / "root" / "stage"]


def test_a_full_disk_stops_a_shard(tmp_path: Path) -> None:
    import pyarrow as pa

    from pipeline_tasks.store.shards.file import ShardWriter

    rows = pa.RecordBatch.from_pydict({"body": pa.array([os.urandom(200_000)], pa.large_binary())})
    with small_files():
        writer = ShardWriter(rows.schema)
        writer.write(rows)
        with pytest.raises(NoSpace, match="TMPDIR"):
            writer.store(str(tmp_path / "root"), "stage/data")
    assert paths(str(tmp_path / "root")) == []


def test_a_place_that_cannot_be_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RecipeError, match=re.escape(f"{tmp_path}/file/root/object: ")):
        connect(str(tmp_path / "file" / "root")).create("object", b"")


def test_an_unknown_kind_of_store_is_refused() -> None:
    with pytest.raises(RecipeError, match="hdfs://host/prefix: "):
        connect("hdfs://host/prefix")


def test_a_missing_bucket_is_named(s3_root: str) -> None:
    store = connect("s3://refinery-nobody-made-this/root")
    for call in (
        store.read,
        store.size,
        store.open,
        lambda path: store.create(path, b""),
        lambda path: [*store.list(path)],
    ):
        with pytest.raises(RecipeError, match=r"\brefinery-nobody-made-this\b"):
            call("object")


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ((403, "InvalidAccessKeyId"), r"\(InvalidAccessKeyId\).*AWS_ACCESS_KEY_ID"),
        ((403, "SignatureDoesNotMatch"), r"\(SignatureDoesNotMatch\).*AWS_SECRET_ACCESS_KEY"),
        ((403, "AccessDenied"), r"\(AccessDenied\).*AWS_SECRET_ACCESS_KEY"),
        ((403, "RequestTimeTooSkewed"), "NTP"),
    ],
)
def test_a_refusal_says_what_to_mend(s3_root: str, faults: FaultyS3, fault: tuple[int, str], named: str) -> None:
    for method, call in (
        ("PUT", lambda: connect(s3_root).create("object", b"")),
        ("GET", lambda: connect(s3_root).read("object")),
    ):
        faults.coming.append((method, fault))
        with pytest.raises(RecipeError, match=f"{re.escape(s3_root)}/object: .*{named}"):
            call()
    assert len(faults.happened) == 2


@pytest.mark.parametrize(
    "fault",
    ["lost_answer", "lost_request", (503, "SlowDown"), (500, "InternalError"), (409, "ConditionalRequestConflict")],
)
def test_a_commit_survives_what_networks_do(s3_root: str, faults: FaultyS3, fault: Fault) -> None:
    faults.coming.append(("PUT", fault))
    assert connect(s3_root).create("object", b"mine")
    assert faults.happened == [("PUT", fault)]
    assert connect(s3_root).read("object") == b"mine"
    assert not connect(s3_root).create("object", b"other")


def test_a_commit_whose_answers_are_all_lost_is_recognized(
    s3_root: str, faults: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    faults.coming.append(("PUT", "lost_answer"))
    assert connect(s3_root).create("object", b"mine")
    faults.coming.append(("PUT", "lost_answer"))
    assert not connect(s3_root).create("object", b"other")
    faults.coming.append(("PUT", (503, "SlowDown")))
    with pytest.raises(StorageBusy, match=re.escape(f"{s3_root}/two: ")):
        connect(s3_root).create("two", b"mine")
    assert paths(s3_root) == ["object"]


def test_a_body_that_breaks_off_is_requested_again(
    s3_root: str, faults: FaultyS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_errors, "PAUSE", 0.001)
    body = os.urandom(9 * 1024 * 1024)
    put(s3_root, "data/file", body, tmp_path)
    faults.coming += [("GET", "short_body"), ("GET", "short_body")]
    assert connect(s3_root).read("data/file") == body
    faults.coming += [("GET", "short_body"), ("GET", "short_body")]
    with connect(s3_root).open("data/file") as stream:
        assert stream.read(8 * 1024 * 1024) + stream.read() == body
    faults.coming += [("GET", "short_body")] * s3_store.BODY_TRIES
    with pytest.raises(StorageBusy, match=re.escape(f"{s3_root}/data/file: ")):
        connect(s3_root).read("data/file")
    assert len(faults.happened) == 4 + s3_store.BODY_TRIES


def test_ranges_survive_what_networks_do(s3_root: str, faults: FaultyS3) -> None:
    store, body = connect(s3_root), os.urandom(5000)
    store.create("object", body)
    for fault in ("short_body", "lost_answer", "lost_request", (503, "SlowDown"), (500, "InternalError")):
        faults.coming.append(("GET", fault))
        assert store.read_ranges("object", [(10, 20), (4000, 5000)]) == [body[10:20], body[4000:]]
    assert len(faults.happened) == 5
    faults.coming.append(("GET", "whole_body"))
    with pytest.raises(StorageBusy, match=f"{re.escape(s3_root)}/object: .* 5000 .* 10 "):
        store.read_ranges("object", [(10, 20)])


def test_ranges_with_small_gaps_come_in_one_request(s3_root: str, faults: FaultyS3) -> None:
    store, body = connect(s3_root), os.urandom(600_000)
    store.create("object", body)
    ranges = [(10, 20), (20, 30), (100_000, 100_001), (500_000, 500_009), (1, 2)]
    assert store.read_ranges("object", ranges) == [body[start:stop] for start, stop in ranges]
    assert sorted(faults.ranges) == ["bytes=1-1", "bytes=10-100000", "bytes=500000-500008"]
    assert store.read_ranges("object", []) == []


def test_missing_credentials_are_named(s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(RecipeError, match=f"{re.escape(s3_root)}/object: .*AWS_ACCESS_KEY_ID"):
        connect(s3_root).read("object")


def test_an_output_is_tried_before_anything_starts(
    s3_root: str, closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An S3 output without credentials was found after 77 s, by its first task."""
    storage.require_usable(s3_root)
    storage.require_usable(str(tmp_path / "new" / "root"))
    with pytest.raises(RecipeError, match="s3://refinery-nobody-made-this/x: "):
        storage.require_usable("s3://refinery-nobody-made-this/x")
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
        with pytest.raises(StorageBusy, match=f"{re.escape(s3_root)}: .*AWS_ENDPOINT_URL"):
            storage.require_usable(s3_root)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(RecipeError, match=f"{re.escape(s3_root)}: .*AWS_ACCESS_KEY_ID"):
        storage.require_usable(s3_root)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://",
        "s3:///x",
        "s3:/bucket/x",
        "S3://bucket/x",
        "s3a://b/x",
        "gs:///b",
        "az:/b",
        "abfs://b/x",
        "file:/x",
        "C:/x",
    ],
)
def test_what_names_no_store_is_refused_and_no_folder_of_that_name_is_made(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--output s3:/bucket/x` refined into a folder `s3:`; another kind failed after its first task."""
    monkeypatch.chdir(tmp_path)
    for call in (storage.connect, storage.require_usable):
        with pytest.raises(RecipeError, match=re.escape(uri.rstrip("/"))):
            call(uri)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("uri", ["a:b", "./s3:/x", "day 10:30/x"])
def test_a_local_path_may_have_colons(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    connect(uri).create("object", b"present")
    assert Path(uri, "object").read_bytes() == b"present"


def test_a_server_that_redirects_every_request_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Redirects(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(HTTPStatus.MOVED_PERMANENTLY)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815 -- http.server's name

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirects) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "refinery")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        with pytest.raises(RecipeError, match=r"s3://bucket/x: .*AWS_ENDPOINT_URL .*AWS_REGION"):
            storage.require_usable("s3://bucket/x")
        server.shutdown()


def test_an_unreachable_server_is_busy_and_named(
    s3_root: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for call in (connect(s3_root).read, connect(s3_root).size, lambda path: connect(s3_root).create(path, b"")):
        with pytest.raises(StorageBusy, match=rf"{re.escape(s3_root)}.*127\.0\.0\.1.*AWS_ENDPOINT_URL"):
            call("object")


def test_the_endpoint_for_s3_alone_goes_before_the_general_one(
    s3_root: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{closed_port}")
    assert connect(s3_root).create("object", b"present")
    assert connect(s3_root).read("object") == b"present"


def test_a_large_file_goes_up_in_parts(s3_root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "PART", 1024)
    body = os.urandom(9 * 1024 * 1024)
    put(s3_root, "data/large", body, tmp_path)
    assert connect(s3_root).read("data/large") == body
    with pytest.raises(RecipeError, match=r"\brefinery-nobody-made-this\b"):
        put("s3://refinery-nobody-made-this/root", "data/large", body, tmp_path)


# --- What is on the disk ----------------------------------------------------------------------------------------------


def test_a_new_object_is_flushed_with_the_entry_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the folder's own flush a power failure may lose a committed file whose bytes are on the disk."""
    flushed: list[int] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        flushed.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    connect(str(tmp_path)).create("committed/a", b"body")
    put(str(tmp_path), "stored/b", b"body", tmp_path)
    objects = [tmp_path / "committed/a", tmp_path / "stored/b"]
    pairs = [(path.stat().st_ino, path.parent.stat().st_ino) for path in objects]
    assert [(file, folder) for file, folder in pairs if flushed.index(folder) < flushed.index(file)] == []


def test_folders_right_under_a_root_are_listed_without_hidden_ones(any_root: str) -> None:
    assert list(connect(any_root).folders()) == []
    for path in ("b/x/y", "a/x", "a/z", "file", "_staging/x", ".hidden/x", "é f/x"):
        connect(any_root).create(path, b"x")
    assert list(connect(any_root).folders()) == ["a", "b", "é f"]


def test_a_root_without_objects_is_no_root(any_root: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{any_root}/nothing ")):
        storage.require_root(f"{any_root}/nothing")
    connect(f"{any_root}/something").create("a", b"")
    storage.require_root(f"{any_root}/something")


def _client(_: int) -> int:
    return id(s3_client())


def test_a_forked_process_has_a_client_of_its_own(s3_root: str) -> None:
    """It had its parent's, and so its connections: answers went to whoever read first."""
    own = id(s3_client())
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert list(pool.map(_client, [0])) != [own]


def test_bytes_that_may_differ_are_kept_as_they_were_stored_first(any_root: str) -> None:
    store = connect(any_root)
    assert storage.keep(store, "page", b"first") == b"first"
    assert storage.keep(store, "page", b"other") == b"first"
    store.create("cut", b"")
    assert storage.keep(store, "cut", b"whole") == b"whole", "an empty object is no commit"
    assert [store.read(path) for path in ("page", "cut")] == [b"first", b"whole"]


def test_a_file_is_no_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for root in (str(tmp_path / "file"), f"file://{tmp_path / 'file'}"):
        with pytest.raises(RecipeError, match=re.escape(f"{root} ")):
            storage.require_folder(root)
    for root in (str(tmp_path), str(tmp_path / "new"), "s3://file"):
        storage.require_folder(root)


def test_a_bucket_is_tried_for_conditional_puts_and_left_as_it_was(
    s3_root: str, faults: FaultyS3, tmp_path: Path
) -> None:
    storage.require_conditional(str(tmp_path))
    assert not list(tmp_path.iterdir())
    faults.coming += [("PUT", "no_condition"), ("PUT", "no_condition")]
    with pytest.raises(RecipeError, match=re.escape(f"{s3_root}/{storage.PROBE}: ")):
        storage.require_conditional(s3_root)
    connect(s3_root).delete(storage.PROBE)
    storage.require_conditional(s3_root)
    assert paths(s3_root) == []


def test_a_landed_file_is_told_from_a_path_below_the_root() -> None:
    assert [storage.is_absolute(path) for path in ("s3://bucket/file", "/file", "landing/file", "a:b")] == [
        True,
        True,
        False,
        False,
    ]


def test_what_is_no_file_has_no_stamp(tmp_path: Path) -> None:
    """The digest of a pipe would be waited for without end."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        storage.digest_of_file(str(tmp_path / "folder"))
    with pytest.raises(OSError, match="no regular file"):
        storage.digest_of_file(str(tmp_path / "pipe"))
    with pytest.raises(IsADirectoryError):
        connect(str(tmp_path)).read("folder")


def test_a_spare_file_of_another_file_system_is_copied(tmp_path: Path) -> None:
    others = [place for place in (Path("/dev/shm"), Path("/tmp"), Path.cwd()) if place.is_dir()]
    other = next((place for place in others if place.stat().st_dev != tmp_path.stat().st_dev), None)
    if other is None:
        pytest.skip("there is one file system here")
    with tempfile.TemporaryDirectory(dir=other) as folder:
        local = Path(folder, "local")
        local.write_bytes(b"rows")
        connect(str(tmp_path)).put_file("a/rows", local, hashlib.sha256(b"rows").hexdigest(), spare=True)
    assert (tmp_path / "a/rows").read_bytes() == b"rows"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["rows"]
