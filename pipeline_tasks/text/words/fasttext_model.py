"""Read fastText models into arrays, after a check of every size and number in the file.

The layout is that of `FastText::saveModel` in facebookresearch/fastText 0.9.2: arguments, dictionary, input matrix,
output matrix. A matrix is dense (`.bin`), or quantized by products (`.ftz`, `ProductQuantizer::save`).
"""

import struct
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.cached import regular

MAGIC, VERSIONS = 793712314, (11, 12)
SUPERVISED = 3
HIERARCHICAL, NEGATIVE_SAMPLING, SOFTMAX, ONE_VS_ALL = LOSSES = (1, 2, 3, 4)
WORD, LABEL = 0, 1

MOST_COUNT = 10**15
"""What fastText takes for more than any count, in the tree of a hierarchical softmax."""

MOST_GRAMS = 100
"""Characters of an n-gram, and words of one: time grows with them, and models have six and five at most."""

CHUNK = 1 << 22
"""Weights that are checked at once."""

CENTROIDS = 256
"""Centroids of each part of a quantized vector: one byte names one."""

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]


class Arguments(NamedTuple):
    """The arguments of a training that decide on predictions; lengths of n-grams are in characters or words."""

    dimensions: int
    buckets: int
    shortest: int
    longest: int
    word_ngrams: int
    loss: int


class Matrix(NamedTuple):
    """Rows of a matrix: `dense`, shape (rows, columns), or the other three, the arrays of the unused form being empty.

    Row i is norms[i] times the centroids that codes[i] names, shape (rows, parts); a part has `width` columns, the last
    one what is left. `centroids` is flat, in the order of parts.
    """

    dense: Floats
    codes: Bytes
    norms: Floats
    centroids: Floats
    width: int


@dataclass(frozen=True, slots=True)
class Model:
    """A supervised model; entry i of its dictionary has the bytes letters[ends[i] : ends[i + 1]], words before labels.

    `pruned` has pairs of a bucket and its place after the words, shape (n, 2), if only these buckets are in the input
    matrix; None if all are.
    """

    path: str
    arguments: Arguments
    letters: Bytes
    ends: Numbers
    words: int
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    pruned: Places | None
    inputs: Matrix
    outputs: Matrix


class Dictionary(NamedTuple):
    """What of the model the dictionary has; see `Model`."""

    letters: Bytes
    ends: Numbers
    words: int
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    pruned: Places | None


class Cursor:
    """A place in a file; what is cut short is a ValueError."""

    def __init__(self, data: mmap) -> None:
        self._data, self.at = data, 0

    def numbers(self, kinds: str) -> tuple[Any, ...]:
        """Return the little-endian numbers of the `struct` kinds, and go behind them."""
        size = struct.calcsize(f"<{kinds}")
        return struct.unpack_from(f"<{kinds}", self._data, self.skip(size))

    def skip(self, size: int) -> int:
        """Go `size` bytes on; return where they begin."""
        begin = self.at
        require(0 <= size <= len(self._data) - begin, "it is cut short, or a size in it is wrong")
        self.at += size
        return begin

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes, and go behind them."""
        begin = self.skip(size)
        return self._data[begin : self.at]

    def name(self) -> bytes:
        """Return the bytes before the next zero byte, and go behind it."""
        begin, end = self.at, self._data.find(b"\0", self.at)
        require(end >= 0, "it is cut short within its words")
        self.at = end + 1
        return self._data[begin:end]

    def weights(self, count: int) -> Floats:
        """Return the next `count` floats, all of which are finite, and go behind them."""
        begin = self.skip(4 * count)
        weights = np.empty(count, np.float32)
        for first in range(0, count, CHUNK):
            part = np.frombuffer(self._data[begin + 4 * first : begin + 4 * min(first + CHUNK, count)], "<f4")
            require(bool(np.isfinite(part).all()), "a weight in it is no number")
            weights[first : first + len(part)] = part
        return weights

    def require_end(self) -> None:
        """Raise ValueError if bytes follow."""
        require(self.at == len(self._data), "bytes follow its end")


def load(path: str, key: str) -> Model:
    """Return the supervised model at `path`; RecipeError, with the recipe's key, if the file is none."""
    regular(path)
    try:
        return _read(path)
    except ValueError as error:
        message = (
            f"{key}: {path} is no fastText model that can be read ({error}); bring a supervised model whole, "
            "or correct the path in the recipe"
        )
        raise RecipeError(message) from error


