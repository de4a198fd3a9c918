"""Writes small fastText models by hand: each word speaks for one label, so that every answer is known beforehand."""

import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

MAGIC, VERSION = 793712314, 12
SOFTMAX, SUPERVISED = 3, 3
WORD, LABEL = 0, 1
SURE = 20.0
"""How far apart the labels' scores are: a text of one label's words has it with probability 1 - 2e-9."""


def write_model(path: Path, words: Mapping[str, str]) -> str:
    """Write a supervised model that knows `words` (word -> label, without `__label__`); return its path.

    A text's probabilities are the softmax of SURE times the shares of its known words, so halves are 0.5 each.
    The layout is that of `FastText::saveModel` in facebookresearch/fastText: arguments, dictionary, two matrices.
    """
    labels = sorted(set(words.values()))
    names = [(word, WORD) for word in words] + [(f"__label__{label}", LABEL) for label in labels]
    arguments = (len(labels), 5, 5, 1, 5, 1, SOFTMAX, SUPERVISED, 0, 0, 0, 100)
    vectors = np.zeros((len(words), len(labels)), "<f4")
    vectors[range(len(words)), [labels.index(label) for label in words.values()]] = SURE
    path.write_bytes(
        struct.pack("<2i12id", MAGIC, VERSION, *arguments, 1e-4)
        + struct.pack("<3i2q", len(names), len(words), len(labels), len(words), -1)
        + b"".join(name.encode() + b"\0" + struct.pack("<qb", 1, kind) for name, kind in names)
        + _matrix(vectors)
        + _matrix(np.eye(len(labels), dtype="<f4"))
    )
    return str(path)


def _matrix(values: np.ndarray) -> bytes:  # type: ignore[type-arg]
    return b"\0" + struct.pack("<2q", *values.shape) + values.tobytes()
