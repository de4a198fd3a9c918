"""Every decision on a document is shown as its stages stored it, for each record that has its text."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.document import bytes_of, document
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.run.shuffle import bucket_of
from pipeline_tasks.store.local_store import LocalStore
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests.archives import http, response, zipped
from tests.chain import How, refined
from tests.inspect import test_whatif
from tests.small_root import DAYS, RECIPE, STAGES, SmallRoot


def rows(small: SmallRoot, day: str, stage: str, part: str) -> list[dict[str, Any]]:
    manifest = ordered_manifests(small.root, version_log.current(small.root, RECIPE, day))[stage]
    return [row for batch in read_shards(small.root, getattr(manifest, part)) for row in batch.to_pylist()]


def test_a_kept_document_is_kept_by_every_stage(small_root: SmallRoot) -> None:
    version = version_log.current(small_root.root, RECIPE, DAYS[0])
    row = rows(small_root, DAYS[0], "dedup_minhash", "shards")[0]
    shown = document(small_root.root, version, row["id"])
    assert shown.is_kept
    record = next(record for record in shown.records if record.last.outcome == "kept")
    assert [step.stage for step in record.steps] == list(STAGES)
    assert (record.file, record.offset, record.url) == (row["file"], row["offset"], row["url"])
    facts = {name: value for step in record.steps for name, value in step.facts.items()}
    assert facts["chars"] == row["chars"]
    assert "text" not in facts
    assert record.text.startswith("word")
    for step in record.steps:
        assert read_manifest(small_root.root, step.manifest).stage == step.stage


def test_a_rejected_record_ends_with_its_reason_and_evidence(small_root: SmallRoot) -> None:
    version = version_log.current(small_root.root, RECIPE, DAYS[0])
    for stage in ("dedup_exact", "extract"):
        row = rows(small_root, DAYS[0], stage, "rejects")[0]
        shown = document(small_root.root, version, row["id"])
        [record] = [record for record in shown.records if (record.file, record.offset) == (row["file"], row["offset"])]
        last = record.last
        assert (last.stage, last.outcome, last.reason, last.evidence) == (
            stage,
            "rejected",
            row["reason"],
            row["evidence"] or "",
        )
        assert shown.is_kept == (stage == "dedup_exact"), "another record has the same text"
        assert len(shown.records) == (2 if stage == "dedup_exact" else 1)


def test_the_rules_that_a_text_fails_are_listed_with_value_and_bound(tmp_path: Path) -> None:
    _, version = test_whatif.published(tmp_path)
    manifest = read_manifest(str(tmp_path), version.manifests["filter_quality"])
    batch = next(batch for batch in read_shards(str(tmp_path), manifest.rejects) if batch.num_rows)
    row = batch.to_pylist()[0]
    step = document(str(tmp_path), version, row["id"]).records[0].last
    assert step.evidence == row["evidence"]
    assert json.loads(step.evidence)[0]["rule"] == step.reason == row["reason"]
    assert step.facts["signals_gopher_quality"] == row["signals_gopher_quality"]


def test_what_is_not_there_is_refused(small_root: SmallRoot) -> None:
    version = version_log.current(small_root.root, RECIPE, DAYS[0])
    with pytest.raises(RecipeError, match=f"{DAYS[0]} .*small .*{'0' * 32}"):
        document(small_root.root, version, "0" * 32)
    with pytest.raises(RecipeError, match="doc '<b>'"):
        document(small_root.root, version, "<b>")


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the bytes of each shard that is read from a local store."""
    reads: list[int] = []
    read = LocalStore.read

    def counting(store: LocalStore, path: str) -> bytes:
        body = read(store, path)
        reads.extend([len(body)] if path.endswith(".parquet") else [])
        return body

    monkeypatch.setattr(LocalStore, "read", counting)
    return reads


