"""What a reader sees as lists, tables, code and headings is laid out as that, in plain text and in Markdown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_tasks.text.page.layout import OUTPUTS, Output, lay_out
from pipeline_tasks.text.page.main_text import main_text
from pipeline_tasks.text.page.normal_form import normalize_text

PROSE = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>"


def laid_out(inner: str, output: Output = "plain", method: str = "auto") -> str:
    """Return what stands between two paragraphs of a page, in normal form."""
    html = f"<html><body><div><div><div><h1>T</h1>{PROSE}{inner}{PROSE}</div></div></div></body></html>"
    text = normalize_text(main_text(html, method, output=output).text)
    edge = PROSE[3:-4]
    assert text.count(edge) == 2
    return text[text.index(edge) + len(edge) : text.rindex(edge)].strip("\n")


@pytest.mark.parametrize(
    ("html", "plain", "markdown"),
    [
        ("<h2>On <em>mills</em></h2>", "On mills", "## On mills"),
        ("<h3></h3>", "", ""),
        (
            "<ul><li>one<ol><li>two</li><li>three</li></ol></li><li><p>four</p><p>five</p></li></ul>",
            "- one\n  1. two\n  2. three\n\n- four\n\n  five",
            "- one\n  1. two\n  2. three\n\n- four\n\n  five",
        ),
        (
            "<dl><dt><code>--flag</code></dt><dd>What it means.</dd></dl>",
            "--flag\nWhat it means.",
            "--flag\nWhat it means.",
        ),
        (
            "<table><tr><th>Name</th><th>Value</th></tr><tr><td><p>a</p></td><td></td></tr><tr><td></td><td>b|c<br>d</td></tr></table>",
            "Name\tValue\na\n\tb|c d",
            "| Name | Value |\n| --- | --- |\n| a |  |\n|  | b\\|c d |",
        ),
        ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a\tb\nc\td", "| a | b |\n| --- | --- |\n| c | d |"),
        (
            "<table><tr><td><table><tr><td>a</td><td>b</td></tr></table></td><td>c</td></tr></table>",
            "a\tb\n\nc",
            "| a | b |\n| --- | --- |\n\nc",
        ),
        (
            "<table><tr><td><p>a</p><pre>b\n c</pre></td><td>d</td></tr></table>",
            "a\n\nb\n c\n\nd",
            "a\n\n```\nb\n c\n```\n\nd",
        ),
        (
            "<pre>\n  if  x:\n\n\n\treturn  -1  \n</pre>",
            "  if  x:\n\n\n\treturn  -1",
            "```\n  if  x:\n\n\n\treturn  -1\n```",
        ),
        (
            "<ul><li>a<pre>b\n c</pre></li></ul>",
            "- a\n\n  b\n   c",
            "- a\n\n  ```\n  b\n   c\n  ```",
        ),
        ("<pre>```\nx\n```</pre>", "```\nx\n```", "````\n```\nx\n```\n````"),
        (
            "<pre>.\n├──&nbsp;a\n│&nbsp;&nbsp; └──&nbsp;b</pre>",
            ".\n├── a\n│   └── b",
            "```\n.\n├── a\n│   └── b\n```",
        ),
        ("<figure class=highlight><pre>x = 1</pre></figure>", "x = 1", "```\nx = 1\n```"),
        ("<details><summary>More</summary>of it</details>", "More\nof it", "More\nof it"),
        (
            "<p>a <b>x</b> — <b>y</b>&hellip; <code>p</code>&nbsp;→&nbsp;<code>q</code></p>",
            "a x — y… p → q",
            "a x — y… p → q",
        ),
        ("<p>使用 <b>wget</b> 或 <b>curl</b></p>", "使用 wget 或 curl", "使用 wget 或 curl"),
        ("<table><tr><td>Lists</td><td>✓</td></tr></table>", "Lists\t✓", "| Lists | ✓ |\n| --- | --- |"),
    ],
)
def test_examples(html: str, plain: str, markdown: str) -> None:
    assert laid_out(html) == plain
    assert laid_out(html, "markdown") == markdown


def test_a_cell_of_several_paragraphs_is_laid_out_as_them() -> None:
    post = "".join(f"<p>{number} {'A sentence of a post that has a few. ' * 4}</p>" for number in range(3))
    text = laid_out(f"<table><tr><td>Ann</td><td>{post}</td></tr></table>")
    assert text.startswith("Ann\n\n0 A sentence")
    assert text.count("\n\n") == 3
    assert "\t" not in text


@pytest.mark.parametrize("method", ["auto", "auto_again", "resiliparse", "trafilatura", "justext"])
def test_every_method_has_markdown(method: str) -> None:
    def prose(subject: str) -> str:
        return f"<p>{' '.join(f'The {subject} number {count} is not where it was when they built it.' for count in range(9))}</p>"

    inner = f"{prose('mill')}<h2>On the rivers and mills that they drive</h2>{prose('river')}<pre>x = 1\n  y</pre>{prose('boat')}"
    html = f"<html lang=en><body><div><div><div>{inner}</div></div></div></body></html>"
    text = main_text(html, method, output="markdown").text
    assert "built it.\n\n## On the rivers and mills that they drive\n\nThe river number 0" in text
    assert "built it.\n\n```\nx = 1\n  y\n```\n\nThe boat" in text


TEXTS = st.text(st.sampled_from("ab• \n\t|`\x01\x02\x03\x04\x06\x07\x11\x13\x17"))


@given(TEXTS, st.sampled_from(OUTPUTS))
def test_no_mark_is_left_and_no_letter_lost(text: str, output: Output) -> None:
    laid = lay_out(text, output)
    assert not {mark for mark in laid if mark < " "} - {"\n", "\t"}
    assert [sign for sign in laid if sign in "ab"] == [sign for sign in text if sign in "ab"]
