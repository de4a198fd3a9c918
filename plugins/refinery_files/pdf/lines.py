"""The characters of a page as lines: runs of characters on one baseline without wide gaps, in the order of the file."""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from refinery_files.pdf import pdfium
from refinery_files.pdf.letters import clusters
from refinery_files.pdf.letters.letter_spacing import without_letter_spaces
from refinery_files.pdf.letters.right_to_left import (
    has_right_to_left,
    ordered_rows,
    parts,
    turned_back,
    with_visual_order,
    words_turned_back,
)
from refinery_files.pdf.unread import lost_fonts

BULLETS = (
    "\u2022\u25e6\u25aa\u25ab\u2023\u25cf\u25cb\u25a0\u25a1\u2043\u2219\u00b7\u27a2\u2756\u2713\u2714"
    # fonts of symbols that say no letters
    "\uf0b7\uf0a7\uf076\uf0fc\uf0d8\uf02d\ue00c"
)
# in sizes of the font: a baseline that moves less is the same line (exponents, marks)
_SHIFT = 0.45
# a gap that is wider is none between words
_GAP = 1.0
# up to that width, a gap parts a line only where those of the lines above and below stand
_SURE_GAP = 1.5
# in sizes: lines above and below are not farther away, and gaps that stand below each other share that much
_NEAR, _SHARED = 3.2, 0.5
# gaps that are looked at
_MOST_GAPS = 200
# what items of lists begin with, and the widest gap behind it, in sizes
_MARKER = re.compile(rf"[{BULLETS}]|\(?(?:\d{{1,3}}|[a-zA-Z]|[ivx]{{1,5}})[.)]|\(\d{{1,3}}\)")
_MARKER_GAP = 5.0
# a step back that is wider begins another line
_BACK = 1.0
# rules of a page that part lines
_MOST_RULES = 500
# a gap that is wider is a space, whatever the file says
_SPACE = 0.5
# the same for characters that stand on their sides, of which PDFium does not say where blanks are
_TURNED_SPACE = 0.15
# in sizes: characters that are that much higher than their neighbor, that near, and that much smaller are of its word
_RAISED, _TOUCHING, _SMALLER = 0.1, 0.12, 0.9
# codes below 32 that PDFium itself writes: breaks of lines, and hyphens at their ends
_SIGNED = np.zeros(33, bool)
_SIGNED[[2, 9, 10, 13]] = True
_BLANKS = np.zeros(0x3002, bool)
_BLANKS[[0, 9, 10, 13, 32, 0xA0, *range(0x2000, 0x200C), 0x202F, 0x205F, 0x3000]] = True


@dataclass(slots=True)
class Line:
    """A run of characters on one baseline: boxes in points from the upper left corner."""

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool = False
    is_mono: bool = False
    is_right_to_left: bool = False
    element: int = -1
    """Index of the element of the page's structure that it is in, -1 if there is none."""


@dataclass(frozen=True, slots=True)
class Characters:
    """The visible characters of a page in the order of the file, and what they are drawn with."""

    codes: np.ndarray
    spaced: np.ndarray
    """Whether blank characters stand before each."""
    written: np.ndarray
    """Whether some of them are in the file: PDFium adds others."""
    left: np.ndarray
    right: np.ndarray
    base: np.ndarray
    size: np.ndarray
    bold: np.ndarray
    mono: np.ndarray
    element: np.ndarray

    def taken(self, at: np.ndarray) -> "Characters":
        """Return the characters at some indices."""
        return Characters(*(getattr(self, name)[at] for name in self.__slots__))

    def row_breaks(self) -> np.ndarray:
        """Return whether each character but the first is on another baseline than the one before it."""
        breaks: np.ndarray = np.abs(np.diff(self.base)) > _SHIFT * np.maximum(self.size[1:], self.size[:-1])
        return breaks


Hidden = Callable[[list[int], np.ndarray, np.ndarray], np.ndarray]
"""Says which characters nobody sees, by their text objects, the index in them of each, and their boxes."""


