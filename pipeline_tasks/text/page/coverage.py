"""Measures which share of a page's own sentences a text has, in one compiled pass over the markup without a parser."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import EXCLAMATION_MARK, HASH, LESS, is_alphanumeric
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import TERMINAL, UNSPACED, WORD, class_of, classes, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.hashing import splitmix64
from pipeline_tasks.text.page.visible import (
    ANCHOR,
    HIDDEN,
    closes_itself,
    declaration_end,
    element_end,
    opens_markup,
    packed,
    read_tag,
)

OMITTED = (*HIDDEN, "button", "dialog", "footer", "label", "math", "nav", "noscript", "object", "svg", "template")
"""Elements whose sentences are no page's own: hidden ones, controls, and what pages mark as their site's."""

INLINE = (
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "br", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
    *("img", "ins", "kbd", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
    *("sup", "time", "tt", "u", "var", "wbr"),
)
"""Elements that go on within a paragraph; any other tag ends it."""

PASSAGE = 60
"""Letters outside of links from which on a paragraph counts, one of a script without blanks as three: shorter ones are
headings, labels and captions."""

WINDOW = 16
"""Letters that are compared at once: three words, and as many as a hash of 64 bits has room for at 4 bits each."""

MOST_BYTES = 1 << 24
"""Bytes of the table of a text's windows: of texts above 2 MB more are found where they are not."""


def coverages(pages: pa.Array, rows: list[int], texts: pa.Array) -> npt.NDArray[np.float64]:
    """Return for some rows which share of the page's own sentences the text has; NaN where a page shows none.

    `pages` is a large_binary column of UTF-8, `texts` has their texts. Paragraphs count that have an end of a sentence
    or a script without blanks, `PASSAGE` letters outside of links, and more than in links. Every window of `WINDOW`
    letters of theirs that ends outside of links is looked for in the text, whatever is between letters; a reference
    such as `&auml;` is in no window. One window in 64 is found where it is not.
    """
    offsets, data = views(pages.view(pa.large_string()))
    text_offsets, text_data = views(texts)
    shares = np.full(len(rows), np.nan)
    _measure(offsets, data, np.array(rows, np.int64), text_offsets, text_data, *classes(), shares)
    return shares


@compiled
def _measure(offsets, data, rows, text_offsets, text_data, index, flags, shares):
    """Fill in the share of each row that has windows to look for."""
    for nth in range(len(rows)):
        row = rows[nth]
        known = _windows(text_data, text_offsets[row], text_offsets[row + 1], index, flags)
        found, count = _found(data, offsets[row], offsets[row + 1], index, flags, known)
        if count:
            shares[nth] = found / count


@compiled
def _windows(text, at, end, index, flags):
    """Return a table of bits with the windows of a text set, 64 bits and more for each byte of the text."""
    size = 64
    while size < min(8 * (end - at), MOST_BYTES):
        size *= 2
    known = np.zeros(size, np.uint8)
    window, letters = np.uint64(0), 0
    while at < end:
        code, width = decode(text, at, end)
        if class_of(index, flags, code) & WORD:
            window = _moved(window, code)
            letters += 1
            if letters >= WINDOW:
                place, bit = _place(window, size)
                known[place] |= bit
        at += width
    return known


@inlined
def _moved(window, code):
    """Return a window without its first letter and with another one: each letter is shifted out after `WINDOW`."""
    code = _lowered(np.int64(code))
    return (window << np.uint64(4)) + _LETTERS[(code ^ (code >> 8)) & 0xFF]


@inlined
def _lowered(code):
    """Return the digit of a raised one, which a page has as markup."""
    if 0x2070 <= code <= 0x2079:
        return code - 0x2040
    if code in (0xB2, 0xB3):
        return code - 0x80
    return np.int64(0x31) if code == 0xB9 else code


@inlined
def _place(window, size):
    """Return byte and bit of a window in a table of `size` bytes, a power of two."""
    place = window >> np.uint64(13)  # the last letters alone decide the lowest bits
    return np.int64((place >> np.uint64(3)) & np.uint64(size - 1)), np.uint8(1 << np.int64(place & np.uint64(7)))


@inlined
def _found(page, at, end, index, flags, known):
    """Return how many windows of a page's sentences a table has, and how many were looked for."""
    size = len(known)
    found = count = 0  # of the paragraphs that count
    hits = looked = own = linked = 0  # of this paragraph: windows, letters outside of links and in them
    window, letters = np.uint64(0), 0
    inside, ends, unclosed = False, False, 0
    while at < end:
        byte = page[at]
        if byte == LESS and at + 1 < end and opens_markup(page[at + 1]):
            at += 1
            if page[at] == EXCLAMATION_MARK:
                at = declaration_end(page, at + 1, end)
                continue
            name, closes, links, at = read_tag(page, at, end)
            if name == ANCHOR:
                inside = links
            if not _is_one_of(name, _INLINE):
                if _counts(ends, own, linked):
                    found += hits
                    count += looked
                hits = looked = own = linked = letters = 0
                ends = False
                bit = _bit(name, _OMITTED)
                if bit and not closes and not unclosed & bit and not closes_itself(page, at):
                    behind = element_end(page, at, end, name)
                    unclosed |= bit if behind == end else 0
                    at = behind if behind < end else at
            continue
        if byte == _AMPERSAND:
            at = _reference_end(page, at + 1, end)
            letters = 0
            continue
        code, width = decode(page, at, end)
        at += width
        kind = class_of(index, flags, code)
        if kind & WORD:
            window = _moved(window, code)
            letters += 1
            weight = 3 if kind & UNSPACED else 1
            if inside:
                linked += weight
                continue
            own += weight
            ends |= (kind & UNSPACED) > 0
            if letters >= WINDOW:
                place, bit = _place(window, size)
                looked += 1
                hits += (known[place] & bit) > 0
        elif kind & TERMINAL and not inside:
            ends |= at == end or not is_alphanumeric(page[at])  # `example.org`, 2.5
    if _counts(ends, own, linked):
        found += hits
        count += looked
    return found, count


@inlined
def _counts(ends, own, linked):
    """Return whether a paragraph is of sentences of the page's own."""
    return ends and own >= PASSAGE and own > linked


@inlined
def _reference_end(page, at, end):
    """Return where a reference ends that `&` began, behind its `;`; a bare `&` is a sign."""
    start = at
    while at < end and at < start + _LONGEST and (is_alphanumeric(page[at]) or page[at] == HASH):
        at += 1
    return at + 1 if at < end and at > start and page[at] == _SEMICOLON else start


@inlined
def _is_one_of(name, names):
    for known in names:
        if name == known:
            return True
    return False


@inlined
def _bit(name, names):
    """Return the bit of a name among some, 0 for any other."""
    bit = 1
    for known in names:
        if name == known:
            return bit
        bit <<= 1
    return 0


_LETTERS = np.array(splitmix64(WINDOW, 256), np.uint64)
_INLINE, _OMITTED = (tuple(packed(name) for name in names) for names in (INLINE, OMITTED))
_AMPERSAND, _SEMICOLON = (ord(sign) for sign in "&;")
_LONGEST = 10  # letters of a reference
