"""Writes the chosen blocks of a page as its text: plain, or light Markdown."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import (
    BACKSLASH,
    BACKTICK,
    BAR,
    HASH,
    HYPHEN,
    NEWLINE,
    OPENING_BRACKET,
    SPACE,
    STAR,
    TAB,
    is_alphanumeric,
)
from pipeline_tasks.text.base.characters import ASCII_END
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.measures import KINDS, point
from pipeline_tasks.text.blocks.reading import (
    B_END,
    B_FLAGS,
    B_KIND,
    B_LEVEL,
    B_MARKER,
    B_NODE,
    B_START,
    BULLET,
    CODE,
    CODE_SPAN,
    DEFINITION,
    HEADED,
    HOLE,
    IS_CAPITAL,
    IS_LETTER,
    IS_QUOTED,
    ITEMIZED,
    LINK,
    N_ITEM,
    N_PARENT,
    N_TAG,
    NO_MARKER,
    ROW,
    STRONG_SPAN,
    TERM,
)
from pipeline_tasks.text.blocks.tags import TAGS

_TABLE = TAGS["table"]
_BLOCK_SPARE, _SPAN_SPARE = 200, 8  # bytes that are written around a block, around a span
_ROW_SIGNS = 12  # bytes that are written for each cell, with those of the rule below
_DEEPEST_CODE = 5  # levels of lists by which code is indented
NO_BREAK_SPACE = tuple("\u00a0".encode())
_MOST_MISSING = 40  # cells that are added to a row which has fewer than the first one


def write_blocks(
    blocks: Blocks, chosen: npt.NDArray[np.bool_], drawn: Sequence[bytes], output: Literal["plain", "markdown"]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Return the text of the chosen blocks, and where each of all blocks begins in it (-1: not chosen).

    `drawn` has the text of each hole. Paragraphs are parted by an empty line; items of a list and rows of a table are
    lines, items with `- ` or their number and nested ones with two spaces more, cells with tabs between. Markdown has
    `#` at headings, fences at code, pipes in tables, stresses and code within paragraphs.
    """
    pieces = np.frombuffer(b"".join(drawn), np.uint8)
    ends = np.cumsum([0, *map(len, drawn)]).astype(np.int64)
    starts = np.full(len(blocks.table), -1, np.int64)
    text = _write(
        blocks.text, blocks.table, blocks.nodes, blocks.spans, chosen, pieces, ends, starts, output == "markdown"
    )
    return text.tobytes(), starts


@compiled
def _write(text, table, nodes, spans, chosen, pieces, ends, starts, marked):
    """Return the text; `starts` is filled in."""
    size = (
        (_ROW_SIGNS if marked else 2) * len(text) + len(pieces) + _BLOCK_SPARE * len(table) + _SPAN_SPARE * len(spans)
    )
    size += 2 * _DEEPEST_CODE * _lines(text)
    out, at, last, hole = np.empty(size, np.uint8), 0, -1, 0
    order = np.argsort(spans[:, 1], kind="mergesort")
    opened = np.zeros(3, np.int64)  # where the open strong, emphasis and code end
    begin, columns = 0, 0
    stops, is_marked = _stops(text, table, spans, order), np.zeros(len(nodes), np.bool_)
    for block in range(len(table)):
        start, end = table[block, B_START], stops[block]
        if not chosen[block]:
            end = table[block, B_END]
            for place in range(start, end):
                hole += text[place] == HOLE
            continue
        before = at
        at = _part(out, at, table, nodes, last, block)
        front = at
        at = _mark_front(out, at, table, nodes, block, marked, is_marked)
        while begin < len(order) and spans[order[begin], 1] < start:
            begin += 1
        body = at
        if table[block, B_KIND] == CODE:
            item = nodes[table[block, B_NODE], N_ITEM]
            indent = 2 * min(table[block, B_LEVEL], _DEEPEST_CODE) if item >= 0 and is_marked[item] else 0
            at, hole = _code(out, at, text, start, end, pieces, ends, hole, marked, indent)
        else:
            is_row = marked and table[block, B_KIND] == ROW
            at, hole = _prose(
                out, at, text, start, end, spans, order, begin, pieces, ends, hole, marked, is_row, opened
            )
        for place in range(end, table[block, B_END]):
            hole += text[place] == HOLE
        if at == body:
            at = before
            continue
        if marked and table[block, B_KIND] == ROW:
            is_first = (
                last < 0
                or table[last, B_KIND] != ROW
                or _table_of(nodes, table, last) != _table_of(nodes, table, block)
            )
            at, columns = _rule(out, at, text, start, end, is_first, columns)
        starts[block] = front
        last = block
    return out[:at].copy()


