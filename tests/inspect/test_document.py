"""Every decision on a document is shown as its stages stored it, for each record that has its text."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.chosen import ordered_manifests
from pipeline_tasks.inspect.document import bytes_read, document
from pipeline_tasks.publish import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
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
    everything = sum(path.stat().st_size for path in Path(small_root.root).rglob("*") if path.is_file())
    assert 0 < bytes_read(small_root.root, version) < 99 * everything


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
