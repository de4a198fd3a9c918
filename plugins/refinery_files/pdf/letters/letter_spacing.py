"""Words whose letters are set apart, as headings have them: PDFium takes the white between letters for blanks."""

from itertools import pairwise

import numpy as np

# letters that are no word set apart: initials, names of points
_FEWEST = 5
# share of words of a line that are one letter
_ALONE = 0.8
# share of neighbors that are in the order of letters in an index
_IN_ORDER = 0.75
# in sizes: white between words is so much wider than between their letters
_WIDER = 0.15
# in sizes: letters that are farther apart are columns, or of a font whose blanks are that wide
_WIDEST = 0.5


def without_letter_spaces(
    codes: np.ndarray, size: np.ndarray, gap: np.ndarray, spaced: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Return before which characters blanks stand, without those between letters of words that are set apart.

    `gap` is the white between characters, `starts` where lines begin.
    """
    begins = spaced.copy()
    begins[starts] = True
    alone = begins & np.append(begins[1:], True)
    words, single = (np.add.reduceat(one.astype(int), starts) for one in (begins, alone))
    ends = np.append(starts[1:], len(codes))
    found = spaced.copy()
    for line in np.flatnonzero((single >= _FEWEST) & (single >= _ALONE * words)).tolist():
        begin, end = int(starts[line]), int(ends[line])
        text = "".join(map(chr, codes[begin:end].tolist()))
        letters = [letter for letter in text if letter.isupper() or letter.islower()]
        white, widths = gap[begin : end - 1], size[begin + 1 : end]
        near = float(np.median(white))
        if len(letters) < max(_FEWEST, _ALONE * len(text)) or near > _WIDEST * float(widths[0]):
            continue
        wide = white > near + _WIDER * widths
        has_words = wide.any() and 2 * (int(wide.sum()) + 1) <= len(letters)
        if not _is_grid(text, np.flatnonzero(wide) + 1) and (has_words or _is_word(letters)):
            found[begin + 1 : end] = wide
    return found


def _is_word(letters: list[str]) -> bool:
    """Return whether letters that are all as far apart may be one word: mostly in their order they are of an index."""
    in_order = sum(before < after for before, after in pairwise(letters))
    return in_order < _IN_ORDER * (len(letters) - 1) and len({letter.isupper() for letter in letters[1:]}) == 1


def _is_grid(text: str, wide: np.ndarray) -> bool:
    """Return whether letters stand in a grid: its words would have each letter twice or more, as no long word has."""
    words = [text[begin:end] for begin, end in pairwise([0, *wide.tolist(), len(text)])]
    return any(len(word) >= _FEWEST and 2 * len(set(word)) <= len(word) for word in words)
