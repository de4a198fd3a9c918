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
from pipeline_tasks.inspect.document.trace import landed_header
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


def test_all_files_with_damaged_records_are_named_with_their_causes(tmp_path: Path) -> None:
    whole = json.dumps({"text": PROSE}).encode() + b"\n"
    files = {
        "a.jsonl": whole * 3,
        "broken.jsonl": b'{"text": "a"\n' * 2,
        "latin1.jsonl": '{"text": "café"}\n'.encode("latin-1") * 3,
        "utf16.jsonl": whole.decode().encode("utf-16") * 20,
        **{f"z{number:02}.jsonl": b"{\n" for number in range(9)},
    }
    landing = folder(tmp_path, files)
    path, _ = landed(tmp_path, landing, {})
    with pytest.raises(BudgetExceeded) as refusal:
        refined(tmp_path / "root", "ingest", path, landing=landing)
    said = str(refusal.value)
    for words in ("3 of latin1.jsonl (error:json", "2 of broken.jsonl (error:json", "of utf16.jsonl (error:json"):
        assert words in said
    assert "not UTF-8 at byte 13" in said
    assert "not UTF-8: every second byte is NUL, as in UTF-16" in said
    assert "those of 2 other files; the budget is" in said
    assert "a.jsonl (" not in said


def test_without_names_of_its_own_a_snapshot_is_what_it_was(tmp_path: Path) -> None:
    landing = folder(tmp_path, {"a.jsonl": lines([{"text": PROSE}])})
    _, manifest = landed(tmp_path, landing, {})
    assert dict(manifest.params) == {"snapshot": "landing"}
    [shard] = manifest.shards
    assert shard.identity == f"{shard.digest} landing:a.jsonl"


@pytest.mark.parametrize(("there", "wanted"), [("Body text", "Body Text"), ("body_text", "body-text"), ("Text", "")])
def test_a_field_that_is_written_nearly_so_is_named(there: str, wanted: str, tmp_path: Path) -> None:
    for name, body in (("a.jsonl", json.dumps({there: PROSE}).encode()), ("b.parquet", table([{there: PROSE}]))):
        landing = folder(tmp_path / name.replace(".", "-"), {name: body})
        with pytest.raises(RecipeError, match=re.escape(f"(did you mean {there!r}?). Name the field")):
            landed(tmp_path, landing, {"text": wanted} if wanted else {})


# --- What lies beside data ---------------------------------------------------------------------------------------


def test_what_describes_a_dataset_is_no_data_of_it(tmp_path: Path) -> None:
    about = ("README.md", "LICENSE", ".gitattributes", "dataset_infos.json", "dataset_dict.json", "state.json")
    more = ("data/state.json", "croissant.json", "metadata.json", "config.json")
    data = ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"]
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
    (command,) = re.findall(r", or by `([^`]*)`", str(refused.value))
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


# --- Paths, HTML, and names that a snapshot brings ----------------------------------------------------------------

NESTED = [
    {
        "doc": {"body": f"{PROSE} {n}", "title": f"Ferry {n}", "at": {"url": f"https://a.org/{n}"}},
        "score": {"mean": float("nan")} if n % 2 else None,
        "n": n,
    }
    for n in range(9)
]
PATHS = {"text": "doc.body", "url": "doc.at.url"}


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_path_leads_into_objects_and_what_is_beside_it_stays(name: str) -> None:
    body = lines(NESTED) if name == "a.jsonl" else table(NESTED)
    read = pa.Table.from_batches(list(read_records(name, io.BytesIO(body), snapshot="s", fields=PATHS))).to_pylist()
    assert [row["error"] for row in read] == [None] * 9
    assert [row["text"] for row in read] == [record["doc"]["body"] for record in NESTED]
    assert [row["url"] for row in read] == [f"https://a.org/{n}" for n in range(9)]
    assert [json.loads(row["metadata"])["doc"] for row in read] == [{"title": f"Ferry {n}"} for n in range(9)]


def test_a_number_that_json_lacks_beside_a_text_costs_the_text_nothing() -> None:
    records = [{"doc": {"body": PROSE, "score": score}} for score in (float("nan"), 1.0)]
    [batch] = read_records("a.parquet", io.BytesIO(table(records)), snapshot="s", fields={"text": "doc.body"})
    assert batch["text"].to_pylist() == [PROSE, PROSE]
    assert batch["metadata"].to_pylist() == ['{"unreadable_fields":["doc"]}', '{"doc":{"score":1.0}}']


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_field_with_dots_in_its_name_goes_before_a_path(name: str) -> None:
    records = [{"doc.body": "whole", "doc": {"body": "inner"}}]
    body = lines(records) if name == "a.jsonl" else table(records)
    [batch] = read_records(name, io.BytesIO(body), snapshot="s", fields={"text": "doc.body"})
    assert batch["text"].to_pylist() == ["whole"]


