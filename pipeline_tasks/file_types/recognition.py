"""Tells which type of file each payload is."""

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
_ROOT = r"(?s)\A(?:\xef\xbb\xbf)?[\t\n\f\r ]*(?i:<!doctype\s+html|<html[\s>])"
"""How a page begins that is sent as another file: the answer of a server in place of it."""


def types_of(content_types: pa.Array, payloads: pa.Array) -> pa.Array:
    """Return the name of each payload's type, null where it is none that is known.

    Signatures of the types that are brought go first, then those of files that nobody reads. What begins as a page is
    one whatever its label says; else the label tells pages and plain text, and bytes those whose label tells nothing.
    """
    found = pa.nulls(len(payloads), pa.string())
    for card in brought_types().values():
        found = pc.coalesce(found, pc.if_else(_begin(card, payloads), card.name, pa.scalar(None, pa.string())))
    is_other = pc.match_substring_regex(payloads, rf"(?s)\A(?:{media_types.FILES})")
    named = pc.if_else(pc.fill_null(is_other, fill_value=True), None, _named(content_types, payloads))
    return pc.coalesce(found, named.cast(pa.string()))


def _begin(card: FileType, payloads: pa.Array) -> pa.Array:
    """Return whether each payload is of a type by its bytes."""
    if not card.begins:
        return pa.array(np.zeros(len(payloads), bool))
    begins = pc.fill_null(pc.match_substring_regex(payloads, rf"(?s)\A(?:{card.begins})"), fill_value=False)
    if not card.holds or not pc.any(begins).as_py():
        return begins
    rows, holds = np.flatnonzero(begins), _function(card.holds)
    held = np.zeros(len(payloads), bool)
    held[rows] = [holds(payloads[row].as_py()) for row in rows.tolist()]
    return pa.array(held)


@cache
def _function(place: str) -> Callable[[bytes], bool]:
    return cast("Callable[[bytes], bool]", function_at(place))


def _named(content_types: pa.Array, payloads: pa.Array) -> pa.Array:
    """Return the type of each payload that has no signature, by its label, or by its bytes where that tells nothing."""
    kinds = pc.fill_null(content_types, "").dictionary_encode()
    declared = pa.array([media_types.declared_type(kind) for kind in kinds.dictionary.to_pylist()], pa.string())
    media = declared.take(kinds.indices)
    is_unsure = pc.and_(pc.is_in(media, pa.array(_UNSURE)), pc.is_valid(payloads))
    if pc.any(is_unsure).as_py():
        unsure = zip(media.filter(is_unsure).to_pylist(), payloads.filter(is_unsure), strict=True)
        shown = [media_types.media_type(label, memoryview(body.as_buffer())) for label, body in unsure]
        media = pc.replace_with_mask(media, is_unsure, pa.array(shown, pa.string()))
    labels = media.dictionary_encode()
    named = pa.array([_by_label(label) for label in labels.dictionary.to_pylist()], pa.string()).take(labels.indices)
    is_root = pc.and_(pc.is_null(named), pc.match_substring_regex(payloads, _ROOT))
    return pc.if_else(pc.fill_null(is_root, fill_value=False), HTML, named)


def _by_label(media: str) -> str | None:
    """Return the type that a label tells."""
    if media in _PAGE:
        return HTML
    if media in _PLAIN:
        return TEXT
    return next((card.name for card in brought_types().values() if media in card.media_types), None)