Objects = Callable[[], tuple[list[int], np.ndarray]]
"""Returns the objects of a page, and their types."""


class Found(NamedTuple):
    """The characters of a page by the direction in which they run, the most frequent one first, turned to the right."""

    characters: tuple[Characters, ...] = ()
    visible: int = 0
    """How many the page draws."""
    lost: int = 0
    """Of those, how many are left out because their fonts are lost."""


def read_characters(page: object, count: int, by_mark: np.ndarray | None, hidden: Hidden, drawn_on: Objects) -> Found:
    """Return the characters of a page; `by_mark` has the element of each identifier of marked content."""
    text_page = pdfium.address(page)
    codes = pdfium.codes(page, count)
    blank = _BLANKS[np.minimum(codes, 0x3001)]
    controls = np.flatnonzero((codes < 32) & ~_SIGNED[np.minimum(codes, 32)])
    has_clusters = bool(clusters.is_joined(codes).any()) or has_right_to_left(codes)
    glyphs = clusters.without_meaning(text_page, codes, blank) if has_clusters else np.zeros(count, bool)
    codes[glyphs] = 0
    # PDFium's sign for a hyphen at the end of a line
    codes[(codes == 2) | (codes == 0xFFFE)] = 0x2D
    kept = np.flatnonzero(~blank & (codes >= 32))
    if not len(kept):
        return Found()
    places, boxes = pdfium.origins(text_page, count)[kept], pdfium.boxes(text_page, count)
    if glyphs.any():
        clusters.stretch(boxes, glyphs, kept)
    boxes = boxes[kept]
    blanks_before = np.cumsum(blank)[kept]
    spaced = np.diff(blanks_before, prepend=0) > 0
    written, codes = spaced, codes[kept]
    heights = boxes[:, 1] - boxes[:, 3]
    same = (np.abs(np.diff(heights)) < 0.05) & (np.abs(np.diff(places[:, 1])) < 0.05)
    # characters between which there is no blank, of either kind, are of one object
    starts = np.flatnonzero(np.concatenate(([True], ~same)) | (np.diff(kept, prepend=-1) > 1))
    of = np.cumsum(np.bincount(starts, minlength=len(kept))) - 1
    at = kept[starts].tolist()
    objects = pdfium.text_objects(text_page, at)
    styles = np.column_stack((pdfium.sizes_of(text_page, at), _styles(objects)))
    turns = np.rint(pdfium.angles(text_page, at) / (np.pi / 2)).astype(int)[of] % 4
    repeated, order = np.zeros(len(kept), bool), None
    if turns.any() or has_clusters:
        blanks = np.flatnonzero(blank)
        blank[blanks[pdfium.generated(text_page, blanks.tolist())]] = False
        written = np.diff(np.cumsum(blank)[kept], prepend=0) > 0
        # between characters that stand on their sides PDFium adds blanks as it likes
        spaced = np.where(turns == 0, spaced, written)
    if has_clusters:
        texts = pdfium.text_objects(text_page, kept.tolist())
        repeated, blank_lost, order = clusters.stretch_clusters(codes, boxes, places[:, 0], texts, *drawn_on())
        written[1:] |= blank_lost[:-1]
    drawn = _Drawn(codes, spaced, written, boxes, places, turns, styles[of], _elements(objects, by_mark)[of])
    lost = _has_lost_font(objects, of, text_page, controls.tolist())
    unseen = hidden(objects, of, boxes) | repeated | lost
    if unseen.any() or order is not None:
        seen = np.flatnonzero(~unseen) if order is None else order[~unseen[order]]
        drawn = _Drawn(*(values[seen] for values in drawn))
    counts = np.bincount(drawn.turns, minlength=4)
    directions = [turn for turn in np.argsort(-counts, kind="stable").tolist() if counts[turn]]
    return Found(tuple(_turned(drawn, turn) for turn in directions), len(kept), int(lost.sum()))


