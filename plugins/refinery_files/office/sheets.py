"""Reads the values of sheets that Excel files show (ECMA-376, part 1, chapter 18), with what formulas last gave.

Sheets, rows and columns that are hidden, and those without a value, are left out.
"""

import re
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import TOO_LARGE, FileRefused, FileText
from refinery_files.markup import Block, escaped, heading, plain_table, write
from refinery_files.office.number_formats import BUILT_IN, general, shown
from refinery_files.office.package import Package, properties
from refinery_files.xml import walk, whole

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_CELLS = 500_000
"""Cells with a value, over all sheets of a file."""

MOST_COLUMNS = 16_384

S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "xl/workbook.xml"
_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_ON = ("1", "true")


def read_sheets(package: Package, name: str = _MAIN) -> FileText:
    """Return a file of Excel whose main part has this name: each sheet is a heading and a table."""
    book = package.main(name)
    relations = package.relations(name)
    kinds = {each.kind: each.target for each in relations.values()}
    reader = _Reader(package, kinds, from_1904=_counts_from_1904(book))
    blocks = list[Block]()
    for nth, sheet in enumerate(book.iterfind(f"{S}sheets/{S}sheet"), 1):
        if sheet.get("state", "visible") != "visible":
            continue
        relation = relations.get(sheet.get(f"{_R}id", ""))
        place = relation.target if relation else f"xl/worksheets/sheet{nth}.xml"
        rows = reader.rows(place)
        if rows:
            blocks += [heading(2, escaped(sheet.get("name", ""))), plain_table(rows)]
    found = properties(package)
    return FileText(
        (write(blocks),),
        title=found.title,
        language=found.language,
        published=found.published,
        is_cut=package.archive.is_cut,
    )


def _counts_from_1904(book: "_Element") -> bool:
    stated = book.find(f"{S}workbookPr")
    return stated is not None and stated.get("date1904") in _ON


class _Reader:
    """Reads the sheets of one file, which share texts and formats."""

    def __init__(self, package: Package, kinds: dict[str, str], *, from_1904: bool) -> None:
        self._package, self._from_1904 = package, from_1904
        self._texts = list(_shared_texts(package, kinds.get("sharedStrings", "xl/sharedStrings.xml")))
        self._forms = _forms(package.part(kinds.get("styles", "xl/styles.xml")))
        self._count = 0

    def rows(self, name: str) -> list[list[str]]:
        """Return the rows of a sheet that have a value, without columns that have none."""
        hidden, rows, used = set[int](), list[dict[int, str]](), set[int]()
        data = self._package.data(name)
        for element in walk(data, f"{S}col", f"{S}row", is_cut=self._package.archive.is_cut):
            if element.tag == f"{S}col":
                if element.get("hidden") in _ON:
                    first, last = whole(element.get("min")), whole(element.get("max"))
                    hidden.update(range(first - 1, min(last, MOST_COLUMNS)))
            elif element.get("hidden") not in _ON:
                row = {at: value for at, value in self._cells(element) if at not in hidden}
                if row:
                    rows.append(row)
                    used.update(row)
        columns = sorted(used)
        return [_trimmed([row.get(at, "") for at in columns]) for row in rows]

    def _cells(self, row: "_Element") -> Iterator[tuple[int, str]]:
        at = -1
        for cell in row:
            if cell.tag != f"{S}c":
                continue
            named = _CELL.fullmatch(cell.get("r", ""))
            at = min(_column(named[1]), MOST_COLUMNS) if named else at + 1
            value = " ".join(self._value(cell).split(" "))
            if value.strip():
                self._count += 1
                if self._count > MOST_CELLS:
                    raise FileRefused(TOO_LARGE)
                yield at, value.strip()

    def _value(self, cell: "_Element") -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            return _text(cell.find(f"{S}is"))
        value = cell.findtext(f"{S}v") or ""
        if kind == "s":
            nth = whole(value)
            return self._texts[nth] if 0 <= nth < len(self._texts) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind == "n":
            return self._number(value, whole(cell.get("s")))
        return _unescaped(value)

    def _number(self, value: str, style: int) -> str:
        try:
            number = float(value)
        except ValueError:
            return value
        if not isfinite(number):
            return value
        form = self._forms[style] if 0 <= style < len(self._forms) else ""
        return shown(number, form, from_1904=self._from_1904) if form else general(number)


def _trimmed(row: list[str]) -> list[str]:
    while row and not row[-1]:
        row.pop()
    return row


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _shared_texts(package: Package, name: str) -> Iterator[str]:
    for element in walk(package.data(name), f"{S}si", is_cut=package.archive.is_cut):
        yield _text(element)


def _text(element: "_Element | None") -> str:
    """Return a text without its readings (`rPh`)."""
    if element is None:
        return ""
    own, parts = element.findtext(f"{S}t") or "", [run.findtext(f"{S}t") or "" for run in element.iterfind(f"{S}r")]
    return _unescaped(own + "".join(parts))


def _unescaped(text: str) -> str:
    if "_x" not in text:
        return text
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)).replace("\r", "\n"), text)


def _forms(styles: "_Element | None") -> list[str]:
    """Return the format of each style of cells, "" the general one."""
    if styles is None:
        return []
    own = {each.get("numFmtId"): each.get("formatCode", "") for each in styles.iterfind(f"{S}numFmts/{S}numFmt")}
    forms = []
    for each in styles.iterfind(f"{S}cellXfs/{S}xf"):
        name = each.get("numFmtId", "0")
        form = own.get(name) or BUILT_IN.get(whole(name), "")
        forms.append("" if form.lower() in ("general", "@") else form)
    return forms
