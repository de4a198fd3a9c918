"""Reads the text of OpenDocument files (OASIS, 1.3, part 3): texts, presentations and sheets.

Deletions that are tracked, hidden text, comments, tables of contents and heads and feet of pages are left out. Text
boxes are behind the paragraph that they are anchored in, notes behind the text.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import DAMAGED, ENCRYPTED, TOO_LARGE, FileRefused, FileText
from refinery_files.archive import Archive
from refinery_files.markup import (
    FIXED,
    MARKUP,
    RAISED,
    Block,
    Runs,
    code,
    escaped,
    heading,
    inline,
    is_fixed,
    item,
    paragraph,
    plain_table,
    prose,
    table,
    write,
)
from refinery_files.office.document_styles import DRAW, FO, OFFICE, SHOWS, STYLE, TABLE, TEXT, Looks, Numbering
from refinery_files.office.labels import Counts
from refinery_files.office.mathml import mathml
from refinery_files.office.package import day_of
from refinery_files.xml import local, parse, whole

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_CELLS = 500_000
"""Cells with a value, over all sheets of a file, those that are repeated as often as they are."""

MOST_PAGES = 5_000
_MOST_BLANKS = 100
_MOST_COLUMNS = 16_384
_LEFT_OUT = frozenset(
    TEXT + name
    for name in re.findall(
        r"\S+",
        """tracked-changes table-of-content illustration-index table-index object-index alphabetical-index
        sequence-decls variable-decls user-field-decls hidden-text ruby-text note-citation""",
    )
) | {f"{OFFICE}annotation", f"{OFFICE}annotation-end", f"{OFFICE}forms", f"{OFFICE}event-listeners"}
_FOOT = ("header", "footer", "date-time", "page-number")
_XLINK = "{http://www.w3.org/1999/xlink}href"
_HIDDEN = ("collapse", "filter")


def read_opendocument(archive: Archive) -> FileText:
    """Return the text of a file by its `content.xml`."""
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise FileRefused(ENCRYPTED)
    data = archive.read("content.xml")
    if not data:
        raise FileRefused(DAMAGED)
    root = parse(data, is_cut=archive.is_cut)
    body = root.find(f"{OFFICE}body")
    if body is None or not len(body):
        raise FileRefused(DAMAGED)
    reader = _Reader(archive, root, _part(archive, "styles.xml"))
    kind, is_paged, unread = local(body[0]), False, tuple[int, ...]()
    if kind in ("presentation", "drawing"):
        pages = body[0].findall(f"{DRAW}page")
        if len(pages) > MOST_PAGES:
            raise FileRefused(TOO_LARGE)
        written = [reader.page(page) for page in pages]
        unread = tuple(
            nth for nth, (page, html) in enumerate(zip(pages, written, strict=True), 1) if not html and _has_image(page)
        )
        parts, is_paged = tuple(written), True
    elif kind == "spreadsheet":
        parts = (write(reader.sheets(body[0])),)
    else:
        parts = (write(prose([*reader.blocks(body[0]), *reader.notes()])),)
    found = _told(_part(archive, "meta.xml"))
    title = found.get("title")
    day = day_of(found.get("date") or found.get("creation-date") or "")
    language = found.get("language") or reader.language
    return FileText(parts, is_paged, unread, title, language, day, archive.is_cut)


def _part(archive: Archive, name: str) -> "_Element | None":
    data = archive.read(name)
    try:
        return parse(data, is_cut=archive.is_cut) if data else None
    except FileRefused:
        return None


def _told(meta: "_Element | None") -> dict[str, str]:
    found = () if meta is None else meta.iterfind(f"{OFFICE}meta/*")
    return {local(each): (each.text or "").strip() for each in found if (each.text or "").strip()}


def _language(styles: "_Element | None") -> str | None:
    """Return the language of paragraphs whose style says none."""
    found = () if styles is None else styles.iter(f"{STYLE}default-style")
    stated = next(
        (each.find(f"{STYLE}text-properties") for each in found if each.get(f"{STYLE}family") == "paragraph"), None
    )
    code = "" if stated is None else stated.get(f"{FO}language", "")
    country = "" if stated is None else stated.get(f"{FO}country", "")
    if code in ("", "none", "zxx"):
        return None
    return f"{code}-{country}" if country not in ("", "none") else code


def _has_image(page: "_Element") -> bool:
    return page.find(f".//{DRAW}image") is not None


class _Reader:
    """Reads the stories of one file, which share styles, lists and notes."""

    def __init__(self, archive: Archive, content: "_Element", styles: "_Element | None") -> None:
        self._archive = archive
        self._looks, self._numbering = Looks(styles, content), Numbering(styles, content)
        self.language = _language(styles)
        self._counts: dict[str, Counts] = {}
        self._notes: list[_Element] = []
        self._boxes: list[_Element] = []
        self._cells = 0

    # --- texts

    def blocks(self, parent: "_Element") -> Iterator[Block]:
        """Yield the blocks of a body, a section, a cell, a note or a text box."""
        for child in parent:
            tag, name = child.tag, local(child)
            if tag in _LEFT_OUT or not name or child.get(f"{TEXT}is-hidden") == "true":
                continue
            if tag in (f"{TEXT}p", f"{TEXT}h"):
                yield from self._paragraph(child)
            elif tag == f"{TEXT}list":
                yield from self._list(child, 0, child.get(f"{TEXT}style-name", ""), None)
            elif tag == f"{TABLE}table":
                yield from self._table(child)
            elif tag.startswith(DRAW):
                yield from self._drawing(child)
            elif child.get(f"{TEXT}display") != "none":  # sections, indexes
                yield from self.blocks(child)

    def _paragraph(self, element: "_Element") -> Iterator[Block]:
        look = self._looks.look("paragraph", element.get(f"{TEXT}style-name"))
        level = whole(element.get(f"{TEXT}outline-level"), 1) if local(element) == "h" else int(look.is_title)
        runs = self._inline(element, look.bits & FIXED)
        if not look.is_hidden:
            if (look.is_code or is_fixed(runs)) and not level:
                yield code(runs, by_font=not look.is_code)
            else:
                html = inline(runs, plain=level > 0)
                yield self._headed(element, level, html) if level else paragraph(html)
        boxes, self._boxes = self._boxes, []
        for box in boxes:
            yield from self.blocks(box)

    def _headed(self, element: "_Element", level: int, html: str) -> Block:
        is_numbered = local(element) == "h" and element.get(f"{TEXT}is-list-header") != "true" and html
        look = self._looks.look("paragraph", element.get(f"{TEXT}style-name"))
        is_listed = element.getparent().tag in (f"{TEXT}list-item", f"{TEXT}list-header")
        label = self._numbering.heading(level - 1) if is_numbered and not is_listed and look.list_name != " " else ""
        return heading(level, f"{escaped(label)} {html}" if label else html)

    def _list(self, element: "_Element", level: int, style: str, counts: Counts | None) -> Iterator[Block]:
        style = element.get(f"{TEXT}style-name") or style or _list_style(self._looks, element)
        if counts is None:
            counts = self._counts_of(element, style)
        for child in element:
            if child.tag not in (f"{TEXT}list-item", f"{TEXT}list-header"):
                continue
            is_labeled = child.tag == f"{TEXT}list-item"
            start = child.get(f"{TEXT}start-value")
            for part in child:
                if part.tag == f"{TEXT}list":
                    yield from self._list(part, level + 1, style, counts)
                    continue
                if part.tag not in (f"{TEXT}p", f"{TEXT}h"):
                    yield from self.blocks([part])
                    continue
                label = ""
                if is_labeled:
                    label = self._numbering.label(style, level, counts, whole(start, 1) if start else None)
                    is_labeled = False
                yield from self._labeled(part, label, level)

    def _labeled(self, element: "_Element", label: str, level: int) -> Iterator[Block]:
        for block in self._paragraph(element):
            if not label or block.tag == "pre":
                yield block
            elif block.tag == "p":
                yield item(label, level, block.html)
            else:
                yield block if label == "\u2022" else block._replace(html=f"{escaped(label)} {block.html}")
            label = ""

    def _counts_of(self, element: "_Element", style: str) -> Counts:
        """Return how far a list has counted: a new one has not, one that goes on with another has as far as that."""
        name = element.get("{http://www.w3.org/XML/1998/namespace}id", "")
        other = element.get(f"{TEXT}continue-list", "")
        goes_on = element.get(f"{TEXT}continue-numbering") == "true"
        counts = self._counts.get(f"id {other}") if other else self._counts.get(f"style {style}") if goes_on else None
        counts = counts or Counts()
        self._counts[f"style {style}"] = counts
        if name:
            self._counts[f"id {name}"] = counts
        return counts

    def _table(self, element: "_Element") -> Iterator[Block]:
        rows, headers = list[list[list[Block]]](), 0
        for row, is_header in _rows(element):
            cells = [list(self.blocks(cell)) for cell in row if local(cell) in ("table-cell", "covered-table-cell")]
            headers += is_header and headers == len(rows)
            rows.append(cells)
        yield from table(rows, headers)

    def notes(self) -> list[Block]:
        """Return the notes of the text in its order."""
        blocks, at = list[Block](), 0
        while at < len(self._notes):
            note = self._notes[at]
            body, label = note.find(f"{TEXT}note-body"), _citation(note)
            own = [] if body is None else [block for block in self.blocks(body) if block.html]
            if own and own[0].tag == "p":
                own[0] = item(f"{label}.", 0, own[0].html)
            blocks += own
            at += 1
        return blocks

    def _inline(self, element: "_Element", bits: int = 0) -> Runs:
        runs: Runs = []
        self._read(element, runs, bits)
        return runs

    def _read(self, element: "_Element", runs: Runs, bits: int) -> None:
        _append(runs, element.text, bits)
        for child in element:
            self._read_child(child, runs, bits)
            _append(runs, child.tail, bits)

    def _read_child(self, child: "_Element", runs: Runs, bits: int) -> None:
        tag = child.tag
        if tag in _LEFT_OUT or not local(child):
            return
        if tag == f"{TEXT}s":
            runs.append((" " * min(whole(child.get(f"{TEXT}c"), 1), _MOST_BLANKS), bits))
        elif tag == f"{TEXT}tab":
            runs.append(("\t", bits))
        elif tag == f"{TEXT}line-break":
            runs.append(("\n", bits))
        elif tag == f"{TEXT}note":
            self._notes.append(child)
            runs.append((_citation(child), RAISED))
        elif tag == f"{TEXT}span":
            look = self._looks.look("text", child.get(f"{TEXT}style-name"))
            if not look.is_hidden:
                self._read(child, runs, bits | look.bits)
        elif tag.startswith(DRAW) and tag != f"{DRAW}a":
            formula = self._formula(child)
            if formula:
                runs.append((formula, MARKUP))
            else:
                self._boxes += _texts(child)
        else:
            self._read(child, runs, bits)

    def _formula(self, frame: "_Element") -> str:
        """Return the formula that a frame shows, "" if it shows something else: it is a document in the archive."""
        shown = frame.find(f"{DRAW}object")
        if shown is None:
            return ""
        place = shown.get(_XLINK, "").removeprefix("./").strip("/")
        root = shown[0] if len(shown) and local(shown[0]) == "math" else _part(self._archive, f"{place}/content.xml")
        return "" if root is None or local(root) != "math" else mathml(root)

    def _drawing(self, element: "_Element") -> Iterator[Block]:
        formula = self._formula(element)
        if formula:
            yield paragraph(formula)
        for box in _texts(element):
            yield from self.blocks(box)

    # --- presentations

    def page(self, page: "_Element") -> str:
        """Return the HTML of a slide, "" of one that is hidden."""
        style = self._looks.element("drawing-page", page.get(f"{DRAW}style-name"))
        stated = None if style is None else style.find(f"{STYLE}drawing-page-properties")
        if stated is not None and stated.get(f"{SHOWS}visibility") == "hidden":
            return ""
        titles, rest = list[Block](), list[Block]()
        for shape in _shapes(page):
            kind = shape.get(f"{SHOWS}class", "")
            if kind in _FOOT or shape.get(f"{SHOWS}placeholder") == "true":
                continue
            blocks = [block for block in self._drawing(shape) if block.html]
            if kind == "title":
                titles += [heading(2, " ".join(block.html.replace("<br>", " ") for block in blocks))]
            else:
                rest += blocks
        notes = page.find(f"{SHOWS}notes")
        for shape in () if notes is None else _shapes(notes):
            if shape.get(f"{SHOWS}class") == "notes" and shape.get(f"{SHOWS}placeholder") != "true":
                rest += self._drawing(shape)
        return write([*titles, *rest])

    # --- sheets

    def sheets(self, body: "_Element") -> list[Block]:
        """Return a heading and a table for each sheet with values."""
        blocks = list[Block]()
        for sheet in body.findall(f"{TABLE}table"):
            style = self._looks.element("table", sheet.get(f"{TABLE}style-name"))
            stated = None if style is None else style.find(f"{STYLE}table-properties")
            if stated is not None and stated.get(f"{TABLE}display") == "false":
                continue
            rows = self._values(sheet)
            if rows:
                blocks += [heading(2, escaped(sheet.get(f"{TABLE}name", ""))), plain_table(rows)]
        return blocks

    def _values(self, sheet: "_Element") -> list[list[str]]:
        hidden, rows, used = _hidden_columns(sheet), list[dict[int, str]](), set[int]()
        for row, _ in _rows(sheet):
            if row.get(f"{TABLE}visibility") in _HIDDEN:
                continue
            values = dict(self._row(row, hidden))
            if values:
                times = whole(row.get(f"{TABLE}number-rows-repeated"), 1)
                self._count(len(values) * (times - 1))
                rows += [values] * times
                used.update(values)
        columns = sorted(used)
        return [[row.get(at, "") for at in columns if at <= max(row)] for row in rows]

    def _row(self, row: "_Element", hidden: set[int]) -> Iterator[tuple[int, str]]:
        at = 0
        for cell in row:
            if local(cell) not in ("table-cell", "covered-table-cell"):
                continue
            times = whole(cell.get(f"{TABLE}number-columns-repeated"), 1)
            lines = ["".join(text for text, _ in self._inline(line)) for line in cell.findall(f"{TEXT}p")]
            text = "\n".join(lines).strip()
            if text:
                self._count(times)
                yield from ((nth, text) for nth in range(at, at + times) if nth not in hidden)
            at += times

    def _count(self, cells: int) -> None:
        self._cells += cells
        if self._cells > MOST_CELLS:
            raise FileRefused(TOO_LARGE)


def _append(runs: Runs, text: str | None, bits: int) -> None:
    if text:
        before = runs[-1][0][-1:] if runs else " "
        words = " ".join(text.split())
        front = " " if text[0].isspace() and not before.isspace() else ""
        back = " " if words and text[-1].isspace() else ""
        if front or words:
            runs.append((f"{front}{words}{back}", bits))


def _citation(note: "_Element") -> str:
    found = note.find(f"{TEXT}note-citation")
    return "" if found is None else (found.get(f"{TEXT}label") or "".join(found.itertext())).strip()


def _list_style(looks: Looks, element: "_Element") -> str:
    """Return the style of a list that names none: that of its first paragraph's."""
    first = next(element.iter(f"{TEXT}p", f"{TEXT}h"), None)
    return "" if first is None else looks.look("paragraph", first.get(f"{TEXT}style-name")).list_name


