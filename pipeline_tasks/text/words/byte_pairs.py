"""Learns the merges of a byte-level BPE from counted words, as Hugging Face's `BpeTrainer` does from texts.

The most frequent pair of tokens is merged, of equals the one with the smallest ids, until the vocabulary is full
(Sennrich et al. 2016, arXiv 1508.07909). Three details are those of `tokenizers` 0.23: a pair's count is not lowered
when it is merged; a token that is spelled like an earlier one gets its id; and a pair is merged in the words in which
it was when it was put on the heap, where it is put again when it comes up in more words.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.base.compiled import compiled, inlined

FREE = -1
PAIRS, NODES, TOUCHED = 0, 1, 2
"""Places of the counts that a step of the loop moves on: pairs, nodes of lists of words, and pairs with a new list."""


class Learned(NamedTuple):
    """A vocabulary in the order of ids, and merges in the order of their ranks."""

    vocabulary: list[str]
    merges: list[tuple[str, str]]


def learn_merges(words: Sequence[str], counts: npt.NDArray[np.int64], tokens: Sequence[str], size: int) -> Learned:
    """Return the vocabulary of `size` entries, or less if words run out; it begins with `tokens`.

    Words differ from one another and consist of characters that are tokens themselves.
    """
    codes = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    ids = np.zeros(max((ord(token) for token in tokens if len(token) == 1), default=0) + 1, np.int32)
    for number, token in enumerate(tokens):
        if len(token) == 1:
            ids[ord(token)] = number
    spelled = np.frombuffer("".join(tokens).encode("utf-32-le"), np.uint32)
    often = np.array(counts, np.int64)  # a copy: Arrow's arrays are read-only, which would be compiled apart
    merges = _learn(ids[codes], _ends(words), often, spelled.astype(np.int64), _ends(tokens), size)
    vocabulary = list(tokens)
    ranked: dict[tuple[str, str], int] = {}
    for left, right, number in merges.tolist():
        pair = (vocabulary[left], vocabulary[right])
        ranked.pop(pair, None)  # a pair that is merged again has its last rank
        ranked[pair] = number
        if number == len(vocabulary):
            vocabulary.append("".join(pair))
    return Learned(vocabulary, list(ranked))


def _ends(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return where each text begins in all of them joined, and where the last one ends."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


@inlined
def _slot(keys, key):
    mask = len(keys) - 1
    at = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while keys[at] not in (FREE, key):
        at = (at + 1) & mask
    return at


@inlined
def _add(keys, numbers, pairs, state, nodes, key, change, word):
    """Add to the count of a pair; where it grows, put the word on the pair's list of this round."""
    at = _slot(keys, key)
    if keys[at] == FREE:
        keys[at] = key
        numbers[at] = state[PAIRS]
        pairs[0][state[PAIRS]] = key
        pairs[1][state[PAIRS]] = 0
        pairs[2][state[PAIRS]] = FREE
        state[PAIRS] += 1
    pair = numbers[at]
    pairs[1][pair] += change
    if change > 0:
        head = pairs[2][pair]
        if head == FREE:
            pairs[3][state[TOUCHED]] = pair
            state[TOUCHED] += 1
        if head == FREE or nodes[0][head] != word:
            nodes[0][state[NODES]] = word
            nodes[1][state[NODES]] = head
            pairs[2][pair] = state[NODES]
            state[NODES] += 1


@compiled
def _wider(rows, room):
    """Return rows with room for as many entries, at least twice as wide where they are too narrow."""
    if room <= rows.shape[1]:
        return rows
    wider = np.empty((rows.shape[0], max(room, 2 * rows.shape[1])), np.int64)
    wider[:, : rows.shape[1]] = rows
    return wider


@compiled
def _rehashed(keys, numbers, room):
    """Return the table of pairs with at least two slots for each."""
    if 2 * room <= len(keys):
        return keys, numbers
    size = len(keys)
    while size < 2 * room:
        size *= 2
    more_keys, more_numbers = np.full(size, FREE, np.int64), np.zeros(size, np.int64)
    for at in range(len(keys)):
        if keys[at] != FREE:
            slot = _slot(more_keys, keys[at])
            more_keys[slot] = keys[at]
            more_numbers[slot] = numbers[at]
    return more_keys, more_numbers


@inlined
def _is_before(heap, keys, first, second):
    """Return whether an entry comes first: the larger count, of equals the smaller pair."""
    if heap[0][first] != heap[0][second]:
        return heap[0][first] > heap[0][second]
    return keys[heap[1][first]] < keys[heap[1][second]]


@inlined
def _swap(heap, first, second):
    for row in range(3):
        kept = heap[row][first]
        heap[row][first] = heap[row][second]
        heap[row][second] = kept


