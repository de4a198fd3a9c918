"""Parses XML that nobody vouches for: no DTD is read, no entity expanded, nothing fetched, nesting bounded."""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import DAMAGED, TOO_LARGE, FileRefused

if TYPE_CHECKING:
    from lxml.etree import XMLParser, _Element

MOST_TAGS = 4_000_000
"""Tags of a document: its tree takes some 250 bytes for each."""

MOST_WALKED = 4 * MOST_TAGS
"""Tags of a document that is read element by element: those of one row stay."""

_HEAD = 64 << 10
_MOST_DIGITS = 9
_SUBSET = re.compile(rb"<!DOCTYPE[^>\[]*\[")


def parse(data: bytes, *, is_cut: bool = False) -> "_Element":
    """Return the root of a document; of one that is cut as far as it goes.

    FileRefused: it is no XML, is nested deeper than libxml2 allows (256), declares entities, or has too many tags.
    """
    from lxml import etree

    _require_bounded(data, MOST_TAGS)
    try:
        root = etree.fromstring(data, _parser(recover=is_cut))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FileRefused(DAMAGED) from error
    if root is None:
        raise FileRefused(DAMAGED)
    return root


def _require_bounded(data: bytes, most: int) -> None:
    """Raise FileRefused for a document with more tags than `most`, four times as many marks of values, or entities."""
    if data.count(b"<") > most or data.count(b'"') + data.count(b"'") > 4 * most:
        raise FileRefused(TOO_LARGE)
    if _SUBSET.search(data, 0, _HEAD):
        raise FileRefused(DAMAGED)


def _parser(*, recover: bool) -> "XMLParser":
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=recover,
        remove_comments=True,
        remove_pis=True,
    )


def local(element: "_Element") -> str:
    """Return the name of an element without its namespace, "" of what is none (an entity)."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def walk(data: bytes, *tags: str, is_cut: bool = False) -> Iterator["_Element"]:
    """Yield each element of these tags when it is whole, and free it then: a tree would be many times the bytes.

    FileRefused as of `parse`.
    """
    from lxml import etree

    if not data:
        return
    _require_bounded(data, MOST_WALKED)
    found = etree.iterparse(
        BytesIO(data),
        events=("end",),
        tag=tags,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        recover=is_cut,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for _, element in found:
            yield element
            element.clear(keep_tail=False)
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise FileRefused(DAMAGED) from error


def whole(text: str | None, default: int = 0) -> int:
    """Return a whole number of at most nine digits, `default` of what is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else default
