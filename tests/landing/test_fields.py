"""Fields of JSON lines and tables that have other names than ours: named by a recipe, or refused before a stage runs."""

import gzip
import io
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline_tasks.errors import BudgetExceeded, ContractError, NothingLanded, RecipeError
from pipeline_tasks.inspect.trace import landed_header
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.landing.listing import is_about, land, list_snapshot
from pipeline_tasks.manifest import Manifest
from tests.refining import refined, rows

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."
RECORDS = [{"doc_id": n, "body": f"{PROSE} {n}", "link": f"https://a.org/{n}", "seen": "2026-11-20"} for n in range(9)]
FIELDS = {"text": "body", "url": "link", "id": "doc_id", "date": "seen"}


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def table(records: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), sink)
    return sink.getvalue()


FORMS = {
    "a.jsonl": lines(RECORDS),
    "a.jsonl.gz": gzip.compress(lines(RECORDS)),
    "a.parquet": table(RECORDS),
    "a.parquet.gz": gzip.compress(table(RECORDS)),
}


def folder(tmp_path: Path, files: Mapping[str, bytes]) -> str:
    for name, body in files.items():
        path = tmp_path / "landing" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return str(tmp_path / "landing")


def landed(tmp_path: Path, landing: str, fields: Mapping[str, str]) -> tuple[str, Manifest]:
    path, manifest, _ = land(str(tmp_path / "root"), landing, fields=fields)
    return path, manifest


@pytest.mark.parametrize("name", FORMS)
def test_each_field_is_read_by_its_name_in_the_recipe(name: str) -> None:
    batches = read_records(name, io.BytesIO(FORMS[name]), snapshot="s", fields=FIELDS)
    read = pa.Table.from_batches(list(batches)).to_pylist()
    assert [row["text"] for row in read] == [record["body"] for record in RECORDS]
    assert [row["url"] for row in read] == [record["link"] for record in RECORDS]
    assert [row["record_id"] for row in read] == [str(record["doc_id"]) for record in RECORDS]
    assert {row["crawled_at"] for row in read} == {"2026-11-20"}
    assert {row["metadata"] for row in read} == {None}


def test_a_field_of_our_name_is_metadata_where_the_recipe_names_another() -> None:
    body = lines([{"text": "a title", "body": PROSE, "url": "https://a.org/"}])
    [batch] = read_records("a.jsonl", io.BytesIO(body), snapshot="s", fields={"text": "body", "id": "url"})
    [row] = batch.to_pylist()
    assert (row["text"], row["metadata"]) == (PROSE, '{"text":"a title"}')
    assert row["record_id"] == row["url"] == "https://a.org/"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_text_of_another_name_is_refused_before_anything_is_committed(name: str, tmp_path: Path) -> None:
    landing = folder(tmp_path, {name: FORMS[name]})
    with pytest.raises(RecipeError) as refusal:
        landed(tmp_path, landing, {})
    assert not (tmp_path / "root").exists()
    for word in (f"{landing}/{name}", "raw_content", "doc_id, body, link, seen", "--text-field", "fields: {text: "):
        assert word in str(refusal.value)
    with pytest.raises(RecipeError, match=r"looked for bodi; .*body"):
        landed(tmp_path, landing, {"text": "bodi"})
    assert landed(tmp_path, landing, {"text": "body"})[1].landed


def test_a_column_that_a_table_does_not_have_is_refused(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"a.parquet": FORMS["a.parquet"]})
    with pytest.raises(RecipeError, match=r"no url: looked for lnik; .*link"):
        landed(tmp_path, landing, {"text": "body", "url": "lnik"})


def test_one_file_with_text_is_enough_and_a_damaged_one_says_nothing(tmp_path: Path) -> None:
    other = lines([{"text": PROSE}])
    assert landed(tmp_path, folder(tmp_path, {"a.jsonl": FORMS["a.jsonl"], "b.jsonl": other}), {})[1].landed
    assert landed(tmp_path, folder(tmp_path / "b", {"a.jsonl": b"\x00" * 100, "b.parquet": b"PAR1"}), {})[1].landed


def test_lines_of_one_array_are_refused_with_what_json_lines_are(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"a.json": json.dumps(RECORDS, indent=1).encode()})
    with pytest.raises(RecipeError, match=r"a\.json: .* array of JSON") as refused:
        landed(tmp_path, landing, {})
    assert "--text-field" not in str(refused.value)


def test_a_field_that_records_do_not_have_is_refused_with_the_nearest(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"a.jsonl": FORMS["a.jsonl"]})
    with pytest.raises(RecipeError, match=r"'txt' \(did you mean 'text'\?\)"):
        landed(tmp_path, landing, {"txt": "body"})


