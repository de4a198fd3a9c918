"""Chooses the tokenizer: loads the one that a recipe names, or trains one on a draw of the documents."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import Batches, Engine, Shards
from pipeline_tasks.stages.tokenize.params import (
    END_TOKENS,
    JSON,
    TIKTOKEN,
    TOKENIZER,
    Params,
    Trained,
    Training,
    record,
)
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws
from pipeline_tasks.yaml_file import read_bytes

MOST_BYTES = 256 << 20
"""Bytes of a tokenizer's file; those of the largest published vocabularies (256,000 entries) have 35 MB."""

MOST_ID = (1 << 24) - 1
"""The largest id of a token: 60 times that of the largest published vocabularies. The libraries count up to it."""

PROBE = "An otter of 1997 \u2013 \u00e9t\u00e9, \u65e5\u672c\u8a9e, \u043c\u0438\u0440, \U0001f9a6\x00\t\n"
"""A text with letters, digits and signs of several scripts, which every tokenizer has to encode."""

_SAMPLE = pa.schema([pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_SIZE = pa.schema([pa.field("bytes", pa.int64())])


def choose_tokenizer(shards: Shards, params: Params, on: Engine) -> Shards:
    """Return the one shard with the one row of `TOKENIZER`: loaded as the recipe says, or trained on the documents."""
    if params.tokenizer:
        load = partial(load_tokenizer, params=params)
        return on.group(load, on.map(no_sample, shards[:1]), by="id", order=("text",), buckets=1)
    training = params.train or Training()
    sizes = on.map(count_bytes, shards)
    sampled = on.map(partial(sample, training=training), shards, broadcast=sizes)
    return on.group(
        partial(train_tokenizer, params=params, training=training), sampled, by="id", order=("text",), buckets=1
    )


# --- Training -------------------------------------------------------------------------------------------------


def count_bytes(docs: Batches) -> Batches:
    """Yield the shard's bytes of text."""
    sizes = (pc.sum(pc.binary_length(batch["text"])).as_py() or 0 for batch in docs)
    yield record(_SIZE, bytes=sum(sizes))


def sample(docs: Batches, sizes: Batches, *, training: Training) -> Batches:
    """Yield the documents to train on: a share by draw of the id, about `training.bytes` in the whole run."""
    total = sum(sum(batch["bytes"].to_pylist()) for batch in sizes)
    limit = min(DRAW_SPAN, training.bytes * DRAW_SPAN // max(total, 1))
    yield pa.RecordBatch.from_pylist([], schema=_SAMPLE)
    if not total:
        return
    for batch in docs:
        chosen = batch.select(["id", "text"]).filter(pa.array(uniform_draws(batch["id"], 0) < limit))
        if chosen.num_rows:
            yield pa.RecordBatch.from_arrays(chosen.columns, schema=_SAMPLE)


def no_sample(_docs: Batches) -> Batches:
    """Yield no rows: the tokenizer is loaded, not trained."""
    yield pa.RecordBatch.from_pylist([], schema=_SAMPLE)


def train_tokenizer(sampled: Batches, *, params: Params, training: Training) -> Batches:
    """Yield the `TOKENIZER` row of a byte-level BPE that is trained on `sampled` (sorted by id, then text)."""
    yield _tokenizer_row("trained", train(sampled, params, training), params)


def train(sampled: Batches, params: Params, training: Training) -> Trained:
    """Return a byte-level BPE, whatever the order of documents.

    The trainer counts words, then merges the most frequent pair, the smaller ids first among equals; neither
    depends on order or threads. The byte alphabet comes first, so no text is unknown.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    documents, size = 0, 0

    def texts() -> Iterable[list[str]]:
        nonlocal documents, size
        for batch in sampled:
            documents += batch.num_rows
            size += pc.sum(pc.binary_length(batch["text"])).as_py() or 0
            yield batch["text"].to_pylist()

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=training.vocab_size,
        special_tokens=list(dict.fromkeys([params.eos or END_TOKENS[0], *([params.bos] if params.bos else [])])),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts(), trainer)
    return Trained(bpe.to_str(), documents, size)


# --- Loading --------------------------------------------------------------------------------------------------


def load_tokenizer(_rows: Batches, *, params: Params) -> Batches:
    """Yield the `TOKENIZER` row of the tokenizer that the recipe names."""
    if params.tokenizer.startswith(TIKTOKEN):
        yield _tiktoken_row(params.tokenizer, _fetched_tiktoken(params.tokenizer), params)
        return
    path = params.tokenizer if params.tokenizer.endswith(JSON) else _download(params.tokenizer)
    body = read_bytes(Path(path), MOST_BYTES)
    name = "" if params.tokenizer.endswith(JSON) else params.tokenizer
    if _is_tiktoken(body):
        tiktoken_encoding(body, path)
        yield _tiktoken_row(f"sha256:{hashlib.sha256(body).hexdigest()}", body, params)
    else:
        yield _tokenizer_row(name, Trained(_normal_form(body, path)), params)


def _normal_form(body: bytes, path: str) -> str:
    """Return a tokenizer.json as the library writes it, without truncation and padding; RecipeError if it is none."""
    from tokenizers import Tokenizer

    try:
        _require_ids(json.loads(body))
        tokenizer = Tokenizer.from_str(body.decode())
        tokenizer.no_truncation()  # published files often truncate at 512 tokens without notice
        tokenizer.no_padding()
        tokenizer.encode_batch_fast([PROBE], add_special_tokens=False)  # a vocabulary without its own unknown token
        return str(tokenizer.to_str())
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        # the library raises bare Exception, and for some files PanicException, which is no Exception
        message = f"tokenize.tokenizer: {path} is not a tokenizer.json ({str(error)[:200]}); name one of Hugging Face"
        raise RecipeError(message) from error


def _require_ids(definition: Any) -> None:  # noqa: ANN401 -- JSON
    """Raise ValueError unless the ids of a tokenizer.json are in their range: the library counts up to the largest."""
    vocabulary = definition["model"].get("vocab") or {}
    ids = list(vocabulary.values()) if isinstance(vocabulary, dict) else []
    _require_range([*ids, *(token["id"] for token in definition.get("added_tokens") or ())])


def _require_range(ids: Iterable[object]) -> None:
    for number in ids:
        if type(number) is not int or not 0 <= number <= MOST_ID:
            message = f"the id {str(number)[:20]} of a token is not a number from 0 to {MOST_ID:,}"
            raise ValueError(message)


def _is_tiktoken(body: bytes) -> bool:
    """Return whether a file has tiktoken's ranks as `tiktoken_definition` writes them."""
    return body.startswith(b'{"name":') and b'"pat_str":' in body and b'"ranks":{' in body


def _download(name: str) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    repository, _, revision = name.partition("@")
    try:
        return hf_hub_download(repository, "tokenizer.json", revision=revision)
    except (OSError, ValueError, HfHubHTTPError) as error:
        message = f"tokenize.tokenizer: cannot fetch tokenizer.json of {name} ({error}); write the path of a .json file"
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


def tiktoken_definition(encoding: Any) -> bytes:  # noqa: ANN401 -- tiktoken.Encoding, not imported here
    """Return JSON to build `encoding` again without the network: name, pattern, special tokens, ranks as hex."""
    parts = {
        "name": encoding.name,
        "pat_str": encoding._pat_str,  # noqa: SLF001 -- as tiktoken's own documentation extends encodings
        "special_tokens": encoding._special_tokens,  # noqa: SLF001
        "ranks": {piece.hex(): rank for piece, rank in encoding._mergeable_ranks.items()},  # noqa: SLF001
    }
    return json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()


def tiktoken_encoding(definition: bytes, name: str = "tiktoken") -> Any:  # noqa: ANN401 -- tiktoken.Encoding
    """Return the encoding of a `tiktoken_definition`; RecipeError if it is none."""
    import tiktoken

    try:
        parts = json.loads(definition)
        _require_range([*parts["ranks"].values(), *parts["special_tokens"].values()])
        encoding = tiktoken.Encoding(
            name=parts["name"],
            pat_str=parts["pat_str"],
            mergeable_ranks={bytes.fromhex(piece): rank for piece, rank in parts["ranks"].items()},
            special_tokens=parts["special_tokens"],
        )
        encoding.encode_ordinary(PROBE)  # ranks without single bytes
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        # ranks with gaps, ids out of range and a wrong pattern end in a PanicException, which is no Exception
        message = f"tokenize.tokenizer: {name} has no ranks of tiktoken ({str(error)[:200]}); export it again"
        raise RecipeError(message) from error
    return encoding
