"""Finds the main text of an HTML page by one of three extractors, safe against deep nesting, and its metadata."""

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pipeline_tasks.text.page.boilerplate import CAPTION, HEADING, MARKED, SECTIONS, is_doubtful, is_published
from pipeline_tasks.text.page.layout import Output, lay_out
from pipeline_tasks.text.page.marks import mark
from pipeline_tasks.text.page.merging import STRUCTURE, merge
from pipeline_tasks.text.page.metadata import PageMetadata, read_metadata
from pipeline_tasks.text.page.misjudged import prepare
from pipeline_tasks.text.page.recipes import complete

AUTO, AUTO_AGAIN = "auto", "auto_again"
METHODS = (AUTO, AUTO_AGAIN, "resiliparse", "trafilatura", "justext")
LXML_DEPTH = 250  # lxml silently drops what is deeper, unless huge trees are allowed
DEEPEST = 2000  # huge lxml trees end here too, and resiliparse's search for the main part is quadratic in depth
_SCRIPT = re.compile(r"(?i)(<script\b[^<>]*)/>")
"""A script that lxml takes for closed, as no browser does in HTML, and what follows for text."""

_XHTML = "http://www.w3.org/1999/xhtml"
_HEAD = 2000  # characters of a page within which XHTML names itself
_EMPTY = re.compile(r"(?is)(<script\b[^<>]*)/>(?!(?:(?!<script\b).)*?</script)")
"""A script of XHTML that nothing closes before the next one: it is empty, or the page had no text in any browser."""

_BLANKS = re.compile(r"(?<=\S)(?:[ \t]{2,}|\t)(?=\S)")  # source text that a library has not collapsed
_RESILIPARSE = ("resiliparse.extract.html2text", "resiliparse.parse.html")
_NEEDS = {
    AUTO: _RESILIPARSE,
    "resiliparse": _RESILIPARSE,
    AUTO_AGAIN: (*_RESILIPARSE, "trafilatura", "lxml.html"),
    "trafilatura": (*_RESILIPARSE, "trafilatura", "lxml.html"),
    "justext": (*_RESILIPARSE, "justext", "lxml.html"),
    "repair": ("ftfy",),
}
_STOP_WORDS = dict(
    re.findall(
        r"(\w+):(\w+)",
        "af:Afrikaans ar:Arabic be:Belarusian bg:Bulgarian bn:Bengali ca:Catalan cs:Czech cy:Welsh da:Danish de:German "
        "el:Greek en:English eo:Esperanto es:Spanish et:Estonian eu:Basque fa:Persian fi:Finnish fr:French ga:Irish "
        "gl:Galician he:Hebrew hi:Hindi hr:Croatian hu:Hungarian hy:Armenian id:Indonesian is:Icelandic it:Italian "
        "ka:Georgian kk:Kazakh ko:Korean la:Latin lt:Lithuanian lv:Latvian mk:Macedonian ml:Malayalam mr:Marathi "
        "ms:Malay nb:Norwegian_Bokmal ne:Nepali nl:Dutch nn:Norwegian_Nynorsk no:Norwegian_Bokmal pl:Polish "
        "pt:Portuguese ro:Romanian ru:Russian sk:Slovak sl:Slovenian sq:Albanian sr:Serbian sv:Swedish sw:Swahili "
        "ta:Tamil te:Telugu tl:Tagalog tr:Turkish uk:Ukrainian ur:Urdu uz:Uzbek vi:Vietnamese",
    )
)
"""jusText's lists by language tag."""


class Main(NamedTuple):
    """The main text of a page and its metadata.

    `doubtful`: it is `auto`'s, and another method is likely to be better.
    """

    text: str
    metadata: PageMetadata
    doubtful: bool = False


def load(method: str) -> None:
    """Import what a method or `repair` needs, which takes up to a second."""
    for name in _NEEDS[method]:
        importlib.import_module(name)


def main_text(
    html: str, method: str, language: str = "English", *, output: Output = "plain", depth: int = 0, bits: int = 0
) -> Main:
    """Extract by `method`; a page nested deeper than any extractor allows gives all of its visible text.

    `auto` is resiliparse without the boilerplate that a page marks, laid out by `layout`; `auto_again` is what
    trafilatura chooses, in that layout. The other methods give the text as their library does, with `output: markdown`
    in the layout as well. `language` names jusText's stop words where the page does not name its language; `depth` and
    `bits` are those of `tags.survey`. What extractors raise passes through.
    """
    parse, extract_plain_text = _resiliparse()
    html = _EMPTY.sub(r"\1></script>", html) if _XHTML in html[:_HEAD] else html
    is_laid_out = method in (AUTO, AUTO_AGAIN) or output != "plain"
    tree = parse(mark(html, headings=method == AUTO_AGAIN or output == "markdown") if is_laid_out else html)
    metadata = read_metadata(html, tree, bits)
    is_deep = depth > (LXML_DEPTH if method == "justext" else DEEPEST)
    if is_deep or method == "resiliparse":
        text = extract_plain_text(tree, preserve_formatting=True, main_content=not is_deep, alt_texts=False)
        return Main(lay_out(text, output) if is_laid_out else text, metadata)
    if method == AUTO:
        text, published = _first_look(tree, output)
        return Main(complete(text, html), metadata, published and is_doubtful(text))
    if method == "justext":
        text = _by_justext(html, _STOP_WORDS.get((metadata.language or "").partition("-")[0], language))
    else:
        text = _by_trafilatura(html, depth)
    text = _BLANKS.sub(" ", text)
    if is_laid_out:
        first = _first_look(tree, output, structure=STRUCTURE)[0]
        text = merge(text, first)
        # what is short beside the first text is not made long by what is stated: the longer of the two is taken
        text = complete(text, html) if 2 * len(text) >= len(first) else text
    return Main(text, metadata)


@cache
def _resiliparse() -> tuple[Callable[[str], Any], Callable[..., str]]:
    """Return the parser of pages and the extractor of texts: even a repeated import statement takes a microsecond."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return HTMLTree.parse, extract_plain_text


def _first_look(tree: Any, output: Output, structure: str = "") -> tuple[str, bool]:  # noqa: ANN401
    """Return the main text without marked boilerplate, and whether the page is published."""
    published, skipped = is_published(tree), list(MARKED)
    headings = prepare(tree, published=published)
    if published:
        skipped += [CAPTION, *([HEADING] if headings < SECTIONS else [])]
    _, extract_plain_text = _resiliparse()
    text = extract_plain_text(
        tree, preserve_formatting=True, main_content=True, alt_texts=False, comments=False, skip_elements=skipped
    )
    return lay_out(text, output, structure=structure), published


def _by_trafilatura(html: str, depth: int) -> str:
    import trafilatura
    from lxml.html import HTMLParser, fromstring

    page: Any = _SCRIPT.sub(r"\1>", html)
    if depth > LXML_DEPTH:
        page = fromstring(page.encode(), parser=HTMLParser(huge_tree=True, encoding="utf-8"))
    return trafilatura.extract(page, include_comments=False) or ""


def _by_justext(html: str, language: str) -> str:
    import justext

    paragraphs = justext.justext(_SCRIPT.sub(r"\1>", html).encode(), justext.get_stoplist(language), encoding="utf-8")
    return "\n".join(part.text for part in paragraphs if not part.is_boilerplate)
