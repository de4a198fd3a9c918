"""Says of each block of a page which share of it is main text, by aligning it with the text that people marked.

Runs of up to three words of a block are looked up in the marked text. The chain of greatest weight whose places rise in
both decides, so that a text that the page has twice is main text once, and so that short labels count only where their
neighbors do. A block outside of the chain counts where the marked text has it elsewhere, and nothing else is there.
"""

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.ascii import lower
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.blocks.measures import KINDS, point

_RUN = 3  # words that are looked up at once
_MOST_PLACES = 64  # of a run in the marked text: more frequent ones say nothing
_WEIGHT, _EDGE, _NEXT = 4, 3, 2  # of a run, of each of its ends that is a line's end in both, of one behind another
_APART = 6  # words of a block that may be anywhere in the marked text

_PRIME, _BASIS = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def label_blocks(
    text: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int32],
    ends: npt.NDArray[np.int32],
    gold: npt.NDArray[np.uint8],
) -> npt.NDArray[np.uint8]:
    """Return the share of each block's words, of 255, that the marked text (UTF-8) has at its place.

    A word is a run of letters and digits; in scripts without blanks each letter is one. A block without words has 0.
    Time grows with the words and the logarithm of those of the marked text.
    """
    labels = np.zeros(len(starts), np.uint8)
    keys, last = word_keys(text, starts, ends)
    edges = _line_edges(gold)
    marked, bounds = word_keys(gold, edges[:-1], edges[1:])
    if len(keys) and len(marked):
        _label(keys, last, marked, bounds, labels)
    return labels


def _line_edges(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    return np.concatenate([[0], np.flatnonzero(text == 10) + 1, [len(text)]]).astype(np.int32)


@compiled
def word_keys(text, starts, ends):
    """Return a key of each word of some parts of a text, its ASCII letters folded; and where each part's words end."""
    size = np.int64(0)
    for part in range(len(starts)):
        size += ends[part] - starts[part]
    keys, last = np.empty(size, np.uint64), np.empty(len(starts), np.int64)
    count = 0
    for part in range(len(starts)):
        at, end, key, in_word = np.int64(starts[part]), np.int64(ends[part]), _BASIS, False
        while at < end:
            begin = at
            code, at = point(text, at, end)
            kind = KINDS[code]
            if in_word and kind != 1:
                keys[count] = key
                count += 1
                in_word = False
            if kind:
                key = key if in_word else _BASIS
                for place in range(begin, at):
                    key = (key ^ np.uint64(lower(text[place]))) * _PRIME
                in_word = True
                if kind == 2:
                    keys[count] = key
                    count += 1
                    in_word = False
        if in_word:
            keys[count] = key
            count += 1
        last[part] = count
    return keys[:count].copy(), last


@compiled
def _label(keys, last, marked, bounds, labels):
    """Fill in the labels, from the keys of words of the page and of the marked text."""
    order, heads, sorted_runs = _runs_of(marked)
    edges = np.zeros(len(marked) + 1, np.uint8)
    edges[0] = 1
    for line in range(len(bounds)):
        edges[bounds[line]] = 1
    covered, claimed = np.zeros(len(keys), np.uint8), np.zeros(len(marked), np.uint8)
    _chain(keys, last, marked, edges, order, heads, sorted_runs, covered, claimed)
    start = 0
    for block in range(len(last)):
        end = last[block]
        if end - start >= _APART and 2 * _sum(covered, start, end) < end - start:
            _claim(keys, start, end, order, heads, sorted_runs, covered, claimed)
        if end > start:
            labels[block] = 255 * _sum(covered, start, end) // (end - start)
        start = end


@inlined
def _sum(flags, start, end):
    count = 0
    for at in range(start, end):
        count += flags[at]
    return count


@inlined
def _run_key(keys, at, size):
    key = np.uint64(size)
    for nth in range(size):
        key = (key ^ keys[at + nth]) * _MIX
        key ^= key >> np.uint64(29)
    return key


@compiled
def _runs_of(marked):
    """Return the runs of one to three words of the marked text in order of their keys: place, slots, key.

    `heads` is a table of slots by the upper bits of keys: where the runs with such bits begin.
    """
    count = len(marked)
    runs, places = np.empty(_RUN * count, np.uint64), np.empty(_RUN * count, np.int64)
    filled = 0
    for size in range(1, _RUN + 1):
        for at in range(count - size + 1):
            runs[filled], places[filled] = _run_key(marked, at, size), at
            filled += 1
    by_key = np.argsort(runs[:filled], kind="mergesort")
    sorted_runs = runs[by_key]
    heads = np.searchsorted(sorted_runs, np.arange(4096).astype(np.uint64) << np.uint64(52))
    return places[by_key], heads, sorted_runs


@inlined
def _found(key, heads, sorted_runs):
    """Return where a run is among the sorted ones: first and last place."""
    slot = np.int64(key >> np.uint64(52))
    low, high = heads[slot], heads[slot + 1] if slot + 1 < len(heads) else len(sorted_runs)
    stop = high
    while low < high:
        middle = (low + high) // 2
        if sorted_runs[middle] < key:
            low = middle + 1
        else:
            high = middle
    end = low
    while end < stop and sorted_runs[end] == key:
        end += 1
    return low, end


@compiled
def _chain(keys, last, marked, edges, order, heads, sorted_runs, covered, claimed):
    """Cover the words of the page, and claim those of the marked text, that the chain of greatest weight pairs.

    A Fenwick tree has the heaviest chain that ends before each place of the marked text; of equal ones the latest
    block's, as a headline is next to its text more often than its copies are.
    """
    size = len(marked)
    tree = np.full(size + 1, -1, np.int64)  # a pair's number
    room = 4 * len(keys) + 64
    weights, before = np.empty(room, np.int64), np.empty(room, np.int64)
    at_page, at_gold, lengths = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int8)
    count, best = 0, -1
    latest = np.full(size + 1, -1, np.int64)  # the pair of the run before this one, by its place behind
    stamps = np.full(size + 1, -1, np.int64)
    start = 0
    for block in range(len(last)):
        end = last[block]
        run = min(_RUN, end - start)
        for at in range(start, end - run + 1 if run else start):
            first, behind = _found(_run_key(keys, at, run), heads, sorted_runs)
            if behind - first > _MOST_PLACES:
                continue
            if count + behind - first > len(weights):
                weights, before = _grown(weights), _grown(before)
                at_page, at_gold, lengths = _grown(at_page), _grown(at_gold), _grown(lengths)
            for nth in range(behind - 1, first - 1, -1):  # from the last place on: one run is in the chain once
                place = order[nth]
                previous = _heaviest(tree, weights, place)
                weight = weights[previous] if previous >= 0 else 0
                if stamps[place] == at - 1 and latest[place] >= 0 and weights[latest[place]] + _NEXT > weight:
                    previous = latest[place]
                    weight = weights[previous] + _NEXT
                weight += _WEIGHT if run == _RUN else 1
                weight += _EDGE * (at == start and edges[place]) + _EDGE * (at + run == end and edges[place + run])
                weights[count], before[count] = weight, previous
                at_page[count], at_gold[count], lengths[count] = at, place, run
                count += 1
            for number in range(count - (behind - first), count):
                place = at_gold[number]
                _enter(tree, weights, place, number)
                latest[place + 1], stamps[place + 1] = number, at
                if best < 0 or weights[number] > weights[best]:
                    best = number
        start = end
    while best >= 0:
        for nth in range(lengths[best]):
            covered[at_page[best] + nth] = claimed[at_gold[best] + nth] = 1
        best = before[best]


