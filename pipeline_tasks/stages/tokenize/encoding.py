"""Encodes texts as token ids, by the fastest library that gives the ids of the reference."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.schema import LOCATOR, OFFSPRING
from pipeline_tasks.stage import Batches, reject
from pipeline_tasks.stages.tokenize.fast import BACKENDS, FAST, fast
from pipeline_tasks.stages.tokenize.losses import Loss, loss
from pipeline_tasks.stages.tokenize.params import record_of
from pipeline_tasks.stages.tokenize.references import Encoder, Ids, reference
from pipeline_tasks.text.base.sampling import uniform_draws

FIRST, FIRST_CHARACTERS = 16, 1024
"""Rows at the start of a shard whose texts are compared, and how many characters of each."""

STEP, STRETCH = 512, 256
"""Every so many rows a text is compared, in a stretch of so many characters that begins where the id says.

Many short stretches meet more languages and characters than a few whole documents. The reference takes up to a hundred
times as long as the fastest library: comparing one character in some six thousand adds a few percent.
"""

STORED = ("tokens", "n_tokens", "n_bytes", "lost_chars")
"""Columns that the stage adds."""

RESERVED = "reserved_tokens"
"""The column of the tokens of a text that mean the end or the start of a document."""

ENCODED = (*STORED, RESERVED)
"""Columns that encoding stores."""

JUDGED = ("language", *ENCODED[1:])
"""Columns that decide which documents stay, or are counted of those."""

DESCRIBED = (
    *("topic", "topic_name", "topic_similarity"),
    *("document_type", "reading_ease", "reading_level", "license_notice"),
    *("headings", "list_lines", "table_rows", "code_lines", "structure_ratio", "token_estimate"),
)
"""Columns of `topics` and `enrich`, by which builds select and mix."""

_CARRIED = (*LOCATOR.names, "id", "language", "html_language", "published", "score", *DESCRIBED, *OFFSPRING.names)


class Choice(NamedTuple):
    """The backend of a shard, and how many texts were compared for it."""

    backend: str
    compared: int


def choose_backend(docs: Iterable[pa.RecordBatch], tokenizer: Mapping[str, Any], backend: str) -> Choice:
    """Return the backend of a shard: the fastest one that agrees with the reference on all that is compared."""
    kind, definition = tokenizer["kind"], tokenizer["definition"]
    if backend == "reference" or kind not in FAST:
        return Choice("reference", 0)
    compared, slow = list(samples(docs)), reference(kind, definition)
    wanted = [slow(texts) for texts in compared]
    agreed = (name for name in BACKENDS if _agrees(fast(name, kind, definition), compared, wanted))
    return Choice(next(agreed, "reference"), sum(map(len, compared)))


def _agrees(encoder: Encoder | None, compared: list[pa.Array], wanted: list[Ids]) -> bool:
    pairs = zip(compared, wanted, strict=True)
    return encoder is not None and all(_equal(encoder(texts), ids) for texts, ids in pairs)


def _equal(ours: Ids, theirs: Ids) -> bool:
    return np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[1], theirs[1])


def samples(docs: Iterable[pa.RecordBatch]) -> Iterator[pa.Array]:
    """Yield the texts to compare, chosen by row number and id, so that batch sizes do not matter."""
    before = 0
    for batch in docs:
        rows = sampled_rows(before, batch.num_rows)
        if len(rows):
            yield stretches(_taken(batch, rows), before + rows)
        before += batch.num_rows


def sampled_rows(before: int, count: int) -> npt.NDArray[np.int64]:
    """Return which of `count` rows that come after `before` others are compared."""
    rows = np.arange(before, before + count)
    return np.flatnonzero((rows < FIRST) | (rows % STEP == 0))


def _taken(batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.RecordBatch:
    return batch.select(["id", "text"]).take(pa.array(rows))


def stretches(docs: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Return the part of each document that is compared; `rows` are the documents' numbers in the shard."""
    draws = uniform_draws(docs["id"], 0).tolist()
    texts = pc.fill_null(docs["text"], "").to_pylist()
    parts = [_stretch(text, row, draw) for text, row, draw in zip(texts, rows.tolist(), draws, strict=True)]
    return pa.array(parts, pa.large_string())