@pytest.mark.parametrize("name", FORMS)
def test_the_names_of_fields_are_identity_and_reach_whoever_reads_the_file_again(name: str, tmp_path: Path) -> None:
    """`extract` reads texts from the landed file: what `ingest` stores of it has none."""
    landing, root = folder(tmp_path, {name: FORMS[name]}), tmp_path / "root"
    path, manifest = landed(tmp_path, landing, FIELDS)
    ingested, pages = refined(root, "ingest", path, landing=landing)
    _, documents = refined(root, "extract", ingested, {"min_chars": 1}, landing=landing)
    assert rows(root, pages, landing=landing)["text"].to_pylist() == [record["body"] for record in RECORDS]
    assert rows(root, documents)["text"].to_pylist() == [record["body"] for record in RECORDS]
    assert rows(root, documents)["url"].to_pylist() == [record["link"] for record in RECORDS]
    _, other = landed(tmp_path, landing, {**FIELDS, "id": "link"})
    assert other.fingerprint != manifest.fingerprint


def test_a_record_whose_id_has_another_name_is_found_again_where_no_name_says_what_its_file_is(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"data": lines(RECORDS)})
    piece = {"file": "data", "offset": 0, "snapshot": "s", "record_id": "0"}
    assert list(landed_header(landing, piece)) == ["WARC-Type: json"]
    with pytest.raises(ContractError, match="data has no record 0 at byte 1"):
        list(landed_header(landing, piece | {"offset": 1}))


def test_records_of_a_later_file_without_text_are_named_with_their_fields(tmp_path: Path) -> None:
    files = {"a.jsonl": lines([{"text": PROSE}]), "b.jsonl": lines(RECORDS * 3)}
    landing = folder(tmp_path, files)
    path, _ = landed(tmp_path, landing, {})
    with pytest.raises(BudgetExceeded) as refusal:
        refined(tmp_path / "root", "ingest", path, landing=landing)
    for word in ("27 of 28", "b.jsonl", "looked for text, content", "doc_id, body, link, seen", "`fields:`"):
        assert word in str(refusal.value)


def test_without_names_of_its_own_a_snapshot_is_what_it_was(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"a.jsonl": lines([{"text": PROSE}])})
    _, manifest = landed(tmp_path, landing, {})
    assert dict(manifest.params) == {"snapshot": "landing"}
    [shard] = manifest.shards
    assert shard.identity == f"{shard.digest} landing:a.jsonl"


# --- What lies beside data ---------------------------------------------------------------------------------------


def test_what_describes_a_dataset_is_no_data_of_it(tmp_path: Path) -> None:
    about = ("README.md", "LICENSE", ".gitattributes", "dataset_infos.json", "dataset_dict.json", "state.json")
    more = ("data/state.json", "croissant.json", "metadata.json", "config.json")
    data = ["data/test-00000-of-00001.parquet", "data/train-00000-of-00001.parquet"]
    body = table([{"text": PROSE}])
    files = dict.fromkeys([*about, *more], b'{"default": {"features": {"text": "string"}}}') | dict.fromkeys(data, body)
    listing = list_snapshot(folder(tmp_path, files))
    assert [name for name, _, _ in listing.files] == data
    assert {*listing.ignored, *(name for name, _ in listing.skipped)} == {*about, *more}


@pytest.mark.parametrize("name", ["a.csv", "part/a.CSV.gz"])
def test_a_csv_is_refused_by_its_name_with_a_way_out(name: str, tmp_path: Path) -> None:
    landing = folder(tmp_path, {name: b"id,text\n1,Some text.\n", "README.md": b"# Data"})
    with pytest.raises(NothingLanded) as refusal:
        list_snapshot(landing)
    for word in (f"{landing}/{name}", "CSV", "JSONL or Parquet", "read_csv"):
        assert word in str(refusal.value)


def test_the_command_that_an_error_gives_converts_a_csv_with_line_breaks(tmp_path: Path) -> None:
    """Texts have line breaks, and quotes in the names of folders are a shell's."""
    otter = b'"An otter' + b"\nand its cub" * 1_000 + b'",https://example.org/\n'
    landing = folder(tmp_path / "it's", {"a.csv": b"text,url\n" + otter * 200})  # 2 MB: the reader cuts it into blocks
    with pytest.raises(NothingLanded) as refused:
        list_snapshot(landing)
    (command,) = re.findall(r"such as by `([^`]*)`", str(refused.value))
    subprocess.run(["/bin/sh", "-c", command], check=True, cwd="/")
    table = pq.read_table(f"{landing}/a.csv.parquet")
    assert table["text"].to_pylist() == ["An otter" + "\nand its cub" * 1_000] * 200


def test_a_csv_that_is_promised_is_refused_too(tmp_path: Path) -> None:
    body = b"id,text\n1,Some text.\n"
    promise = {"files": [{"path": "a.csv", "bytes": len(body), "sha256": ""}]}
    landing = folder(tmp_path, {"a.csv": body, "snapshot.json": json.dumps(promise).encode()})
    with pytest.raises(RecipeError, match=r"a\.csv is CSV"):
        landed(tmp_path, landing, {})


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("README.md", True),
        ("data/dataset_infos.json", True),
        ("LICENSE", True),
        ("licence.txt", True),
        (".gitattributes", True),
        ("a.csv", False),
        ("README.warc.gz.part", False),
        ("readme_pages.html", False),
    ],
)
def test_files_about_the_data_are_not_missed(name: str, about: bool) -> None:
    assert is_about(name) == about