def test_each_shard_is_read_once_and_an_index_leads_to_those_in_buckets(
    refined_root: tuple[str, Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, version = refined_root
    manifests = ordered_manifests(root, version)
    assert len(manifests["dedup_exact"].shards) > 1
    ids = [row["id"] for batch in read_shards(root, manifests["dedup_exact"].shards) for row in batch.to_pylist()]
    reads = counted_reads(monkeypatch)
    whole = document(root, version, ids[0])
    assert sum(reads) == whole.read < bytes_of(root, version)
    assert whole.unread == ()
    named = [shard.path for stage in manifests.values() for shard in stage.stored]
    assert len(reads) < len(named)


def test_what_is_not_read_is_named_and_what_an_index_leads_to_is_read_first(
    refined_root: tuple[str, Version], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page read up to 2 GB of shards for one request."""
    root, version = refined_root
    manifests = ordered_manifests(root, version)
    last = list(manifests)[-1]
    doc = next(row["id"] for batch in read_shards(root, manifests[last].shards) for row in batch.to_pylist())
    whole = document(root, version, doc)
    reads = counted_reads(monkeypatch)
    seen = set()
    for most in range(1, whole.read + 1, max(whole.read // 40, 1)):
        reads.clear()
        if not has_record(root, version, doc, most, ""):
            assert sum(reads) <= most
            continue
        reads.clear()
        part = document(root, version, doc, most)
        assert sum(reads) == part.read <= most
        assert part.unread
        [record] = part.records
        steps = {step.stage: step for step in record.steps}
        assert steps.items() <= {step.stage: step for step in whole.records[0].steps}.items()
        seen.add(len(steps))
    assert len(seen) > 1
    assert document(root, version, doc, whole.read) == whole
    bucket = int(bucket_of(pa.array([doc]), len(manifests[last].shards))[0])
    indexed = [stage for stage, manifest in manifests.items() if len(manifest.shards) == len(manifests[last].shards)]
    part = document(root, version, doc, sum(manifests[stage].shards[bucket].bytes for stage in indexed))
    assert [step.stage for step in part.records[0].steps if step.stage != "ingest"] == indexed


def test_a_named_landed_file_leads_to_a_record_that_was_rejected_early(refined_root: tuple[str, Version]) -> None:
    root, version = refined_root
    manifests = ordered_manifests(root, version)
    rejects = [shard for shard in manifests["filter_quality"].rejects if shard.rows]
    rows = [next(row for batch in read_shards(root, [shard]) for row in batch.to_pylist()) for shard in rejects]
    sizes = [4_000, 8_000, 16_000]
    found = {
        file: sum(has_record(root, version, row["id"], most, file and row["file"]) for row in rows for most in sizes)
        for file in ("", "named")
    }
    assert len(rows) > 1
    assert found[""] < found["named"]


def has_record(root: str, version: Version, doc: str, most: int, file: str) -> bool:
    try:
        return bool(document(root, version, doc, most, file).records)
    except RecipeError:
        return False


@pytest.fixture(scope="module")
def refined_root(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Version]:
    """A snapshot of several landed files that layers and buckets are made of."""
    folder = tmp_path_factory.mktemp("buckets")
    landing = folder / "2026-11-19"
    landing.mkdir()
    for file in range(6):
        records = [
            {"url": f"https://a.example.org/{file}/{page}", "text": f"{prose(file, page)} " * (3 if page % 5 else 1)}
            for page in range(40)
        ]
        (landing / f"{file}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (folder / "wide.yaml").write_text(WIDE)
    refined(str(folder / "root"), str(landing), How(recipe=str(folder / "wide.yaml")))
    return str(folder / "root"), version_log.current(str(folder / "root"), "wide")


def prose(file: int, page: int) -> str:
    return f"The ferry {file} of the morning left the harbor {page} before the fog had lifted from the {file * page}th pier."


WIDE = """
name: wide
stages:
  ingest: {}
  extract: {min_chars: 20}
  filter_language: {keep: [en], threshold: 0.1}
  filter_quality: {profiles: [gopher_quality], gopher_quality: {min_doc_words: 30, min_stop_words: 1}}
  dedup_exact: {buckets: 8}
  scrub_pii: {action: redact}
"""


def test_the_command_prints_both_forms_without_the_text(
    small_root: SmallRoot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(shutil.copytree(small_root.root, tmp_path / "root"))
    row = rows(small_root, DAYS[0], "dedup_exact", "rejects")[0]
    arguments = ["document", row["id"], root, "--recipe", RECIPE, "--snapshot", DAYS[0]]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "2 records with this text, kept by every stage" in printed
    assert re.search(rf"dedup_exact +rejected: {row['reason']}", printed)
    assert row["evidence"] in printed
    assert not re.search(r"word\d+ word\d+", printed)
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (answer["id"], len(answer["records"])) == (row["id"], 2)
    assert "text" not in answer["records"][0]
    assert main(["document", "0" * 32, root]) == RecipeError.exit_code


FERRIES = "The ferry of the morning left the harbor before the fog had lifted, and {} people waited on the pier. "
MENU = "".join(f"<li><a href=/{at}>Section {at}</a></li>" for at in range(9)) + "<li><a href=/>ask@ferries.org</a></li>"
FERRY_PAGE = (
    f"<title>Ferries</title><nav><ul>{MENU}</ul></nav><h1>Ferries</h1>"
    f"<p>{FERRIES.format(3) * 4}</p><p>{FERRIES.format(90) * 4}</p>"
)
BY_BLOCKS = """
name: by_blocks
stages:
  ingest: {}
  extract: {method: blocks}
  filter_language: {keep: [en], threshold: 0.1}
  scrub_pii: {action: redact}
"""


def test_each_block_of_the_page_is_shown_with_its_score_and_text_from_the_landed_page_while_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landing = tmp_path / "2026-11-19"
    landing.mkdir()
    pages = [response("https://a.example.org/", http(FERRY_PAGE.encode()))]
    (landing / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    (tmp_path / "by_blocks.yaml").write_text(BY_BLOCKS)
    chain = refined(str(tmp_path / "root"), str(landing), How(recipe=str(tmp_path / "by_blocks.yaml")))
    [row] = chain.rows("scrub_pii")
    command = ["document", row["id"], chain.root, "--blocks"]
    [page] = [record["page"] for record in json_of([*command, "--json"], capsys)["records"]]
    texts = {is_kept: [each["text"] for each in page["blocks"] if each["is_kept"] == is_kept] for is_kept in (0, 1)}
    assert texts[0] == [*(f"- Section {at}" for at in range(9)), "- <EMAIL>"]
    assert texts[1][0] == "Ferries"
    assert [text[:20] for text in texts[1][1:]] == ["The ferry of the mor"] * 2
    assert json_of(["document", row["id"], chain.root, "--json"], capsys)["records"][0].keys() == json_of(
        [*command, "--json"], capsys
    )["records"][0].keys() - {"page"}
    other = response("https://a.example.org/", http(FERRY_PAGE.replace("Section 0", "No").encode()))
    (landing / "a.warc.gz").write_bytes(zipped([other])[0])
    [page] = [record["page"] for record in json_of([*command, "--json"], capsys)["records"]]
    assert "read into other blocks today" in page["why_not"]
    (landing / "a.warc.gz").unlink()
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "13 blocks on its page, 3 kept" in printed
    assert "blocks 13 entries" in printed
    assert "not kept: The landed file a.warc.gz is not there any more." in printed
    assert re.search(r"kept +\d\.\d\d +\d+  The ferry of the morning", printed)
    assert "Section" not in printed
    assert len(row["blocks"]) == 13, "later stages carry the column"


def json_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(command) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return answer
