"""Writes the chosen blocks of a page as its text: plain, or light Markdown."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import (
    BACKSLASH,
    BACKTICK,
    BAR,
    CLOSING_BRACKET,
    HASH,
    HYPHEN,
    NEWLINE,
    OPENING_BRACKET,
    SPACE,
    STAR,
    TAB,
    is_alphanumeric,
)
from pipeline_tasks.text.base.characters import ASCII_END, UNSPACED, WORD, class_of, classes, decode
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import VERSE_SIGNS
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.reading import (
    B_EMPTY,
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
    N_FIRST,
    N_ITEM,
    N_LAST,
    N_PARENT,
    N_TAG,
    NO_MARKER,
    PARAGRAPH,
    RAISED_SPAN,
    ROW,
    STRONG_SPAN,
    TERM,
    outermost_list,
)
from pipeline_tasks.text.blocks.tags import TAGS

_INDEX, _FLAGS = classes()
_TABLE = TAGS["table"]
_BLOCK_SPARE, _SPAN_SPARE = 400, 8  # bytes that are written around a block, around a span
_ROW_SIGNS = 12  # bytes that are written for each cell, with those of the rule below
_MOST_INDENT = 20  # columns
_VERSE = 160  # bytes
_SIGNS = np.array([int.from_bytes(sign.encode()) for sign in VERSE_SIGNS])
_DIV, _DD, _DT = TAGS["div"], TAGS["dd"], TAGS["dt"]
_TOOLS = 60  # bytes of the links that a heading ends with
_NO_BREAK_SPACE = tuple("\u00a0".encode())
_MOST_MISSING = 40  # cells that are added to a row which has fewer than the first one
_MOST_EMPTY = 20  # empty cells that a row begins with
_RAISED_DIGITS = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_RAISED = np.array([int.from_bytes(sign.encode()) for sign in _RAISED_DIGITS])
_RAISED_PLUS, _RAISED_MINUS = (int.from_bytes(sign.encode()) for sign in "\u207a\u207b")
_PLUS, _MINUS = ord("+"), tuple("\u2212".encode())
_MOST_RAISED = 8  # bytes of a number that is raised


def write_blocks(
    blocks: Blocks, chosen: npt.NDArray[np.bool_], drawn: Sequence[bytes], output: Literal["plain", "markdown"]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Return the text of the chosen blocks, and where each of all blocks begins in it (-1: not chosen).

    `drawn` has the text of each hole. Paragraphs are parted by an empty line; items of a list and rows of a table are
    lines, items with `- ` or their number, what else is in an item below its words, cells with tabs between. Raised
    numbers are written so: of 2<sup>8</sup> a 28 would be left. Markdown has `#` at headings, fences at code, pipes in
    tables, stresses and code within paragraphs.
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
    size += _MOST_INDENT * _lines(text)
    out, at, last, hole = np.empty(size, np.uint8), 0, -1, 0
    order = len(spans) - 1 - np.argsort(spans[::-1, 1], kind="mergesort")  # outer ones, which end later, first
    opened = np.zeros(3, np.int64)  # where the open strong, emphasis and code end
    begin, columns = 0, 0
    stops, is_verse = _stops(text, table, spans), _verses(text, table, nodes)
    begins = np.full(len(nodes), -1, np.int64)  # the column in which the words of an item begin
    for block in range(len(table)):
        start, end = table[block, B_START], stops[block]
        if not chosen[block]:
            end = table[block, B_END]
            for place in range(start, end):
                hole += text[place] == HOLE
            continue
        before = at
        at = _part(out, at, table, nodes, last, block, is_verse)
        front = at
        indent = _indent(table, nodes, block, begins)
        empty = min(table[block, B_EMPTY], _MOST_EMPTY)
        at = _mark_front(out, at, table, block, marked, indent, empty)
        while begin < len(order) and spans[order[begin], 1] < start:
            begin += 1
        body = at
        if table[block, B_MARKER] != NO_MARKER:
            indent = min(body - front, _MOST_INDENT)
        if table[block, B_KIND] == CODE:
            at, hole = _code(out, at, text, start, end, pieces, ends, hole, marked, indent)
        else:
            kind = table[block, B_KIND] if marked else PARAGRAPH
            at, hole = _prose(
                out, at, text, start, end, spans, order, begin, pieces, ends, hole, marked, kind, opened, indent
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
            is_quoted = table[block, B_FLAGS] & IS_QUOTED != 0
            at, columns = _rule(out, at, text, start, end, is_first, columns, empty, is_quoted)
        if table[block, B_MARKER] != NO_MARKER:
            begins[nodes[table[block, B_NODE], N_ITEM]] = indent
        starts[block] = front
        last = block
    return out[:at].copy()


@inlined
def _indent(table, nodes, block, begins):
    """Return the column in which a block begins: that of the words of the item that it is in; 0 of rows and terms."""
    item = nodes[table[block, B_NODE], N_ITEM]
    is_marked = table[block, B_MARKER] != NO_MARKER
    if item < 0 or not (is_marked or table[block, B_KIND] in (ITEMIZED, CODE)):
        return 0
    if is_marked:  # it begins below the words of the item that its list is in
        item = nodes[nodes[item, N_PARENT], N_ITEM]
        while item >= 0 and begins[item] < 0:
            item = nodes[nodes[item, N_PARENT], N_ITEM]
    return max(begins[item], 0) if item >= 0 else 0


@compiled
def _stops(text, table, spans):
    """Return where the words of each block end: those of a heading before the tools that it ends with.

    A tool is a link in brackets that the next heading with one has, too ("[edit]"), at its end or right behind it; or a
    link of a single sign ("\u00b6").
    """
    links, stops, nth = _links(spans), table[:, B_END].copy(), 0
    last, tools = -1, -1  # the last block that ends with tools, and where they begin
    for block in range(len(table)):
        is_headed = table[block, B_KIND] == HEADED
        is_behind = block > 0 and table[block - 1, B_KIND] == HEADED
        start, end = table[block, B_START], table[block, B_END]
        while nth < len(links) and links[nth, 1] <= start:
            nth += 1
        if not (is_headed or is_behind) or end == start:
            continue
        if is_headed:
            stops[block] = _sign(text, links, nth, start, end)
        at = _bracketed(text, links, nth, start, end)
        if at < 0 or (at == start) == is_headed:
            continue
        if last >= 0 and _is_same(text, tools, table[last, B_END], at, end):
            stops[last], stops[block] = tools, at
        last, tools = block, at
    return stops


@compiled
def _verses(text, table, nodes):
    """Return which blocks are a line below the one before: short elements beside each other that end as verses do.

    All of the elements are lines, the last one and at least half of them end with a sign, as in `rendering`.
    """
    is_verse, first = np.zeros(len(table), np.bool_), 0
    while first < len(table):
        last, signs, is_signed = first, 0, False
        while last < len(table) and _is_line(table, nodes, first, last):
            is_signed = _ends_with_sign(text, table[last, B_END])
            signs += is_signed
            last += 1
        if last - first > 1 and is_signed and 2 * signs >= last - first:
            is_verse[first + 1 : last] = True
        first = max(last, first + 1)
    return is_verse


@inlined
def _is_line(table, nodes, first, block):
    """Return whether a block is a short `div` by itself, beside that of the block `first`."""
    node = table[block, B_NODE]
    return (
        table[block, B_KIND] == PARAGRAPH
        and table[block, B_MARKER] == NO_MARKER
        and table[block, B_END] - table[block, B_START] <= _VERSE
        and nodes[node, N_TAG] == _DIV
        and nodes[node, N_LAST] - nodes[node, N_FIRST] == 1
        and nodes[node, N_PARENT] == nodes[table[first, B_NODE], N_PARENT]
    )


@inlined
def _ends_with_sign(text, end):
    """Return whether bytes end with a sign of `_SIGNS`, which has two or three of UTF-8, or one of ASCII."""
    for size in range(1, 4):
        code = np.int64(0)
        for place in range(max(end - size, 0), end):
            code = code << 8 | text[place]
        for sign in _SIGNS:
            if code == sign:
                return True
    return False


@compiled
def _links(spans):
    """Return start and end of each link in order; links do not nest."""
    count = 0
    for span in range(len(spans)):
        count += spans[span, 0] == LINK
    links, at = np.empty((count, 2), np.int64), 0
    for span in range(len(spans)):
        if spans[span, 0] == LINK:
            links[at, 0], links[at, 1] = spans[span, 1], spans[span, 2]
            at += 1
    return links


@compiled
def _sign(text, links, nth, start, end):
    """Return where a heading ends without the link of one sign behind its words."""
    while nth + 1 < len(links) and links[nth + 1, 0] < end:
        nth += 1
    if nth == len(links) or not start < links[nth, 0] < end or links[nth, 1] < end:
        return end
    at = links[nth, 0]
    while at < end and text[at] <= SPACE:
        at += 1
    if at == end:
        return end
    code, size = decode(text, at, end)
    is_sign = code == HASH or (code >= ASCII_END and class_of(_INDEX, _FLAGS, code) & (WORD | UNSPACED) == 0)
    if at + size < end or not is_sign:
        return end
    while at > start and text[at - 1] <= SPACE:
        at -= 1
    return at if at > start else end


@compiled
def _bracketed(text, links, nth, start, end):
    """Return where the brackets begin that a block ends with, if they have a link and stand apart; else -1."""
    if text[end - 1] != CLOSING_BRACKET:
        return -1
    at = end - 2
    while at >= start and text[at] != OPENING_BRACKET:
        if text[at] == CLOSING_BRACKET or end - at > _TOOLS:
            return -1
        at -= 1
    if at < start or (at > start and not (text[at - 1] <= SPACE or _is_of_word(text[at - 1]))):
        return -1
    while nth < len(links) and links[nth, 1] <= at:
        nth += 1
    if nth == len(links) or links[nth, 0] >= end:
        return -1
    while at > start and text[at - 1] <= SPACE:
        at -= 1
    return at


@inlined
def _is_of_word(byte):
    return byte >= ASCII_END or is_alphanumeric(byte)


@compiled
def _is_same(text, start, end, other, other_end):
    while text[start] <= SPACE:
        start += 1
    while text[other] <= SPACE:
        other += 1
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
def _begins_entry(nodes, table, block):
    """Return whether a block is the first of its term or definition."""
    node = table[block, B_NODE]
    while node > 0 and nodes[node, N_TAG] not in (_DD, _DT):
        node = nodes[node, N_PARENT]
    return nodes[node, N_FIRST] == block


@inlined
def _part(out, at, table, nodes, last, block, is_verse):
    """Write what is between two blocks: an empty line, or none between items, rows, terms and verses."""
    if last < 0:
        return at
    kind, before = table[block, B_KIND], table[last, B_KIND]
    is_close = (
        (is_verse[block] and last == block - 1)
        or (
            table[block, B_MARKER] != NO_MARKER
            and table[last, B_MARKER] != NO_MARKER
            and outermost_list(nodes, table, block) == outermost_list(nodes, table, last)
        )
        or (kind == ROW and before == ROW and _table_of(nodes, table, last) == _table_of(nodes, table, block))
        or (
            kind in (TERM, DEFINITION)
            and before in (TERM, DEFINITION)
            and kind >= before
            and _begins_entry(nodes, table, block)
        )
    )
    out[at] = NEWLINE
    at += 1
    if not is_close:
        out[at] = NEWLINE
        at += 1
    return at


@inlined
def _mark_front(out, at, table, block, marked, indent, empty):
    """Write what begins a block: empty cells, number or sign of an item, in Markdown that of a heading or quotation."""
    kind, marker = table[block, B_KIND], table[block, B_MARKER]
    for _ in range(indent):
        out[at] = SPACE
        at += 1
    if marked and table[block, B_FLAGS] & IS_QUOTED and kind != CODE:
        out[at], out[at + 1] = 62, SPACE
        at += 2
    if kind == ROW:
        for _ in range(empty):
            out[at], out[at + 1] = BAR if marked else TAB, SPACE
            at += 1 + marked
    if kind == HEADED and marked:
        for _ in range(min(table[block, B_LEVEL], 6)):
            out[at] = HASH
            at += 1
        out[at] = SPACE
        return at + 1
    if marker == NO_MARKER:
        return at
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
        if text[place] == _NO_BREAK_SPACE[1] and place > start and text[place - 1] == _NO_BREAK_SPACE[0]:
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
def _prose(out, at, text, start, end, spans, order, begin, pieces, ends, hole, marked, kind, opened, indent):
    """Write the words of a block; in Markdown with its stresses, none within code, and bars between cells.

    `kind` is that of the block in Markdown, where a heading is one line; else that of any other.
    """
    front, nth, raised, is_row = at, begin, 0, kind == ROW
    opened[:] = 0
    if is_row:
        out[at], out[at + 1] = BAR, SPACE
        at += 2
    for place in range(start, end):
        if marked:
            at = _close_spans(out, at, opened, place)
        while nth < len(order) and spans[order[nth], 1] <= place:
            span = order[nth]
            style, stop = spans[span, 0], spans[span, 2]
            if spans[span, 1] == place and place < stop <= end:
                if style == RAISED_SPAN:
                    raised = stop if _is_number(text, place, stop) else raised
                elif marked and style != LINK and opened[style - 1] == 0 and opened[CODE_SPAN - 1] == 0:
                    at = _stress(out, at, style)
                    opened[style - 1] = stop
            nth += 1
        byte = text[place]
        if byte == HOLE:
            if hole + 1 < len(ends):
                at = _drawn(out, at, pieces, ends, hole)
            hole += 1
        elif place < raised:
            at = _raise(out, at, byte)
        elif is_row and byte == TAB:
            out[at], out[at + 1], out[at + 2] = SPACE, BAR, SPACE
            at += 3
        elif is_row and byte == BAR:
            out[at], out[at + 1] = BACKSLASH, BAR
            at += 2
        elif byte == NEWLINE:
            while at > front and out[at - 1] <= SPACE:
                at -= 1
            if at > front and kind == HEADED:
                out[at] = SPACE
                at += 1
            elif at > front:
                at = _new_line(out, at, indent)
        else:
            out[at] = byte
            at += 1
    if marked:
        at = _close_spans(out, at, opened, end)
    while at > front and out[at - 1] <= SPACE:
        at -= 1
    return at, hole


@inlined
def _is_number(text, start, end):
    """Return whether a text is digits and signs, and not many."""
    digits = signs = 0
    for place in range(start, end):
        byte = text[place]
        digits += 48 <= byte <= 57
        signs += byte in (HYPHEN, _PLUS)
        if byte == _MINUS[0] and place + 2 < end and text[place + 1] == _MINUS[1] and text[place + 2] == _MINUS[2]:
            signs += 3
    return digits > 0 and digits + signs == end - start <= _MOST_RAISED


@inlined
def _raise(out, at, byte):
    """Write the raised form of a digit or sign; of a minus, which has three bytes, at its first one."""
    if byte in (_MINUS[1], _MINUS[2]):
        return at
    code = np.int64(_RAISED_MINUS)
    if byte == _PLUS:
        code = np.int64(_RAISED_PLUS)
    elif 48 <= byte <= 57:
        code = _RAISED[byte - 48]
    for shift in (16, 8, 0):
        if code >> shift:
            out[at] = code >> shift & 0xFF
            at += 1
    return at


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
def _rule(out, at, text, start, end, is_first, columns, empty, is_quoted):
    """End a row of Markdown: with the columns of the first one, below which there is a rule."""
    count = 1 + empty
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
        out[at] = NEWLINE
        if is_quoted:
            out[at + 1], out[at + 2] = 62, SPACE
            at += 2
        out[at + 1] = BAR
        at += 2
        for _ in range(columns):
            for byte in (SPACE, HYPHEN, HYPHEN, HYPHEN, SPACE, BAR):
                out[at] = byte
                at += 1
    return at, columns
