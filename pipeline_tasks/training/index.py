"""Describes a published training dataset: `dataset.json` with its shards, checked before a token is read."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.errors import ContractError, DigestMismatch, RecipeError, cause
from pipeline_tasks.sealed import SEAL, canonical, parse, sha256

NAME = "dataset.json"
"""The file of a dataset's folder that names all others."""

WAY_OUT = "copy the published version again, or name another version"

_FIELDS_BEFORE_SEALS = frozenset(
    [
        "format",
        "name",
        "version",
        "length",
        "dtype",
        "byte_order",
        "pad_id",
        "tokenizer",
        "sequences",
        "tokens",
        "pads",
        "dropped",
        "shards",
    ]
)
"""Fields of a `dataset.json` without a seal: with another one, its seal lost its name."""

_ID_BYTES = {"uint16": 2, "uint32": 4}
_END_BYTES = 8
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a dataset: its path relative to the dataset's folder, its size and its digest."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shard:
    """Packed sequences end to end, where documents end in them, and which documents those are.

    `erased` are stretches of the tokens, first and one behind the last, whose documents were erased: they are pads.
    """

    sequences: int
    tokens: int
    bin: StoredFile
    ends: StoredFile
    lineage: StoredFile
    erased: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetIndex:
    """What `dataset.json` says; `digest` is the SHA-256 of its bytes, and so the identity of the dataset."""

    name: str
    length: int
    dtype: str
    pad_id: int
    tokenizer: str
    sequences: int
    tokens: int
    pads: int
    shards: tuple[Shard, ...]
    digest: str

    @property
    def row_bytes(self) -> int:
        """Return the bytes of one sequence."""
        return self.length * _ID_BYTES[self.dtype]


def read_index(body: bytes, path: str) -> DatasetIndex:
    """Return the dataset that the bytes of `dataset.json` describe; ContractError names `path` and what is wrong."""
    raw = _unsealed(parse(body, path, WAY_OUT), path)
    if raw.get("format") != 1:
        message = f"{path}: format {raw.get('format')!r} is not known here; install a newer release of refinery"
        raise RecipeError(message)
    try:
        index = _index(raw, sha256(body))
        fault = _fault(index, raw["byte_order"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"{path} is no description of a dataset: {cause(error)}; {WAY_OUT}"
        raise ContractError(message) from error
    if fault:
        message = f"{path}: {fault}; {WAY_OUT}"
        raise ContractError(message)
    return index


def _unsealed(raw: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the fields beside the seal; DigestMismatch if one was changed. An earlier release wrote no seal."""
    promised = raw.pop(SEAL, None)
    if promised is None and raw.keys() <= _FIELDS_BEFORE_SEALS:
        return raw
    try:
        whole = promised == sha256(canonical(raw))
    except (ValueError, RecursionError):  # what no canonical form has: lone surrogates, deep nesting
        whole = False
    if not whole:
        message = f"{path} was changed after it was written: its content and its seal differ; {WAY_OUT}"
        raise DigestMismatch(message)
    return raw


def _index(raw: Mapping[str, Any], digest: str) -> DatasetIndex:
    numbers = {name: _count(raw[name]) for name in ("length", "pad_id", "sequences", "tokens", "pads")}
    words = {name: str(raw[name]) for name in ("name", "dtype", "tokenizer")}
    shards = tuple(_shard(item) for item in raw["shards"])
    return DatasetIndex(**numbers, **words, shards=shards, digest=digest)  # type: ignore[arg-type]  # by name


def _shard(raw: Mapping[str, Any]) -> Shard:
    files = {name: _file(raw[name]) for name in ("bin", "ends", "lineage")}
    return Shard(_count(raw["sequences"]), _count(raw["tokens"]), files["bin"], files["ends"], files["lineage"])


def _file(raw: Mapping[str, Any]) -> StoredFile:
    return StoredFile(str(raw["path"]), _count(raw["bytes"]), str(raw["sha256"]))


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        message = f"{value!r} is not a whole number of at least 0"
        raise ValueError(message)
    return value


def _fault(index: DatasetIndex, byte_order: object) -> str:
    """Return what contradicts itself in an index, "" if nothing does."""
    if index.dtype not in _ID_BYTES or byte_order != "little" or not index.length:
        return f"ids are {index.dtype!r}, {byte_order!r}, in sequences of {index.length}, which cannot be read"
    for name in ("sequences", "tokens"):
        total = sum(getattr(shard, name) for shard in index.shards)
        if total != getattr(index, name):
            return f"{name} is {getattr(index, name)}, and its shards have {total}"
    if index.pads != index.sequences * index.length - index.tokens:
        return f"{index.sequences} sequences of {index.length} are not {index.tokens} tokens and {index.pads} pads"
    faults = (_shard_fault(index, shard) for shard in index.shards)
    return next(filter(None, faults), "")


def _shard_fault(index: DatasetIndex, shard: Shard) -> str:
    for file in (shard.bin, shard.ends, shard.lineage):
        if not _is_near(file.path):
            return f"the path {file.path!r} leads out of the dataset"
        if not _DIGEST.fullmatch(file.sha256):
            return f"{file.path} has no SHA-256"
    if shard.bin.bytes != shard.sequences * index.row_bytes:
        return f"{shard.bin.path} has {shard.bin.bytes} bytes, and {shard.sequences} sequences do not"
    if shard.ends.bytes % _END_BYTES or shard.ends.bytes < shard.sequences * _END_BYTES:
        return f"{shard.ends.path} has {shard.ends.bytes} bytes, too few for {shard.sequences} sequences"
    return ""


def _is_near(path: str) -> bool:
    """Return whether a path stays in the folder above the dataset's own."""
    whole = posixpath.normpath(posixpath.join("folders/own", path))
    return not path.startswith("/") and "\0" not in path and whole.startswith("folders/")
