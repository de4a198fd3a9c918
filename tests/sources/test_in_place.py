"""A landing lists objects of other stores, with keys of their own or none, and a run reads them where they are."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from refinery_sources.in_place import require_bucket

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError, SnapshotIncomplete
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store import storage
from pipeline_tasks.store.s3.client import s3_client
from tests.archives import PAGE, http, response, warc, zipped
from tests.commands import Refinery
from tests.crawl_mirror import CRAWL, Mirror
from tests.faulty_s3 import FaultyS3, faulty_s3
from tests.s3_server import S3Server
from tests.s3_server import s3_server as running_s3_server
from tests.sources.pulling import promise_of, pull_source

pytestmark = pytest.mark.slow

RECIPE = """
name: small
stages:
  ingest: {}
  extract: {min_chars: 20}
run: {partitions: 1}
gates: {}
"""
KEYS = ("partner", "partner/secret+1")
VARIABLE = "REFINERY_STORE_PARTNER"


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A second S3 server, which the environment does not name."""
    with running_s3_server(tmp_path_factory.mktemp("other")) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Other:
    """A store of another: its gate, and a bucket in it."""

    gate: FaultyS3
    bucket: str
    server: S3Server

    def client(self) -> Any:
        """A client of who owns it."""
        return s3_client("owner")

    def put(self, key: str, body: bytes) -> None:
        self.client().put_object(Bucket=self.bucket, Key=key, Body=body)

    def put_crawl(self, archives: dict[str, bytes], mirror: Mirror) -> None:
        """Put a crawl into the bucket; the mirror has its list alone."""
        for path, body in zip(mirror.add(archives), archives.values(), strict=True):
            self.put(path, body)
            del mirror.files[f"/{path}"]


@pytest.fixture(params=["keys", "anonymous"])
def other(
    request: pytest.FixtureRequest, s3_root: str, other_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Other]:
    """Another store: one that takes requests of one pair of keys, or none that are signed."""
    bucket = f"{request.param}-{s3_root.partition('-')[2][:12]}"
    with faulty_s3(other_server.endpoint) as gate:
        gate.keys = KEYS if request.param == "keys" else ("", "")
        who = ":".join(KEYS) if request.param == "keys" else "anonymous"
        monkeypatch.setenv(VARIABLE, f"{who} {gate.endpoint}")
        monkeypatch.setenv("REFINERY_STORE_OWNER", f"anonymous {other_server.endpoint}")
        monkeypatch.setenv("REFINERY_PLACES", f"partner+s3://{bucket}")
        there = Other(gate, bucket, other_server)
        there.client().create_bucket(Bucket=bucket)
        yield there


def pages(number: int) -> bytes:
    records = [
        response(
            f"https://example.org/{number}/{at}", http(PAGE.replace(b"sentence", b"sentence %d-%d" % (number, at)))
        )
        for at in range(20)
    ]
    return b"".join(zipped(records))


ARCHIVES = {f"part-{number}.warc.gz": pages(number) for number in range(3)}


def crawl(other: Other, mirror: Mirror) -> dict[str, Any]:
    query = {"crawl": CRAWL, "address": mirror.address, "in_place": True, "bucket": f"s3://{other.bucket}"}
    return {"common_crawl": query | {"store": "partner"}}


def documents(refinery: Refinery, landing: object, root: object, tmp_path: Path, *words: str) -> int:
    recipe = tmp_path / "small.yaml"
    recipe.write_text(RECIPE)
    done = refinery("run", "--input", landing, "--output", root, "--recipe", recipe, "--engine", "local", *words)
    assert done.returncode == 0, done.stderr
    return version_log.current(str(root), "small", CRAWL).documents


