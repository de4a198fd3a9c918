"""Declared code within lines of text, which belongs to the paragraph around it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from refinery_files.pdf.lines import Characters
from refinery_files.pdf.structure import Element

# in sizes: a gap that is wider is the end of a line of text
_GAP = 1.0
# the element around code of which a line has nothing else
_ALONE = -2


def with_inline_code(characters: Characters, elements: Sequence[Element]) -> Characters:
    """Return characters of which code that stands in lines of other text is of the element of that text.

    Code is inline if it shares half of its lines at least: what begins a sentence may end on a line of its own, and a
    listing may have a label beside it. Elements of code beside each other alone are the first of them.
    """
    is_code = np.isin(characters.element, [at for at, element in enumerate(elements) if element.kind == "pre"])
    if not is_code.any():
        return characters
    lines = _lines(characters)
    others = np.flatnonzero(~is_code)[::-1]
    around = np.full(int(lines[-1]) + 1, _ALONE, np.int64)
    around[lines[others]] = characters.element[others]
    # rows of (element, line), in the order of the lines
    parts = np.unique(np.column_stack((characters.element, lines))[is_code], axis=0)
    parts = parts[np.argsort(parts[:, 1], kind="stable")]
    codes, shared = parts[:, 0], around[parts[:, 1]]
    inline = np.bincount(codes, np.where(shared == _ALONE, -1, 1)) >= 0
    of = np.arange(len(elements))
    first: dict[int, int] = {}
    for code, line in parts[shared == _ALONE].tolist():
        beside = first.setdefault(line, code)
        of[code] = of[beside] if of[code] == code else of[code]
    inside = parts[(shared != _ALONE) & inline[codes]][::-1]
    of[inside[:, 0]] = around[inside[:, 1]]
    element, mono = characters.element.copy(), characters.mono.copy()
    mono[is_code] &= ~inline[element[is_code]]
    element[is_code] = of[element[is_code]]
    return replace(characters, element=element, mono=mono)


def _lines(characters: Characters) -> np.ndarray:
    """Return the number of the line of text of each character, whatever declares it."""
    size = np.maximum(characters.size[1:], characters.size[:-1])
    ahead, back = characters.left[1:] - characters.right[:-1], characters.left[:-1] - characters.right[1:]
    apart = characters.row_breaks() | (np.maximum(ahead, back) > _GAP * size)
    lines: np.ndarray = np.cumsum(np.concatenate(([False], apart)))
    return lines
