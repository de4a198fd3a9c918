"""Reads a page into blocks: paragraphs, headings, items, rows, code, with the elements that they are in."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.blocks import attributes, reading
from pipeline_tasks.text.blocks.measures import MEASURES, measure

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int32]

_MOST_HOLES = 5000  # formulas and emoji of a page that are read
_SPARE = 64  # bytes of text beyond those of the page


class Blocks(NamedTuple):
    """The blocks of a page in order, and its elements.

    `text` is UTF-8; block k is `text[table[k, 0] : table[k, 1]]`, its line ends parted by newlines. `table` has the
    columns `reading.B_*`, `nodes` the columns `reading.N_*`, `measures` those of `measures.M_*`. `spans` are links
    and stresses (kind, start and end in `text`); `holes` are parts of the page that are drawn: start and end in the
    page, in the order of the bytes `reading.HOLE` in `text`. `title` is where the page has its title. `needs_tree` says
    that the page has what only a tree of it tells: shadow roots, signs of quotations.
    """

    text: Bytes
    table: Numbers
    nodes: Numbers
    measures: Numbers
    spans: Numbers
    holes: Numbers
    title: tuple[int, int]
    needs_tree: bool

    @property
    def starts(self) -> Numbers:
        """Return where each block begins in `text`."""
        return self.table[:, reading.B_START]

    @property
    def ends(self) -> Numbers:
        """Return where each block ends in `text`."""
        return self.table[:, reading.B_END]

    @property
    def words(self) -> Numbers:
        """Return the words of each block; each letter of a script without blanks is one."""
        return self.measures[:, 0]


def read_blocks(page: Bytes) -> Blocks:
    """Read a page, whose bytes are UTF-8, into blocks. Takes time linear in its bytes."""
    text, table, nodes, spans, holes, measures, title, needs_tree = _read(page, _MOST_HOLES)
    return Blocks(text, table, nodes, measures, spans, holes, (int(title[0]), int(title[1])), bool(needs_tree))


@compiled
def _read(page, most_holes):
    """Return text, blocks, nodes, spans, holes, measures and title of a page, and whether it needs its tree."""
    opening = 0
    for at in range(len(page)):
        opening += page[at] == 60
    text = np.empty(2 * (len(page) + 3 * opening) + _SPARE, np.uint8)  # a row is copied behind it
    state = np.zeros(reading.STATES, np.int64)
    stack = np.empty((reading.DEEPEST, reading.S_FIELDS), np.int64)
    keys = np.empty(reading.DEEPEST, np.uint64)
    nodes = np.empty((opening + 1, reading.N_FIELDS), np.int32)
    blocks = np.empty((2 * opening + 2, reading.B_FIELDS), np.int32)
    spans = np.empty((5 * opening + 5, 3), np.int32)
    holes = np.empty((min(opening, most_holes) + 1, 2), np.int32)
    values = np.empty((attributes.COUNT, 2), np.int64)
    decoded = np.empty(16, np.uint8)
    reading.read_page(page, text, state, stack, keys, nodes, blocks, spans, holes, values, decoded)
    count, elements = state[reading.BLOCKS], state[reading.NODES]
    _number_backwards(blocks, nodes, count)
    table, spans = blocks[:count].copy(), spans[: state[reading.SPANS]].copy()
    measures = np.zeros((count, MEASURES), np.int32)
    measure(text, table, spans, measures)
    return (
        text[: state[reading.OUT]].copy(),
        table,
        nodes[:elements].copy(),
        spans,
        holes[: state[reading.HOLES]].copy(),
        measures,
        (state[reading.TITLE], state[reading.TITLE_END]),
        state[reading.NEEDS_TREE],
    )


@compiled
def _number_backwards(blocks, nodes, count):
    """Add the number of its items to those of a list that counts down to one, and mark numbers that are letters."""
    for block in range(count):
        marker, node = blocks[block, reading.B_MARKER], blocks[block, reading.B_NODE]
        if marker <= reading.BULLET:
            continue
        item = nodes[node, reading.N_ITEM]
        within = nodes[item, reading.N_LIST]
        style = nodes[within, reading.N_STYLE]
        if style == 3:
            blocks[block, reading.B_MARKER] = marker - nodes[within, reading.N_NEXT]
        elif style and 1 <= marker <= 26:
            blocks[block, reading.B_FLAGS] |= reading.IS_LETTER if style == 1 else reading.IS_CAPITAL
