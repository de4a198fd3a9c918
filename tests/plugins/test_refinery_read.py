"""The reading page: a blind sample beside its pages, answers of those who may read texts, shares for everybody."""

import html
import logging
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from refinery_study.read.answers import READINGS, answers
from refinery_study.read.beside import FilePage, LandedPage, Line, cut_pieces, landed_page
from refinery_study.read.sample import Choice, draw, read_drawn, sample

from pipeline_tasks.publish.logs import version_log
from tests.archives import http, response, zipped
from tests.chain import How, refined
from tests.markup import assert_inert
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"
DAY, PATH = "2026-11-19", "/read/tiny/2026-11-19"
RECIPE_FILE = """
name: tiny
stages:
  ingest: {}
  extract: {min_chars: 60}
  filter_language: {keep: [en]}
  filter_quality:
    edit: true
    profiles: [gopher_quality, c4]
    gopher_quality: {min_doc_words: 20, min_stop_words: 1}
    c4: {min_num_sentences: 1}
  scrub_pii: {action: redact}
"""
LINE = "Ask for the ferry at harbor@ferries.org before the fog has lifted from the water and the day begins."
CUT = f"Turn on javascript here or write to spam@cut.example.org about {html.escape(SCRIPT)} today."
BODIES = {
    "https://a.example.org/1": f"<nav><a href='/'>All ferries of the coast</a></nav><p>{LINE}</p>" * 3,
    "https://a.example.org/cut": f"<p>{LINE.replace('day', 'dusk')}</p><p>{CUT}</p>" + f"<p>{LINE}</p>" * 9,
    "https://a.example.org/short": "<p>Nobody waits for the last ferry of the day, which is late as ever and full.</p>",
}


@pytest.fixture
def root(tmp_path: Path, refined_once: Path) -> Path:
    """A root of two kept documents and one that is too short, to write answers to."""
    shutil.copytree(refined_once, tmp_path / "root")
    return tmp_path / "root"


@pytest.fixture(scope="module")
def refined_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crawl")
    (landing := folder / DAY).mkdir()
    pages = [response(url, http(f"<html><body>{body}</body></html>".encode())) for url, body in BODIES.items()]
    (landing / "a.warc.gz").write_bytes(b"".join(zipped(pages)))
    (folder / "tiny.yaml").write_text(RECIPE_FILE)
    refined(str(folder / "root"), str(landing), How(recipe=str(folder / "tiny.yaml")))
    return folder / "root"


def version(root: Path) -> version_log.Version:
    return version_log.current(str(root), "tiny")


def document_of(root: Path, url: str) -> Any:
    return next(each for each in sample(str(root), version(root), Choice()) if each.url.endswith(url))


def field(page: str, name: str) -> str:
    return html.unescape(re.findall(f'name="{name}" value="([^"]*)"', page)[0])