@compiled
def _grown(values):
    grown = np.empty(2 * len(values), values.dtype)
    grown[: len(values)] = values
    return grown


@inlined
def _heaviest(tree, weights, place):
    """Return the heaviest pair whose place in the marked text is before this one, -1 for none."""
    best = np.int64(-1)
    while place > 0:
        number = tree[place]
        if number >= 0 and (best < 0 or weights[number] > weights[best]):
            best = number
        place -= place & -place
    return best


@inlined
def _enter(tree, weights, place, number):
    place += 1
    while place < len(tree):
        if tree[place] < 0 or weights[number] >= weights[tree[place]]:
            tree[place] = number
        place += place & -place


@compiled
def _claim(keys, start, end, order, heads, sorted_runs, covered, claimed):
    """Cover the words of a block at places of the marked text that no other block has, if they are half of it."""
    found = np.zeros(end - start, np.uint8)
    places = np.full(end - start, -1, np.int64)
    for at in range(start, end - _RUN + 1):
        first, behind = _found(_run_key(keys, at, _RUN), heads, sorted_runs)
        wanted = places[at - start - 1] + 1 if at > start and places[at - start - 1] >= 0 else -1
        for nth in range(first, min(behind, first + _MOST_PLACES)):
            place = order[nth]
            if claimed[place] or claimed[place + 1] or claimed[place + 2]:
                continue
            if places[at - start] < 0 or place == wanted:
                places[at - start] = place
        if places[at - start] >= 0:
            found[at - start : at - start + _RUN] = 1
    if 2 * found.sum() < end - start:
        return
    for nth in range(end - start):
        covered[start + nth] |= found[nth]
        if places[nth] >= 0:
            claimed[places[nth] : places[nth] + _RUN] = 1
