"""Chooses the tokenizer: loads the one that a recipe names, or trains one on a draw of the documents."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import Batches, Engine, Shards
from pipeline_tasks.stages.tokenize.default import default_tokenizer
from pipeline_tasks.stages.tokenize.params import (
    END_TOKENS,
    JSON,
    MODEL,
    PROBE,
    TIKTOKEN,
    TOKENIZER,
    Params,
    Trained,
    Training,
    record,
)
from pipeline_tasks.stages.tokenize.sentence_piece import SENTENCEPIECE, end_piece, pieces, processor
from pipeline_tasks.stages.tokenize.tiktoken_ranks import (
    is_tiktoken,
    require_range,
    tiktoken_definition,
    tiktoken_encoding,
)
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws
from pipeline_tasks.text.base.tables import gathered
from pipeline_tasks.yaml_file import read_bytes

MOST_BYTES = 256 << 20
"""Bytes of a tokenizer's file; those of the largest published vocabularies (256,000 entries) have 35 MB."""

_SAMPLE = pa.schema([pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_SIZE = pa.schema([pa.field("bytes", pa.int64())])
_COUNTS = pa.schema(
    [
        pa.field("word", pa.string()),  # in the alphabet of bytes; "" in the row of the documents
        pa.field("count", pa.int64()),
        pa.field("documents", pa.int64()),
        pa.field("bytes", pa.int64()),  # of the documents' text
    ]
)


def choose_tokenizer(shards: Shards, params: Params, on: Engine) -> Shards:
    """Return the one shard with the one row of `TOKENIZER`: loaded as the recipe says, or trained on the documents."""
    if params.tokenizer:
        load = partial(load_tokenizer, params=params)
        return on.group(load, on.map(no_sample, shards[:1]), by="id", order=("text",), buckets=1)
    training = params.train or Training()
    sizes = on.map(count_bytes, shards)
    total = on.map(gathered, sizes[:1], broadcast=sizes)
    counts = on.map(partial(count_words, training=training), shards, broadcast=total)
    train_on = partial(train_tokenizer, params=params, training=training)
    return on.group(train_on, counts, by="word", order=("count", "documents", "bytes"), buckets=1)


# --- Training -------------------------------------------------------------------------------------------------


def count_bytes(docs: Batches) -> Batches:
    """Yield the shard's bytes of text."""
    sizes = (pc.sum(pc.binary_length(batch["text"])).as_py() or 0 for batch in docs)
    yield record(_SIZE, bytes=sum(sizes))


def count_words(docs: Batches, sizes: Batches, *, training: Training) -> Batches:
    """Yield how often the documents to train on have each word, and in one more row how many documents there are.

    They are a share by draw of the id, about `training.bytes` in the whole run.
    """
    from pipeline_tasks.text.words.byte_level import count_byte_level_words

    total = sum(sum(batch["bytes"].to_pylist()) for batch in sizes)
    limit = min(DRAW_SPAN, training.bytes * DRAW_SPAN // max(total, 1))
    documents, size = 0, 0

    def texts() -> Iterator[pa.Array]:
        nonlocal documents, size
        for batch in docs if total else ():
            chosen = batch["text"].filter(pa.array(uniform_draws(batch["id"], 0) < limit))
            documents += len(chosen)
            size += pc.sum(pc.binary_length(chosen)).as_py() or 0
            yield chosen

    words, counts = count_byte_level_words(texts())
    yield record(_COUNTS, word="", count=0, documents=documents, bytes=size)
    zeros = pa.array(np.zeros(len(words), np.int64))
    yield pa.RecordBatch.from_arrays([words, counts, zeros, zeros], schema=_COUNTS)


def no_sample(_docs: Batches) -> Batches:
    """Yield no rows: the tokenizer is loaded, not trained."""
    yield pa.RecordBatch.from_pylist([], schema=_SAMPLE)


def train_tokenizer(counts: Batches, *, params: Params, training: Training) -> Batches:
    """Yield the `TOKENIZER` row of a byte-level BPE that is trained on the words of all shards, sorted by word."""
    yield _tokenizer_row("trained", train(pa.Table.from_batches(counts), params, training), params)


def train(counts: pa.Table, params: Params, training: Training) -> Trained:
    """Return a byte-level BPE, whatever the order of documents, as the library's own trainer makes it.

    It merges the most frequent pair, the smaller ids first among equals; neither depends on order or threads. The byte
    alphabet comes first, so no text is unknown.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    from pipeline_tasks.text.words.byte_pairs import learn_merges

    ends = list(dict.fromkeys([params.eos or END_TOKENS[0], *([params.bos] if params.bos else [])]))
    summed = (
        counts.filter(pc.not_equal(counts["word"], ""))
        .group_by("word", use_threads=False)
        .aggregate([("count", "sum")])
    )
    words, often = summed["word"].to_pylist(), summed["count_sum"].to_numpy()
    alphabet = [letter for letter in sorted(pre_tokenizers.ByteLevel.alphabet()) if letter not in ends]
    learned = learn_merges(words, often, [*ends, *alphabet], training.vocab_size)
    numbered = {token: number for number, token in enumerate(learned.vocabulary)}
    bpe = Tokenizer(models.BPE(vocab=numbered, merges=learned.merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in ends])
    documents, size = (pc.sum(counts[name]).as_py() for name in ("documents", "bytes"))
    return Trained(bpe.to_str(), documents, size)


# --- Loading --------------------------------------------------------------------------------------------------


def load_tokenizer(_rows: Batches, *, params: Params) -> Batches:
    """Yield the `TOKENIZER` row of the tokenizer that the recipe names."""
    if params.tokenizer.startswith(TIKTOKEN):
        yield _tiktoken_row(params.tokenizer, _fetched_tiktoken(params.tokenizer), params)
        return
    if params.tokenizer.endswith(MODEL):
        yield _sentencepiece_row(read_bytes(Path(params.tokenizer), MOST_BYTES), params)
        return
    path = params.tokenizer if params.tokenizer.endswith(JSON) else _download(params.tokenizer)
    body = read_bytes(Path(path), MOST_BYTES)
    name = "" if params.tokenizer.endswith(JSON) else params.tokenizer
    if is_tiktoken(body):
        tiktoken_encoding(body, path)
        yield _tiktoken_row(f"sha256:{hashlib.sha256(body).hexdigest()}", body, params)
    else:
        yield _tokenizer_row(name, Trained(_normal_form(body, path)), params)


def default_row(params: Params) -> pa.RecordBatch:
    """Return the `TOKENIZER` row of the default tokenizer, with the special tokens that the params name."""
    _, definition, _ = default_tokenizer()
    return _tokenizer_row("", Trained(_normal_form(definition, "the default tokenizer")), params)


def _normal_form(body: bytes, path: str) -> str:
    """Return a tokenizer.json as the library writes it, without truncation and padding; RecipeError if it is none."""
    from tokenizers import Tokenizer

    try:
        _require_ids(json.loads(body))
        tokenizer = Tokenizer.from_str(body.decode())
        tokenizer.no_truncation()  # published files often truncate at 512 tokens without notice
        tokenizer.no_padding()
        if getattr(tokenizer.model, "dropout", None):  # merges that are left out at random: ids must not depend on it
            tokenizer.model.dropout = None
        tokenizer.encode_batch_fast([PROBE], add_special_tokens=False)  # a vocabulary without its own unknown token
        return str(tokenizer.to_str())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        # the library raises bare Exception, and for some files PanicException, which is no Exception
        message = f"tokenize.tokenizer: {path} is not a tokenizer.json ({str(error)[:200]}); name one of Hugging Face"
        raise RecipeError(message) from error


def _require_ids(definition: Mapping[str, Any]) -> None:
    """Raise ValueError unless the ids of a tokenizer.json are in their range: the library counts up to the largest."""
    vocabulary = definition["model"].get("vocab") or {}
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    require_range([*ids, *(token["id"] for token in definition.get("added_tokens") or ())])


def _download(name: str) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    repository, _, revision = name.partition("@")
    try:
        return hf_hub_download(repository, "tokenizer.json", revision=revision)
    except (OSError, ValueError, HfHubHTTPError) as error:
        message = (
            f"tokenize.tokenizer: cannot fetch tokenizer.json of {name} ({error}); write the path of a {JSON} or "
            f"{MODEL} file"
        )
        raise RecipeError(message) from error


def _tokenizer_row(name: str, trained: Trained, params: Params) -> pa.RecordBatch:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(trained.definition)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    content = trained.definition.encode()
    return record(
        TOKENIZER,
        kind="tokenizers",
        name=name or f"sha256:{hashlib.sha256(content).hexdigest()}",
        definition=content,
        vocab_size=max(vocabulary.values(), default=-1) + 1,
        eos_id=_end_token(vocabulary, params),
        bos_id=_token(vocabulary, params.bos, "bos") if params.bos else None,
        documents=trained.documents,
        bytes=trained.size,
    )


def _end_token(vocabulary: Mapping[str, int], params: Params) -> int:
    if params.eos:
        return _token(vocabulary, params.eos, "eos")
    for name in END_TOKENS:
        if name in vocabulary:
            return vocabulary[name]
    message = f"tokenize.eos: {params.tokenizer} has none of {END_TOKENS}; name its end token"
    raise RecipeError(message)


def _token(vocabulary: Mapping[str, int], name: str, key: str) -> int:
    if name not in vocabulary:
        message = f"tokenize.{key}: the tokenizer has no token {name!r}; name one that it has"
        raise RecipeError(message)
    return vocabulary[name]


# --- tiktoken -------------------------------------------------------------------------------------------------


def _fetched_tiktoken(tokenizer: str) -> bytes:
    import tiktoken

    name = tokenizer.removeprefix(TIKTOKEN)
    try:
        return tiktoken_definition(tiktoken.get_encoding(name))
    except (OSError, ValueError) as error:
        message = f"tokenize.tokenizer: tiktoken cannot load {name!r} ({error}); correct it, or set TIKTOKEN_CACHE_DIR"
        raise RecipeError(message) from error


def _tiktoken_row(name: str, definition: bytes, params: Params) -> pa.RecordBatch:
    encoding = tiktoken_encoding(definition, name)
    specials = encoding._special_tokens  # noqa: SLF001 -- tiktoken has no public way to list ids by name
    return record(
        TOKENIZER,
        kind="tiktoken",
        name=name,
        definition=definition,
        vocab_size=encoding.max_token_value + 1,
        eos_id=_end_token(specials, params),
        bos_id=_token(specials, params.bos, "bos") if params.bos else None,
        documents=0,
        bytes=0,
    )


# --- SentencePiece --------------------------------------------------------------------------------------------


def _sentencepiece_row(definition: bytes, params: Params) -> pa.RecordBatch:
    model = processor(definition, params.tokenizer)
    numbered, end = pieces(model), params.eos or end_piece(model)
    return record(
        TOKENIZER,
        kind=SENTENCEPIECE,
        name=f"sha256:{hashlib.sha256(definition).hexdigest()}",
        definition=definition,
        vocab_size=model.get_piece_size(),
        eos_id=_token(numbered, end, "eos") if end else _end_token(numbered, params),
        bos_id=_token(numbered, params.bos, "bos") if params.bos else None,
        documents=0,
        bytes=0,
    )
