"""The library that defines the ids of each kind of tokenizer."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline_tasks.stages.tokenize.hugging_face import loaded
from pipeline_tasks.stages.tokenize.sentence_piece import SENTENCEPIECE, processor
from pipeline_tasks.stages.tokenize.tiktoken_ranks import tiktoken_encoding

Ids = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""Token ids of n texts, concatenated, and their n + 1 offsets."""

Encoder = Callable[[pa.Array], Ids]
"""What encodes an array of texts, none of them null."""


@lru_cache(maxsize=2)
def reference(kind: str, definition: bytes) -> Encoder:
    """Return the reference encoder; special tokens in a text are encoded as ordinary text."""
    if kind == "tiktoken":
        encoding = tiktoken_encoding(definition)
        return lambda texts: flat([encoding.encode_ordinary(text) for text in texts.to_pylist()])
    if kind == SENTENCEPIECE:
        model = processor(definition)
        return lambda texts: flat(model.encode(texts.to_pylist(), num_threads=1))
    tokenizer = loaded(definition)

    def encode_texts(texts: pa.Array) -> Ids:
        encoded = tokenizer.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        return flat([text.ids for text in encoded])

    return encode_texts


def flat(parts: Sequence[Any]) -> Ids:
    """Return lists or arrays of ids as one array with offsets."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    ids = np.empty(int(offsets[-1]), np.int32)
    for number, part in enumerate(parts):
        ids[offsets[number] : offsets[number + 1]] = part
    return ids, offsets
