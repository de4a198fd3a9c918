"""Finds the main text of an HTML page by one of three extractors, safe against deep nesting, and its metadata."""

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pipeline_tasks.text.page.boilerplate import (
    CAPTION,
    HEADING,
    MARKED,
    SECTIONS,
    is_doubtful,
    is_published,
    unname,
)
from pipeline_tasks.text.page.layout import Output, lay_out
from pipeline_tasks.text.page.marks import mark, numbered
from pipeline_tasks.text.page.merging import STRUCTURE, merge
from pipeline_tasks.text.page.metadata import PageMetadata, has_headline, headline, read_metadata
from pipeline_tasks.text.page.misjudged import prepare
from pipeline_tasks.text.page.recipes import complete
from pipeline_tasks.text.page.rendering import render, rendered

AUTO, AUTO_AGAIN, BLOCKS, ALL_BLOCKS = "auto", "auto_again", "blocks", "all_blocks"
METHODS = (BLOCKS, AUTO, AUTO_AGAIN, "resiliparse", "trafilatura", "justext")
LXML_DEPTH = 250  # lxml silently drops what is deeper, unless huge trees are allowed
DEEPEST = 2000  # huge lxml trees end here too, and resiliparse's search for the main part is quadratic in depth
LEAST = 2
"""What trafilatura chooses has at least 1 / LEAST of the characters of the first look, and is rather a part of the text
otherwise. Of the gold sets only one changes with it: the share of ingredients and steps rises from .7645 to .7922."""

_SCRIPT = re.compile(r"(?i)(<script\b[^<>]*)/>")
"""A script that lxml takes for closed, as no browser does in HTML, and what follows for text."""

_XHTML = "http://www.w3.org/1999/xhtml"
_HEAD = 2000  # characters of a page within which XHTML names itself
_EMPTY = re.compile(r"(?is)(<script\b[^<>]*)/>(?!(?:(?!<script\b).)*?</script)")
"""A script of XHTML that nothing closes before the next one: it is empty, or the page had no text in any browser."""

_AMPERSAND = re.compile(r"&(?:amp|AMP|#0*38|#[xX]0*26)\b;?")  # trafilatura reads references twice

