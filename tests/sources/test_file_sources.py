"""Files of a folder land as records with their fields, or are refused at their line; the same files land once."""

import bz2
import gzip
import io
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from refinery_sources.recipe import parse_source, pull_recipe
from refinery_sources.testing import check_source

from pipeline_tasks.errors import ContractError, RecipeError, SourceBusy
from pipeline_tasks.landing.listing import list_snapshot
from pipeline_tasks.publish.logs import version_log
from tests.commands import Refinery
from tests.sources.pulling import (
    NOW,
    Killed,
    digests_of,
    killed_after,
    on_loopback,
    promise_of,
    pull_source,
    query_of,
    records_of,
)

PROSE = "The ferry leaves the harbor every morning before the fog has lifted from the water."
FIELDS = {"text": "body", "url": "link", "time": "published"}
CSV = "body,link,published,n\n" + "".join(
    f'"{PROSE}\n""{n}"", she said",https://a.org/{n},2026-01-0{n},\n' for n in range(1, 6)
)
TEXTS = [f'{PROSE}\n"{n}", she said' for n in range(1, 6)]


def files(folder: Path, **bodies: bytes) -> Path:
    for name, body in bodies.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return folder


def csv_source(place: Path, **more: Any) -> dict[str, Any]:
    return {"files": {"place": str(place), "format": "csv", "fields": FIELDS, **more}}


def test_rows_of_csv_land_with_texts_over_lines_and_what_is_unmapped_is_metadata(tmp_path: Path) -> None:
    place = files(tmp_path / "in", deep__a_csv=CSV.encode(), b_txt=b"no table")
    landed, _ = pull_source(csv_source(place), tmp_path / "landings")
    read = records_of(landed)
    assert [record["text"] for record in read] == TEXTS
    assert [record["url"] for record in read] == [f"https://a.org/{n}" for n in range(1, 6)]
    assert [record["crawled_at"] for record in read] == [f"2026-01-0{n}" for n in range(1, 6)]
    promise = promise_of(landed)
    assert promise["fields"] == {"text": "body", "url": "link", "date": "published"}
    assert [(file["path"], file["rows"]) for file in promise["files"]] == [("deep/a.csv.parquet", 5)]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a_csv_gz", gzip.compress(CSV.encode())),
        ("a_csv_bz2", bz2.compress(CSV.encode())),
        ("a_csv_zst", zstandard.compress(CSV.encode())),
        ("a_csv", b"\xef\xbb\xbf" + CSV.encode()),
    ],
)
def test_compression_and_marks_of_encodings_change_nothing(name: str, body: bytes, tmp_path: Path) -> None:
    landed, _ = pull_source(csv_source(files(tmp_path / "in", **{name: body})), tmp_path / "landings")
    assert [record["text"] for record in records_of(landed)] == TEXTS


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"body,link\nA,b\nA,b,c\n", "line 3: 3 fields"),
        (b'body,link\n"A\nB",b\nA\n', "line 4: 1 fields"),
        (b'body,link\n"A,b\n', "line 2"),
        (b'body,link\n"A"x,b\n', "line 2"),
        (b"body,link\nA\xff,b\n", "line 2: .*0xFF.*utf-8.*`encoding`"),
        (b"body,link\n" + b"A,b\n" * 5000 + b"A\xff,b\n", "line 5,002: "),
        (CSV.encode("utf-16"), "line 1: .*`encoding`.*utf-16"),
        (CSV.encode("utf-16-le"), "line 1: .*`encoding`.*utf-16"),
        (b"body;link\nA, b;c\n", "delimiter"),
        (b"", "empty"),
    ],
)
def test_a_row_that_is_none_is_refused_with_file_and_line(body: bytes, line: str, tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=body)
    with pytest.raises((ContractError, RecipeError), match=rf"a\.csv.*{line}"):
        pull_source(csv_source(place, fields={"text": "body"}), tmp_path / "landings")
    assert not list((tmp_path / "landings").rglob("snapshot.json"))


@pytest.mark.parametrize("body", [b"A text without a header,https://a.org/\n", b"body;link\nA;b\n"])
def test_a_table_without_the_columns_names_the_options_of_its_form(body: bytes, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"a\.csv.*`delimiter`.*`columns`"):
        pull_source(csv_source(files(tmp_path / "in", a_csv=body), fields={"text": "body"}), tmp_path / "landings")


