"""Reads the metadata of a page from the tree that its text is read from: title, language, day."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, NamedTuple

from pipeline_tasks.text.page.linked_data import linked_objects

DATED, TIMED = 1, 2
"""Bits of a page, as of `tags.survey`: a date of publication is named, there is a `<time>`."""

_TITLE = 2000  # characters of a title that are looked at
_DAY = re.compile(r"\s*((?:19[9]|20[0-9])[0-9])-([01][0-9])-([0-3][0-9])(?:[T\s]|\s*$)")  # the web began in 1990
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z0-9]{2,8})*")
_WHITE = r"[ \t\n\f\r]"
_OTHER = rf"""(?:{_WHITE}++(?!lang[^\w:-])[\w:.-]++(?:{_WHITE}*+={_WHITE}*+(?:"[^"]*+"|'[^']*+'|[^\s"'`=<>&]++))?+)*+"""
_ROOT = re.compile(
    rf"""(?is)(?:{_WHITE}++|<!--(?!-?>).*?--!?>|<[!?](?!--)[^>]*+>)*+"""
    rf"""<html{_OTHER}{_WHITE}++lang{_WHITE}*+={_WHITE}*+(?:"([^"&]*+)"|'([^'&]*+)'|([\w-]++)){_OTHER}{_WHITE}*+>"""
)
"""A page up to its `<html>`, so plain that its one `lang` is the tree's: nothing before it but declarations
and comments, only white space between attributes (HTML Living Standard, 13.2.5)."""
_LANG = re.compile(r"(?i)\blang\s*=|content-language")
_ROOT_END = 1 << 12  # characters in which that is looked for
# selectors that find few: going through a long list of nodes takes time quadratic in it
_META = ", ".join(
    f'meta[{kind}="{name}" i]'
    for kind, name in (
        ("property", "article:published_time"),
        ("name", "article:published_time"),
        ("property", "og:article:published_time"),
        ("itemprop", "datePublished"),
        ("name", "datePublished"),
    )
)
_DATED = re.compile(r"(?i)<meta\b[^<>]*(?:published_time|datePublished)")
DATED_PART = 'itemprop="datePublished"'
"""What a page has that says its date by microdata."""
_MICRODATA = '[itemprop="datePublished"]'
_TIME = re.compile(
    r"""(?i)\spubdate\b|\sclass\s*=\s*["']?[^"'<>]*(?<![\w-])(?:published|dt-published|entry-date)(?![\w-])"""
)
"""Marks of publication in a `<time>`: an old attribute, and classes of hAtom, microformats2 and WordPress themes."""
_DATETIME = re.compile(r"""(?i)\sdatetime\s*=\s*["']?([^"'<>]{1,64})""")
_HEAD = 1 << 14  # characters in which Content-Language is looked for
_TAG = 1000  # characters of a tag that are looked at


class PageMetadata(NamedTuple):
    """Title, language (lower case, BCP 47) and day of publication (ISO 8601, local), None where the page has none."""

    title: str | None
    language: str | None
    published: str | None


def read_metadata(html: str, title: str | None, tree: Callable[[], Any], bits: int) -> PageMetadata:
    """Return the metadata of a page that has this title; its `tree`, of resiliparse, is made where it is needed.

    Dates are looked for only as `bits` allow, and returned only if all that the page has of a kind agree.
    """
    title = " ".join((title or "")[:_TITLE].split())
    return PageMetadata(title or None, _language(html, tree), _published(html, tree, bits) if bits else None)


def language_tag(text: str | None) -> str | None:
    """Return a language tag in lower case (`de`, `pt-br`), the first of a list; None if it is none."""
    tag = (text or "")[:200].partition(",")[0].strip().lower().replace("_", "-")
    return tag if _LANGUAGE.fullmatch(tag) and len(tag) <= 35 else None  # RFC 5646, 4.4.1: none needs more


def _language(html: str, tree: Callable[[], Any]) -> str | None:
    plain = _ROOT.match(html, 0, _ROOT_END)  # takes a tenth of the time that the way through the tree does
    language = language_tag(plain[plain.lastindex or 0]) if plain else None
    if language:
        return language
    if not _LANG.search(html, 0, _HEAD):
        return None
    head = tree().head
    if head is None:
        return None
    root = head.parent_element
    language = language_tag(root.getattr("lang") or root.getattr("xml:lang"))
    if language:
        return language
    if html.find("ontent-language", 0, _HEAD) < 0 and html.find("ontent-Language", 0, _HEAD) < 0:
        return None  # a look at all of the head takes longer
    meta = head.query_selector('meta[http-equiv="content-language" i]')
    return language_tag(meta.getattr("content")) if meta else None


def _published(html: str, tree: Callable[[], Any], bits: int) -> str | None:
    """Return the day of the first kind of mark that the page has: meta, JSON-LD, microdata, `<time>`."""
    kinds = (_metas(html, tree), _linked(html), _microdata(html, tree)) if bits & DATED else ()
    for kind in (*kinds, _times(html) if bits & TIMED else ()):
        days = {day(text) for text in kind}
        if days:
            return days.pop() if len(days) == 1 else None
    return None


def day(text: str | None) -> str | None:
    """Return the day that an ISO 8601 date or time begins with, None if it is none since 1990."""
    match = _DAY.match((text or "")[:64])
    try:
        return date(*map(int, match.groups())).isoformat() if match else None
    except ValueError:
        return None


def _metas(html: str, tree: Callable[[], Any]) -> Iterator[str | None]:
    head = tree().head if _DATED.search(html) else None
    for meta in head.query_selector_all(_META) if head else ():
        yield meta.getattr("content")


def _linked(html: str) -> Iterator[str | None]:
    """Yield the dates of JSON-LD scripts, not of objects nested in others (reviews, comments)."""
    for node in linked_objects(html, "datePublished"):
        if isinstance(node.get("datePublished"), str):
            yield node["datePublished"]


def _microdata(html: str, tree: Callable[[], Any]) -> Iterator[str | None]:
    for node in tree().document.query_selector_all(_MICRODATA) if DATED_PART in html else ():
        yield node.getattr("content") or node.getattr("datetime") or node.text


def _times(html: str) -> Iterator[str | None]:
    at = -1
    while (at := html.find("<time", at + 1)) >= 0:
        tag = html[at : at + _TAG].partition(">")[0]
        if _TIME.search(tag):
            match = _DATETIME.search(tag)
            yield match[1] if match else None
