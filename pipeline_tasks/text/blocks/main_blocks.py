"""Chooses the blocks of a page that are its main text: by the model's scores, and by what must not be parted."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import measures as m
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.choice import best_cut
from pipeline_tasks.text.blocks.coupling import coupled, relations
from pipeline_tasks.text.blocks.features import NAMES, block_features, shown_blocks
from pipeline_tasks.text.blocks.model import Model, score_blocks
from pipeline_tasks.text.blocks.reading import (
    B_KIND,
    B_LEVEL,
    B_NODE,
    CODE,
    HEADED,
    N_LIST,
    ROW,
)

_TITLE = NAMES.index("is_title")
_IS_TITLE = 153  # of 255: so much of a heading is the page's title


class Choice(NamedTuple):
    """The scores of a page's blocks, which it shows, the score from which on they were chosen, and which were."""

    scores: npt.NDArray[np.int32]
    shown: npt.NDArray[np.bool_]
    cut: int
    chosen: npt.NDArray[np.bool_]


def main_blocks(blocks: Blocks, page: npt.NDArray[np.uint8], model: Model, beta: float) -> Choice:
    """Return which blocks are the main text of their page: the set with the greatest expected F-beta.

    Neighbors decide together (`coupling`). What is hidden is not in it. A headline is, where there is any text; a
    heading is not, if nothing of its section is; of lines of code that are numbered beside it, the numbers are not.
    """
    features = block_features(blocks, page)
    scores = score_blocks(features, model)
    shown = shown_blocks(blocks)
    scores[shown] = coupled(scores[shown], relations(blocks, shown), model.couplings)
    cut = best_cut(scores[shown], blocks.words[shown], beta)
    chosen = shown & (scores >= cut)
    _settle(blocks.table, blocks.nodes, blocks.measures, features[:, _TITLE], shown, chosen)
    return Choice(scores, shown, cut, chosen)


@compiled
def _settle(table, nodes, rows, titles, shown, chosen):
    """Change the choice where blocks belong together."""
    _drop_line_numbers(table, rows, chosen)
    _keep_introduced(table, nodes, rows, shown, chosen)
    _drop_empty_headings(table, shown, chosen)
    _keep_headline(table, rows, titles, shown, chosen)


@inlined
def _drop_line_numbers(table, rows, chosen):
    """Leave code out that is numbers alone, beside other code."""
    for block in range(len(table)):
        if table[block, B_KIND] == CODE and rows[block, m.DIGITS] and _is_numbers(rows[block]):
            before = block > 0 and table[block - 1, B_KIND] == CODE
            behind = block + 1 < len(table) and table[block + 1, B_KIND] == CODE
            if before or behind:
                chosen[block] = False


@inlined
def _is_numbers(row):
    return row[m.DIGITS] + row[m.LINES] >= row[m.CHARS] - row[m.SIGNS] and row[m.WORDS] == row[m.LINES] + 1


@inlined
def _keep_introduced(table, nodes, rows, shown, chosen):
    """Keep the list, the rows or the code that a line introduces whose colon nothing else follows."""
    for block in range(len(table) - 1):
        if not chosen[block] or rows[block, m.ENDS] != m.END_COLON or chosen[block + 1]:
            continue
        kind, first = table[block + 1, B_KIND], block + 1
        within = nodes[table[first, B_NODE], N_LIST]
        if kind not in (CODE, ROW) and (within < 0 or within == nodes[table[block, B_NODE], N_LIST]):
            continue
        place = first
        while place < len(table) and shown[place] and _is_same(table, nodes, place, kind, within):
            chosen[place] = True
            place += 1


@inlined
def _is_same(table, nodes, place, kind, within):
    """Return whether a block is in the same list, or of the same kind."""
    if kind in (CODE, ROW):
        return table[place, B_KIND] == kind
    other = nodes[table[place, B_NODE], N_LIST]
    return other >= within and within >= 0 and (other == within or nodes[other, N_LIST] >= within)


@inlined
def _drop_empty_headings(table, shown, chosen):
    """Leave headings out of whose sections something was left out and nothing is kept; not where most are such.

    Those of a listing are its text.
    """
    empty = filled = 0
    for mark in range(2):
        level, lost, kept = np.int64(0), False, False  # of the next heading that is kept, and what is before it
        for block in range(len(table) - 1, -1, -1):
            if table[block, B_KIND] != HEADED:
                kept |= chosen[block]
                lost |= shown[block] and not chosen[block]
                continue
            is_empty = chosen[block] and not kept and lost and level <= table[block, B_LEVEL]
            if mark == 0:
                empty += is_empty
                filled += chosen[block] and not is_empty
            elif is_empty and 3 * empty <= filled:
                chosen[block] = False
            if chosen[block]:
                level, kept, lost = np.int64(table[block, B_LEVEL]), False, False
            elif shown[block]:
                lost = True


@inlined
def _keep_headline(table, rows, titles, shown, chosen):
    """Keep the heading that has the most words of the page's title, and few others, before most of what is kept.

    A site's name is in the title as well, and shorter, and at the end of pages.
    """
    kept = before = np.int64(0)
    for block in range(len(table)):
        kept += rows[block, m.WORDS] if chosen[block] else 0
    best, most = -1, np.int64(0)
    for block in range(len(table)):
        if 2 * before < kept and table[block, B_KIND] == HEADED and shown[block] and titles[block] >= _IS_TITLE:
            words = np.int64(titles[block]) * rows[block, m.WORDS]
            if words > most:
                best, most = block, words
        before += rows[block, m.WORDS] if chosen[block] else 0
    if best >= 0:
        chosen[best] = True