@pytest.mark.parametrize("place", ["missing/folder", "empty"])
def test_a_place_without_anything_is_named(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecipeError, match=rf"{place} (?:does not exist|is empty)"):
        pull_source(csv_source(tmp_path / place), tmp_path / "landings")


@pytest.mark.parametrize(
    ("name", "pack"), [("a_jsonl_gz", gzip.compress), ("a_jsonl_zst", zstandard.compress), ("a_warc_gz", gzip.compress)]
)
def test_lines_and_archives_that_are_cut_do_not_land(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    body = b"".join(b'{"text": "%s %d"}\n' % (PROSE.encode(), number) for number in range(2000))
    place, form = tmp_path / "in", name.split("_")[1]
    pull_source({"files": {"place": str(files(place, **{name: pack(body)})), "format": form}}, tmp_path / "whole")
    files(place, **{name: pack(body)[:-9]})
    with pytest.raises(ContractError, match="damaged"):
        pull_source({"files": {"place": str(place), "format": form}}, tmp_path / "landings")


@pytest.mark.parametrize(
    ("name", "body"), [("a_csv_gz", gzip.compress(CSV.encode())[:-9]), ("a_csv_bz2", bz2.compress(CSV.encode())[:-9])]
)
def test_a_compressed_file_that_is_cut_is_damaged(name: str, body: bytes, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="damaged"):
        pull_source(csv_source(files(tmp_path / "in", **{name: body})), tmp_path / "landings")


def test_delimiter_encoding_and_names_are_those_of_the_recipe(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv="Über uns;1\nSmørrebrød;2\n".encode("latin-1"))
    more = {"delimiter": ";", "encoding": "latin-1", "columns": ["body", "n"], "fields": {"text": "body"}}
    landed, _ = pull_source(csv_source(place, **more), tmp_path / "landings")
    assert [(record["text"], record["metadata"]) for record in records_of(landed)] == [
        ("Über uns", '{"n":"1"}'),
        ("Smørrebrød", '{"n":"2"}'),
    ]


def test_tabs_part_the_fields_of_tsv(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_tsv=b"text\turl\nA, b\thttps://a.org/\n")
    landed, _ = pull_source({"files": {"place": str(place), "format": "tsv"}}, tmp_path / "landings")
    assert [(record["text"], record["url"]) for record in records_of(landed)] == [("A, b", "https://a.org/")]


def test_html_of_a_column_is_a_page(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=b"page,url\nOne <b>word</b>,https://a.org/\n")
    landed, _ = pull_source(csv_source(place, fields={"html": "page"}), tmp_path / "landings")
    [record] = records_of(landed)
    assert (record["payload"], record["content_type"]) == (b"One <b>word</b>", "text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"fields": {"text": "bodi"}}, "bodi; .*body, link, published, n"),
        ({"fields": {}}, "body, link, published, n"),
        ({"fields": {"txt": "body"}}, "txt"),
        ({"fields": {"time": "published", "date": "published"}}, "time and date"),
        ({"encoding": "utf-9"}, "utf-9"),
        ({"include": ["*.dat"]}, "no csv files"),
        ({"format": "parquet", "delimiter": ";"}, "delimiter"),
        ({"format": "pdf"}, "pdf"),
        ({"format": "text", "encoding": "latin-1", "include": ["*.csv"], "fields": {}}, "encoding 'latin-1' is of csv"),
        ({"format": "jsonl", "include": ["*.csv"]}, r"a\.csv is no jsonl file"),
        ({"format": "parquet", "include": ["*.csv"]}, r"a\.csv is no parquet file"),
        ({"delimiter": "ab"}, "delimiter"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(more: dict[str, Any], named: str, tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=CSV.encode())
    with pytest.raises(RecipeError, match=named):
        pull_source(csv_source(place, **more), tmp_path / "landings")


def test_a_header_with_a_name_twice_is_refused(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=b"body,body\nA,b\n")
    with pytest.raises(RecipeError, match="twice"):
        pull_source(csv_source(place, fields={"text": "body"}), tmp_path / "landings")


def table(rows: list[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def test_tables_of_other_splits_stay_where_they_are_unless_patterns_choose_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    for name in ("train-0.csv", "test-0.csv", "test-1.csv"):
        (place / name).write_text(CSV)
    landed, _ = pull_source(csv_source(place), tmp_path / "train")
    assert [file["path"] for file in promise_of(landed)["files"]] == ["train-0.csv.parquet"]
    assert [line for line in caplog.messages if "2 files left out: test-0.csv, test-1.csv (of the split test" in line]
    landed, _ = pull_source(csv_source(place, include=["test-*"]), tmp_path / "test")
    assert len(promise_of(landed)["files"]) == 2
    (place / "train-0.csv").unlink()
    with pytest.raises(RecipeError, match="of splits train alone is taken; name others by `include`"):
        pull_source(csv_source(place), tmp_path / "none")


def test_lines_and_tables_land_as_they_are_and_are_read_by_their_names(tmp_path: Path) -> None:
    row = {"doc": {"body": PROSE, "lang": "en"}, "link": "https://a.org/"}
    line = json.dumps(row).encode() + b"\n"
    place = files(tmp_path / "in", b_jsonl=line, c__d_jsonl_bz2=bz2.compress(line), e_parquet=table([row]))
    fields = {"text": "doc.body", "url": "link"}
    source = {"files": {"place": str(place), "format": "jsonl", "fields": fields}}
    landed, _ = pull_source(source, tmp_path / "landings")
    assert (landed / "b.jsonl").read_bytes() == (landed / "c/d.jsonl").read_bytes() == line
    tables, _ = pull_source({"files": {**source["files"], "format": "parquet"}}, tmp_path / "tables")
    assert (tables / "e.parquet").read_bytes() == (place / "e.parquet").read_bytes()
    for record in records_of(landed) + records_of(tables):
        assert (record["text"], record["url"], record["metadata"]) == (PROSE, row["link"], '{"doc":{"lang":"en"}}')


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"text\n", "no Parquet file"),
        (gzip.compress(table([{"text": PROSE}])), "no Parquet file"),
        (table([{"text": PROSE}])[:-9], "cut or damaged"),
        (b"PAR1" + b"\0" * 20 + b"PAR1", "cut or damaged"),
    ],
)
def test_what_is_no_parquet_file_does_not_land_as_one(body: bytes, named: str, tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_parquet=table([{"text": PROSE}]), b_parquet=body)
    with pytest.raises(ContractError, match=rf"b\.parquet.*{named}"):
        pull_source({"files": {"place": str(place), "format": "parquet"}}, tmp_path / "landings")
    assert not list((tmp_path / "landings").rglob("snapshot.json"))


def test_lines_without_the_text_are_refused_with_what_they_have(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_jsonl=b'{"doc": {"body": "A"}}\n')
    with pytest.raises(RecipeError, match=r"doc\.text; .*doc\.body"):
        pull_source(
            {"files": {"place": str(place), "format": "jsonl", "fields": {"text": "doc.text"}}}, tmp_path / "landings"
        )


def test_the_same_files_land_once_with_the_same_bytes_and_changed_ones_again(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=CSV.encode(), b_csv=CSV.encode())
    first, landed = pull_source(csv_source(place), tmp_path / "landings")
    again, found = pull_source(csv_source(place), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert (first, landed.files, found.found) == (again, 2, 2)
    other, _ = pull_source(csv_source(place), tmp_path / "others", moment=NOW + timedelta(days=1))
    assert digests_of(first) == digests_of(other)
    (place / "b.csv").write_bytes(CSV.encode() * 2)
    later, _ = pull_source(csv_source(place, exclude=["a.*"]), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert later.name > first.name


def test_a_killed_pull_goes_on_where_it_was(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=CSV.encode(), b_csv=CSV.encode() + b'"A",b,c,\n' * 200, c_csv=CSV.encode())
    with pytest.raises(Killed):
        pull_source(csv_source(place), tmp_path / "landings", on_bytes=killed_after(3_000))
    landed, result = pull_source(csv_source(place), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert landed.name == "news-20260105T060000Z"
    assert 0 < result.found < 3
    whole, _ = pull_source(csv_source(place), tmp_path / "whole")
    assert digests_of(landed) == digests_of(whole)


def test_files_keep_what_every_source_promises(tmp_path: Path) -> None:
    whole, cut = (csv_source(tmp_path / name) for name in ("whole", "cut"))
    files(tmp_path / "whole", a_csv=CSV.encode(), b_csv_gz=gzip.compress(CSV.encode()))
    files(tmp_path / "cut", a_csv=CSV.encode(), b_csv_gz=gzip.compress(CSV.encode())[:-9])
    check_source(query_of(whole), cut=query_of(cut))


@pytest.mark.slow
def test_a_landed_csv_is_refined(tmp_path: Path, refinery: Refinery) -> None:
    place = files(tmp_path / "in", a_csv=CSV.encode())
    landed, _ = pull_source(csv_source(place), tmp_path / "landings")
    recipe = tmp_path / "small.yaml"
    recipe.write_text(
        "name: small\nstages:\n  ingest: {}\n  extract: {min_chars: 20}\nrun: {partitions: 1}\ngates: {}\n"
    )
    done = refinery("run", "--input", landed, "--output", tmp_path / "root", "--recipe", recipe, "--engine", "local")
    assert done.returncode == 0, done.stderr
    assert version_log.current(str(tmp_path / "root"), "small", landed.name).documents == 5


def test_lines_after_public_reports_are_kept_or_refused_as_they_are_without_a_pull(
    tmp_path: Path, shared_data: Path
) -> None:
    reports = shared_data / "public-reports"
    if not reports.is_dir():
        pytest.skip("the inputs made after public reports are not there")
    names = sorted(str(file.relative_to(reports)) for file in reports.glob("*/input.jsonl"))
    assert names
    source = {"files": {"place": str(reports), "format": "jsonl", "include": names}}
    landed, _ = pull_source(source, tmp_path / "landings")
    assert {name: (landed / name).read_bytes() for name in names} == {
        name: (reports / name).read_bytes() for name in names
    }


def test_files_in_folders_land_in_a_bucket(tmp_path: Path, s3_root: str) -> None:
    place = files(tmp_path / "in", deep__er__a_jsonl=b'{"text": "A"}\n', b_jsonl=b'{"text": "B"}\n')
    recipe = parse_source({"source": {"files": {"place": str(place), "format": "jsonl"}}}, "news.yaml", {})
    with on_loopback() as on:
        uri, landed = pull_recipe(recipe, f"{s3_root}/landings", tmp_path / "spool", on, NOW)
    assert (landed.files, [name for name, _, _ in list_snapshot(uri).files]) == (2, ["b.jsonl", "deep/er/a.jsonl"])


def test_a_file_that_grows_while_it_is_pulled_is_not_landed(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_csv=CSV.encode())

    def grow(_name: str, _size: int) -> None:
        (place / "a.csv").write_bytes(CSV.encode() + b'"A",b,c,\n')

    with pytest.raises(SourceBusy, match=r"a\.csv has"):
        pull_source(csv_source(place), tmp_path / "landings", on_bytes=grow)


def test_records_that_lost_their_text_are_no_file_without_the_field(tmp_path: Path) -> None:
    place = files(tmp_path / "in", a_jsonl=b'{"doc": {"body": null}}\n' * 3, b_jsonl_gz=gzip.compress(b'{"body": 1}\n'))
    source = {"place": str(place), "format": "jsonl", "fields": {"text": "doc.body"}}
    landed, _ = pull_source({"files": {**source, "exclude": ["b.*"]}}, tmp_path / "landings")
    assert [record["error"] for record in records_of(landed)] == ["no_text"] * 3
    with pytest.raises(RecipeError, match=r"b\.jsonl\.gz: .*doc\.body; the fields are body"):
        pull_source({"files": source}, tmp_path / "others")


def test_a_place_may_be_one_file(tmp_path: Path) -> None:
    place = files(tmp_path / "in", b_csv=CSV.encode())
    (place / "a[1].csv").write_bytes(CSV.encode())
    landed, result = pull_source(csv_source(place / "a[1].csv"), tmp_path / "landings")
    again, found = pull_source(csv_source(place / "a[1].csv"), tmp_path / "landings", moment=NOW + timedelta(days=1))
    assert [file["path"] for file in promise_of(landed)["files"]] == ["a[1].csv.parquet"]
    assert (again, result.files, found.found) == (landed, 1, 1)
