"""Encode the text of each document as token ids that end with exactly one end token."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import Bytes
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.schema import LOCATOR
from pipeline_tasks.stage import Batches, Engine, Section, Shards, Stage, reject
from pipeline_tasks.text.base.sampling import DRAW_SPAN, uniform_draws

TRAIN = {"vocab_size": 8192, "bytes": 50_000_000}
"""Defaults of training: entries of the vocabulary, bytes of text to train on."""

END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "[SEP]")
"""End tokens to look up, in order, when the recipe names none: GPT-2/NeoX, Llama 3, Llama 1-2/T5, Gemma, BERT."""

COMPARED_DOCUMENTS = 16
COMPARED_SHARE = 64
"""`auto` compares the first 16 documents of a shard and one in 64 of all others, chosen by id."""

Ids = tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]
"""Token ids of n texts, concatenated, and their n + 1 offsets."""

Encoder = Callable[[list[str]], Ids]


@dataclass(frozen=True, slots=True)
class Params:
    """The tokenizer, and the tokens before and after a document.

    `tokenizer` is the path of a `tokenizer.json`, a Hugging Face `name@revision`, or `tiktoken:NAME`. Empty trains a
    byte-level BPE on the documents of the first snapshot with `train` (`vocab_size`, `bytes`). Later snapshots with the
    same `train`, `eos` and `bos` reuse it from history, so the vocabulary of a daily pipeline is stable. An empty end
    token `eos` is looked up in `END_TOKENS`. An empty `bos` puts no token before a document.

    `backend` is `auto` or `reference`. The reference is Hugging Face tokenizers, or tiktoken for its own vocabularies.
    `auto` encodes a shard with fastokens, an order of magnitude faster, if it gives identical ids for the first 16
    documents of the shard and for one in 64 of the others; after one difference the reference encodes the whole shard.
    A difference in no compared document is not detected: set `reference` if that is not acceptable.
    """

    tokenizer: str = ""
    train: Mapping[str, Bytes] = field(default_factory=lambda: dict(TRAIN))
    eos: str = ""
    bos: str = ""
    backend: str = "auto"


TOKENIZER = pa.schema(
    [
        pa.field("kind", pa.string()),  # `tokenizers` or `tiktoken`
        pa.field("name", pa.string()),  # as in the recipe; `trained`; or `sha256:...` of a file
        pa.field("definition", pa.large_binary()),  # tokenizer.json, or for tiktoken the JSON of `tiktoken_definition`
        pa.field("vocab_size", pa.int64()),  # largest id + 1; decides the dtype of exported tokens
        pa.field("eos_id", pa.int32()),
        pa.field("bos_id", pa.int32()),  # null where documents have no first token
        pa.field("request", pa.string()),  # `request_of` a trained tokenizer; empty for a loaded one
        pa.field("documents", pa.int64()),  # documents trained on; 0 for a loaded tokenizer
    ]
)
"""One row with everything that encoding and decoding need. The stage saves it as its history section `tokenizer`."""

_SAMPLE = pa.schema([pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_SIZE = pa.schema([pa.field("bytes", pa.int64())])
_CHOICE = pa.schema([pa.field("backend", pa.string()), pa.field("compared", pa.int64())])
_CARRIED = (*LOCATOR.names, "id", "language", "html_language", "published", "score")


def resources(params: Params) -> tuple[str, ...]:
    """Return the files whose content is identity: the `tokenizer.json`, if the recipe names one."""
    return (params.tokenizer,) if params.tokenizer.endswith(".json") else ()


# --- Choosing a tokenizer -------------------------------------------------------------------------------------


def request_of(params: Params) -> str:
    """Return the params that decide a trained vocabulary, as canonical JSON."""
    request = {"bos": params.bos, "eos": params.eos, "train": training(params)}
    return json.dumps(request, sort_keys=True, separators=(",", ":"))


def training(params: Params) -> dict[str, int]:
    """Return `train` with its defaults; RecipeError for unknown keys or numbers out of range."""
    unknown = sorted(set(params.train) - set(TRAIN))
    if unknown:
        message = f"tokenize.train: unknown keys {unknown}; it takes {sorted(TRAIN)}"
        raise RecipeError(message)
    settings = {**TRAIN, **params.train}
    if settings["vocab_size"] <= 256 or settings["bytes"] <= 0:  # noqa: PLR2004 -- one entry per byte comes first
        message = f"tokenize.train: {settings}; vocab_size must be over 256 (the bytes) and bytes over 0"
        raise RecipeError(message)
    return settings


def count_bytes(docs: Batches, history: Batches | None = None, *, params: Params) -> Batches:
    """Yield the shard's bytes of text, or 0 when history has a tokenizer for the request."""
    if history is not None and _from_history(history, params) is not None:
        yield _row(_SIZE, bytes=0)
        return
    sizes = (pc.sum(pc.binary_length(batch["text"])).as_py() or 0 for batch in docs)
    yield _row(_SIZE, bytes=sum(sizes))


