"""Train a supervised fastText model in compiled loops, by one thread, without random numbers, and write it as `.bin`.

A text is cut as `fasttext_words.sum_line` reads it: words, and hashed n-grams of words; `</s>` ends it. The loss is the
softmax, and the rate falls linearly to 0 (Joulin et al., arXiv 1607.01759; `FastText::supervised` of
facebookresearch/fastText 0.9.2). First vectors and the order of texts are hashes, so that the same texts give the same
bytes; sums are float32, in the order of rows.
"""

import math
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.buffers import views
from pipeline_tasks.text.base.characters import classes
from pipeline_tasks.text.base.compiled import compiled, inlined
from pipeline_tasks.text.base.eight_bytes import hash_bytes, same_bytes
from pipeline_tasks.text.base.hashing import mix
from pipeline_tasks.text.words.fasttext_model import LABEL, MAGIC, SOFTMAX, SUPERVISED, VERSIONS, WORD
from pipeline_tasks.text.words.fasttext_words import (
    END_OF_LINE,
    LABEL_MARK,
    WORD_FACTOR,
    hash_word,
    separates,
    with_sign,
    word_end,
)

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

EVERYWHERE = True
"""Any white space of Unicode parts words, as in `Predictor.probability`."""

END_NAME = END_OF_LINE.tobytes()


@dataclass(frozen=True, slots=True)
class Size:
    """What a model is like, and how long it is trained.

    Words that fewer than `least` times are written have no vector of their own, and still are in n-grams.
    """

    dimensions: int = 16
    buckets: int = 1 << 18
    word_ngrams: int = 2
    least: int = 3
    epochs: int = 10
    rate: float = 0.5


class Lines(NamedTuple):
    """Texts as numbers: text i has the words ends[i] to ends[i + 1] of `words` (-1: unknown) and of their `hashes`."""

    ends: Numbers
    words: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]


class _Words(NamedTuple):
    """The words of all texts in order: where each is, its hash in fastText, and a key of 64 bits."""

    ends: Numbers
    starts: Numbers
    stops: Numbers
    hashes: npt.NDArray[np.uint64]
    keys: npt.NDArray[np.uint64]


class _Vocabulary(NamedTuple):
    """The words with a vector: their names by falling count, their counts, and their keys in the order of numbers."""

    names: list[bytes]
    counts: list[int]
    keys: npt.NDArray[np.uint64]


def train(texts: pa.Array, labels: npt.NDArray[np.int64], names: tuple[str, ...], size: Size | None = None) -> bytes:
    """Return the bytes of a model that tells texts by their labels; `names[labels[i]]` is that of text i.

    RecipeError if a label has no text, or no word is frequent enough.
    """
    size = size or Size()
    counts = np.bincount(labels, minlength=len(names))
    if not counts.all():
        message = f"no text has the label {names[int(np.argmin(counts))]}; name texts of each label"
        raise RecipeError(message)
    offsets, data = views(texts)
    words = _cut(offsets, data)
    vocabulary = _vocabulary(words, data, len(texts), size.least)
    lines = _numbered(words, vocabulary)
    inputs, outputs = _first_vectors(len(vocabulary.names), size), np.zeros((len(names), size.dimensions), np.float32)
    steps = size.epochs * len(texts)
    for epoch in range(size.epochs):
        order = np.argsort(_ranks(len(texts), epoch), kind="stable")
        _epoch(lines, labels, order, inputs, outputs, size.buckets, size.word_ngrams, size.rate, epoch, steps)
    return _written(vocabulary, names, counts.tolist(), inputs, outputs, size)


def _ranks(count: int, epoch: int) -> npt.NDArray[np.uint64]:
    """Return hashes of places: texts are read in another order in each epoch."""
    ranks = np.empty(count, np.uint64)
    _hash_places(ranks, np.uint64(epoch + 1))
    return ranks


@compiled
def _hash_places(ranks, salt):
    for place in range(len(ranks)):
        ranks[place] = mix(mix(salt) + np.uint64(place))


def _first_vectors(words: int, size: Size) -> Floats:
    """Return vectors of words and buckets, evenly between -1 / dimensions and 1 / dimensions by hashes of places."""
    vectors = np.empty((words + size.buckets, size.dimensions), np.float32)
    _fill(vectors)
    return vectors


