"""Scripts whose letters join into clusters: what a cluster fills, and where blanks between clusters are.

Producers draw a cluster of Devanagari, Bengali, Tamil or Khmer as several glyphs and write its letters once, as its
text (`ActualText`, PDF 32000-1, 14.9.4). PDFium gives the letters the box of the first glyph, and takes what the others
fill for a blank. It also loses blanks of the file behind those that it adds. So, between letters of these scripts, the
place says where words end.
"""

import unicodedata
from typing import NamedTuple

import numpy as np
from pypdfium2 import raw

from refinery_files.pdf import pdfium

# begins and ends of ranges of code points: scripts of India and South-East Asia, and Tibetan
_RANGES = (
    (0x900, 0x10A0),
    (0x1780, 0x1800),
    (0x1900, 0x1AB0),
    (0x1B00, 0x1C50),
    (0x1CD0, 0x1D00),
    (0xA800, 0xA830),
    (0xA880, 0xA900),
    (0xA930, 0xAB00),
    (0xABC0, 0xAC00),
    (0x11000, 0x11FFF),
)
_LAST = 0x12000
_JOINED = np.zeros(_LAST, bool)
for _begin, _end in _RANGES:
    _JOINED[_begin:_end] = True
_COMBINING = np.zeros(_LAST, bool)
_COMBINING[[at for at in range(0x300, _LAST) if unicodedata.category(chr(at))[0] == "M"]] = True
# in sizes of the font: a wider gap is a blank. Clusters end where their ink does; blanks have 0.2 and more beside that
_SPACE = 0.15
# in heights of a font: characters that are nearer have no blank between them
_TOUCH = 0.05
# in heights: glyphs that are farther to the left of a character are of no word of it
_NEAR = 0.2
# of a character: what is moved stands that far behind it
_BEHIND = 1e-3
# points: glyphs without ink
_INKLESS = 0.01
# share of characters without a meaning from which a page is garbled; pages of clusters have up to .15
_GARBLED = 0.3
# numbers of glyphs that no letter has
_CONTROLS = 0x20
# in sizes: a step back that is wider begins another line
_BACK = 1.0
_SHIFT = 0.45


def is_joined(codes: np.ndarray) -> np.ndarray:
    """Return which characters are of scripts whose letters join into clusters."""
    joined: np.ndarray = _JOINED[np.minimum(codes, _LAST - 1)]
    return joined


def combines(codes: np.ndarray) -> np.ndarray:
    """Return which characters combine with the one before them: vowel signs, viramas, accents."""
    combining: np.ndarray = _COMBINING[np.minimum(codes, _LAST - 1)]
    return combining


def without_meaning(page: int, codes: np.ndarray, blank: np.ndarray) -> np.ndarray:
    """Return which characters are glyphs of clusters that stand for no letters of their own.

    The letters of their cluster are those of another glyph. PDFium gives the numbers of such glyphs for code points.
    """
    joined = is_joined(codes)
    others = np.flatnonzero(~joined & ~blank)
    lost = np.zeros(len(codes), bool)
    lost[others] = pdfium.unmapped(page, others.tolist())
    if lost.sum() > _GARBLED * (~blank).sum():
        return np.zeros(len(codes), bool)
    # the character before and behind each that has a meaning
    index = np.arange(len(codes))
    before = np.maximum.accumulate(np.where(lost, 0, index))
    behind = np.minimum.accumulate(np.where(lost, len(codes) - 1, index)[::-1])[::-1]
    found: np.ndarray = lost & (joined[before] | joined[behind] | (codes < _CONTROLS))
    return found


def stretch(boxes: np.ndarray, glyphs: np.ndarray, kept: np.ndarray) -> None:
    """Let characters fill what the glyphs behind them do that are no characters.

    `boxes` are left, top, right, bottom of all, `glyphs` says which are none, and `kept` has the others. Glyphs that
    stand for no letter are parts of clusters, or strokes that fill lines of Arabic.
    """
    at = np.flatnonzero(glyphs)
    of = np.searchsorted(kept, at) - 1
    for glyph, host in zip(at[of >= 0].tolist(), kept[of[of >= 0]].tolist(), strict=True):
        if boxes[host, 0] - boxes[glyph, 2] < _NEAR * (boxes[host, 1] - boxes[host, 3]):
            boxes[host, 0] = min(boxes[host, 0], boxes[glyph, 0])
        boxes[host, 2] = max(boxes[host, 2], boxes[glyph, 2])


class Drawn(NamedTuple):
    """What a page's objects say of its characters."""

    repeated: np.ndarray
    """Which characters are in the text of a cluster again: PDFium may read it with more than one of its glyphs."""
    lost: np.ndarray
    """Behind which characters there are blanks that PDFium has lost."""
    order: np.ndarray
    """The characters as the file has them: PDFium orders marks that objects of their own draw by where they begin."""


