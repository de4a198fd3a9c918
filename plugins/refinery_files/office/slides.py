"""Reads the text of slides (ECMA-376, part 1, chapters 19 and 21): the title, what is below, notes behind.

A slide is a page. Hidden slides have no text, nor have dates, numbers and feet of slides; text of drawings by SmartArt
is read, charts are not.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline_tasks.text.page.file_text import TOO_LARGE, FileRefused, FileText
from refinery_files.markup import (
    EMPHASIS,
    LOWERED,
    MARKUP,
    RAISED,
    STRONG,
    Block,
    Runs,
    heading,
    inline,
    item,
    paragraph,
    table,
    write,
)
from refinery_files.office.formulas import M, math
from refinery_files.office.labels import Counts, numeral
from refinery_files.office.package import Package, Relation, properties
from refinery_files.xml import local, whole

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_SLIDES = 5_000

P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_D = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MAIN = "ppt/presentation.xml"
_TITLES, _LEFT_OUT = ("title", "ctrTitle"), ("dt", "ftr", "sldNum", "hdr", "sldImg")
_LISTED = ("", "body", "obj", "half", "quarter", "tbl")
_FORMS = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
}
_NUMBERED = re.compile(r"(\w+?)(ParenBoth|ParenR|Period|Plain)")
_ON = ("1", "true")
_BREAK = f"{A}br"


def read_slides(package: Package, name: str = _MAIN) -> FileText:
    """Return the text of a presentation whose main part has this name."""
    root = package.main(name)
    relations = package.relations(name)
    places = [
        relations[each.get(f"{_R}id", "")].target
        for each in root.iterfind(f"{P}sldIdLst/{P}sldId")
        if each.get(f"{_R}id") in relations
    ]
    if package.archive.is_cut and not places:
        found = [each for each in package.archive.names if re.fullmatch(r"ppt/slides/slide\d+\.xml", each)]
        places = sorted(found, key=lambda place: int("".join(filter(str.isdigit, place))))
    if len(places) > MOST_SLIDES:
        raise FileRefused(TOO_LARGE)
    slides = [_slide(package, place) for place in places]
    told = properties(package)
    return FileText(
        tuple(write(blocks) for blocks, _ in slides),
        is_paged=True,
        unread=tuple(nth for nth, (blocks, has_pictures) in enumerate(slides, 1) if has_pictures and not blocks),
        title=told.title,
        language=told.language,
        published=told.published,
        is_cut=package.archive.is_cut,
    )


def _slide(package: Package, name: str) -> tuple[list[Block], bool]:
    """Return the blocks of a slide, and whether it has pictures."""
    root = package.part(name)
    if root is None or root.get("show") in ("0", "false"):
        return [], False
    relations = package.relations(name)
    shapes = list(_shapes(root))
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    rest = [shape for shape in shapes if _placeholder(shape) not in (*_TITLES, *_LEFT_OUT)]
    blocks = [heading(2, html) for shape in titles if (html := inline(_joined(shape), plain=True))]
    for shape in rest:
        blocks += _shape(shape, package, relations)
    for each in relations.values():
        if each.kind == "notesSlide":
            blocks += _notes(package, each.target)
    has_pictures = root.find(f".//{P}pic") is not None or root.find(f".//{A}blip") is not None
    return [block for block in blocks if block.html], has_pictures


def _shapes(parent: "_Element") -> Iterator["_Element"]:
    """Yield shapes, frames of tables and drawings in their order, those in groups in the group's place."""
    for child in parent:
        name = local(child)
        if name in ("sp", "graphicFrame"):
            if not _is_hidden(child):
                yield child
        elif name == "AlternateContent":
            yield from _shapes(child[0] if len(child) else child)
        elif name in ("cSld", "spTree", "grpSp", "Choice", "Fallback") and not _is_hidden(child):
            yield from _shapes(child)


def _is_hidden(shape: "_Element") -> bool:
    told = next((each for part in shape for each in part if local(each) == "cNvPr"), None)
    return told is not None and told.get("hidden") in _ON


def _placeholder(shape: "_Element") -> str | None:
    """Return the type of a placeholder, "" of one without a type, None of another shape."""
    found = shape.find(f"{P}nvSpPr/{P}nvPr/{P}ph")
    return None if found is None else found.get("type", "")


def _shape(shape: "_Element", package: Package, relations: dict[str, Relation]) -> list[Block]:
    if local(shape) == "sp":
        return _paragraphs(shape.find(f"{P}txBody"), is_listed=_placeholder(shape) in _LISTED)
    rows = shape.find(f"{A}graphic/{A}graphicData/{A}tbl")
    if rows is not None:
        return _table(rows)
    named = shape.find(f"{A}graphic/{A}graphicData/{_D}relIds")
    relation = None if named is None else relations.get(named.get(f"{_R}dm", ""))
    return [] if relation is None else _diagram(package, relation.target)


