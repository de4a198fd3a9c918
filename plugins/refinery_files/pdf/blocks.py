"""Lines of a page as blocks: paragraphs, headings, items of lists, code, tables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import median

from refinery_files.pdf.lines import BULLETS, Line
from refinery_files.pdf.structure import Element

# a distance of baselines is within a paragraph up to this share of its column's most frequent one
_LEADING = 1.3
# the most that baselines of a paragraph are apart, in sizes
_FAR = 2.2
# in sizes
_INDENT = 0.6
_ALIGNED = 0.35
# share of its column's width that a line has at least whose sentence goes on in the next, though it has room left
_LONG = 0.75

_BULLET = re.compile(rf"(?:[{BULLETS}]|[-\u2013\u2014*](?= ))\s*")
_NUMBER = re.compile(r"(?:\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)]|\(\d{1,3}\)) +(?=\S)")
_WORD = re.compile(r"\S+")
SENTENCE_ENDS = re.compile("[.!?:;\u3002\uff01\uff1f\u061f\u0964\u2026][\"'\u201d\u2019\u00bb)\\]]*$")
_UNSPACED = re.compile("[\u2e80-\uabff\uf900-\ufaff\uff00-\uffef]")


@dataclass(slots=True)
class Block:
    """A block of a page: its kind (`p`, `h`, `li`, `pre`, `table`), lines or rows, and box."""

    kind: str
    lines: list[Line]
    rows: list[list[str]] = field(default_factory=list)
    begun: list[bool] = field(default_factory=list)
    """Of rows that are declared, whether they began on a page before."""
    is_numbered: bool = False
    column: tuple[float, float] = (0.0, 0.0)
    """Left and right margin of its column."""
    text: str = ""
    level: int = 0
    is_rest: bool = False
    """Whether the file declares that it began on a page before."""
    is_open: bool = False
    """Whether the file declares that it goes on on the next page."""

    @property
    def left(self) -> float:
        """Return the left side of its box."""
        return min(line.left for line in self.lines)

    @property
    def right(self) -> float:
        """Return the right side of its box."""
        return max(line.right for line in self.lines)

    @property
    def top(self) -> float:
        """Return the upper side of its box."""
        return min(line.base - line.size for line in self.lines)

    @property
    def bottom(self) -> float:
        """Return the lower side of its box."""
        return max(line.base for line in self.lines)

    @property
    def size(self) -> float:
        """Return the size of its first line's font."""
        return self.lines[0].size


@dataclass(frozen=True, slots=True)
class Column:
    """Lines that stand below each other, with their margins and most frequent distance."""

    lines: list[Line]
    left: float
    right: float
    leading: float


def columns_of(lines: Sequence[Line]) -> list[Column]:
    """Return stretches of lines of which each stands below the one before it."""
    stretches: list[list[Line]] = []
    for line in lines:
        before = stretches[-1][-1] if stretches else None
        if before is not None and line.base > before.base - 0.5 * line.size and _overlap(stretches[-1], line):
            stretches[-1].append(line)
        else:
            stretches.append([line])
    return [_column(stretch) for stretch in stretches]


def _overlap(stretch: list[Line], line: Line) -> bool:
    """Return whether a line stands below or beside the last lines of a stretch, and in its width."""
    recent = stretch[-3:]
    left, right = min(other.left for other in recent), max(other.right for other in recent)
    if abs(line.base - stretch[-1].base) < 0.5 * line.size:
        return True
    return min(right, line.right) - max(left, line.left) > 0


def _column(lines: list[Line]) -> Column:
    distances = [after.base - before.base for before, after in pairwise(lines)]
    near = [one for one, line in zip(distances, lines[1:], strict=False) if 0.5 * line.size < one < _FAR * line.size]
    leading = _most_frequent(near, 0.5) if near else 1.2 * lines[0].size
    return Column(lines, _most_frequent([line.left for line in lines], 1.0), _margin(lines), leading)


