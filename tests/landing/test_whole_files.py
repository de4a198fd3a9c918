"""Files of a folder that are documents themselves land as one record each."""

import io
from pathlib import Path

import pytest

from pipeline_tasks.landing.archives.http_body import CAP
from pipeline_tasks.landing.first_look import require_text
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import list_snapshot

BODIES = {"a.html": b"<html><p>words</p>", "b/c.TXT": b"plain words", "d.md": b"# words\n", "README.md": b"about"}


def record(name: str, body: bytes) -> dict[str, object]:
    [batch] = read_records(name, io.BytesIO(body), snapshot="s")
    [row] = batch.to_pylist()
    return row


@pytest.mark.parametrize(
    ("name", "label"), [("a.html", "text/html"), ("b/c.TXT", "text/plain"), ("d.md", "text/markdown")]
)
def test_a_document_is_one_record_with_its_bytes(name: str, label: str) -> None:
    row = record(name, BODIES[name])
    assert (row["kind"], row["content_type"], row["payload"]) == ("file", label, BODIES[name])
    assert (row["offset"], row["length"], row["record_id"], row["error"]) == (0, len(BODIES[name]), f"{name}:0", None)
    assert str(row["payload_digest"]).startswith("sha1:")
    assert row["url"] == f"file:///{name}"


def test_a_document_of_more_bytes_than_a_record_has_is_damage() -> None:
    row = record("a.html", b"x" * (CAP + 1))
    assert (row["kind"], row["error"], row["length"]) == ("damage", "oversize", CAP + 1)


def test_bytes_go_before_names() -> None:
    assert record("a.txt", b'{"text": "words"}\n')["kind"] == "json"


def test_a_folder_of_documents_is_a_snapshot_without_what_is_about_it(tmp_path: Path) -> None:
    for name, body in BODIES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
    listing = list_snapshot(str(tmp_path), "s")
    assert [name for name, _, _ in listing.files] == ["a.html", "b/c.TXT", "d.md"]
    assert listing.ignored == ("README.md",)


def test_beside_tables_documents_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(BODIES["a.html"])
    (tmp_path / "rows.jsonl").write_bytes(b'{"text": "words"}\n')
    listing = list_snapshot(str(tmp_path), "s")
    assert [name for name, _, _ in listing.files] == ["rows.jsonl"]
    assert listing.ignored == ("a.html",)


def test_a_document_whose_name_is_a_tables_elsewhere_does_not_end_a_run(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(BODIES["a.html"])
    (tmp_path / "b.xlsx").write_bytes(b"PK")
    names = [name for name, _, _ in list_snapshot(str(tmp_path), "s").files]
    assert names == ["a.html", "b.xlsx"]
    require_text(str(tmp_path), names, {})