def test_a_sample_is_drawn_without_reading_a_text(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page draws among half a million rows; texts are read of the one that it shows."""
    read, read_group = set[str](), pq.ParquetFile.read_row_group

    def noted(file: pq.ParquetFile, group: int, columns: list[str], **how: Any) -> Any:
        read.update(columns)
        return read_group(file, group, columns, **how)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    drawn = draw(str(root), version(root), Choice())
    assert (len(drawn), {"id", "reason"} <= read) == (3, True)
    assert [name for name in read if name.endswith("text") or name.startswith(("signals", "blocks"))] == []
    [document] = read_drawn(str(root), version(root), drawn[:1])
    assert (document.id, "text" in read) == (drawn[0].id, True)
    assert [name for name in read if name.startswith(("signals", "blocks"))] == []


def answer(visitor: Any, page: str, verdict: str, why: str = "", **other: str) -> Any:
    """Send the form of a page as a browser does, and do not follow where it leads."""
    form = {"verdict": verdict, "why": why} | {name: field(page, name) for name in ("id", "after", "token")} | other
    return visitor.post(PATH, data=form, follow_redirects=False)


def test_a_reader_judges_the_sample_and_sees_what_became_of_each_afterwards(visitor: Any, root: Path) -> None:
    page = visitor.get(PATH)
    outcomes = []
    for place in (1, 2, 3):
        assert f"document {place} of 3" in page.text
        assert ('role="status"' in page.text) == (place > 1)
        given = answer(visitor, page.text, "bad" if place == 2 else "good", "half of it" if place == 2 else "")
        assert given.status_code == 303
        page = visitor.get(given.headers["location"].removeprefix("/refinery"))
        outcomes += re.findall("before: it was (kept|rejected by filter_quality|rejected by extract)", page.text)
    assert sorted(outcomes) == ["kept", "kept", "rejected by filter_quality"]
    assert "You have judged all 3 documents" in page.text
    stored = answers(str(root), "tiny")
    assert {(each.reader, each.verdict, each.why) for each in stored} == {
        ("ada", "good", ""),
        ("ada", "bad", "half of it"),
    }
    assert len(list(Path(root, READINGS, "tiny").iterdir())) == 3
    assert "gopher_quality:short_doc" in page.text
    assert "98.7 %" in page.text  # of 1 of 2


def test_a_document_is_beside_its_page_with_what_was_cut_and_without_personal_data(root: Path) -> None:
    first = document_of(root, "/1")
    page = landed_page(str(root), version(root), first)
    assert page.why_not == ""
    lacking = [line.text for line in page.lines if not line.is_kept]
    assert [line for line in lacking if line.strip()] == ["All ferries of the coast"] * 3
    shown = "\n".join(line.text for line in page.lines)
    assert "ferries.org" not in shown
    assert shown.count("before the fog has lifted") == 3
    cut = [
        piece.text for piece in cut_pieces(str(root), version(root), document_of(root, "/cut")) if piece.kind == "cut"
    ]
    assert "spam@" not in "".join(cut)
    assert "Turn on javascript here" in "".join(cut)


def why_not(root: Path, document: Any) -> LandedPage:
    page = landed_page(str(root), version(root), document)
    assert page.lines == ()
    return page


def test_a_page_that_cannot_be_shown_has_a_sentence(
    root: Path, refined_once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_tasks.inspect import page_again

    first, landed = document_of(root, "/1"), refined_once.parent / DAY / "a.warc.gz"
    with monkeypatch.context() as small:
        small.setattr(page_again, "MOST_PAGE", 10)
        assert "pages of up to 10 are shown" in why_not(root, first).why_not
    whole = landed.read_bytes()
    try:
        landed.write_bytes(b"".join(zipped([response("https://b.example.org/", http(b"<p>other"))])))
        assert "the file was changed" in why_not(root, first).why_not
        landed.unlink()
        assert "not there any more" in why_not(root, first).why_not
    finally:
        landed.write_bytes(whole)


def test_the_page_marks_cuts_and_what_the_document_lacks_and_nothing_of_it_runs(visitor: Any, root: Path) -> None:
    pages = [visitor.get(f"{PATH}?after={at}").text for at in range(3)]
    [with_cut] = [page for page in pages if "/cut" in page]
    assert_inert(with_cut, SCRIPT)
    assert re.search("<del>[^<]*Turn on javascript", with_cut)
    [first] = [page for page in pages if "All ferries" in page]
    assert '<span class="lacks"><span class="away">not in the document: </span>All ferries of the coast</span>' in first
    for page in pages:
        assert "harbor@" not in page
        assert "spam@" not in page


def test_a_file_is_shown_by_its_pages_with_their_images(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.texts import read

    pages = (
        FilePage(1, (Line(SCRIPT, is_kept=False),), image=b"\x89PNG"),
        FilePage(2, is_read=False, is_withheld=True),
    )
    monkeypatch.setattr(read, "landed_page", lambda *_: LandedPage(pages=pages))
    page = visitor.get(PATH).text
    assert_inert(page, SCRIPT)
    assert '<img src="data:image/png;base64,iVBORw==" alt="Page 1 of the file">' in page
    assert "Page 2 of 2, whose text is not to be had; its image may have personal data" in page
    assert page.count("<figure>") == 2
    assert page.count("not in the document: ") == 1


def test_what_is_no_answer_stores_nothing(visitor: Any, root: Path) -> None:
    page = visitor.get(PATH).text
    for verdict, why in (("bad", "  "), ("", "a menu"), ("perfect", "")):
        refused = answer(visitor, page, verdict, why)
        assert refused.status_code == 422
        assert "An answer is good, or bad with the reason" in refused.text
        assert field(refused.text, "id") == field(page, "id")
    other = answer(visitor, page, "good", id="f" * 32)
    assert (other.status_code, answers(str(root), "tiny")) == (422, [])
    assert visitor.get(f"{PATH}?reason=c4:unknown").text.count('role="alert"') == 1


def test_a_form_of_another_site_or_of_another_user_stores_nothing(visitor: Any, app: Any, root: Path) -> None:
    page = visitor.get(PATH).text
    assert answer(visitor, page, "good", token="").status_code == 403
    assert answer(visitor, page, "good", token="é").status_code == 403
    form = {"verdict": "good", "why": ""} | {name: field(page, name) for name in ("id", "after", "token")}
    from_elsewhere = visitor.post(PATH, data=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert from_elsewhere.status_code == 403
    be(app, "bob", "USER")
    assert answer(visitor, page, "good").status_code == 403
    assert answers(str(root), "tiny") == []


def test_who_may_only_look_sees_shares_and_stores_nothing(
    visitor: Any, app: Any, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="refinery"):
        page = visitor.get(PATH).text
    assert f"ada reads texts: {PATH}" in caplog.text
    assert answer(visitor, page, "bad", "a menu").status_code == 303
    be(app, "bob", "OP")
    second = visitor.get(PATH).text
    assert answer(visitor, second, "good").status_code == 303
    be(app, "eve", "VIEWER")
    looked = visitor.get(PATH)
    assert looked.status_code == 200
    assert "They agree on 0 of 1 document that several have read (0.0 %)" in " ".join(looked.text.split())
    assert not re.search("example.org|fog|ferry|data-judge", looked.text)
    assert answer(visitor, page, "good").status_code == 403
    assert len(answers(str(root), "tiny")) == 2


def test_a_sample_among_many_rows_is_left_to_the_command(
    visitor: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from refinery_airflow.texts import read as refinery_read

    monkeypatch.setattr(refinery_read, "MOST_ROWS", 2)
    page = visitor.get(PATH).text
    assert "a page draws among 2" in page
    assert "refinery read" in page
