"""`refinery look types` accounts for every row of every type, in each stage; so does the report."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pipeline_tasks import api
from pipeline_tasks.cli.main import main
from pipeline_tasks.inspect.verify.verification import verify
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.profiles.file_types import TYPES, rows_by_type
from pipeline_tasks.store.reading import read_manifest
from tests.archives import http, response, warc, zipped

PAGE = "<html><title>{0}</title><body><p>{1}</p></body></html>"
TEXT = " ".join(f"Sentence number {number} is one of the plain sentences of this text." for number in range(9))

RECORDS = {
    "a": http(PAGE.format("a", TEXT).encode()),
    "b": http(PAGE.format("b", TEXT).encode()),
    "c": http(PAGE.format("c", TEXT + " It has one more.").encode()),
    "short": http(PAGE.format("d", "Too short.").encode()),
    "gone": http(PAGE.format("e", TEXT).encode(), "404 Not Found"),
    "plain": http(f"Another text. {TEXT}".encode(), headers="Content-Type: text/plain"),
    "image": http(b"\x89PNG\r\n\x1a\n" + bytes(200), headers="Content-Type: image/png"),
}
NO_PAGES = [("metadata", "https://a.example.org/"), ("resource", "dns:a.example.org"), ("resource", "metadata://a/b")]
STAGES = ("ingest", "extract", "dedup_exact")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A snapshot of pages, a text, an image, a request and a record that is cut, refined by three stages."""
    folder = tmp_path_factory.mktemp("types")
    archive = zipped([response(f"https://{name}.example.org/", body) for name, body in RECORDS.items()])
    archive += zipped([warc("request", b"GET / HTTP/1.1\r\n\r\n", "https://a.example.org/")])
    archive += zipped([warc(kind, b"a: b\r\n", url, content_type="text/plain") for kind, url in NO_PAGES])
    archive += [zipped([response("https://cut.example.org/")])[0][:-9]]
    (folder / "crawl").mkdir()
    (folder / "crawl" / "a.warc.gz").write_bytes(b"".join(archive))
    recipe = api.recipe(STAGES, "mine")
    api.refine(
        folder / "crawl", folder / "root", recipe, snapshot="monday", override=dict.fromkeys((*STAGES, "publish"), "-")
    )
    return str(folder / "root")


def manifests(root: str) -> dict[str, Manifest]:
    [version] = api.versions(root)
    return {stage: read_manifest(root, version.manifests[stage]) for stage in STAGES}


def test_rows_in_are_kept_rejected_or_quarantined_by_type(root: str) -> None:
    for manifest in manifests(root).values():
        types = rows_by_type(manifest)
        assert sum(of_type.rows_in for of_type in types.values()) == manifest.rows_in
        assert sum(of_type.kept for of_type in types.values()) == manifest.rows
        removed = sum((Counter(of_type.removed) for of_type in types.values()), Counter[str]())
        assert removed == {**manifest.rejected, **manifest.quarantined}
        counted = sum(manifest.metrics[rows].get(TYPES, {"count": 0})["count"] for rows in ("kept", "rejects"))
        assert counted == manifest.rows_in, "each row was counted, and none only follows from the others"
    ingest = rows_by_type(manifests(root)["ingest"])
    assert ingest["html"] == (4, {"ingest:status": 1})
    assert ingest["text"] == (1, {})
    assert list(ingest) == ["html", "text", ""]
    assert ingest[""].kept == 0
    assert {"ingest:not_html": 1, "ingest:not_page": 1 + len(NO_PAGES)}.items() <= ingest[""].removed.items()
    assert sum(rows for reason, rows in ingest[""].removed.items() if reason.startswith("error:")) == 1


def test_a_question_has_each_type_from_the_first_stage_to_the_last(root: str) -> None:
    facts = api.ask("look types", root).json
    assert isinstance(facts, dict)
    html, text, other = facts["types"]
    assert (html["type"], html["rows_in"], html["kept"]) == ("html", 5, 2)
    assert html["reasons"] == {"dedup_exact:duplicate": 1, "extract:too_short": 1, "ingest:status": 1}
    assert (text["type"], text["rows_in"], text["kept"], text["rejected"]) == ("text", 1, 1, 0)
    assert (other["type"], other["rows_in"], other["kept"], other["quarantined"]) == (None, 3 + len(NO_PAGES), 0, 1)
    assert [row["stage"] for row in facts["stages"]] == ["ingest"] * 3 + ["extract"] * 2 + ["dedup_exact"] * 2


def test_the_command_has_a_line_for_each_type_and_for_all(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", "types", root]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"html +5 +2 +40\.0 % +3 +0\n +dedup_exact:duplicate 1, extract:too_short 1", printed), printed
    assert re.search(r"of no known type +6 +0", printed)
    assert re.search(r"all +12 +3", printed)
    assert main(["look", "types", root, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == api.ask("look types", root).json


def test_the_report_has_a_table_by_type(root: str) -> None:
    [report] = Path(root).glob("**/report-*.html")
    section = report.read_text().partition("<h2>Files by type</h2>")[2].partition("</section>")[0]
    cells = [re.sub("<[^>]+>", "|", row) for row in section.split("<tr>")]
    assert any(re.fullmatch(r"\|+html\|+5\|+2\|+40.0 %\|+3\|+0\|.*ingest:status.*", cell) for cell in cells), cells
    assert any(re.match(r"\|+all\|+12\|+3\|", cell) for cell in cells)


def test_types_are_computed_again_by_verify(root: str) -> None:
    assert not verify(root).findings.problems
