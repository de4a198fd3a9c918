"""Counts what raw pages show beside their links, in one compiled pass without a parser."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import (
    APOSTROPHE,
    EQUAL,
    EXCLAMATION_MARK,
    GREATER,
    HYPHEN,
    LESS,
    QUESTION_MARK,
    QUOTE,
    SLASH,
    SPACE,
    is_letter,
    lower,
    starts_character,
)
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined

HIDDEN = ("iframe", "noembed", "noframes", "script", "select", "style", "textarea", "title", "xmp")
"""Elements whose content is no text of a page: those that have no elements (HTML Living Standard, 13.1.2), and lists to
select from."""

_LONGEST = 8  # letters of a name that are compared


def visible_characters(pages: pa.Array, rows: list[int]) -> npt.NDArray[np.int64]:
    """Return for some rows of a large_binary column how many characters are visible outside of links (`a` with `href`).

    White space is not counted. Bytes are read as they are, in any encoding that contains ASCII: a character is a byte
    that continues no character of UTF-8, and NULs between bytes (UTF-16) are skipped. So this is an estimate, within
    a factor of two for other encodings of several bytes. A reference such as `&amp;` counts as written. What comes
    after an `a` that is not closed before the next one is visible, as is what an element of `HIDDEN` has that nothing
    closes.
    """
    offsets, data = views(pages.view(pa.large_string()))
    counts = np.zeros(len(rows), np.int64)
    _count(offsets, data, np.array(rows, np.int64), counts)
    return counts


@compiled
def _count(offsets, data, rows, counts):
    """Fill in the count of each row."""
    for nth in range(len(rows)):
        counts[nth] = _visible(data, offsets[rows[nth]], offsets[rows[nth] + 1])


@inlined
def _visible(page, at, end):
    """Return the visible characters of a page that are not in links."""
    count = linked = 0  # `linked` are those since an `a`, which may turn out to be closed
    inside, unclosed = False, 0  # `unclosed` has a bit for each element of HIDDEN that no tag closes any more
    while at < end:
        behind = skip_nuls(page, at + 1, end) if page[at] == LESS else end
        if behind == end or not opens_markup(page[behind]):
            linked += inside and _is_shown(page[at])
            count += not inside and _is_shown(page[at])
            at += 1
            continue
        at = behind
        if page[at] == EXCLAMATION_MARK:
            at = declaration_end(page, at + 1, end)
            continue
        name, closes, links, at = read_tag(page, at, end)
        if name == ANCHOR:
            if not closes:
                count += linked
            linked, inside = 0, links
        elif not closes and _hidden(name) and not unclosed & _hidden(name) and not closes_itself(page, at):
            behind = element_end(page, at, end, name)
            unclosed |= _hidden(name) if behind == end else 0
            at = behind if behind < end else at
    return count + linked


@inlined
def read_tag(page, at, end):
    """Return the name of the tag behind this `<`, whether it closes, whether it begins a link, and where it ends."""
    closes = page[at] == SLASH
    start = at + closes
    name, at = read_name(page, start, end)
    at = tag_end(page, at, end)
    return name, closes, name == ANCHOR and not closes and has_href(page, start, at), at


@inlined
def _is_shown(byte):
    return byte > SPACE and starts_character(byte)


@inlined
def opens_markup(byte):
    """Return whether `<` and this byte begin a tag, a comment or a declaration."""
    return is_letter(byte) or byte in (SLASH, EXCLAMATION_MARK, QUESTION_MARK)


@inlined
def skip_nuls(page, at, end):
    """Return where the next byte is that is no NUL."""
    while at < end and page[at] == 0:
        at += 1
    return at


@inlined
def read_name(page, at, end):
    """Return the name of a tag as a number (its first byte lowest, letters in lower case), 0 if long, and its end."""
    name, size = np.uint64(0), 0
    while at < end and (page[at] == 0 or (page[at] > SPACE and page[at] not in (SLASH, GREATER))):
        if page[at]:
            if size < _LONGEST:
                name |= np.uint64(lower(page[at])) << np.uint64(8 * size)
            size += 1
        at += 1
    return (name if size <= _LONGEST else np.uint64(0)), at


@inlined
def _hidden(name):
    """Return the bit of an element of HIDDEN, 0 for any other."""
    bit = 1
    for hidden in _HIDDEN:
        if name == hidden:
            return bit
        bit <<= 1
    return 0


@inlined
def closes_itself(page, end):
    """Return whether the tag that ends before `end` has a `/` last, as `<title/>` in a drawing."""
    at = end - 2  # before `>`
    while page[at] == 0:
        at -= 1
    return page[at] == SLASH


@inlined
def declaration_end(page, at, end):
    """Return where a comment ends, behind `-->`, or another declaration, behind `>`, whose content begins here."""
    hyphens = nth = 0
    is_comment = False
    while at < end:
        byte = page[at]
        if byte == GREATER and (not is_comment or hyphens >= 2):  # `<!-->` is a whole comment
            return at + 1
        if byte:
            hyphens = hyphens + 1 if byte == HYPHEN else 0
            nth += 1
            is_comment |= nth == hyphens == 2
        at += 1
    return at


@inlined
def tag_end(page, at, end):
    """Return where the tag ends that goes on here; a quoted value, which a `=` comes before, may have a `>` in it."""
    last = quote = np.uint8(0)
    while at < end:
        byte = page[at]
        if quote:
            quote = np.uint8(0) if byte == quote else quote
        elif byte == GREATER:
            return at + 1
        elif byte in (QUOTE, APOSTROPHE) and last == EQUAL:
            quote = byte
        if byte > SPACE:
            last = byte
        at += 1
    return at


@inlined
def has_href(page, at, end):
    """Return whether a tag has an attribute `href`."""
    recent = np.uint64(0)
    while at < end:
        byte = page[at]
        if byte:
            if recent == _HREF and (byte <= SPACE or byte in (EQUAL, SLASH, GREATER)):
                return True
            separates = byte <= SPACE or byte in (SLASH, QUOTE, APOSTROPHE)
            recent = (recent << np.uint64(8) | np.uint64(SPACE if separates else lower(byte))) & _FIVE_BYTES
        at += 1
    return False


@inlined
def element_end(page, at, end, name):
    """Return where the tag begins that closes a hidden element, the end if there is none."""
    while at < end:
        if page[at] == LESS:
            slash = skip_nuls(page, at + 1, end)
            if slash < end and page[slash] == SLASH and read_name(page, slash + 1, end)[0] == name:
                return at
        at += 1
    return at


def packed(name: str) -> np.uint64:
    """Return a name of at most eight bytes as `read_name` does."""
    return np.uint64(int.from_bytes(name.encode(), "little"))


ANCHOR = packed("a")
_HIDDEN = tuple(packed(name) for name in HIDDEN)
_HREF, _FIVE_BYTES = np.uint64(int.from_bytes(b" href", "big")), np.uint64((1 << 40) - 1)