def sample(docs: Batches, sizes: Batches, *, params: Params) -> Batches:
    """Yield the documents to train on: a share by draw of the id, about `train.bytes` in the whole run."""
    total = sum(sum(batch["bytes"].to_pylist()) for batch in sizes)
    limit = min(DRAW_SPAN, training(params)["bytes"] * DRAW_SPAN // max(total, 1))
    yield _empty(_SAMPLE)
    if not total:
        return
    for batch in docs:
        chosen = batch.select(["id", "text"]).filter(pa.array(uniform_draws(batch["id"], 0) < limit))
        if chosen.num_rows:
            yield pa.RecordBatch.from_arrays(chosen.columns, schema=_SAMPLE)


def no_sample(_docs: Batches) -> Batches:
    """Yield no rows: the tokenizer is loaded, not trained."""
    yield _empty(_SAMPLE)


def make_tokenizer(sampled: Batches, *, params: Params) -> Batches:
    """Yield the `TOKENIZER` row: loaded as the recipe says, or trained on `sampled` (sorted by id, then text)."""
    if params.tokenizer.startswith("tiktoken:"):
        yield _tiktoken_row(params)
    else:
        yield _tokenizer_row(params, *(_load(params.tokenizer) if params.tokenizer else train(sampled, params)))


def train(sampled: Batches, params: Params) -> tuple[str, int]:
    """Return (tokenizer.json, number of documents) of a byte-level BPE, whatever the order of documents.

    The trainer counts words, then merges the most frequent pair, the smaller ids first among equals; neither
    depends on order or threads. The byte alphabet comes first, so no text is unknown.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    seen = 0

    def texts() -> Iterable[list[str]]:
        nonlocal seen
        for batch in sampled:
            seen += batch.num_rows
            yield batch["text"].to_pylist()

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=training(params)["vocab_size"],
        special_tokens=list(dict.fromkeys([params.eos or END_TOKENS[0], *([params.bos] if params.bos else [])])),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts(), trainer)
    return bpe.to_str(), seen


def prefer_history(trained: Batches, history: Batches, *, params: Params) -> Batches:
    """Yield the earliest tokenizer of history for the same request, else `trained`."""
    earlier = _from_history(history, params)
    if earlier is None:
        yield from trained
    else:
        yield earlier


def _from_history(history: Batches, params: Params) -> pa.RecordBatch | None:
    """Return the first row for this request that was trained on documents; None if there is none."""
    request = request_of(params)
    for batch in history:
        for row in range(batch.num_rows):
            if batch["request"][row].as_py() == request and batch["documents"][row].as_py() > 0:
                return batch.slice(row, 1)
    return None


def _load(name: str) -> tuple[str, int]:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(name if name.endswith(".json") else _download(name)).to_str(), 0


def _download(name: str) -> str:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    repository, at, revision = name.partition("@")
    if not at:
        message = (
            f"tokenize.tokenizer: {name!r} has no revision; "
            f"write {name}@REVISION (a commit, a tag, or main), or the path of a .json file"
        )
        raise RecipeError(message)
    try:
        return hf_hub_download(repository, "tokenizer.json", revision=revision)
    except (OSError, ValueError, HfHubHTTPError) as error:
        message = f"tokenize.tokenizer: cannot fetch tokenizer.json of {name} ({error}); write the path of a .json file"
        raise RecipeError(message) from error


def _tokenizer_row(params: Params, definition: str, documents: int) -> pa.RecordBatch:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(definition)
    tokenizer.no_truncation()  # published files often truncate at 512 tokens without notice
    tokenizer.no_padding()
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    content = tokenizer.to_str().encode()
    return _row(
        TOKENIZER,
        kind="tokenizers",
        name=f"sha256:{hashlib.sha256(content).hexdigest()}" if resources(params) else params.tokenizer or "trained",
        definition=content,
        vocab_size=max(vocabulary.values()) + 1,
        eos_id=_end_token(vocabulary, params),
        bos_id=_token(vocabulary, params.bos, "bos") if params.bos else None,
        request="" if params.tokenizer else request_of(params),
        documents=documents,
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


def _tiktoken_row(params: Params) -> pa.RecordBatch:
    import tiktoken

    name = params.tokenizer.removeprefix("tiktoken:")
    try:
        encoding = tiktoken.get_encoding(name)
    except (OSError, ValueError) as error:
        message = f"tokenize.tokenizer: tiktoken cannot load {name!r} ({error}); correct it, or set TIKTOKEN_CACHE_DIR"
        raise RecipeError(message) from error
    specials = encoding._special_tokens  # noqa: SLF001 -- tiktoken has no public way to list ids by name
    return _row(
        TOKENIZER,
        kind="tiktoken",
        name=params.tokenizer,
        definition=tiktoken_definition(encoding),
        vocab_size=encoding.max_token_value + 1,
        eos_id=_end_token(specials, params),
        bos_id=_token(specials, params.bos, "bos") if params.bos else None,
        request="",
        documents=0,
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


# --- Encoding -------------------------------------------------------------------------------------------------


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
    import tiktoken

    parts = json.loads(definition)
    encoding = tiktoken.Encoding(
        name=parts["name"],
        pat_str=parts["pat_str"],
        mergeable_ranks={bytes.fromhex(piece): rank for piece, rank in parts["ranks"].items()},
        special_tokens=parts["special_tokens"],
    )
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
        yield _row(_CHOICE, backend="reference", compared=0)
        return
    agreed, compared = agree(quick, reference(kind, definition), _compared(docs))
    yield _row(_CHOICE, backend="fastokens" if agreed else "reference", compared=compared)


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
    row = _only(tokenizer)
    kind, definition = row["kind"], row["definition"]
    backend = _only(choices)["backend"]
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


# --- Rows -----------------------------------------------------------------------------------------------------


def _definition(tokenizer: Batches) -> tuple[str, bytes]:
    row = _only(tokenizer)
    return row["kind"], row["definition"]


def _only(batches: Batches) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [row for batch in batches for row in batch.to_pylist()]
    if len(rows) != 1:
        message = f"tokenize: expected one row and got {len(rows)}; remove this stage's output and run again"
        raise ContractError(message)
    return rows[0]


def _row(schema: pa.Schema, **values: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=schema)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Choose one tokenizer for the whole run, save it in history, and encode every shard with it."""
    _check(params)
    tokenizer = _tokenizer(shards, params, on)
    on.save_history("tokenizer", tokenizer)
    choices = on.map(partial(choose_backend, params=params), shards, broadcast=tokenizer)
    return on.map(encode, shards, choices, broadcast=tokenizer)


def _check(params: Params) -> None:
    training(params)
    if params.backend not in ("auto", "reference"):
        message = f"tokenize.backend: {params.backend!r}; it is `auto` or `reference`"
        raise RecipeError(message)


def _tokenizer(shards: Shards, params: Params, on: Engine) -> Shards:
    make = partial(make_tokenizer, params=params)
    if params.tokenizer:
        return on.group(make, on.map(no_sample, shards[:1]), by="id", order=("text",), buckets=1)
    earlier = sum(on.history("tokenizer"), ())
    sizes = on.map(partial(count_bytes, params=params), shards, broadcast=earlier)
    sampled = on.map(partial(sample, params=params), shards, broadcast=sizes)
    trained = on.group(make, sampled, by="id", order=("text",), buckets=1)
    return on.map(partial(prefer_history, params=params), trained, broadcast=earlier) if earlier else trained


_READS = pa.schema([*LOCATOR, pa.field("id", pa.string()), pa.field("text", pa.large_string())])
_WRITES = pa.schema(
    [
        *LOCATOR,
        pa.field("id", pa.string()),
        pa.field("tokens", pa.list_(pa.int32())),
        pa.field("n_tokens", pa.int64()),
    ]
)

STAGE: Stage[Params] = Stage(
    name="tokenize",
    run=run,
    params=Params,
    resources=resources,
    reads=_READS,
    writes=_WRITES,
    version=2,
    splits=False,
    history={"tokenizer": Section(TOKENIZER)},
    profiled=("n_tokens", "language"),
    reasons=("tokenize:empty",),
    engine="ray",
)