@compiled
def _fill(vectors):
    rows, columns = vectors.shape
    for row in range(rows):
        for column in range(columns):
            draw = mix(np.uint64(row * columns + column)) >> np.uint64(40)
            vectors[row, column] = np.float32((np.float64(draw) / 8388608.0 - 1.0) / columns)


# --- Words ----------------------------------------------------------------------------------------------------


def _cut(offsets: Numbers, data: npt.NDArray[np.uint8]) -> _Words:
    """Return the words of texts."""
    ends = np.zeros(len(offsets), np.int64)
    _count_words(offsets, data, classes(), ends)
    ends = np.cumsum(ends)
    starts, stops = np.empty((2, int(ends[-1])), np.int64)
    hashes, keys = np.empty((2, int(ends[-1])), np.uint64)
    _place_words(offsets, data, classes(), ends, starts, stops, hashes, keys)
    return _Words(ends, starts, stops, hashes, keys)


@inlined
def _next_word(data, at, end, index, flags):
    """Return where the next word begins and ends; two equal places behind the last one, and at `</s>`."""
    while True:
        while at < end:
            width = separates(data, at, end, index, flags, EVERYWHERE)
            if width == 0:
                break
            at += width
        if at >= end:
            return end, end
        stop = word_end(data, at, end, index, flags, EVERYWHERE)
        if same_bytes(END_OF_LINE, 0, 4, data, at, stop):
            return end, end
        if not same_bytes(LABEL_MARK, 0, len(LABEL_MARK), data, at, min(at + len(LABEL_MARK), stop)):
            return at, stop
        at = stop


@compiled
def _count_words(offsets, data, traits, counts):
    index, flags = traits
    for row in range(len(offsets) - 1):
        at, end = offsets[row], offsets[row + 1]
        while True:
            first, at = _next_word(data, at, end, index, flags)
            if first == at:
                break
            counts[row + 1] += 1


@compiled
def _place_words(offsets, data, traits, ends, starts, stops, hashes, keys):
    index, flags = traits
    for row in range(len(offsets) - 1):
        at, end, place = offsets[row], offsets[row + 1], ends[row]
        while True:
            first, at = _next_word(data, at, end, index, flags)
            if first == at:
                break
            starts[place], stops[place] = first, at
            hashes[place], keys[place] = hash_word(data, first, at), hash_bytes(data, first, at)
            place += 1


def _vocabulary(words: _Words, data: npt.NDArray[np.uint8], texts: int, least: int) -> _Vocabulary:
    """Return the frequent words, the most frequent first, and the end of a line before them all."""
    keys, firsts, counts = np.unique(words.keys, return_index=True, return_counts=True)
    frequent = np.flatnonzero(counts >= least)
    if not len(frequent):
        message = f"no word is written {least} times in the texts; name more texts"
        raise RecipeError(message)
    found = [
        (-int(counts[at]), data[words.starts[firsts[at]] : words.stops[firsts[at]]].tobytes(), int(keys[at]))
        for at in frequent.tolist()
    ]
    ordered = sorted(found)
    names = [END_NAME, *(name for _, name, _ in ordered)]
    return _Vocabulary(
        names, [texts, *(-count for count, _, _ in ordered)], np.array([key for *_, key in ordered], np.uint64)
    )


def _numbered(words: _Words, vocabulary: _Vocabulary) -> Lines:
    """Return texts as numbers of words, each with the end of its line."""
    order = np.argsort(vocabulary.keys)
    ascending = vocabulary.keys[order]
    places = np.minimum(np.searchsorted(ascending, words.keys), len(ascending) - 1)
    numbers = np.where(ascending[places] == words.keys, order[places] + 1, -1).astype(np.int32)
    ends = words.ends + np.arange(len(words.ends))
    is_end = np.zeros(int(ends[-1]), np.bool_)
    is_end[ends[1:] - 1] = True
    whole, hashes = np.zeros(len(is_end), np.int32), np.empty(len(is_end), np.uint64)
    whole[~is_end], hashes[~is_end] = numbers, words.hashes
    hashes[is_end] = _hash_of_end()
    return Lines(ends, whole, hashes)


