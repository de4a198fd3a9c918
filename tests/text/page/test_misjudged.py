"""What resiliparse's rules of main content would take for something else is kept."""

import pytest

from pipeline_tasks.text.page.main_text import main_text

PROSE = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>" * 4
OTHERS = '<ul><li><a href="/a">All Fares</a></li><li><a href="/b">Harbors</a></li></ul>'


def text_of(inner: str, head: str = "") -> str:
    body = f"<div><div><div><div><h1>T</h1>{PROSE}{inner}{PROSE}</div></div></div></div>"
    return main_text(f"<html><head>{head}</head><body>{body}</body></html>", "auto").text


@pytest.mark.parametrize(
    "html",
    [
        "<p>Words.</p><ul><li><a href=/a>A quay</a>, where boats are kept</li><li><a href=/b>Dock</a>, the same</li></ul>",
        f"<p>See also:</p>{OTHERS}",
        f"<p>See also:</p><div class=itemizedlist>{OTHERS}</div>",
        "<h2 id=related>All Fares</h2>",
        "<dl><dt id=email>All Fares</dt><dd>Words.</dd></dl>",
        "<figure class=wp-block-table><table><tr><td>All Fares</td><td>3</td></tr></table></figure>",
        '<a id="popular"/><p>All Fares</p>',
    ],
)
def test_content_is_kept(html: str) -> None:
    text = text_of(html)
    assert "All Fares" in text or "- A quay, where boats are kept\n- Dock, the same" in text
    assert text.count("The ferry leaves") == 8


@pytest.mark.parametrize(
    ("html", "head"),
    [
        (OTHERS, ""),
        (f"<h2>Related</h2>{OTHERS}", ""),
        (f"<p>Also read:</p>{OTHERS}", '<meta property="og:type" content="article">'),
        ("<figure><img src=x><figcaption>All Fares</figcaption></figure>", ""),
        ("<div id=related><p>All Fares</p></div>", ""),
    ],
)
def test_what_links_elsewhere_is_left_out(html: str, head: str) -> None:
    assert "All Fares" not in text_of(html, head)