@compiled
def _stops(text, table, spans, order):
    """Return where the words of each block end: those of a heading before the tools that it ends with.

    A tool is a link that is glued to the words or in brackets, as no link of a sentence is, and that the next heading
    with one has, too ("[edit]"); or a link that has no word ("\u00b6").
    """
    stops, nth, last = table[:, B_END].copy(), 0, -1
    tools = np.full(len(table), -1, np.int64)
    for block in range(len(table)):
        if table[block, B_KIND] != HEADED:
            continue
        start, end = table[block, B_START], table[block, B_END]
        while nth < len(order) and spans[order[nth], 1] < start:
            nth += 1
        tools[block] = _tools(text, spans, order, nth, start, end)
        if tools[block] < 0:
            continue
        if not _has_word(text, tools[block], end):
            stops[block] = tools[block]
            continue
        if last >= 0 and _is_same(text, tools[last], table[last, B_END], tools[block], end):
            stops[last], stops[block] = tools[last], tools[block]
        last = block
    return stops


@compiled
def _tools(text, spans, order, nth, start, end):
    """Return where the links begin that a heading ends with, with the brackets around them; -1: it ends with none."""
    at, final, after = -1, -1, start
    while nth < len(order) and spans[order[nth], 1] < end:
        span = order[nth]
        if spans[span, 0] == LINK:
            if at < 0 or _has_word(text, after, spans[span, 1]):
                at = spans[span, 1]
            final = spans[span, 1]
            after = max(after, spans[span, 2])
        nth += 1
    if at < 0 or _has_word(text, after, end):
        return -1
    at = at if at > start else final  # the words may be a link themselves
    is_apart = text[at] == OPENING_BRACKET or not _has_word(text, at, end)
    is_apart |= at > start and (text[at - 1] >= ASCII_END or is_alphanumeric(text[at - 1]))
    while at > start and (text[at - 1] <= SPACE or text[at - 1] == OPENING_BRACKET):
        at -= 1
        is_apart |= text[at] == OPENING_BRACKET
    return at if at > start and is_apart else -1


@compiled
def _has_word(text, start, end):
    at = start
    while at < end:
        code, at = point(text, at, end)
        if KINDS[code]:
            return True
    return False


@compiled
def _is_same(text, start, end, other, other_end):
    if end - start != other_end - other:
        return False
    for place in range(end - start):
        if text[start + place] != text[other + place]:
            return False
    return True


@inlined
def _table_of(nodes, table, block):
    """Return the table that a row is in."""
    node = table[block, B_NODE]
    while node > 0 and nodes[node, N_TAG] != _TABLE:
        node = nodes[node, N_PARENT]
    return node


@inlined
def _part(out, at, table, nodes, last, block):
    """Write what is between two blocks: an empty line, or none between items, rows and terms."""
    if last < 0:
        return at
    kind, before = table[block, B_KIND], table[last, B_KIND]
    is_close = (
        (table[block, B_MARKER] != NO_MARKER and table[last, B_MARKER] != NO_MARKER)
        or (kind == ROW and before == ROW and _table_of(nodes, table, last) == _table_of(nodes, table, block))
        or (kind in (TERM, DEFINITION) and before in (TERM, DEFINITION) and kind >= before)
    )
    out[at] = NEWLINE
    at += 1
    if not is_close:
        out[at] = NEWLINE
        at += 1
    return at


@inlined
def _mark_front(out, at, table, nodes, block, marked, is_marked):
    """Write what begins a block: the number or sign of an item, in Markdown that of a heading or quotation.

    `is_marked` says of which items the number or sign was written: their later paragraphs begin below their words.
    """
    kind = table[block, B_KIND]
    if marked and table[block, B_FLAGS] & IS_QUOTED and kind != CODE:
        out[at], out[at + 1] = 62, SPACE
        at += 2
    if kind == HEADED and marked:
        for _ in range(min(table[block, B_LEVEL], 6)):
            out[at] = HASH
            at += 1
        out[at] = SPACE
        return at + 1
    marker, item = table[block, B_MARKER], nodes[table[block, B_NODE], N_ITEM]
    is_first = marker != NO_MARKER
    if item < 0 or not (is_first or (is_marked[item] and kind in (ITEMIZED, CODE))):
        return at
    for _ in range(2 * min(max(table[block, B_LEVEL] - is_first, 0), 20)):
        out[at] = SPACE
        at += 1
    if not is_first:
        return at
    is_marked[item] = True
    if marker == BULLET:
        out[at], out[at + 1] = HYPHEN, SPACE
        return at + 2
    flags = table[block, B_FLAGS]
    if flags & (IS_LETTER | IS_CAPITAL):
        out[at] = (97 if flags & IS_LETTER else 65) + marker - 1
        at += 1
    else:
        at = _number(out, at, marker)
    out[at], out[at + 1] = 46, SPACE
    return at + 2


@inlined
def _number(out, at, number):
    if number < 0:
        out[at] = HYPHEN
        at += 1
        number = -number
    scale = 1
    while number // scale >= 10:
        scale *= 10
    while scale:
        out[at] = 48 + number // scale % 10
        at += 1
        scale //= 10
    return at


