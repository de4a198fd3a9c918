"""Reads the markup of a page into elements and blocks in one compiled pass over its bytes.

Elements nest as HTML says (Living Standard, 13.2.6) as far as the borders of blocks depend on it: implied end tags,
misnested formatting, cells. What is left out: foster parents of tables, framesets.
"""

import re

import numpy as np

from pipeline_tasks.text.base.ascii import (
    AMPERSAND,
    EXCLAMATION_MARK,
    GREATER,
    HYPHEN,
    LESS,
    NEWLINE,
    QUESTION_MARK,
    RETURN,
    SLASH,
    SPACE,
    TAB,
    UNDERSCORE,
    is_letter,
    lower,
)
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import attributes as attribute
from pipeline_tasks.text.blocks.attributes import (
    equals,
    has_word,
    is_for_screen_readers,
    is_unseen,
    read_attributes,
    whole_number,
)
from pipeline_tasks.text.blocks.references import read_reference
from pipeline_tasks.text.blocks.tags import (
    BITS,
    BLOCK,
    CELL,
    CLOSES_P,
    EMPHASIS,
    FORMATTING,
    HEADING,
    LIST,
    RAW,
    SKIPPED,
    STRONG,
    TAGS,
    UNDRAWN,
    VOID,
    name_key,
    read_key,
    tag_of,
)

DEEPEST = 512
"""Elements in each other that are read as nested; deeper ones are beside each other, as in browsers."""

HOLE = 0xFF
"""A byte of no UTF-8: what a page draws (formulas, emoji) and the reader of its markup does not."""

(
    OUT, RUN, BLANK, BREAKS, HEIGHT, NODE, HIDDEN, UNSEEN, UNSEEN_NODE, PRE, BLOCKS, NODES, SPANS, HOLES, MARKER, ITEM,
    PARAGRAPHS, TITLE, TITLE_END, UNDRAWN_END, NEEDS_TREE, CODE_END,
) = range(22)  # fmt: skip
LINK, STRONG_SPAN, EMPHASIS_SPAN, CODE_SPAN, RAISED_SPAN = range(5)
OPEN, STARTED = 22, 27
"""From here on: how many elements of each kind of span are open, and where the text of the outermost one began.

`CODE_END` is where the text of the last `code` ended that is a child of a `pre`: one that begins there is a line."""

STATES = 32

# an element on the stack: its tag, bits of what it changed, the kind of its span
S_TAG, S_BITS, S_SPAN = range(3)
S_FIELDS = 3
_MADE_NODE, _HID, _UNSAW, _IN_PRE = (1 << bit for bit in range(4))
_NO_SPAN = -1

# a node: an element that makes blocks
N_TAG, N_PARENT, N_FIRST, N_LAST, N_KIND, N_LEVEL, N_LIST, N_ITEM, N_NEXT, N_STEP, N_STYLE, N_QUOTED = range(12)
N_FIELDS = 12

# a block
B_START, B_END, B_KIND, B_LEVEL, B_MARKER, B_NODE, B_FLAGS, B_EMPTY = range(8)
B_FIELDS = 8
"""`B_EMPTY` are the empty cells before the first one of a row that has text."""

PARAGRAPH, HEADED, ITEMIZED, ROW, CODE, CAPTION, TERM, DEFINITION, CELLED, LONE_CELL = range(10)
KINDS = ("paragraph", "heading", "item", "row", "code", "caption", "term", "definition")  # cells become one of them

NO_MARKER = -(1 << 30)
BULLET = NO_MARKER + 1
IS_HIDDEN, IS_QUOTED, IS_LETTER, IS_CAPITAL = 1, 2, 4, 8

T = TAGS
_A, _P, _LI, _TABLE, _TR, _BR, _IMG, _Q, _PRE, _MATH, _SCRIPT, _TEMPLATE = (
    T[name] for name in re.findall(r"\S+", "a p li table tr br img q pre math script template")
)
_DD, _DT, _BODY, _HTML, _HEAD, _TITLE, _BUTTON, _SUMMARY, _DIALOG, _HR, _MJX, _LISTING = (
    T[name] for name in re.findall(r"\S+", "dd dt body html head title button summary dialog hr mjx-container listing")
)
_FIGCAPTION, _CAPTION, _LEGEND, _BLOCKQUOTE, _OL, _RT, _RP, _RTC, _CODE_TAG = (
    T[name] for name in re.findall(r"\S+", "figcaption caption legend blockquote ol rt rp rtc code")
)
_DIV, _ADDRESS, _TBODY, _THEAD, _TFOOT, _SPAN = (
    T[name] for name in re.findall(r"\S+", "div address tbody thead tfoot span")
)
_TD, _TH, _KBD, _SAMP, _H1, _NOSCRIPT, _SUP = (T[name] for name in re.findall(r"\S+", "td th kbd samp h1 noscript sup"))