def _read(path: str) -> Model:
    """Return the supervised model at `path`; ValueError unless all its sizes and numbers fit."""
    with Path(path).open("rb") as file:
        require(file.seek(0, 2), "it is empty")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            cursor = Cursor(data)
            arguments = _arguments(cursor)
            dictionary = _dictionary(cursor)
            pruned, labels = dictionary.pruned, len(dictionary.labels)
            quantized = _flag(cursor)
            require(quantized or pruned is None, "it is pruned and not quantized: its format is an old one")
            rows = dictionary.words + (arguments.buckets if pruned is None else len(pruned))
            inputs = _matrix(cursor, rows, arguments.dimensions, quantized=quantized)
            # the flag of the output counts only behind a quantized input, as `FastText::loadModel` reads it
            outputs = _matrix(cursor, labels, arguments.dimensions, quantized=_flag(cursor) and quantized)
            cursor.require_end()
            return Model(path, arguments, *dictionary, inputs, outputs)


def require(condition: object, why: str) -> None:
    """Raise ValueError with the reason unless the condition is true."""
    if not condition:
        raise ValueError(why)


def _arguments(cursor: Cursor) -> Arguments:
    magic, version = cursor.numbers("2i")
    require(magic == MAGIC, "it does not begin as one")
    require(version in VERSIONS, f"its format has the version {version}")
    dimensions, _, _, _, _, ngrams, loss, model, buckets, shortest, longest, _, _ = cursor.numbers("12id")
    require(model == SUPERVISED, "it has no labels: it is not supervised")
    in_range = loss in LOSSES and dimensions > 0 and min(buckets, ngrams, shortest, longest) >= 0
    require(in_range and max(ngrams, longest) <= MOST_GRAMS, "its arguments are out of range")
    longest = 0 if version == VERSIONS[0] else longest
    require(buckets or (ngrams <= 1 and longest <= 0), "it has n-grams and no place for them")
    return Arguments(dimensions, buckets, shortest, longest, ngrams, loss)


def _dictionary(cursor: Cursor) -> Dictionary:
    entries, words, n_labels, _, pruned = cursor.numbers("3i2q")
    require(words >= 0 and n_labels > 0 and entries == words + n_labels, "its numbers of words and labels do not fit")
    names, counts = [], []
    for number in range(entries):
        name, (count, kind) = cursor.name(), cursor.numbers("qb")
        require(kind == (WORD if number < words else LABEL), "its words and labels are mixed up")
        require(0 <= count < MOST_COUNT, "a count of its words is out of range")
        names.append(name)
        counts.append(count)
    labels = tuple(name.decode() for name in names[words:])
    require(len(set(labels)) == n_labels, "a label in it occurs twice")
    letters = np.frombuffer(b"".join(names), np.uint8).copy()
    ends = np.cumsum([0, *map(len, names)], dtype=np.int64)
    return Dictionary(letters, ends, words, labels, tuple(counts[words:]), _pruned(cursor, pruned))


def _pruned(cursor: Cursor, count: int) -> Places | None:
    if count < 0:
        return None
    pairs = np.frombuffer(cursor.take(8 * count), "<i4").reshape(-1, 2).astype(np.int32)
    places = pairs[:, 1]
    require(not count or (places.min() >= 0 and places.max() < count), "an n-gram has no place in it")
    return pairs


def _flag(cursor: Cursor) -> bool:
    (flag,) = cursor.numbers("B")
    require(flag in (0, 1), "a flag in it is neither 0 nor 1")
    return bool(flag)


def _matrix(cursor: Cursor, rows: int, columns: int, *, quantized: bool) -> Matrix:
    normed = _flag(cursor) if quantized else False
    actual = cursor.numbers("2q")
    require(actual == (rows, columns), f"a matrix in it is {actual[0]} x {actual[1]} and not {rows} x {columns}")
    if not quantized:
        dense = cursor.weights(rows * columns).reshape(rows, columns)
        nothing = np.empty(0, np.float32)
        return Matrix(dense, np.empty((0, 1), np.uint8), nothing, nothing.copy(), columns)
    (size,) = cursor.numbers("i")
    codes = np.frombuffer(cursor.take(size), np.uint8).copy()
    parts, width, centroids = _quantizer(cursor, columns)
    require(size == rows * parts, "the codes of a matrix in it do not fit")
    norms = _norms(cursor, rows) if normed else np.ones(rows, np.float32)
    return Matrix(np.empty((0, columns), np.float32), codes.reshape(rows, parts), norms, centroids, width)


def _norms(cursor: Cursor, rows: int) -> Floats:
    codes = np.frombuffer(cursor.take(rows), np.uint8)
    parts, _, centroids = _quantizer(cursor, 1)
    require(parts == 1, "the norms of a matrix in it do not fit")
    return centroids[codes]


def _quantizer(cursor: Cursor, columns: int) -> tuple[int, int, Floats]:
    """Return the codes per row of a product quantizer, the columns per code, and the centroids."""
    dimensions, parts, width, last = cursor.numbers("4i")
    require(dimensions == columns and parts > 0 and width > 0, "a quantizer in it does not fit")
    require(0 < last <= width and (parts - 1) * width + last == columns, "a quantizer in it does not fit")
    return int(parts), int(width), cursor.weights(columns * CENTROIDS)
