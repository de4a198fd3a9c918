"""Reads the text of Word files (ECMA-376, part 1, chapter 17).

Insertions that are tracked are kept, deletions are not; codes of fields, hidden text, comments, heads and feet of
pages and tables of contents are left out. Text boxes are behind the paragraph that they are anchored in, notes behind
the text.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import FileText
from refinery_files.markup import (
    EMPHASIS,
    FIXED,
    LOWERED,
    MARKUP,
    RAISED,
    STRONG,
    Block,
    Runs,
    code,
    escaped,
    heading,
    inline,
    is_fixed,
    is_fixed_font,
    item,
    paragraph,
    prose,
    table,
    write,
)
from refinery_files.office.formulas import M, math
from refinery_files.office.labels import numeral
from refinery_files.office.package import Package, properties
from refinery_files.office.signs import symbol
from refinery_files.office.styles import BODY_LEVEL, VAL, Lists, Style, Styles, W, font_of, is_on, value, whole
from refinery_files.xml import local

if TYPE_CHECKING:
    from lxml.etree import _Element

_CONTENT = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAIN = "word/document.xml"
_CONTENTS = "Table of Contents"
_NO_LIST = "0"
_THROUGH = frozenset(
    W + name
    for name in (
        "hyperlink",
        "ins",
        "moveTo",
        "smartTag",
        "customXml",
        "fldSimple",
        "sdtContent",
        "dir",
        "bdo",
        "rubyBase",
    )
)
_BREAKS = {f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}cr": "\n", f"{W}noBreakHyphen": "\u2011"}
_CODE = re.compile("[0-9A-Fa-f]{2,4}")
_KINDS = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}


def read_word(package: Package, name: str = _MAIN) -> FileText:
    """Return the text of a Word file whose main part has this name."""
    root = package.main(name)
    reader = _Reader(package, name, root)
    body = root.find(f"{W}body")
    blocks = prose([*reader.blocks(root if body is None else body), *reader.notes()])
    found = properties(package)
    return FileText(
        (write(blocks),),
        title=found.title,
        language=found.language or reader.language,
        published=found.published,
        is_cut=package.archive.is_cut,
    )


class _Field:
    """A field: its code, and whether what follows is its result."""

    def __init__(self) -> None:
        self.code = ""
        self.is_result = False

    @property
    def is_shown(self) -> bool:
        return self.is_result and not self.code.lstrip().upper().startswith("TOC")


class _Reader:
    """Reads the stories of one file, which share styles, counts of lists and notes."""

    def __init__(self, package: Package, name: str, root: "_Element") -> None:
        kinds = {each.kind: each.target for each in package.relations(name).values()}
        styles = package.part(kinds.get("styles", "word/styles.xml"))
        self._styles = Styles(styles)
        self._lists = Lists(package.part(kinds.get("numbering", "word/numbering.xml")), self._styles)
        self._package, self._kinds = package, kinds
        self._default = _default_style(styles)
        self.language = None if styles is None else _language(styles)
        self._noted: dict[str, list[str]] = {"footnotes": [], "endnotes": []}
        self._fields: list[_Field] = []
        self._has_fields = _is_balanced(root)
        self._boxes: list[_Element] = []
        self._kept: tuple[Runs, Style, str] | None = None

    # --- blocks

    def blocks(self, parent: "_Element") -> Iterator[Block]:
        """Yield the blocks of a body, a cell, a note or a text box."""
        for child in parent:
            tag = child.tag
            if tag == f"{W}p":
                yield from self._paragraph(child)
            elif tag == f"{W}tbl":
                yield from self._table(child)
            elif tag == f"{W}sdt":
                if value(child, "sdtPr/docPartObj/docPartGallery") != _CONTENTS:
                    for content in child.findall(f"{W}sdtContent"):
                        yield from self.blocks(content)
            elif tag in _THROUGH:
                yield from self.blocks(child)
            elif tag == f"{_CONTENT}AlternateContent":
                yield from self.blocks(_choice(child))
            elif tag == f"{M}oMathPara":
                yield paragraph(math(child, displayed=True))

    def _paragraph(self, element: "_Element") -> Iterator[Block]:
        stated = element.find(f"{W}pPr")
        style = self._styles[value(stated, "pStyle") or self._default]
        runs: Runs = []
        self._read_runs(element, runs, style)
        boxes, self._boxes = self._boxes, []
        mark = None if stated is None else stated.find(f"{W}rPr")
        if mark is not None and mark.find(f"{W}del") is not None:  # the next one goes on with it
            self._kept = (runs, style, "")
        elif not style.is_contents:
            if self._kept is not None:
                runs = self._kept[0] + runs
                self._kept = None
            yield from self._written(stated, style, runs)
        for box in boxes:
            yield from self.blocks(box)

    def _written(self, stated: "_Element | None", style: Style, runs: Runs) -> Iterator[Block]:
        level = whole(value(stated, "outlineLvl"))
        rank = style.heading if level is None or style.heading else (level + 1 if level < BODY_LEVEL else 0)
        by_font = is_fixed(runs)
        if (style.is_code or by_font) and not rank and not style.list_id and value(stated, "numPr/numId") is None:
            yield code(runs, by_font=not style.is_code)
            return
        html = inline(runs, plain=rank > 0)
        if not html:
            return
        label = self._label(stated, style)
        if rank:
            yield heading(rank, f"{escaped(label)} {html}" if label and label != "\u2022" else html)
        else:
            yield item(label, self._level(stated, style), html)

    def _label(self, stated: "_Element | None", style: Style) -> str:
        list_id = value(stated, "numPr/numId") or style.list_id
        if not list_id or list_id == _NO_LIST:
            return ""
        return self._lists.label(list_id, self._level(stated, style)).strip()

    def _level(self, stated: "_Element | None", style: Style) -> int:
        level = whole(value(stated, "numPr/ilvl"))
        return (style.list_level or 0) if level is None else level

    def _table(self, element: "_Element") -> Iterator[Block]:
        rows, headers = list[list[list[Block]]](), 0
        for row in _rows(element):
            stated = row.find(f"{W}trPr")
            if stated is not None and (stated.find(f"{W}del") is not None or is_on(stated, "hidden")):
                continue
            cells: list[list[Block]] = [[] for _ in range(min(whole(value(stated, "gridBefore")) or 0, 63))]
            for cell in _cells(row):
                properties = cell.find(f"{W}tcPr")
                merge = None if properties is None else properties.find(f"{W}vMerge")
                is_more = merge is not None and merge.get(VAL, "continue") == "continue"
                blocks = list(self.blocks(cell))
                cells.append([] if is_more else blocks)
                cells += [[] for _ in range(min(whole(value(properties, "gridSpan")) or 1, 63) - 1)]
            if is_on(stated, "tblHeader") and headers == len(rows):
                headers += 1
            rows.append(cells)
        yield from table(rows, headers)

    def notes(self) -> list[Block]:
        """Return the notes that the text refers to, in the order in which it does."""
        blocks = list[Block]()
        for kind, noted in self._noted.items():
            root = self._package.part(self._kinds.get(kind, f"word/{kind}.xml")) if noted else None
            found = {} if root is None else {note.get(f"{W}id"): note for note in root}
            at = 0
            while at < len(noted):  # a note may refer to others
                note, label = found.get(noted[at]), _note_label(kind, at + 1)
                at += 1
                own = [] if note is None else [block for block in self.blocks(note) if block.html]
                if own and own[0].tag == "p":
                    own[0] = item(f"{label}.", 0, own[0].html)
                blocks += own
        return blocks

    # --- runs

    def _read_runs(self, parent: "_Element", runs: Runs, style: Style) -> None:
        for child in parent:
            tag = child.tag
            if tag == f"{W}r":
                self._read_run(child, runs, style)
            elif tag in _THROUGH:
                self._read_runs(child, runs, style)
            elif tag == f"{W}sdt":
                for content in child.findall(f"{W}sdtContent"):
                    self._read_runs(content, runs, style)
            elif tag == f"{_CONTENT}AlternateContent":
                self._read_runs(_choice(child), runs, style)
            elif tag == f"{M}oMath":
                self._append(runs, math(child), MARKUP)
            elif tag == f"{M}oMathPara":
                for formula in child.findall(f"{M}oMath"):
                    self._append(runs, math(formula, displayed=True), MARKUP)

    def _read_run(self, run: "_Element", runs: Runs, style: Style) -> None:
        stated = run.find(f"{W}rPr")
        own = self._styles[value(stated, "rStyle")]
        hidden = (is_on(stated, "vanish"), own.is_hidden, style.is_hidden)
        if next((each for each in hidden if each is not None), False):
            self._read_fields(run)
            return
        font = font_of(stated) or own.font or style.font
        bits = _bits(stated, own) | (FIXED if font and is_fixed_font(font) else 0)
        for child in run:
            self._read_content(child, runs, bits, font, style)

    def _read_content(self, child: "_Element", runs: Runs, bits: int, font: str | None, style: Style) -> None:
        tag = child.tag
        if tag == f"{W}t":
            self._append(runs, _in_font(child.text or "", font), bits)
        elif tag in (f"{W}fldChar", f"{W}instrText"):
            self._read_field(child)
        elif tag in (f"{W}footnoteReference", f"{W}endnoteReference"):
            self._refer(_KINDS[local(child)], child, runs)
        elif tag == f"{W}ruby":
            for base in child.findall(f"{W}rubyBase"):
                self._read_runs(base, runs, style)
        elif tag in (f"{W}drawing", f"{W}pict"):
            self._boxes += _boxes(child)
        elif tag == f"{_CONTENT}AlternateContent":
            for part in _choice(child):
                self._read_content(part, runs, bits, font, style)
        else:
            self._append(runs, _sign(child), bits)

    def _append(self, runs: Runs, text: str, bits: int) -> None:
        if text and all(each.is_shown for each in self._fields):
            runs.append((text, bits))

    def _refer(self, kind: str, child: "_Element", runs: Runs) -> None:
        """Write the number of a note; a mark of the author's own is a run behind it."""
        noted, name = self._noted[kind], child.get(f"{W}id", "")
        if not all(each.is_shown for each in self._fields):
            return
        noted.append(name)
        if child.get(f"{W}customMarkFollows") not in ("1", "true", "on"):
            self._append(runs, _note_label(kind, len(noted)), RAISED)

    def _read_fields(self, run: "_Element") -> None:
        for child in run:
            if child.tag in (f"{W}fldChar", f"{W}instrText"):
                self._read_field(child)

    def _read_field(self, element: "_Element") -> None:
        if not self._has_fields:
            return
        if element.tag == f"{W}instrText":
            if self._fields and not self._fields[-1].is_result:
                self._fields[-1].code += element.text or ""
            return
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._fields[-1].is_result = True
        elif kind == "end" and self._fields:
            self._fields.pop()


