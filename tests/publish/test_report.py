"""The report: one file that opens offline, shows the numbers of every stage, and no text with personal data."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cards import stage_card
from pipeline_tasks.gate.verdicts import judge
from pipeline_tasks.manifest import Manifest, schema_pairs
from pipeline_tasks.profiles.columns import profile
from pipeline_tasks.profiles.merging import merge
from pipeline_tasks.profiles.sums import SITE_COVERAGES
from pipeline_tasks.publish.logs.version_log import Retraction
from pipeline_tasks.report.contents import Contents
from pipeline_tasks.report.html import Html, bar, count, join, page, percent, shown, size, table, tag
from pipeline_tasks.report.left_over import left_over
from pipeline_tasks.report.records import LISTED
from pipeline_tasks.report.writing import write_report
from pipeline_tasks.schema import LOCATOR, VERDICT
from pipeline_tasks.sealed import digest_of
from pipeline_tasks.stage import Shards
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest
from pipeline_tasks.store.shards.file import ShardWriter
from tests.refining import commit_manifest

ATTACKS = (
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    '"><img src=https://evil.example/x onerror=alert(1)>',
    "</td></table><iframe src=javascript:alert(1)>",
    "\u202egpj.exe\u0000\u200b",
)


def store(root: Path, table: pa.Table, name: str) -> Shards:
    """Store a table as one shard."""
    writer = ShardWriter(table.schema)
    for batch in table.to_batches():
        writer.write(batch)
    return (writer.store(str(root), name),)


def records(rows: int, text: str = "", reason: str = "", evidence: str = "{}", url: str = "") -> pa.Table:
    """Return rows with locators, texts and ids; rejected if there is a reason."""
    columns: dict[str, Any] = {
        field.name: pa.array(["x"] * rows, field.type) for field in LOCATOR if field.type == pa.string()
    }
    columns |= {"offset": pa.array(range(rows), pa.int64()), "length": pa.array([9] * rows, pa.int64())}
    columns |= {"file": [f"a-{reason}.warc"] * rows, "record_id": [f"<urn:{row}>" for row in range(rows)]}
    columns |= {
        "url": [url or f"https://example.org/{row}" for row in range(rows)],
        "id": [f"{row:032x}" for row in range(rows)],
    }
    columns |= {"text": pa.array([text] * rows, pa.large_string()), "title": ["t"] * rows, "language": ["en"] * rows}
    columns |= {"chars": pa.array([1000 + row for row in range(rows)], pa.int64())}
    if reason:
        columns |= {"reason": pa.array([reason] * rows, VERDICT.field("reason").type), "evidence": [evidence] * rows}
    return pa.table(columns)


def committed(root: Path, stage: str, kept: pa.Table, *rejected: pa.Table, **profiled: list[Any]) -> str:
    """Commit a manifest of these rows with the profiles of these values; return its path."""
    rejects: Shards = ()
    quarantine: Shards = ()
    tallies: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for rows in rejected:
        reason = rows["reason"][0].as_py()
        quarantined = reason.startswith("error:")
        tallies[quarantined][reason] = rows.num_rows
        if quarantined:
            quarantine += store(root, rows, f"{stage}/quarantine")
        else:
            rejects += store(root, rows, f"{stage}/rejects")
    lost = sum(sum(tally.values()) for tally in tallies)
    profiles = merge([profile(pa.table({name: values}), [name]) for name, values in profiled.items()])
    manifest = Manifest(
        stage=stage,
        version=stage_card(stage).version,
        fingerprint="",
        params={},
        parents=(),
        covers=(),
        schema=schema_pairs(kept.schema),
        shards=store(root, kept, f"{stage}/data"),
        history={},
        rejects=rejects,
        quarantine=quarantine,
        rows_in=kept.num_rows + lost,
        bytes_in=12_345_678,
        rejected=tallies[0],
        quarantined=tallies[1],
        metrics={"kept": profiles, "rejects": profiles if stage == "decontaminate" else {}},
    )
    return commit_manifest(root, replace(manifest, resources={"content": digest_of(manifest)}))


def contaminated(root: Path) -> str:
    """Commit a `decontaminate` that found items of two benchmarks in two documents; return its manifest."""
    hit = {"benchmark": "quiz", "item": 7, "part": "question", "field": "prompt", "method": "sampled", "score": 0.875}
    evidence = json.dumps({"hits": [hit | {"spans": [[1200, 1350], [9000, 9100]]}], "passages": 1})
    names = ["quiz", "other+quiz"]
    rejected = records(2, "SECRET-RAW-TEXT", "decontaminate:contaminated", evidence)
    return committed(root, "decontaminate", records(130, "clean text"), rejected, contaminated_by=names)


def test_personal_data_that_is_left_is_looked_for_in_the_texts_of_the_last_stage(tmp_path: Path) -> None:
    """A stage behind `scrub_pii` brought it: what that stage itself counted says nothing of it."""
    scrubbed = committed(tmp_path, "scrub_pii", records(12, "Clean."), pii_email=[1] * 12)
    brought = [records(2, "Write to jane.doe@mail.example.org."), records(10, "Write to <EMAIL>, 10.0.0.1.")]
    last = committed(tmp_path, "decontaminate", pa.concat_tables(brought), contaminated_by=["x"])
    contents = Contents(str(tmp_path), "r", "s", {"scrub_pii": scrubbed, "decontaminate": last}, {}, "out")
    left = left_over(contents)
    assert left
    assert left.documents == 12
    assert {kind: count for kind, count in left.found.items() if count} == {"email": 2}
    assert {"phone", "card"} < set(left.found)
    assert "birth_date" not in left.found, "it was not looked for"
    assert left_over(replace(contents, paths={"decontaminate": last})) is None


def report(root: Path, manifests: dict[str, str], **more: Any) -> str:
    """Write the report of these manifests; return its HTML."""
    file = write_report(Contents(str(root), "web", "2026-46", manifests, out="out", **{"verdict_paths": {}} | more))
    assert (file.bytes, file.digest) == storage.digest_of_file(f"{root}/{file.path}")
    assert file.path == f"out/report-{file.digest[:32]}.html"
    return (root / file.path).read_text()


def run(root: Path) -> dict[str, str]:
    """Commit a small run that has rows or numbers for each section; return its manifests."""
    near = json.dumps({"winner": "f" * 32, "near": "e" * 32, "snapshot": "2026-45", "jaccard": 0.9125, "bands": 11})
    rules = json.dumps([{"rule": "gopher_quality:short_doc", "value": 12.0, "bound": 50.0}])
    secret = "SECRET-RAW-TEXT me@example.org"
    return {
        "ingest": committed(
            root,
            "ingest",
            records(180, secret),
            records(10, secret, "ingest:not_page"),
            records(3, secret, "error:gzip_truncated", json.dumps({"detail": "cut at 9"})),
        ),
        "filter_language": committed(
            root,
            "filter_language",
            records(170, secret),
            records(10, secret, "filter_language:other"),
            language=["en", "de"] * 85,
        ),
        "filter_quality": committed(
            root,
            "filter_quality",
            records(150, secret),
            records(20, secret, "gopher_quality:short_doc", rules, url="https://example.org/p?user=someone#x"),
            chars=list(range(1000, 1150)),
        ),
        "dedup_minhash": committed(
            root, "dedup_minhash", records(140, secret), records(10, secret, "dedup_minhash:near_duplicate", near)
        ),
        "scrub_pii": committed(root, "scrub_pii", records(140, "clean [EMAIL] text"), pii_email=[0] * 100 + [2] * 40),
        "tokenize": committed(root, "tokenize", records(140), n_tokens=[250] * 140, language=["en"] * 140),
        "pack": committed(root, "pack", records(35), n_tokens=[1000] * 35),
    }


@pytest.fixture
def reported(tmp_path: Path) -> str:
    """Return the HTML of the small run's report, gates judged."""
    manifests = run(tmp_path)
    verdicts = {stage: judge(str(tmp_path), manifests[stage]).path for stage in ("ingest", "filter_language")}
    costs = [
        {"stage": "ingest", "engine": "spark", "wall_seconds": 9.5, "cpu_hours": 0.5, "gpu_hours": 0, "cost_usd": 1.25}
    ]
    about = {"stage": "score_quality", "computed": "edu"}
    hardware = [{**about, "hardware": "NVIDIA H200", "share": 0.75}, {**about, "hardware": "cpu", "share": 0.25}]
    seconds = {"held": 100.0, "idle": 41.0, "open": 25.0, "waited": 5.0, "tasks": 60.0, "model": 48.0}
    waits = {f"{name}_seconds": value for name, value in seconds.items()}
    models = [{"stage": "score_quality", "engine": "ray", "actors": 8, **waits}]
    more = {"hardware": hardware, "models": models}
    contents = Contents(str(tmp_path), "web", "2026-46", manifests, verdicts, "publish/ab", costs, **more)
    path = write_report(contents).path
    for link in re.findall(r'href="([^"]*)"', (tmp_path / path).read_text()):
        assert (tmp_path / "publish/ab" / link).is_file()
    return (tmp_path / path).read_text()


