"""Puts a gate's outcome and all of its bounds, the broken ones first, above what Great Expectations wrote."""

from collections.abc import Iterable, Iterator
from html import escape

from pipeline_tasks.gate.explaining import allowed, note_of, number
from pipeline_tasks.gate.judging import Judged

HEAD = ("bound", "severity", "fact", "value", "allowed", "a violation usually means, and what to do")


def with_bounds(page: str, title: str, lines: Iterable[str], judged: Judged) -> bytes:
    """Return a page with a title, lines of text and a table of the bounds above its own content."""
    head, body, rest = page.partition("<body")
    attributes, end, rest = rest.partition(">")
    text = "\n".join(escape(line) for line in lines)
    shown = f"<h4>{escape(title)}</h4><pre>{text}</pre>{''.join(_table(judged))}"
    return f"{head}{body}{attributes}{end}{shown}{rest}".encode()


def _table(judged: Judged) -> Iterator[str]:
    """Yield the parts of a table with a row for each bound."""
    yield f"<table class='bounds'><thead>{_row('th', HEAD)}</thead><tbody>"
    for finding, bounds in judged.items():
        for bound in bounds:
            limits = allowed(bound).removeprefix("must be ")
            yield _row("td", (finding, bound.severity, bound.column, number(bound.observed), limits, note_of(bound)))
    yield "</tbody></table>"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>\n"