def _margin(lines: list[Line]) -> float:
    """Return the right margin of lines: where most long ones end."""
    rights = sorted(line.right for line in lines)
    frequent = _most_frequent(rights, 1.0)
    count = sum(abs(right - frequent) < 1.5 for right in rights)
    return frequent if count > 2 and count * 4 >= len(rights) else rights[-1 - len(rights) // 20]


def _most_frequent(values: list[float], step: float) -> float:
    counts: dict[int, int] = {}
    for value in values:
        at = round(value / step)
        counts[at] = counts.get(at, 0) + 2
        counts[at - 1] = counts.get(at - 1, 0) + 1
        counts[at + 1] = counts.get(at + 1, 0) + 1
    best = max(counts, key=lambda at: (counts[at], -at))
    return median(value for value in values if abs(value / step - best) <= 1.5)


def blocks_of(lines: Sequence[Line], body: float, has_code: bool) -> list[Block]:
    """Return the blocks of lines in reading order; `body` is the size of the document's running text."""
    return [block for column in columns_of(lines) for block in _blocks_in(column, body, has_code)]


def _blocks_in(column: Column, body: float, has_code: bool) -> list[Block]:
    blocks: list[Block] = []
    for at, line in enumerate(column.lines):
        kind = _kind(line, body, has_code)
        marker = None if kind == "pre" else marker_of(line.text)
        block = blocks[-1] if blocks else None
        if marker == "number" and block is not None and _is_within(block, line, column):
            marker = None
        if marker and kind != "h":
            kind = "li"
        if block is not None and _continues(block, line, kind, column, at):
            block.lines.append(line)
            continue
        blocks.append(Block(kind, [line], is_numbered=marker == "number", column=(column.left, column.right)))
    return blocks


def tagged_blocks(lines: Sequence[Line], elements: Sequence[Element], body: float, has_code: bool) -> list[Block]:
    """Return the blocks of lines by the elements that they are in; those in none by what stands where."""
    blocks: list[Block] = []
    for _, run in groupby(lines, lambda line: _group(line, elements)):
        group = list(run)
        element = elements[group[0].element] if group[0].element >= 0 else None
        if element is None:
            blocks += blocks_of(group, body, has_code)
        elif element.kind == "cell":
            blocks.append(_tagged_table(group, elements))
        else:
            found = _paragraphs(group, body, has_code) if element.kind == "p" else [_declared(element, group)]
            found[0].is_rest, found[-1].is_open = not element.begins, not element.ends
            blocks += found
    return blocks


def _declared(element: Element, lines: list[Line]) -> Block:
    column = min(line.left for line in lines), max(line.right for line in lines)
    is_numbered = element.kind == "li" and is_labeled(lines)
    return Block(element.kind, lines, is_numbered=is_numbered, column=column, level=element.level)


def _group(line: Line, elements: Sequence[Element]) -> tuple[int, int]:
    """Return what lines of one block share: their table, or their element."""
    table = elements[line.element].table if line.element >= 0 else -1
    return table, line.element if table < 0 else 0


def _paragraphs(lines: list[Line], body: float, has_code: bool) -> list[Block]:
    """Return the blocks of one declared paragraph: one, unless white or other fonts in it say that it is none."""
    kinds = {_kind(line, body, has_code) for line in lines}
    apart = any(abs(after.base - line.base) > _FAR * line.size for line, after in pairwise(lines))
    columns = columns_of(lines)
    if (len(kinds) > 1 and "p" in kinds and "h" in kinds and lines[0].size > 1.08 * body) or (
        apart and len(columns) == 1
    ):
        return blocks_of(lines, body, has_code)
    kind = kinds.pop() if len(kinds) == 1 else "p"
    marker = marker_of(lines[0].text) if kind == "p" else None
    return [
        Block(
            "li" if marker else kind,
            lines,
            is_numbered=marker == "number",
            column=(columns[-1].left, columns[-1].right),
        )
    ]


def _tagged_table(lines: list[Line], elements: Sequence[Element]) -> Block:
    cells: dict[int, list[Line]] = {}
    for line in lines:
        cells.setdefault(line.element, []).append(line)
    rows: dict[int, list[str]] = {}
    for at in sorted(cells):
        row = rows.setdefault(elements[at].row, [])
        # a cell without text, or whose text is on the page before
        row += [""] * (elements[at].column - len(row))
        row.append("\n".join(line.text for line in cells[at]))
    begun = {elements[at].row for at in cells if not elements[at].begins}
    return Block("table", lines, rows=list(rows.values()), begun=[row in begun for row in rows])


def marker_of(text: str) -> str | None:
    """Return what an item of a list begins with: `bullet`, `number`, or None."""
    if _BULLET.match(text):
        return "bullet"
    return "number" if _NUMBER.match(text) else None


def is_labeled(lines: Sequence[Line]) -> bool:
    """Return whether a declared item has a number, which may be all that a page has of it."""
    return marker_of(f"{label_of(lines)} \u2026") == "number"


def label_of(lines: Sequence[Line]) -> str:
    """Return what the label of an item is read from: its first line, and the next, as labels may stand alone."""
    return " ".join(line.text for line in lines[:2])


def unmarked(text: str) -> str:
    """Return the text of an item without its bullet."""
    found = _BULLET.match(text)
    return text[found.end() :] if found else text


def _kind(line: Line, body: float, has_code: bool) -> str:
    if line.is_mono and has_code:
        return "pre"
    if (line.size > 1.08 * body or (line.is_bold and line.size > 0.92 * body)) and any(map(str.isalpha, line.text)):
        return "h"
    return "p"


def _is_within(block: Block, line: Line, column: Column) -> bool:
    """Return whether a line that begins like a label goes on with a sentence: initials, ordinal numbers, days."""
    last = block.lines[-1]
    is_aligned = abs(line.left - last.left) < _ALIGNED * line.size
    is_text = block.kind == "p" or (block.kind == "li" and line.left > block.lines[0].left + _ALIGNED * line.size)
    return is_text and is_aligned and not SENTENCE_ENDS.search(last.text) and _is_full(column, last, line)


def _continues(block: Block, line: Line, kind: str, column: Column, at: int) -> bool:
    """Return whether a line belongs to the block before it."""
    last = block.lines[-1]
    distance = line.base - last.base
    if abs(distance) < 0.4 * max(line.size, last.size):
        return block.kind == "pre" or kind != "li"
    if "pre" in (block.kind, kind):
        return block.kind == kind and distance < 1.9 * column.leading
    if "h" in (block.kind, kind):
        alike = abs(line.size - last.size) < 0.08 * last.size and line.is_bold == last.is_bold
        return block.kind == kind and alike and distance < 1.6 * line.size
    is_far = distance > min(_LEADING * column.leading + 0.5, _FAR * line.size)
    if kind == "li" or is_far or abs(line.size - last.size) > 0.12 * last.size:
        return False
    return _is_same_paragraph(block, last, line, column, at)


def _is_same_paragraph(block: Block, last: Line, line: Line, column: Column, at: int) -> bool:
    if line.is_right_to_left:
        return _could_not_stay(column.left, last, line)
    if block.kind == "li" and line.left > block.lines[0].left + _ALIGNED * line.size:
        return True
    indent = line.left - last.left
    if block.kind == "p" and _begins(block, line, indent, column, at):
        return False
    return _is_full(column, last, line) or _is_mid_sentence(column, last, line)


def _is_mid_sentence(column: Column, last: Line, line: Line) -> bool:
    """Return whether a line goes on with the sentence of a long one, as where text is wrapped at a count of letters."""
    is_aligned = abs(line.left - last.left) < _ALIGNED * line.size
    is_long = last.right - column.left > _LONG * (column.right - column.left)
    return is_aligned and is_long and line.text[:1].islower() and not SENTENCE_ENDS.search(last.text)


def _begins(block: Block, line: Line, indent: float, column: Column, at: int) -> bool:
    """Return whether a line begins a paragraph by where it begins."""
    last = block.lines[-1]
    if indent > _INDENT * line.size and abs(last.left - column.left) < _ALIGNED * line.size:
        after = column.lines[at + 1] if at + 1 < len(column.lines) else None
        # what is centered has no first line
        if after is None or after.left < line.left - _ALIGNED * line.size or line.right > column.right - line.size:
            return True
    is_outdent = indent < -_INDENT * line.size and len(block.lines) > 1
    return is_outdent and abs(block.lines[-2].left - last.left) < _ALIGNED * line.size


def _is_full(column: Column, last: Line, line: Line) -> bool:
    """Return whether the first word of a line would not have had room at the end of the last one."""
    first = _WORD.match(line.text)
    letters = len(first[0]) if first else 1
    unspaced = _UNSPACED.match(line.text) is not None
    width = line.size if unspaced else (line.right - line.left) * letters / max(1, len(line.text))
    return column.right - last.right < width + (1.5 if unspaced else 0.6) * line.size


def _could_not_stay(margin: float, last: Line, line: Line) -> bool:
    words = line.text.split(" ", 1)
    width = (line.right - line.left) * len(words[0]) / max(1, len(line.text))
    return last.left - margin < width + line.size