def _elements(objects: list[int], by_mark: np.ndarray | None) -> np.ndarray:
    """Return the element of each text object, -1 for one that tags do not name."""
    if by_mark is None:
        return np.full(len(objects), -1, np.int32)
    marks = np.array(pdfium.marks_of(objects), np.int32)
    return np.where((marks >= 0) & (marks < len(by_mark)), by_mark[marks.clip(0, len(by_mark) - 1)], -1)


def _has_lost_font(objects: list[int], of: np.ndarray, text_page: int, controls: list[int]) -> np.ndarray:
    """Return whether the font of each character is lost, by the characters that came out as controls."""
    if not controls:
        return np.zeros(len(of), bool)
    fonts = np.array(pdfium.fonts_of(objects))
    without = np.array(pdfium.fonts_of(pdfium.text_objects(text_page, controls)))
    found: np.ndarray = np.isin(
        fonts, [font for font in lost_fonts(fonts[of], without) if not pdfium.is_embedded(font)]
    )[of]
    return found


class _Drawn(NamedTuple):
    """Characters as PDFium has them: boxes and places in points from the lower left corner, turns in quarters."""

    codes: np.ndarray
    spaced: np.ndarray
    written: np.ndarray
    boxes: np.ndarray
    places: np.ndarray
    turns: np.ndarray
    styles: np.ndarray
    """Size, and whether bold, and of fixed pitch."""
    elements: np.ndarray


def _styles(objects: list[int]) -> np.ndarray:
    """Return for each text object whether its font is bold, and of fixed pitch."""
    fonts: dict[int, pdfium.Font] = {}
    found = []
    for font in pdfium.fonts_of(objects):
        if font not in fonts:
            fonts[font] = pdfium.Font(font)
        style = fonts[font]
        found.append((style.is_bold, style.is_mono))
    return np.array(found, np.float32).reshape(-1, 2)


def _turned(drawn: _Drawn, turn: int) -> Characters:
    """Return the characters that run in one of four directions, as if they ran to the right, with y downwards."""
    at = np.flatnonzero(drawn.turns == turn)
    left, top, right, bottom = drawn.boxes[at].T.astype(float)
    x, y = drawn.places[at].T
    if turn == 0:
        near, far, base = left, right, -y
    elif turn == 3:
        near, far, base = bottom, top, x
    elif turn == 2:
        near, far, base = -right, -left, y
    else:
        near, far, base = -top, -bottom, -x
    size, bold, mono = drawn.styles[at].T
    size, element = np.maximum(size, 0.5), drawn.elements[at]
    codes, spaced, written = drawn.codes[at], drawn.spaced[at], drawn.written[at]
    if turn:
        spaced[1:] |= near[1:] - far[:-1] > _TURNED_SPACE * size[1:]
    return Characters(codes, spaced, written, near, far, base, size, bold > 0, mono > 0, element)


def lines_of(characters: Characters, rules: np.ndarray) -> list[Line]:
    """Return the lines of a page's characters in the order of the file.

    `rules` are vertical ones, rows of (top, bottom, x): characters on two sides of one are of two lines.
    """
    if not has_right_to_left(characters.codes):
        return _lines_to_the_right(characters, rules)
    found: list[Line] = []
    for part, to_left in parts(characters):
        found += _lines(*ordered_rows(part), to_left=True) if to_left else _lines_to_the_right(part, rules)
    return found


def _lines_to_the_right(characters: Characters, rules: np.ndarray) -> list[Line]:
    characters = with_visual_order(_with_accents(characters))
    lines = _with_sure_gaps(_lines(characters, _starts(characters, rules), to_left=False))
    for line in lines:
        line.text = words_turned_back(line.text)
    return lines


