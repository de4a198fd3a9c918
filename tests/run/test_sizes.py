"""What will not fit is found before anything runs, each kind of it by a planted snapshot; what fits is let through."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.lint.size_findings import RULES, Workers, history_findings, size_findings
from pipeline_tasks.landing.listing import Listing
from pipeline_tasks.recipe import load_recipe, parse_recipe
from pipeline_tasks.run.partitions import partitions_for
from pipeline_tasks.run.recipe_faults import Finding
from pipeline_tasks.run.sizes import Sizes, sizes_of
from pipeline_tasks.run.unit_costs import file_cost
from pipeline_tasks.service.handle import handle
from pipeline_tasks.service.requests.stages import LandRequest, SpansRequest
from pipeline_tasks.stage import buckets_for
from tests import refining
from tests.documents import documents
from tests.run.test_compaction import compact, day

GB = 10**9
ROOMY = Workers(1000, 4 * GB)
KNOWN = "d" * 64
DEDUP: dict[str, Any] = {"ingest": {}, "extract": {}, "dedup_exact": {}}


def listing(*sizes: int, name: str = "{}.warc.gz", digest: str = KNOWN) -> Listing:
    files = tuple((name.format(rank), size, digest) for rank, size in enumerate(sizes))
    return Listing("2026-11-20", files, ())


def sizes(landed: Listing, stages: Mapping[str, Any] = DEDUP, **run: int) -> Sizes:
    return sizes_of(parse_recipe({"stages": stages, "run": run}, "ours"), landed)


def found(foretold: Sizes, workers: Workers = ROOMY) -> list[Finding]:
    return list(size_findings(foretold, workers))


@pytest.mark.parametrize(
    ("landed", "workers"),
    [
        (listing(*[20_000_000] * 50), Workers(4, 2 * GB)),
        (listing(*[GB] * 900), Workers(64, 2 * GB)),
        (listing(5_000_000), Workers(1, GB)),
        (listing(*[10_000_000] * 99, 5 * GB), Workers(4, 2 * GB)),
        (listing(*[3_000_000] * 200, name="{}.jsonl"), Workers(4, 2 * GB)),
    ],
    ids=["a day", "a hundredth of a crawl", "a file", "a large file that is cut", "JSON lines"],
)
@pytest.mark.parametrize("recipe", ["web", "web_en"])
def test_a_snapshot_that_fits_has_no_finding(recipe: str, landed: Listing, workers: Workers) -> None:
    assert found(sizes_of(load_recipe(recipe), landed), workers) == []


@pytest.mark.parametrize(
    ("planted", "workers", "fault", "where", "words"),
    [
        (partial(sizes, listing(GB)), Workers(4, GB // 4), True, "memory", "a task needs 600 MB and a worker has 250 MB"),
        (
            partial(sizes, listing(*[GB] * 100), DEDUP | {"dedup_exact": {"buckets": 8}}),
            Workers(100, 2 * GB),
            True,
            "dedup_exact",
            "leave `buckets` out of the recipe, or set at least 108 (it has 8)",
        ),
        (partial(sizes, listing(*[GB] * 130)), Workers(100, GB), True, "dedup_exact", "give a worker 1.18 GB"),
        (partial(sizes, listing(*[GB] * 900), partitions=3), ROOMY, False, "extract", "takes 23 h of one core; leave `partitions` out"),
        (partial(sizes, listing(*[GB] * 90_000)), Workers(10**6, 4 * GB), False, "extract", "land the snapshot in 2 parts"),
        (partial(sizes, listing(*[10_000_000] * 99, 5 * GB, name="{}.jsonl.gz")), ROOMY, False, "land", "that cannot be cut has 5 GB"),
        (partial(sizes, listing(70 * GB, name="{}.parquet")), ROOMY, False, "land", "write several files"),
        (partial(sizes, listing(*[50_000] * 20_000)), ROOMY, False, "land", "concatenate them before they land"),
        (partial(sizes, listing(*[GB] * 90_000)), Workers(10**6, 4 * GB), False, "dedup_exact", "pieces; land the"),
        (partial(sizes, listing(*[7 * GB] * 1100), {f"{name}": {} for name in ("ingest", "extract", "filter_url",
            "filter_language", "filter_quality", "scrub_pii")}), ROOMY, False, "partitions", "tasks in Airflow"),
        (partial(sizes, listing(*[GB] * 6000, digest="")), ROOMY, False, "land", "write `sha256` of each file into"),
        (partial(sizes, listing(*[GB] * 900)), Workers(1, 4 * GB), False, "workers", "would take a day"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_found_with_its_way_out(
    planted: Callable[[], Sizes], workers: Workers, fault: bool, where: str, words: str
) -> None:
    findings = found(planted(), workers)
    said = [(finding.fault, finding.where) for finding in findings if words in finding.message]
    assert said == [(fault, where)], findings


def test_history_in_too_many_segments_is_found_until_it_is_compacted(tmp_path: Path) -> None:
    for number in range(17):
        day(tmp_path, number, docs=1)
    (finding,) = history_findings(str(tmp_path), "ours")
    assert (finding.fault, finding.where) == (False, "dedup_exact")
    assert f"17 segments of history; run `refinery keep compact {tmp_path}`" in finding.message
    compact(tmp_path)
    assert list(history_findings(str(tmp_path), "ours")) == []


def test_stages_that_work_by_document_take_the_foretold_buckets_of_dedup_exact() -> None:
    """A day of 90 MB is 21 MB of documents, and 13 without duplicates: eight buckets, where that would ask for four."""
    between = {"dedup_exact": {}, "scrub_pii": {}, "dedup_minhash": {}, "dedup_paragraphs": {}}
    alone = {"ingest": {}, "extract": {}, "dedup_minhash": {}}
    assert dedup_buckets(DEDUP | between) == {"dedup_exact": 8, "dedup_minhash": 8, "dedup_paragraphs": 8}
    assert dedup_buckets(alone) == {"dedup_minhash": 8}


def dedup_buckets(stages: Mapping[str, Any]) -> dict[str, int]:
    """Return the buckets that are foretold for a day of 90 MB, by stage of deduplication."""
    foretold = sizes(listing(90_000_000), stages).stages
    return {size.stage: size.buckets for size in foretold if size.stage.startswith("dedup")}


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("CC-MAIN-2026-47/0001.warc.gz", "a.warc"),
        ("crawl.wet/0001.ARC.gz", "a.warc"),
        ("CC-MAIN-2026-47/0001.warc.WET.gz", "a.wet"),
        ("0001.parquet", "a.jsonl.gz"),
        ("0001.json.zst", "a.jsonl.gz"),
        ("0001.ndjson.zst", "a.jsonl.gz"),
        ("0001.JSON", "a.jsonl"),
        ("0001.ndjson", "a.jsonl"),
    ],
)
def test_a_file_costs_as_others_of_its_kind(name: str, like: str) -> None:
    """Compressed lines have more records than as many bytes of plain ones, and extracted texts are denser than pages."""
    assert file_cost(name) == file_cost(like)
    kinds = [file_cost(each) for each in ("a.warc", "a.wet", "a.jsonl.gz", "a.jsonl")]
    assert len(set(kinds)) == 4
    assert file_cost("a.jsonl.gz").record_bytes < file_cost("a.jsonl").record_bytes


def test_every_rule_has_a_planted_case() -> None:
    assert len(RULES) == 9


def test_what_is_foretold_is_what_a_run_takes(tmp_path: Path) -> None:
    crawl, root = tmp_path / "2026-11-20", str(tmp_path / "root")
    crawl.mkdir()
    for rank in range(40):
        with (crawl / f"{rank}.warc.gz").open("wb") as file:
            file.truncate(100_000_000)  # sparse: nothing is stored
    promise = [{"path": file.name, "bytes": 100_000_000, "sha256": KNOWN} for file in sorted(crawl.iterdir())]
    (crawl / "snapshot.json").write_text(json.dumps({"snapshot": "2026-11-20", "files": promise}))
    landed = handle(LandRequest(root, str(crawl)))["manifest"]
    foretold = {size.stage: size for size in sizes(listing(*[100_000_000] * 40)).stages}
    for stage in ("ingest", "extract"):
        cut = handle(SpansRequest(root, landed, stage))["spans"]
        assert abs(len(cut) - foretold[stage].partitions) <= 1  # `extract` really reads a hundredth more
    parent = refining.commit_parent(tmp_path / "other", [documents(["some text"])])
    assert len(refining.refined(tmp_path / "other", "dedup_exact", parent)[1].shards) == buckets_for(())
    assert foretold["dedup_exact"].buckets == 8
    assert partitions_for("ingest", ()) == 1


def test_the_command_prints_sizes_and_ends_with_the_code_of_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crawl = tmp_path / "2026-11-20"
    crawl.mkdir()
    (crawl / "a.jsonl").write_text('{"text": "some text"}\n')
    recipe = tmp_path / "ours.yaml"
    recipe.write_text(yaml.safe_dump({"stages": DEDUP}, sort_keys=False))
    given = ["lint", str(recipe), "--input", str(crawl)]
    assert main([*given, "--workers", "2", "--memory", "2"]) == 0
    out = capsys.readouterr().out
    assert "2026-11-20: 1 file, 22 B" in out
    assert "nothing found" in out
    assert main([*given, "--memory", "0.1"]) == 78
    assert "FAULT  memory: a task needs 600 MB" in capsys.readouterr().out
    assert main([*given, "--memory", "0.1", "--allow", "memory"]) == 0
    capsys.readouterr()
    assert main([*given, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["faults"] == facts["notes"] == []
    assert [stage["stage"] for stage in facts["sizes"]["stages"]] == list(DEDUP)
    assert facts["sizes"]["tasks"] == 4 + 3 + 3 + 2
    assert main(["lint", str(recipe), "--input", str(tmp_path / "nothing")]) != 0