@compiled
def _hash_of_end():
    return hash_word(END_OF_LINE, 0, len(END_OF_LINE))


# --- Training -------------------------------------------------------------------------------------------------


@inlined
def _rows_of(line_words, line_hashes, words, buckets, word_ngrams, rows):
    """Write the rows of a line, its words and n-grams, to `rows`; return how many."""
    count = 0
    for place in range(len(line_words)):
        if line_words[place] >= 0:
            rows[count] = line_words[place]
            count += 1
    for first in range(len(line_hashes)):
        value = with_sign(line_hashes[first])
        for last in range(first + 1, min(len(line_hashes), first + word_ngrams)):
            value = value * WORD_FACTOR + with_sign(line_hashes[last])
            rows[count] = words + np.int64(value % np.uint64(buckets))
            count += 1
    return count


@compiled
def _epoch(lines, labels, order, inputs, outputs, buckets, word_ngrams, rate, epoch, steps):
    """Read each line once, in order, and change the vectors by the gradient of its loss."""
    words, dimensions = len(inputs) - buckets, inputs.shape[1]
    longest = 1
    for line in range(len(order)):
        longest = max(longest, lines.ends[line + 1] - lines.ends[line])
    rows = np.empty(longest * word_ngrams, np.int64)
    hidden, gradient = np.empty(dimensions, np.float32), np.empty(dimensions, np.float32)
    odds = np.empty(len(outputs), np.float64)
    for step in range(len(order)):
        line = order[step]
        first, end = lines.ends[line], lines.ends[line + 1]
        count = _rows_of(lines.words[first:end], lines.hashes[first:end], words, buckets, word_ngrams, rows)
        hidden[:] = np.float32(0)
        for place in range(count):
            for column in range(dimensions):
                hidden[column] += inputs[rows[place], column]
        for column in range(dimensions):
            hidden[column] /= np.float32(count)
        most = -math.inf
        for label in range(len(outputs)):
            odds[label] = 0.0
            for column in range(dimensions):
                odds[label] += np.float64(outputs[label, column]) * np.float64(hidden[column])
            most = max(most, odds[label])
        total = 0.0
        for label in range(len(outputs)):
            odds[label] = math.exp(odds[label] - most)
            total += odds[label]
        now = rate * (1.0 - (epoch * len(order) + step) / steps)
        gradient[:] = np.float32(0)
        for label in range(len(outputs)):
            alpha = np.float32(now * ((1.0 if labels[line] == label else 0.0) - odds[label] / total))
            for column in range(dimensions):
                gradient[column] += alpha * outputs[label, column]
                outputs[label, column] += alpha * hidden[column]
        for column in range(dimensions):
            gradient[column] /= np.float32(count)
        for place in range(count):
            for column in range(dimensions):
                inputs[rows[place], column] += gradient[column]


# --- File -----------------------------------------------------------------------------------------------------


def _written(
    vocabulary: _Vocabulary, names: tuple[str, ...], counts: list[int], inputs: Floats, outputs: Floats, size: Size
) -> bytes:
    """Return a model as `FastText::saveModel` writes it: labels by falling count, as its reader wants them."""
    order = sorted(range(len(names)), key=lambda label: (-counts[label], names[label]))
    labels = [(names[label].encode(), counts[label], LABEL) for label in order]
    entries = [*((name, count, WORD) for name, count in zip(vocabulary.names, vocabulary.counts, strict=True)), *labels]
    arguments = (size.dimensions, 5, size.epochs, size.least, 5, size.word_ngrams, SOFTMAX, SUPERVISED)
    header = struct.pack("<2i12id", MAGIC, VERSIONS[-1], *arguments, size.buckets, 0, 0, 100, 1e-4)
    tokens = sum(vocabulary.counts)
    sizes = struct.pack("<3i2q", len(entries), len(vocabulary.names), len(labels), tokens, -1)
    words = b"".join(name + b"\0" + struct.pack("<qb", count, kind) for name, count, kind in entries)
    return header + sizes + words + _dense(inputs) + _dense(outputs[order])


def _dense(values: Floats) -> bytes:
    return b"\0" + struct.pack("<2q", *values.shape) + values.astype("<f4").tobytes()
