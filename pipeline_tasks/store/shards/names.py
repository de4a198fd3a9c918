"""The names by which rows are known to be of a document, and the filter over them that every table of rows has.

A row is known by its id, by its URL as takedowns compare it, and by its host with all domains above. One without a URL
is known by its place in what landed, and by what was there. A table's filter has the names of all of its own columns;
what a layer does not have itself, the tables below it answer for. What the filter covers is in its digest: the names of
columns and the shard below, too, so that no damage makes a table one that names nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import KNOWN_BY, PARENT
from pipeline_tasks.sealed import canonical, sha256
from pipeline_tasks.store.shards.layer_columns import CHANGED, ROW, VALUE
from pipeline_tasks.text.base.key_filter import Hashes, filter_of, key_hashes
from pipeline_tasks.text.base.key_pages import NAMES
from pipeline_tasks.text.urls.keys import keys
from pipeline_tasks.text.urls.takedown import DOC, PLACEHOLDER, SITE, URL, TakenDown
from pipeline_tasks.text.urls.tracking import TRACKING

pc: Any = pyarrow.compute

PLACE = ("snapshot", "file", "offset", "record_id")
"""Columns that together name a landed record; no stage changes them."""

CONTENT = ("url", "payload_digest")
"""Columns that together name what a page had: a later snapshot has a row of it where it did not change."""

SEPARATOR = "\n"

_UNPLACED = "\n"
"""The name of all rows without a URL whose place is in a table below."""

_SITE = "//"
"""What a domain begins with as a name: `example.com` is the key of a URL, too."""

_MAILS = rf"[^/?#&=]*(?:@|%(?:25)*40|{PLACEHOLDER})[^/?#&=]*"
"""A part of a key that has an e-mail address, or what `scrub_pii` wrote in its place."""

_SCHEME, _BEHIND_HOST, _LABEL = r"^[a-z][a-z0-9+.-]*://", r"(?s)(?::[0-9]+)?(?:[/?].*)?$", r"^[^.]*\."


class Names:
    """Collects the names of a table's rows, in any order and batches.

    A table whose ids or URLs are no texts says nothing: it is opened whatever is asked for.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._can_name = _can_name(schema)
        self._hashes: list[Hashes] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the names of rows."""
        if self._can_name and names_rows(self._schema.names):
            self._hashes.append(np.unique(names_of(batch)))

    def filter(self) -> bytes:
        """Return the filter over all names, empty for a table whose own columns name nothing."""
        return filter_of(np.unique(np.concatenate(self._hashes))) if self._hashes else b""

    def said(self, at: int, body: bytes) -> dict[str, str]:
        """Return what is stored with a table of its filter, which begins at a byte."""
        place = [at, len(body), digest_of(body, self._schema.names, self._schema.metadata)]
        return {NAMES: json.dumps(place)} if self._can_name else {}


def digest_of(body: bytes, columns: Sequence[str], metadata: Mapping[bytes, bytes] | None) -> str:
    """Return the digest of a filter and of what it is over: the table's own columns, and its metadata."""
    return sha256(body + canonical([list(columns), own_metadata(metadata)]))


def own_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return the metadata that a table was given when it was written, of all that it has."""
    own = {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    return {key: value for key, value in own.items() if key not in (NAMES, "ARROW:schema")}


def names_rows(columns: Iterable[str]) -> bool:
    """Return whether columns of a table are some by which documents are known, below no layer."""
    return any(column.removeprefix(CHANGED) in KNOWN_BY for column in columns)


def _can_name(schema: pa.Schema) -> bool:
    texts, changed = (pa.string(), pa.large_string()), pa.struct({VALUE: pa.string()})
    own = [field for field in schema if names_rows([field.name])]
    return all(field.type == changed if field.name.startswith(CHANGED) else field.type in texts for field in own)


def names_of(batch: pa.RecordBatch) -> Hashes:
    """Return the hashes of the names of rows by a table's own columns, with repetitions."""
    ids, parents, urls = (_own(batch, name) for name in ("id", PARENT, "url"))
    own = keys(urls, TRACKING)
    mails = _folded(own.filter(pc.match_substring(own, PLACEHOLDER), null_selection_behavior="drop"))
    return _hashed([ids, parents, own, mails, *_domains(own), *_without_url(batch, own)])