def text_of(html: str) -> str:
    """Return a page's text, white space collapsed."""
    return " ".join(re.sub(r"<[^>]*>", " ", html.partition("</style>")[2]).split())


def test_a_report_names_the_sites_whose_texts_have_least_of_their_pages(tmp_path: Path) -> None:
    assert "What texts have of their pages" not in report(tmp_path, run(tmp_path))
    manifest = committed(tmp_path, "extract", records(80), coverage=[0.25] * 40 + [1.0] * 40)
    sites = ["https://lost.example.org/"] * 40 + ["https://example.net/"] * 40
    measured = profile(pa.table({"url": sites, "coverage": [0.25] * 40 + [1.0] * 40}), SITE_COVERAGES)
    known = read_manifest(str(tmp_path), manifest)
    kept = {**known.metrics["kept"], **measured}
    known = replace(known, metrics={**known.metrics, "kept": kept}, resources={"content": "sites"})
    manifest = commit_manifest(tmp_path, known)
    text = text_of(report(tmp_path, {"extract": manifest}))
    assert "Half of the texts have 25% or more of what their pages say" in text
    assert "example.org 25.0% example.net 100.0%" in text


def test_a_report_shows_the_numbers_of_every_stage(reported: str) -> None:
    text = text_of(reported)
    lacking = [
        numbers
        for numbers in (
            "193 records in the crawl",
            "35,000 tokens",
            "35 packed sequences",
            "ingest:not_page 10",
            "gopher_quality:short_doc 20",
            "en 140",
            "1,024-2,047 126",
            "email 80 40 571.4",
            "0.912",
            "9.5 s 1,800.0 s 0.0 s $1.2500",
            "score_quality: edu was computed by NVIDIA H200 (75% of the documents), cpu (25% of the documents).",
            "score_quality: 8 actors without a task 41% of the time, tasks waited for one 20% of it, models computed 80%",
            "error:gzip_truncated a-error:gzip_truncated.warc",
            "gopher_quality:short_doc 12.0 / 50.0",
        )
        if numbers not in text
    ]
    assert lacking == []


