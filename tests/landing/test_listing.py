"""A snapshot is landed when every file it promises exists, and its identity is its content."""

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline_tasks.errors import ContractError, NothingLanded, RecipeError, RefineryError, SnapshotIncomplete
from pipeline_tasks.landing.arrival import COMPLETE, INCOMPLETE, MISSING, arrival_of
from pipeline_tasks.landing.listing import BESIDE_ARCHIVES, NAMED, land, landing_of, list_snapshot
from pipeline_tasks.store.storage import connect


def put(landing: str, files: dict[str, bytes]) -> None:
    for name, body in files.items():
        connect(landing).delete(name)
        connect(landing).create(name, body)


def promise(files: dict[str, bytes], snapshot: str = "2026-11-20") -> bytes:
    listed = [
        {"path": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()} for name, body in files.items()
    ]
    return json.dumps({"snapshot": snapshot, "files": listed}).encode()


FILES = {"part/a.warc.gz": b"first", "part/b.warc.gz": b"second"}


# --- snapshot.json ---------------------------------------------------------------------------------------------------


def test_a_promised_snapshot_is_complete_when_every_file_has_its_size(any_root: str) -> None:
    assert arrival_of(any_root).state == MISSING
    put(any_root, {"snapshot.json": promise(FILES)})
    with pytest.raises(SnapshotIncomplete, match=rf"{re.escape(any_root)}.* part/a\.warc\.gz, part/b\.warc\.gz"):
        list_snapshot(any_root)
    put(any_root, {"part/b.warc.gz": b"sec"})
    arrival = arrival_of(any_root)
    assert arrival.state == INCOMPLETE
    assert "1 missing: part/a.warc.gz and 1 of another size: part/b.warc.gz has 3 of 6 bytes" in arrival.detail
    put(any_root, FILES | {"notes.txt": b"extra"})
    arrival = arrival_of(any_root)
    assert (arrival.state, arrival.settling) == (COMPLETE, "")
    assert "2 files, 11 bytes, as snapshot.json promises" in arrival.detail
    listing = list_snapshot(any_root)
    assert listing.snapshot == "2026-11-20"
    assert [name for name, _, _ in listing.files] == sorted(FILES)
    assert listing.ignored == ("notes.txt",)


def test_a_given_name_goes_before_the_promised_one(any_root: str) -> None:
    put(any_root, {"snapshot.json": promise(FILES), **FILES})
    listing = list_snapshot(any_root, "2026-12-24")
    assert (listing.snapshot, listing.promise) == ("2026-12-24", "snapshot.json")


def test_an_error_names_a_few_of_many_missing_files(tmp_path: Path) -> None:
    put(str(tmp_path), {"snapshot.json": promise({f"{number:02}.warc": b"x" for number in range(NAMED + 5)})})
    names = [f"{number:02}.warc" for number in range(NAMED)]
    with pytest.raises(SnapshotIncomplete, match=re.escape(f" {', '.join(names)} and 5 ")):
        list_snapshot(str(tmp_path))


def test_a_snapshot_without_a_list_is_complete_and_settles_when_nothing_changes(any_root: str) -> None:
    put(any_root, {"a.warc.gz": b"first"})
    first = arrival_of(any_root)
    assert first.state == COMPLETE
    assert first == arrival_of(any_root)
    put(any_root, {"b.warc.gz": b"second"})
    second = arrival_of(any_root)
    put(any_root, {"b.warc.gz": b"second and more"})
    assert len({"", first.settling, second.settling, arrival_of(any_root).settling}) == 4


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"files": 3}',
        b'{"files": [{}]}',
        b'{"files": [{"path": "a", "bytes": "x", "sha256": ""}]}',
        b"\xff",
    ],
)
def test_a_promise_that_cannot_be_read_is_refused(tmp_path: Path, body: bytes) -> None:
    put(str(tmp_path), {"snapshot.json": body})
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/snapshot.json ")):
        list_snapshot(str(tmp_path))


