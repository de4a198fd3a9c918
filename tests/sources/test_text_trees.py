"""Trees of texts land as a document a file, and mailboxes as a document a message, with what they say beside."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.errors import ContractError, RecipeError
from tests.sources.pulling import Killed, digests_of, killed_after, promise_of, pull_source, records_of

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."
RUSSIAN = "Паром выходит из гавани каждое утро, прежде чем туман поднимется над водой. " * 3


def tree(folder: Path, files: Mapping[str, bytes]) -> str:
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return str(folder)


def texts(place: str, **more: Any) -> dict[str, Any]:
    return {"files": {"place": place, "format": "text", **more}}


def test_a_file_is_a_document_known_by_its_uri(tmp_path: Path) -> None:
    files = {
        "b/über uns.md": f"# Ferry\n\n{PROSE}\n".encode(),
        "a.txt": RUSSIAN.encode("windows-1251"),
        "c.txt": "\ufeff".encode("utf-16-le") + PROSE.encode("utf-16-le"),
        "image.txt": b"\x89PNG\0\0" + bytes(range(256)),
        "code.py": b"print()\n",
        ".hidden/d.txt": b"hidden",
    }
    landed, _ = pull_source(texts(tree(tmp_path / "in", files)), tmp_path / "landings")
    read = {json.loads(record["metadata"])["path"]: record for record in records_of(landed)}
    assert {path: record["text"] for path, record in read.items()} == {
        "a.txt": RUSSIAN,
        "b/über uns.md": f"# Ferry\n\n{PROSE}\n",
        "c.txt": PROSE,
    }
    assert read["b/über uns.md"]["url"] == (tmp_path / "in" / "b" / "über uns.md").as_uri()
    promise = promise_of(landed)
    assert promise["source"]["rows"] == 3
    assert promise["source"]["facts"] == {"part-00000.parquet": {"left_out": {"binary": 1}}}


def test_patterns_choose_files_and_a_file_in_a_bucket_has_its_uri(tmp_path: Path, s3_root: str) -> None:
    from pipeline_tasks.store.storage import connect

    for name in ("a.rst", "docs/b.py", "docs/c.md"):
        assert connect(s3_root).create(name, PROSE.encode())
    landed, _ = pull_source(texts(s3_root, include=["docs/*"], exclude=["*.md"]), tmp_path / "landings")
    assert [record["url"] for record in records_of(landed)] == [f"{s3_root}/docs/b.py"]


def test_many_files_are_few_parts_and_a_killed_pull_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from refinery_sources import documents

    monkeypatch.setattr(documents, "GROUP_FILES", 10)
    place = tree(tmp_path / "in", {f"{n:02d}.txt": f"{PROSE} {n}".encode() for n in range(35)})
    with pytest.raises(Killed):
        pull_source(texts(place), tmp_path / "landings", on_bytes=killed_after(5_000))
    landed, result = pull_source(texts(place), tmp_path / "landings")
    assert (result.files, 0 < result.found < 4) == (4, True)
    assert [record["text"] for record in records_of(landed)] == [f"{PROSE} {n}" for n in range(35)]
    whole, _ = pull_source(texts(place), tmp_path / "whole")
    assert digests_of(landed) == digests_of(whole)


# --- Mailboxes ----------------------------------------------------------------------------------------------------

MAIL = f"""From ann@kelp.example Mon Jan  5 06:00:00 2026
From: =?utf-8?q?=C3=85nn?= <ann@kelp.example>
Subject: The ferry
Date: Mon, 05 Jan 2026 06:00:00 +0100
Message-ID: <1@kelp.example>
Content-Type: text/plain; charset=utf-8

{PROSE}
>From there it goes on.
 From here too.

From bob@kelp.example Mon Jan  5 07:00:00 2026
Subject: In HTML
Content-Type: multipart/mixed; boundary=xx

--xx
Content-Type: text/html; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

<p>A <b>f=E4hre</b></p>
--xx
Content-Type: text/plain
Content-Disposition: attachment; filename=a.txt

not this
--xx--

From eve@kelp.example Mon Jan  5 08:00:00 2026
Subject: Both
Date: yesterday
Content-Type: multipart/alternative; boundary=yy

--yy
Content-Type: text/plain; charset=no-such

Plain words.
--yy
Content-Type: text/html

<p>Other words.</p>
--yy--
""".encode()


def mail(place: str, **more: Any) -> dict[str, Any]:
    return {"files": {"place": place, "format": "mbox", **more}}


def test_a_message_is_a_document_with_its_headers(tmp_path: Path) -> None:
    landed, _ = pull_source(mail(tree(tmp_path / "in", {"list.mbox": MAIL})), tmp_path / "landings")
    first, second, third = records_of(landed)
    assert first["text"] == f"{PROSE}\nFrom there it goes on.\n From here too.\n\n"
    assert (first["record_id"], first["crawled_at"]) == ("1@kelp.example", "2026-01-05T05:00:00Z")
    headers = json.loads(first["metadata"])["headers"]
    assert (headers["from"], headers["subject"]) == ("Ånn <ann@kelp.example>", "The ferry")
    assert (second["text"], second["payload"].decode()) == (None, "<p>A <b>fähre</b></p>")
    assert second["content_type"] == "text/html; charset=utf-8"
    assert (third["text"].strip(), third["crawled_at"]) == ("Plain words.", None)


@pytest.mark.parametrize("body", [b"Subject: none\n\nNo mailbox.\n", b'{"a": 1}\n'])
def test_a_file_that_is_no_mailbox_is_refused_at_its_line(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"list\.mbox, line 1"):
        pull_source(mail(tree(tmp_path / "in", {"list.mbox": body})), tmp_path / "landings")


def test_an_empty_mailbox_beside_others_has_no_messages(tmp_path: Path) -> None:
    place = tree(tmp_path / "in", {"a.mbox": b"", "b.mbox": MAIL})
    landed, _ = pull_source(mail(place), tmp_path / "landings")
    assert promise_of(landed)["source"]["rows"] == 3


def test_a_place_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no mbox files"):
        pull_source(mail(tree(tmp_path / "in", {"a.txt": b"A"})), tmp_path / "landings")