def _stretch(text: str, row: int, draw: int) -> str:
    if row < FIRST:
        return _whole_words(text, 0, FIRST_CHARACTERS)
    begin = draw % max(len(text) - STRETCH + 1, 1)
    return _whole_words(text, begin, begin + STRETCH)


def _whole_words(text: str, begin: int, end: int) -> str:
    """Return text[begin:end] without what it has of words that its edges cut, unless it has no whole word.

    To a tokenizer whose vocabulary is words, a part of one is unknown: it would seem to lose characters.
    """
    first, last = begin, end
    if end < len(text) and not text[end].isspace():
        last = next((at for at in range(end - 1, begin - 1, -1) if text[at].isspace()), end)
    if begin and not text[begin - 1].isspace():
        first = next((at for at in range(begin, end) if text[at].isspace()), begin)
    whole = text[first:last]
    return whole if whole.strip() else text[begin:end]


def encode(docs: Batches, tokenizer: Batches, *, backend: str) -> Batches:
    """Yield documents with their tokens in place of their text, whatever these are: `decide` judges them.

    The texts of a shard are in memory: what is compared is from all of it.
    """
    row, batches = record_of(tokenizer), list(docs)
    yield from encoded(batches, row, choose_backend(batches, row, backend).backend)


def encoded(docs: Iterable[pa.RecordBatch], tokenizer: Mapping[str, Any], backend: str) -> Batches:
    """Yield documents with the tokens that a backend gives them, in place of their text."""
    from pipeline_tasks.text.base.framing import NONE, frame

    kind, definition, bos = tokenizer["kind"], tokenizer["definition"], tokenizer["bos_id"]
    encoder = (fast(backend, kind, definition) if backend in BACKENDS else None) or reference(kind, definition)
    before, count = 0, loss(kind, definition)
    for batch in docs:
        texts = pc.fill_null(batch["text"], "").cast(pa.large_string())
        lost = _lost(batch, before, encoder, count)
        before += batch.num_rows
        tokens, offsets, reserved = frame(*encoder(texts), NONE if bos is None else bos, tokenizer["eos_id"])
        columns = {
            "tokens": pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(tokens)),
            "n_tokens": pa.array(np.diff(offsets)),
            "n_bytes": pc.binary_length(texts).cast(pa.int64()),
            "lost_chars": lost,
            RESERVED: pa.array(reserved.astype(np.int64)),
        }
        out = batch.select([name for name in _CARRIED if name in batch.schema.names])
        for name in ENCODED:
            out = out.append_column(name, columns[name])
        yield out


def _lost(batch: pa.RecordBatch, before: int, encoder: Encoder, count: Loss) -> pa.Array:
    """Return for each compared row how many characters decoding does not give back, null for the others."""
    lost = pa.nulls(batch.num_rows, pa.int64())
    rows = sampled_rows(before, batch.num_rows)
    if not len(rows):
        return lost
    texts = stretches(_taken(batch, rows), before + rows)
    ids, offsets = encoder(texts)
    parts = [ids[begin:end].tolist() for begin, end in pairwise(offsets)]
    counts = [count(text, part) for text, part in zip(texts.to_pylist(), parts, strict=True)]
    compared = np.zeros(batch.num_rows, bool)
    compared[rows] = True
    return pc.replace_with_mask(lost, pa.array(compared), pa.array(counts, pa.int64()))


def decide(encoded: Batches) -> Batches:
    """Reject documents without tokens, and those whose text encodes to the end token or the one before a document.

    No reader could tell where the latter end.
    """
    for batch in encoded:
        yield _judged(batch.drop_columns([RESERVED]), batch[RESERVED])


def _judged(batch: pa.RecordBatch, reserved: pa.Array) -> pa.RecordBatch:
    empty, marked = pc.equal(batch["n_tokens"], 0), pc.greater(reserved, 0)
    if not pc.any(empty).as_py() and not pc.any(marked).as_py():
        return batch
    none = pa.scalar(None, pa.string())
    reasons = pc.if_else(empty, "tokenize:empty", pc.if_else(marked, "tokenize:reserved", none))
    found = pc.binary_join_element_wise('{"reserved":', reserved.cast(pa.string()), "}", "")
    return reject(batch, reasons, pc.if_else(empty, '{"tokens":0}', pc.if_else(marked, found, none)))
