"""The structure that tagged PDFs declare: which marked content is a heading, a paragraph, an item or a cell."""

import ctypes
from typing import NamedTuple

import numpy as np
from pypdfium2 import raw

# more elements or deeper ones are no structure of one page
_MOST_ELEMENTS = 20_000
_DEEPEST = 60
_MOST_MARKS = 1 << 16
# the kind and level of a block by its role
_KINDS = {
    **{f"H{level}": ("h", level) for level in range(1, 7)},
    "H": ("h", 2),
    "Title": ("h", 1),
    "LI": ("li", 0),
    "Code": ("pre", 0),
    **dict.fromkeys(
        ("P", "Caption", "Note", "FENote", "TOCI", "BibEntry", "Formula", "Figure", "BlockQuote", "Index"), ("p", 0)
    ),
}


class Element(NamedTuple):
    """An element of a page's structure: its kind (`h`, `p`, `li`, `pre`, `cell`), and the row of its table."""

    kind: str
    level: int = 0
    table: int = -1
    row: int = -1
    is_numbered: bool = False


class Structure(NamedTuple):
    """The elements of a page, and the index of the one that each identifier of marked content belongs to, or -1."""

    elements: list[Element]
    by_mark: np.ndarray


def read_structure(page: object) -> Structure | None:
    """Return the structure of a page of a tagged PDF; None if it declares none."""
    tree = raw.FPDF_StructTree_GetForPage(page)
    if not tree:
        return None
    try:
        walk = _Walk()
        for at in range(min(raw.FPDF_StructTree_CountChildren(tree), _MOST_ELEMENTS)):
            walk.element(raw.FPDF_StructTree_GetChildAtIndex(tree, at), -1, 0)
    finally:
        raw.FPDF_StructTree_Close(tree)
    if not walk.marks:
        return None
    by_mark = np.full(max(walk.marks) + 1, -1, np.int32)
    by_mark[list(walk.marks)] = list(walk.marks.values())
    return Structure(walk.elements, by_mark)


class _Walk:
    """A walk over the elements of a page, in their order."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.marks: dict[int, int] = {}
        self._seen = 0
        self._table = self._row = -1
        self._tables = self._rows = 0
        self._buffer = ctypes.create_string_buffer(64)

    def _role(self, element: object) -> str:
        size = raw.FPDF_StructElement_GetType(element, self._buffer, 64)
        return self._buffer.raw[: max(0, min(size, 64) - 2)].decode("utf-16-le", "replace")

    def _new(self, element: Element) -> int:
        self.elements.append(element)
        return len(self.elements) - 1

    def element(self, element: object, block: int, depth: int) -> None:
        """Take an element and those inside of it; `block` is the index of the block that it is in, or -1."""
        self._seen += 1
        if not element or depth > _DEEPEST or self._seen > _MOST_ELEMENTS:
            return
        outer = self._table, self._row
        block = self._block(self._role(element), block)
        for at in range(min(raw.FPDF_StructElement_CountChildren(element), _MOST_ELEMENTS)):
            mark = raw.FPDF_StructElement_GetChildMarkedContentID(element, at)
            if 0 <= mark < _MOST_MARKS and block >= 0:
                self.marks[mark] = block
            elif mark < 0:
                self.element(raw.FPDF_StructElement_GetChildAtIndex(element, at), block, depth + 1)
        self._table, self._row = outer

    def _block(self, role: str, block: int) -> int:
        """Return the index of the block that an element of a role begins, or that it is in."""
        if self._row >= 0 and role in ("TD", "TH"):
            return self._new(Element("cell", table=self._table, row=self._row))
        if block >= 0 and self.elements[block].kind == "cell":
            return block
        if role == "Table" or (role == "TR" and self._table >= 0):
            self._enter(role)
            return -1
        if block >= 0 and self.elements[block].kind == "li" and role != "LI":
            return block
        kind, level = _KINDS.get(role, ("", 0))
        return self._new(Element(kind, level)) if kind and not (kind == "pre" and block >= 0) else block

    def _enter(self, role: str) -> None:
        """Begin a table or a row."""
        if role == "Table":
            self._tables += 1
            self._table = self._tables
        else:
            self._rows += 1
            self._row = self._rows