def test_a_promise_of_nothing_is_an_empty_snapshot(tmp_path: Path) -> None:
    put(str(tmp_path), {"snapshot.json": promise({})})
    with pytest.raises(NothingLanded, match=rf"{re.escape(str(tmp_path))} .*snapshot\.json"):
        list_snapshot(str(tmp_path))
    assert arrival_of(str(tmp_path)).state != COMPLETE


def test_a_promise_that_names_a_file_twice_is_refused(tmp_path: Path) -> None:
    body = json.loads(promise(FILES))
    body["files"] += body["files"][:1]
    put(str(tmp_path), FILES | {"snapshot.json": json.dumps(body).encode()})
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/snapshot.json ") + r".*part/a\.warc\.gz"):
        list_snapshot(str(tmp_path))


def test_a_promise_cannot_reach_outside_its_snapshot(tmp_path: Path) -> None:
    (tmp_path / "secret.warc").write_bytes(b"secret")
    put(str(tmp_path / "day"), {"snapshot.json": promise({"../secret.warc": b"secret"})})
    with pytest.raises(SnapshotIncomplete):
        list_snapshot(str(tmp_path / "day"))


# --- warc.paths.gz -----------------------------------------------------------------------------------------------------

PATHS = b"crawl-data/CC-MAIN-2026-45/segments/1/warc/a.warc.gz\ncrawl-data/CC-MAIN-2026-45/segments/2/warc/b.warc.gz\n"


@pytest.mark.parametrize("name", ["warc.paths.gz", "warc.paths", "wet.paths.gz"])
def test_common_crawls_own_listing_is_a_promise(any_root: str, name: str) -> None:
    put(any_root, {name: gzip.compress(PATHS) if name.endswith(".gz") else PATHS, "a.warc.gz": b"first"})
    with pytest.raises(SnapshotIncomplete, match=r" crawl-data/\S*b\.warc\.gz") as refusal:
        list_snapshot(any_root)
    assert "a.warc.gz" not in str(refusal.value)
    put(any_root, {"b.warc.gz": b"second"})
    assert [name for name, _, _ in list_snapshot(any_root).files] == ["a.warc.gz", "b.warc.gz"]


def test_a_listing_with_its_folders_is_a_promise_too(tmp_path: Path) -> None:
    put(str(tmp_path), {"warc.paths": PATHS} | dict.fromkeys(PATHS.decode().split(), b"x"))
    assert [name for name, _, _ in list_snapshot(str(tmp_path)).files] == PATHS.decode().split()


@pytest.mark.parametrize("body", [b"", gzip.compress(PATHS)[:-9], b"not gzip at all", gzip.compress(b"\xff\xfe\xff")])
def test_a_listing_that_is_still_landing_is_waited_for(tmp_path: Path, body: bytes) -> None:
    put(str(tmp_path), {"warc.paths.gz": body, "a.warc.gz": b"first"})
    if body:
        with pytest.raises(SnapshotIncomplete, match=re.escape(f"{tmp_path}/warc.paths.gz ")):
            list_snapshot(str(tmp_path))
    assert arrival_of(str(tmp_path)).state != COMPLETE


@pytest.mark.parametrize(
    ("body", "named"),
    [(bytes(65 << 20), "bytes"), (b"crawl-data/a.warc.gz\n" * 1_000_001, "1000001 lines")],
    ids=["bytes", "lines"],
)
def test_a_listing_that_inflates_without_end_is_refused(tmp_path: Path, body: bytes, named: str) -> None:
    put(str(tmp_path), {"warc.paths.gz": gzip.compress(body, 1), "a.warc.gz": b"x"})
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/warc.paths.gz ") + f".* {named}"):
        list_snapshot(str(tmp_path))


