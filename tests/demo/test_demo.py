"""The demo's crawl is valid WARC, the same every time, and its truth names what is planted in it."""

import hashlib
import json
from collections import Counter
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecord

from pipeline_tasks.demo import Plant, Truth, compare, load, write_crawl
from pipeline_tasks.demo.articles import jaccard_index
from pipeline_tasks.demo.benchmark import BENCHMARK
from pipeline_tasks.demo.crawl import DAMAGED, EXPECTED
from pipeline_tasks.demo.show import recipe_of
from pipeline_tasks.demo.truth import KEPT
from pipeline_tasks.recipe import load_recipe
from pipeline_tasks.text.pii.candidates import Limits
from pipeline_tasks.text.pii.findings import find_pii

SNAPSHOTS = ("2026-11-19", "2026-11-20")
Rows = list[dict[str, object]]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(folder, SNAPSHOTS, files=2, scale=0.04)
    return folder


@pytest.fixture(scope="module")
def truth(crawl: Path) -> Truth:
    return load(crawl / "truth.json")


def members(folder: Path, truth: Truth, snapshot: str) -> dict[str, tuple[bytes, str]]:
    """Return body and type of every sound response and revisit by record id; unreadable ones are left out."""
    damaged = {record for plant in truth.plants if plant.kind in DAMAGED for record in plant.records}
    bodies = {}
    for path in sorted((folder / snapshot).glob("*.warc.gz")):
        data = path.read_bytes()
        starts = [at for at in range(len(data)) if data[at : at + 4] == b"\x1f\x8b\x08\x00"] + [len(data)]
        for start, end in pairwise(starts):
            record = readable(data[start:end])
            if record is not None and record.record_id.strip("<>") not in damaged:
                record.parse_http()
                bodies[record.record_id.strip("<>")] = (record.reader.read(), record.headers["WARC-Type"])
    return bodies


def readable(member: bytes) -> WarcRecord | None:
    try:
        return next(iter(ArchiveIterator(BytesIO(member), parse_http=False)), None)
    except OSError:
        return None