def learned_names(batch: pa.RecordBatch) -> Hashes:
    """Return the hashes of the names by which other rows of the same documents are known; hosts are none of these."""
    ids, urls = (_own(batch, name) for name in ("id", "url"))
    own = keys(urls, TRACKING)
    return _hashed([ids, own, *_without_url(batch, own), pa.array([_UNPLACED] if own.null_count else [], pa.string())])


def asked_names(taken: TakenDown) -> Hashes:
    """Return the hashes of the names by which a row is known that a list of takedowns has: all of it is read."""
    ids, urls, sites = (_keys_of(taken, kind) for kind in (DOC, URL, SITE))
    domains = pc.binary_join_element_wise(_SITE, sites, "")
    return np.unique(_hashed([ids, urls, domains, _folded(urls)]))


def _keys_of(taken: TakenDown, kind: str) -> pa.Array:
    keyed = taken.of_kind(kind)["key"].combine_chunks() if kind in taken.counts else pa.array([], pa.string())
    return pc.utf8_slice_codeunits(keyed, len(kind) + 1)


def record_names(batch: pa.RecordBatch, known_by: str) -> pa.Array:
    """Return the names of the records of rows with their ids or addresses, null for rows that lack any of it.

    A record without an address is one with an empty one.
    """
    if not {known_by, *PLACE} <= set(batch.schema.names):
        return pa.nulls(batch.num_rows, pa.string())
    columns = [batch.column(name).cast(pa.string()) for name in (*PLACE, known_by)]
    if known_by == "url":
        columns[-1] = columns[-1].fill_null("")
    return pc.binary_join_element_wise(pa.repeat(known_by, batch.num_rows), *columns, SEPARATOR)


def content_names(batch: pa.RecordBatch) -> pa.Array:
    """Return the names of what pages had, by address and digest; null for rows that lack one of them."""
    if not set(CONTENT) <= set(batch.schema.names):
        return pa.nulls(batch.num_rows, pa.string())
    columns = [batch.column(name).cast(pa.string()) for name in CONTENT]
    return pc.binary_join_element_wise(pa.repeat(CONTENT[1], batch.num_rows), *columns, SEPARATOR)


def _own(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Return the values that a table has of a column, as it is or of the rows where a layer has it anew; or none."""
    if name in batch.schema.names:
        return batch.column(name).cast(pa.string())
    if CHANGED + name in batch.schema.names:
        changes = batch.column(CHANGED + name)
        return pc.struct_field(changes.filter(pc.is_valid(changes)), [VALUE])
    return pa.array([], pa.string())


def _without_url(batch: pa.RecordBatch, own: pa.Array) -> Iterator[pa.Array]:
    """Yield the names of rows without a key of a URL, which have no other."""
    if not own.null_count:
        return
    if ROW in batch.schema.names and not {*PLACE, *CONTENT} <= set(batch.schema.names):
        yield pa.array([_UNPLACED])
        return
    rows = batch.filter(pc.is_null(own))
    yield from (record_names(rows, "url"), content_names(rows))


def _domains(own: pa.Array) -> Iterator[pa.Array]:
    """Yield the hosts of keys of URLs, then the domains above them, each once."""
    is_other = pc.match_substring(own, "://")
    other = pc.replace_substring_regex(own.filter(is_other), _SCHEME, "")
    web = own.filter(pc.invert(is_other))
    level = pc.unique(pa.concat_arrays([pc.replace_substring_regex(each, _BEHIND_HOST, "") for each in (web, other)]))
    while len(level := level.drop_null()):
        yield pc.binary_join_element_wise(_SITE, level, "")
        level = pc.replace_substring_regex(level.filter(pc.match_substring(level, ".")), _LABEL, "").unique()


def _folded(own: pa.Array) -> pa.Array:
    """Return keys of URLs with each part that has, or had, an e-mail address as a star."""
    return pc.replace_substring_regex(own, _MAILS, "*")


def _hashed(columns: Iterable[pa.Array]) -> Hashes:
    return np.concatenate([key_hashes(column.drop_null()) for column in columns])
