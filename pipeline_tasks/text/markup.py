"""Finds the main text of an HTML page by one of three extractors, safe against deep nesting."""

import importlib
import re
from typing import Any, NamedTuple

METHODS = ("resiliparse", "trafilatura", "justext")
LXML_DEPTH = 250  # lxml silently drops what lies deeper, unless told that trees may be huge
DEEPEST = 2000  # huge lxml trees end here too, and resiliparse's search for the main part is quadratic in depth
_NEEDS = {
    "resiliparse": ("resiliparse.extract.html2text", "resiliparse.parse.html"),
    "trafilatura": ("trafilatura", "lxml.html"),
    "justext": ("justext", "lxml.html"),
}
_SEGMENTS = 64
_SHORTEST = 1 << 13
_VOID = ("<br", "<img", "<input", "<meta", "<link", "<hr", "<!", "<path")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)>")
_UNNESTED = frozenset(  # void elements, and those that end by themselves where the next begins
    re.findall(
        "[a-z]+",
        "area base br col embed hr img input link meta param source track wbr path use p li dt dd option optgroup "
        "tr td th thead tbody tfoot colgroup rp rt html head body",
    )
)


class Main(NamedTuple):
    """The main text of a page and its title, None where there is none."""

    text: str
    title: str | None


def load(method: str) -> None:
    """Import what `method` needs, which takes up to a second."""
    for name in _NEEDS[method]:
        importlib.import_module(name)


def main_text(html: str, method: str, language: str = "English") -> Main:
    """Extract by `method`; a page nested deeper than any extractor stands gives all of its visible text.

    `language` names jusText's stop words. What extractors raise passes through.
    """
    deep = deeper_than(html, DEEPEST)
    if method == "trafilatura" and not deep:
        return _by_trafilatura(html)
    if method == "justext" and not deeper_than(html, LXML_DEPTH):
        return _by_justext(html, language)
    return _by_resiliparse(html, main=method == "resiliparse" and not deep)


def _by_resiliparse(html: str, *, main: bool) -> Main:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    text = extract_plain_text(tree, preserve_formatting=True, main_content=main, alt_texts=False)
    return Main(text, tree.title or None)


def _by_trafilatura(html: str) -> Main:
    import trafilatura
    from lxml.html import HTMLParser, fromstring

    page: Any = html
    if deeper_than(html, LXML_DEPTH):
        page = fromstring(html.encode(), parser=HTMLParser(huge_tree=True, encoding="utf-8"))
    text = trafilatura.extract(page, include_comments=False)
    return Main(text or "", _title(html))


def _by_justext(html: str, language: str) -> Main:
    import justext

    paragraphs = justext.justext(html.encode(), justext.get_stoplist(language), encoding="utf-8")
    return Main("\n".join(part.text for part in paragraphs if not part.is_boilerplate), _title(html))


def _title(html: str) -> str | None:
    from html import unescape

    found = re.search(r"(?is)<title[^>]{0,200}>(.{0,2000}?)</title", html[:1_000_000])
    return " ".join(unescape(found[1]).split()) or None if found else None


def deeper_than(html: str, limit: int) -> bool:
    """Tell whether elements nest deeper than `limit`; cheap counts first, a look at every tag only in doubt."""
    step = _step(html)
    tags = [html.count("<", start, start + step) for start in range(0, len(html), step)]
    if sum(tags) <= limit:
        return False
    return _bound(html, tags, ()) > limit and _bound(html, tags, _VOID) > limit and _exceeds(html, limit)


def _step(html: str) -> int:
    """Return the length of a segment: short ones would cost more calls than they save."""
    return max(len(html) // _SEGMENTS + 1, _SHORTEST)


def _bound(html: str, tags: list[int], void: tuple[str, ...]) -> int:
    """Return a number that the depth is certainly not above, from counts in segments; `void` tags hold nothing."""
    step = _step(html)
    depth = highest = 0
    for start, count in zip(range(0, len(html), step), tags, strict=True):
        end = start + step
        closed = html.count("</", start, end)
        opened = count - closed - sum(html.count(tag, start, end) for tag in void)
        highest = max(highest, depth + opened)
        depth += opened - closed
    return highest


def _exceeds(html: str, limit: int) -> bool:
    depth = 0
    for slash, name, rest in _TAG.findall(html):
        if rest.endswith("/") or name.lower() in _UNNESTED:
            continue
        depth += -1 if slash else 1
        if depth > limit:
            return True
        depth = max(depth, 0)
    return False