def _with_sure_gaps(lines: list[Line]) -> list[Line]:
    """Return lines of which those that a narrow gap parts, as justified text has them, are one.

    A gap between columns of a table stands above or below those of at least two other lines.
    """
    gaps: list[tuple[float, float, float]] = []
    narrow: set[int] = set()
    for at, (before, after) in enumerate(pairwise(lines), 1):
        gap = after.left - before.right
        if gap > 0 and before.element == after.element and abs(after.base - before.base) < _SHIFT * before.size:
            is_marker = gap < _MARKER_GAP * after.size and _MARKER.fullmatch(before.text) is not None
            if is_marker or gap < _SURE_GAP * max(before.size, after.size):
                narrow.add(at)
            if not is_marker:
                gaps.append((after.base, before.right, after.left))
    if not narrow:
        return lines
    gaps.sort()
    found = lines[:1]
    for at, line in enumerate(lines[1:], 1):
        last = found[-1]
        if at in narrow and not _is_column(gaps, line, last.right):
            found[-1] = _joined(last, line)
        else:
            found.append(line)
    return found


def _joined(before: Line, after: Line) -> Line:
    """Return two lines beside each other as one, in the font of the longer one."""
    longer = before if len(before.text) > len(after.text) else after
    is_bold, is_mono = before.is_bold and after.is_bold, before.is_mono and after.is_mono
    text = f"{before.text} {after.text}"
    return Line(text, before.left, after.right, longer.base, longer.size, is_bold, is_mono, element=before.element)


def _is_column(gaps: list[tuple[float, float, float]], line: Line, left: float) -> bool:
    """Return whether gaps of two other lines near stand above or below of the one from `left` to a line."""
    near, shared = _NEAR * line.size, _SHARED * line.size
    bases = {
        round(base)
        for base, begin, end in gaps[bisect_left(gaps, (line.base - near,)) : bisect_left(gaps, (line.base + near,))][
            :_MOST_GAPS
        ]
        if 1 < abs(base - line.base) < near and min(end, line.left) - max(begin, left) >= shared
    }
    return len(bases) > 1


# accents that are signs of their own, and what combines with a letter
_ACCENTS = {
    0x60: 0x300, 0xB4: 0x301, 0x2C6: 0x302, 0x5E: 0x302, 0x2DC: 0x303, 0x7E: 0x303, 0xAF: 0x304, 0x2D8: 0x306,
    0x2D9: 0x307, 0xA8: 0x308, 0x2DA: 0x30A, 0x2DD: 0x30B, 0x2C7: 0x30C,
}  # fmt: skip
_CEDILLA, _OGONEK = 0xB8, 0x2DB
_SIGNS = np.array(list(_ACCENTS))


def _with_accents(characters: Characters) -> Characters:
    """Return characters of which accents that are drawn over letters of their own stand behind them, and combine."""
    codes, left, right = characters.codes, characters.left, characters.right
    below = np.flatnonzero((codes[1:] == _CEDILLA) | (codes[1:] == _OGONEK)) + 1
    below = below[left[below] < right[below - 1] - 0.1 * characters.size[below]]
    codes[below] = np.where(codes[below] == _CEDILLA, 0x327, 0x328)
    above = np.flatnonzero(np.isin(codes[:-1], _SIGNS))
    above = above[left[above + 1] < right[above] - 0.2 * characters.size[above]]
    above = above[np.array([chr(code).isalpha() for code in codes[above + 1].tolist()], bool)]
    letters = codes[above + 1]
    letters[letters == 0x131] = 0x69
    codes[above + 1] = [_ACCENTS[code] for code in codes[above].tolist()]
    codes[above] = letters
    return characters


def _starts(characters: Characters, rules: np.ndarray) -> np.ndarray:
    """Return where lines begin."""
    size = np.maximum(characters.size[1:], characters.size[:-1])
    gap = characters.left[1:] - characters.right[:-1]
    shift = np.abs(np.diff(characters.base))
    # letters of a ligature have the same box
    other = np.diff(characters.left) != 0
    new = characters.row_breaks() | (gap > _GAP * size) | (gap < -_BACK * size) & other
    # an exponent is drawn behind its base: a line of another size begins where it does not touch
    new |= (shift > 0.1 * size) & (gap > 0.5 * size)
    new |= np.diff(characters.element) != 0
    for top, bottom, x in rules[:_MOST_RULES].tolist():
        between = (characters.right[:-1] <= x + 1) & (characters.left[1:] >= x - 1)
        new |= between & (characters.base[1:] > top) & (characters.base[1:] < bottom + 1)
    return np.flatnonzero(np.concatenate(([True], new)))


