"""Read word, host and URL lists: one item per line, plain or gzipped."""

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.unpacking import read_unpacked

MOST_LINE = 1 << 16
"""Bytes of a line; no word, host or URL is so long."""


def read(path: str) -> frozenset[str]:
    """Return the items of the UTF-8 list at `path`, stripped; blank lines and `#` comments are none.

    An empty path is an empty list. The suffix (.gz, .zst, .bz2, ...) says how it is compressed. Raises RecipeError if
    the file is no list: it has no item, is not UTF-8, or is cut short.
    """
    if not path:
        return frozenset()
    items = (line.strip() for line in read_content(path).decode().splitlines())
    listed = frozenset(item for item in items if item and not item.startswith("#"))
    require_items(listed, path)
    return listed


def read_content(path: str) -> bytes:
    """Return the unpacked UTF-8 list at `path` without a byte order mark; RecipeError if it is none."""
    content = read_unpacked(path, "word list")
    if not content.isascii():
        _check_utf8(content, path)
    _check_lines(content, path)
    return content


def require_items(items: object, path: str) -> None:
    """Raise RecipeError for a list without an item: it would reject nothing."""
    if not items:
        message = f"word list {path} has no item; bring the file whole, or leave it out of the recipe"
        raise RecipeError(message)


def _check_utf8(content: bytes, path: str) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as broken:
        message = f"word list {path}: byte {broken.start} is not UTF-8; save the list as UTF-8"
        raise RecipeError(message) from broken


def _check_lines(content: bytes, path: str) -> None:
    """Raise RecipeError for a zero byte (UTF-16 without its mark has them), and for a line that is no item."""
    zero, begin = content.find(b"\0"), 0
    if zero >= 0:
        message = f"word list {path}: byte {zero} is zero, as no text has it; save the list as UTF-8"
        raise RecipeError(message)
    while len(content) - begin > MOST_LINE:
        end = content.rfind(b"\n", begin, begin + MOST_LINE + 1)
        if end < 0:
            message = (
                f"word list {path}: the line at byte {begin} has more than {MOST_LINE:,} bytes; write one item a line"
            )
            raise RecipeError(message)
        begin = end + 1