def test_a_crawl_of_another_store_is_listed_verified_and_refined_without_a_copy(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, landed = pull_source(crawl(other, mirror), tmp_path / "landings")
    assert (landed.files, landed.bytes) == (3, sum(map(len, ARCHIVES.values())))
    assert other.gate.ranges == []
    assert [file.name for file in landing.iterdir()] == ["snapshot.json"]
    promise = promise_of(landing)
    assert "stores" not in promise
    assert other.gate.endpoint not in json.dumps(promise)
    assert {file["store"] for file in promise["files"]} == {"partner"}
    assert KEYS[1] not in json.dumps(promise)
    root = f"{s3_root}/refined"
    assert documents(refinery, landing, root, tmp_path) == 60
    for words in (["verify", root], ["verify", root, "--fast"]):
        done = refinery(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    again, before = pull_source(crawl(other, mirror), tmp_path / "landings")
    assert (again, before.is_new) == (landing, False)


def test_rows_in_place_are_those_of_a_copy(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    copy = tmp_path / CRAWL
    copy.mkdir()
    for name, body in ARCHIVES.items():
        (copy / name).write_bytes(body)
    roots = [tmp_path / "there", tmp_path / "here"]
    for place, root in zip([landing, copy], roots, strict=True):
        assert documents(refinery, place, root, tmp_path) == 60
    kept = [shards(str(root), "extract") for root in roots]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("other", ["keys"], indirect=True)  # what workers could lack
@pytest.mark.parametrize("engine", ["spark", pytest.param("ray", marks=pytest.mark.nightly)])
def test_workers_of_every_engine_find_the_store_and_its_keys(
    engine: str, other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    roots = [str(tmp_path / "local"), f"{s3_root}/refined"]
    assert documents(refinery, landing, roots[0], tmp_path) == 60
    words = ["run", "--input", landing, "--output", roots[1], "--recipe", tmp_path / "small.yaml", "--engine", engine]
    command = [sys.executable, "-m", "pipeline_tasks.cli", *map(str, words), "--no-build"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert shards(roots[0], "extract") == shards(roots[1], "extract")


def test_pages_are_read_by_their_places(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    noise = zipped([warc("request", os.urandom(40_000), f"https://example.org/{at}") for at in range(100)])
    other.put_crawl({"part-0.warc.gz": pages(0) + b"".join(noise)}, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    assert documents(refinery, landing, tmp_path / "root", tmp_path) == 20
    [file] = promise_of(landing)["files"]
    spans = [tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in other.gate.ranges]
    sizes = [min(stop + 1, file["bytes"]) - start for start, stop in spans]
    whole = [size for size in sizes if size == file["bytes"]]
    assert len(whole) == 3  # two looks at the first records, which take all of so small a file, and `ingest`
    assert 0 < sum(sizes) - sum(whole) < file["bytes"] / 50  # `extract`


def shards(root: str, stage: str) -> list[str]:
    return [entry.path.rpartition("/")[2] for entry in storage.connect(root).list(stage) if "arrow" in entry.path]


def test_an_object_that_was_changed_since_it_was_listed_is_refused_by_name(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    address = promise_of(landing)["files"][1]["address"]
    body = bytearray(ARCHIVES["part-1.warc.gz"])
    body[-1] ^= 1
    other.put(address.removeprefix(f"s3://{other.bucket}/"), bytes(body))  # of the same length
    recipe = tmp_path / "small.yaml"
    recipe.write_text(RECIPE)
    done = refinery("run", "--input", landing, "--output", tmp_path / "root", "--recipe", recipe, "--engine", "local")
    assert done.returncode == 65
    assert address in done.stderr
    assert "partner" in done.stderr
    with pytest.raises(DigestMismatch, match=address):
        storage.open_landed(f"{landing}/snapshot.json/part-1.warc.gz").read()


def test_verify_names_an_object_that_was_changed_since(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, refinery: Refinery
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    root = tmp_path / "root"
    documents(refinery, landing, root, tmp_path)
    address = promise_of(landing)["files"][2]["address"]
    other.put(address.removeprefix(f"s3://{other.bucket}/"), ARCHIVES["part-0.warc.gz"])
    done = refinery("verify", root)
    assert done.returncode == 65
    assert "part-2.warc.gz" in done.stdout + done.stderr


def test_a_refusal_names_the_store_and_nothing_of_the_process_is_sent_there(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    other.gate.keys = ("somebody", "else")
    with pytest.raises(RecipeError, match="partner"):
        pull_source(crawl(other, mirror), tmp_path / "landings")
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(RecipeError, match=VARIABLE):
        pull_source(crawl(other, mirror), tmp_path / "landings")


def test_a_missing_object_lands_nothing_and_is_named(
    other: Other, s3_root: str, mirror: Mirror, tmp_path: Path
) -> None:
    other.put_crawl(ARCHIVES, mirror)
    key = f"crawl-data/{CRAWL}/segments/1700000001.1/warc/part-1.warc.gz"
    other.client().delete_object(Bucket=other.bucket, Key=key)
    with pytest.raises(SnapshotIncomplete, match="part-1"):
        pull_source(crawl(other, mirror), tmp_path / "landings")
    requests = other.gate.requests
    other.put(key, ARCHIVES["part-1.warc.gz"])
    _, landed = pull_source(crawl(other, mirror), tmp_path / "landings")
    assert (landed.files, landed.found) == (3, 2)
    assert other.gate.requests == requests + 1


def test_a_prefix_of_another_store_is_read_in_place_or_copied(
    other: Other, s3_root: str, tmp_path: Path, refinery: Refinery
) -> None:
    line = {"body": "The ferry leaves the harbor every morning before the fog has lifted from the water. " * 3}
    for number in range(2):
        body = "".join(json.dumps(line | {"link": f"https://a.org/{number}/{at}"}) + "\n" for at in range(5))
        other.put(f"news/{number}/a.jsonl", body.encode())
    files = {"place": f"s3://{other.bucket}/news", "format": "jsonl", "fields": {"text": "body", "url": "link"}}
    source = {"files": files | {"store": "partner"}}
    copied, _ = pull_source(source, tmp_path / "copied")
    assert (copied / "1" / "a.jsonl").is_file()
    source["files"]["in_place"] = True
    landing, landed = pull_source(source, tmp_path / "landings")
    assert landed.files == 2
    assert sorted(list_snapshot(str(landing)).elsewhere) == ["0/a.jsonl", "1/a.jsonl"]
    assert list_snapshot(f"{landing}/snapshot.json") == list_snapshot(str(landing))
    recipe, root = tmp_path / "small.yaml", tmp_path / "root"
    recipe.write_text(RECIPE)
    done = refinery("lint", recipe, "--input", landing)
    assert done.returncode == 0, done.stdout
    done = refinery("run", "--input", landing, "--output", root, "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert version_log.current(str(root), "small", landing.name).documents == 10


def test_a_list_of_other_bytes_is_noticed(other: Other, s3_root: str, mirror: Mirror, tmp_path: Path) -> None:
    other.put_crawl(ARCHIVES, mirror)
    landing, _ = pull_source(crawl(other, mirror), tmp_path / "landings")
    promise = promise_of(landing)
    promise["files"][0]["bytes"] -= 1
    (landing / "snapshot.json").write_text(json.dumps(promise))
    with pytest.raises(DigestMismatch, match=promise["files"][0]["address"]):
        storage.open_landed(f"{landing}/snapshot.json/part-0.warc.gz")


@pytest.mark.parametrize(
    "change",
    [
        {"address": "https://a.org/x"},
        {"address": "s3://bucket"},
        {"etag": ""},
        {"etag": None},
        {"etag": "*"},
        {"etag": 'W/"1"'},
        {"etag": "1\r\nx-amz-acl: public-read"},
        {"path": ""},
        {"path": "../a.jsonl"},
        {"path": "a/./b.jsonl"},
        {"path": "/a.jsonl"},
        {"path": "a\ud800.jsonl"},
        {"path": "snapshot.json"},
        {"bytes": -1},
        {"bytes": 1 << 63},
        {"address": "s3://bucket/a\ud800"},
        {"store": ["unknown"]},
        {"store": "S"},
        {"store": "partner\n"},
        {"store": "https://evil.example"},
        {"stores": ["a"]},
        {"stores": {"A B": "x"}},
        {"stores": {"a": "x"}},
    ],
)
def test_a_list_that_is_wrong_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    file = {"path": "a.jsonl", "bytes": 1, "sha256": "", "address": "s3://bucket/a", "etag": "1"}
    stores = {"stores": change["stores"]} if "stores" in change else {}
    (tmp_path / "snapshot.json").write_text(json.dumps({"snapshot": "s", "files": [file | change], **stores}))
    with pytest.raises(ContractError, match=r"snapshot\.json"):
        list_snapshot(str(tmp_path))
    with pytest.raises(ContractError, match=r"snapshot\.json"):
        storage.open_landed(f"{tmp_path}/snapshot.json/a.jsonl")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "key",
        "key: https://s3.example.org",
        "k:s s3.example.org",
        "k:s ftp://s3.example.org",
        "k:s https://key:secret@s3.example.org",
        "k:s https://s3.example.org/path",
        "k:s https://s3.example.org:99999",
        "k:s https://s3.example.org eu more",
    ],
)
def test_a_store_that_makes_no_sense_is_refused_and_no_secret_is_repeated(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(RecipeError, match=VARIABLE) as raised:
        s3_client("partner")
    assert not value or value not in str(raised.value)


FILE = {"path": "a.jsonl", "bytes": 1, "sha256": "", "address": "s3://bucket/a", "etag": "1"}


def listing(folder: Path, file: dict[str, Any], **more: Any) -> Path:
    """Write the list of a landing as somebody else would."""
    (folder / "snapshot.json").write_text(json.dumps({"snapshot": "s", "files": [FILE | file], **more}))
    return folder


@pytest.mark.parametrize("name", ["partner", "stores", "s", "ledger", "aws_default"])
@pytest.mark.parametrize("field", ["env", "connection"])
def test_a_list_names_no_endpoint_no_variable_and_no_connection(
    field: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a list says of a store sends nothing anywhere: the secrets of the process stay in it."""
    monkeypatch.setenv("REFINERY_PLACES", f"{name}+s3://bucket s3://bucket")
    for secret in ("REFINERY_STORES", "REFINERY_LEDGER", "AIRFLOW_CONN_AWS_DEFAULT"):
        monkeypatch.setenv(secret, "{}")
    for evil in ("REFINERY_STORES", "REFINERY_LEDGER", "aws_default"):
        with faulty_s3("http://127.0.0.1:9") as theirs:
            block = {"endpoint": theirs.endpoint, field: evil}
            place = listing(tmp_path, {"store": name}, stores={name: block})
            with pytest.raises(RecipeError, match=f"REFINERY_STORE_{name.upper()}"):
                list_snapshot(str(place))
            with pytest.raises(RecipeError, match=f"REFINERY_STORE_{name.upper()}"):
                storage.open_landed(f"{place}/snapshot.json/a.jsonl").read()
            assert theirs.requests == 0


@pytest.mark.parametrize(
    ("block", "is_taken"),
    [
        ({"endpoint": "https://s3.partner.example", "env": "REFINERY_PARTNER"}, True),
        ({"endpoint": "https://s3.partner.example", "region": "us-east-1"}, True),
        ({"endpoint": "https://s3.partner.example", "region": "eu-central-1"}, False),
        ({"endpoint": "https://s3.partner.example", "anonymous": True}, False),
        ({"endpoint": "https://evil.example"}, False),
        ({"endpoint": "http://169.254.169.254"}, False),
        ({}, False),
    ],
)
def test_a_list_of_an_earlier_release_is_read_where_it_says_what_the_operator_says(
    block: dict[str, Any], is_taken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "key:secret https://s3.partner.example")
    monkeypatch.setenv("REFINERY_PLACES", "partner+s3://bucket")
    place = listing(tmp_path, {"store": "partner"}, stores={"partner": block})
    if is_taken:
        assert list_snapshot(str(place)).elsewhere == {"a.jsonl"}
    else:
        with pytest.raises(RecipeError, match="remove `stores`"):
            list_snapshot(str(place))


@pytest.mark.parametrize(
    ("places", "file", "is_named"),
    [
        ("", {}, False),
        ("s3://bucket", {}, True),
        ("s3://bucket/a", {}, True),
        ("s3://bucket/b", {}, False),
        ("s3://buck", {}, False),
        ("s3://bucket/b", {"address": "s3://bucket/b/../a"}, False),
        ("s3://bucket", {"store": "partner"}, False),
        ("partner+s3://bucket", {"store": "partner"}, True),
        ("partner+s3://bucket", {"store": "other"}, False),
        ("partner+s3://bucket", {}, False),
    ],
)
def test_a_list_points_to_places_that_the_operator_names_alone(
    places: str, file: dict[str, Any], is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFINERY_PLACES", places)
    place = listing(tmp_path, file)
    if is_named:
        assert list_snapshot(str(place)).elsewhere == {"a.jsonl"}
        return
    with pytest.raises(RecipeError, match="REFINERY_PLACES"):
        list_snapshot(str(place))
    with pytest.raises(RecipeError, match="REFINERY_PLACES"):
        storage.open_landed(f"{place}/snapshot.json/a.jsonl")


@pytest.mark.parametrize(
    "files",
    [
        {"place": "IN", "format": "jsonl", "in_place": True},
        {"place": "IN", "format": "jsonl", "store": "a"},
        {"place": "s3://bucket", "format": "csv", "in_place": True},
    ],
)
def test_what_cannot_stay_in_place_is_refused(files: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "IN").mkdir()
    files = files | {"place": files["place"].replace("IN", str(tmp_path / "IN"))}
    with pytest.raises(RecipeError, match=r"in_place|store"):
        pull_source({"files": files}, tmp_path / "landings")


@pytest.mark.parametrize("place", ["gs://bucket/prefix", "az://container/prefix"])
def test_files_of_other_buckets_do_not_stay_there(place: str) -> None:
    """A list of addresses names S3's endpoint, region and keys, and its ETags are asked for there."""
    with pytest.raises(RecipeError, match=re.escape(place)):
        require_bucket(place, in_place=True, store="")
    require_bucket(place, in_place=False, store="")
