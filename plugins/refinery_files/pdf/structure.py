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
    """An element of a page's structure: its kind (`h`, `p`, `li`, `pre`, `cell`), and where it is in its table."""

    kind: str
    level: int = 0
    table: int = -1
    row: int = -1
    column: int = 0
    begins: bool = True
    """Whether its first content is on the page, and not on one before."""
    ends: bool = True
    """Whether its last content is."""


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
        self._column = 0
        self._tables = self._rows = 0
        self._buffer = ctypes.create_string_buffer(64)

    def _role(self, element: object) -> str:
        size = raw.FPDF_StructElement_GetType(element, self._buffer, 64)
        return self._buffer.raw[: max(0, min(size, 64) - 2)].decode("utf-16-le", "replace")

    def _new(self, element: Element) -> int:
        self.elements.append(element)
        return len(self.elements) - 1

    def element(self, element: object, block: int, depth: int) -> tuple[bool, bool]:
        """Take an element and those inside of it; `block` is the index of the block that it is in, or -1.

        Return whether its first and its last content are on the page: PDFium has no child that is on another one.
        """
        self._seen += 1
        if not element or depth > _DEEPEST or self._seen > _MOST_ELEMENTS:
            return True, True
        outer, count = (self._table, self._row), len(self.elements)
        block = self._block(self._role(element), block)
        here: list[tuple[bool, bool]] = []
        for at in range(min(raw.FPDF_StructElement_CountChildren(element), _MOST_ELEMENTS)):
            self._column = at
            mark = raw.FPDF_StructElement_GetChildMarkedContentID(element, at)
            if mark < 0:
                inner = raw.FPDF_StructElement_GetChildAtIndex(element, at)
                here.append(self.element(inner, block, depth + 1) if inner else (False, False))
                continue
            here.append((True, True))
            if mark < _MOST_MARKS and block >= 0:
                self.marks[mark] = block
        self._table, self._row = outer
        begins, ends = (here[0][0], here[-1][1]) if here else (True, True)
        if block == count < len(self.elements):
            self.elements[block] = self.elements[block]._replace(begins=begins, ends=ends)
        return begins, ends

    def _block(self, role: str, block: int) -> int:
        """Return the index of the block that an element of a role begins, or that it is in."""
        if self._row >= 0 and role in ("TD", "TH"):
            return self._new(Element("cell", table=self._table, row=self._row, column=self._column))
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