def _word(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


_TEX_SCRIPT, _KATEX, _MATHJAX, _MWE = map(_word, ("math/tex", "katex", "mathjax", "mwe-math-element"))
_LATEX, _EQUATION, _EMOJI, _SMILEY, _MIMETEX, _MATH_WORD = map(
    _word, ("latex", "equation", "emoji", "smiley", "mimetex", "math")
)
_ICONS, _SYMBOLS, _GOOGLE_SYMBOLS = map(_word, ("material-icons", "material-symbols", "google-symbols"))
_NO_BREAK = _word("&nbsp;")
_LONGEST_COUNT = 1_000  # bytes of markup that a count of readers is read in
_BUTTON_KEY = np.uint64(name_key("button"))


@compiled
def read_page(page, text, state, stack, keys, nodes, blocks, spans, holes, values, decoded):
    """Fill text, nodes, blocks, spans and holes; their numbers are in `state`."""
    _open_root(state, nodes)
    at, end = 0, len(page)
    while at < end:
        if page[at] != LESS:
            start = at
            while at < end and page[at] != LESS:
                at += 1
            _append(page, start, at, text, state, nodes, blocks, spans, decoded)
            continue
        following = page[at + 1] if at + 1 < end else 0
        if is_letter(following):
            at = _start_tag(page, at, text, state, stack, keys, nodes, blocks, spans, holes, values)
        elif following == SLASH and at + 2 < end and is_letter(page[at + 2]):
            at = _end_tag(page, at, text, state, stack, keys, nodes, blocks, spans)
        elif following in (EXCLAMATION_MARK, QUESTION_MARK, SLASH):
            at = _declaration_end(page, at + 1, end)
        else:
            _append(page, at, at + 1, text, state, nodes, blocks, spans, decoded)
            at += 1
    while state[HEIGHT]:
        _pop(state, stack, text, nodes, blocks, spans)
    _flush(state, text, nodes, blocks, spans)
    nodes[0, N_LAST] = state[BLOCKS]


@inlined
def _open_root(state, nodes):
    state[:] = 0
    state[NODES], state[ITEM], state[TITLE] = 1, -1, -1
    nodes[0, :] = 0
    nodes[0, N_PARENT] = nodes[0, N_LIST] = nodes[0, N_ITEM] = -1
    nodes[0, N_TAG] = _BODY


@inlined
def _declaration_end(page, at, end):
    """Return where a comment ends, behind `-->`, or another declaration, behind `>`; `at` is behind its `<`."""
    if at + 2 < end and page[at] == EXCLAMATION_MARK and page[at + 1] == HYPHEN and page[at + 2] == HYPHEN:
        at += 3
        if at < end and page[at] == GREATER:
            return at + 1
        while at < end:
            if page[at] == GREATER and page[at - 1] == HYPHEN and page[at - 2] == HYPHEN:
                return at + 1
            at += 1
        return at
    while at < end and page[at] != GREATER:
        at += 1
    return at + 1


# --- text


@inlined
def _append(page, at, end, text, state, nodes, blocks, spans, decoded):
    """Append text of the page: blanks as one, but in code; references decoded."""
    if state[UNSEEN] and state[UNSEEN_NODE] == state[NODE]:
        return
    if state[PRE]:
        _append_code(page, at, end, text, state, decoded)
        return
    out, blank = state[OUT], state[BLANK]
    while at < end:
        byte = page[at]
        if byte <= SPACE:
            blank = 1
            at += 1
            continue
        size = 0
        if byte == AMPERSAND:
            size, behind = read_reference(page, at, end, decoded)
            if size == 2 and decoded[0] == 0xC2 and decoded[1] == 0xA0:  # a space that does not break
                blank, at = 1, behind
                continue
            if size == 1 and decoded[0] <= SPACE:
                blank, at = 1, behind
                continue
        elif byte == 0xC2 and at + 1 < end and page[at + 1] == 0xA0:
            blank = 1
            at += 2
            continue
        if blank or state[BREAKS]:
            state[OUT] = out
            out = _part(state, text, nodes, blocks, spans)
            blank = 0
        if size:
            for nth in range(size):
                text[out] = decoded[nth]
                out += 1
            at = behind
        else:
            text[out] = byte
            out += 1
            at += 1
    state[OUT], state[BLANK] = out, blank


@compiled
def _part(state, text, nodes, blocks, spans):
    """Write what is between the text so far and what follows: a blank, a line end, or the end of a block."""
    out = state[OUT]
    if state[BREAKS] >= 2 and out > state[RUN]:
        _flush(state, text, nodes, blocks, spans)
    elif out > state[RUN]:
        text[out] = NEWLINE if state[BREAKS] else SPACE
        state[OUT] = out + 1
    state[BREAKS] = state[BLANK] = 0
    return state[OUT]


@compiled
def _append_code(page, at, end, text, state, decoded):
    out = state[OUT]
    if state[BREAKS]:
        if out > state[RUN] and text[out - 1] != NEWLINE:
            text[out] = NEWLINE
            out += 1
        state[BREAKS] = 0
    while at < end:
        byte = page[at]
        if byte == AMPERSAND:
            size, behind = read_reference(page, at, end, decoded)
            if size:
                for nth in range(size):
                    text[out] = decoded[nth]
                    out += 1
                at = behind
                continue
        at += 1
        if byte == RETURN:
            if at < end and page[at] == NEWLINE:
                continue
            byte = np.uint8(NEWLINE)
        if out == state[RUN] and byte == NEWLINE:
            continue
        text[out] = byte
        out += 1
    state[OUT] = out


# --- blocks


@compiled
def _flush(state, text, nodes, blocks, spans):
    """End the block whose text was read since the last one, if there is any."""
    start, end = state[RUN], state[OUT]
    while end > start and text[end - 1] <= SPACE:
        end -= 1
    state[BLANK] = state[BREAKS] = 0
    if end == start:
        state[OUT] = start
        return
    _end_spans(state, spans, end)
    node, at = state[NODE], state[BLOCKS]
    blocks[at, B_START], blocks[at, B_END], blocks[at, B_NODE] = start, end, node
    blocks[at, B_KIND] = CODE if state[PRE] else nodes[node, N_KIND]
    blocks[at, B_LEVEL] = nodes[node, N_LEVEL]
    blocks[at, B_MARKER], blocks[at, B_EMPTY] = NO_MARKER, 0
    item = nodes[node, N_ITEM]
    if item >= 0 and item == state[ITEM]:
        if blocks[at, B_KIND] != HEADED:
            blocks[at, B_MARKER] = state[MARKER]
        state[ITEM] = -1
    hidden = state[HIDDEN] > 0 or (state[UNSEEN] > 0 and state[UNSEEN_NODE] != node)
    blocks[at, B_FLAGS] = (IS_HIDDEN if hidden else 0) | (IS_QUOTED if nodes[node, N_QUOTED] else 0)
    state[BLOCKS] = at + 1
    text[end] = NEWLINE
    state[RUN] = state[OUT] = end + 1
    _begin_spans(state)


@inlined
def _end_spans(state, spans, end):
    """End the links and stresses that are open where a block ends."""
    for kind in range(LINK, RAISED_SPAN + 1):
        if state[OPEN + kind]:
            _span(state, spans, kind, state[STARTED + kind], end)


@inlined
def _begin_spans(state):
    for kind in range(LINK, RAISED_SPAN + 1):
        state[STARTED + kind] = state[OUT]


@inlined
def _span(state, spans, kind, start, end):
    if end > start and state[SPANS] < len(spans):
        at = state[SPANS]
        spans[at, 0], spans[at, 1], spans[at, 2] = kind, start, end
        state[SPANS] = at + 1


# --- elements


@compiled
def _start_tag(page, at, text, state, stack, keys, nodes, blocks, spans, holes, values):
    """Open the element whose tag is here; return where the text behind its tag begins."""
    start, end = at, len(page)
    key, at, hyphenated = read_key(page, at + 1, end)
    tag = tag_of(key, hyphenated)
    bits = BITS[tag]
    at = read_attributes(page, at, end, values)
    if at > end or (at == end and page[end - 1] != GREATER):
        return end
    if _draws_formula(page, tag, values):
        behind = _element_end(page, at, end, key, is_nested=tag != _SCRIPT)
        if behind > at:
            _hole(state, text, nodes, blocks, spans, holes, start, behind)
            return behind
    if bits & RAW:
        behind = _raw_end(page, at, state[UNDRAWN_END] if at <= state[UNDRAWN_END] else end, key)
        if tag == _TITLE and state[TITLE] < 0:
            state[TITLE], state[TITLE_END] = at, behind
        return behind
    if tag == _TEMPLATE and max(values[attribute.SHADOW, 0], values[attribute.OLD_SHADOW, 0]) >= 0:
        tag, bits, state[NEEDS_TREE] = np.int64(_DIV), BITS[_DIV], 1
    if bits & SKIPPED:
        behind = _element_end(page, at, end, key, is_nested=True)
        return max(at, behind)
    if tag in (_HTML, _HEAD, _BODY):
        return at  # one that is hidden is shown by a script
    if bits & VOID:
        _void(page, start, at, tag, text, state, nodes, blocks, spans, holes, values)
        if tag == _HR:
            _imply_ends(tag, bits, state, stack, keys, text, nodes, blocks, spans)
            _flush(state, text, nodes, blocks, spans)
        return at
    _imply_ends(tag, bits, state, stack, keys, text, nodes, blocks, spans)
    if tag == _BUTTON:
        if nodes[state[NODE], N_KIND] == HEADED and values[attribute.EXPANDED, 0] < 0:
            behind = _count_end(page, at, end)
            if behind:
                return behind
        if _is_inline_button(state, nodes):
            tag, bits = np.int64(_SPAN), BITS[_SPAN]
    if tag == _CODE_TAG and state[RUN] < state[OUT] == state[CODE_END] and _is_in_pre(state[HEIGHT], stack):
        state[BREAKS] = max(state[BREAKS], 1)
    _push(page, tag, bits, key, state, stack, keys, text, nodes, blocks, spans, values)
    if tag == _Q:
        _sign(state, text, nodes, blocks, spans)
        state[NEEDS_TREE] = 1  # of quotations within others, and of those that have their signs
    elif values[attribute.CLASS, 0] >= 0 and _is_icon(page, values):
        return _behind_ligature(page, at, end)
    elif tag == _NOSCRIPT:  # for browsers it is text, in which an unclosed frame cannot take the rest of the page
        state[UNDRAWN_END] = _raw_end(page, at, end, key)
    return at


@inlined
def _is_in_pre(height, stack):
    """Return whether an element at this height of the stack is a child of a `pre`."""
    return height > 0 and stack[height - 1, S_TAG] == _PRE


@inlined
def _is_inline_button(state, nodes):
    """Return whether a button is part of a sentence or says a heading, as those of answers that fold."""
    tag = nodes[state[NODE], N_TAG]
    return (BITS[tag] & HEADING) != 0 or tag in (_P, _DT, _SUMMARY) or state[OUT] > state[RUN]


@compiled
def _count_end(page, at, end):
    """Return where a button ends that says a number and at most one word ("11 claps" unfolds nothing), else 0."""
    words, in_word, most = 0, False, min(end, at + _LONGEST_COUNT)
    while at < most:
        byte = page[at]
        if byte == LESS and at + 1 < end:
            other, behind, _ = read_key(page, at + 1 + (page[at + 1] == SLASH), end)
            while behind < end and page[behind] != GREATER:
                behind += 1
            if other == _BUTTON_KEY:
                return behind + 1 if page[at + 1] == SLASH and words and behind < end else 0
            at = behind + 1
            continue
        size = _blank(page, at, end)
        if size:
            in_word = False
            at += size
            continue
        words += not in_word
        is_of_number = 48 <= byte <= 57 or (in_word and (byte in (44, 46) or lower(byte) in (107, 109)))
        if words > 2 or (words == 1 and not is_of_number):
            return 0
        in_word = True
        at += 1
    return 0


@inlined
def _blank(page, at, end):
    """Return the bytes of the blank that is here, also of one that does not break; 0 for none."""
    if page[at] <= SPACE:
        return 1
    if page[at] == 0xC2 and at + 1 < end and page[at + 1] == 0xA0:
        return 2
    return len(_NO_BREAK) if equals(page, at, min(at + len(_NO_BREAK), end), _NO_BREAK) else 0


@compiled
def _is_icon(page, values):
    """Return whether a class is of a font that draws names as pictures."""
    first, last = values[attribute.CLASS, 0], values[attribute.CLASS, 1]
    if first < 0:
        return False
    for at in range(first, last):
        if (at == first or page[at - 1] <= SPACE) and (
            _is_word(page, at, last, _ICONS)
            or _is_word(page, at, last, _SYMBOLS)
            or _is_word(page, at, last, _GOOGLE_SYMBOLS)
        ):
            return True
    return False


@compiled
def _behind_ligature(page, at, end):
    """Return what is behind the name of a picture that is all of an element, else the same place."""
    place, size = at, 0
    while place < end and page[place] <= SPACE:
        place += 1
    while place < end and (97 <= page[place] <= 122 or 48 <= page[place] <= 57 or page[place] == UNDERSCORE):
        place += 1
        size += 1
    while place < end and page[place] <= SPACE:
        place += 1
    is_whole = size and place + 1 < end and page[place] == LESS and page[place + 1] == SLASH
    return place if is_whole else at


@inlined
def _void(page, start, at, tag, text, state, nodes, blocks, spans, holes, values):
    if tag == _BR:
        if state[PRE]:
            if not state[UNSEEN]:
                text[state[OUT]] = NEWLINE
                state[OUT] += 1
        else:
            state[BREAKS] += 1
            state[BLANK] = 0
    elif tag == _IMG and _draws_text(page, values):
        _hole(state, text, nodes, blocks, spans, holes, start, at)


@compiled
def _draws_text(page, values):
    """Return whether an image may be a formula or an emoji: it has an alternative text, and says so."""
    first, last = values[attribute.ALT, 0], values[attribute.ALT, 1]
    if first < 0 or last == first:
        return False
    at = first
    while at < last:
        if page[at] in (92, 123) or page[at] >= 0xE2 or (page[at] == AMPERSAND and last - first < 16):
            return True
        at += 1
    for value in (attribute.CLASS, attribute.SRC):
        first, last = values[value, 0], values[value, 1]
        if first >= 0 and (
            has_word(page, first, last, _LATEX)
            or has_word(page, first, last, _EQUATION)
            or has_word(page, first, last, _MIMETEX)
            or has_word(page, first, last, _MATH_WORD)
            or has_word(page, first, last, _EMOJI)
            or has_word(page, first, last, _SMILEY)
        ):
            return True
    return False


@compiled
def _draws_formula(page, tag, values):
    """Return whether an element is drawn as a formula, by its kind or by the names of the libraries that draw it."""
    if tag in (_MATH, _MJX) or values[attribute.LATEX, 0] >= 0:
        return True
    if tag == _SCRIPT:
        first, last = values[attribute.TYPE, 0], values[attribute.TYPE, 1]
        return first >= 0 and has_word(page, first, last, _TEX_SCRIPT)
    first, last = values[attribute.CLASS, 0], values[attribute.CLASS, 1]
    if first < 0 or tag not in (_SPAN, _DIV):
        return False
    while last > first and page[last - 1] <= SPACE:
        last -= 1
    return _begins(page, first, last)


@inlined
def _begins(page, first, last):
    """Return whether a class begins as that of a formula by KaTeX, MathJax or MediaWiki."""
    return (
        _is_word(page, first, last, _KATEX)
        or _is_word(page, first, last, _MATHJAX)
        or _is_word(page, first, last, _MWE)
    )


@inlined
def _is_word(page, first, last, word):
    if last - first < len(word):
        return False
    for nth in range(len(word)):
        if lower(page[first + nth]) != word[nth]:
            return False
    behind = first + len(word)
    return behind == last or page[behind] <= SPACE or page[behind] in (UNDERSCORE, HYPHEN)


@compiled
def _hole(state, text, nodes, blocks, spans, holes, start, end):
    """Leave a hole in the text for what a part of the page draws."""
    if (state[UNSEEN] and state[UNSEEN_NODE] == state[NODE]) or state[HOLES] == len(holes):
        return
    if state[BLANK] or state[BREAKS]:
        _part(state, text, nodes, blocks, spans)
    text[state[OUT]] = HOLE
    state[OUT] += 1
    holes[state[HOLES], 0], holes[state[HOLES], 1] = start, end
    state[HOLES] += 1


@inlined
def _sign(state, text, nodes, blocks, spans):
    """Write the quotation mark that a browser adds."""
    if state[UNSEEN] and state[UNSEEN_NODE] == state[NODE]:
        return
    if state[BLANK] or state[BREAKS]:
        _part(state, text, nodes, blocks, spans)
    text[state[OUT]] = 34
    state[OUT] += 1


@compiled
def _element_end(page, at, end, key, is_nested):
    """Return where an element ends whose tag ended at `at`; `at` if nothing closes it."""
    start, depth = at, 1
    while at < end:
        if page[at] != LESS or at + 1 == end:
            at += 1
            continue
        closes = page[at + 1] == SLASH
        if not closes and not is_letter(page[at + 1]):
            at = _declaration_end(page, at + 1, end) if page[at + 1] == EXCLAMATION_MARK else at + 1
            continue
        other, behind, _ = read_key(page, at + 1 + closes, end)
        while behind < end and page[behind] != GREATER:
            behind += 1
        if other == key and (closes or is_nested) and behind < end:
            if closes:
                depth -= 1
            elif page[behind - 1] != SLASH:
                depth += 1
            if depth == 0:
                return behind + 1
        at = behind + 1 if is_nested else at + 1
    return start


@compiled
def _raw_end(page, at, end, key):
    """Return where the tag begins that closes an element without markup in it; the end of the page if none does."""
    while at + 1 < end:
        if page[at] == LESS and page[at + 1] == SLASH:
            other, _, _ = read_key(page, at + 2, end)
            if other == key:
                return at
        at += 1
    return end


@compiled
def _push(page, tag, bits, key, state, stack, keys, text, nodes, blocks, spans, values):
    """Put an element on the stack, and open the node of one that makes blocks."""
    if bits & BLOCK:
        _break(state, text, nodes, blocks, spans)
    if state[HEIGHT] == DEEPEST:
        return
    at, changes = state[HEIGHT], 0
    is_label = state[OPEN + LINK] > 0 or nodes[state[NODE], N_KIND] == HEADED  # a link or headline that is a picture
    is_hidden = is_unseen(page, values) or (not is_label and is_for_screen_readers(page, values))
    is_hidden = is_hidden or (bits & UNDRAWN and not (tag == _DIALOG and values[attribute.OPEN, 0] >= 0))
    if bits & BLOCK and state[PRE] == 0:
        _open_node(page, tag, bits, state, nodes, values)
        changes |= _MADE_NODE
        if is_hidden:
            state[HIDDEN] += 1
            changes |= _HID
    elif is_hidden or tag in (_RT, _RP, _RTC):
        if state[UNSEEN] == 0:
            state[UNSEEN_NODE] = state[NODE]
        state[UNSEEN] += 1
        changes |= _UNSAW
    if tag in (_PRE, _LISTING):
        state[PRE] += 1
        changes |= _IN_PRE
    kind = _span_kind(tag, bits, values)
    if kind != _NO_SPAN:
        if state[OPEN + kind] == 0:
            state[STARTED + kind] = _front(state)
        state[OPEN + kind] += 1
    state[PARAGRAPHS] += tag == _P
    stack[at, S_TAG], stack[at, S_BITS], stack[at, S_SPAN] = tag, changes, kind
    keys[at] = key
    state[HEIGHT] = at + 1


@inlined
def _span_kind(tag, bits, values):
    """Return which kind of span the text of an element is."""
    if tag == _A and values[attribute.HREF, 0] >= 0:
        return LINK
    if bits & STRONG:
        return STRONG_SPAN
    if bits & EMPHASIS:
        return EMPHASIS_SPAN
    if tag == _SUP:
        return RAISED_SPAN
    return CODE_SPAN if tag in (_CODE_TAG, _KBD, _SAMP) else _NO_SPAN


@inlined
def _front(state):
    """Return where the text of an element begins that opens now: behind the blank that is still to be written."""
    return state[OUT] + (1 if (state[BLANK] or state[BREAKS]) and state[OUT] > state[RUN] else 0)


@inlined
def _break(state, text, nodes, blocks, spans):
    """End a block, or in code a line."""
    if state[PRE]:
        state[BREAKS] = 1
    else:
        _flush(state, text, nodes, blocks, spans)


@compiled
def _open_node(page, tag, bits, state, nodes, values):
    """Open a node below the one that is open."""
    parent, node = state[NODE], state[NODES]
    state[NODES], state[NODE] = node + 1, node
    nodes[node, N_TAG], nodes[node, N_PARENT], nodes[node, N_FIRST] = tag, parent, state[BLOCKS]
    nodes[node, N_LIST], nodes[node, N_ITEM] = nodes[parent, N_LIST], nodes[parent, N_ITEM]
    nodes[node, N_QUOTED] = nodes[parent, N_QUOTED] + (tag == _BLOCKQUOTE)
    nodes[node, N_KIND], nodes[node, N_LEVEL] = nodes[parent, N_KIND], nodes[parent, N_LEVEL]
    nodes[node, N_NEXT] = nodes[node, N_STEP] = nodes[node, N_STYLE] = 0
    if bits & HEADING:
        nodes[node, N_KIND], nodes[node, N_LEVEL] = HEADED, tag - _H1 + 1
    elif tag in (_TD, _TH):
        nodes[node, N_KIND] = CELLED
    elif tag == _TABLE:
        nodes[node, N_KIND] = PARAGRAPH
    elif tag == _DT:
        nodes[node, N_KIND] = TERM
    elif tag == _DD:
        nodes[node, N_KIND] = DEFINITION
    elif tag in (_FIGCAPTION, _CAPTION, _LEGEND):
        nodes[node, N_KIND] = CAPTION
    elif bits & LIST:
        _open_list(page, tag, node, parent, nodes, values)
    elif tag == _LI:
        _open_item(page, node, state, nodes, values)


@inlined
def _open_list(page, tag, node, parent, nodes, values):
    nodes[node, N_LIST] = node
    nodes[node, N_LEVEL] = (nodes[parent, N_LEVEL] if nodes[parent, N_LIST] >= 0 else 0) + 1
    nodes[node, N_KIND] = PARAGRAPH
    if tag == _OL:
        is_reversed = values[attribute.REVERSED, 0] >= 0
        nodes[node, N_STEP] = -1 if is_reversed else 1
        default = 0 if is_reversed else 1  # of a reversed list: its number of items is added at the end
        first, last = values[attribute.START, 0], values[attribute.START, 1]
        nodes[node, N_NEXT] = whole_number(page, first, last, default) if first >= 0 else default
        if is_reversed and first < 0:
            nodes[node, N_STYLE] = 3
        first, last = values[attribute.TYPE, 0], values[attribute.TYPE, 1]
        if first >= 0 and last == first + 1 and page[first] in (65, 97):
            nodes[node, N_STYLE] = 1 if page[first] == 97 else 2


@inlined
def _open_item(page, node, state, nodes, values):
    """Make the next block the first of an item."""
    nodes[node, N_KIND], nodes[node, N_ITEM] = ITEMIZED, node
    within = nodes[node, N_LIST]
    state[ITEM], state[MARKER] = node, BULLET
    if within >= 0 and nodes[within, N_TAG] == _OL:
        first, last = values[attribute.VALUE, 0], values[attribute.VALUE, 1]
        number = nodes[within, N_NEXT]
        if first >= 0:
            number = whole_number(page, first, last, number)
        nodes[within, N_NEXT] = number + nodes[within, N_STEP]
        state[MARKER] = number


@compiled
def _pop(state, stack, text, nodes, blocks, spans):
    """Close the element on top of the stack."""
    at = state[HEIGHT] - 1
    tag, changes = stack[at, S_TAG], stack[at, S_BITS]
    if changes & _MADE_NODE:
        _flush(state, text, nodes, blocks, spans)
        node = state[NODE]
        nodes[node, N_LAST] = state[BLOCKS]
        if tag == _TR:
            _join_row(node, state, text, nodes, blocks, spans)
            nodes[node, N_LAST] = state[BLOCKS]
        elif tag == _TABLE:
            _settle_cells(nodes[node, N_FIRST], state[BLOCKS], blocks)
        state[NODE] = nodes[node, N_PARENT]
        if state[ITEM] == node:
            state[ITEM] = -1
    elif state[PRE] and BITS[tag] & BLOCK:
        state[BREAKS] = 1
    _undo(at, state, stack, spans)
    state[HEIGHT] = at


@compiled
def _undo(at, state, stack, spans):
    """Take back what an element of the stack changed for the text within it."""
    changes, kind = stack[at, S_BITS], stack[at, S_SPAN]
    if changes & _HID:
        state[HIDDEN] -= 1
    if changes & _UNSAW:
        state[UNSEEN] -= 1
    if changes & _IN_PRE:
        state[PRE] -= 1
    if kind != _NO_SPAN:
        state[OPEN + kind] -= 1
        if state[OPEN + kind] == 0:
            _span(state, spans, kind, state[STARTED + kind], state[OUT])
    state[PARAGRAPHS] -= stack[at, S_TAG] == _P
    if stack[at, S_TAG] == _CODE_TAG and _is_in_pre(at, stack):
        state[CODE_END] = state[OUT]


@inlined
def _pop_to(height, state, stack, text, nodes, blocks, spans):
    while state[HEIGHT] > height:
        _pop(state, stack, text, nodes, blocks, spans)


@inlined
def _is_scope(tag):
    """Return whether an element bounds what end tags within it can close."""
    return tag == _TABLE or (BITS[tag] & CELL) != 0 or tag in (_CAPTION, _BUTTON)


@compiled
def _imply_ends(tag, bits, state, stack, keys, text, nodes, blocks, spans):
    """Close what ends where this element begins."""
    if bits & CLOSES_P and state[PARAGRAPHS]:
        at = state[HEIGHT] - 1
        while at >= 0 and not _is_scope(stack[at, S_TAG]):
            if stack[at, S_TAG] == _P:
                _pop_to(at, state, stack, text, nodes, blocks, spans)
                break
            at -= 1
    top = state[HEIGHT] - 1
    if bits & HEADING and top >= 0 and BITS[stack[top, S_TAG]] & HEADING:
        _pop(state, stack, text, nodes, blocks, spans)
    elif tag in (_LI, _DD, _DT):
        _end_item(tag, state, stack, text, nodes, blocks, spans)
    elif tag in (_TR, _TBODY, _THEAD, _TFOOT) or bits & CELL:
        _end_rows(tag, state, stack, text, nodes, blocks, spans)
    elif tag in (_A, _BUTTON):
        at = state[HEIGHT] - 1
        while at >= 0 and not _is_scope(stack[at, S_TAG]):
            if stack[at, S_TAG] == tag:
                _close(at, state, stack, keys, text, nodes, blocks, spans)
                break
            at -= 1


@compiled
def _end_item(tag, state, stack, text, nodes, blocks, spans):
    at = state[HEIGHT] - 1
    while at >= 0:
        other = stack[at, S_TAG]
        if (tag == _LI and other == _LI) or (tag != _LI and other in (_DD, _DT)):
            _pop_to(at, state, stack, text, nodes, blocks, spans)
            return
        if BITS[other] & BLOCK and other not in (_ADDRESS, _DIV, _P):
            return
        at -= 1


@compiled
def _end_rows(tag, state, stack, text, nodes, blocks, spans):
    """Close the cell, row or group of rows of the same table that ends where another one begins."""
    at, height = state[HEIGHT] - 1, -1
    while at >= 0 and stack[at, S_TAG] != _TABLE:
        other = stack[at, S_TAG]
        is_cell = (BITS[other] & CELL) != 0 or other == _CAPTION
        is_row = other == _TR and (BITS[tag] & CELL) == 0
        is_group = other in (_TBODY, _THEAD, _TFOOT) and tag in (_TBODY, _THEAD, _TFOOT)
        if is_cell or is_row or is_group:
            height = at
        at -= 1
    if at >= 0 and height >= 0:
        _pop_to(height, state, stack, text, nodes, blocks, spans)


@compiled
def _close(at, state, stack, keys, text, nodes, blocks, spans):
    """Close an element of the stack: alone if it is formatting, with what is in it if not."""
    top = state[HEIGHT] - 1
    if at == top or not (BITS[stack[at, S_TAG]] & FORMATTING):
        _pop_to(at, state, stack, text, nodes, blocks, spans)
        return
    _undo(at, state, stack, spans)
    for place in range(at, top):
        for field in range(S_FIELDS):
            stack[place, field] = stack[place + 1, field]
        keys[place] = keys[place + 1]
    state[HEIGHT] = top


@compiled
def _end_tag(page, at, text, state, stack, keys, nodes, blocks, spans):
    """Close the element whose end tag is here; return where the text behind it begins."""
    end = len(page)
    key, at, hyphenated = read_key(page, at + 2, end)
    while at < end and page[at] != GREATER:
        at += 1
    at += 1
    tag = tag_of(key, hyphenated)
    bits = BITS[tag]
    if tag == _BR:
        state[BREAKS] += 1
        return at
    if tag in (_BODY, _HTML, _HEAD) or bits & (VOID | RAW) or (bits & SKIPPED and tag != _TEMPLATE):
        return at
    if tag == _Q:
        state[BLANK] = 0
        _sign(state, text, nodes, blocks, spans)
    if (tag == _P and not state[PARAGRAPHS]) or (bits & BLOCK and state[HEIGHT] == DEEPEST):
        _break(state, text, nodes, blocks, spans)
    place, is_table = state[HEIGHT] - 1, tag == _TABLE
    is_row = tag in (_TR, _TBODY, _THEAD, _TFOOT) or (bits & CELL) != 0
    while place >= 0:
        other = stack[place, S_TAG]
        is_same = keys[place] == key
        if is_same or (bits & HEADING and BITS[other] & HEADING):
            _close(place, state, stack, keys, text, nodes, blocks, spans)
            break
        if other == _TABLE or (not is_table and not is_row and _is_scope(other)):
            break
        if not bits & BLOCK and not bits & FORMATTING and BITS[other] & BLOCK:
            break
        if tag == _LI and BITS[other] & LIST:
            break
        place -= 1
    return at


# --- lists


@inlined
def outermost_list(nodes, blocks, block):
    """Return the list that a block is in, and in no other one; -1 for none."""
    within = nodes[blocks[block, B_NODE], N_LIST]
    while within >= 0 and nodes[nodes[within, N_PARENT], N_LIST] >= 0:
        within = nodes[nodes[within, N_PARENT], N_LIST]
    return within


# --- rows of tables

_LEFT_OUT = -(1 << 30)  # how far the text of a cell moves that is not written
_LONG_CELL, _LONG_CELL_LINES = 300, 2
"""Bytes and line ends above which a cell is laid out as a block: tables are used for layout, too."""


@compiled
def _join_row(row, state, text, nodes, blocks, spans):
    """Join the blocks of a row whose cells have one each to one block, cells parted by tabs."""
    first, last = nodes[row, N_FIRST], state[BLOCKS]
    if last == first or not _is_row(row, first, last, state, text, nodes, blocks):
        return
    start, end = blocks[first, B_START], blocks[last - 1, B_END]
    blocks[first, B_EMPTY] = _empty_cells(row, first, state, nodes)
    if last - first == 1:
        if blocks[first, B_KIND] == CELLED:
            blocks[first, B_KIND] = LONE_CELL
        return
    is_shown = _first_shown(first, last, blocks)
    copy = state[OUT]  # the bytes behind the text are free
    for at in range(start, end):
        text[copy + at - start] = text[at]
    out, block = start, first
    for node in range(row + 1, state[NODES]):
        if nodes[node, N_PARENT] != row:
            continue
        has_block = nodes[node, N_LAST] > nodes[node, N_FIRST] and block < last
        if has_block and is_shown < last and blocks[block, B_FLAGS] & IS_HIDDEN:
            for at in range(blocks[block, B_START] - start, blocks[block, B_END] - start):
                if text[copy + at] == HOLE:  # holes are known by their number
                    text[out] = HOLE
                    out += 1
            blocks[block, B_LEVEL] = _LEFT_OUT
            block += 1
            continue
        if out > start:
            text[out] = TAB
            out += 1
        if has_block:
            source = blocks[block, B_START] - start
            stop = blocks[block, B_END] - start
            blocks[block, B_LEVEL] = out - blocks[block, B_START]  # how far its text moves
            for at in range(source, stop):
                text[out] = SPACE if text[copy + at] in (NEWLINE, TAB) else text[copy + at]
                out += 1
            block += 1
    while out > start and text[out - 1] == TAB:
        out -= 1
    _move_spans(state, spans, blocks, first, block, start)
    if is_shown < last:
        blocks[first, B_FLAGS] = blocks[is_shown, B_FLAGS]
    blocks[first, B_LEVEL] = nodes[row, N_LEVEL]
    blocks[first, B_END], blocks[first, B_KIND], blocks[first, B_NODE] = out, ROW, row
    blocks[first, B_MARKER] = NO_MARKER
    for node in range(row + 1, state[NODES]):
        nodes[node, N_FIRST], nodes[node, N_LAST] = first, first
    text[out] = NEWLINE
    state[BLOCKS], state[RUN], state[OUT] = first + 1, out + 1, out + 1
    _begin_spans(state)


@inlined
def _first_shown(first, last, blocks):
    """Return the first block that is not hidden, the end if there is none."""
    while first < last and blocks[first, B_FLAGS] & IS_HIDDEN:
        first += 1
    return first


@inlined
def _empty_cells(row, first, state, nodes):
    """Return how many cells of a row are before the one that has its first block."""
    count = 0
    for node in range(row + 1, state[NODES]):
        if nodes[node, N_PARENT] == row:
            if nodes[node, N_LAST] > first:
                break
            count += 1
    return count


@inlined
def _settle_cells(first, last, blocks):
    """Make rows of those with one cell where a table has others, and paragraphs of all other cells.

    A column that is empty in all rows is none.
    """
    lone, empty = PARAGRAPH, DEEPEST
    for block in range(first, last):
        if blocks[block, B_KIND] == ROW:
            lone, empty = ROW, min(empty, blocks[block, B_EMPTY])
    for block in range(first, last):
        blocks[block, B_EMPTY] = max(blocks[block, B_EMPTY] - empty, 0)
        if blocks[block, B_KIND] == LONE_CELL:
            blocks[block, B_KIND] = lone
        elif blocks[block, B_KIND] == CELLED:
            blocks[block, B_KIND] = PARAGRAPH


@inlined
def _is_row(row, first, last, state, text, nodes, blocks):
    """Return whether each cell of a row has at most one short block, and no table."""
    for node in range(row + 1, state[NODES]):
        if nodes[node, N_TAG] == _TABLE or (
            nodes[node, N_PARENT] == row and nodes[node, N_LAST] - nodes[node, N_FIRST] > 1
        ):
            return False
    for block in range(first, last):
        if blocks[block, B_KIND] in (CODE, HEADED):
            return False
        if blocks[block, B_NODE] == row:
            return False
        if blocks[block, B_END] - blocks[block, B_START] > _LONG_CELL:
            lines = 0
            for at in range(blocks[block, B_START], blocks[block, B_END]):
                lines += text[at] == NEWLINE
            if lines >= _LONG_CELL_LINES:
                return False
    return True


@inlined
def _move_spans(state, spans, blocks, first, last, start):
    """Move each span of a row once, as far as the text of its cell; those of a cell that is left out become empty."""
    at = state[SPANS] - 1
    while at >= 0 and spans[at, 2] >= start - 4096:
        for block in range(first, last):
            if blocks[block, B_START] <= spans[at, 1] and spans[at, 2] <= blocks[block, B_END]:
                shift = blocks[block, B_LEVEL]
                if shift == _LEFT_OUT:
                    spans[at, 2] = spans[at, 1]
                else:
                    spans[at, 1] += shift
                    spans[at, 2] += shift
                break
        at -= 1
