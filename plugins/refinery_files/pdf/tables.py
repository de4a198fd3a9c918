"""Tables: rows of cells that stand beside each other, in columns that rows share."""

from dataclasses import dataclass
from itertools import pairwise

from refinery_files.pdf.blocks import Block
from refinery_files.pdf.lines import Line

# lines of a cell are at most that far apart, in sizes
_LEADING = 1.6
# rows are at most that far apart, in sizes
_APART = 4.0
# the least white between columns, in sizes
_WHITE = 0.7
# a cell has no more lines: else it is a column of text
_LINES = 14
_MOST_COLUMNS = 40
_MOST_LINES = 200


@dataclass(slots=True)
class Cell:
    """Lines of one cell, from the upper to the lower one."""

    lines: list[Line]
    left: float
    right: float

    def add(self, line: Line) -> None:
        """Add a line."""
        self.lines.append(line)
        self.left, self.right = min(self.left, line.left), max(self.right, line.right)

    @property
    def text(self) -> str:
        """Return its lines as text."""
        return "\n".join(line.text for line in self.lines)


@dataclass(slots=True)
class TableRow:
    """Cells of a row, and how many lines they take."""

    cells: list[Cell]
    top: float
    bottom: float
    count: int


def runs_to_left(lines: list[Line]) -> bool:
    """Return whether most letters of lines run to the left: then the first column is the right one."""
    return sum(len(line.text) * (1 if line.is_right_to_left else -1) for line in lines) > 0


def with_tables(lines: list[Line], has_code: bool) -> list[Line | Block]:
    """Return the lines of a page in their order, and in the place of those of tables the tables."""
    found: list[Line | Block] = []
    is_to_left = runs_to_left(lines)
    at = 0
    while at < len(lines):
        rows = [] if has_code and lines[at].is_mono else _rows_from(lines, at)
        columns = _columns(rows)
        count = sum(row.count for row in rows)
        if columns:
            found.append(_table(rows, columns, lines[at : at + count], is_to_left=is_to_left))
            at += count
        else:
            found.append(lines[at])
            at += 1
    return found


def _row_from(lines: list[Line], at: int) -> TableRow:
    """Return the cells that stand beside each other from a line on."""
    first = lines[at]
    cells = [Cell([first], first.left, first.right)]
    top = bottom = first.base
    end = at + 1
    for line in lines[end : end + _MOST_LINES]:
        near = 0.5 * min(line.size, first.size)
        if _is_beside(cells[-1], line) and top - near < line.base < bottom + near:
            cells.append(Cell([line], line.left, line.right))
        elif _is_below(cells, line) and (len(cells) > 1 or not _begins_row(lines, end, line)):
            if len(cells[-1].lines) == _LINES:
                break
            cells[-1].add(line)
            bottom = max(bottom, line.base)
        else:
            break
        end += 1
    return TableRow(cells, top, bottom, end - at)


def _is_beside(cell: Cell, line: Line) -> bool:
    if line.is_right_to_left:
        return line.right < cell.left + 0.2 * line.size
    return line.left > cell.right - 0.2 * line.size


def _is_below(cells: list[Cell], line: Line) -> bool:
    """Return whether a line is the next one of a row's last cell."""
    cell, size = cells[-1], max(line.size, 1.0)
    if not 0.5 * size < line.base - cell.lines[-1].base < _LEADING * size:
        return False
    if len(cells) > 1 and not _is_beside(cells[-2], line):
        return False
    return min(cell.right, line.right) > max(cell.left, line.left)


def _begins_row(lines: list[Line], at: int, line: Line) -> bool:
    """Return whether the line behind one stands beside it: then it is no second line of a cell."""
    if at + 1 >= len(lines):
        return False
    after = lines[at + 1]
    return abs(after.base - line.base) < 0.5 * line.size and (after.left > line.right or after.right < line.left)


def _rows_from(lines: list[Line], at: int) -> list[TableRow]:
    """Return the rows of what may be a table, from a line on."""
    rows: list[TableRow] = []
    while at < len(lines):
        row = _row_from(lines, at)
        size = lines[at].size
        if rows and not 0.3 * size < row.top - rows[-1].bottom < _APART * size:
            break
        if len(row.cells) < 2 or len(row.cells) > _MOST_COLUMNS:
            break
        rows.append(row)
        at += row.count
    return rows


def _columns(rows: list[TableRow]) -> list[tuple[float, float]]:
    """Return left and right of the columns that rows share; none if they are no table."""
    if len(rows) < 2:
        return []
    most = max(len(row.cells) for row in rows)
    full = [row for row in rows if len(row.cells) == most]
    if len(full) < 2 or len(full) * 2 < len(rows):
        return []
    cells = [sorted((row.cells[column] for row in full), key=lambda cell: cell.left) for column in range(most)]
    columns = sorted((min(cell.left for cell in column), max(cell.right for cell in column)) for column in cells)
    size = full[0].cells[0].lines[0].size
    white = [after[0] - before[1] for before, after in pairwise(columns)]
    if min(white) < _WHITE * size:
        return []
    aligned = sum(map(_is_aligned, cells, [size] * most))
    if (
        len(rows) < 3
        and (most < 3 or min(white) < 2 * _WHITE * size)
        and (aligned < most or min(white) < 2 * _WHITE * size)
    ):
        return []
    return columns if aligned * 2 >= most else []


def _is_aligned(cells: list[Cell], size: float) -> bool:
    """Return whether most cells of a column share their left side, their right side or their middle."""
    sides = (
        [cell.left for cell in cells],
        [cell.right for cell in cells],
        [(cell.left + cell.right) / 2 for cell in cells],
    )
    for side in sides:
        middle = sorted(side)[len(side) // 2]
        if sum(abs(one - middle) < 0.35 * size for one in side) * 5 >= 3 * len(side):
            return True
    return False


def _table(rows: list[TableRow], columns: list[tuple[float, float]], lines: list[Line], *, is_to_left: bool) -> Block:
    if is_to_left:
        columns.reverse()
    written = []
    for row in rows:
        texts = [""] * len(columns)
        for cell in row.cells:
            at = max(range(len(columns)), key=lambda column: _shared(cell, columns[column]))
            texts[at] = f"{texts[at]}\n{cell.text}".strip()
        written.append(texts)
    return Block("table", lines, rows=written)


def _shared(cell: Cell, column: tuple[float, float]) -> float:
    """Return how much of its width a cell shares with a column, or how far it is away, as a negative number."""
    return min(cell.right, column[1]) - max(cell.left, column[0])