@given(st.binary(max_size=200) | st.binary(max_size=200).map(gzip.compress), st.sampled_from(["", ".gz"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_as_a_listing_are_a_named_error_or_files(tmp_path: Path, body: bytes, ending: str) -> None:
    name = f"warc.paths{ending}"
    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    put(str(folder), {name: body, "a.warc.gz": b"x"})
    try:
        listing = list_snapshot(str(folder))
    except RefineryError as error:
        assert str(folder) in str(error)  # noqa: PT017 -- either outcome is right, and each is checked
    else:
        assert listing.files
        assert {path for path, _, _ in listing.files} <= {"a.warc.gz", name}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
FILE = st.fixed_dictionaries({"path": JSON, "bytes": JSON, "sha256": JSON})


@given(st.binary(max_size=99) | (JSON | st.fixed_dictionaries({"files": st.lists(FILE | JSON)})).map(json.dumps))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_promise_is_a_named_error_or_files(tmp_path: Path, body: bytes | str) -> None:
    put(str(tmp_path), {"snapshot.json": body if isinstance(body, bytes) else body.encode(), "a.warc.gz": b"x"})
    with pytest.raises(RefineryError, match=re.escape(str(tmp_path))):
        list_snapshot(str(tmp_path))


def test_a_promise_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    put(str(tmp_path), {"snapshot.json": b'{"files": ' + b"[" * 200_000})
    with pytest.raises(ContractError, match=re.escape(f"{tmp_path}/snapshot.json ")):
        list_snapshot(str(tmp_path))


# --- Folders without a promise, and single files -----------------------------------------------------------------------


def test_without_a_promise_archives_go_before_tables(any_root: str) -> None:
    put(
        any_root,
        {"b.jsonl": b"{}", "c.warc": b"w", "a.warc.gz": b"w", "_SUCCESS": b"", ".hidden.warc": b"", "d.txt": b""},
    )
    listing = list_snapshot(any_root)
    assert [name for name, _, _ in listing.files] == ["a.warc.gz", "c.warc"]
    assert listing.ignored == ("d.txt",)
    hidden = "hidden: its name begins with . or _"
    assert listing.skipped == ((".hidden.warc", hidden), ("_SUCCESS", hidden), ("b.jsonl", BESIDE_ARCHIVES))
    assert listing.snapshot == any_root.rpartition("/")[2]


@pytest.mark.parametrize("name", ["A.WARC.GZ", "Part-0.Warc.Gz", "B.JSONL", "c.Parquet"])
def test_the_end_of_a_name_may_be_in_capitals(name: str, tmp_path: Path) -> None:
    put(str(tmp_path), {name: b"w", "README.MD": b""})
    assert [file for file, _, _ in list_snapshot(str(tmp_path)).files] == [name]


def test_tables_alone_are_a_snapshot(tmp_path: Path) -> None:
    put(str(tmp_path), {"b.jsonl.zst": b"", "a.parquet": b"", "README.md": b""})
    assert [name for name, _, _ in list_snapshot(str(tmp_path)).files] == ["a.parquet", "b.jsonl.zst"]


@pytest.mark.parametrize("above", ["", "crawls/web/"])
def test_a_folder_of_snapshots_is_refused_with_the_way_out(any_root: str, above: str) -> None:
    """It was refined as one snapshot, whose documents were those of every day and the lists of files themselves."""
    bodies = {"a.jsonl": b"{}"}
    days = {f"{above}2026-11-2{day}/": bodies | {"snapshot.json": promise(bodies)} for day in (0, 1, 2)}
    put(any_root, {f"{day}{name}": body for day, files in days.items() for name, body in files.items()})
    named = re.escape(f"--input {any_root}/{above}2026-11-20)")
    with pytest.raises(RecipeError, match=named):
        list_snapshot(any_root)
    with pytest.raises(RecipeError, match=named):  # waiting does not help
        arrival_of(any_root)
    assert list_snapshot(f"{any_root}/{above}2026-11-20").snapshot == "2026-11-20"
    whole = {f"{day}a.jsonl": b"{}" for day in days}
    put(any_root, {"snapshot.json": promise(whole, "all")})
    assert [name for name, _, _ in list_snapshot(any_root).files] == sorted(whole)


@pytest.mark.parametrize(
    "lists",
    [
        {"a/snapshot.json": promise(FILES)},
        {"a/snapshot.json": promise(FILES), ".b/snapshot.json": promise(FILES), "_c/snapshot.json": promise(FILES)},
        {"a/snapshot.json": promise(FILES), "b/snapshot.json": b'{"url": "https://example.org"}', "c/x.json": b"{}"},
        {"a/snapshot.json": b"[]", "b/snapshot.json": b"\xff", "c/snapshot.json": b'{"files": 7}'},
        {"a/old-snapshot.json": promise(FILES), "b/old-snapshot.json": promise(FILES)},
    ],
)
def test_a_folder_with_folders_is_one_snapshot(tmp_path: Path, lists: dict[str, bytes]) -> None:
    put(str(tmp_path), lists | {"day/1.jsonl": b"{}", "day/2.jsonl": b"{}"})
    assert {"day/1.jsonl", "day/2.jsonl"} <= {name for name, _, _ in list_snapshot(str(tmp_path)).files}


@pytest.mark.parametrize("files", [{}, {"README.md": b"x", "_SUCCESS": b""}], ids=["nothing", "nothing to read"])
def test_an_empty_snapshot_is_refused_with_what_is_wanted(any_root: str, files: dict[str, bytes]) -> None:
    put(any_root, files)
    with pytest.raises(NothingLanded, match=f"{re.escape(any_root)} .*WARC, .*JSONL, Parquet or (?:a )?document"):
        land(any_root + "-out", any_root)
    assert arrival_of(any_root).state != COMPLETE


def test_one_file_is_a_snapshot(any_root: str, tmp_path: Path) -> None:
    put(any_root, FILES)
    _, manifest, listing = land(str(tmp_path / "out"), f"{any_root}/part/a.warc.gz")
    assert [(shard.path, shard.bytes) for shard in manifest.shards] == [("landing:a.warc.gz", 5)]
    assert listing.snapshot == "a.warc.gz"
    assert landing_of(f"{any_root}/part/a.warc.gz").endswith("root/part")


def test_a_place_may_be_said_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(str(tmp_path), FILES)
    monkeypatch.chdir(tmp_path / "part")
    assert (
        landing_of("a.warc.gz")
        == landing_of("../part/a.warc.gz").replace("/part/../part", "/part")
        == str(tmp_path / "part")
    )
    _, manifest, _ = land("out", "a.warc.gz")
    assert manifest.shards[0].digest == hashlib.sha256(b"first").hexdigest()


# --- The manifest of a landing -------------------------------------------------------------------------------------------


def test_identity_is_names_and_content_and_not_the_place(any_root: str, tmp_path: Path) -> None:
    put(any_root, FILES | {"snapshot.json": promise(FILES)})
    other = tmp_path / "other"
    for name, body in (FILES | {"snapshot.json": promise(FILES)}).items():
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes(body)
    first, second = land(str(tmp_path / "out"), any_root), land(str(tmp_path / "out"), str(other))
    assert first[:2] == second[:2]
    assert [shard.digest for shard in first[1].shards] == [
        hashlib.sha256(body).hexdigest() for _, body in sorted(FILES.items())
    ]


def test_a_file_that_changed_is_another_landing_in_the_same_process(tmp_path: Path) -> None:
    landing, out = tmp_path / "day", str(tmp_path / "out")
    put(str(landing), FILES)
    before = land(out, str(landing), "day")[0]
    shutil.rmtree(landing)
    put(str(landing), FILES | {"part/b.warc.gz": b"SECOND"})
    assert land(out, str(landing), "day")[0] != before
    shutil.rmtree(landing)
    put(str(landing), FILES)
    assert land(out, str(landing), "day")[0] == before


def test_the_digest_of_a_promise_is_believed_until_the_file_is_read(tmp_path: Path) -> None:
    body: dict[str, Any] = json.loads(promise(FILES))
    body["files"][0]["sha256"] = "0" * 64
    put(str(tmp_path), FILES | {"snapshot.json": json.dumps(body).encode()})
    assert land(f"{tmp_path}-out", str(tmp_path))[1].shards[0].digest == "0" * 64