_BLANKS = re.compile(r"(?<=\S)(?:[ \t]{2,}|\t)(?=\S)")  # source text that a library has not collapsed
_RESILIPARSE = ("resiliparse.extract.html2text", "resiliparse.parse.html")
_NEEDS = {
    BLOCKS: ("pipeline_tasks.text.page.block_text", "resiliparse.parse.html"),
    ALL_BLOCKS: ("pipeline_tasks.text.page.block_text", "resiliparse.parse.html"),
    AUTO: _RESILIPARSE,
    "resiliparse": _RESILIPARSE,
    AUTO_AGAIN: (*_RESILIPARSE, "trafilatura", "lxml.html"),
    "trafilatura": (*_RESILIPARSE, "trafilatura", "lxml.html"),
    "justext": (*_RESILIPARSE, "justext", "lxml.html"),
    "repair": ("ftfy",),
}
_FIRST = "<title>t</title><h1>t</h1><p>a <b>b</b> &amp; <img alt='{}'><table><tr><td>c<td>d</table>"
"""A page whose reading loads the loops of blocks."""

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

    `doubtful`: it is `auto`'s, and another method is likely to be better. `blocks` are the rows of `block_evidence`
    for the blocks of its page, None where another method than `blocks` found it.
    """

    text: str
    metadata: PageMetadata
    doubtful: bool = False
    blocks: bytes | None = None


class _Look(NamedTuple):
    """The main text by resiliparse without marked boilerplate, and what the page says about itself."""

    text: str
    published: bool
    headline: str | None


@cache
def load(method: str, model: str = "") -> None:
    """Import what a method or `repair` needs, and load its loops, which takes up to a second."""
    for name in _NEEDS[method]:
        importlib.import_module(name)
    if method in (BLOCKS, ALL_BLOCKS):
        main_text(_FIRST, method, model=model)


def main_text(
    html: str,
    method: str,
    language: str = "English",
    *,
    output: Output = "plain",
    beta: float = 1.0,
    model: str = "",
    depth: int = 0,
    bits: int = 0,
) -> Main:
    """Extract by `method`; a page nested deeper than any extractor allows gives all of its visible text.

    `auto` is resiliparse without the boilerplate that a page marks, laid out by `layout`; `auto_again` is what
    trafilatura chooses, in that layout, or nothing (`LEAST`). Both have the page's headline. `blocks` is what the model
    of `text.blocks` chooses, by `beta`, and `all_blocks` all that it chooses from. The other methods give the text as
    their library does, with `output: markdown` in the layout as well. `language` names jusText's stop words
    where the page does not name its language; `depth` and `bits` are those of `tags.survey`. What extractors raise
    passes through.
    """
    if method in (BLOCKS, ALL_BLOCKS):
        from pipeline_tasks.text.page.block_text import all_blocks, block_text

        found = all_blocks(html) if method == ALL_BLOCKS else block_text(html, output, beta, model, bits)
        return Main(found.text, found.metadata, blocks=found.blocks)
    parse, extract_plain_text = _resiliparse()
    html = _EMPTY.sub(r"\1></script>", html) if _XHTML in html[:_HEAD] else html
    is_laid_out = method in (AUTO, AUTO_AGAIN) or output != "plain"
    tree = parse(mark(html, headings=method == AUTO_AGAIN or output == "markdown") if is_laid_out else html)
    metadata = read_metadata(html, tree.title, lambda: tree, bits)
    is_deep = depth > (LXML_DEPTH if method == "justext" else DEEPEST)
    if not is_deep:
        render(tree, html)
    if is_deep or method == "resiliparse":
        text = extract_plain_text(tree, preserve_formatting=True, main_content=not is_deep, alt_texts=False)
        return Main(lay_out(text, output) if is_laid_out else numbered(text), metadata)
    if method == AUTO:
        look = _first_look(tree, output, metadata.title)
        text = _headed(complete(look.text, html), look.headline, output)
        return Main(text, metadata, look.published and is_doubtful(look.text))
    shown = rendered(html)
    if method == "justext":
        text = _by_justext(shown, _STOP_WORDS.get((metadata.language or "").partition("-")[0], language))
    else:
        text = _by_trafilatura(shown, depth)
    text = _BLANKS.sub(" ", text)
    if is_laid_out:
        look = _first_look(tree, output, metadata.title, structure=STRUCTURE)
        text = merge(text, look.text)
        if LEAST * len(text) >= len(look.text):
            text = complete(text, html)
        elif method == AUTO_AGAIN:
            text = ""
        text = _headed(text, look.headline, output) if method == AUTO_AGAIN else text
    return Main(text, metadata)


@cache
def _resiliparse() -> tuple[Callable[[str], Any], Callable[..., str]]:
    """Return the parser of pages and the extractor of texts: even a repeated import statement takes a microsecond."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return HTMLTree.parse, extract_plain_text


def _first_look(tree: Any, output: Output, title: str | None, structure: str = "") -> _Look:  # noqa: ANN401
    published, skipped = is_published(tree), list(MARKED)
    headings = prepare(tree, published=published)
    if published:
        skipped += [CAPTION, *([HEADING] if len(headings) < SECTIONS else [])]
    named = headline(title, tree, headings[:SECTIONS])
    unname(tree)
    _, extract_plain_text = _resiliparse()
    text = extract_plain_text(
        tree, preserve_formatting=True, main_content=True, alt_texts=False, comments=False, skip_elements=skipped
    )
    return _Look(lay_out(text, output, structure=structure), published, named)


def _headed(text: str, headline: str | None, output: Output) -> str:
    """Return a text with its headline in front, if there is one and the text lost it."""
    if not text or not headline or has_headline(text, headline):
        return text
    return f"{'# ' if output == 'markdown' else ''}{headline}\n\n{text}"


def _by_trafilatura(html: str, depth: int) -> str:
    import trafilatura
    from lxml.html import HTMLParser, fromstring

    page: Any = _AMPERSAND.sub("&amp;amp;", _SCRIPT.sub(r"\1>", html))
    if depth > LXML_DEPTH:
        page = fromstring(page.encode(), parser=HTMLParser(huge_tree=True, encoding="utf-8"))
    return trafilatura.extract(page, include_comments=False) or ""


def _by_justext(html: str, language: str) -> str:
    import justext

    paragraphs = justext.justext(_SCRIPT.sub(r"\1>", html).encode(), justext.get_stoplist(language), encoding="utf-8")
    return "\n".join(part.text for part in paragraphs if not part.is_boilerplate)
