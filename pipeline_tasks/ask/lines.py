"""Writes an answer as lines for a person."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from pipeline_tasks.ask.parts import Note, Part, Table
from pipeline_tasks.ask.written import written
from pipeline_tasks.plots.plot import Plot


def lines_of(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the lines of each part that has any, a blank one between two of which one is no note."""
    before: Part | None = None
    for part in parts:
        lines = _lines(part)
        if before is not None and lines and not (isinstance(before, Note) and isinstance(part, Note)):
            yield ""
        yield from lines
        before = part if lines else before


def _lines(part: Part) -> list[str]:
    if isinstance(part, Note):
        return [part.text]
    return list(_table(part) if isinstance(part, Table) else _plot(part))


def _table(table: Table) -> Iterator[str]:
    yield from [table.title] if table.title else []
    if not table.rows:
        yield from [table.empty] if table.empty else []
        return
    tallies = [column for column in table.shown if column.kind == "tally"]
    columns = [column for column in table.shown if column not in tallies]
    head = [column.title or column.key for column in columns]
    rows = [[written(column.kind, row.get(column.key)) for column in columns] for row in table.rows]
    left = [at for at, column in enumerate(columns) if not column.is_number]
    first, *lines = aligned_lines([head, *rows], left)
    yield "  ".join([first, *(["; ".join(column.title or column.key for column in tallies)] if tallies else [])])
    for line, row in zip(lines, table.rows, strict=True):
        yield line
        yield from (f"    {written(each.kind, row[each.key])}" for each in tallies if row.get(each.key))


def _plot(plot: Plot) -> Iterator[str]:
    yield plot.title
    yield from aligned_lines([plot.head, *([str(value) for value in row] for row in plot.rows)], [0])
    yield from [plot.note] if plot.note else []


def aligned_lines(rows: Sequence[Sequence[str]], left: Collection[int]) -> Iterator[str]:
    """Yield a line per row of cells, as wide as each column's widest; columns of `left` begin at the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        yield "  ".join(cell.ljust(width) if at in left else cell.rjust(width) for at, (cell, width) in cells).rstrip()
