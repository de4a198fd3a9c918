"""Languages and sites on a snapshot's page: their shares beside usual ones; names of sites are text, and not for all."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.mixed_root import DAYS, HOSTILE, RECIPE
from tests.visitors import be

PAGE = f"/snapshot/{RECIPE}/{DAYS[-1]}"


@pytest.fixture
def root(mixed_root: Path) -> Path:
    return mixed_root


def section(visitor: Any, path: str = PAGE) -> str:
    page = visitor.get(path)
    assert page.status_code == 200
    return str(page.text.split("<h2>Languages and sites</h2>")[1].split("<h2>")[0])


def rows(section: str) -> list[list[str]]:
    lines = re.findall("<tr><th scope=.row.>(.*?)</tr>", section)
    return [[" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in re.split("<t[hd][^>]*>", row)] for row in lines]


def test_languages_and_sites_are_shown_beside_the_usual_shares(visitor: Any) -> None:
    shown = section(visitor)
    assert "Documents came into filter_language and were kept after scrub_pii." in shown
    assert rows(shown) == [
        ["en", "8", "5", "62.50%", "100.00%", "76.92%", "76.92%"],
        ["de", "0", "0", "-", "0.00%", "23.08%", "23.08%"],
        ["fr", "2", "0", "0.00%", "0.00%", "0.00%", "0.00%"],
        [html.escape(HOSTILE), "6", "75.0 %", "at least +71.2 points", "50.0 %", "dedup_exact"],
        ["a.org", "2", "25.0 %", "+1.9 points", "0.0 %", "-"],
    ]


def test_a_site_whose_name_is_markup_stays_text(visitor: Any) -> None:
    page = visitor.get(PAGE).text
    assert html.escape(HOSTILE) in page
    assert HOSTILE not in page
    assert "<img" not in page


def test_who_may_not_read_texts_sees_languages_and_no_names_of_sites(visitor: Any, app: Any) -> None:
    be(app, "eve", "VIEWER")
    shown = section(visitor)
    assert [row[0] for row in rows(shown)] == ["en", "de", "fr"]
    assert "Names of sites are shown to those who may approve a refused gate." in shown


def test_a_first_snapshot_has_nothing_to_compare_with(visitor: Any) -> None:
    shown = rows(section(visitor, f"/snapshot/{RECIPE}/{DAYS[0]}"))
    assert shown[0] == ["en", "20", "20", "100.00%", "76.92%", "-", "-"]
    assert shown[3] == ["a.org", "6", "23.1 %", "-", "0.0 %", "-"]
    assert len(shown) == 3 + 16
