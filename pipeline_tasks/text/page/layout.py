"""Lays out a marked text: tables as rows, code as it stands, lists and headings, as plain text or light Markdown."""

import re
from typing import Literal

from pipeline_tasks.text.page.marks import (
    CELL,
    CELL_END,
    CODE,
    CODE_END,
    FILLER,
    HEADING_END,
    HEADINGS,
    TABLE_END,
    numbered,
    unmarked,
)

Output = Literal["plain", "markdown"]
OUTPUTS: tuple[Output, ...] = ("plain", "markdown")

LONG_CELL = 300
"""Characters above which a cell that has several lines is laid out as a block: tables are used for layout, too."""

_NESTED = 8  # tables in tables that are laid out
_ONE_CELL = f"{CELL}[^{CELL}{CELL_END}]*{CELL_END}"
_TABLE = re.compile(rf"{_ONE_CELL}(?:\s*{_ONE_CELL})*")
_BETWEEN_ROWS = re.compile(rf"{CELL_END}[^\S\n]*\n\s*{CELL}")
_BETWEEN_CELLS = re.compile(rf"{CELL_END}[^\S\n]*{CELL}")
_UNCLOSED = re.compile(rf"{CELL}([^{CELL}{CELL_END}\n]*)(?=[\n{CELL}]|\Z)")
_CODE = re.compile(f"{CODE}([^{CODE}{CODE_END}]*){CODE_END}")
_HEADING = re.compile(f"([{HEADINGS}])([^{HEADINGS}{HEADING_END}]*){HEADING_END}")
_INDENTED = re.compile(r"\n  ( *)(• )?")
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){2,}")
_LINES = 3  # of a cell that is laid out as a block


def lay_out(text: str, output: Output = "plain", *, structure: str = "") -> str:
    """Return a text that resiliparse extracted from a page of `marks.mark` without its marks.

    Items begin with `- ` or their number, nested ones with two spaces more. A row of a table is a line, its cells are
    parted by tabs (`output: markdown`: pipes); cells of several paragraphs are blocks. Code keeps its blanks and line
    ends between empty lines. In Markdown headings have their `#`, and code is fenced. Each line of code
    begins with `structure`, each heading with two of it.
    """
    text = numbered(text.replace(FILLER, ""))
    if CELL in text:
        text = _tables(text, output)
    parts = _CODE.split(text) if CODE in text else [text]
    laid = [_prose(parts[0], output, structure)]
    for before, code, prose in zip(parts[0::2], parts[1::2], parts[2::2], strict=False):
        indent = len(before) - len(before.rstrip(" ")) - 2
        laid += [_code(code, structure + " " * indent, output), _prose(prose, output, structure)]
    return "\n\n".join(part for part in laid if part)


def _prose(text: str, output: Output, structure: str = "") -> str:
    if output == "markdown" or structure:
        text = _HEADING.sub(lambda heading: _heading(heading, output, structure and 2 * FILLER), text)
    text = _INDENTED.sub(_dedented, f"\n{unmarked(text)}")
    return _EMPTY_LINES.sub("\n\n", text).strip("\n").rstrip().replace(FILLER, structure)


def _dedented(indent: re.Match[str]) -> str:
    """Return an indent that is two spaces less: those that the library sets lists off with."""
    return f"\n{indent[1]}- " if indent[2] else f"\n{indent[1]}"


def _heading(heading: re.Match[str], output: Output, front: str) -> str:
    words = " ".join(heading[2].split())
    level = "#" * (HEADINGS.index(heading[1]) + 1) + " " if output == "markdown" else ""
    return f"{front}{level}{words}" if words else ""


def _code(code: str, front: str, output: Output) -> str:
    lines = unmarked(code).replace("\xa0", " ").rstrip().split("\n")  # what is aligned by such spaces stays so
    while lines and not lines[0].strip():
        del lines[0]
    if lines and output == "markdown":
        fence = "````" if any("```" in line for line in lines) else "```"
        lines = [fence, *lines, fence]
    return "\n".join((front + line).rstrip() for line in lines)


def _tables(text: str, output: Output) -> str:
    if text.count(CELL) != text.count(CELL_END):
        text = _UNCLOSED.sub(rf"{CELL}\1{CELL_END}", text)
    for _ in range(_NESTED):
        text, count = _TABLE.subn(lambda table: _table(table[0], output), text)
        if not count:
            break
    return text


def _table(table: str, output: Output) -> str:
    """Return a table without its marks; layout tables, whose rows have one cell or long ones, as blocks."""
    rows = [_BETWEEN_CELLS.split(row) for row in _BETWEEN_ROWS.split(table[1:-1])]
    width = max(map(len, rows))
    lines, is_ruled = [""], False
    for row in rows:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if width == 1 or any(map(_is_block, cells)):
            lines += ["", *(f"{cell}\n" for cell in cells if cell)]
            continue
        flat = [" ".join(cell.split()) for cell in cells]
        if output == "plain":
            lines.append("\t".join(flat).rstrip("\t"))
            continue
        flat += [""] * (width - len(flat))
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in flat) + " |")
        if not is_ruled:
            lines.append("|" + " --- |" * width)
            is_ruled = True
    return "\n".join([*lines, "\n"])


def _is_block(cell: str) -> bool:
    """Return whether a cell has code, a table, or several lines and many words."""
    if CODE in cell or TABLE_END in cell:
        return True
    return len(cell) > LONG_CELL and cell.count("\n") >= _LINES - 1
