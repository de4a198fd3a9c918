"""Reads what every export is written from: packed sequences, the documents behind them, and the tokenizer."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.manifest import Manifest
from pipeline_tasks.publish.exports.sequences import Packing
from pipeline_tasks.stage import Batches
from pipeline_tasks.stages.tokenize.sentence_piece import suffix_of
from pipeline_tasks.store.reading import read_history, read_shards


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
        return hashlib.sha256(self.definition).hexdigest()

    @property
    def file_name(self) -> str:
        """Name of its file: a model of SentencePiece keeps its form, the others are JSON."""
        return f"tokenizer{suffix_of(self.kind)}"


@dataclass(frozen=True, slots=True)
class Source:
    """The sequences that `pack` kept with the documents of `shuffle`, and the tokenizer that `tokenize` saved."""

    packing: Packing
    tokenizer: Tokenizer

    def sequences(self) -> Batches:
        """Yield the sequences in their order, with their tokens: rows of `stages.pack.sequences.SEQUENCE`."""
        return self.packing.batches()

    def pieces(self) -> Batches:
        """Yield the number and the pieces of each sequence, in their order."""
        return read_shards(self.packing.root, self.packing.packed, ("sequence", "pieces"))

    def documents(self, columns: Sequence[str]) -> Batches:
        """Yield columns of the documents that were packed, in the order of packing."""
        return read_shards(self.packing.root, self.packing.documents, columns)


def source_of(root: str, manifests: Mapping[str, Manifest]) -> Source:
    """Return the source of a version's exports; RecipeError if its recipe packs without `tokenize` or `shuffle`."""
    missing = [stage for stage in ("tokenize", "shuffle") if stage not in manifests]
    if missing:
        message = f"recipe packs tokens without {' and '.join(missing)}; add them to the recipe, or leave `pack` out"
        raise RecipeError(message)
    tokenizer = tokenizer_of(root, manifests["tokenize"])
    pack = manifests["pack"]
    length, pad_id = (int(pack.params[name]) for name in ("length", "pad_id"))
    packing = Packing(root, pack.shards, manifests["shuffle"].shards, length, pad_id, carried=True)
    return Source(packing, tokenizer)


def tokenizer_of(root: str, tokenize: Manifest) -> Tokenizer:
    """Return the tokenizer that a `tokenize` manifest saved as history."""
    row = pa.Table.from_batches(list(read_history(root, tokenize, "tokenizer"))).to_pylist()[0]
    return Tokenizer(row["kind"], row["name"], row["definition"], row["vocab_size"], row["eos_id"])
