"""Writes an answer as HTML in which every value is escaped, in the classes of the pages' stylesheet."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import cast

from pipeline_tasks.ask.parts import Column, Note, Part, Row, Table
from pipeline_tasks.ask.written import DASH, number, written
from pipeline_tasks.plots.plot import Plot

Link = Callable[[Column, Row], str]
"""Returns the address that a value of a row leads to, "" for none."""

MOST = 200
"""Rows of a table that are shown."""

SHORT_ID = 12
"""Digits of an id that are shown where it leads to its document."""


def html_of(parts: Iterable[Part], link: Link = lambda _, __: "") -> str:
    """Return the parts of an answer as HTML; `link` says where its values lead."""
    return "\n".join(_part(part, link) for part in parts)


def _part(part: Part, link: Link) -> str:
    if isinstance(part, Note):
        return _note(part)
    return _table(part, link) if isinstance(part, Table) else _plot(part)


def _note(note: Note) -> str:
    mark = {"plain": "", "warn": ' class="note warn" role="status"', "next": ' class="note"'}[note.kind]
    return f"<div{mark}><p>{_prose(note.text)}</p></div>"


def _prose(text: str) -> str:
    """Return text in which what is between backticks is code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def _table(table: Table, link: Link) -> str:
    if not table.rows:
        return f'<div class="empty"><p>{_prose(table.empty)}</p></div>' if table.empty else ""
    head = "".join(f'<th scope="col"{_number(each)}>{escape(each.title or each.key)}</th>' for each in table.shown)
    body = "\n".join(f"<tr>{''.join(_cells(table, row, link))}</tr>" for row in table.rows[:MOST])
    label = escape(table.title or "Table")
    caption = f"<caption>{_prose(table.title)}</caption>" if table.title else f'<caption class="away">{label}</caption>'
    return (
        f'<div class="wide answered" role="region" tabindex="0" aria-label="{label}"><table>{caption}'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{_more(table)}"
    )


def _more(table: Table) -> str:
    count = len(table.rows)
    return f'<p class="quiet">The first {MOST} of {count:,} rows; JSON has all.</p>' if count > MOST else ""


def _number(column: Column) -> str:
    return ' class="n"' if column.is_number else ""


_MARKS = {"time": ' class="nowrap"', "version": ' class="nowrap"', "url": ' class="page"'}


def _cells(table: Table, row: Row, link: Link) -> Iterator[str]:
    for at, column in enumerate(table.shown):
        mark = _number(column) or _MARKS.get(column.kind, "")
        value = _value(column, row, link)
        yield f'<th scope="row">{value}</th>' if at == 0 else f"<td{mark}>{value}</td>"


def _value(column: Column, row: Row, link: Link) -> str:
    value = row.get(column.key)
    text = written(column.kind, value)
    if text == DASH:
        return DASH
    shown = _shown(column, value, text)
    address = link(column, row)
    return f'<a href="{escape(address)}">{shown}</a>' if address else shown


def _shown(column: Column, value: object, text: str) -> str:
    if column.kind == "state":
        return f'<span class="state {escape(text)}">{escape(text)}</span>'
    if column.kind == "id":
        return f'<code class="id" title="{escape(text)}">{escape(text[:SHORT_ID])}</code>'
    if column.kind in ("url", "path", "digest"):
        return f"<code>{escape(text)}</code>"
    return _tally(cast("Mapping[str, int]", value)) if column.kind == "tally" else _prose(text)


def _tally(counts: Mapping[str, int]) -> str:
    items = (f'<li>{escape(name)} <span class="n">{number(count)}</span></li>' for name, count in counts.items())
    return f'<ul class="reasons">{"".join(items)}</ul>'


def _plot(plot: Plot) -> str:
    """Return what `refinery.js` draws of a plot, with its numbers as a table, which is all that is seen elsewhere."""
    note = f'<p class="quiet small">{escape(plot.note)}</p>' if plot.note else ""
    title, spec = escape(plot.title), escape(json.dumps(plot.spec, separators=(",", ":")))
    columns = [Column(str(at), name, "text") for at, name in enumerate(plot.head)]
    rows = [{str(at): str(value) for at, value in enumerate(row)} for row in plot.rows]
    return (
        f'<figure class="plot"><figcaption><h3>{title}</h3>{note}</figcaption>'
        f'<div class="canvas" role="img" aria-label="{title}; its numbers are in the table that follows" '
        f'data-spec="{spec}"></div><details><summary>As a table</summary>'
        f"{_table(Table(columns, rows, plot.title), lambda _, __: '')}</details></figure>"
    )