@inlined
def _drawn(out, at, pieces, ends, hole):
    for place in range(ends[hole], ends[hole + 1]):
        out[at] = pieces[place]
        at += 1
    return at


@inlined
def _lines(text):
    count = 0
    for byte in text:
        count += byte == NEWLINE
    return count


@inlined
def _code(out, at, text, start, end, pieces, ends, hole, marked, indent):
    """Write code as it is, without blanks at the ends of lines; in an item below its words."""
    while start < end and text[start] == NEWLINE:
        start += 1
    ticks = _ticks(text, start, end)
    if marked:
        at = _new_line(out, _fence(out, at, ticks), indent)
    begin = at
    for place in range(start, end):
        if text[place] == HOLE:
            if hole + 1 < len(ends):
                at = _drawn(out, at, pieces, ends, hole)
            hole += 1
            continue
        if text[place] == NEWLINE:
            while at > begin and out[at - 1] in (SPACE, TAB):
                at -= 1
            at = _new_line(out, at, indent)
            continue
        if text[place] == NO_BREAK_SPACE[1] and place > start and text[place - 1] == NO_BREAK_SPACE[0]:
            out[at - 1] = SPACE  # normal form takes runs of such spaces for one
            continue
        out[at] = text[place]
        at += 1
    while at > begin and out[at - 1] <= SPACE:
        at -= 1
    if marked:
        at = _fence(out, _new_line(out, at, indent), ticks)
    return at, hole


@inlined
def _new_line(out, at, indent):
    out[at] = NEWLINE
    at += 1
    for _ in range(indent):
        out[at] = SPACE
        at += 1
    return at


@inlined
def _ticks(text, start, end):
    """Return how many ticks fence code: three, or one more than it has in a row."""
    most, row = 2, 0
    for place in range(start, end):
        row = row + 1 if text[place] == BACKTICK else 0
        most = max(most, row)
    return most + 1


@inlined
def _fence(out, at, ticks):
    for _ in range(ticks):
        out[at] = BACKTICK
        at += 1
    return at


@inlined
def _prose(out, at, text, start, end, spans, order, begin, pieces, ends, hole, marked, is_row, opened):
    """Write the words of a block; in Markdown with its stresses, and bars between cells."""
    front, nth = at, begin
    opened[:] = 0
    if is_row:
        out[at], out[at + 1] = BAR, SPACE
        at += 2
    for place in range(start, end):
        if marked:
            at = _close_spans(out, at, opened, place)
            while nth < len(order) and spans[order[nth], 1] <= place:
                span = order[nth]
                kind = spans[span, 0]
                if (
                    spans[span, 1] == place
                    and kind
                    and spans[span, 2] <= end
                    and spans[span, 2] > place
                    and opened[kind - 1] == 0
                ):
                    at = _stress(out, at, kind)
                    opened[kind - 1] = spans[span, 2]
                nth += 1
        byte = text[place]
        if byte == HOLE:
            if hole + 1 < len(ends):
                at = _drawn(out, at, pieces, ends, hole)
            hole += 1
        elif is_row and byte == TAB:
            out[at], out[at + 1], out[at + 2] = SPACE, BAR, SPACE
            at += 3
        elif is_row and byte == BAR:
            out[at], out[at + 1] = BACKSLASH, BAR
            at += 2
        elif byte == NEWLINE and at > front and out[at - 1] == NEWLINE:
            continue
        else:
            out[at] = byte
            at += 1
    if marked:
        at = _close_spans(out, at, opened, end)
    while at > front and out[at - 1] <= SPACE:
        at -= 1
    return at, hole


@inlined
def _close_spans(out, at, opened, place):
    for kind in range(2, -1, -1):
        if opened[kind] and opened[kind] <= place:
            blank = at > 0 and out[at - 1] == SPACE
            at = _stress(out, at - blank, kind + 1)
            if blank:
                out[at] = SPACE
                at += 1
            opened[kind] = 0
    return at


@inlined
def _stress(out, at, kind):
    if kind == CODE_SPAN:
        out[at] = BACKTICK
        return at + 1
    out[at] = STAR
    if kind == STRONG_SPAN:
        out[at + 1] = STAR
        return at + 2
    return at + 1


@inlined
def _rule(out, at, text, start, end, is_first, columns):
    """End a row of Markdown: with the columns of the first one, below which there is a rule."""
    count = 1
    for place in range(start, end):
        count += text[place] == TAB
    if is_first:
        columns = count
    for _ in range(min(columns - count, _MOST_MISSING)):
        out[at], out[at + 1], out[at + 2] = SPACE, BAR, SPACE
        at += 3
    out[at], out[at + 1] = SPACE, BAR
    at += 2
    if is_first:
        out[at], out[at + 1] = NEWLINE, BAR
        at += 2
        for _ in range(columns):
            for byte in (SPACE, HYPHEN, HYPHEN, HYPHEN, SPACE, BAR):
                out[at] = byte
                at += 1
    return at, columns
