"""Reads the tokenizer that a build encoded its documents with."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipeline_tasks.manifest import Manifest
from pipeline_tasks.sealed import sha256
from pipeline_tasks.stages.tokenize.sentence_piece import suffix_of
from pipeline_tasks.store.reading import read_history


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """The tokenizer of a version; `definition` is a tokenizer.json, tiktoken's ranks, or a model."""

    kind: str
    name: str
    definition: bytes
    vocab_size: int
    eos_id: int

    @property
    def digest(self) -> str:
        """SHA-256 of the definition."""
        return sha256(self.definition)

    @property
    def file_name(self) -> str:
        """Name of its file: a model of SentencePiece keeps its form, the others are JSON."""
        return f"tokenizer{suffix_of(self.kind)}"


def tokenizer_row(root: str, tokenize: Manifest) -> dict[str, Any]:
    """Return the row of the tokenizer that a `tokenize` manifest saved as history."""
    rows: list[dict[str, Any]] = pa.Table.from_batches(list(read_history(root, tokenize, "tokenizer"))).to_pylist()
    return rows[0]


def tokenizer_of(root: str, tokenize: Manifest) -> Tokenizer:
    """Return the tokenizer that a `tokenize` manifest saved as history."""
    row = tokenizer_row(root, tokenize)
    return Tokenizer(row["kind"], row["name"], row["definition"], row["vocab_size"], row["eos_id"])
