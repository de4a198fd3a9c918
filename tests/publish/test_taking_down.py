"""What a source says it has deleted is taken down, once, and nothing else is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from refinery_rights.taking_down import DELETED, deletions_taken_down, entries_of, read_deletions

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.store.taken_down import takedowns
from tests.chain import reply
from tests.commands import Refinery

TEXT = "a document with some words, of which each is a little different from the others " * 3


def landed(landing: Path, recipe: str, rows: list[Any], deleted: bytes = b"") -> Path:
    """Land rows of JSON as a pull does, with what was deleted beside them."""
    landing.mkdir(parents=True)
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (landing / "a.jsonl").write_bytes(body)
    (landing / DELETED).write_bytes(deleted)
    files = [file_of("a.jsonl", body)]
    source = {"recipe": recipe, "query": {}, "beside": [file_of(DELETED, deleted)]}
    (landing / "snapshot.json").write_text(json.dumps({"snapshot": landing.name, "source": source, "files": files}))
    return landing


def file_of(name: str, body: bytes) -> dict[str, Any]:
    return {"path": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def published(root: Path, landing: Path, recipe: str = "tiny") -> dict[str, str]:
    """Refine a landed snapshot; return the ids of its documents by those of their records."""
    named = {"root": str(root), "recipe": recipe, "snapshot": landing.name}
    start = reply("land", **named, input=str(landing))
    manifests, verdicts, parent = {"land": start["manifest"]}, {}, start["manifest"]
    for stage in ("ingest", "extract"):
        request = {"stage": stage, "params": {}, "parent": parent, "landing": start["landing"]}
        parent = manifests[stage] = reply("refine", **named, **request)["manifest"]
        verdicts[stage] = reply("judge", **named, manifest=parent, override="a test")["verdict"]
    reply("publish", **named, landing=start["landing"], manifests=manifests, verdicts=verdicts)
    version = version_log.current(str(root), recipe, landing.name)
    batches = read_shards(str(root), read_manifest(str(root), version.refined).shards, ["id", "record_id"])
    return {row["record_id"]: row["id"] for batch in batches for row in batch.to_pylist()}


def records(*ids: int) -> list[dict[str, Any]]:
    return [{"id": at, "text": f"{at} {TEXT}", "url": f"https://example.org/{at}"} for at in ids]


def test_ids_are_those_of_the_records_of_the_same_source_and_a_retry_adds_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    news = published(root, landed(tmp_path / "landing" / "news-1", "news", records(1, 2, 3)))
    blog = [{**row, "text": f"blog {row['text']}"} for row in records(2)]
    assert published(root, landed(tmp_path / "landing" / "blog-1", "blog", blog)).keys() == {"2"}
    gone = lines({"id": 2}, {"url": "https://example.org/9"}, {"id": 2}, {"id": "never"})
    second = str(landed(tmp_path / "landing" / "news-2", "news", [], gone))
    taken, unknown = deletions_taken_down(str(root), second)
    assert taken is not None
    assert taken.entries == (("doc", news["2"]), ("url", "https://example.org/9"))
    assert (unknown, "snapshot news-2" in taken.reason) == (1, True)
    assert deletions_taken_down(str(root), second) == (None, 1)
    assert len(takedowns(str(root))) == 1


def test_a_landing_that_says_nothing_takes_nothing_down(tmp_path: Path) -> None:
    place = str(landed(tmp_path / "news-1", "news", []))
    assert entries_of(str(tmp_path / "root"), read_deletions(place)) == ((), 0)
    assert deletions_taken_down(str(tmp_path / "root"), place) == (None, 0)


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"{}", b'{"id": null}', b'{"id": ""}', b'{"id": true}', b'{"url": ["x"]}', b'{"id": 1.5}']
)
def test_a_line_that_names_no_record_is_refused_by_its_number(tmp_path: Path, line: bytes) -> None:
    place = landed(tmp_path / "news-1", "news", [], b'{"id": 1}\n' + line + b"\n")
    with pytest.raises(ContractError, match="line 2"):
        read_deletions(str(place))


def test_a_url_that_is_none_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    gone = lines({"url": "https://example.org/1"}, {"url": "/relative"})
    place = str(landed(tmp_path / "news-1", "news", [], gone))
    with pytest.raises(ContractError, match="/relative"):
        deletions_taken_down(str(tmp_path / "root"), place)
    assert not (tmp_path / "root").exists()


def test_a_file_that_is_not_what_the_landing_promises_is_not_believed(tmp_path: Path) -> None:
    place = landed(tmp_path / "news-1", "news", [], lines({"id": 1}))
    (place / DELETED).write_bytes(lines({"id": 2}))
    with pytest.raises(DigestMismatch, match=DELETED):
        read_deletions(str(place))
    (place / DELETED).unlink()
    with pytest.raises(ContractError, match=DELETED):
        read_deletions(str(place))


def test_a_place_where_no_pull_has_landed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no pull has landed"):
        read_deletions(str(tmp_path))
    (tmp_path / "snapshot.json").write_text('{"snapshot": "x", "files": []}')
    with pytest.raises(RecipeError, match="not of a pull"):
        read_deletions(str(tmp_path))


def test_the_command_takes_down_what_a_landing_says_was_deleted(refinery: Refinery, tmp_path: Path) -> None:
    root = tmp_path / "root"
    first = published(root, landed(tmp_path / "landing" / "news-1", "news", records(1, 2)))
    place = landed(tmp_path / "landing" / "news-2", "news", [], lines({"id": 1}, {"id": 7}))
    done = refinery("takedown", root, "--landing", place, "--json")
    assert done.returncode == 0, done.stderr
    assert "1 deleted record" in done.stderr
    facts = json.loads(done.stdout)
    assert (facts["documents"], facts["takedown"]["entries"]) == (1, [["doc", first["1"]]])
    assert "as snapshot news-2 says" in facts["takedown"]["reason"]
    nothing = refinery("takedown", root, "--landing", tmp_path / "landing" / "news-1")
    assert (nothing.returncode, "nothing to take down" in nothing.stderr) == (78, True)
    undone = refinery("takedown", root, "--landing", place, "--undo", "--json")
    assert json.loads(undone.stdout)["takedown"]["undo"] is True