def test_a_report_shows_texts_only_as_they_were_after_scrubbing(reported: str) -> None:
    assert re.search(r"https://example\.org/\d+ en clean \[EMAIL\] text", text_of(reported))
    assert "SECRET-RAW-TEXT" not in reported
    assert "someone" not in reported, "queries of addresses are left out"


def test_a_report_counts_the_documents_of_each_benchmark(tmp_path: Path) -> None:
    body = report(tmp_path, {"decontaminate": contaminated(tmp_path)})
    text = text_of(body)
    assert "other 1 1 quiz 2 2" in text
    assert "quiz 7 question (prompt) sampled 0.875 1,200-1,350 and 1 more" in text
    assert "SECRET-RAW-TEXT" not in body


def test_a_report_names_the_earlier_snapshots_that_are_retracted(tmp_path: Path) -> None:
    manifests = {"ingest": committed(tmp_path, "ingest", records(3))}
    retractions = [Retraction(2, "web", "2026-45", (1,), "<b>spam</b>", "2026-11-21T14:30:05+00:00")]
    body = report(tmp_path, manifests, retractions=retractions)
    assert "Earlier snapshot 2026-45 was retracted on 2026-11-21 14:30 UTC: &lt;b&gt;spam&lt;/b&gt;." in body


def test_no_more_damaged_records_are_listed_than_a_person_reads(tmp_path: Path) -> None:
    """Those of the first stages come first, and the rest is counted."""
    damaged = [records(rows, "", "error:gzip_truncated") for rows in (LISTED - 5, LISTED)]
    stages = ("ingest", "filter_language")
    manifests = {
        stage: committed(tmp_path, stage, records(9), rows) for stage, rows in zip(stages, damaged, strict=True)
    }
    _, lead, listed = text_of(report(tmp_path, manifests)).partition(
        f"{2 * LISTED - 5} damaged records, {LISTED} of them chosen by hash."
    )
    assert lead
    assert [listed.count(f"{stage} error:gzip_truncated") for stage in stages] == [LISTED - 5, 5]