def _is_balanced(root: "_Element") -> bool:
    """Return whether each field that begins ends: others would hide the text up to the end."""
    kinds = [each.get(f"{W}fldCharType") for each in root.iter(f"{W}fldChar")]
    return kinds.count("begin") == kinds.count("end")


def _bits(stated: "_Element | None", style: Style) -> int:
    strong, emphasis = is_on(stated, "b"), is_on(stated, "i")
    bits = STRONG if (style.is_strong if strong is None else strong) else 0
    bits |= EMPHASIS if (style.is_emphasis if emphasis is None else emphasis) else 0
    height = value(stated, "vertAlign")
    return bits | (RAISED if height == "superscript" else LOWERED if height == "subscript" else 0)


def _in_font(text: str, font: str | None) -> str:
    return "".join(symbol(sign, font) for sign in text) if font in ("Symbol", "Wingdings") else text


def _sign(element: "_Element") -> str:
    """Return what an element of a run stands for, "" if that is no text."""
    tag = element.tag
    if tag == f"{W}br":
        return " " if element.get(f"{W}type") in ("page", "column") else "\n"
    if tag == f"{W}sym":
        code = element.get(f"{W}char", "")
        return symbol(chr(int(code, 16)), element.get(f"{W}font")) if _CODE.fullmatch(code) else ""
    return _BREAKS.get(tag, "")


