"""A plain reading of fastText's prediction, for any model: no memory, no tables, sums in float64."""

import math
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.words.fasttext_model import HIERARCHICAL, SOFTMAX, Matrix, Model

Vector = npt.NDArray[np.float64]
BLANKS = re.compile(rb"[ \n\r\t\v\f\0]+")
END_OF_LINE = b"</s>"


def predict(model: Model, line: bytes) -> dict[str, float]:
    """Return the probability of each label as fastText gives it; nothing if the model knows nothing of the line."""
    rows = list(line_rows(model, line))
    if not rows:
        return {}
    hidden = np.sum([vector(model.inputs, row) for row in rows], axis=0) / len(rows)
    if model.arguments.loss == HIERARCHICAL:
        scores = leaves(model, hidden)
        return {model.labels[label]: math.exp(score) for label, score in scores.items() if score >= math.log(1e-5)}
    values = np.array([vector(model.outputs, label) @ hidden for label in range(len(model.labels))])
    if model.arguments.loss == SOFTMAX:
        powers = np.exp(values - values.max())
        shares = powers / powers.sum()
    else:
        shares = np.array([in_steps(float(value)) for value in values])
    return dict(zip(model.labels, (shares + 1e-5).tolist(), strict=True))


def line_rows(model: Model, line: bytes) -> Iterator[int]:
    """Yield the rows of the input matrix that a line is the mean of."""
    cuts = zip(model.ends[:-1].tolist(), model.ends[1:].tolist(), strict=True)
    entries = {model.letters[begin:end].tobytes(): number for number, (begin, end) in enumerate(cuts)}
    words = [word for word in BLANKS.split(line) if word]
    words = [*words[: words.index(END_OF_LINE)], END_OF_LINE] if END_OF_LINE in words else [*words, END_OF_LINE]
    hashes = []
    for word in words:
        entry = entries.get(word, -1)
        if entry >= model.words or (entry < 0 and word.startswith(b"__label__")):
            continue
        hashes.append(fnv(word))
        if entry >= 0:
            yield entry
        if word != END_OF_LINE:
            yield from bucket_rows(model, (fnv(gram) for gram in ngrams(model, b"<" + word + b">")))
    yield from bucket_rows(model, joined(model, hashes))


def ngrams(model: Model, word: bytes) -> Iterator[bytes]:
    """Yield the n-grams of characters; bytes that begin no character belong to the one before."""
    characters = re.findall(rb"[^\x80-\xbf][\x80-\xbf]*", word, re.DOTALL)
    for begin in range(len(characters)):
        for length in range(model.arguments.shortest or 1, model.arguments.longest + 1):
            edge = length == 1 and (begin in (0, len(characters) - 1))
            if begin + length <= len(characters) and not edge:
                yield b"".join(characters[begin : begin + length])


def joined(model: Model, hashes: list[int]) -> Iterator[int]:
    """Yield the hashes of runs of words."""
    signed = [value - (1 << 32) if value >> 31 else value for value in hashes]
    for first in range(len(signed)):
        value = signed[first]
        for word in signed[first + 1 : first + model.arguments.word_ngrams]:
            value = (value * 116049371 + word) % (1 << 64)
            yield value


def bucket_rows(model: Model, hashes: Iterator[int]) -> Iterator[int]:
    kept = None if model.pruned is None else dict(model.pruned.tolist())
    for value in hashes:
        bucket = value % model.arguments.buckets
        if kept is None:
            yield model.words + bucket
        elif bucket in kept:
            yield model.words + kept[bucket]


def fnv(word: bytes) -> int:
    value = 2166136261
    for byte in word:
        value = ((value ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) % (1 << 32)
    return value


def vector(matrix: Matrix, row: int) -> Vector:
    """Return a row of a matrix, dense or quantized."""
    if len(matrix.dense):
        return matrix.dense[row].astype(np.float64)
    columns, width = matrix.dense.shape[1], matrix.width
    parts = []
    for part, code in enumerate(matrix.codes[row].tolist()):
        size = min(width, columns - part * width)
        centroids = matrix.centroids[part * width * 256 :][: size * 256].reshape(256, size)
        parts.append(centroids[code].astype(np.float64))
    return float(matrix.norms[row]) * np.concatenate(parts)


def in_steps(value: float) -> float:
    """Return the logistic function, as a table of 512 steps from -8 to 8 has it."""
    if abs(value) > 8:
        return float(value > 0)
    return 1 / (1 + math.exp(8 - int((value + 8) * 32) / 32))


def leaves(model: Model, hidden: Vector) -> dict[int, float]:
    """Return the logarithm of each label's probability by its path through the Huffman tree."""
    labels = len(model.labels)
    waiting = [(count, 1, -label, label) for label, count in enumerate(model.counts)]
    children: dict[int, tuple[int, int]] = {}
    for node in range(labels, 2 * labels - 1):
        pair = [waiting.pop(waiting.index(min(waiting))) for _ in range(2)]
        children[node] = (pair[0][3], pair[1][3])
        waiting.append((pair[0][0] + pair[1][0], 0, node, node))
    scores: dict[int, float] = {}
    paths = [(2 * labels - 2, 0.0)]
    while paths:
        node, score = paths.pop()
        if node < labels:
            scores[node] = score
            continue
        right = 1 / (1 + math.exp(-vector(model.outputs, node - labels) @ hidden))
        for child, share in zip(children[node], (1 - right, right), strict=True):
            paths.append((child, score + math.log(share + 1e-5)))
    return scores
