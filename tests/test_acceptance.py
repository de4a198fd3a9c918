"""Whole snapshots, refined from landing to documents and built to tokens, against what is known of them."""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastwarc.warc import ArchiveIterator

from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.main import main
from pipeline_tasks.demo import truth
from pipeline_tasks.demo.crawl import write_crawl
from pipeline_tasks.demo.show import compared
from pipeline_tasks.demo.truth import Truth
from pipeline_tasks.errors import ContractError
from pipeline_tasks.inspect.document.trace import trace
from pipeline_tasks.inspect.verify.verification import Scope, verify
from pipeline_tasks.publish.datasets.building import file_of
from pipeline_tasks.publish.datasets.published_shards import open_build
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.publish.published import read_published_file
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.sealed import path_of
from pipeline_tasks.store import storage, store_settings
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import days as daily
from tests.chain import PROJECT, Chain, How, Place, build_of, built, cut, refined, reply, requests

pytestmark = [pytest.mark.slow]

SMALL = How(changes={"extract": {"method": "resiliparse"}})
"""The recipe `web` with the texts of resiliparse, whose similarity `truth/recrawl-pairs` has."""

TRAINED = {"train": {"vocab_size": 4096, "min_bytes": 0}}
"""For less text than the 10 MB that a build asks for to train a tokenizer on."""

Days = tuple[Chain, Chain]
Row = dict[str, Any]


@pytest.fixture(scope="session")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's crawl, a tenth of it: `2026-11-19` and `2026-11-20`, and `truth.json`."""
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder, files=6, scale=0.1)
    return folder


@pytest.fixture(scope="session")
def how(crawl: Path) -> How:
    """The demo's recipe, with the questions of this crawl."""
    return How("demo", changes={"decontaminate": {"benchmarks": {"demo_questions": str(crawl / "benchmark.jsonl")}}})


@pytest.fixture(scope="session")
def demo(crawl: Path, how: How, tmp_path_factory: pytest.TempPathFactory) -> Days:
    root = str(tmp_path_factory.mktemp("demo"))
    return refined(root, str(crawl / "2026-11-19"), how), refined(root, str(crawl / "2026-11-20"), how)


@pytest.fixture(scope="session")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Days:
    root = str(tmp_path_factory.mktemp("real"))
    snapshots = shared_data / "snapshots"
    return refined(root, str(snapshots / "dev-2026-45"), SMALL), refined(root, str(snapshots / "dev-2026-46"), SMALL)


@pytest.fixture(params=["demo", "real"])
def days(request: pytest.FixtureRequest) -> Days:
    results: Days = request.getfixturevalue(request.param)
    return results


# --- Nothing is lost ------------------------------------------------------------------------------------------


def test_every_stage_accounts_for_its_rows(days: Days) -> None:
    for day in days:
        parent = None
        for stage in day.stages():
            manifest = day.manifest(stage)
            if stage_card(stage).conserves == "rows":
                stored = Counter(row["reason"] for row in day.rejected_rows(stage, ["reason"]))
                assert stored == {**manifest.rejected, **manifest.quarantined}
                assert manifest.rows_in == manifest.rows + stored.total()
                assert parent is None or manifest.rows_in == parent.rows
                assert set(stored) <= set(stage_card(stage).reasons)
                assert all(row["evidence"] for row in day.rows(stage, "rejects", ["evidence"]))
            parent = manifest


def test_verify_reports_no_problem(days: Days) -> None:
    for day in days:
        report = verify(day.root, Scope(snapshot=day.version.snapshot))
        (account,) = report.accounts
        assert report.findings.problems == []
        assert account.balanced
        assert account.records == len(day.outcomes())
        assert account.published == day.version.documents


