"""Tables in grids of rules."""

import numpy as np

from refinery_files.pdf.blocks import Block
from refinery_files.pdf.lines import Line
from refinery_files.pdf.rules import Rules
from refinery_files.pdf.tables import runs_to_left

# in points: rules that are nearer touch
_TOUCH = 3.0
_MOST_RULES = 3_000
_MOST_CELLS = 20_000


class Grid:
    """A grid: the places of its vertical and horizontal rules, sorted."""

    __slots__ = ("columns", "rows", "rules")

    def __init__(self, rules: Rules) -> None:
        """Take the rules that touch each other."""
        self.rules = rules
        places = [*rules.down[:, 2].tolist()]
        left, right = float(rules.across[:, 0].min()), float(rules.across[:, 1].max())
        # tables that are open at their sides
        self.columns = _places([left, *places, right])
        self.rows = _places(rules.across[:, 2].tolist())

    def cell(self, line: Line) -> tuple[int, int] | None:
        """Return the row and column that a line is in, or None."""
        column = int(np.searchsorted(self.columns, (line.left + line.right) / 2)) - 1
        row = int(np.searchsorted(self.rows, line.base - 0.3 * line.size)) - 1
        if not (0 <= column < len(self.columns) - 1 and 0 <= row < len(self.rows) - 1):
            return None
        # what begins in one column and goes on in the next is of the first
        first = int(np.searchsorted(self.columns, line.left + 0.3 * line.size)) - 1
        return row, max(0, min(column, first))


def _places(values: list[float]) -> np.ndarray:
    """Return the places of rules, of which those that touch are one."""
    values = sorted(values)
    groups: list[list[float]] = []
    for value in values:
        if groups and value - groups[-1][-1] < _TOUCH:
            groups[-1].append(value)
        else:
            groups.append([value])
    return np.array([sum(group) / len(group) for group in groups])


def grids_of(rules: Rules) -> list[Grid]:
    """Return the grids of at least two rows and two columns that rules make."""
    across, down = rules
    if not len(across) or not len(down) or len(across) > _MOST_RULES or len(down) > _MOST_RULES:
        return []
    touching = (
        (across[:, None, 0] - _TOUCH <= down[None, :, 2])
        & (down[None, :, 2] <= across[:, None, 1] + _TOUCH)
        & (down[None, :, 0] - _TOUCH <= across[:, None, 2])
        & (across[:, None, 2] <= down[None, :, 1] + _TOUCH)
    )
    found: list[Grid] = []
    free = np.ones(len(across), bool)
    while free.any():
        members = np.zeros(len(across), bool)
        members[np.flatnonzero(free)[0]] = True
        while True:
            crossed = touching[members].any(axis=0)
            grown = members | touching[:, crossed].any(axis=1)
            if (grown == members).all():
                break
            members = grown
        free &= ~members
        if crossed.sum() > 1 and members.sum() > 2:
            grid = Grid(Rules(across[members], down[crossed]))
            if len(grid.columns) > 2 and len(grid.rows) > 2 and len(grid.columns) * len(grid.rows) < _MOST_CELLS:
                found.append(grid)
    return found


def with_grids(lines: list[Line], grids: list[Grid]) -> list[Line | Block]:
    """Return lines in their order; those in a grid as a table in the place of the first one."""
    if not grids:
        return list(lines)
    found: list[Line | Block] = []
    taken: list[dict[tuple[int, int], list[Line]]] = [{} for _ in grids]
    blocks: list[Block | None] = [None] * len(grids)
    for line in lines:
        at, cell = next(((at, cell) for at, grid in enumerate(grids) if (cell := grid.cell(line))), (-1, None))
        if cell is None:
            found.append(line)
            continue
        taken[at].setdefault(cell, []).append(line)
        block = blocks[at]
        if block is None:
            block = blocks[at] = Block("table", [])
            found.append(block)
        block.lines.append(line)
    for block, cells in zip(blocks, taken, strict=True):
        if block is not None:
            block.rows = _rows(cells, is_to_left=runs_to_left(lines))
    return _unboxed(found)


def _rows(cells: dict[tuple[int, int], list[Line]], *, is_to_left: bool) -> list[list[str]]:
    """Return the texts of cells as rows of equal length, without rows and columns that have none."""
    rows, columns = sorted({row for row, _ in cells}), sorted({column for _, column in cells})
    texts = {at: "\n".join(line.text for line in lines) for at, lines in cells.items()}
    order = columns[::-1] if is_to_left else columns
    return [[texts.get((row, column), "") for column in order] for row in rows]


def _unboxed(found: list[Line | Block]) -> list[Line | Block]:
    """Return the lines of what is a box around text, and no table."""
    whole: list[Line | Block] = []
    for one in found:
        if isinstance(one, Block) and (len(one.rows) < 2 or len(one.rows[0]) < 2):
            whole += one.lines
        else:
            whole.append(one)
    return whole
