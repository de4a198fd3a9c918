"""Tells words that a text uses from words that it mentions, and from words that are offensive in company only.

A hit is mentioned, and does not count, if two different cues of the lexicon (`slur`, `court`, `patient`, ...) are
within NEAR words of it, or one if the hit is in quotes. A word that is harmless by itself (a name, an animal) is a hit
only if within NEAR words there is a hit that is sure; digits and signs that hide it make it sure. Texts about animals
and bad reviews have many unsure words, so that these are no company to each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.toxicity.folding import folding
from pipeline_tasks.text.toxicity.lexicons import NO_WORD, Table
from pipeline_tasks.text.toxicity.unspaced import find_unspaced
from pipeline_tasks.text.toxicity.words import (
    AFTER,
    BEFORE,
    DISGUISED,
    END,
    FOUND_COLUMNS,
    ORDINAL,
    QUOTED,
    START,
    STATES,
    WORD,
    find_words,
)

NEAR = 20
"""Words on either side of a hit in which its context is looked for."""

CUES, CUES_OF_QUOTES = 2, 1
"""Different cues near a hit that make it a mention, and those near one in quotes."""

USED, MENTIONED, ALONE = range(3)
"""What becomes of a hit: it counts; it is mentioned; it is an unsure word without company."""

ROW, ENTRY, PLACE, FIRST, LAST, FATE = range(6)
"""Columns of hits: row of the texts, entry of the table, number among the words, code points, and fate."""

IN_QUOTES, HIDDEN = 6, 7
HIT_COLUMNS = 8


class Hits(NamedTuple):
    """The hits of texts by row and place, shape (hits, HIT_COLUMNS), and the count of the words of each text."""

    hits: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]


def find_hits(texts: pa.Array, languages: Sequence[int], table: Table) -> Hits:
    """Return the hits of each text by the lexicon of its language; below 0 is none: the text has no words then."""
    offsets, data = views(texts)
    longest = int(np.diff(offsets).max(initial=0))
    found = np.empty((longest // 2 + 2, FOUND_COLUMNS), np.int64)
    scratch = np.empty((2, STATES), np.int64)
    words = np.zeros(len(offsets) - 1, np.int64)
    ranks = np.array(languages, np.int64)
    hits = _find(offsets, data, ranks, folding(), table, scratch, found, words)
    return Hits(hits, words)


# --- Loops --------------------------------------------------------------------------------------------------------


@compiled
def _find(offsets, data, ranks, folding, table, scratch, found, words):
    """Return the hits of all texts, and fill `words`."""
    hits = np.empty((64, HIT_COLUMNS), np.int64)
    cues = np.empty((64, 2), np.int64)
    size = 0
    for row in range(len(ranks)):
        if ranks[row] < 0:
            continue
        first, last, root = offsets[row], offsets[row + 1], table.roots[ranks[row]]
        if table.unspaced[ranks[row]]:
            count, words[row] = find_unspaced(data, first, last, root, folding, table, found)
        else:
            count, words[row] = find_words(data, first, last, root, folding, table, scratch, found)
        if size + count > len(hits):
            larger = np.empty((2 * (size + count), HIT_COLUMNS), np.int64)
            larger[:size] = hits[:size]
            hits = larger
        if count > len(cues):
            cues = np.empty((2 * count, 2), np.int64)
        size = _judge(row, found, count, table, cues, hits, size)
    return hits[:size].copy()


@compiled
def _phrase_at(found, at, count, table):
    """Return the longest phrase that begins with a found word, and its words; NO_WORD and 1 if none does."""
    word = found[at, WORD]
    for phrase in range(table.phrases[word, 0], table.phrases[word, 1]):
        size = 1
        while size < table.phrase_words.shape[1] and table.phrase_words[phrase, size] >= 0:
            follows = at + size < count and found[at + size, ORDINAL] == found[at, ORDINAL] + size
            if not follows or found[at + size, WORD] != table.phrase_words[phrase, size]:
                size = -1
                break
            size += 1
        if size > 0:
            return phrase, size
    return NO_WORD, 1


@compiled
def _judge(row, found, count, table, cues, hits, first):
    """Write the hits among the found words of a text behind `first` hits; return how many hits there are then."""
    at, cued, size = 0, 0, first
    while at < count:
        phrase, length = _phrase_at(found, at, count, table)
        entry = table.phrase_entries[phrase] if phrase >= 0 else table.entries[found[at, WORD]]
        disguised = 0
        for place in range(at, at + length):
            cue = table.cues[found[place, WORD]]
            if cue >= 0:
                cues[cued, 0], cues[cued, 1] = found[place, ORDINAL], cue
                cued += 1
            disguised |= found[place, DISGUISED]
        if entry >= 0 and table.weights[entry] > 0:
            hit = hits[size]
            hit[ROW], hit[ENTRY], hit[PLACE] = row, entry, found[at, ORDINAL]
            hit[FIRST], hit[LAST], hit[FATE] = found[at, START], found[at + length - 1, END], USED
            hit[IN_QUOTES] = found[at, QUOTED] & BEFORE != 0 and found[at + length - 1, QUOTED] & AFTER != 0
            hit[HIDDEN] = disguised
            size += 1
        at += length
    begin = 0
    for rank in range(first, size):
        place = hits[rank, PLACE]
        while begin < cued and cues[begin, 0] < place - NEAR:
            begin += 1
        needed = CUES_OF_QUOTES if hits[rank, IN_QUOTES] else CUES
        if _different(cues, begin, cued, place + NEAR, needed):
            hits[rank, FATE] = MENTIONED
    for rank in range(first, size):
        is_unsure = hits[rank, FATE] == USED and table.unsure[hits[rank, ENTRY]] and not hits[rank, HIDDEN]
        if is_unsure and not _in_company(hits, first, size, rank, table):
            hits[rank, FATE] = ALONE
    return size


@inlined
def _different(cues, begin, end, last, needed):
    """Return whether among cues up to the word `last` so many are different; `needed` is one or two."""
    for place in range(begin, end):
        if cues[place, 0] > last:
            return False
        if needed == 1 or cues[place, 1] != cues[begin, 1]:
            return True
    return False


@compiled
def _in_company(hits, first, size, rank, table):
    """Return whether near an unsure hit there is a sure one that counts."""
    place, begin = hits[rank, PLACE], rank
    while begin > first and hits[begin - 1, PLACE] >= place - NEAR:
        begin -= 1
    for other in range(begin, size):
        if hits[other, PLACE] > place + NEAR:
            return False
        is_sure = not table.unsure[hits[other, ENTRY]] or hits[other, HIDDEN]
        if is_sure and hits[other, FATE] == USED:
            return True
    return False
