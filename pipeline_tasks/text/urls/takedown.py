"""Matches documents against a list of what was taken down: documents by id, URLs, and sites with all hosts below."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.text.urls.keys import PARTS, keys
from pipeline_tasks.text.urls.tracking import TRACKING

pc: Any = pyarrow.compute

DOC, URL, SITE = "doc", "url", "site"

_PORT = re.compile(r":\d*$")

LIST = pa.schema(
    [
        pa.field("kind", pa.string()),  # doc, url or site
        pa.field("key", pa.string()),  # what documents are compared with, see `key_of`
        pa.field("value", pa.string()),  # as it was asked for
        pa.field("takedown", pa.int64()),  # number of the entry of the log that asked for it first
    ]
)
"""A list of what was taken down, sorted by kind and key, which are unique together."""


class TakenDown(NamedTuple):
    """A list in memory: for ids and keys of URLs the sorted keys and, in that order, the evidence; by site, that."""

    ids: pa.Array
    of_ids: pa.Array
    urls: pa.Array
    of_urls: pa.Array
    sites: Mapping[str, str]


def read_list(path: str) -> TakenDown:
    """Read a list from a file; "" is the empty one."""
    return of_rows(pq.read_table(path, columns=LIST.names).to_pylist() if path else [])


def of_rows(rows: Iterable[Mapping[str, Any]]) -> TakenDown:
    """Return a list of rows of `LIST`."""
    entries: dict[str, dict[str, str]] = {DOC: {}, URL: {}, SITE: {}}
    for row in rows:
        proof = {row["kind"]: row["value"], "takedown": row["takedown"]}
        entries[row["kind"]][row["key"]] = json.dumps(proof, sort_keys=True, separators=(",", ":"))
    return TakenDown(*_columns(entries[DOC]), *_columns(entries[URL]), entries[SITE])


def of_entries(entries: Sequence[tuple[str, str]]) -> TakenDown:
    """Return a list of kinds and values that no takedown asked for yet."""
    keyed = zip(entries, keys_of(entries), strict=True)
    return of_rows({"kind": kind, "key": key, "value": value, "takedown": 0} for (kind, value), key in keyed)


def _columns(entries: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    return pa.array(list(entries), pa.string()), pa.array(list(entries.values()), pa.string())


def key_of(kind: str, value: str) -> str:
    """Return what documents are compared with for an id, URL or site; "" for one that names nothing.

    URLs are equal as in `dedup_url`: whatever their scheme, fragment, slashes at the end, or tracking parameters.
    """
    if kind == DOC:
        return value.strip().lower()
    if kind == URL:
        return keys(pa.array([value]), TRACKING)[0].as_py() or ""
    return _ascii(value.strip().lower().strip("."))


def keys_of(entries: Iterable[tuple[str, str]]) -> list[str]:
    """Return `key_of` each kind and value; all URLs at once, which takes a hundredth of the time."""
    named = list(entries)
    urls = iter(keys(pa.array([value for kind, value in named if kind == URL], pa.string()), TRACKING).to_pylist())
    return [(next(urls) or "") if kind == URL else key_of(kind, value) for kind, value in named]


def evidence(taken: TakenDown, urls: pa.Array | None = None, ids: pa.Array | None = None) -> pa.Array:
    """Return for each document the entry that it is taken down by, as JSON, null for none.

    A document without a URL is of no URL and no site.
    """
    columns: list[pa.Array] = []
    if ids is not None and len(taken.ids):
        columns.append(taken.of_ids.take(pc.index_in(ids, taken.ids)))
    if urls is not None and len(taken.urls):
        columns.append(taken.of_urls.take(pc.index_in(keys(urls, TRACKING), taken.urls)))
    if urls is not None and taken.sites:
        columns.append(_by_site(taken.sites, urls))
    rows = next((len(column) for column in (urls, ids) if column is not None), 0)
    return pc.coalesce(*columns) if columns else pa.nulls(rows, pa.string())


def _by_site(sites: Mapping[str, str], urls: pa.Array) -> pa.Array:
    parts = pc.extract_regex(pc.utf8_trim_whitespace(urls.cast(pa.string())), PARTS)
    authorities = pc.struct_field(parts, ["host"]).dictionary_encode()
    entries = [_entry_of(sites, authority) for authority in authorities.dictionary.to_pylist()]
    return pa.array(entries, pa.string()).take(authorities.indices)


def _entry_of(sites: Mapping[str, str], authority: str) -> str | None:
    return next((sites[domain] for domain in _domains(authority) if domain in sites), None)


def _domains(authority: str) -> Iterator[str]:
    """Yield the host of an authority (`user@host:port`), and every domain above it."""
    host = _PORT.sub("", authority.rpartition("@")[2].lower())
    labels = _ascii(host.strip(".")).split(".")
    yield from (".".join(labels[at:]) for at in range(len(labels)))


def _ascii(host: str) -> str:
    """Return a host as it is in the domain name system, where labels with other letters begin with `xn--`."""
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host
