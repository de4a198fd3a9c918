"""Passes on the HTML that a file holds: what of it is shown, without scripts, styles, links and most attributes."""

import re
from collections.abc import Iterator
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import TOO_LARGE, FileRefused
from refinery_files.markup import escaped
from refinery_files.xml import local, parse

if TYPE_CHECKING:
    from lxml.etree import _Element

_KEPT = frozenset(
    re.findall(
        r"\w+",
        """h1 h2 h3 h4 h5 h6 p ul ol li dl dt dd table caption thead tbody tfoot tr th td pre blockquote br hr
        figcaption code kbd samp em strong b i sup sub q ruby rt rp math mrow mi mn mo mtext ms mspace mfrac msqrt mroot
        mstyle
        merror mpadded mphantom mfenced menclose msub msup msubsup munder mover munderover mtable mtr mtd semantics
        annotation""",
    )
)
_BLOCKS = frozenset(
    re.findall(
        r"\w+", "address article aside center details dialog div figure footer form header legend main section summary"
    )
)
_LEFT_OUT = frozenset(
    re.findall(
        r"\w+",
        """head script style nav noscript template iframe object embed applet svg canvas audio video select button input
        textarea title meta link base datalist map area frameset""",
    )
)
_VOID = frozenset(("br", "hr", "mspace"))
_ATTRIBUTES = frozenset(
    ("colspan", "rowspan", "start", "value", "type", "reversed", "display", "open", "close", "encoding")
)
_SIMPLE = re.compile(r"[\w/.+(){}\[\]|,-]{0,30}")
_HIDDEN = re.compile(
    r"(?i)(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all|font-size\s*:\s*0[^.\d])"
)
_OPS = "{http://www.idpf.org/2007/ops}type"
_PAGE_NAMES = ("pagebreak", "doc-pagebreak", "toc", "landmarks", "page-list")
_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_XML_NAMES = (b"amp", b"lt", b"gt", b"quot", b"apos")


def body_of(html: bytes, encoding: str | None = None, *, is_xml: bool = False, is_cut: bool = False) -> str:
    """Return what a page shows as simple HTML; "" if that is nothing.

    `encoding` is None where the page says its own. XHTML is read as XML if it is such, else as HTML.
    """
    root = _xhtml(html, is_cut=is_cut) if is_xml else None
    root = _html(html, encoding) if root is None else root
    if root is None:
        return ""
    body = next((each for each in root.iter() if local(each) == "body"), root)
    return "".join(_written(body)).strip()


def with_characters(xml: bytes) -> bytes:
    """Return XML with numbers in the place of the names that HTML has for characters: no DTD defines them here."""

    def number(found: "re.Match[bytes]") -> bytes:
        text = "" if found[1] in _XML_NAMES else html5.get(f"{found[1].decode()};", "")
        return "".join(f"&#{ord(sign)};" for sign in text).encode() or found[0]

    return _ENTITY.sub(number, xml)


def _xhtml(html: bytes, *, is_cut: bool) -> "_Element | None":
    try:
        return parse(with_characters(html), is_cut=is_cut)
    except FileRefused as refused:
        if refused.args[0] == TOO_LARGE:
            raise
        return None


def _html(html: bytes, encoding: str | None) -> "_Element | None":
    from lxml import etree

    parser = etree.HTMLParser(
        encoding=encoding, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True, recover=True
    )
    try:
        return etree.fromstring(html, parser) if html.strip() else None
    except (etree.XMLSyntaxError, ValueError):
        return None


def _written(body: "_Element") -> Iterator[str]:
    """Yield the markup of an element, walked without recursion: pages nest as deep as they please."""
    from lxml import etree

    walk = etree.iterwalk(body, events=("start", "end"))
    for event, element in walk:
        name = local(element).lower()
        is_left_out = element is not body and (name in _LEFT_OUT or not name or _is_hidden(element))
        if event == "start":
            if is_left_out:
                walk.skip_subtree()
                continue
            yield _start(element, name)
            yield escaped(element.text or "")
        else:
            if not is_left_out:
                yield _end(name)
            if element is not body:
                yield escaped(element.tail or "")


def _start(element: "_Element", name: str) -> str:
    if name in _BLOCKS:
        return "<div>"
    if name not in _KEPT:
        return ""
    kept = "".join(
        f' {key}="{escape(text)}"'
        for key, text in element.attrib.items()
        if key in _ATTRIBUTES and _SIMPLE.fullmatch(text)
    )
    return f"<{name}{kept}>"


def _end(name: str) -> str:
    if name in _BLOCKS:
        return "</div>"
    return f"</{name}>" if name in _KEPT and name not in _VOID else ""


def _is_hidden(element: "_Element") -> bool:
    style = element.get("style")
    if style and _HIDDEN.search(f"{style};"):
        return True
    told = f"{element.get(_OPS) or element.get('epub:type') or ''} {element.get('role') or ''}".split()
    return element.get("hidden") is not None or any(each in _PAGE_NAMES for each in told)
