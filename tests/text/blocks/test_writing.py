"""Chosen blocks as text: paragraphs, items, rows and code, plain and in Markdown."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.blocks.blocks import read_blocks
from pipeline_tasks.text.blocks.writing import write_blocks


def written(page: str, output: Literal["plain", "markdown"] = "plain", without: tuple[int, ...] = ()) -> str:
    blocks = read_blocks(np.frombuffer(page.encode(), np.uint8))
    chosen = ~np.isin(np.arange(len(blocks.table)), without)
    drawn = [b"TEX"] * len(blocks.holes)
    text, starts = write_blocks(blocks, chosen, drawn, output)
    assert all((start >= 0) == bool(kept) for start, kept in zip(starts, chosen, strict=True))
    return text.decode()


PAGES = [
    ("<h2>H</h2><p>a<p>b", "H\n\na\n\nb", "## H\n\na\n\nb"),
    ("<ul><li>a<ol start=9><li>b<li>c</ol><li>d</ul>", "- a\n  9. b\n  10. c\n- d", "- a\n  9. b\n  10. c\n- d"),
    ("<ol type=a><li>x<li>y<p>more</ol>", "a. x\nb. y\n\n   more", "a. x\nb. y\n\n   more"),
    (
        "<table><tr><th>A<th>B|C<tr><td>1</table>",
        "A\tB|C\n1",
        "| A | B\\|C |\n| --- | --- |\n| 1 |  |",
    ),
    (
        "<table><tr><th>A<th>B<th>C<tr><td>1<td>2</table>",
        "A\tB\tC\n1\t2",
        "| A | B | C |\n| --- | --- | --- |\n| 1 | 2 |  |",
    ),
    (
        "<ul><li><p>x<p>more<ul><li>y</ul><p>end</ul><p>out",
        "- x\n\n  more\n\n  - y\n\n  end\n\nout",
        "- x\n\n  more\n\n  - y\n\n  end\n\nout",
    ),
    ("<ul><li><h3>h</h3><p>x</ul>", "h\n\nx", "### h\n\nx"),
    ("<h2>A <a href=e>[edit]</a></h2>x<h2>B <a href=e>[edit]</a></h2>y", "A\n\nx\n\nB\n\ny", "## A\n\nx\n\n## B\n\ny"),
    (
        "<h2>A[<a href=e>edit</a>|<a href=e>more</a>]</h2><h2>B[<a href=e>edit</a>|<a href=e>more</a>]</h2>",
        "A\n\nB",
        "## A\n\n## B",
    ),
    (
        "<h2>A in <a href=e>X</a></h2><h2>B in <a href=e>X</a></h2><h2>C# <a href=e>C#</a></h2>",
        "A in X\n\nB in X\n\nC# C#",
        None,
    ),
    (
        "<h2>A<a href=e>#</a></h2><h2>B <a href=e>\u00b6</a></h2><h2><a href=e>C</a><a href=e>#</a></h2>",
        "A\n\nB\n\nC",
        None,
    ),
    ("<dl><dt>a<dt>b<dd><p>x<p>y<dd>z<dt>c<dd>w</dl>", "a\nb\nx\n\ny\nz\n\nc\nw", None),
    ("<table><tr><td>A<td><td><td>x<sup>2</sup><td>57<tr><td>B</table>", "A\t\t\tx\u00b2\t57\nB", None),
    (
        "<table><tr><td hidden>9<b>9</b><sup>3</sup><td>A<b>b</b><td>x<sup>2</sup><td>y<b>57</b><tr><td>1<td>2</table>",
        "Ab\tx\u00b2\ty57\n1\t2",
        "| A**b** | x\u00b2 | y**57** |\n| --- | --- | --- |\n| 1 | 2 |  |",
    ),
    (
        "<table><tr><td hidden><math><mi>a</mi></math><td>A<td>b</table><p>p <math><mi>c</mi></math> q",
        "TEX\tA\tb\n\np TEX q",
        None,
    ),
    ("<table><tr><td style='display:none'>7<td>Name<td>x<tr><td>Other<td>y</table>", "Name\tx\nOther\ty", None),
    ("a <i class='x icons'>word</i> <b class=material-symbols-outlined>home</b>", "a word", None),
    ("<h2>T <button>5 <button>claps</button></h2><p>x <p>y </button> z", "T 5 claps\n\nx\n\ny z", None),
    ("<ul><li>a<li>b</ul><ul><li>c<ul><li>d</ul></ul>", "- a\n- b\n\n- c\n  - d", None),
    ("<h2>A<br>B</h2><p>a<br>b", "A\nB\n\na\nb", "## A B\n\na\nb"),
    (
        "<table><tr><th><th>A<th>B<tr><td>x<td>1<td>2<tr><td><td><td>3<tr><td>y<td>4<td>5</table>",
        "\tA\tB\nx\t1\t2\n\t\t3\ny\t4\t5",
        "| | A | B |\n| --- | --- | --- |\n| x | 1 | 2 |\n| | | 3 |\n| y | 4 | 5 |",
    ),
    ("<table><tr><td><img src=a><td>f<td>1<tr><td><td>g<td>2</table>", "f\t1\ng\t2", None),
    (
        "2<sup>8</sup>, m<sup>2</sup>, 10<sup>-3</sup>, 10<sup>\u221212</sup>, Ca<sup>2+</sup>, 1<sup>st</sup>",
        "2\u2078, m\u00b2, 10\u207b\u00b3, 10\u207b\u00b9\u00b2, Ca\u00b2\u207a, 1st",
        None,
    ),
    (
        "x<sup>2<sup>3</sup></sup>, a<sup><a href=n>5</a></sup>, 9<sup>1234567890</sup>, H<sub>2</sub>O",
        "x\u00b2\u00b3, a\u2075, 91234567890, H2O",
        None,
    ),
    ("<pre>\na  \n  b</pre>", "a\n  b", "```\na\n  b\n```"),
    ("<pre>a\n\u00a0\u00a0b &nbsp;c&nbsp;\n\u00e0d</pre>", "a\n  b  c\n\u00e0d", None),
    ("<ul><li>a<pre>b\n c</pre>d</ul>", "- a\n\n  b\n   c\n\n  d", "- a\n\n  ```\n  b\n   c\n  ```\n\n  d"),
    ("<ol><li><pre>b\nc</pre></ol>", "1. b\n   c", "1. ```\n   b\n   c\n   ```"),
    ("<ol><li>a<p>b<br>c<ul><li>d<p>e</ul></ol>", "1. a\n\n   b\n   c\n\n   - d\n\n     e", None),
    ("<blockquote><table><tr><td>a<td>b</table></blockquote>", "a\tb", "> | a | b |\n> | --- | --- |"),
    ("<b><code>m</code></b> <code>git <i>u</i></code>", "m git u", "**`m`** `git u`"),
    ("<h2>\u4ec0<a href=e>\u4eba</a></h2><h2>\u4f55<a href=e>\u4eba</a></h2>", "\u4ec0\u4eba\n\n\u4f55\u4eba", None),
    ("<h2>f() -> &[<a href=e>u8</a>]</h2><h2>g() -> &[<a href=e>u8</a>]</h2>", "f() -> &[u8]\n\ng() -> &[u8]", None),
    (
        "<h2>C<a href=e>++</a></h2><h2>b<a href=e>?</a></h2><h2>c<a href=e>\U00020bb7</a></h2><h2>d <a href=e>\U0001f517</a></h2>",
        "C++\n\nb?\n\nc\U00020bb7\n\nd",
        None,
    ),
    ("<pre>```\nx\n```</pre>", "```\nx\n```", "````\n```\nx\n```\n````"),
    ("<div><div>a,</div><div>b</div><div>c.</div></div><div>d</div><div>e</div>", "a,\nb\nc.\n\nd\n\ne", None),
    ("<h2>A</h2><p>x <a href=e>\u00b6</a><h2>B <a href=e> </a></h2>", "A\n\nx \u00b6\n\nB", None),
    ("a <b>c </b>d <code>x</code> <i></i>e", "a c d x e", "a **c** d `x` e"),
    ("<blockquote>q</blockquote>", "q", "> q"),
    ("<dl><dt>t<dd>d<dt>u<dd>e</dl>", "t\nd\n\nu\ne", "t\nd\n\nu\ne"),
    ("x <math></math> y", "x TEX y", "x TEX y"),
]


@pytest.mark.parametrize(("page", "plain", "markdown"), PAGES)
def test_blocks_as_text(page: str, plain: str, markdown: str | None) -> None:
    assert written(page) == plain
    assert markdown is None or written(page, "markdown") == markdown


def test_tools_behind_headings_are_left_out_as_those_at_their_ends() -> None:
    page = (
        "<h2>A</h2><p>[<a href=e>edit</a>]<p>x [<a href=e>1</a>]<h2>B</h2><p>[<a href=e>edit</a>]<p>[<a href=e>1</a>]"
    )
    blocks = read_blocks(np.frombuffer(page.encode(), np.uint8))
    text, starts = write_blocks(blocks, np.ones(len(blocks.table), np.bool_), [], "plain")
    assert text == b"A\n\nx [1]\n\nB\n\n[1]"
    assert starts.tolist() == [0, -1, 3, 10, -1, 13]


def test_what_is_drawn_in_a_block_that_is_not_chosen_is_left_out_with_it() -> None:
    page = "<p>a <math></math><p>b<p>c <math></math>"
    blocks = read_blocks(np.frombuffer(page.encode(), np.uint8))
    text, _ = write_blocks(blocks, np.array([False, True, True]), [b"1", b"2"], "plain")
    assert text == b"b\n\nc 2"


@given(
    st.lists(
        st.sampled_from(
            [
                "<tr>",
                "<td>",
                "<li>",
                "<ol>",
                "<b>",
                "</b>",
                "<i>",
                "<code>",
                "</code>",
                "<pre>",
                "|",
                "a",
                "b",
                "<br>",
                "<table>",
                "<h3>",
            ]
        ),
        max_size=60,
    ),
    st.sampled_from(["plain", "markdown"]),
)
def test_any_page_can_be_written(parts: list[str], output: Literal["plain", "markdown"]) -> None:
    page = " ".join(parts)
    letters = [sign for sign in written(page, output) if sign in "ab"]
    assert letters == [part for part in parts if part in ("a", "b")]
