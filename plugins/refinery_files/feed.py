"""Reads feeds: RSS 0.9x and 2.0, RSS 1.0 (RDF) and Atom (RFC 4287). Each entry is a heading with what it holds."""

import re
from datetime import datetime
from email.utils import parsedate_to_datetime
from html import unescape
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import DAMAGED, TOO_LARGE, FileRefused, FileText
from refinery_files.body import body_of, with_characters
from refinery_files.markup import escaped, heading, write
from refinery_files.office.package import day_of
from refinery_files.plain import plain_blocks
from refinery_files.refusals import something
from refinery_files.xml import local, parse

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_ENTRIES = 20_000

_ATOM = ("{http://www.w3.org/2005/Atom}", "{http://purl.org/atom/ns#}")
_CONTENT = "{http://purl.org/rss/1.0/modules/content/}encoded"
_CORE = "{http://purl.org/dc/elements/1.1/}"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_ROOTS = ("rss", "RDF", "feed")
_TEXTS = ("content", "description", "summary", "tagline")
_DATES = ("published", "pubDate", "issued", "date", "updated", "modified")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_RDF_FEED = b"http://purl.org/rss/1.0/"
_OLD_RDF_FEED = b"http://my.netscape.com/rdf/simple/0.9/"
_HEAD = 8192


def holds(body: bytes) -> bool:
    """Return whether XML that begins as a feed is one: RDF is one of the vocabulary of RSS alone."""
    head = bytes(body[:_HEAD])
    return b"<rdf:RDF" not in head or _RDF_FEED in head or _OLD_RDF_FEED in head


def read(body: bytes) -> FileText:
    """Return the entries of a feed; FileRefused for one that is damaged, or has too many."""
    root, is_cut = _root(body)
    if local(root) not in _ROOTS:
        raise FileRefused(DAMAGED)
    channel = next((each for each in root.iter() if local(each) in ("channel", "feed")), root)
    entries = [each for each in root.iter() if local(each) in ("item", "entry")]
    if len(entries) > MOST_ENTRIES:
        raise FileRefused(TOO_LARGE)
    days = [day for entry in entries if (day := _day(entry))]
    language = _first(channel, ("language",)) or channel.get(_LANG) or root.get(_LANG)
    text = FileText(("".join(map(_entry, entries)),), title=_title(channel) or None, language=language, is_cut=is_cut)
    return something(text._replace(published=max(days, default=None) or _day(channel)))


def _root(body: bytes) -> tuple["_Element", bool]:
    """Return the root of a feed, and whether it ends early; what is damaged within is read as far as it is XML."""
    data = with_characters(body.lstrip(b"\xef\xbb\xbf \t\r\n"))
    try:
        return parse(data), False
    except FileRefused as refused:
        if refused.args[0] == TOO_LARGE:
            raise
        root = parse(data, is_cut=True)
        return root, f"</{root.tag.rpartition('}')[2]}>".encode() not in data[-1024:].replace(b"rdf:", b"")


def _entry(entry: "_Element") -> str:
    title = _title(entry)
    content = next((each for each in entry if each.tag == _CONTENT and (each.text or "").strip()), None)
    if content is None:
        found = [each for each in entry if local(each) in _TEXTS and _is_plain_name(each)]
        found.sort(key=lambda each: _TEXTS.index(local(each)))
        content = next((each for each in found if len(each) or (each.text or "").strip()), None)
    if content is None:  # what a vocabulary that is added says, where the feed itself says nothing
        content = next((each for each in entry.iter() if local(each) in _TEXTS and (each.text or "").strip()), None)
    html = "" if content is None else _html(content)
    return write([heading(2, escaped(title))]) + html + ("\n" if html else "")


def _is_plain_name(element: "_Element") -> bool:
    """Return whether an element is of RSS or Atom, and not of a vocabulary that is added, as of media."""
    space = str(element.tag).rpartition("}")[0].removeprefix("{")
    return (
        not space or f"{{{space}}}" in _ATOM or space.encode() in (_RDF_FEED, _OLD_RDF_FEED) or f"{{{space}}}" == _CORE
    )


def _html(element: "_Element") -> str:
    """Return what an element holds as simple HTML: markup within it, markup that is escaped, or text."""
    kind = element.get("type", "html")
    if len(element):  # XHTML
        from lxml import etree

        return body_of(etree.tostring(element, encoding="utf-8", with_tail=False), "utf-8", is_xml=True)
    text = element.text or ""
    if element.tag.startswith(_ATOM) and kind not in ("html", "xhtml", "text/html", "application/xhtml+xml"):
        return "" if "/" in kind and not kind.startswith("text/") else write(plain_blocks(text))
    if _TAG.search(text):
        return body_of(text.encode("utf-8", "ignore"), "utf-8")
    return write(plain_blocks(unescape(text)))


def _title(parent: "_Element") -> str:
    """Return the title of a feed or entry as text: titles have markup, or are text with signs of markup."""
    element = next((each for each in parent if local(each) == "title" and _is_plain_name(each)), None)
    if element is None:
        return ""
    text = "".join(element.itertext())
    return " ".join(unescape(_TAG.sub("", text)).split())


def _first(parent: "_Element", names: tuple[str, ...]) -> str:
    found = {local(each): (each.text or "").strip() for each in reversed(parent) if local(each) in names}
    return next((found[name] for name in names if found.get(name)), "")


def _day(parent: "_Element") -> str | None:
    """Return the day of an entry, in UTC as far as it says its zone."""
    text = _first(parent, _DATES)
    if not text:
        return None
    if text[:4].isdigit():
        return day_of(text)
    try:
        moment: datetime = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.date().isoformat()
