"""Fast libraries, in the forms in which they give the ids of the reference."""

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipeline_tasks.stages.tokenize.references import Encoder, Ids, flat, reference
from pipeline_tasks.stages.tokenize.unsettled import unsettled

if TYPE_CHECKING:
    from gigatoken import gigatoken_rs

BACKENDS = ("gigatoken", "fastokens")
"""The fast libraries, the fastest first."""

FAST = ("tokenizers", "tiktoken")
"""The kinds of tokenizers that they encode with. Of SentencePiece gigatoken reads models, and differs where a text has
`<s>`, or is normalized.
"""

RENEWED_BYTES = 256 << 20
"""Bytes of text after which gigatoken is loaded anew: it keeps every word that it met, about 100 bytes for each.

The text of a language has few new words after some time. Words that never repeat take it to 2.5 GB.
"""

SCHEMES = {"bf51d578af571878": "gpt2", "f021c3d976978e62": "gpt4", "2d1b8dc11e89af71": "o200k"}
"""Start of the SHA-256 of a tiktoken vocabulary's pattern -> gigatoken's name for it: r50k, cl100k and o200k."""

FLAGS = ("single_word", "lstrip", "rstrip")
"""Rules of added tokens that gigatoken reads and does not follow."""

CLASSES = re.compile(r"\\\\[wWbBdD]")
"""Parts of a pattern that mean other characters in other libraries of regular expressions."""


@lru_cache(maxsize=4)
def fast(backend: str, kind: str, definition: bytes) -> Encoder | None:
    """Return the encoder of a fast library, or None where it does not know this tokenizer, or is known to differ.

    Texts with unsettled characters are encoded by the reference.
    """
    load = _gigatoken if backend == "gigatoken" else _fastokens
    try:
        encoder = load(kind, definition)
    except (RuntimeError, ValueError):  # a model, normalizer, pre-tokenizer or pattern that it does not know
        return None
    return encoder and _Settled(encoder, reference(kind, definition))


@dataclass(frozen=True, slots=True)
class _Settled:
    """Encodes texts with the fast library, and those with unsettled characters with the reference."""

    quick: Encoder
    slow: Encoder

    def __call__(self, texts: pa.Array) -> Ids:
        """Return the ids of texts."""
        from pipeline_tasks.text.base.listed import have_listed

        texts.validate(full=True)  # raises for what is no UTF-8, which nothing below does
        unsure = have_listed(texts, unsettled())
        if not unsure.any():
            return self.quick(texts)
        sure = self.quick(texts.filter(pa.array(~unsure)))
        parts = {True: _split(self.slow(texts.filter(pa.array(unsure)))), False: _split(sure)}
        return flat([next(parts[flag]) for flag in unsure.tolist()])


def _split(encoded: Ids) -> Iterator[Any]:
    ids, offsets = encoded
    for begin, end in pairwise(offsets):
        yield ids[begin:end]


# --- gigatoken ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gigatoken:
    """A tokenizer of gigatoken, loaded anew before it has kept too many words."""

    load: Callable[[], Any]
    tokenizer: Any = None
    met: int = 0

    def __post_init__(self) -> None:
        """Load the tokenizer."""
        self.tokenizer = self.load()

    def __call__(self, texts: pa.Array) -> Ids:
        """Return the ids of texts, which are passed as bytes: a `str` would be decoded, and encoded again.

        They come as an array of `awkward`, a library that gigatoken itself needs. One call per text would take an
        eighth longer. The calling thread does the work: a task has one core.
        """
        if self.met >= RENEWED_BYTES:
            self.tokenizer, self.met = self.load(), 0
        encoded = texts.cast(pa.large_binary()).to_pylist()
        self.met += sum(map(len, encoded))
        rows = self.tokenizer.encode_batch(encoded, parallel=False).layout
        return np.asarray(rows.content.data).view(np.int32), np.asarray(rows.offsets.data)


def _gigatoken(kind: str, definition: bytes) -> _Gigatoken | None:
    from gigatoken import gigatoken_rs

    parts = json.loads(definition)
    if kind == "tiktoken":
        scheme = SCHEMES.get(hashlib.sha256(parts["pat_str"].encode()).hexdigest()[:16])
        if scheme is None:
            return None
        return _Gigatoken(partial(_from_ranks, gigatoken_rs.BPETokenizer, parts["ranks"], scheme))
    if any(token[flag] for token in _ordinary(parts) for flag in FLAGS):
        return None
    return _Gigatoken(partial(gigatoken_rs.load_hf_json, _plain(parts)))


def _from_ranks(
    tokenizer: "type[gigatoken_rs.BPETokenizer]", ranks: Mapping[str, int], scheme: str
) -> "gigatoken_rs.BPETokenizer":
    """Return a tokenizer of tiktoken's ranks, which gigatoken reads from a file, without special tokens."""
    ordered = sorted(ranks.items(), key=lambda pair: pair[1])
    lines = (base64.b64encode(bytes.fromhex(piece)) + f" {rank}\n".encode() for piece, rank in ordered)
    with tempfile.NamedTemporaryFile(suffix=".tiktoken") as file:
        file.write(b"".join(lines))
        file.flush()
        return tokenizer.from_tiktoken(file.name, scheme, None)


def _ordinary(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [token for token in parts["added_tokens"] if not token["special"]]


def _plain(parts: Mapping[str, Any]) -> str:
    """Return a tokenizer.json without special tokens, which these libraries would find in a text."""
    return json.dumps({**parts, "added_tokens": _ordinary(parts), "post_processor": None})


# --- fastokens ------------------------------------------------------------------------------------------------


def _fastokens(kind: str, definition: bytes) -> Encoder | None:
    if kind != "tokenizers":
        return None
    import fastokens

    parts = json.loads(definition)
    cut = json.dumps(parts["pre_tokenizer"])
    if '"ByteLevel"' not in cut or CLASSES.search(cut):
        return None  # it differs where a tokenizer has no piece for a character
    tokenizer = fastokens.Tokenizer.from_json_str(_plain(parts))

    def encode_texts(texts: pa.Array) -> Ids:
        strings = texts.to_pylist()
        ids, offsets = tokenizer.encode_batch_flat(strings, add_special_tokens=False, split_special_tokens=True)
        return np.frombuffer(ids, "<u4").astype(np.int32), np.frombuffer(offsets, "<u8").astype(np.int64)

    return encode_texts