def test_without_scrubbing_no_text_is_shown(tmp_path: Path) -> None:
    manifests = {stage: path for stage, path in run(tmp_path).items() if stage not in ("scrub_pii", "decontaminate")}
    body = report(tmp_path, manifests)
    assert "Kept documents" not in body
    assert "SECRET-RAW-TEXT" not in body


def test_a_report_fetches_nothing_and_runs_nothing(reported: str) -> None:
    assert "default-src 'none'" in reported
    for word in ("<script", "<link", "<img", "<iframe", "src=", "@import", "url("):
        assert word not in reported
    assert not re.search(r'href="(?!\.\./)', reported)


@pytest.mark.parametrize("attack", ATTACKS)
def test_markup_of_the_crawl_stays_text(attack: str, tmp_path: Path) -> None:
    evidence = json.dumps({"value": attack})
    manifests = {
        "ingest": committed(tmp_path, "ingest", records(3), records(2, "", "error:bad", evidence, url=attack)),
        "filter_url": committed(
            tmp_path, "filter_url", records(3), records(2, "", "filter_url:url", evidence, url=attack)
        ),
        "filter_language": committed(tmp_path, "filter_language", records(3), language=[attack, "en"]),
        "scrub_pii": committed(tmp_path, "scrub_pii", records(3, f"{attack} {attack}", url=attack)),
        "decontaminate": committed(tmp_path, "decontaminate", records(3, f"text {attack}"), contaminated_by=[attack]),
    }
    body = report(tmp_path, manifests)
    inside = body.partition("</style>")[2]
    for tag_ in ("<script", "<svg", "<img", "<iframe"):
        assert tag_ not in inside
    for unseen in ("\u202e", "\u0000", "\u200b"):
        assert unseen not in inside
    assert "alert(1)" in inside or "gpj.exe" in inside


def test_writing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    manifests = run(tmp_path)
    assert report(tmp_path, manifests) == report(tmp_path, manifests)


def test_an_empty_snapshot_has_a_report(tmp_path: Path) -> None:
    manifests = {"ingest": committed(tmp_path, "ingest", records(0)), "pack": committed(tmp_path, "pack", records(0))}
    body = report(tmp_path, manifests)
    assert "0 records in the crawl" in text_of(body)


def test_markup_escapes_what_is_not_html() -> None:
    cell = tag("td", "<b>", Html("<i>x</i>"), 7, css='a"b')
    assert cell == '<td class="a&quot;b">&lt;b&gt;<i>x</i>7</td>'
    assert join(("<", Html("&amp;")), " & ") == "&lt; &amp; &amp;"
    assert "&lt;x&gt;" in table(("<x>",), [("<y>",)])
    cells = table(("name", "rows"), [("a", 7)], numeric=(1,), wide=0)
    assert cells.count('<th class="num">rows</th>') == cells.count('<td class="num">7</td>') == 1
    assert cells.count('<td class="wide">a</td>') == 1
    assert "class" not in table(("name",), [("a",)]).removeprefix('<div class="card">')
    assert page("<t>", cell).startswith(b'<!DOCTYPE html>\n<html lang="en">')


def test_numbers_are_written_as_people_read_them() -> None:
    assert (count(1234567), percent(1, 3), percent(0, 0), size(12_345_678)) == ("1,234,567", "33.3 %", "-", "12.3 MB")
    assert (percent(9999, 10000), percent(1, 10000), percent(1, 1)) == ("99.99 %", "0.01 %", "100.0 %")
    assert (size(0), size(999), size(10**16)) == ("0 B", "999 B", "10,000.0 TB")
    assert "width:50.00%" in bar(1, 2)
    assert "width:0.00%" in bar(1, 0)
    assert ["width:100.00%" in bar(3, 2), "width:0.00%" in bar(-1, 2)] == [True, True]
    assert (percent(1, 1000), percent(999, 1000), percent(99_999, 10**8)) == ("0.1 %", "99.9 %", "0.10 %")
    assert (size(1000), size(999_949), size(10**6)) == ("1.0 kB", "999.9 kB", "1.0 MB")
    assert shown("a" * 300, 10) == "aaaaaaaaaa …"
