"""Writes fastText models: by hand, each word speaking for one label, so that every answer is known; and random ones.

The layout is that of `FastText::saveModel` in facebookresearch/fastText: arguments, dictionary, two matrices.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline_tasks.text.words.fasttext_model import Model

MAGIC, VERSION = 793712314, 12
SOFTMAX, SUPERVISED = 3, 3
WORD, LABEL = 0, 1
SURE = 20.0
"""How far apart the labels' scores are: a text of one label's words has it with probability 1 - 2e-9."""


def write_model(path: Path, words: Mapping[str, str]) -> str:
    """Write a supervised model that knows `words` (word -> label, without `__label__`); return its path.

    A text's probabilities are the softmax of SURE times the shares of its known words, so halves are 0.5 each.
    """
    labels = sorted(set(words.values()))
    names = [(word, WORD) for word in words] + [(f"__label__{label}", LABEL) for label in labels]
    arguments = (len(labels), 5, 5, 1, 5, 1, SOFTMAX, SUPERVISED, 0, 0, 0, 100)
    vectors = np.zeros((len(words), len(labels)), "<f4")
    vectors[range(len(words)), [labels.index(label) for label in words.values()]] = SURE
    path.write_bytes(
        _header(arguments)
        + _dictionary(names, [1] * len(names), len(labels))
        + _dense(vectors)
        + _dense(np.eye(len(labels), dtype="<f4"))
    )
    return str(path)


@dataclass(frozen=True, slots=True)
class Form:
    """What a random model is like; `kept` buckets are left by pruning (-1: all), a part of a vector has `width` columns.

    Vectors are not quantized if `width` is 0.
    """

    loss: int = SOFTMAX
    dimensions: int = 7
    buckets: int = 60
    shortest: int = 1
    longest: int = 3
    word_ngrams: int = 1
    kept: int = -1
    width: int = 0
    normed: bool = False
    quantized_output: bool = False
    words: Sequence[str] = ("</s>", "the", "Größe", "水獺", "a", "a" * 40)
    labels: int = 6


def write_random_model(path: Path, form: Form, seed: int = 0) -> str:
    """Write a supervised model of this form with random weights; return its path."""
    random = np.random.default_rng(seed)
    rows = len(form.words) + (form.buckets if form.kept < 0 else form.kept)
    names = [(word, WORD) for word in form.words] + [(f"__label__{number}", LABEL) for number in range(form.labels)]
    counts = [9] * len(form.words) + sorted(random.integers(1, 99, form.labels).tolist(), reverse=True)
    grams = (form.buckets, form.shortest, form.longest)
    arguments = (form.dimensions, 5, 5, 1, 5, form.word_ngrams, form.loss, SUPERVISED, *grams, 100)
    buckets = random.permutation(form.buckets)[: max(form.kept, 0)]
    pruned = np.stack([buckets, random.permutation(len(buckets))], axis=1).astype("<i4").tobytes()
    output = (
        _quantized(random, form.labels, form) if form.quantized_output else _dense(_weights(random, form.labels, form))
    )
    path.write_bytes(
        _header(arguments)
        + _dictionary(names, counts, form.labels, form.kept)
        + pruned
        + (_quantized(random, rows, form) if form.width else _dense(_weights(random, rows, form)))
        + output
    )
    return str(path)


def write_dense(path: Path, model: Model, buckets: int) -> str:
    """Write a pruned, quantized model as a dense one with fewer buckets, those that meet being added; return its path."""
    assert model.pruned is not None
    codes, norms, centroids, width = model.inputs.codes, model.inputs.norms, model.inputs.centroids, model.inputs.width
    parts = centroids.reshape(codes.shape[1], 256, width)
    vectors = norms[:, None] * np.concatenate([parts[part][codes[:, part]] for part in range(len(parts))], axis=1)
    rows = np.zeros((model.words + buckets, vectors.shape[1]), "<f4")
    rows[: model.words] = vectors[: model.words]
    np.add.at(rows, model.words + model.pruned[:, 0] % buckets, vectors[model.words + model.pruned[:, 1]])
    cuts = zip(model.ends[:-1].tolist(), model.ends[1:].tolist(), strict=True)
    entries = [model.letters[begin:end].tobytes().decode() for begin, end in cuts]
    names = [(name, WORD if number < model.words else LABEL) for number, name in enumerate(entries)]
    args = model.arguments
    grams = (args.word_ngrams, args.loss, SUPERVISED, buckets, args.shortest, args.longest)
    path.write_bytes(
        _header((args.dimensions, 5, 5, 1, 5, *grams, 100))
        + _dictionary(names, [1] * model.words + list(model.counts), len(model.labels))
        + _dense(rows)
        + _dense(model.outputs.dense)
    )
    return str(path)


def _header(arguments: Sequence[int]) -> bytes:
    return struct.pack("<2i12id", MAGIC, VERSION, *arguments, 1e-4)


def _dictionary(names: Sequence[tuple[str, int]], counts: Sequence[int], labels: int, pruned: int = -1) -> bytes:
    sizes = struct.pack("<3i2q", len(names), len(names) - labels, labels, 99, pruned)
    entries = zip(names, counts, strict=True)
    return sizes + b"".join(name.encode() + b"\0" + struct.pack("<qb", count, kind) for (name, kind), count in entries)


def _weights(random: np.random.Generator, rows: int, form: Form) -> npt.NDArray[np.float32]:
    return (3 * random.standard_normal((rows, form.dimensions))).astype(np.float32)


def _dense(values: npt.NDArray[np.float32]) -> bytes:
    return b"\0" + struct.pack("<2q", *values.shape) + values.tobytes()


def _quantized(random: np.random.Generator, rows: int, form: Form) -> bytes:
    parts = -(-form.dimensions // form.width)
    last = form.dimensions - (parts - 1) * form.width
    codes = random.integers(0, 256, rows * parts, np.uint8).tobytes()
    norms = random.integers(0, 256, rows, np.uint8).tobytes() + _quantizer(random, 1, 1, 1, 1) if form.normed else b""
    sizes = struct.pack("<2B2qi", 1, form.normed, rows, form.dimensions, len(codes))
    return sizes + codes + _quantizer(random, form.dimensions, parts, form.width, last) + norms


def _quantizer(random: np.random.Generator, *sizes: int) -> bytes:
    centroids = (2 * random.standard_normal(sizes[0] * 256)).astype("<f4")
    return struct.pack("<4i", *sizes) + centroids.tobytes()
