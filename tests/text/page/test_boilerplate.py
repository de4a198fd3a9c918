"""The first look of `auto` leaves out what a page marks, keeps what names mark by mistake, and doubts ragged texts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.boilerplate import EDGES, LITTLE, SHORT_LINE, is_doubtful
from pipeline_tasks.text.page.main_text import main_text

PROSE = "The river was low that summer, and the children walked across it on stones to the mill. "
ARTICLE = "".join(f"<p>{number} {PROSE * 3}</p>" for number in range(9))
PUBLISHED = '<meta property="og:type" content="article">'


def text_of(body: str, head: str = "") -> str:
    return main_text(f"<html><head>{head}</head><body>{body}</body></html>", "auto").text


@pytest.mark.parametrize(
    "marked",
    [
        "<nav><p>{}</p></nav>",
        "<aside><p>{}</p></aside>",
        PUBLISHED + "<figure><figcaption>{}</figcaption></figure>",
        '<div role="complementary"><p>{}</p></div>',
        '<div class="Author-Box"><p>{}</p></div>',
        '<section id="related"><h2>{}</h2></section>',
        '<ul class="post-tags"><li>{}</li></ul>',
        '<div class="comments-area"><h3>{}</h3><p>A remark.</p></div>',
    ],
)
def test_what_a_page_marks_is_left_out(marked: str) -> None:
    text = text_of(ARTICLE + marked.format("More of the same.") + ARTICLE)
    assert "More of the same." not in text
    assert text.count(PROSE.strip()) == 18 * 3


@pytest.mark.parametrize(
    "wrapper",
    [
        '<div class="has-sidebar author-page">{}</div>',
        '<div id="topics"><h1>Comments on the mill</h1><p>' + PROSE + "</p></div>{}",
        '<main class="related">{}</main>',
        '<article class="category-news tags-mill">{}</article>',
    ],
)
def test_a_name_marks_nothing_that_has_the_heading_or_paragraphs_in_a_row(wrapper: str) -> None:
    text = text_of(wrapper.format(ARTICLE))
    assert text.count(PROSE.strip()) >= 9 * 3
    assert "Comments" not in wrapper or "Comments on the mill" in text


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (PUBLISHED, "{}"),
        ("<meta property='og:title' content='Summer'>", "{}"),
        ("", "<article>{}</article>"),
        ("", '<div itemprop="articleBody">{}</div>'),
    ],
)
def test_headings_of_a_published_page_that_its_title_does_not_say_are_left_out(head: str, body: str) -> None:
    assert "The old mill" not in text_of(body.format(f"<h1>The old mill</h1>{ARTICLE}"), head)
    assert "The old mill" in text_of(f"<h1>The old mill</h1>{ARTICLE}")


def test_only_published_pages_are_doubted() -> None:
    html = f"<html><head>{{}}</head><body>{'<p>Short.</p>' * 9}{ARTICLE}</body></html>"
    assert main_text(html.format(PUBLISHED), "auto").doubtful
    assert not main_text(html.format(""), "auto").doubtful


LINES = st.sampled_from(["", " ", "x", "x" * (SHORT_LINE - 1), "x" * SHORT_LINE, "x" * LITTLE, "  " + "x" * SHORT_LINE])


@given(st.lists(LINES, max_size=20).map("\n".join))
def test_doubt_is_as_a_plain_count_of_lines_says(text: str) -> None:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    before = after = 0
    while before < len(lines) and len(lines[before]) < SHORT_LINE:
        before += 1
    while after < len(lines) and len(lines[-1 - after]) < SHORT_LINE:
        after += 1
    assert is_doubtful(text) == (len(text) < LITTLE or before == len(lines) or before + after > EDGES)


PARTS = re.findall(
    r"\S+",
    "<div> </div> <div\x0bclass=comment> <article> </article> <h1> </h1> <p> <p\x0bid=meta> <table> <body> <aside> </aside> "
    "<html\x0bclass=sidebar> <meta\x0bproperty=og:type> Prose. \0 <script> <!-- --> <svg>",
)


@given(st.lists(st.sampled_from(PARTS)).map(" ".join))
def test_any_markup_gives_the_same_text_twice(html: str) -> None:
    assert main_text(html, "auto") == main_text(html, "auto")
