"""Finds the main text of an HTML page by one of three extractors, safe against deep nesting, and its metadata."""

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from pipeline_tasks.text.page.file_text import is_place
from pipeline_tasks.text.page.metadata import PageMetadata, read_metadata
from pipeline_tasks.text.page.rendering import numbered, render, rendered
from pipeline_tasks.text.page.sandbox_messages import PLAIN, Output

BLOCKS, ALL_BLOCKS = "blocks", "all_blocks"
METHODS = (BLOCKS, "resiliparse", "trafilatura", "justext")
LXML_DEPTH = 250  # lxml silently drops what is deeper, unless huge trees are allowed
DEEPEST = 2000  # huge lxml trees end here too, and resiliparse's search for the main part is quadratic in depth

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
    "resiliparse": _RESILIPARSE,
    "trafilatura": (*_RESILIPARSE, "trafilatura", "lxml.html"),
    "justext": (*_RESILIPARSE, "justext", "lxml.html"),
    "repair": ("ftfy",),
    PLAIN: (),
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

    `blocks` are the rows of `block_evidence` for the blocks of its page, None where another method than `blocks` found
    it.
    """

    text: str
    metadata: PageMetadata
    blocks: bytes | None = None


@cache
def load(method: str, model: str = "") -> None:
    """Import what a method, `repair` or the reader at a place needs, and load its loops, which takes up to a second."""
    is_reader = is_place(method)
    for name in (method.partition(":")[0], *_NEEDS[ALL_BLOCKS]) if is_reader else _NEEDS[method]:
        importlib.import_module(name)
    if is_reader:
        load(ALL_BLOCKS)
    elif method in (BLOCKS, ALL_BLOCKS):
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

    `blocks` is what the model of `text.blocks` chooses, by `beta`, and `all_blocks` all that it chooses from; `output`
    is theirs alone. The other methods give the text as their library does of the page as it is shown. `language` names
    jusText's stop words where the page does not name its language; `depth` and `bits` are those of `tags.survey`. What
    extractors raise passes through.
    """
    html = _EMPTY.sub(r"\1></script>", html) if _XHTML in html[:_HEAD] else html
    if method in (BLOCKS, ALL_BLOCKS):
        from pipeline_tasks.text.page.block_text import all_blocks, block_text

        found = all_blocks(html) if method == ALL_BLOCKS else block_text(html, output, beta, model, bits)
        return Main(found.text, found.metadata, blocks=found.blocks)
    parse, extract_plain_text = _resiliparse()
    tree = parse(html)
    metadata = read_metadata(html, tree.title, lambda: tree, bits)
    is_deep = depth > (LXML_DEPTH if method == "justext" else DEEPEST)
    if not is_deep:
        render(tree, html)
    if is_deep or method == "resiliparse":
        text = extract_plain_text(tree, preserve_formatting=True, main_content=not is_deep, alt_texts=False)
        return Main(numbered(text), metadata)
    shown = rendered(html)
    if method == "justext":
        text = _by_justext(shown, _STOP_WORDS.get((metadata.language or "").partition("-")[0], language))
    else:
        text = _by_trafilatura(shown, depth)
    return Main(_BLANKS.sub(" ", text), metadata)


@cache
def _resiliparse() -> tuple[Callable[[str], Any], Callable[..., str]]:
    """Return the parser of pages and the extractor of texts: even a repeated import statement takes a microsecond."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree

    return HTMLTree.parse, extract_plain_text


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
