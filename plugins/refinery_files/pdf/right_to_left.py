"""Lines that run to the left: characters by their places, and then in the order in which they are read."""

import re
import unicodedata
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from refinery_files.pdf.lines import Characters

# share of characters of a page from which its lines are put in order by places
_SHARE = 0.05
_SHIFT = 0.45
_GAP = 1.5
_SPACE = 0.18
_TOUCH = 0.12
_LAM = 0x644
_ALEFS = np.array([0x622, 0x623, 0x625, 0x627], np.uint32)


def _strong(codes: np.ndarray) -> np.ndarray:
    """Return which characters run to the left: Hebrew, Arabic and their neighbors."""
    return (
        ((codes >= 0x590) & (codes < 0x900))
        | ((codes >= 0xFB1D) & (codes < 0xFE00))
        | ((codes >= 0xFE70) & (codes < 0xFEFF))
    )


def is_right_to_left(codes: np.ndarray) -> bool:
    """Return whether a page has lines that run to the left."""
    return bool(_strong(codes).sum() >= _SHARE * len(codes))


def _marks(codes: np.ndarray) -> np.ndarray:
    """Return which characters are marks above or below of letters."""
    marks: np.ndarray = (
        ((codes >= 0x591) & (codes < 0x5C8) & (codes != 0x5BE) & (codes != 0x5C0) & (codes != 0x5C3) & (codes != 0x5C6))
        | ((codes >= 0x64B) & (codes < 0x660))
        | (codes == 0x670)
        | ((codes >= 0x6D6) & (codes < 0x6DD))
    )
    return marks


def ordered_rows(characters: "Characters") -> tuple["Characters", np.ndarray, np.ndarray]:
    """Return characters in the order of their places, where lines begin, and which lines run to the left.

    Lines that run to the left begin at the right; numbers and words of other scripts in them are still turned.
    """
    size = np.maximum(characters.size[1:], characters.size[:-1])
    row = np.concatenate(([0], np.cumsum(np.abs(np.diff(characters.base)) > _SHIFT * size)))
    strong = _strong(characters.codes)
    latin = ((characters.codes | 32) >= 97) & ((characters.codes | 32) <= 122)
    strongs, latins = np.bincount(row, strong), np.bincount(row, latin)
    # rows of numbers alone run as the page does
    to_left = np.where(strongs + latins > 0, strongs >= np.maximum(1, latins), strong.sum() > latin.sum())
    center = _centers(characters, row)
    # letters of one ligature have one place: PDFium turned them, as if they had been drawn from the left
    index = np.arange(len(row))
    order = np.lexsort((np.where(to_left[row], -index, index), np.where(to_left[row], -center, center), row))
    word = np.cumsum(characters.spaced)
    characters, row, word = characters.taken(order), row[order], word[order]
    _set_ligatures(characters, row)
    turned, marks, size = to_left[row], _marks(characters.codes), characters.size[1:]
    # a mark is of its letter's word and box, wherever it stands in the file
    letter = np.flatnonzero(np.concatenate(([True], ~marks[1:] | (np.diff(row) > 0))))
    of = np.cumsum(np.bincount(letter, minlength=len(marks))) - 1
    left, right = np.minimum.reduceat(characters.left, letter)[of], np.maximum.reduceat(characters.right, letter)[of]
    gap = np.where(turned[1:], left[:-1] - right[1:], left[1:] - right[:-1])
    gap[of[1:] == of[:-1]] = 0
    element = characters.element[letter[of]]
    starts = np.flatnonzero(
        np.concatenate(([True], (np.diff(row) > 0) | (gap > _GAP * size) | (np.diff(element) != 0)))
    )
    other = np.diff(word[letter[of]]) != 0
    mixed = np.diff(_strong(characters.codes).astype(int)) != 0
    # rows with blanks of their own say where words end
    has_blanks = (np.bincount(row[1:], other, len(to_left)) * 30 > np.bincount(row))[row[1:]] & ~mixed
    spaced = np.where(has_blanks, other & (gap > _TOUCH * size), gap > _SPACE * size)
    characters.spaced[:] = np.concatenate(([False], spaced))
    return characters, starts, turned[starts]


def _set_ligatures(characters: "Characters", row: np.ndarray) -> None:
    """Put the lam of a ligature before its alef: some producers' forms PDFium has taken apart, and not turned."""
    same = (np.diff(characters.left) == 0) & (np.diff(characters.right) == 0) & (np.diff(row) == 0)
    wrong = np.flatnonzero(same & np.isin(characters.codes[:-1], _ALEFS) & (characters.codes[1:] == _LAM))
    characters.codes[wrong + 1] = characters.codes[wrong]
    characters.codes[wrong] = _LAM


def _centers(characters: "Characters", row: np.ndarray) -> np.ndarray:
    """Return the places of characters along their rows: a mark stands right behind its letter."""
    center: np.ndarray = (characters.left + characters.right) / 2
    marks = _marks(characters.codes)
    letters = np.flatnonzero(~marks)
    if marks.any() and len(letters):
        places = row * 1e6 + center
        letters = letters[np.argsort(places[letters], kind="stable")]
        after = np.searchsorted(places[letters], places[marks])
        below, above = letters[np.maximum(after - 1, 0)], letters[np.minimum(after, len(letters) - 1)]
        nearer = np.abs(places[below] - places[marks]) <= np.abs(places[above] - places[marks])
        center[marks] = center[np.where(nearer, below, above)] - 1e-3
    return center


# letters and digits of scripts that run to the right, with what stands between them
_LETTERS = r"[^\W\u0590-\u08ff\ufb1d-\ufefc]+"
_RUN = re.compile(rf"{_LETTERS}(?:[^\w\s]+{_LETTERS}|[ ]+(?=\S*[A-Za-z]){_LETTERS})*")
_DIGITS = re.compile(r"[\u0660-\u0669\u06f0-\u06f9]+(?:[.,\u066b\u066c/:-][\u0660-\u0669\u06f0-\u06f9]+)*")
_MIRRORED = str.maketrans("()[]{}<>\u00ab\u00bb", ")(][}{><\u00bb\u00ab")


# producers and PDFium disagree on which brackets are mirrored: what stands beside them says
_OPENS = re.compile(r"(?<![^\s])[)\]}]+(?=\w)")
_CLOSES = re.compile(r"(?<=[^\s])[(\[{](?=[\s.,;:\u060c)\]}]|$)")


def turned_back(text: str) -> str:
    """Return a line that runs to the left as it is read: words and numbers that run to the right are turned in it."""
    text = text.translate(_MIRRORED)
    text = _DIGITS.sub(lambda found: found[0][::-1], text)
    text = _RUN.sub(lambda found: found[0][::-1].translate(_MIRRORED), text)
    text = _OPENS.sub(lambda found: found[0].translate(_MIRRORED), text)
    for _ in range(text.count("(") + text.count("{")):
        text, changed = _CLOSES.subn(lambda found: found[0].translate(_MIRRORED), text)
        if not changed:
            break
    return unicodedata.normalize("NFC", text)
