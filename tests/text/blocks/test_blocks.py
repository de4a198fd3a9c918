"""Blocks of pages: what begins and ends them, what they are, and what they say."""

import html
from html.entities import html5

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.base.characters import UNSPACED, WORD, class_of, classes
from pipeline_tasks.text.blocks import reading as read
from pipeline_tasks.text.blocks.blocks import Blocks, read_blocks
from pipeline_tasks.text.blocks.features import FEATURES, block_features


def blocks_of(page: str) -> Blocks:
    return read_blocks(np.frombuffer(page.encode(), np.uint8))


def texts(page: str, *, hidden: bool = False) -> list[str]:
    blocks = blocks_of(page)
    return [
        bytes(blocks.text[row[read.B_START] : row[read.B_END]]).replace(b"\xff", b"*").decode()
        for row in blocks.table
        if bool(row[read.B_FLAGS] & read.IS_HIDDEN) == hidden
    ]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("a <b>b</b> c", ["a b c"]),
        ("<p>one<p>two", ["one", "two"]),
        ("<div>one<br>two<br><br>three</div>", ["one\ntwo", "three"]),
        ("<div>run <p>p</p> rest</div>", ["run", "p", "rest"]),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", ["a", "b", "c"]),
        ("<dl><dt>t<dd>d<dt>u</dl>", ["t", "d", "u"]),
        ("<b><p>one</b> two</p>three", ["one two", "three"]),
        ("<a href=x>one<a href=y>two</a>", ["onetwo"]),
        ("<table><tr><td>a<td>b<tr><td>c</table>", ["a\tb", "c"]),
        ("<table><tr><td>a<td><td>c</table>", ["a\t\tc"]),
        ("<table><tr><td><img src=i><td>note</table>", ["note"]),
        ("<table><tr><td><p>a<p>b<td>c</table>", ["a", "b", "c"]),
        ("<table><tr><td><table><tr><td>a<td>b</table><td>c</table>", ["a\tb", "c"]),
        ("<table><tr><td>a</div></p><td>b</table>", ["a\tb"]),
        ("<pre>\n a\n  b\n</pre>c", [" a\n  b", "c"]),
        ("<pre>a<div>b</div>c</pre>", ["a\nb\nc"]),
        ("<pre><code>a\nb</code><code>c\nd</code></pre>", ["a\nb\nc\nd"]),
        ("<pre><code>a</code><code>b\n</code><code>c</code></pre>", ["a\nb\nc"]),
        (
            "<pre><code>a</code>b<code>c</code> <code>d</code>\n<span><code>e</code><code>f</code></span></pre>",
            ["abc d\nef"],
        ),
        ("<p><code>a</code><code>b</code> <button>c</button></p>", ["ab c"]),
        ("a<!-- <p> -->b<!-->c<script>if (a<b) '<p>'</script>d<style>x</style>", ["abcd"]),
        ("a<ruby>\u6f22<rt>kan</rt></ruby>b", ["a\u6f22b"]),
        ("he said <q>yes</q>", ['he said "yes"']),
        ("<x-card>a</x-card><x-card>b</x-card>", ["a", "b"]),
        ("a <button>b</button> c<div><button>d</button>e</div>", ["a b c", "d", "e"]),
        ("1 < 2 & 3 &lt; 4 &copy 5 &notit; &#x41;&#150;&nbsp;x", ["1 < 2 & 3 < 4 \u00a9 5 \u00acit; A\u2013 x"]),
        ("x <math><mi>y</mi></math> z", ["x * z"]),
        ("x <span class=katex><span>d</span></span> z", ["x * z"]),
        ("<noscript><iframe src=x/></noscript><p>a", ["a"]),
        ("<template shadowrootmode=open><p>a</template><template><p>b</template>", ["a"]),
    ],
)
def test_blocks_end_where_a_browser_begins_a_line(page: str, expected: list[str]) -> None:
    assert texts(page) == expected


@pytest.mark.parametrize(
    "attributes",
    [
        "hidden",
        "style='display: none'",
        "style='color:red;DISPLAY:NONE'",
        "style='position:absolute;left:-9999px'",
        "style='font-size:0'",
        "style='clip: rect(0,0,0,0)'",
        "style='opacity:0'",
    ],
)
def test_what_is_not_shown_is_marked(attributes: str) -> None:
    assert texts(f"<p>a<p {attributes}>b<p>c <i {attributes}>not</i> d") == ["a", "c d"]
    assert texts(f"<p>a<p {attributes}>b<p>c", hidden=True) == ["b"]


@pytest.mark.parametrize("attributes", ["hidden=until-found", "style='left:-1px'", "style='opacity:0;transition:1s'"])
def test_what_is_shown_is_not_marked(attributes: str) -> None:
    assert texts(f"<p {attributes}>b") == ["b"]


@pytest.mark.parametrize(
    ("page", "numbers"),
    [
        ("<ol start=3><li>a<li value=7>b<li>c</ol>", [3, 7, 8]),
        ("<ol reversed><li>a<li>b<li>c</ol>", [3, 2, 1]),
        ("<ul><li>a<li><p>b<p>c</ul>", [read.BULLET, read.BULLET, read.NO_MARKER]),
    ],
)
def test_items_have_the_numbers_that_are_shown(page: str, numbers: list[int]) -> None:
    assert blocks_of(page).table[:, read.B_MARKER].tolist() == numbers


@given(st.lists(st.sampled_from([*html5, "#65", "#x1F600;", "#128;", "#0;", "#xD800;", "b", ";"]), max_size=6))
def test_references_are_read_as_python_reads_them(names: list[str]) -> None:
    source = "x".join(f"&{name}" for name in names)
    expected = " ".join(html.unescape(f"<{source}>").replace("\x00", "").split())
    assert " ".join("".join(texts(f"<p>&lt;{source}&gt;")).split()) == expected


@given(st.text("<>/!-=\"' apdivtrble&#;\n\u00e9\ud7ff", max_size=200))
def test_no_markup_is_too_broken(page: str) -> None:
    blocks = blocks_of(page)
    assert block_features(blocks, np.frombuffer(page.encode(), np.uint8)).shape == (len(blocks.table), FEATURES)
    assert np.all(blocks.starts < blocks.ends)
    bytes(blocks.text).replace(b"\xff", b"").decode()


def test_a_deep_page_is_read_in_time_linear_in_it() -> None:
    page = "<div>" * 200_000 + "deep" + "</span>" * 200_000 + "<p>end"
    assert texts(page) == ["deep", "end"]


@given(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"], exclude_characters="<&"))
def test_words_are_of_the_letters_that_words_have_elsewhere(letter: str) -> None:
    index, flags = classes()
    bits = class_of(index, flags, ord(letter))
    expected = 2 if bits & UNSPACED else int(bits & WORD != 0)
    assert blocks_of(f"<p>!{letter}{letter}!</p>").words.tolist() == [expected]


def test_links_and_sentences_are_counted_by_words() -> None:
    blocks = blocks_of("<p>one <a href=x>two three</a> four<p>\u4eca\u65e5\u306f\u3002")
    assert blocks.words.tolist() == [4, 3]
    assert blocks.measures[:, 1].tolist() == [2, 0]
