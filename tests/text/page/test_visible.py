"""What a page shows beside its links, as a reading of its markup by regular expressions counts it."""

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.visible import HIDDEN, visible_characters

COMMENT = r"<!--(?:-?>|.*?(?:-->|\Z))|<![^>]*+(?:>|\Z)"
TAG = r"""<(?=[a-zA-Z/?])(?P<slash>/?)(?P<name>[^\x01-\x20/>]*+)"""
REST = r"""(?P<rest>(?:=[\x01-\x20]*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+)(?:>|\Z)"""
MARKUP = re.compile(rf"(?s)(?:{COMMENT})|{TAG}{REST}")
HREF = re.compile(r"(?i)[\x01-\x20/\"']href(?=[\x01-\x20=/]|\Z)")
PARTS = re.findall(
    r"\S+",
    "<p> </p> <a=href=x> <A_href=x> <a_name=x> </a> </a_> <a/href> <abbr> <script> </script> </SCRIPT_> <style_x='>'> "
    "</style> </s> <select><option> </select> <!-- --> --> <!--> <!doctype_html> <!---> < <3 <? <?php_> </ </> > text_text "
    '<b_title="a>b"> <i_x=\' é ß&amp; " = 漢字 <title> </title> <title/> <xmp_x= /> - _href=',
)


def plain(html: str) -> int:
    """Count what is visible outside of links, one token after the other."""
    count = linked = at = 0
    inside = False
    while at < len(html):
        markup = MARKUP.match(html, at)
        if not markup:
            shown = html[at] > " "
            count, linked = count + (shown and not inside), linked + (shown and inside)
            at += 1
            continue
        at = markup.end()
        name = (markup["name"] or "").lower()
        if name == "a":
            count += 0 if markup["slash"] else linked
            linked, inside = 0, not markup["slash"] and bool(HREF.search(markup["rest"]))
        elif name in HIDDEN and not markup["slash"] and not markup[0].endswith("/>"):
            closing = re.compile(rf"(?i)</{name}(?=[\x01-\x20/>]|\Z)").search(html, at)
            at = closing.start() if closing else at
    return count + linked


def column(*pages: bytes) -> pa.Array:
    return pa.array(pages, pa.large_binary())


@given(st.lists(st.lists(st.sampled_from(PARTS)).map(lambda parts: "".join(parts).replace("_", " ")), min_size=1))
def test_it_counts_what_the_markup_shows(pages: list[str]) -> None:
    counts = visible_characters(column(*(page.encode() for page in pages)), list(range(len(pages))))
    assert counts.tolist() == [plain(page) for page in pages]


@given(st.lists(st.sampled_from([part for part in PARTS if part.isascii()])))
def test_nuls_between_bytes_change_nothing(parts: list[str]) -> None:
    page = "".join(parts).replace("_", " ")
    counts = [
        visible_characters(column(page.encode(encoding)), [0]).tolist() for encoding in ("utf-16-le", "utf-16-be")
    ]
    assert counts == [[plain(page)]] * 2


@given(st.binary(max_size=200))
def test_any_bytes_show_no_more_characters_than_they_are(page: bytes) -> None:
    assert 0 <= visible_characters(column(b"x", page), [1])[0] <= len(page)


@pytest.mark.parametrize(
    ("html", "visible"),
    [
        ("<p>It is <a href=/x>linked</a> here.", len("Itishere.")),
        ("<a name=top>A heading <p>and all of a page", len("Aheadingandallofapage")),
        ("<a href=1>never closed <a href=2>closed</a>", len("neverclosed")),
        ("<script>if (a < b) document.write('<p>x</p>')</script >seen", len("seen")),
        ("<option title='a > b'>x", len("x")),
        ("<svg><title/><path></svg>a drawing and <svg><title /></svg> text", len("adrawingandtext")),
        ("<textarea>never closed", len("neverclosed")),
        ("", 0),
    ],
)
def test_links_and_scripts(html: str, visible: int) -> None:
    assert visible_characters(column(html.encode()), [0]).tolist() == [visible]


def test_rows_that_were_not_asked_for_are_not_counted() -> None:
    pages = column(b"<p>one", b"<p>three", b"<p>seven")
    assert visible_characters(pages.slice(1), [1]).tolist() == [5]
    assert visible_characters(pages, []).tolist() == []
