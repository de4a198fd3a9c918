"""Read fastText models after a check of the whole file: fastText itself may crash, or take all memory, on a broken one.

The layout is that of `FastText::saveModel` in facebookresearch/fastText 0.9.2: arguments, dictionary, input matrix,
output matrix. A matrix is dense, or quantized by products (`ProductQuantizer::save`).
"""

import struct
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.text.base.cached import regular

MAGIC, VERSIONS = 793712314, (11, 12)
SUPERVISED, LOSSES = 3, (1, 2, 3, 4)
WORD, LABEL = 0, 1

MOST_COUNT = 10**15
"""What fastText takes for more than any count, in the tree of a hierarchical softmax."""

CHUNK = 1 << 22
"""Weights that are checked at once."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a training that decide on the sizes of the rest of the file."""

    dimensions: int
    buckets: int


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

    def weights(self, count: int) -> None:
        """Go behind `count` floats, all of which are finite."""
        begin = self.skip(4 * count)
        for first in range(0, count, CHUNK):
            part = np.frombuffer(self._data[begin + 4 * first : begin + 4 * min(first + CHUNK, count)], "<f4")
            require(bool(np.isfinite(part).all()), "a weight in it is no number")

    def require_end(self) -> None:
        """Raise ValueError if bytes follow."""
        require(self.at == len(self._data), "bytes follow its end")


def load(path: str, key: str) -> Any:  # noqa: ANN401 -- fasttext has no types
    """Return the supervised model at `path`; RecipeError, with the recipe's key, if the file is none."""
    import fasttext

    regular(path)
    try:
        check(path)
        return fasttext.load_model(path)
    except (ValueError, RuntimeError) as error:  # RuntimeError: what the C++ library throws beside ValueError
        message = (
            f"{key}: {path} is no fastText model that can be read ({error}); bring a supervised model whole, "
            "or correct the path in the recipe"
        )
        raise RecipeError(message) from error


def check(path: str) -> tuple[str, ...]:
    """Return the labels of the supervised model at `path`; ValueError unless all its sizes and numbers fit."""
    with Path(path).open("rb") as file:
        require(file.seek(0, 2), "it is empty")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            cursor = Cursor(data)
            arguments = _arguments(cursor)
            rows, labels = _dictionary(cursor, arguments)
            quantized = _flag(cursor)
            _matrix(cursor, rows, arguments.dimensions, quantized=quantized)
            # the flag of the output counts only behind a quantized input, as `FastText::loadModel` reads it
            _matrix(cursor, len(labels), arguments.dimensions, quantized=_flag(cursor) and quantized)
            cursor.require_end()
            return labels


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
    require(in_range, "its arguments are out of range")
    longest = 0 if version == VERSIONS[0] else longest
    require(buckets or (ngrams <= 1 and longest <= 0), "it has n-grams and no place for them")
    return Arguments(dimensions, buckets)


def _dictionary(cursor: Cursor, arguments: Arguments) -> tuple[int, tuple[str, ...]]:
    """Return the rows that the input matrix must have, and the labels."""
    entries, words, n_labels, _, pruned = cursor.numbers("3i2q")
    labels = []
    require(words >= 0 and n_labels > 0 and entries == words + n_labels, "its numbers of words and labels do not fit")
    for number in range(entries):
        name, (count, kind) = cursor.name(), cursor.numbers("qb")
        require(kind == (WORD if number < words else LABEL), "its words and labels are mixed up")
        require(0 <= count < MOST_COUNT, "a count of its words is out of range")
        if kind == LABEL:
            labels.append(name.decode())
    if pruned < 0:
        return words + arguments.buckets, tuple(labels)
    places = np.frombuffer(cursor.take(8 * pruned), "<i4")[1::2]
    require(not pruned or (places.min() >= 0 and places.max() < pruned), "an n-gram has no place in it")
    return words + pruned, tuple(labels)


def _flag(cursor: Cursor) -> bool:
    (flag,) = cursor.numbers("B")
    require(flag in (0, 1), "a flag in it is neither 0 nor 1")
    return bool(flag)


def _matrix(cursor: Cursor, rows: int, columns: int, *, quantized: bool) -> None:
    normed = _flag(cursor) if quantized else False
    actual = cursor.numbers("2q")
    require(actual == (rows, columns), f"a matrix in it is {actual[0]} x {actual[1]} and not {rows} x {columns}")
    if not quantized:
        cursor.weights(rows * columns)
        return
    (size,) = cursor.numbers("i")
    cursor.skip(size)
    require(size == rows * _quantizer(cursor, columns), "the codes of a matrix in it do not fit")
    if normed:
        cursor.skip(rows)
        require(_quantizer(cursor, 1) == 1, "the norms of a matrix in it do not fit")


def _quantizer(cursor: Cursor, columns: int) -> int:
    """Go behind the centroids of a product quantizer; return the codes per row."""
    dimensions, parts, width, last = cursor.numbers("4i")
    require(dimensions == columns and parts > 0 and width > 0, "a quantizer in it does not fit")
    require(0 < last <= width and (parts - 1) * width + last == columns, "a quantizer in it does not fit")
    cursor.weights(columns << 8)
    return int(parts)