@inlined
def _rise(heap, keys, at):
    while at > 0 and _is_before(heap, keys, at, (at - 1) >> 1):
        _swap(heap, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@inlined
def _sink(heap, keys, size):
    at = 0
    while True:
        first = at
        for child in (2 * at + 1, 2 * at + 2):
            if child < size and _is_before(heap, keys, child, first):
                first = child
        if first == at:
            return
        _swap(heap, at, first)
        at = first


@inlined
def _hash_of(spelled, begin, end):
    value = np.uint64(14695981039346656037)  # FNV-1a, over characters
    for at in range(begin, end):
        value = (value ^ np.uint64(spelled[at])) * np.uint64(1099511628211)
    return np.int64(value >> np.uint64(20))


@inlined
def _token(table, spelled, ends, begin, end):
    """Return the slot of a spelling: of the token that has it, or a free one."""
    mask = len(table) - 1
    at = _hash_of(spelled, begin, end) & mask
    while table[at] != FREE:
        other = ends[table[at]]
        same = ends[table[at] + 1] - other == end - begin
        for step in range(end - begin if same else 0):
            if spelled[other + step] != spelled[begin + step]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & mask
    return at


@compiled
def _learn(symbols, starts, counts, spelled, token_ends, size):
    """Return the merges as rows of (left, right, merged); `symbols` are the ids of the characters of all words."""
    words = len(counts)
    stops = starts[1:].copy()
    keys, numbers = np.full(1 << 16, FREE, np.int64), np.zeros(1 << 16, np.int64)
    pairs = np.empty((4, 1 << 14), np.int64)  # key, count, list of words of this round, pairs with such a list
    nodes = np.empty((2, 1 << 16), np.int64)  # word, next node
    heap = np.empty((3, 1 << 14), np.int64)  # count, pair, list of words
    state, entries = np.zeros(3, np.int64), 0

    tokens = len(token_ends) - 1
    room = 1
    while room < 2 * (max(size, tokens) + 1):
        room *= 2
    table = np.full(room, FREE, np.int64)
    ends = np.zeros((1, max(size, tokens) + 2), np.int64)
    ends[0, : tokens + 1] = token_ends
    text = np.empty((1, max(1 << 14, 2 * len(spelled))), np.int64)
    text[0, : len(spelled)] = spelled
    for token in range(tokens):
        table[_token(table, text[0], ends[0], ends[0, token], ends[0, token + 1])] = token

    merges = np.empty((3, max(size, 1)), np.int64)
    merged = 0
    left = right = number = np.int64(-1)
    list_of_words = -1
    first = True
    while True:
        # One round: all words at first, then those of the pair that is merged.
        word = 0 if first else (nodes[0, list_of_words] if list_of_words != FREE else words)
        while word < words:
            begin, stop, count = starts[word], stops[word], counts[word]
            keys, numbers = _rehashed(keys, numbers, state[PAIRS] + 4 * (stop - begin))
            pairs = _wider(pairs, state[PAIRS] + 4 * (stop - begin))
            nodes = _wider(nodes, state[NODES] + 4 * (stop - begin))
            if first:
                for at in range(begin, stop - 1):
                    key = (np.int64(symbols[at]) << 32) | symbols[at + 1]
                    _add(keys, numbers, pairs, state, nodes, key, count, word)
                word += 1
                continue
            to, at = begin, begin
            while at < stop:
                if symbols[at] == left and at + 1 < stop and symbols[at + 1] == right:
                    if to > begin:
                        before = np.int64(symbols[to - 1]) << 32
                        _add(keys, numbers, pairs, state, nodes, before | left, -count, word)
                        _add(keys, numbers, pairs, state, nodes, before | number, count, word)
                    at += 2
                    if at < stop:
                        _add(keys, numbers, pairs, state, nodes, (right << 32) | symbols[at], -count, word)
                        _add(keys, numbers, pairs, state, nodes, (number << 32) | symbols[at], count, word)
                    symbols[to] = number
                else:
                    symbols[to] = symbols[at]
                    at += 1
                to += 1
            stops[word] = to
            list_of_words = nodes[1, list_of_words]
            word = nodes[0, list_of_words] if list_of_words != FREE else words
        first = False

        heap = _wider(heap, entries + state[TOUCHED])
        for at in range(state[TOUCHED]):
            pair = pairs[3, at]
            if pairs[1, pair] > 0:
                heap[0, entries] = pairs[1, pair]
                heap[1, entries] = pair
                heap[2, entries] = pairs[2, pair]
                _rise(heap, pairs[0], entries)
                entries += 1
            pairs[2, pair] = FREE
        state[TOUCHED] = 0

        is_current = False
        while tokens < size and entries > 0 and not is_current:
            pair = heap[1, 0]
            is_current = heap[0, 0] == pairs[1, pair]
            if is_current:
                if heap[0, 0] < 1:
                    return merges[:, :merged].T.copy()
                list_of_words = heap[2, 0]
                entries -= 1
                _swap(heap, 0, entries)
            else:  # its count has changed since
                heap[0, 0] = pairs[1, pair]
            _sink(heap, pairs[0], entries)
        if not is_current:
            return merges[:, :merged].T.copy()

        left, right = pairs[0, pair] >> 32, pairs[0, pair] & 0xFFFFFFFF
        begin = ends[0, tokens]
        stop = begin + ends[0, left + 1] - ends[0, left] + ends[0, right + 1] - ends[0, right]
        text = _wider(text, stop)
        for part in (left, right):
            for at in range(ends[0, part], ends[0, part + 1]):
                text[0, begin] = text[0, at]
                begin += 1
        slot = _token(table, text[0], ends[0], ends[0, tokens], stop)
        if table[slot] == FREE:
            table[slot] = tokens
            tokens += 1
            ends[0, tokens] = stop
        number = np.int64(table[slot])
        merges = _wider(merges, merged + 1)
        merges[0, merged] = left
        merges[1, merged] = right
        merges[2, merged] = number
        merged += 1