@pytest.mark.nightly
def test_verify_notices_what_was_changed(demo: Days, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, day = str(shutil.copytree(demo[0].root, tmp_path / "root")), demo[1]
    shard = Path(root, day.manifest("filter_quality").shards[0].path)
    kept = day.rows("decontaminate", columns=["file", "offset"])[0]
    file = Path(day.version.landing, kept["file"])
    with flipped(shard, -20), flipped(file, kept["offset"] + 20):
        problems = verify(root).findings.problems
        assert main(["verify", root]) == ContractError.exit_code
    assert {(problem.object, problem.problem) for problem in problems} == {
        (str(path), "its bytes were changed") for path in (shard, file)
    }
    assert "2 problems" in capsys.readouterr().out
    assert verify(root).findings.problems == []


@contextlib.contextmanager
def flipped(path: Path, at: int) -> Iterator[None]:
    """Change a bit of a file, and bring it back."""
    before = path.read_bytes()
    body = bytearray(before)
    body[at] ^= 1
    path.write_bytes(body)
    try:
        yield
    finally:
        path.write_bytes(before)


@pytest.fixture
def dataset(days: Days) -> Version:
    """The training dataset of both days."""
    return built(days[0].root, build_of(days[0].version.recipe, TRAINED, 1024))


def test_tokens_of_kept_documents_are_all_packed(days: Days, dataset: Version) -> None:
    root = days[0].root
    shuffled = read_manifest(root, dataset.manifests["shuffle"])
    documents = pa.Table.from_batches(list(read_shards(root, shuffled.shards, ["id", "n_tokens"]))).to_pylist()
    packed: Counter[str] = Counter()
    for entry in open_build(root, dataset).index["shards"]:
        lineage = pq.read_table(pa.BufferReader(read_published_file(root, file_of(entry["lineage"]))))
        for name, length in zip(lineage["id"].to_pylist(), lineage["length"].to_pylist(), strict=True):
            packed[name] += length
    assert packed == {row["id"]: row["n_tokens"] for row in documents}
    assert dataset.tokens == packed.total()
    superseded = read_manifest(root, dataset.manifests["select"]).rejected.get("select:superseded", 0)
    assert dataset.documents == sum(day.version.documents for day in days) - superseded


def landed(day: Chain) -> dict[Place, str]:
    """Every record of a snapshot's sound files, as another reader sees them: (file, offset) -> WARC-Record-ID."""
    return {
        (path.name, record.stream_pos): record.record_id
        for path in sorted(Path(day.version.landing).glob("*.warc.gz"))
        for record in ArchiveIterator(path.open("rb"), parse_http=False)
    }


def test_every_record_of_real_snapshots_has_one_outcome(real: Days) -> None:
    first, second = real
    assert landed(first).keys() == first.outcomes().keys()
    assert landed(second).keys() == second.outcomes().keys()
    assert (len(first.outcomes()), len(second.outcomes())) == (3027, 1820)


def test_random_tokens_lead_back_to_their_records(days: Days, dataset: Version) -> None:
    draw = Random(7)
    texts = {day.version.snapshot: day.by_place("decontaminate", ["text", "id"]) for day in days}
    for position in [0, dataset.tokens - 1, *(draw.randrange(dataset.tokens) for _ in range(40))]:
        results = trace(days[0].root, dataset, position)
        document = texts[results.snapshot][results.file, results.offset]
        context = results.text.removesuffix(_end(results.text)).strip("\N{REPLACEMENT CHARACTER}")
        assert context in document["text"]
        assert document["id"] == results.document
        assert any(results.record in line for line in results.header)
        with Path(results.landed).open("rb") as stream:
            stream.seek(results.offset)
            record = next(iter(ArchiveIterator(stream)))
        assert record.record_id.strip("<>") == results.record.strip("<>")
        assert record.headers["WARC-Target-URI"] == results.url


def _end(text: str) -> str:
    """The end-of-document token that a decoded stretch may close with."""
    at = text.rfind("<|endoftext|>")
    return text[at:] if at >= 0 else ""


# --- Planted and known records are matched ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def planted(crawl: Path) -> Truth:
    return truth.load(crawl / "truth.json")


def test_every_planted_record_has_one_outcome(demo: Days, planted: Truth) -> None:
    for day in demo:
        plants = [plant for plant in planted.plants if plant.snapshot == day.version.snapshot]
        outcomes = day.outcomes()
        seen = Counter(row["record_id"] for stage in day.stages() for row in day.rejected_rows(stage, ["record_id"]))
        seen += Counter(row["record_id"] for row in day.rows(day.stages()[-1], columns=["record_id"]))
        ids = {name.strip("<>") for name in seen if name}
        damaged = {
            name for plant in plants if plant.kind in {"flipped", "short", "long", "cut"} for name in plant.records
        }
        assert {name for plant in plants for name in plant.records} - damaged <= ids
        for plant in plants:
            for file, start, length in plant.places:
                hits = [place for place in outcomes if place[0] == file and start <= place[1] < start + length]
                assert hits, f"{plant.kind} at {file}:{start} left no row"


def test_planted_records_meet_what_is_due(demo: Days, planted: Truth) -> None:
    """The lines that end the demo: nothing planted is missed but what its own kind allows."""
    first, second = demo
    lines = compared(first.root, planted, [first.version, second.version])
    missed = {line.split()[0]: int(line.split()[-1]) for line in lines}
    certain = {
        "unchanged", "revisit", "exact", "exact_across", "not_html", "http_error", "redirect", "language", "edited",
        "flipped", "short", "long", "cut", "bomb", "contaminated", "pii_email", "pii_phone", "pii_ip",
    }  # fmt: skip
    assert {kind: missed[kind] for kind in certain if missed[kind]} == {}, "\n".join(lines)


def test_just_the_pages_planted_as_unchanged_are_unchanged(demo: Days, planted: Truth) -> None:
    second = demo[1]
    ids = [
        row["record_id"].strip("<>")
        for row in second.rows("ingest", "rejects", ["record_id", "reason"])
        if row["reason"] == "ingest:unchanged"
    ]
    due = [name for plant in planted.plants if plant.kind in {"unchanged", "revisit"} for name in plant.records]
    assert Counter(ids) == Counter(due)


def listed(shared_data: Path, day: Chain) -> dict[Place, Row]:
    """The snapshot's own account of its pages, by place."""
    path = shared_data / "snapshots" / day.version.snapshot / "manifest.jsonl.gz"
    return {(row["file"], row["offset"]): row for row in lines(path)}


def lines(path: Path) -> list[Row]:
    with gzip.open(path, "rt") as stream:
        return [json.loads(line) for line in stream]


def test_just_the_unchanged_pages_of_a_real_recrawl_are_unchanged(real: Days, shared_data: Path) -> None:
    pages = listed(shared_data, real[1])
    due = {place for place, row in pages.items() if row["status"] == "unchanged"}
    results = real[1].by_place("ingest", ["url", "reason", "payload_digest"], "rejects")
    unchanged = {place: row for place, row in results.items() if row["reason"] == "ingest:unchanged"}
    assert unchanged.keys() == due
    assert len(due) == 175
    assert sum(pages[place]["record"] == "revisit" for place in due) == 23
    for place, row in unchanged.items():
        assert row["url"] == pages[place]["url"]
        assert row["payload_digest"] == "sha1:" + base64.b32encode(bytes.fromhex(pages[place]["payload_sha1"])).decode()


def test_copies_of_earlier_documents_are_recognized_by_content(days: Days) -> None:
    first, second = days
    before = {row["id"]: row for row in first.rows("dedup_exact", columns=["id", "file", "offset"])}
    arrived = second.by_place("filter_quality", ["id"])
    rejected_rows = second.by_place("dedup_exact", ["id", "reason", "evidence"], "rejects")
    seen = {place: row for place, row in rejected_rows.items() if row["reason"] == "dedup_exact:seen_before"}
    assert seen.keys() == {place for place, row in arrived.items() if row["id"] in before}
    assert seen
    for row in seen.values():
        winner = json.loads(row["evidence"])["winner"]
        original = before[row["id"]]
        assert (winner["file"], winner["offset"]) == (original["file"], original["offset"])
    ids = [row["id"] for row in second.rows("dedup_exact", columns=["id"])]
    assert len(ids) == len(set(ids))


def by_payload(pages: dict[Place, Row], rows: dict[Place, Row]) -> dict[tuple[str, str], Row]:
    return {(pages[place]["url"], pages[place]["payload_sha1"]): row for place, row in rows.items() if place in pages}


def test_changed_pages_of_a_real_recrawl_are_near_duplicates_as_their_similarity_says(
    real: Days, shared_data: Path
) -> None:
    first, second = real
    old, new = listed(shared_data, first), listed(shared_data, second)
    before = by_payload(old, first.by_place("dedup_minhash", ["id"]))
    arrived = by_payload(new, second.by_place("dedup_exact", ["id"]))
    near = by_payload(new, second.by_place("dedup_minhash", ["evidence"], "rejects"))
    superseded = {row["id"]: row for row in daily.superseded(Path(second.root), second.manifest("dedup_minhash"))}
    similar = missed = different = 0
    for pair in lines(shared_data / "truth" / "recrawl-pairs.jsonl.gz"):
        original = before.get((pair["url"], pair["sha1_first"]))
        page = (pair["url"], pair["sha1_second"])
        if original is None or page not in arrived:
            continue
        proof = json.loads(near[page]["evidence"]) if page in near else {}
        lost = superseded.get(original["id"], {"near": "", "winner": {"id": ""}, "similarity": 0})
        newer = arrived[page]["id"] in {lost["near"], lost["winner"]["id"]}
        results = newer or original["id"] in {proof.get("winner"), proof.get("near")}
        if pair["jaccard_word5"] >= 0.85:
            similar, missed = similar + 1, missed + (not results)
        elif pair["jaccard_word5"] < 0.75:
            different += 1
            assert not results, f"{page} is no near duplicate: {pair['jaccard_word5']}"
        if results:
            assert (lost["similarity"] if newer else proof["jaccard"]) >= 0.8
    assert (similar > 250, different > 30) == (True, True)
    assert missed <= 0.012 * similar, f"{missed} of {similar} missed; 14 bands of 8 rows find 98.8% at 0.85"


@pytest.mark.nightly
def test_real_crawls_in_days_keep_what_one_batch_of_them_keeps(real: Days, tmp_path: Path) -> None:
    """Every page of both snapshots, dealt out to two days: their dataset is what comparing all with all would keep."""
    pages = {row["id"]: row for day in real for row in day.rows("extract", columns=DOCUMENT.names)}
    table = pa.Table.from_pylist([pages[name] for name in sorted(pages)], DOCUMENT)
    dealt = Random(1).sample(range(table.num_rows), table.num_rows)
    params = {"buckets": 2, "policy": ["longest"]}
    run = daily.refined(tmp_path, [table.take(pa.array(dealt[part::2])) for part in range(2)], params)
    assert run.dataset == daily.winners(table, params)
    assert len(daily.superseded(tmp_path, run.manifests[1])) > 50
    assert sum(map(daily.unsettled, run.manifests)) == 0


# --- Real archives, damaged ones among them -------------------------------------------------------------------


def test_every_real_archive_is_read_and_none_ends_the_run(shared_data: Path, tmp_path: Path) -> None:
    """Some have names of no archive: a list that promises them makes them part of the snapshot."""
    folder = shared_data / "warc-real"
    landing = tmp_path / "landing"
    shutil.copytree(folder, landing, ignore=shutil.ignore_patterns("INDEX.json"))
    files = [{"path": path.name, "bytes": path.stat().st_size, "sha256": ""} for path in sorted(landing.iterdir())]
    (landing / "snapshot.json").write_text(json.dumps({"snapshot": "warc-real", "files": files}))
    day = refined(str(tmp_path / "root"), str(landing))
    outcomes = day.outcomes()
    rows = Counter(file for file, _ in outcomes)
    assert rows.keys() == {path.name for path in folder.iterdir()} - {"INDEX.json"}
    assert {reason.partition(":")[0] for reason in outcomes.values()} >= {"kept", "ingest", "error"}
    for entry in json.loads((folder / "INDEX.json").read_text()):
        if not entry["warcio_error"] and entry["file"] not in UNEVEN:
            records = sum(count for kind, count in entry["records"].items() if not kind.startswith("html"))
            assert rows[entry["file"]] == records, entry["file"]
    assert verify(day.root).findings.problems == []


UNEVEN = {"warcio__bad.arc", "gowarc__empty.warc.gz.open"}
"""One whose records nobody can tell apart, and one without any: the finding itself is its row."""


# --- The same, however it is run ------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def undisturbed(demo: Days) -> dict[str, str]:
    """Digests of the demo's first day, refined on the reference engine in one piece, before there was another."""
    return demo[0].sealed()


@pytest.mark.parametrize(
    ("on", "partitions"),
    [
        ("local", 3),
        *(pytest.param(on, count, marks=pytest.mark.nightly) for on in ("spark", "ray") for count in (1, 3)),
    ],
)
def test_engines_and_partitions_seal_the_same_bytes(
    on: str,
    partitions: int,
    crawl: Path,
    how: How,
    undisturbed: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """In three partitions; the suite has Spark and Ray in one run, `test_workers_of_engines_that_take_turns_...`."""
    address = "" if on == "local" else request.getfixturevalue(on)
    way = replace(how, on=on, address=address, partitions=partitions)
    assert refined(str(tmp_path), str(crawl / "2026-11-19"), way).sealed() == undisturbed


@pytest.mark.parametrize(
    ("any_bucket", "objects"),
    [
        *((kind, "landing and root") for kind in ("s3", "az")),
        *(
            pytest.param(kind, place, marks=pytest.mark.nightly)
            for kind, place in (("gs", "landing and root"), ("s3", "landing"), ("s3", "root"))
        ),
    ],
    indirect=["any_bucket"],
)
def test_stores_of_objects_have_the_same_bytes_as_folders(
    objects: str,
    crawl: Path,
    how: How,
    undisturbed: dict[str, str],
    any_bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFINERY_LEDGER", str(tmp_path / "ledger.sqlite"))
    landing = str(crawl / "2026-11-19")
    if "landing" in objects:
        landing = f"{any_bucket}-landing/2026-11-19"
        for path in (crawl / "2026-11-19").iterdir():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            storage.connect(landing).put_file(path.name, path, digest)
    day = refined(any_bucket if "root" in objects else str(tmp_path / "root"), landing, how)
    assert day.sealed() == undisturbed
    assert verify(day.root).findings.problems == []


@pytest.mark.parametrize(
    ("any_bucket", "turns"),
    [
        ("gs", ("spark", "ray")),
        *(
            pytest.param(bucket, turns, marks=pytest.mark.nightly)
            for bucket in ("gs", "az")
            for turns in (("spark",), ("ray",))
        ),
    ],
    indirect=["any_bucket"],
)
def test_workers_of_engines_that_take_turns_read_and_write_other_buckets(
    any_bucket: str,
    turns: tuple[str, ...],
    crawl: Path,
    how: How,
    undisturbed: dict[str, str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stages of one day are on one engine after the other, each in three partitions.

    A worker of Spark is forked, and obstore works in no process that was forked after a request. Workers may be older
    than the keys, so these go with the tasks.
    """
    keys = {name: value for name, value in os.environ.items() if name.startswith(("GOOGLE_", "AZURE_"))}
    monkeypatch.setenv(store_settings.STORES, json.dumps({any_bucket: keys}))
    monkeypatch.setenv("REFINERY_LEDGER", f"{request.getfixturevalue('tmp_path')}/ledger.sqlite")
    places = [(name, request.getfixturevalue(name)) for name in turns]
    way = replace(how, turns=cycle(places), partitions=3)
    assert refined(any_bucket, str(crawl / "2026-11-19"), way).sealed() == undisturbed


# --- A partition that is killed -------------------------------------------------------------------------------


def test_a_killed_partition_alone_runs_again_and_only_what_it_lacked(crawl: Path, how: How, tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    landed = reply("land", root=root, input=str(crawl / "2026-11-19"))
    stage_requests = dict(requests({"root": root, "landing": landed["landing"]}, how))
    ingested = reply("refine", **stage_requests["ingest"], parent=landed["manifest"])
    whole = str(shutil.copytree(root, tmp_path / "whole"))
    extract = {**stage_requests["extract"], "parent": ingested["manifest"]}
    spans = cut(extract, 2)
    sound = reply("refine", **extract, span=spans[0])
    before = set(receipts(root))

    kill_at_first_receipt({"verb": "refine", **extract, "span": spans[1]}, tmp_path)
    kept = len(receipts(root)) - len(before)
    shards = spans[1][1] - spans[1][0]
    assert 1 <= kept < shards, "the partition was not killed halfway"

    again = [reply("refine", **extract, span=span) for span in spans]
    assert [(refined["ran"], refined["reused"]) for refined in again] == [(0, 0), (shards - kept, kept)]
    assert again[0]["manifest"] == sound["manifest"]
    sealed = reply("seal", stage=extract, spans=spans)["manifest"]
    assert reply("refine", **extract | {"root": whole})["manifest"] == sealed
    assert storage.connect(root).read(path_of(sealed)) == storage.connect(whole).read(path_of(sealed))


def receipts(root: str) -> list[str]:
    return [str(path) for path in Path(root).glob("extract/*/receipts/*.json")]


HALTED = """
import os, signal, sys
from pipeline_tasks.service.handle import main
from pipeline_tasks.store.local_store import LocalStore

create = LocalStore.create

def halted(self, path, body):
    done = create(self, path, body)
    if "/receipts/" in path:
        os.kill(os.getpid(), signal.SIGSTOP)
    return done

LocalStore.create = halted
sys.exit(main(sys.argv[1:]))
"""
"""Handles a request, and stops for good as soon as a shard is done."""


def kill_at_first_receipt(request: Row, folder: Path) -> None:
    """Start a request in a process of its own, and kill -9 it as soon as a shard is done; its children end too."""
    path = folder / "request.json"
    path.write_text(json.dumps(request))
    worker = psutil.Popen([sys.executable, "-c", HALTED, str(path)], cwd=PROJECT, stdout=subprocess.DEVNULL)
    while worker.poll() is None and worker.status() != psutil.STATUS_STOPPED:
        os.sched_yield()
    children = worker.children(recursive=True)
    worker.kill()
    assert worker.wait() == -signal.SIGKILL, "the partition ended before it could be killed"
    assert psutil.wait_procs(children, timeout=60)[1] == [], "a killed partition left processes behind"