def _diagram(package: Package, name: str) -> list[Block]:
    """Return the texts of a drawing by SmartArt as items."""
    root = package.part(name)
    blocks = list[Block]()
    for text in () if root is None else root.iterfind(f"{_D}ptLst/{_D}pt/{_D}t"):
        html = inline(
            [
                run
                for nth, line in enumerate(text.findall(f"{A}p"))
                for run in [*([("\n", 0)] if nth else []), *_runs(line)]
            ]
        )
        blocks.append(item("\u2022", 0, html))
    return blocks


def _table(rows: "_Element") -> list[Block]:
    stated = rows.find(f"{A}tblPr")
    cells = [
        [
            [] if cell.get("hMerge") in _ON or cell.get("vMerge") in _ON else _paragraphs(cell.find(f"{A}txBody"))
            for cell in row.iterfind(f"{A}tc")
        ]
        for row in rows.iterfind(f"{A}tr")
    ]
    return table(cells, headers=1 if stated is not None and stated.get("firstRow") in _ON else 0)


def _notes(package: Package, name: str) -> list[Block]:
    root = package.part(name)
    if root is None:
        return []
    bodies = [shape for shape in _shapes(root) if _placeholder(shape) == "body"]
    return [block for shape in bodies for block in _paragraphs(shape.find(f"{P}txBody"))]


def _paragraphs(body: "_Element | None", *, is_listed: bool = False) -> list[Block]:
    """Return the paragraphs of a shape: items where they have a mark, as those of a body have if there are several."""
    if body is None:
        return []
    lines = [(line, inline(_runs(line))) for line in body.iterfind(f"{A}p")]
    is_listed = is_listed and sum(1 for _, html in lines if html) > 1
    counts, blocks = Counts(), list[Block]()
    for line, html in lines:
        if not html:
            continue
        stated = line.find(f"{A}pPr")
        level = _level(stated)
        label = _label(stated, counts, level, is_listed=is_listed)
        blocks.append(item(label, level, html) if label else paragraph(html))
    return blocks


def _level(stated: "_Element | None") -> int:
    return 0 if stated is None else whole(stated.get("lvl"))


def _label(stated: "_Element | None", counts: Counts, level: int, *, is_listed: bool) -> str:
    mark = (
        None
        if stated is None
        else next((each for each in stated if local(each) in ("buNone", "buChar", "buBlip", "buAutoNum")), None)
    )
    if mark is None:
        return "\u2022" if is_listed else ""
    kind = local(mark)
    if kind == "buNone":
        return ""
    if kind != "buAutoNum":
        return "\u2022"
    counts.count(level, {level: whole(mark.get("startAt"), 1)})
    found = _NUMBERED.fullmatch(mark.get("type", ""))
    form, frame = (found[1], found[2]) if found else ("arabic", "Period")
    text = numeral(counts.number(level), _FORMS.get(form, "decimal"))
    return {"ParenBoth": f"({text})", "ParenR": f"{text})", "Plain": text}.get(frame, f"{text}.")


def _joined(shape: "_Element") -> Runs:
    """Return the lines of a title as one."""
    runs: Runs = []
    for line in shape.iterfind(f"{P}txBody/{A}p"):
        runs += [*([(" ", 0)] if runs else []), *((text.replace("\n", " "), bits) for text, bits in _runs(line))]
    return runs


def _runs(line: "_Element") -> Runs:
    runs: Runs = []
    for child in line:
        name = local(child)
        if name in ("r", "fld"):
            runs.append((child.findtext(f"{A}t") or "", _bits(child.find(f"{A}rPr"))))
        elif child.tag == _BREAK:
            runs.append(("\n", 0))
        elif name in ("m", "AlternateContent"):
            runs += [(math(each), MARKUP) for each in _formulas(child)]
    return [(text.replace("\x0b", "\n"), bits) for text, bits in runs if text]


def _formulas(element: "_Element") -> Iterator["_Element"]:
    part = element[0] if local(element) == "AlternateContent" and len(element) else element
    yield from part.iter(f"{M}oMath")


def _bits(stated: "_Element | None") -> int:
    if stated is None:
        return 0
    bits = (STRONG if stated.get("b") in _ON else 0) | (EMPHASIS if stated.get("i") in _ON else 0)
    height = stated.get("baseline", "0").rstrip("%")
    if height.lstrip("-").isdigit() and int(height):
        bits |= LOWERED if height.startswith("-") else RAISED
    return bits