def _choice(alternatives: "_Element") -> "_Element":
    """Return the first of alternatives that has text, else the last: what older programs read stands behind the new."""
    for each in alternatives:
        if next(each.iter(f"{W}t"), None) is not None:
            return each
    return alternatives[-1] if len(alternatives) else alternatives


def _boxes(drawing: "_Element") -> list["_Element"]:
    """Return the text boxes of a drawing, but those that are in another, or repeated for older programs."""
    found, stack = list["_Element"](), [drawing]
    while stack:
        element = stack.pop()
        if element.tag == f"{W}txbxContent":
            found.append(element)
        elif element.tag == f"{_CONTENT}AlternateContent":
            stack.append(_choice(element))
        else:
            stack += reversed(element)
    return found


def _rows(element: "_Element") -> Iterator["_Element"]:
    for child in element:
        if child.tag == f"{W}tr":
            yield child
        elif child.tag in _THROUGH or child.tag == f"{W}sdt":
            yield from _rows(child)


def _cells(row: "_Element") -> Iterator["_Element"]:
    for child in row:
        if child.tag == f"{W}tc":
            yield child
        elif child.tag in _THROUGH or child.tag == f"{W}sdt":
            yield from _cells(child)


def _note_label(kind: str, number: int) -> str:
    return str(number) if kind == "footnotes" else numeral(number, "lowerRoman")


def _default_style(styles: "_Element | None") -> str:
    for each in () if styles is None else styles.findall(f"{W}style"):
        if each.get(f"{W}type") == "paragraph" and each.get(f"{W}default") in ("1", "true"):
            return str(each.get(f"{W}styleId", ""))
    return ""


def _language(styles: "_Element") -> str | None:
    found = styles.find(f"{W}docDefaults/{W}rPrDefault/{W}rPr/{W}lang")
    return None if found is None else found.get(VAL)