def test_same_seed_same_bytes(crawl: Path, tmp_path: Path) -> None:
    write_crawl(tmp_path, SNAPSHOTS, files=2, scale=0.04)
    files = sorted(path.relative_to(crawl) for path in crawl.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert all((crawl / name).read_bytes() == (tmp_path / name).read_bytes() for name in files)


def test_snapshot_json_lists_every_file(crawl: Path) -> None:
    for snapshot in SNAPSHOTS:
        promise = json.loads((crawl / snapshot / "snapshot.json").read_text())
        bodies = {path.name: path.read_bytes() for path in (crawl / snapshot).glob("*.gz")}
        assert promise["snapshot"] == snapshot
        assert len(bodies) == 2
        assert {file["path"]: (file["bytes"], file["sha256"]) for file in promise["files"]} == {
            name: (len(body), hashlib.sha256(body).hexdigest()) for name, body in bodies.items()
        }


def test_a_whole_file_reads_with_valid_digests(crawl: Path, truth: Truth) -> None:
    damaged = {place[0] for plant in truth.plants for place in plant.places}
    sound = [path for path in sorted(crawl.rglob("*.warc.gz")) if path.name not in damaged]
    assert sound
    for path in sound:
        kinds = Counter[str]()
        for record in ArchiveIterator(str(path), parse_http=False):
            kind = str(record.headers["WARC-Type"])
            kinds[kind] += 1
            assert kind == "warcinfo" or record.verify_block_digest(), record.record_id
            record.parse_http()
            assert kind != "response" or record.verify_payload_digest(), record.record_id
        assert kinds["warcinfo"] == 1
        assert kinds["request"] > 0


def test_record_counts_match_the_plants(crawl: Path, truth: Truth) -> None:
    for snapshot in SNAPSHOTS:
        planted = sum(len(plant.records) for plant in truth.plants if plant.snapshot == snapshot)
        counts = truth.records[snapshot]
        assert counts["response"] + counts.get("revisit", 0) == planted
        undamaged = [p for p in truth.plants if p.snapshot == snapshot and p.kind not in DAMAGED]
        assert undamaged
        records = members(crawl, truth, snapshot)
        assert set(records) >= {record for plant in undamaged for record in plant.records}


def test_every_kind_is_planted_with_an_outcome(truth: Truth) -> None:
    assert {plant.kind for plant in truth.plants} == set(EXPECTED)
    assert all(1 <= plant.due <= len(plant.records) for plant in truth.plants)
    records = [record for plant in truth.plants for record in plant.records]
    assert len(records) == len(set(records))


def test_planted_near_duplicates_are_near(truth: Truth) -> None:
    near = [plant.jaccard for plant in truth.plants if plant.kind in ("near", "near_across", "edited")]
    assert near
    assert all(value is not None and 0.85 <= value < 1.0 for value in near)
    assert jaccard_index(list("abcdef"), list("abcdex")) == pytest.approx(1 / 3)


def test_unchanged_pages_come_back_with_the_same_payload(crawl: Path, truth: Truth) -> None:
    first, later = (members(crawl, truth, snapshot) for snapshot in SNAPSHOTS)
    by_url = {plant.urls[0]: plant.records[0] for plant in truth.plants if plant.snapshot == SNAPSHOTS[0]}
    again = [plant for plant in truth.plants if plant.kind in ("unchanged", "revisit")]
    assert again
    for plant in again:
        body, kind = later[plant.records[0]]
        assert body == (first[by_url[plant.urls[0]]][0] if plant.kind == "unchanged" else b"")
        assert kind == ("revisit" if plant.kind == "revisit" else "response")


def test_personal_data_is_where_it_was_planted_and_nowhere_else(crawl: Path, truth: Truth) -> None:
    bodies = members(crawl, truth, SNAPSHOTS[0])
    planted = {
        record: plant
        for plant in truth.plants
        if plant.snapshot == SNAPSHOTS[0]
        and plant.kind not in {*DAMAGED, "listing"}  # code of others, with its authors
        for record in plant.records
        if record in bodies
    }
    found = {
        record: Counter(f"pii_{span.kind}" for span in find_pii(bodies[record][0], Limits())) for record in planted
    }
    assert {plant.kind for plant in planted.values()} >= {"personal", "contaminated", "article", "exact", "near"}
    assert found == {record: Counter(plant.counts or {}) for record, plant in planted.items()}
    assert sum(found.values(), Counter()).keys() >= {"pii_email", "pii_phone", "pii_ip"}


def test_questions_are_planted_verbatim(crawl: Path, truth: Truth) -> None:
    lines = [json.loads(line) for line in (crawl / "benchmark.jsonl").read_text().splitlines()]
    assert [line["question"] for line in lines] == [question for question, _ in BENCHMARK]
    bodies = members(crawl, truth, SNAPSHOTS[0])
    planted = [plant for plant in truth.plants if plant.kind == "contaminated" and plant.snapshot == SNAPSHOTS[0]]
    assert planted
    assert all(any(line["question"].encode() in bodies[plant.records[0]][0] for line in lines) for plant in planted)


def row(record: str, reason: str = "", **more: object) -> dict[str, object]:
    return {"snapshot": "s1", "file": "a.warc.gz", "offset": 0, "record_id": f"<{record}>", "reason": reason, **more}


def small_truth() -> Truth:
    plants = (
        Plant("exact", "s1", ("u1", "u2", "u3"), ("r1", "r2", "r3"), ("dedup_exact:",), 2),
        Plant("article", "s1", ("u4",), ("r4",), (KEPT,), 1),
        Plant("personal", "s1", ("u5",), ("r5",), (KEPT,), 1, counts={"pii_email": 2}),
        Plant("cut", "s1", ("u6",), ("r6",), ("error:",), 1, places=(("a.warc.gz", 100, 50),)),
        Plant("spam", "s2", ("u7",), ("r7",), ("filter_",), 1),
        Plant("edited", "s1", ("u8", "u9"), ("r8", "r9"), ("dedup_minhash:", "dedup_exact:"), 2),
        Plant("rewritten", "s1", ("u10",), ("r10",), (KEPT,), 1),
    )
    return Truth(1, {}, plants)


def test_compare_counts_found_other_and_missed() -> None:
    rejected = [
        row("r1", "dedup_exact:duplicate"),
        row("r4", "filter_quality:short"),
        row("x", "error:bad", offset=120),
    ]
    kept = [row("r2"), row("r3"), row("r5", pii_email=1), row("r9")]
    kept += [row("r8", supersedes=True), row("r10", supersedes=True)]
    figures = {
        line.split()[0]: [int(word) for word in line.split() if word.isdigit()]
        for line in compare(small_truth(), rejected, kept)
    }
    assert figures == {
        "exact": [2, 1, 0, 1],
        "article": [1, 0, 1, 0],
        "personal": [1, 1, 0, 0],
        "cut": [1, 1, 0, 0],
        "edited": [2, 1, 0, 1],
        "rewritten": [1, 1, 0, 0],
        "pii_email": [2, 1, 0, 1],
    }


def test_truth_survives_its_file(truth: Truth, tmp_path: Path) -> None:
    (tmp_path / "truth.json").write_text(truth.dump())
    assert load(tmp_path / "truth.json") == truth


def test_the_demo_of_another_folder_screens_for_the_questions_of_its_own_crawl(tmp_path: Path) -> None:
    [params] = [step.params for step in load_recipe(recipe_of(tmp_path)).steps if step.stage == "decontaminate"]
    assert [*params["benchmarks"].values()] == [str(tmp_path / "crawl" / "benchmark.jsonl")]
    assert recipe_of(Path(".refinery/demo")) == "demo"
