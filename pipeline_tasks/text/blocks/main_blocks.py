"""Chooses the blocks of a page that are its main text: by the model's scores, and by what must not be parted."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import is_alphanumeric, is_letter, lower
from pipeline_tasks.text.base.characters import ASCII_END
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks import measures as m
from pipeline_tasks.text.blocks.blocks import Blocks
from pipeline_tasks.text.blocks.choice import best_cut
from pipeline_tasks.text.blocks.coupling import coupled, relations
from pipeline_tasks.text.blocks.features import NAMES, block_features, shown_blocks
from pipeline_tasks.text.blocks.model import Model, score_blocks
from pipeline_tasks.text.blocks.reading import (
    B_END,
    B_KIND,
    B_LEVEL,
    B_NODE,
    B_START,
    CODE,
    HEADED,
    N_LIST,
    ROW,
    outermost_list,
)
from pipeline_tasks.text.blocks.tags import BASIS, PRIME

_TITLE = NAMES.index("is_title")
_IS_TITLE = 153  # of 255: so much of a heading is the page's title
_SAYS_TITLE = 230  # of 255: so much of what is no heading
_LABEL = 300  # bytes of a heading that a list of contents names
_LEAST_CONTENTS = 3  # lines of such a list
_LEAD_IN = 20  # words of the line that introduces one


class Choice(NamedTuple):
    """The scores of a page's blocks, which it shows, the score from which on they were chosen, and which were."""

    scores: npt.NDArray[np.int32]
    shown: npt.NDArray[np.bool_]
    cut: int
    chosen: npt.NDArray[np.bool_]


def main_blocks(blocks: Blocks, page: npt.NDArray[np.uint8], model: Model, beta: float) -> Choice:
    """Return which blocks are the main text of their page: the set with the greatest expected F-beta.

    Neighbors decide together (`coupling`). What is hidden is not in it. A headline is, where there is any text; a
    heading is not, if nothing of its section is; of lines of code that are numbered beside it, the numbers are not; nor
    is a list of contents, which says the headings that follow.
    """
    features = block_features(blocks, page)
    shown = shown_blocks(blocks)
    scores = np.zeros(len(shown), np.int32)
    scores[shown] = coupled(score_blocks(features[shown], model), relations(blocks, shown), model.couplings)
    cut = best_cut(scores[shown], blocks.words[shown], beta)
    chosen = shown & (scores >= cut)
    _settle(blocks.table, blocks.nodes, blocks.measures, blocks.text, features[:, _TITLE], shown, chosen)
    return Choice(scores, shown, cut, chosen)


@compiled
def _settle(table, nodes, rows, text, titles, shown, chosen):
    """Change the choice where blocks belong together."""
    _drop_line_numbers(table, rows, chosen)
    _keep_introduced(table, nodes, rows, shown, chosen)
    _settle_contents(table, nodes, rows, text, shown, chosen)
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


@compiled
def _settle_contents(table, nodes, rows, text, shown, chosen):
    """Leave lists of contents and their lead-in out: links in a row, of which four of five say a heading below.

    Keep the headings that they say where their text is kept: the same words in two places look like no text of either.
    """
    below = _announced(table, rows, text, shown)
    first = 0
    while first < len(table):
        last, count, size = first, 0, 0
        within = outermost_list(nodes, table, first)
        while last < len(table) and (
            not shown[last] or (_is_link(table, rows, last) and outermost_list(nodes, table, last) == within)
        ):
            count += shown[last] and below[last] >= 0
            size += shown[last]
            last += 1
        if count >= _LEAST_CONTENTS and 5 * count >= 4 * size:
            before = first - 1  # the block that ended the run before
            if before >= 0 and table[before, B_KIND] != HEADED and rows[before, m.ENDS] == m.END_COLON:
                chosen[before] &= rows[before, m.WORDS] > _LEAD_IN
            for block in range(first, last):
                chosen[block] = False
                heading = below[block]
                if heading >= 0 and heading + 1 < len(table) and chosen[heading + 1]:
                    chosen[heading] = True
        first = max(last, first + 1)


@inlined
def _is_link(table, rows, block):
    """Return whether a block is a short line, and a link: of a list of contents, or of another one."""
    return (
        table[block, B_KIND] != HEADED
        and table[block, B_END] - table[block, B_START] <= _LABEL
        and 4 * rows[block, m.LINKED] >= 3 * rows[block, m.WORDS]
        and rows[block, m.LINKS] > 0
    )


@compiled
def _announced(table, rows, text, shown):
    """Return the last heading below each link that has its words, -1 for others; numbers before them may differ.

    Each heading is said once.
    """
    is_heading = np.zeros(len(table), np.bool_)
    keys = np.zeros(len(table), np.uint64)
    for block in range(len(table)):
        if not shown[block] or table[block, B_END] - table[block, B_START] > _LABEL:
            continue
        is_heading[block] = table[block, B_KIND] == HEADED
        if is_heading[block] or _is_link(table, rows, block):
            keys[block] = _letters(text, table[block, B_START], table[block, B_END])
    headings = np.flatnonzero(is_heading)
    order = np.argsort(keys[headings], kind="mergesort")
    headings = headings[order]
    known = keys[headings]
    below, is_said = np.full(len(table), -1, np.int64), np.zeros(len(table), np.bool_)
    for block in range(len(table)):
        if keys[block] and not is_heading[block]:
            place = np.searchsorted(known, keys[block], "right") - 1
            heading = headings[place] if place >= 0 and known[place] == keys[block] else -1
            if heading > block and not is_said[heading]:
                below[block], is_said[heading] = heading, True
    return below


@inlined
def _letters(text, start, end):
    """Return the key of the letters and digits of a text from its first letter on, 0 if it has none."""
    key, count = BASIS, 0
    for at in range(start, end):
        is_of_word = is_letter(text[at]) or text[at] >= ASCII_END
        if is_of_word or (count and is_alphanumeric(text[at])):
            key = (key ^ np.uint64(lower(text[at]))) * PRIME
            count += 1
    return key if count else np.uint64(0)


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
    """Keep the headline, which is before most of what is kept.

    It is the heading that has the most words of the page's title, and few others; else the only `h1`, unless it is a
    link; else what is no heading and says the title. A site's name is in the title as well, and shorter, and at the end
    of pages.
    """
    kept = before = lone = np.int64(0)
    for block in range(len(table)):
        kept += rows[block, m.WORDS] if chosen[block] else 0
        lone += shown[block] and table[block, B_KIND] == HEADED and table[block, B_LEVEL] == 1
    best, rank, most = -1, 0, np.int64(0)
    for block in range(len(table)):
        if 2 * before >= kept:
            break
        words, is_link = np.int64(rows[block, m.WORDS]), rows[block, m.LINKED] > 0
        is_heading, of_block = table[block, B_KIND] == HEADED, 0
        if is_heading and titles[block] >= _IS_TITLE:
            of_block = 3
        elif is_heading and table[block, B_LEVEL] == 1 and lone == 1 and not is_link:
            of_block = 2
        elif titles[block] >= _SAYS_TITLE and before == 0 and words > 1 and not is_link:
            of_block = 1
        words *= 2 * np.int64(titles[block]) - 255 if of_block == 3 else 1
        if shown[block] and (of_block > rank or (of_block == rank > 0 and words > most)):
            best, rank, most = block, of_block, words
        before += rows[block, m.WORDS] if chosen[block] else 0
    if best >= 0:
        chosen[best] = True
