"""Encodes texts as token ids, by the reference or by fastokens where both agree."""

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Batches, reject
from pipeline_tasks.stages.tokenize.choosing import tiktoken_encoding
from pipeline_tasks.stages.tokenize.params import Params, record, record_of
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

COMPARED_DOCUMENTS = 16
COMPARED_SHARE = 64
"""`auto` compares the first 16 documents of a shard and one in 64 of all others, chosen by id."""

Ids = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""Token ids of n texts, concatenated, and their n + 1 offsets."""

Encoder = Callable[[list[str]], Ids]

_CHOICE = pa.schema([pa.field("backend", pa.string()), pa.field("compared", pa.int64())])
_CARRIED = (*LOCATOR.names, "id", "language", "html_language", "published", "score")


@lru_cache(maxsize=2)
def reference(kind: str, definition: bytes) -> Encoder:
    """Return the reference encoder; special tokens in a text are encoded as ordinary text."""
    if kind == "tiktoken":
        return _tiktoken(definition)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(definition.decode())
    tokenizer.encode_special_tokens = True

    def encode_texts(texts: list[str]) -> Ids:
        return _flat([encoded.ids for encoded in tokenizer.encode_batch_fast(texts, add_special_tokens=False)])

    return encode_texts


def _tiktoken(definition: bytes) -> Encoder:
    encoding = tiktoken_encoding(definition)
    return lambda texts: _flat([encoding.encode_ordinary(text) for text in texts])


@lru_cache(maxsize=2)
def fast(kind: str, definition: bytes) -> Encoder | None:
    """Return the fastokens encoder, or None where it cannot load this tokenizer."""
    if kind != "tokenizers":
        return None
    import fastokens

    try:
        tokenizer = fastokens.Tokenizer.from_json_str(definition.decode())
    except ValueError:  # an unsupported model or pre-tokenizer
        return None

    def encode_texts(texts: list[str]) -> Ids:
        ids, offsets = tokenizer.encode_batch_flat(texts, add_special_tokens=False, split_special_tokens=True)
        return np.frombuffer(ids, "<u4").astype(np.int32), np.frombuffer(offsets, "<u8").astype(np.int64)

    return encode_texts


def _flat(lists: list[list[int]]) -> Ids:
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(ids_of_text) for ids_of_text in lists], out=offsets[1:])
    ids = np.empty(int(offsets[-1]), np.int32)
    for number, ids_of_text in enumerate(lists):
        ids[offsets[number] : offsets[number + 1]] = ids_of_text
    return ids, offsets


def choose_backend(docs: Batches, tokenizer: Batches, *, params: Params) -> Batches:
    """Yield the backend of this shard: fastokens if it agrees with the reference on every compared document."""
    kind, definition = _definition(tokenizer)
    quick = fast(kind, definition) if params.backend == "auto" else None
    if quick is None:
        yield record(_CHOICE, backend="reference", compared=0)
        return
    agreed, compared = agree(quick, reference(kind, definition), _compared(docs))
    yield record(_CHOICE, backend="fastokens" if agreed else "reference", compared=compared)


def agree(quick: Encoder, slow: Encoder, samples: Iterable[list[str]]) -> tuple[bool, int]:
    """Return whether two encoders give the same ids for all `samples`, and how many texts were compared."""
    compared = 0
    for texts in samples:
        compared += len(texts)
        ours, theirs = quick(texts), slow(texts)
        if not (np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[1], theirs[1])):
            return False, compared
    return True, compared


def _compared(docs: Batches) -> Iterable[list[str]]:
    """Yield the texts to compare, by row number and id, so that batch sizes do not matter."""
    before = 0
    for batch in docs:
        first = np.arange(before, before + batch.num_rows) < COMPARED_DOCUMENTS
        chosen = first | (uniform_draws(batch["id"], 0) < DRAW_SPAN // COMPARED_SHARE)
        before += batch.num_rows
        if chosen.any():
            yield pc.fill_null(batch["text"].filter(pa.array(chosen)), "").to_pylist()


def encode(docs: Batches, choices: Batches, tokenizer: Batches) -> Batches:
    """Yield documents with `tokens` and `n_tokens` in place of their text, and reject those without tokens."""
    row = record_of(tokenizer)
    kind, definition = row["kind"], row["definition"]
    backend = record_of(choices)["backend"]
    encoder = fast(kind, definition) if backend == "fastokens" else None
    encoder = encoder or reference(kind, definition)
    for batch in docs:
        texts = pc.fill_null(batch["text"], "").to_pylist()
        yield _tokenized(batch, framed(encoder(texts), row["bos_id"], row["eos_id"]))


def framed(encoded: Ids, bos_id: int | None, eos_id: int) -> Ids:
    """Return ids with `bos_id` (if any) before and `eos_id` after each text that has tokens."""
    ids, offsets = encoded
    extra = 1 if bos_id is None else 2
    lengths = np.diff(offsets)
    filled = lengths > 0
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum(np.where(filled, lengths + extra, 0), out=ends[1:])
    out = np.full(int(ends[-1]), eos_id, np.int32)
    text = np.ones(len(out), bool)
    text[ends[1:][filled] - 1] = False
    if bos_id is not None:
        out[ends[:-1][filled]] = bos_id
        text[ends[:-1][filled]] = False
    out[text] = ids
    return out, ends


def _tokenized(batch: pa.RecordBatch, encoded: Ids) -> pa.RecordBatch:
    ids, offsets = encoded
    kept = batch.select([name for name in _CARRIED if name in batch.schema.names])
    tokens = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(ids))
    counts = np.diff(offsets)
    out = kept.append_column("tokens", tokens).append_column("n_tokens", pa.array(counts))
    if counts.all():
        return out
    reasons = pc.if_else(pa.array(counts == 0), "tokenize:empty", pa.scalar(None, pa.string()))
    return reject(out, reasons, pc.if_else(pc.is_valid(reasons), '{"tokens":0}', pa.scalar(None, pa.string())))


def _definition(tokenizer: Batches) -> tuple[str, bytes]:
    row = record_of(tokenizer)
    return row["kind"], row["definition"]