def _texts(drawing: "_Element") -> list["_Element"]:
    """Return what of a drawing has paragraphs: boxes and shapes, the table of a frame within it."""
    found, stack = list["_Element"](), [drawing]
    while stack:
        element = stack.pop()
        if any(each.tag in (f"{TEXT}p", f"{TEXT}h", f"{TEXT}list", f"{TABLE}table") for each in element):
            found.append(element)
        elif local(element) not in ("object", "object-ole", "event-listeners", "glue-point"):
            stack += reversed([each for each in element if each.tag not in _LEFT_OUT])
    return found


def _shapes(page: "_Element") -> Iterator["_Element"]:
    for child in page:
        if child.tag == f"{DRAW}g":
            yield from _shapes(child)
        elif isinstance(child.tag, str) and child.tag.startswith(DRAW):
            yield child


def _rows(parent: "_Element", *, is_header: bool = False) -> Iterator[tuple["_Element", bool]]:
    """Yield the rows of a table, and whether each is of its head."""
    for child in parent:
        name = local(child)
        if name == "table-row":
            yield child, is_header
        elif name in ("table-header-rows", "table-rows", "table-row-group") and child.get(f"{TABLE}display") != "false":
            yield from _rows(child, is_header=name == "table-header-rows")


def _hidden_columns(sheet: "_Element") -> set[int]:
    at, hidden = 0, set[int]()
    for column in sheet.iter(f"{TABLE}table-column"):
        times = min(whole(column.get(f"{TABLE}number-columns-repeated"), 1), _MOST_COLUMNS)
        if column.get(f"{TABLE}visibility") in _HIDDEN:
            hidden.update(range(at, at + times))
        at = min(at + times, _MOST_COLUMNS)
    return hidden
