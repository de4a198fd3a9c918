"""Small inputs after public bug reports have the same outcome where a source brought them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.schema import PAGE
from pipeline_tasks.stages import extract, ingest
from tests.sources.hub_server import hub_server
from tests.sources.pulling import pull_source, records_of


@pytest.fixture
def reports(shared_data: Path) -> Path:
    place = shared_data / "public-reports"
    if not place.is_dir():
        pytest.skip("the inputs made after public reports are not there")
    return place


def outcome(file: Path) -> dict[str, Any]:
    """Return the row of the first record of a landed file behind `ingest` and `extract`."""
    with file.open("rb") as stream:
        records = list(read_records(file.name, stream, snapshot="s"))
    [pages] = ingest.select_pages(iter(records), params=ingest.Params())
    row = dict(pages.slice(0, 1).to_pylist()[0])
    if row["reason"]:
        return row
    [extracted] = extract.extract_pages(iter([pages.select(PAGE.names).slice(0, 1)]), params=extract.Params())
    return dict(extracted.to_pylist()[0])


def pages_of(reports: Path, *endings: str) -> list[str]:
    """Return the inputs whose first record is a page of a known text: others are for stages behind `extract`."""
    files = [file for end in endings for file in reports.glob(f"*/input.{end}")]
    return sorted(str(file.relative_to(reports)) for file in files if "text_contains" in expected_of(file))


def expected_of(file: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(file.with_name("expected.json").read_text())["expected"]
    return expected


def assert_outcomes(place: Path, names: list[str], reports: Path) -> None:
    assert names
    for name in names:
        expected, row = expected_of(reports / name), outcome(place / name)
        assert row["reason"] == expected["reason"], name
        assert [part for part in (expected["text_contains"],) if part not in (row["text"] or "")] == [], name


def test_records_that_a_hub_gave(reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = pages_of(reports, "warc", "jsonl")
    with hub_server() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.files = {name: (reports / name).read_bytes() for name in names}
        hub.large = set(names[::2])
        landed, _ = pull_source({"hugging_face": {"repository": hub.repository}}, tmp_path / "landings")
    assert_outcomes(landed, names, reports)


def test_lines_that_a_folder_gave(reports: Path, tmp_path: Path) -> None:
    names = pages_of(reports, "jsonl")
    source = {"files": {"place": str(reports), "format": "jsonl", "include": names}}
    landed, _ = pull_source(source, tmp_path / "landings")
    assert_outcomes(landed, names, reports)


@pytest.mark.parametrize("kind", ["files", "git"])
def test_texts_that_a_tree_or_a_repository_gave(
    reports: Path, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # what is fetched of a repository is kept there
    place = tmp_path / "in"
    names = sorted(str(file.relative_to(reports)) for file in reports.glob("*/input.txt"))
    assert names
    for name in names:
        (place / name).parent.mkdir(parents=True)
        shutil.copy(reports / name, place / name)
    source: dict[str, Any] = {"files": {"place": str(place), "format": "text"}}
    if kind == "git":
        who = ["-c", "user.name=Ann", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "one"]):
            subprocess.run(["git", "-C", str(place), *words], check=True)
        source = {"git": {"repository": str(place)}}
    landed, _ = pull_source(source, tmp_path / "landings")
    read = {json.loads(record["metadata"])["path"]: record["text"] for record in records_of(landed)}
    assert read == {name: (reports / name).read_text() for name in names}


def test_a_number_that_json_lacks_costs_a_row_of_a_table_that_field_only(reports: Path, tmp_path: Path) -> None:
    """As `jsonl-nan` of the reports, in a table, which has such numbers."""
    import pyarrow as pa

    deltalake = pytest.importorskip("deltalake")
    text = json.loads((reports / "jsonl-nan" / "input.jsonl").read_text().splitlines()[0])["text"]
    deltalake.write_deltalake(str(tmp_path / "t"), pa.table({"text": [text], "score": [float("nan")]}))
    landed, _ = pull_source({"delta": {"table": str(tmp_path / "t")}}, tmp_path / "landings")
    [record] = records_of(landed)
    assert (record["text"], json.loads(record["metadata"])) == (text, {"unreadable_fields": ["score"]})
