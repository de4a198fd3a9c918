"""Asks tables of rows by their filters which of them may have documents, and opens none of them.

Whatever says nothing, or not in a way that is sure, may have every document: a table of an earlier release, one that is
damaged where it says it, a layer over one of these or over what landed.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from pipeline_tasks.errors import Transient
from pipeline_tasks.schema import KNOWN_BY
from pipeline_tasks.stage import Shard
from pipeline_tasks.store import storage
from pipeline_tasks.store.erasures import current
from pipeline_tasks.store.shards.names import digest_of
from pipeline_tasks.store.shards.rows import facts_of
from pipeline_tasks.store.shards.table import End
from pipeline_tasks.text.base.key_filter import Blocks, Hashes, blocks_of, may_have
from pipeline_tasks.text.base.key_pages import LENGTH, NAMES, Root

KEPT_BYTES = 256 << 20
"""Bytes of filters that an index keeps; more of them are read again when it is asked again."""

THREADS = 16
"""Tables that are asked at once: each waits for its store."""


class _Said(NamedTuple):
    """What a table says: the filter over its own names, if it has any, and the shard that it rests on for others."""

    blocks: Blocks | None
    below: Shard | None


class _Answer(NamedTuple):
    """Whether a table may have a name that is asked for by its own columns, and the shard that it rests on."""

    may_have: bool
    below: Shard | None


_ANY = _Answer(may_have=True, below=None)


class NameIndex:
    """The filters of some tables of a root, which are given with their bytes; each is read when it is asked first."""

    def __init__(self, root: str, sizes: Mapping[str, int]) -> None:
        self._root, self._sizes, self._store = root, sizes, storage.connect(root)
        self._said: dict[str, _Said | None] = {}
        self._kept = 0

    @property
    def paths(self) -> frozenset[str]:
        """The tables that are asked."""
        return frozenset(self._sizes)

    def having(self, asked: Hashes) -> frozenset[str]:
        """Return the tables that may have a row with one of the names that are asked for."""
        with ThreadPoolExecutor(THREADS) as threads:
            answers = dict(zip(self._sizes, threads.map(partial(self._answer, asked), self._sizes), strict=True))
        return frozenset(path for path in answers if self._may_have(path, answers))

    def _may_have(self, path: str, answers: Mapping[str, _Answer]) -> bool:
        answer = answers[path]
        while not answer.may_have and answer.below is not None:
            below = answer.below
            place = below.path if below.path in answers else current(self._root, below.path)
            if place not in answers or (place == below.path and self._sizes[place] != below.bytes):
                return True
            answer = answers[place]
        return answer.may_have

    def _answer(self, asked: Hashes, path: str) -> _Answer:
        said = self._said[path] if path in self._said else self._read(path)
        if said is None:
            return _ANY
        return _Answer(said.blocks is not None and bool(may_have(said.blocks, asked).any()), said.below)

    def _read(self, path: str) -> _Said | None:
        size = self._sizes[path]
        try:
            said = (_of_segment if path.endswith(".segment") else _of_file)(End(self._store, path, size))
        except Transient:
            raise
        except (ValueError, LookupError, OSError, pa.ArrowException):  # it is damaged, or of an earlier release
            said = None
        weight = said.blocks.nbytes if said and said.blocks is not None else 0
        if self._kept + weight <= KEPT_BYTES:
            self._said[path], self._kept = said, self._kept + weight
        return said


def _of_file(end: End) -> _Said | None:
    length, footer = end.footer()
    return _said(end, length, footer.schema.to_arrow_schema().names, footer.metadata)


def _of_segment(end: End) -> _Said | None:
    length = int.from_bytes(end.last(LENGTH), "little") + LENGTH
    root = Root.of(end.last(length)[:-LENGTH])
    return _said(end, length, root.schema.names, {NAMES.encode(): root.names})


def _said(end: End, behind: int, columns: Sequence[str], metadata: Mapping[bytes, bytes]) -> _Said | None:
    """Return what a table says whose filter is before its last bytes; None if it is not sure, ValueError if damaged."""
    at, size, digest = json.loads(metadata[NAMES.encode()])
    body = end.last(size + behind)[:size]
    if at + size + behind != end.size or digest_of(body, columns, metadata) != digest:
        message = "its filter is not the one that it was written with"
        raise ValueError(message)
    blocks, facts = blocks_of(body) if body else None, facts_of(pa.schema([], metadata))
    if facts is None or all(name not in KNOWN_BY or name in columns for name, _ in facts.columns):
        return _Said(blocks, None)
    return None if facts.below.is_landed else _Said(blocks, facts.below)
