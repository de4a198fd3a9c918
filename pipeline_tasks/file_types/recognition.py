"""Tells which type of file each payload is."""

import re
from collections.abc import Callable
from functools import cache
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.file_types import HTML, TEXT, FileType, brought_types
from pipeline_tasks.text.page import media_types
from pipeline_tasks.text.page.file_text import function_at

_PLAIN = (media_types.PLAIN, "text/markdown", "text/x-markdown", "text/x-rst")
"""Labels of plain text, which nothing in its bytes tells from others."""

_PAGE = (media_types.HTML, "application/xhtml+xml")
_UNSURE = ("", *media_types.XML_TYPES)
_ROOT = rf"(?s)\A{media_types.ROOT}"
"""How a page begins that is sent as another file: the answer of a server in place of it."""

_MARKUP = r"(?s)\A(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\t\n\f\r \x00]*<"
_TEXTS = re.compile(r"text/.*|.*\+(?:xml|json)|application/.*(?:script|json|xml|yaml).*")
"""Labels of formats that are text, in which markup may stand; what begins with it under any other is no such file."""


def types_of(content_types: pa.Array, payloads: pa.Array) -> pa.Array:
    """Return the name of each payload's type, null where it is none that is known.

    Signatures of the types that are brought go first, then those of files that nobody reads. What begins as a page is
    one whatever its label says, and so is markup whose label is that of no text, as `application/pdf`; else the label
    tells pages and plain text, and bytes those whose label tells nothing.
    """
    found, declared = pa.nulls(len(payloads), pa.string()), _declared(content_types)
    is_plain = pc.is_in(declared, pa.array(_PLAIN))
    for card in brought_types().values():
        begins = _begin(card, payloads, is_plain)
        found = pc.coalesce(found, pc.if_else(begins, card.name, pa.scalar(None, pa.string())))
    is_other = pc.match_substring_regex(payloads, rf"(?s)\A(?:{media_types.FILES})")
    named = pc.if_else(pc.fill_null(is_other, fill_value=True), None, _named(declared, payloads))
    return pc.coalesce(found, named.cast(pa.string()))


def _declared(content_types: pa.Array) -> pa.Array:
    """Return the media type that each label says, "" where it says none."""
    return _by_each(pc.fill_null(content_types, ""), media_types.declared_type, pa.string())


def _begin(card: FileType, payloads: pa.Array, is_plain: pa.Array) -> pa.Array:
    """Return whether each payload is of a type by its bytes, which its label may call plain text."""
    if not card.begins:
        return pa.array(np.zeros(len(payloads), bool))
    begins = pc.fill_null(pc.match_substring_regex(payloads, rf"(?s)\A(?:{card.begins})"), fill_value=False)
    is_held = _held(card.holds_plain or card.holds, payloads, pc.and_(begins, is_plain))
    return pc.or_(is_held, _held(card.holds, payloads, pc.and_not(begins, is_plain)))


def _held(place: str, payloads: pa.Array, begins: pa.Array) -> pa.Array:
    """Return which of the payloads that begin as those of a type the function at a place, if any, finds to be of it."""
    if not place or not pc.any(begins).as_py():
        return begins
    rows, holds = np.flatnonzero(begins), _function(place)
    held = np.zeros(len(payloads), bool)
    held[rows] = [holds(payloads[row].as_py()) for row in rows.tolist()]
    return pa.array(held)


@cache
def _function(place: str) -> Callable[[bytes], bool]:
    return cast("Callable[[bytes], bool]", function_at(place))


def _named(declared: pa.Array, payloads: pa.Array) -> pa.Array:
    """Return the type of each payload that has no signature, by its label, or by its bytes where that tells nothing."""
    media, is_unsure = declared, pc.and_(pc.is_in(declared, pa.array(_UNSURE)), pc.is_valid(payloads))
    if pc.any(is_unsure).as_py():
        unsure = zip(media.filter(is_unsure).to_pylist(), payloads.filter(is_unsure), strict=True)
        shown = [media_types.media_type(label, memoryview(body.as_buffer())) for label, body in unsure]
        media = pc.replace_with_mask(media, is_unsure, pa.array(shown, pa.string()))
    named = _by_each(media, _by_label, pa.string())
    is_page = pc.and_(pc.is_null(named), _begin_as_pages(payloads))
    is_markup = pc.and_(pc.is_null(named), pc.and_not(_by_each(media, _is_no_text, pa.bool_()), is_page))
    return pc.if_else(pc.or_(is_page, _show_markup(payloads, is_markup)), HTML, named)


def _by_each(media: pa.Array, tell: Callable[[str], str | bool | None], kind: pa.DataType) -> pa.Array:
    """Return what is told of each media type, which is asked for once."""
    labels = media.dictionary_encode()
    return pa.array([tell(label) for label in labels.dictionary.to_pylist()], kind).take(labels.indices)


def _is_no_text(media: str) -> bool:
    return not _TEXTS.fullmatch(media)


def _begin_as_pages(payloads: pa.Array) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(payloads, _ROOT), fill_value=False)


def _show_markup(payloads: pa.Array, asked: pa.Array) -> pa.Array:
    """Return whether each payload that is asked for begins with what browsers take for HTML."""
    begins = pc.fill_null(pc.match_substring_regex(payloads, _MARKUP), fill_value=False)
    shown = np.zeros(len(payloads), bool)
    for row in np.flatnonzero(pc.and_(asked, begins)).tolist():
        shown[row] = media_types.sniffed_type(memoryview(payloads[row].as_buffer())) == media_types.HTML
    return pa.array(shown)


def _by_label(media: str) -> str | None:
    """Return the type that a label tells."""
    if media in _PAGE:
        return HTML
    if media in _PLAIN:
        return TEXT
    return next((card.name for card in brought_types().values() if media in card.media_types), None)
