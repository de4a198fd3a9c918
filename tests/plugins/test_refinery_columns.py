"""Pages by columns: how many documents would stay, which ones they are, and no text or site without the right."""

import html
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.described_root import PLAIN, SNAPSHOT, URLS, described, publish, published
from tests.markup import assert_inert
from tests.visitors import be

SCRIPT = "<script>alert(1)</script>"
PAGE, SEARCH, TYPES = (f"/{page}/web/{SNAPSHOT}" for page in ("columns", "search", "ask/look-breakdown"))
WHERE = "document_type=recipe,forum, topic!=t0003"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("described")
    published(root)
    return root


def words(page: str) -> str:
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", page).split())).replace(" %", "%")


def test_what_would_stay_is_counted_by_group_with_the_lines_of_a_build(visitor: Any) -> None:
    page = visitor.get(PAGE, params={"where": WHERE, "by": "document_type"})
    assert page.status_code == 200
    shown = words(page.text)
    assert "recipe 2 1 50.0%" in shown
    assert "40.0% would stay" in shown
    assert "Tokens, estimated" in shown
    [lines] = re.findall(r'aria-label="Lines for the recipe of a build">([^<]+)<', page.text)
    assert yaml.safe_load(html.unescape(lines))["select"]["where"] == {
        "document_type": {"any_of": ["recipe", "forum"]},
        "topic": {"none_of": ["t0003"]},
    }
    assert f"refinery whatif {visitor_root(shown)} --recipe web --snapshot {SNAPSHOT} --where" in shown
    [link] = re.findall(r'href="/refinery(/search/[^"]+)">Show these', page.text)
    found = words(visitor.get(html.unescape(link)).text)
    assert [url in found for url in URLS] == [True, False, True, False, False]


def visitor_root(shown: str) -> str:
    return re.findall(r"refinery whatif (\S+)", shown)[0]


def test_columns_are_listed_with_values_that_are_one_more_condition(visitor: Any) -> None:
    page = visitor.get(PAGE, params={"where": "topic=t0001"})
    values = [html.unescape(value) for value in re.findall(r'name="more" value="([^"]+)"', page.text)]
    assert {"document_type=product", "topic=t0001", "topic=t0002", "language=en"} <= {*values}
    for value, count in (("document_type=product", 1), ("topic=t0002", 3), ("topic=t0001", 2)):
        shown = words(visitor.get(PAGE, params={"where": "topic=t0001", "more": value}).text)
        assert f"Documents 5 → to {count}" in shown


def test_what_is_wrong_is_said_and_escaped(visitor: Any) -> None:
    for fields in ({"where": f"{SCRIPT}=1"}, {"where": "topic=t0001", "by": SCRIPT}):
        page = visitor.get(PAGE, params=fields)
        assert page.status_code == 422
        assert_inert(page.text, SCRIPT)
    assert "topic_similarity" in words(visitor.get(PAGE, params={"where": "colour=red"}).text)


def test_search_and_find_list_documents_by_columns(visitor: Any) -> None:
    asked = {"where": "document_type=recipe, toxic_hits<1"}
    page = words(visitor.get(SEARCH, params=asked).text)
    assert "2 documents with these columns" in page
    assert "refinery search ''" in page
    assert "--where 'toxic_hits<1'" in page
    found = words(visitor.get("/find", params=asked).text)
    assert f"without such a column: {PLAIN}" in found
    assert "2 published documents where document_type=recipe and toxic_hits<1" in found
    assert visitor.get(SEARCH, params={"where": "colour=red"}).status_code == 422


def test_who_may_not_read_texts_sees_no_values(visitor: Any, app: Any) -> None:
    """The page of types was shown to everyone with a login, and `by=text` was every text."""
    paths = (f"{PAGE}?where=language=en&by=url", f"{TYPES}?by=text", f"{SEARCH}?where=language=en", "/find?where=url=1")
    assert visitor.get(paths[1]).status_code == 200
    be(app, "eve", "VIEWER")
    for path in paths:
        refused = visitor.get(path)
        assert (path, refused.status_code, "kitchen.example" in refused.text) == (path, 403, False)


def test_shares_of_topics_over_snapshots_are_plotted_from_the_second_on(
    visitor: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(root, tmp_path / "root"))
    monkeypatch.setenv("REFINERY_ROOT", str(copy))
    folded = "Topics and types over snapshots"
    assert folded not in visitor.get(f"/snapshot/web/{SNAPSHOT}").text
    publish(copy, "2026-11-21", described(copy), 5)
    page = visitor.get("/snapshot/web/2026-11-21").text.split(folded)[1]
    assert "Topic over snapshots" in page
    assert "t0001 40.00% 40.00% 40.00% 40.00% 40.00%" in words(page)
