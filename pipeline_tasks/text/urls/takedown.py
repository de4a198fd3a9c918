"""Matches documents against a list of what was taken down: documents by id, URLs, and sites with all hosts below."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.text.urls.addresses import canonical_host
from pipeline_tasks.text.urls.keys import hosts, keys
from pipeline_tasks.text.urls.tracking import TRACKING

pc: Any = pyarrow.compute

DOC, URL, SITE = "doc", "url", "site"

PLACEHOLDER = "%3CEMAIL%3E"
"""What a canonical address has in the place of an e-mail address that `scrub_pii` replaced (`text.pii`)."""

_MAIL = re.compile(r"@|%(?:25)*40")
_ANY_MAIL = r"[^/?#&=]*(?:@|%(?:25)*40)[^/?#&=]*"

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
    """A list in memory: for ids and keys of URLs the sorted keys and, in that order, the evidence; by site, that.

    `mail` has by key the URLs that have an e-mail address: `scrub_pii` writes `<EMAIL>` in its place.
    """

    ids: pa.Array
    of_ids: pa.Array
    urls: pa.Array
    of_urls: pa.Array
    sites: Mapping[str, str]
    mail: Mapping[str, str]


def read_list(path: str) -> TakenDown:
    """Read a list from a file; "" is the empty one."""
    return of_rows(pq.read_table(path, columns=LIST.names).to_pylist() if path else [])


def of_rows(rows: Iterable[Mapping[str, Any]]) -> TakenDown:
    """Return a list of rows of `LIST`; keys follow from what was asked for, whatever release wrote the list."""
    entries: dict[str, dict[str, str]] = {DOC: {}, URL: {}, SITE: {}}
    listed = list(rows)
    for row, key in zip(listed, keys_of((row["kind"], row["value"]) for row in listed), strict=True):
        proof = {row["kind"]: row["value"], "takedown": row["takedown"]}
        entries[row["kind"]][key] = json.dumps(proof, sort_keys=True, separators=(",", ":"))
    mail = {key: proof for key, proof in entries[URL].items() if _MAIL.search(key)}
    return TakenDown(*_columns(entries[DOC]), *_columns(entries[URL]), entries[SITE], mail)


def of_entries(entries: Sequence[tuple[str, str]]) -> TakenDown:
    """Return a list of kinds and values that no takedown asked for yet."""
    keyed = zip(entries, keys_of(entries), strict=True)
    return of_rows({"kind": kind, "key": key, "value": value, "takedown": 0} for (kind, value), key in keyed)


def _columns(entries: Mapping[str, str]) -> tuple[pa.Array, pa.Array]:
    return pa.array(list(entries), pa.string()), pa.array(list(entries.values()), pa.string())


def key_of(kind: str, value: str) -> str:
    """Return what documents are compared with for an id, URL or site; "" for one that names nothing.

    URLs are equal in all forms that browsers take for one (`addresses`), and as in `dedup_url` whatever their scheme
    (http or https), slashes at the end, or tracking parameters.
    """
    if kind == DOC:
        return value.strip().lower()
    if kind == URL:
        return _keys(pa.array([value], pa.string()))[0].as_py() or ""
    return canonical_host(value.strip())


def _keys(urls: pa.Array) -> pa.Array:
    return keys(urls, TRACKING)


def keys_of(entries: Iterable[tuple[str, str]]) -> list[str]:
    """Return `key_of` each kind and value; all URLs at once, which takes a hundredth of the time."""
    named = list(entries)
    urls = iter(_keys(pa.array([value for kind, value in named if kind == URL], pa.string())).to_pylist())
    return [(next(urls) or "") if kind == URL else key_of(kind, value) for kind, value in named]


def evidence(taken: TakenDown, urls: pa.Array | None = None, ids: pa.Array | None = None) -> pa.Array:
    """Return for each document the entry that it is taken down by, as JSON, null for none.

    A document without a URL is of no URL and no site.
    """
    columns: list[pa.Array] = []
    if ids is not None and len(taken.ids):
        columns.append(taken.of_ids.take(pc.index_in(ids, taken.ids)))
    if urls is not None and len(taken.urls):
        own = _keys(urls)
        columns.append(taken.of_urls.take(pc.index_in(own, taken.urls)))
        if taken.mail:
            columns.append(_scrubbed(taken.mail, own))
    if urls is not None and taken.sites:
        columns.append(_by_site(taken.sites, urls))
    rows = next((len(column) for column in (urls, ids) if column is not None), 0)
    return pc.coalesce(*columns) if columns else pa.nulls(rows, pa.string())


def hosts_of(taken: TakenDown) -> set[str]:
    """Return the names of the sites of a list, in their canonical form and as they were asked for."""
    asked = {str(json.loads(proof)[SITE]).strip().strip(".").lower() for proof in taken.sites.values()}
    return asked | set(taken.sites)


def address_of(proof: str) -> str | None:
    """Return the address that is left in an erased row: it is taken down by the same entry, and says no more."""
    named: Mapping[str, Any] = json.loads(proof)
    if URL in named:
        return str(named[URL])
    return f"http://{named[SITE].strip().strip('.')}/" if SITE in named else None


def _scrubbed(mail: Mapping[str, str], own: pa.Array) -> pa.Array:
    """Return the evidence of documents whose address had an e-mail address that was scrubbed, null for all others.

    The rest of the address has to be that of an entry: which of several addresses stood there is not known any more.
    """
    proofs: list[str | None] = [None] * len(own)
    is_scrubbed = pc.fill_null(pc.match_substring(own, PLACEHOLDER), fill_value=False)
    for at in pc.indices_nonzero(is_scrubbed).to_pylist():
        form = _ANY_MAIL.join(re.escape(part) for part in own[at].as_py().split(PLACEHOLDER))
        proofs[at] = next((proof for key, proof in mail.items() if re.fullmatch(form, key)), None)
    return pa.array(proofs, pa.string())


def _by_site(sites: Mapping[str, str], urls: pa.Array) -> pa.Array:
    codes: Any = hosts(urls).dictionary_encode()
    entries = [_entry_of(sites, host) for host in codes.dictionary.to_pylist()]
    return pa.array(entries, pa.string()).take(codes.indices)


def _entry_of(sites: Mapping[str, str], host: str) -> str | None:
    return next((sites[domain] for domain in _domains(host) if domain in sites), None)


def _domains(host: str) -> Iterator[str]:
    """Yield a host, and every domain above it."""
    labels = host.split(".")
    yield from (".".join(labels[at:]) for at in range(len(labels)))