def _exponents(characters: Characters, gap: np.ndarray) -> np.ndarray:
    """Return which characters are raised and touch their word, or are a sign behind one: PDFium begins a line there.

    What is raised at the beginning of a line, as the mark of a footnote is, stays apart from the word behind it.
    """
    base, size = characters.base, characters.size
    touching = np.abs(gap) < _TOUCHING * np.maximum(size[1:], size[:-1])
    raised = touching & (base[:-1] - base[1:] > _RAISED * size[:-1]) & (size[1:] < _SMALLER * size[:-1])
    behind = touching & (base[1:] - base[:-1] > _RAISED * size[1:]) & (size[:-1] < _SMALLER * size[1:])
    signs = [at for at in (np.flatnonzero(behind) + 1).tolist() if not chr(int(characters.codes[at])).isalnum()]
    found: np.ndarray = np.concatenate((np.flatnonzero(raised) + 1, np.array(signs, np.int64)))
    return found


def _lines(characters: Characters, starts: np.ndarray, *, to_left: bool) -> list[Line]:
    count = len(characters.codes)
    ends = np.append(starts[1:], count)
    spaced = characters.spaced.copy()
    if not to_left:
        gap = characters.left[1:] - characters.right[:-1]
        spaced[1:] |= gap > _SPACE * characters.size[1:]
        spaced[_exponents(characters, gap)] = False
        spaced = without_letter_spaces(characters.codes, characters.size, gap, spaced, starts)
        _set_spaces_of_clusters(characters, spaced)
    spaced[starts] = False
    text, at = _text(characters.codes, spaced)
    middle = (starts + ends) // 2
    sizes = characters.size[np.lexsort((characters.size, np.repeat(np.arange(len(starts)), ends - starts)))][middle]
    lefts = np.minimum.reduceat(characters.left, starts)
    rights = np.maximum.reduceat(characters.right, starts)
    bold = np.add.reduceat(characters.bold.astype(int), starts) * 10 > 8 * (ends - starts)
    mono = np.add.reduceat(characters.mono.astype(int), starts) * 10 > 8 * (ends - starts)
    bounds = [*at[starts].tolist(), len(text)]
    return [
        Line(
            turned_back(text[begin:end]) if to_left else text[begin:end].rstrip(),
            left,
            right,
            base,
            size,
            is_bold,
            is_mono,
            to_left,
            element,
        )
        for begin, end, left, right, base, size, is_bold, is_mono, element in zip(
            bounds,
            bounds[1:],
            lefts.tolist(),
            rights.tolist(),
            characters.base[middle].tolist(),
            sizes.tolist(),
            bold.tolist(),
            mono.tolist(),
            characters.element[starts].tolist(),
            strict=False,
        )
    ]


def _set_spaces_of_clusters(characters: Characters, spaced: np.ndarray) -> None:
    """Set before which characters there are blanks, beside letters of scripts whose letters join."""
    c = characters
    if clusters.is_joined(c.codes).any():
        decided, found = clusters.spaces(c.codes, c.written, c.left, c.right, c.base, c.size)
        spaced[decided] = found[decided]


def _text(codes: np.ndarray, spaced: np.ndarray) -> tuple[str, np.ndarray]:
    """Return characters as a string with their spaces, and the index of each in it."""
    at = np.arange(len(codes)) + np.cumsum(spaced)
    written = np.full(len(codes) + int(spaced.sum()), 32, np.uint32)
    valid = np.where((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000)), 0xFFFD, codes)
    written[at] = valid
    return written.astype("<u4").tobytes().decode("utf-32-le"), at
