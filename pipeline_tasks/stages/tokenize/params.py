"""What a recipe says about the tokenizer, and the row that describes the chosen one."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pyarrow as pa

from pipeline_tasks.constraints import Bytes, Range
from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.stage import Batches

END_TOKENS = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "[SEP]")
"""End tokens to look up, in order, when the recipe names none: GPT-2/NeoX, Llama 3, Llama 1-2/T5, Gemma, BERT."""

JSON, MODEL, TIKTOKEN = ".json", ".model", "tiktoken:"
"""How a tokenizer is named: the end of a file's path, and the start of a name of tiktoken; else it is a repository."""

FILES = (JSON, MODEL)

MOST_ID = (1 << 24) - 1
"""The largest id of a token: 60 times that of the largest published vocabularies. The libraries count up to it."""

PROBE = "An otter of 1997 \u2013 \u00e9t\u00e9, \u65e5\u672c\u8a9e, \u043c\u0438\u0440, \U0001f9a6\x00\t\n"
"""A text with letters, digits and signs of several scripts, which every tokenizer has to encode."""


PATHS = ("/", "./", "../", "~", "file:", "s3:")
"""How paths begin, and no name of a repository does."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a tokenizer is trained: entries of the vocabulary, bytes of text to train on, and the least that will do.

    A vocabulary that is trained on little text has the words of that text and no others: it cuts later texts into
    several times as many tokens. So the default tokenizer is taken unless training gets `min_bytes` of text (or half of
    `bytes`, where that is less) and reaches `vocab_size`.
    """

    vocab_size: Annotated[int, Range(257, 1_000_000)] = 8192
    bytes: Bytes = 50_000_000
    min_bytes: Annotated[int, Range(0, 1 << 50)] = 10_000_000

    @property
    def floor(self) -> int:
        """Bytes of text that training must get: a draw of about `bytes` may be a little less."""
        return min(self.min_bytes, self.bytes // 2)


@dataclass(frozen=True, slots=True)
class Params:
    """The tokenizer, and the tokens before and after a document.

    `tokenizer` is the path of a `tokenizer.json` of Hugging Face or of a `.model` of SentencePiece, a Hugging Face
    `name@revision`, or `tiktoken:NAME`. Without it, a byte-level BPE is trained on the documents of the first build;
    `train` says how (`vocab_size`, `bytes`, `min_bytes`). Where they are too little, the default tokenizer is taken,
    which comes with Refinery. Each is done once: every later build of the dataset uses the tokenizer of its first
    (decision 18).

    Every document ends with exactly one end token. `eos` names it; if it is empty, a SentencePiece model says which it
    is, and in other tokenizers it is the first of `END_TOKENS`. `bos` names the token before a document; if it is
    empty, there is none. What a tokenizer itself would add is not added. A special token in a text is text:
    `<|endoftext|>` on a page is encoded by its letters. Truncation, padding and dropout that a file asks for are left
    out.

    `backend` is `auto` or `reference`. The reference is the tokenizer's own library: tokenizers, tiktoken or
    sentencepiece. `auto` encodes a shard with gigatoken, 20 to 50 times as fast, or else with fastokens, if it gives
    identical ids for the first 16 documents of the shard and for stretches of one in 512 of the others; after one
    difference the reference encodes the whole shard. A text with a character that is newer than a library's Unicode
    tables is always encoded by the reference. A difference in no compared text is not detected: set `reference` if that
    is not acceptable.
    """

    tokenizer: str = ""
    train: Training | None = None
    eos: str = ""
    bos: str = ""
    backend: Literal["auto", "reference"] = "auto"

    @property
    def is_file(self) -> bool:
        """Whether the tokenizer is a file, which may be of any of the libraries; in manifests it is a digest."""
        return self.tokenizer.endswith(FILES) or self.tokenizer.startswith("sha256:")

    def __post_init__(self) -> None:
        """Raise RecipeError for a tokenizer that is named in no known way, or is named and trained."""
        name, at, revision = self.tokenizer.partition("@")
        known = self.tokenizer.endswith(FILES) or self.tokenizer.startswith((TIKTOKEN, "sha256:"))
        if self.tokenizer and self.train:
            message = f"tokenize: `tokenizer` names {self.tokenizer} and `train` trains one; remove one of the two"
            raise RecipeError(message)
        if self.tokenizer and not known and (self.tokenizer.startswith(PATHS) or self.tokenizer.count("/") > 1):
            message = (
                f"tokenize.tokenizer: {self.tokenizer[:100]!r} is a path, and does not end in {JSON} or {MODEL}; name "
                f"the tokenizer{JSON} of Hugging Face or the {MODEL} of SentencePiece, or give the file such a name"
            )
            raise RecipeError(message)
        if self.tokenizer and not known and not (name and at and revision):
            message = (
                f"tokenize.tokenizer: {self.tokenizer[:100]!r} has no revision; write {name[:100]}@REVISION (a commit, "
                f"a tag, or main), {TIKTOKEN}NAME, or the path of a {JSON} or {MODEL} file"
            )
            raise RecipeError(message)


TOKENIZER = pa.schema(
    [
        pa.field("kind", pa.string()),  # `tokenizers`, `tiktoken` or `sentencepiece`
        pa.field("name", pa.string()),  # as in the recipe; `trained`; or `sha256:...` of a file
        pa.field("definition", pa.large_binary()),  # tokenizer.json, JSON of tiktoken's ranks, or a model
        pa.field("vocab_size", pa.int64()),  # largest id + 1; decides the dtype of exported tokens
        pa.field("eos_id", pa.int32()),
        pa.field("bos_id", pa.int32()),  # null where documents have no first token
        pa.field("documents", pa.int64()),  # documents trained on; 0 for a loaded tokenizer
        pa.field("bytes", pa.int64()),  # bytes of their text
    ]
)
"""One row with everything that encoding and decoding need. The stage saves it as its history section `tokenizer`."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained tokenizer: its tokenizer.json, and the documents and bytes that it was trained on."""

    definition: str
    documents: int = 0
    size: int = 0


def record(schema: pa.Schema, **values: object) -> pa.RecordBatch:
    """Return a batch of one row."""
    return pa.RecordBatch.from_pylist([values], schema=schema)


def record_of(batches: Batches) -> dict[str, Any]:
    """Return the one row of batches."""
    rows: list[dict[str, Any]] = [row for batch in batches for row in batch.to_pylist()]
    if len(rows) != 1:
        message = f"tokenize: expected one row and got {len(rows)}; remove this stage's output and run again"
        raise ContractError(message)
    return rows[0]
