"""Lines that run to the left: characters by their places, and then in the order in which they are read."""

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from refinery_files.pdf.lines import Characters

# in sizes: rows of one paragraph are not farther away
_NEAR = 2.5
_GAP = 1.5
_SPACE = 0.18
_TOUCH = 0.12
# the same, whatever blanks the row has
_WIDE = 0.2
_LAMS = np.array([0x644], np.uint32)
_ALEFS = np.array([0x622, 0x623, 0x625, 0x627], np.uint32)


def _strong(codes: np.ndarray) -> np.ndarray:
    """Return which characters run to the left: Hebrew, Arabic and their neighbors."""
    return (
        ((codes >= 0x590) & (codes < 0x900))
        | ((codes >= 0xFB1D) & (codes < 0xFE00))
        | ((codes >= 0xFE70) & (codes < 0xFEFF))
    )


def has_right_to_left(codes: np.ndarray) -> bool:
    """Return whether some characters run to the left."""
    return bool(_strong(codes).any())


def parts(characters: "Characters") -> list[tuple["Characters", bool]]:
    """Return the characters of neighboring rows, and whether their lines run to the left, in the order of the file.

    Rows run as most of their letters do; those with letters of both directions as most of theirs and their neighbors'.
    Rows of numbers alone run as the page does.
    """
    row = _rows(characters)
    strong = _strong(characters.codes)
    latin = ((characters.codes | 32) >= 97) & ((characters.codes | 32) <= 122)
    strongs, latins = np.bincount(row, strong), np.bincount(row, latin)
    mixed = (strongs > 0) & (latins > 0)
    more = np.where(mixed, _with_neighbors(characters, row, strongs - latins), strongs - latins)
    to_left = np.where(strongs + latins > 0, (strongs > 0) & (more >= 0), strong.sum() > latin.sum())[row]
    starts = np.flatnonzero(np.concatenate(([True], np.diff(to_left))))
    ends = np.append(starts[1:], len(row))
    return [
        (characters.taken(np.arange(start, end)), bool(to_left[start]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]


def _rows(characters: "Characters") -> np.ndarray:
    """Return the number of the row of each character: those on one baseline, as the file has them."""
    row: np.ndarray = np.concatenate(([0], np.cumsum(characters.row_breaks())))
    return row


def _with_neighbors(characters: "Characters", row: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the counts of rows with those of the row before and behind each that are a line away."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    near = np.abs(np.diff(characters.base[first])) < _NEAR * characters.size[first][1:]
    found = counts.copy()
    found[1:] += np.where(near, counts[:-1], 0)
    found[:-1] += np.where(near, counts[1:], 0)
    return found


def _marks(codes: np.ndarray) -> np.ndarray:
    """Return which characters are marks above or below of letters."""
    marks: np.ndarray = (
        ((codes >= 0x591) & (codes < 0x5C8) & (codes != 0x5BE) & (codes != 0x5C0) & (codes != 0x5C3) & (codes != 0x5C6))
        | ((codes >= 0x64B) & (codes < 0x660))
        | (codes == 0x670)
        | ((codes >= 0x6D6) & (codes < 0x6DD))
    )
    return marks


def ordered_rows(characters: "Characters") -> tuple["Characters", np.ndarray]:
    """Return characters of lines that run to the left in the order of their places, and where lines begin.

    Lines begin at the right; numbers and words of other scripts in them are still turned.
    """
    row = _rows(characters)
    center = _centers(characters, row, behind=-1)
    # letters of one ligature have one place: PDFium turned them, as if they had been drawn from the left
    order = np.lexsort((-np.arange(len(row)), -center, row))
    word = np.cumsum(characters.written)
    characters, row, word = characters.taken(order), row[order], word[order]
    _set_ligatures(characters, row, _ALEFS, _LAMS)
    marks, size = _marks(characters.codes), characters.size[1:]
    # a mark is of its letter's word and box, wherever it stands in the file
    letter = np.flatnonzero(np.concatenate(([True], ~marks[1:] | (np.diff(row) > 0))))
    of = np.cumsum(np.bincount(letter, minlength=len(marks))) - 1
    left, right = np.minimum.reduceat(characters.left, letter)[of], np.maximum.reduceat(characters.right, letter)[of]
    gap = left[:-1] - right[1:]
    gap[of[1:] == of[:-1]] = 0
    element = characters.element[letter[of]]
    starts = np.flatnonzero(
        np.concatenate(([True], (np.diff(row) > 0) | (gap > _GAP * size) | (np.diff(element) != 0)))
    )
    other = np.diff(word[letter[of]]) != 0
    strong = _strong(characters.codes)
    mixed = np.diff(strong.astype(int)) != 0
    # rows with blanks of their own say where words end
    has_blanks = (np.bincount(row[1:], other, row[-1] + 1) * 30 > np.bincount(row))[row[1:]] & ~mixed
    # strokes that fill lines of Arabic have no code: a gap between two letters is one where there is no blank
    wide = (gap > _WIDE * size) & ~(strong[1:] & strong[:-1])
    spaced = np.where(has_blanks, other & (gap > _TOUCH * size) | wide, gap > _SPACE * size)
    characters.spaced[:] = np.concatenate(([False], spaced))
    return characters, starts


def with_visual_order(characters: "Characters") -> "Characters":
    """Return characters of lines that run to the right, of which those with words that run to the left are in places'.

    Words that run to the left are still turned in them.
    """
    strong = _strong(characters.codes)
    if not strong.any():
        return characters
    row = _rows(characters)
    has = (np.bincount(row, strong) > 0)[row]
    index = np.arange(len(row))
    order = np.lexsort((index, np.where(has, _centers(characters, row, behind=1), index), row))
    word = np.cumsum(characters.written)[order]
    moved = _moved(characters.codes, strong)[order]
    spaced, kept = characters.spaced[order], (np.diff(order) == 1) & ~moved[1:] & ~moved[:-1]
    characters = characters.taken(order)
    _set_ligatures(characters, row, _LAMS, _ALEFS)
    marks = _marks(characters.codes)
    letter = np.flatnonzero(np.concatenate(([True], ~marks[1:])))
    of = np.cumsum(np.bincount(letter, minlength=len(marks))) - 1
    left, right = np.minimum.reduceat(characters.left, letter)[of], np.maximum.reduceat(characters.right, letter)[of]
    gap, size = left[1:] - right[:-1], characters.size[1:]
    found = (gap > _SPACE * size) | (np.diff(word) != 0) & (gap > _TOUCH * size)
    found[of[1:] == of[:-1]] = False
    characters.spaced[1:] = np.where(kept, spaced[1:], found)
    return characters


def _set_ligatures(characters: "Characters", row: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    """Change the places of the letters of ligatures that are `first` and `second`, which have one box.

    Some producers' forms PDFium has taken apart, and not turned.
    """
    codes = characters.codes
    same = (np.diff(characters.left) == 0) & (np.diff(characters.right) == 0) & (np.diff(row) == 0)
    wrong = np.flatnonzero(same & np.isin(codes[:-1], first) & np.isin(codes[1:], second))
    codes[wrong], codes[wrong + 1] = codes[wrong + 1], codes[wrong]


def _moved(codes: np.ndarray, strong: np.ndarray) -> np.ndarray:
    """Return which characters PDFium turns: those that run to the left, and signs behind them."""
    firm = strong | np.array([chr(code).isalnum() for code in codes.tolist()], bool)
    last = np.maximum.accumulate(np.where(firm, np.arange(len(codes)), 0))
    found: np.ndarray = strong[last]
    return found


def _centers(characters: "Characters", row: np.ndarray, *, behind: int) -> np.ndarray:
    """Return the places of characters along their rows: a mark stands right behind its letter, left (-1) or right."""
    center: np.ndarray = (characters.left + characters.right) / 2
    marks = _marks(characters.codes)
    letters = np.flatnonzero(~marks)
    if marks.any() and len(letters):
        places = row * 1e6 + center
        letters = letters[np.argsort(places[letters], kind="stable")]
        after = np.searchsorted(places[letters], places[marks])
        below, above = letters[np.maximum(after - 1, 0)], letters[np.minimum(after, len(letters) - 1)]
        nearer = np.abs(places[below] - places[marks]) <= np.abs(places[above] - places[marks])
        center[marks] = center[np.where(nearer, below, above)] + 1e-3 * behind
    return center


# letters and digits of scripts that run to the right, with what stands between them
_LETTERS = r"[^\W\u0590-\u08ff\ufb1d-\ufefc]+"
_RUN = re.compile(rf"{_LETTERS}(?:[^\w\s]+{_LETTERS}|[ ]+(?=\S*[A-Za-z]){_LETTERS})*")
_DIGITS = re.compile(r"[\u0660-\u0669\u06f0-\u06f9]+(?:[.,\u066b\u066c/:-][\u0660-\u0669\u06f0-\u06f9]+)*")
_MIRRORED = str.maketrans("()[]{}<>\u00ab\u00bb", ")(][}{><\u00bb\u00ab")


# producers and PDFium disagree on which brackets are mirrored: what stands beside them says
_OPENS = re.compile(r"(?<![^\s])[)\]}]+(?=\w)")
_CLOSES = re.compile(r"(?<=[^\s])[(\[{](?=[\s.,;:\u060c)\]}]|$)")


_LEFT = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
# words that run to the left, with what stands between them
_WORDS = re.compile(rf"[{_LEFT}]+(?:(?:[^\w{_LEFT}]|[0-9_])*[{_LEFT}]+)*")


def words_turned_back(text: str) -> str:
    """Return a line that runs to the right as it is read: words that run to the left are turned in it."""
    if text.isascii() or not _WORDS.search(text):
        return text
    return _with_mirrored(_WORDS.sub(_words_turned_back, text))


def _words_turned_back(found: re.Match[str]) -> str:
    letters: list[str] = []
    for one in found[0]:
        if letters and unicodedata.category(one) == "Mn":
            letters[-1] += one
        else:
            letters.append(one)
    return turned_back("".join(reversed(letters)))


def turned_back(text: str) -> str:
    """Return a line that runs to the left as it is read: words and numbers that run to the right are turned in it."""
    text = text.translate(_MIRRORED)
    text = _DIGITS.sub(lambda found: found[0][::-1], text)
    text = _RUN.sub(lambda found: found[0][::-1].translate(_MIRRORED), text)
    return unicodedata.normalize("NFC", _with_mirrored(text))


def _with_mirrored(text: str) -> str:
    """Return text with brackets that open where one closes, or close where one opens, mirrored."""
    text = _OPENS.sub(lambda found: found[0].translate(_MIRRORED), text)
    for _ in range(text.count("(") + text.count("{") + text.count("[")):
        text, changed = _CLOSES.subn(lambda found: found[0].translate(_MIRRORED), text)
        if not changed:
            break
    return text
