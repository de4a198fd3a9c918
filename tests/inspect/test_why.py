"""Why a page is in the dataset or not: by any form of its address, id or words, over all snapshots and stages."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks import api
from pipeline_tasks.ask.question import Role
from pipeline_tasks.cli.main import main
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.inspect.why import Params, answer, records
from pipeline_tasks.inspect.why.sought import sought
from pipeline_tasks.publish.logs import version_log
from pipeline_tasks.store.reading import read_manifest, read_shards
from tests import small_build
from tests.small_root import DAYS, RECIPE, SmallRoot


def facts(root: str, what: str, **params: Any) -> dict[str, Any]:
    known = answer(Params(root, what, **params)).json
    assert isinstance(known, dict)
    return known


def rows(root: str, day: str, stage: str = "", part: str = "shards") -> list[dict[str, Any]]:
    version = version_log.versions(root, RECIPE)[DAYS.index(day)]
    manifest = read_manifest(root, version.manifests[stage] if stage else version.refined)
    return [row for batch in read_shards(root, getattr(manifest, part)) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("asked", "kind", "value"),
    [
        ("https://example.org/a", "address", "https://example.org/a"),
        ("example.org/a?b=c", "address", "http://example.org/a?b=c"),
        ("//example.org", "address", "http://example.org"),
        ("localhost:8080/x", "address", "http://localhost:8080/x"),
        ("0123456789ABCDEF" * 2, "document", "0123456789abcdef" * 2),
        ("0123abcd", "document", "0123abcd"),
        ('"example.org"', "text", "example.org"),
        ("some words. And more", "text", "some words. And more"),
        ("word", "text", "word"),
    ],
)
def test_what_is_asked_is_an_address_an_id_or_words(asked: str, kind: str, value: str) -> None:
    known = sought(f" {asked} ")
    assert (known.kind, known.value) == (kind, value)


def test_nothing_is_no_question(small_root: SmallRoot) -> None:
    with pytest.raises(RecipeError, match="name an address"):
        facts(small_root.root, " ")


def test_every_form_of_an_address_is_the_same_page(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    bare = row["url"].partition("://")[2]
    host, _, path = bare.partition("/")
    whole = facts(small_root.root, row["url"])
    assert (whole["in_dataset"], whole["records"][0]["id"]) == (True, row["id"])
    percent = "".join(f"%{ord(letter):02x}" if letter.isdigit() else letter for letter in path)
    for form in (bare, f"http://{bare}/", f"www.{bare}", f"HTTPS://{host.upper()}/{path}", f"{host}/{percent}"):
        assert (form, facts(small_root.root, form)["records"]) == (form, whole["records"])


def test_an_id_its_first_digits_and_words_lead_to_the_same_record(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    for asked in (row["id"], row["id"][:10], f'"{" ".join(row["text"].split()[:6])}"'):
        found = [each for each in facts(small_root.root, asked)["records"] if each["snapshot"] == DAYS[1]]
        assert [(each["id"], each["outcome"], each["url"]) for each in found] == [(row["id"], "kept", row["url"])]


def test_a_rejected_page_is_told_with_value_and_bound(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1], "extract", "rejects")[0]
    known = answer(Params(small_root.root, row["url"]))
    [record] = facts(small_root.root, row["url"])["records"]
    assert (record["stage"], record["outcome"], record["reason"]) == ("extract", "rejected", row["reason"])
    assert "min_chars 100" in record["because"]
    assert f"was rejected by `extract`: {row['reason']}" in str(known)
    assert "refinery whatif" in str(known)


def test_a_copy_is_told_with_the_document_in_its_place(small_root: SmallRoot) -> None:
    seen = [row for row in rows(small_root.root, DAYS[1], "dedup_exact", "rejects") if "seen_before" in row["reason"]]
    known = facts(small_root.root, seen[0]["url"])
    [copy] = known["replaced"]
    assert not known["in_dataset"]
    assert (copy["by"], copy["by_snapshot"]) == (seen[0]["id"], DAYS[0])
    assert copy["where"].startswith("kept by ")
    assert copy["by_url"] == json.loads(seen[0]["evidence"])["winner"]["url"]


def test_superseded_and_retracted_documents_are_told(small_root: SmallRoot) -> None:
    superseded = version_log.current(small_root.root, RECIPE, DAYS[1])
    assert superseded.superseded
    became = set()
    for row in rows(small_root.root, DAYS[0]):
        known = facts(small_root.root, row["id"])
        became |= {(each["became"], known["in_dataset"]) for each in known["replaced"]}
    assert ("superseded", False) in became
    [record, *_] = facts(small_root.root, rows(small_root.root, DAYS[2])[0]["url"])["records"]
    assert record["state"] == "retracted"
    assert "a test" in record["note"]
    printed = str(answer(Params(small_root.root, rows(small_root.root, DAYS[2])[0]["url"])))
    assert f"refinery retract --undo {DAYS[2]}" in printed


def test_what_never_landed_is_told_with_the_nearest_addresses(small_root: SmallRoot) -> None:
    known = answer(Params(small_root.root, "https://www.example.org/1/none"))
    assert "Nothing that landed has this address" in str(known)
    found = facts(small_root.root, "https://www.example.org/1/none")
    assert found["read"]["unread"] == 0
    assert 0 < len(found["nearest"]) <= 5
    assert all(each["url"].startswith("https://example.org/") for each in found["nearest"])


def test_no_text_is_read_and_of_a_whole_id_one_bucket_alone(
    small_root: SmallRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    read: list[tuple[str, tuple[str, ...]]] = []

    def reading(root: str, shards: Any, columns: Any = None) -> Any:
        read.extend((shard.path, tuple(columns)) for shard in shards)
        return read_shards(root, shards, columns)

    monkeypatch.setattr(records, "read_shards", reading)
    for asked in (row["url"], row["id"]):
        read.clear()
        found = facts(small_root.root, asked)
        told = [path for path, columns in read if columns == records.TOLD]
        first = [path for path, columns in read if columns != records.TOLD]
        assert {columns for _, columns in read} - {records.TOLD} <= {("url",), ("id",)}
        assert len(first) == found["read"]["shards"] == len(set(first))
        assert len(told) < len(first)
        assert "text" not in records.TOLD
    every = len(list(Path(small_root.root).rglob("*.parquet")))
    assert len(first) < every


def test_a_bound_is_said(small_root: SmallRoot) -> None:
    known = answer(Params(small_root.root, "example.org/1/none", most_bytes=1))
    assert "No record that was read has this address" in str(known)
    assert "the command without a bound reads all" in str(known)


def test_a_curator_sees_nothing_that_was_rejected(small_root: SmallRoot) -> None:
    row = rows(small_root.root, DAYS[1], "extract", "rejects")[0]
    known, other = (str(answer(Params(small_root.root, asked, role=Role.CURATOR))) for asked in (row["id"], "f" * 32))
    assert known == other
    kept = rows(small_root.root, DAYS[1])[0]
    assert facts(small_root.root, kept["id"], role=Role.CURATOR)["records"][0]["url"] == kept["url"]
    assert facts(small_root.root, rows(small_root.root, DAYS[2])[0]["url"], role=Role.CURATOR)["records"] == []


def test_a_takedown_is_told(small_root: SmallRoot, tmp_path: Path) -> None:
    root = small_build.copied(small_root, tmp_path).root
    row = rows(root, DAYS[1])[0]
    assert main(["takedown", root, "--url", row["url"], "--reason", "claim 7"]) == 0
    known = answer(Params(root, row["url"]))
    assert "It is taken down, by takedown 1" in str(known)
    assert "claim 7" in str(known)
    assert not facts(root, row["id"])["in_dataset"]
    assert "claim 7" not in str(answer(Params(root, row["url"], role=Role.CURATOR)))


def test_it_is_a_command_and_a_call(small_root: SmallRoot, capsys: pytest.CaptureFixture[str]) -> None:
    row = rows(small_root.root, DAYS[1])[0]
    assert main(["why", row["url"], small_root.root, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    known = api.ask("why", small_root.root, row["url"])
    assert printed == known.json
    assert row["url"] in known._repr_html_()
    assert row["id"] in known.documents
    with pytest.raises(RecipeError, match="did you mean 'why'"):
        api.ask("whi", small_root.root, "x")
