"""The page of documents by type or any column: what became of them, of which sites, and what is wrong in words."""

import html
import re
from pathlib import Path
from typing import Any

import pytest

from tests.inspect.test_breakdown import published
from tests.markup import assert_inert

SCRIPT = "<script>alert(1)</script>"
PAGE = "/breakdown/web/s"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("typed")
    published(root, enriched=True)
    return root


def words(page: str) -> str:
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split()))


def test_types_are_shown_with_reasons_and_sites(visitor: Any) -> None:
    page = visitor.get(PAGE)
    assert page.status_code == 200
    assert "recipe 2 1 50.0 % 86 dedup_exact:duplicate 1 kitchen.example 2" in words(page.text).replace(
        "50.0%", "50.0 %"
    )
    assert "5 rows." in words(page.text)
    assert "--by document_type" in words(page.text)


def test_other_columns_can_be_chosen_and_a_second(visitor: Any) -> None:
    first, second = re.findall(r"<select.*?</select>", visitor.get(PAGE).text)
    offered = re.findall(r"<option[^>]*>(\w+)<", first)
    assert offered == ["document_type", "reading_level", "license_notice", "language", "source"]
    assert re.findall(r"<option[^>]*>(\w+)<", second) == ["nothing", "site", "reason", *offered[1:]]
    for name in offered:
        assert visitor.get(PAGE, params={"by": name}).status_code == 200


def test_two_columns_are_a_table(visitor: Any) -> None:
    page = words(visitor.get(PAGE, params={"across": "site"}).text)
    assert "document_type documents kept tokens kitchen.example other.example shop.example" in page
    assert "recipe 2 1 86 1/2 - -" in page
    assert "--by document_type --across site" in page
    assert "recipe 2 1 86 1 1" in words(visitor.get(PAGE, params={"across": "reason"}).text)


def test_a_column_that_is_not_there_is_said_and_escaped(visitor: Any) -> None:
    for field in ("by", "across"):
        page = visitor.get(PAGE, params={field: SCRIPT})
        assert page.status_code == 422
        assert_inert(page.text, SCRIPT)
    assert "has a column" in words(page.text)