def stretch_clusters(
    codes: np.ndarray, boxes: np.ndarray, begins: np.ndarray, texts: list[int], drawn: list[int], kinds: np.ndarray
) -> Drawn:
    """Let the characters of each cluster fill what its glyphs do.

    `boxes` are left, top, right, bottom of each character, `begins` where its glyph begins, `texts` their objects,
    `drawn` a page's objects and `kinds` their types. Glyphs of a cluster share its mark. Objects that are of no
    character and no cluster, and have no ink, are lost blanks.
    """
    objects = [drawn[at] for at in np.flatnonzero(kinds == raw.FPDF_PAGEOBJ_TEXT).tolist()]
    marks = {text: pdfium.text_mark(text) for text in objects}
    bounds = pdfium.bounds_of(objects)
    known, first, behind = set(texts), dict[int, int](), set[int]()
    ends, before, host = dict[int, float](), dict[int, int](), 0
    for text, left, right in zip(objects, bounds[:, 0].tolist(), bounds[:, 2].tolist(), strict=True):
        mark = marks[text]
        if text in known:
            before[text] = host
            host = first.setdefault(mark, text) if mark else text
        if mark in first:
            ends[first[mark]] = max(ends.get(first[mark], right), right)
        elif host and text not in known and right - left < _INKLESS:
            behind.add(host)
    begin = np.flatnonzero(np.diff(np.array(texts, np.int64), prepend=-1))
    last = np.append(begin[1:], len(texts)) - 1
    hosts = [texts[at] for at in last.tolist()]
    count = last - begin + 1
    # letters of a ligature keep one box
    leftmost = boxes[:, 0] == np.repeat(np.minimum.reduceat(boxes[:, 0], begin), count)
    rightmost = boxes[:, 2] == np.repeat(np.maximum.reduceat(boxes[:, 2], begin), count)
    boxes[leftmost, 0] = np.minimum(boxes[leftmost, 0], np.repeat(begins[begin], count)[leftmost])
    reached = np.repeat([ends.get(host, -np.inf) for host in hosts], count)
    boxes[rightmost, 2] = np.maximum(boxes[rightmost, 2], reached[rightmost])
    lost = np.zeros(len(texts), bool)
    lost[last] = [host in behind for host in hosts]
    # signs that join, or part, have no ink either, and no width
    gap = boxes[1:, 0] - boxes[:-1, 2]
    lost[:-1] &= gap > _TOUCH * (boxes[:-1, 1] - boxes[:-1, 3])
    repeated = np.repeat([first.get(marks.get(host, 0), host) != host for host in hosts], count)
    return Drawn(repeated, lost, _order(codes, boxes, begin, last, hosts, before))


def _order(
    codes: np.ndarray, boxes: np.ndarray, begin: np.ndarray, last: np.ndarray, texts: list[int], before: dict[int, int]
) -> np.ndarray:
    """Return the order of characters of which marks stand behind the object that is before theirs in the file.

    Objects of `texts` have the characters from `begin` to `last`; `before` has the one before each, in their order.
    """
    key = np.arange(len(codes), dtype=float)
    marks = np.flatnonzero(np.minimum.reduceat(combines(codes) & is_joined(codes), begin)).tolist()
    moved = {texts[at]: slice(int(begin[at]), int(last[at]) + 1) for at in marks}
    ends = dict(zip(texts, last.tolist(), strict=True))
    for text, host in before.items():
        end = ends.get(host)
        if text in moved and end is not None and _is_near(boxes[end], boxes[moved[text].start]):
            key[moved[text]] = key[end] + _BEHIND
    return np.argsort(key, kind="stable")


def _is_near(letter: np.ndarray, mark: np.ndarray) -> bool:
    """Return whether the boxes of a letter and a mark are within a height of each other."""
    height = float(letter[1] - letter[3])
    across = max(float(mark[0] - letter[2]), float(letter[0] - mark[2]))
    return across < height and abs(float(mark[3] - letter[3])) < height


def spaces(
    codes: np.ndarray, written: np.ndarray, left: np.ndarray, right: np.ndarray, base: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return beside which characters places say where blanks are, and before which there is one.

    `written` says before which the file has blanks.
    """
    joined = is_joined(codes)
    decided = joined.copy()
    decided[1:] |= joined[:-1]
    row = np.concatenate(([False], (np.diff(left) < -_BACK * size[1:]) | (np.abs(np.diff(base)) > _SHIFT * size[1:])))
    # marks reach back over their letters: the word before ends where the farthest of its characters does
    apart = np.cumsum(row) * 1e6
    reached = np.maximum.accumulate(right + apart) - apart
    wide = np.concatenate(([False], left[1:] - reached[:-1] > _SPACE * size[1:]))
    return decided, (written | wide) & ~combines(codes)
