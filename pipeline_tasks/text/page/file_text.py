"""What a reader of a type of file says of it: simple HTML of its blocks, which is written as pages are."""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

ENCRYPTED, DAMAGED, TOO_LARGE = REFUSED = "encrypted", "damaged", "too_large"
"""Why a reader gives no text: it needs a password; nothing of it can be read; it holds more than the bounds allow."""


class FileText(NamedTuple):
    """The text of a file as HTML of its blocks in reading order: headings, paragraphs, lists, tables and code.

    A file with pages has a part for each, in order; a paragraph that goes over the end of a page is of the page where
    it begins. `unread` are numbers, from 1 on, of pages whose text is not to be had: images, or characters that are
    garbled. `language` is as the file declares it (BCP 47), `published` its day (ISO 8601). `is_cut` says that the file
    ends before it is whole.
    """

    parts: tuple[str, ...]
    is_paged: bool = False
    unread: tuple[int, ...] = ()
    title: str | None = None
    language: str | None = None
    published: str | None = None
    is_cut: bool = False


class FileRefused(Exception):
    """A file has no text for one of the reasons `REFUSED`, which is its only argument."""


Reader = Callable[[bytes], FileText]
"""A reader of a type of file; it runs in the process of a sandbox, which bounds its time and memory."""

Drawer = Callable[[bytes, int, int], bytes]
"""Draws a page of a file, by its number from 1, so many pixels wide, as PNG; it runs where readers do."""


def is_place(method: str) -> bool:
    """Return whether a method is the place of a reader (`module:NAME`), and no method of `main_text`."""
    return ":" in method


def function_at(place: str) -> object:
    """Return what is at a place (`module:NAME`)."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
