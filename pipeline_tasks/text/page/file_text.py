"""What readers of files other than pages return: simple HTML of their blocks in reading order, and what it was read from."""

from typing import ClassVar, NamedTuple


class FileText(NamedTuple):
    """The text of a file as HTML of its blocks.

    HTML has h1 to h6, p, ul, ol, li, table, tr, th, td, pre and br, escaped text, and no attributes but colspan and rowspan.
    """

    parts: tuple[str, ...]
    """HTML of blocks; a file with pages has one part for each page, in order; a paragraph belongs to the page where it begins."""
    is_paged: bool = False
    """Whether parts are pages, numbered from 1."""
    unread: tuple[int, ...] = ()
    """Numbers of pages whose text is not to be had: images without text, garbled characters."""
    title: str | None = None
    language: str | None = None
    """BCP 47, as declared."""
    published: str | None = None
    """Day, ISO 8601."""
    is_cut: bool = False
    """Whether the file ends before it is whole."""


class FileRefused(Exception):
    """A file that has no text to be had; its argument is one of `REASONS`.

    `encrypted`: needs a password; `damaged`: nothing of it can be read; `too_large`: more pages, members or bytes inside than
    the bounds allow.
    """

    REASONS: ClassVar[tuple[str, ...]] = ("encrypted", "damaged", "too_large")
