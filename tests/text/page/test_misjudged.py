"""What resiliparse's rules of main content would take for something else is kept."""

import pytest

from pipeline_tasks.text.page.main_text import main_text

PROSE = "<p>The ferry leaves the harbor every morning before the fog has lifted from the water.</p>" * 4
PUBLISHED = '<meta property="og:type" content="article">'
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
        "<figure>All Fares, one to a line<br>of the table</figure>",
        "<figure><img src=x><figcaption>All Fares</figcaption></figure>",
        "<figure><p><img src=x></p><figcaption>All Fares</figcaption></figure>",
        "<figure><img src=no.png alt='Do not copy'><p><code>All Fares</code></p></figure>",
        "<aside class=sidenote><p>All Fares are of the summer.</p></aside>",
        '<aside class="admonition tip"><p>All Fares are of the summer.</p></aside>',
        "<aside role=note><p>All Fares are of the summer.</p></aside>",
        "<h2>See also</h2><div class=body><div><p><a href=/a>All Fares</a></p></div></div>",
        "<h2>See also</h2><div class=body><p id=x><a href=/a>All Fares</a>, <a href=/b>Harbors</a></p></div>",
        "<section id=authoring><h3>Authoring</h3><p>All Fares are of the summer.</p></section>",
        "<div class=section id=image-metadata><h3>Images</h3><p>All Fares are of the summer.</p></div>",
        "<h2>See also</h2><aside></aside><script></script><ul><li>A quay for <a href=/a>All Fares</a> there</li></ul>",
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
        (f"<p>Also read:</p>{OTHERS}", PUBLISHED),
        ("<figure><img src=x><figcaption>All Fares</figcaption></figure>", PUBLISHED),
        ("<figure><blockquote>All Fares</blockquote></figure>", PUBLISHED),
        ("<figure><img src=x><p><code>All Fares</code></p></figure>", PUBLISHED),
        ("<figure><img src=x alt='All Fares'></figure>", ""),
        ("<aside class=related><p>All Fares</p></aside>", ""),
        ("<div id=related><p>All Fares</p></div>", ""),
        ("<section id=sidebar-extras><h2>Types</h2><p>All Fares</p></section>", ""),
        ("<section id=related><h2>Related</h2><p>All Fares</p></section>", PUBLISHED),
    ],
)
def test_what_links_elsewhere_is_left_out(html: str, head: str) -> None:
    assert "All Fares" not in text_of(html, head)


@pytest.mark.parametrize(("body", "heading"), [("body", "h2 id=_name"), ("body class=manpage", "h2")])
def test_the_name_of_a_manual_stands_above_its_content(body: str, heading: str) -> None:
    """Asciidoc puts it into an element of the id `header`, where sites have their banner."""
    name = f"<h1>ferry(1)</h1><{heading}>NAME</h2><div><p>ferry - cross the water</p></div>"
    text = main_text(f"<{body}><div id=header>{name}</div><div id=content>{PROSE}</div></body>", "auto").text
    assert text.startswith("ferry(1)\n\nNAME\n\nferry - cross the water\n\nThe ferry leaves")


def test_a_banner_is_left_out() -> None:
    banner = "<h1>The Ferry</h1><h2>Across since 1890</h2><p>Harbors and <a href=/>fares</a></p>"
    text = main_text(f"<body><div id=header>{banner}</div><div id=content>{PROSE}</div></body>", "auto").text
    assert "1890" not in text
