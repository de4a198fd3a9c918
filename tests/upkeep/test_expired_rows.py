"""Rows that expire say where they came from and why they were rejected, and numbers; nothing else."""

import json

import pyarrow as pa
import pytest

from pipeline_tasks.upkeep.retention.rows import expired_rows


def row(reason: str, evidence: str | None) -> pa.RecordBatch:
    said = {
        "snapshot": "one",
        "file": "a.warc.gz",
        "offset": 7,
        "id": "0" * 32,
        "url": "https://example.org/jane",
        "text": "her words",
        "title": "her name",
        "tokens": [5, 6],
        "edit_spans": [1, 2],
        "language": "en",
        "score": 0.5,
        "reason": reason,
        "evidence": evidence,
    }
    return pa.RecordBatch.from_pylist([said])


def test_texts_addresses_and_tokens_go_and_numbers_stay() -> None:
    [left] = expired_rows(row("extract:too_short", '{"chars":9,"min_chars":100}')).to_pylist()
    assert (left["url"], left["text"], left["title"], left["tokens"]) == (None, "", None, [0, 0])
    assert (left["snapshot"], left["file"], left["offset"], left["id"]) == ("one", "a.warc.gz", 7, "0" * 32)
    assert (left["edit_spans"], left["language"], left["score"]) == ([1, 2], "en", 0.5)
    assert (left["reason"], left["evidence"]) == ("extract:too_short", '{"chars":9,"min_chars":100}')


@pytest.mark.parametrize(
    ("reason", "evidence", "left"),
    [
        ("filter_url:word", [{"rule": "filter_url:word", "value": "jane", "bound": 1}], [["value", ""]]),
        ("error:json", {"kind": "damage", "detail": "at 'jane'"}, [["detail", ""]]),
        ("decontaminate:hit", {"hits": [{"benchmark": "gsm8k", "words": ["jane"], "share": 0.9}]}, [["words", [""]]]),
    ],
)
def test_words_of_evidence_go_and_its_rules_and_numbers_stay(
    reason: str, evidence: object, left: list[list[object]]
) -> None:
    [said] = expired_rows(row(reason, json.dumps(evidence))).to_pylist()
    assert "jane" not in said["evidence"]
    pairs: list[list[object]] = []
    json.loads(said["evidence"], object_pairs_hook=lambda found: pairs.extend(map(list, found)) or dict(found))
    before: list[list[object]] = []
    json.loads(json.dumps(evidence), object_pairs_hook=lambda found: before.extend(map(list, found)) or dict(found))
    assert [pair for pair in pairs if pair not in before and pair[0] != "hits"] == left


def test_evidence_that_names_other_documents_stays_as_clusters_are_counted_by_it() -> None:
    evidence = '{"winner":"' + "1" * 32 + '","snapshot":"one","jaccard":0.9}'
    [said] = expired_rows(row("dedup_minhash:near_duplicate", evidence)).to_pylist()
    assert said["evidence"] == evidence


@pytest.mark.parametrize("evidence", [None, "no JSON"])
def test_evidence_that_is_none_is_null(evidence: str | None) -> None:
    [said] = expired_rows(row("a:b", evidence)).to_pylist()
    assert said["evidence"] is None


def test_blank_rows_stay_as_they_are() -> None:
    blank = expired_rows(row("a:b", '{"value":"x"}'))
    assert expired_rows(blank).equals(blank)
