"""The redactions of a snapshot are counted and listed, for kept and rejected documents, without their values."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline_tasks.cli.main import main
from pipeline_tasks.publish.logs import version_log
from tests.documents import documents
from tests.refining import commit_parent, refined

TEXTS = [
    "jane@example.org and 69.196.0.85",
    "clean",
    "call 212-736-5000",
    "a@example.org b@example.org c@example.org",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A snapshot that only `scrub_pii` has refined: more than two findings reject a document."""
    table = documents(TEXTS)
    for name, values in (("id", ["aa", "ab", "ba", "bb"]), ("url", ["https://example.org/jane@example.org"] * 4)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(name), pa.array(values, table.schema.field(name).type))
    path, _ = refined(tmp_path, "scrub_pii", commit_parent(tmp_path, [table]), {"max_spans": 2})
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"scrub_pii": path}, "verdicts": {}}
    version_log.append(str(tmp_path), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    return tmp_path


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["look", "redactions", *arguments]) == 0
    return capsys.readouterr().out


def test_counts_and_places(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(answered(capsys, str(root), "--json"))
    assert ({kind: count for kind, count in facts["counts"].items() if count}, facts["documents"]) == (
        {"email": 4, "phone": 1, "ip": 1},
        3,
    )
    assert facts["actions"] == dict.fromkeys(facts["counts"], "redact")
    assert [(row["id"], row["outcome"], len(row["redactions"])) for row in facts["listed"]] == [
        ("aa", "kept", 2), ("ba", "kept", 1), ("bb", "rejected", 3),
    ]  # fmt: skip
    assert facts["listed"][0]["redactions"] == [
        {"kind": "email", "start": 0, "end": 16, "at": 0, "action": "redact"},
        {"kind": "ip", "start": 21, "end": 32, "at": 12, "action": "redact"},
    ]
    assert facts["listed"][0]["url"] == "https://example.org/<EMAIL>"


def test_words_that_offend_are_listed_with_what_became_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["You moron, you idiot", 'The slur "idiot" is a derogatory term', "clean"]
    table = documents(texts, language=pa.array(["en"] * 3))
    params = {"action": "redact", "bounds": {}}
    path, _ = refined(tmp_path, "filter_toxicity", commit_parent(tmp_path, [table]), params)
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"filter_toxicity": path}, "verdicts": {}}
    version_log.append(str(tmp_path), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    facts = json.loads(answered(capsys, str(tmp_path), "--stage", "filter_toxicity", "--json"))
    assert (facts["counts"]["insult"], facts["counts"]["threat"], facts["documents"]) == (3, 0, 2)
    shown = answered(capsys, str(tmp_path), "--stage", "filter_toxicity", "--kind", "insult")
    assert "4 to 9, now at 4" in shown
    assert "10 to 15, mentioned or harmless" in shown
    assert "moron" not in shown
    assert main(["look", "redactions", str(tmp_path), "--stage", "filter_toxicity", "--kind", "email"]) == 78


def test_documents_and_kinds_are_chosen(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(answered(capsys, str(root), "--json", "--document", "b", "--kind", "email", "--limit", "0"))
    assert facts | {"actions": {}} == {"counts": {"email": 3}, "documents": 1, "listed": [], "actions": {}}


def test_lines_show_places_and_no_values(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = answered(capsys, str(root), "--document", "aa")
    assert "email" in shown
    assert "0 to 16, now at 0" in shown
    assert "email        redact" in shown
    assert "not looked for: crypto, mac, gps, birth_date" in shown
    assert "jane" not in shown
    assert "69.196" not in shown


def test_a_snapshot_without_the_stage_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parent = commit_parent(tmp_path, [documents(TEXTS)])
    entry = {"recipe": "web", "snapshot": "s", "landing": "", "manifests": {"given": parent}, "verdicts": {}}
    version_log.append(str(tmp_path), entry | {"prefix": "", "documents": 0, "tokens": 0, "sequences": 0})
    assert main(["look", "redactions", str(tmp_path)]) == 78
    assert "has no stage 'scrub_pii'" in capsys.readouterr().err