def test_structs_that_are_missing_have_no_text() -> None:
    """A struct that is null may have values below, which nobody wrote."""
    body = pa.array([PROSE, PROSE, PROSE])
    doc = pa.StructArray.from_arrays([body, pa.array([1, 2, 3])], ["body", "n"], mask=pa.array([False, True, False]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"doc": doc}), sink)
    [batch] = read_records("a.parquet", io.BytesIO(sink.getvalue()), snapshot="s", fields={"text": "doc.body"})
    assert batch["error"].to_pylist() == [None, "no_text", None]
    assert batch["metadata"].to_pylist() == ['{"doc":{"n":1}}', None, '{"doc":{"n":3}}']


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_a_path_that_leads_nowhere_is_refused_with_what_there_is(name: str, tmp_path: Path) -> None:
    landing = folder(tmp_path, {name: lines(NESTED) if name == "a.jsonl" else table(NESTED)})
    with pytest.raises(RecipeError, match=r"looked for doc\.text; .*doc\.body, doc\.title"):
        landed(tmp_path, landing, {"text": "doc.text"})


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_html_of_a_field_goes_through_extraction(name: str, tmp_path: Path) -> None:
    """A fragment is not taken for HTML by itself: only whoever knows the field can say it."""
    records = [{"page": f"Before <b>{PROSE}</b> {n} &amp; after <script>x()</script>", "n": n} for n in range(3)]
    body = lines(records) if name == "a.jsonl" else table(records)
    landing, root = folder(tmp_path, {name: body}), tmp_path / "root"
    path, _ = landed(tmp_path, landing, {"html": "page"})
    ingested, pages = refined(root, "ingest", path, landing=landing)
    _, documents = refined(root, "extract", ingested, {"min_chars": 1}, landing=landing)
    assert rows(root, pages, landing=landing)["metadata"].to_pylist() == [f'{{"n":{n}}}' for n in range(3)]
    read = rows(root, documents)["text"].to_pylist()
    assert [text.split() for text in read] == [f"Before {PROSE} {n} & after".split() for n in range(3)]


def test_a_snapshot_says_by_which_names_it_is_read_and_a_recipe_goes_before_it(tmp_path: Path) -> None:
    body = FORMS["a.jsonl"]
    file = {"path": "a.jsonl", "bytes": len(body), "sha256": ""}
    promise = {"files": [file], "fields": {"html": "doc_id", "url": "link"}}
    landing = folder(tmp_path, {"a.jsonl": body, "snapshot.json": json.dumps(promise).encode()})
    _, own = landed(tmp_path, landing, {"text": "body"})
    assert own.params["fields"] == {"text": "body", "url": "link"}
    promise["fields"] = {"text": "body", "url": "link"}
    Path(landing, "snapshot.json").write_text(json.dumps(promise))
    _, manifest = landed(tmp_path, landing, {})
    assert manifest.params["fields"] == {"text": "body", "url": "link"}
    assert [json.loads(shard.fields) for shard in manifest.shards] == [{"text": "body", "url": "link"}]


@pytest.mark.parametrize("fields", [{"txt": "body"}, {"text": 1}, {"text": ""}, ["text"]])
def test_a_promise_of_names_that_are_none_is_refused(fields: object, tmp_path: Path) -> None:
    promise = {"files": [{"path": "a.jsonl", "bytes": len(FORMS["a.jsonl"]), "sha256": ""}], "fields": fields}
    landing = folder(tmp_path, {"a.jsonl": FORMS["a.jsonl"], "snapshot.json": json.dumps(promise).encode()})
    with pytest.raises(ContractError, match=r"snapshot\.json"):
        list_snapshot(landing)


def test_a_recipe_that_names_the_promised_text_changes_nothing(tmp_path: Path) -> None:
    """So a snapshot is refined again, after a retraction, by the text field that its manifest has."""
    body = lines([{"page": "<p>One</p>", "plain": "One"}])
    promise = {
        "files": [{"path": "a.jsonl", "bytes": len(body), "sha256": ""}],
        "fields": {"html": "page", "text": "plain"},
    }
    landing = folder(tmp_path, {"a.jsonl": body, "snapshot.json": json.dumps(promise).encode()})
    _, first = landed(tmp_path, landing, {})
    _, again = landed(tmp_path, landing, {"text": "plain"})
    assert first.fingerprint == again.fingerprint
