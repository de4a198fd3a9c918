"""Fits pieces of documents into sequences of one length by best-fit decreasing, and copies their tokens there."""

import numpy as np

from pipeline_tasks.text.base.compiled import compiled
from pipeline_tasks.text.base.hashing import mix


@compiled
def cut(lengths, capacity):
    """Return documents cut into pieces of `capacity` and a rest: each piece's document, first token in it, and size.

    Only documents longer than `capacity` are cut. Pieces come in the order of the documents; an empty one has none.
    """
    count = 0
    for length in lengths:
        count += (length + capacity - 1) // capacity
    documents = np.empty(count, np.int64)
    starts = np.empty(count, np.int64)
    sizes = np.empty(count, np.int64)
    piece = 0
    for document in range(len(lengths)):
        for start in range(0, lengths[document], capacity):
            documents[piece] = document
            starts[piece] = start
            sizes[piece] = min(capacity, lengths[document] - start)
            piece += 1
    return documents, starts, sizes


@compiled
def fit(sizes, capacity):
    """Return the bin of each piece, by best-fit decreasing, and the number of bins.

    The largest pieces come first, equal ones in order; each goes to the bin with the least room that is enough, of
    equal ones to that which was filled last. The tree holds for every stretch of rooms how many bins have one of them,
    so a bin is found in log2(capacity) steps (Ding et al., Fewer Truncations Improve Language Modeling,
    arXiv 2404.10830, section 3).
    """
    leaves = 1
    while leaves <= capacity:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.int64)
    newest = np.full(capacity + 1, -1, np.int64)  # by room: the bin that was filled last
    older = np.full(len(sizes), -1, np.int64)  # by bin: the bin of the same room that was filled before it
    bins = np.empty(len(sizes), np.int64)
    count = 0
    for piece in _by_size(sizes, capacity):
        size = sizes[piece]
        room = _least_room(tree, leaves, size)
        bins[piece] = newest[room] if room >= 0 else count
        if room >= 0:
            newest[room] = older[bins[piece]]
            _add(tree, leaves + room, -1)
        else:
            room = capacity
            count += 1
        left = room - size
        if left > 0:
            older[bins[piece]] = newest[left]
            newest[left] = bins[piece]
            _add(tree, leaves + left, 1)
    return bins, count


@compiled
def _by_size(sizes, capacity):
    """Return the pieces by falling size, equal ones in order."""
    firsts = np.zeros(capacity + 2, np.int64)
    for size in sizes:
        firsts[capacity - size + 1] += 1
    ends = np.cumsum(firsts)
    order = np.empty(len(sizes), np.int64)
    for piece in range(len(sizes)):
        at = capacity - sizes[piece]
        order[ends[at]] = piece
        ends[at] += 1
    return order


@compiled
def _add(tree, node, change):
    while node > 0:
        tree[node] += change
        node //= 2


@compiled
def _least_room(tree, leaves, size):
    """Return the smallest room from `size` on that a bin has, -1 if none has as much."""
    node = leaves + size
    if tree[node]:
        return size
    while node > 1:
        if node % 2 == 0 and tree[node + 1]:
            node += 1
            while node < leaves:
                node = 2 * node if tree[2 * node] else 2 * node + 1
            return node - leaves
        node //= 2
    return -1


@compiled
def scatter(count):
    """Return where each of `count` bins goes: an order that no size of a piece has a part in.

    Bins are numbered from the largest pieces down; in that order a loader would see long documents first.
    """
    keys = np.empty(count, np.uint64)
    for bin_ in range(count):
        keys[bin_] = mix(np.uint64(bin_))
    places = np.empty(count, np.int64)
    places[np.argsort(keys)] = np.arange(count)
    return places


@compiled
def lay_out(tokens, begins, sizes, at, out):
    """Copy pieces of `sizes` tokens, which begin at `begins` in `tokens`, to the positions `at` of `out`."""
    for piece in range(len(sizes)):
        begin, to = begins[piece], at[piece]
        for token in range(sizes[piece]):
            out[to + token] = tokens[begin + token]
