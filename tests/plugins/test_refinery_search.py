"""The page that searches texts: hits with what became of them, what was searched, and nobody sees it without the right."""

import html
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from tests.markup import words
from tests.plugins.test_refinery_document import LINE, root
from tests.visitors import be

__all__ = ["root"]  # the fixture: a root with personal data, a script and a short text
PATH = "/search/tiny/2026-11-19"


def shown(visitor: Any, phrase: str, **fields: str) -> Any:
    return visitor.get(PATH, params={"phrase": phrase, **fields})


def test_documents_with_the_phrase_are_listed_and_lead_to_their_page(visitor: Any) -> None:
    page = shown(visitor, "the FOG has lifted")
    assert page.status_code == 200
    assert page.text.count("<mark>the fog has lifted</mark>") == 3
    assert "Every document was searched: 3 kept, 1 rejected by filter_quality" in words(page.text)
    short = shown(visitor, "nobody waits").text
    assert '<span class="state rejected">rejected</span>' in short
    assert "gopher_quality:short_doc" in short
    for link in re.findall(r'href="/refinery(/[^"]+)"', page.text):
        assert visitor.get(html.unescape(link)).status_code == 200, link


def test_what_was_not_searched_is_said_and_one_link_away(root: Path, monkeypatch: pytest.MonkeyPatch, app: Any) -> None:
    from refinery_airflow.texts import search as refinery_search

    from pipeline_tasks.publish.logs import version_log

    version = version_log.current(str(root), "tiny")
    monkeypatch.setattr(refinery_search, "HITS_SHOWN", 2)
    first = refinery_search.search_page(str(root), version, "fog has", "", "", 0)
    assert first.search is not None
    assert (len(first.search.hits), first.search.end, first.search.is_whole) == (2, 2, False)
    assert (first.searched, first.unsearched) == ("2 of 3 kept", "kept, rejected by filter_quality")
    assert first.following.endswith("/refinery/search/tiny/2026-11-19?phrase=fog+has&start=2")
    last = refinery_search.search_page(str(root), version, "fog has", "", "", 2)
    assert last.search is not None
    assert (len(last.search.hits), last.following, last.unsearched) == (1, "", "")
    middle = refinery_search.search_page(str(root), version, "fog", "", "", 1)
    assert middle.search is not None
    assert (middle.search.end, middle.unsearched) == (3, "rejected by filter_quality")


def test_a_later_part_says_that_it_is_one(visitor: Any) -> None:
    page = words(shown(visitor, "fog", start="1").text)
    assert "3 of 4 documents were searched on this page: 2 of 3 kept, 1 rejected by filter_quality" in page
    assert "1 document before were searched on earlier pages" in page
    assert shown(visitor, "fog", start="-1").status_code == 422
    assert shown(visitor, "fog", start="9" * 30).status_code == 200


def test_who_may_not_read_texts_sees_none_and_who_may_is_logged(
    visitor: Any, app: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="refinery"):
        assert shown(visitor, "ferry").status_code == 200
    assert f"ada reads texts: {PATH}" in caplog.text
    be(app, "eve", "VIEWER")
    refused = shown(visitor, "ferry")
    assert (refused.status_code, LINE[:20] in refused.text, "example.org" in refused.text) == (403, False, False)


def test_a_search_without_words_asks_for_some(visitor: Any) -> None:
    form = visitor.get(PATH)
    assert (form.status_code, 'name="phrase"' in form.text, "<table" in form.text) == (200, True, False)
    assert shown(visitor, "x" * 300).status_code == 422
    assert visitor.get("/search/tiny/2031-01-01").status_code == 404
    assert f'href="/refinery{PATH}"' in visitor.get("/snapshot/tiny/2026-11-19").text
    assert f'href="/refinery{PATH}"' in visitor.get("/document/tiny/2026-11-19").text
