"""Surveys the markup of raw pages in one compiled pass: how deep it nests, and whether it has a date."""

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.ascii import CASE_BIT, GREATER, LESS, SLASH, UPPER_A, is_digit, is_letter
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.page.metadata import DATED, TIMED

_STRIDE = 16
_SEGMENT = 4096
_LONGEST = 8  # letters of a name that are compared

UNNESTED = re.findall(
    "[a-z]+",
    "area base br col embed hr img input link meta param source track wbr path use p li dt dd option optgroup "
    "tr td th thead tbody tfoot colgroup rp rt html head body",
)
"""Void elements, and those that end by themselves where the next begins: they add no depth."""


class Survey(NamedTuple):
    """Per page: a depth that none of its elements is below, and the bits of `text.page.metadata`."""

    depth: npt.NDArray[np.int64]
    bits: npt.NDArray[np.uint8]


def survey(pages: pa.Array, limit: int, deepest: int) -> Survey:
    """Survey each page of a large_binary column.

    Depths above `limit` are exact up to `deepest`, where counting ends. Bytes are read as they are, in any encoding
    that contains ASCII; NULs between them (UTF-16) are skipped. Tags in scripts and comments count, too: the survey
    says how much work an extractor can have.
    """
    offsets, data = views(pages.view(pa.large_string()))
    result = Survey(np.zeros(len(pages), np.int64), np.zeros(len(pages), np.uint8))
    _survey(offsets, data, limit, deepest, _names(), *result)
    return result


def _names() -> npt.NDArray[np.uint64]:
    packed = [int.from_bytes(name.encode().ljust(_LONGEST, b"\0"), "little") for name in UNNESTED]
    return np.array(sorted(packed), np.uint64)


@compiled
def _survey(offsets, data, limit, deepest, names, depth, bits):
    """Fill in depth and bits of each page."""
    for row in range(len(bits)):
        page = data[offsets[row] : offsets[row + 1]]
        depth[row] = _bound(page)
        if depth[row] > limit:
            depth[row] = _depth(page, deepest, names)
        bits[row] = _dates(page)


@compiled
def _bound(page):
    """Return a depth that no element is below: in each segment, all closing tags count before all opening ones."""
    highest = depth = 0
    for start in range(0, len(page), _SEGMENT):
        part, opened, closed = page[start : start + _SEGMENT + 1], 0, 0
        for at in range(min(_SEGMENT, len(part) - 1)):
            opens = part[at] == LESS
            opened += opens
            closed += opens & (part[at + 1] == SLASH)
        depth = max(depth - closed, 0) + opened - closed
        highest = max(highest, depth)
    return highest


@compiled
def _depth(page, deepest, names):
    """Return how deep elements that are closed by tags of their own nest; counting ends above `deepest`."""
    highest, depth, at, end = 0, 0, 0, len(page)
    while at < end and highest <= deepest:
        if page[at] != LESS:
            at += 1
            continue
        at = _skip_nuls(page, at + 1)
        closing = at < end and page[at] == SLASH
        name, letters, at = _read_name(page, at + closing)
        last, at = _read_attributes(page, at)
        if not letters or at == end or page[at] == LESS or last == SLASH or _is_unnested(name, letters, names):
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        highest = max(highest, depth)
    return highest


@compiled
def _skip_nuls(page, at):
    """Return where the next byte that is no NUL is."""
    while at < len(page) and page[at] == 0:
        at += 1
    return at


@compiled
def _read_name(page, at):
    """Return the name of a tag (its first letters in lower case, the first lowest), its length, and where it ends."""
    name, letters = np.uint64(0), 0
    while at < len(page) and (is_letter(page[at]) or page[at] == 0 or (letters and is_digit(page[at]))):
        if page[at]:
            if letters < _LONGEST:
                folded = page[at] | (CASE_BIT if page[at] >= UPPER_A else 0)
                name |= np.uint64(folded) << np.uint64(8 * letters)
            letters += 1
        at += 1
    return name, letters, at


@compiled
def _read_attributes(page, at):
    """Return the last byte of a tag before its end that is no NUL, 0 if there is none, and where it ends."""
    last = np.uint8(0)
    while at < len(page) and page[at] not in (LESS, GREATER):
        last = page[at] or last
        at += 1
    return last, at


@compiled
def _is_unnested(name, letters, names):
    """Return whether elements of this name add no depth."""
    place = np.searchsorted(names, name)
    return letters <= _LONGEST and place < len(names) and names[place] == name


@compiled
def _dates(page):
    """Return DATED if `published_time` (article:published_time) or `Published` is in the page, TIMED if `<time` is."""
    bits, at, end = 0, 0, len(page)
    while at + _STRIDE + 4 <= end:
        part, least = page[at : at + _STRIDE + 4], np.uint8(255)
        for nth in range(_STRIDE):  # differences from `ubli` and `<tim`: 0 where all four letters agree
            a, b, c, d = part[nth], part[nth + 1], part[nth + 2], part[nth + 3]
            dated = np.uint8((a ^ _U) | (b ^ _B) | (c ^ _L) | (d ^ _I))
            timed = np.uint8((a ^ _OPEN) | (b ^ _T) | (c ^ _I) | (d ^ _M))
            least = min(least, dated, timed)
        if least == 0:
            for place in range(at, at + _STRIDE):
                bits |= _date(page, place, end)
        at += _STRIDE
    for place in range(at, end):
        bits |= _date(page, place, end)
    return np.uint8(bits)


@compiled
def _date(page, at, end):
    """Return the bits of a page that has `<time` here, or `published_time` or `Published` one byte before."""
    if page[at] == LESS:
        return TIMED if _spells(page, at, end, _TIME) else 0
    if page[at] != _U or at == 0:
        return 0
    if page[at - 1] == _P:
        return DATED if _spells(page, at, end, _PUBLISHED_TIME) else 0
    return DATED if page[at - 1] == _UPPER_P and _spells(page, at, end, _PUBLISHED) else 0


@compiled
def _spells(page, at, end, letters):
    if at + len(letters) > end:
        return False
    for nth in range(len(letters)):
        if page[at + nth] != letters[nth]:
            return False
    return True


_OPEN, _U, _B, _L, _I, _T, _M, _P, _UPPER_P = (np.uint8(ord(letter)) for letter in "<ublitmpP")
_TIME, _PUBLISHED, _PUBLISHED_TIME = (
    np.frombuffer(word, np.uint8) for word in (b"<time", b"ublished", b"ublished_time")
)
