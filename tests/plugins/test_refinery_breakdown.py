"""The page of documents by type or any column: what became of them, of which sites, and what is wrong in words."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from refinery_study.breakdown import USUAL

from tests.inspect.test_breakdown import published
from tests.markup import assert_inert

SCRIPT = "<script>alert(1)</script>"
PAGE = "/ask/look-breakdown/web/s"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("typed")
    published(root, enriched=True)
    return root


def words(page: str) -> str:
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split()))


def test_types_are_shown_with_reasons_and_sites(visitor: Any, root: Path) -> None:
    page = visitor.get(PAGE)
    assert page.status_code == 200
    assert "recipe 2 1 50.0 % 86 dedup_exact:duplicate 1 kitchen.example 2" in words(page.text).replace(
        "50.0%", "50.0 %"
    )
    assert f"refinery look breakdown {root} --recipe web --snapshot s" in words(page.text)


def test_other_columns_can_be_chosen_and_a_second(visitor: Any) -> None:
    first, second = re.findall(r"<datalist.*?</datalist>", visitor.get(PAGE).text)
    offered = re.findall(r'value="(\w+)"', first)
    assert re.findall(r'value="(\w+)"', second) == [*offered[-2:], *offered[:-2]] == ["site", "reason", *USUAL]
    for name in ("reading_level", "license_notice", "language", "source"):
        assert visitor.get(PAGE, params={"by": name}).status_code == 200


def test_two_columns_are_a_table(visitor: Any) -> None:
    page = words(visitor.get(PAGE, params={"across": "site"}).text)
    assert "document_type documents kept tokens kitchen.example other.example shop.example" in page
    assert "recipe 2 1 86 1/2 - -" in page
    assert "--snapshot s --across site" in page
    assert "recipe 2 1 86 1 1" in words(visitor.get(PAGE, params={"across": "reason"}).text)


def test_a_column_that_is_not_there_is_said_and_escaped(visitor: Any) -> None:
    for field in ("by", "across"):
        page = visitor.get(PAGE, params={field: SCRIPT})
        assert page.status_code == 422
        assert_inert(page.text, SCRIPT)
    assert "has a column" in words(page.text)
