"""Matches documents against what was taken down: documents by id, URLs, and sites with all hosts below, all by key."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from pipeline_tasks.errors import ContractError
from pipeline_tasks.schema import KNOWN_BY, Array
from pipeline_tasks.stage import Keyed
from pipeline_tasks.text.base.tables import run_starts
from pipeline_tasks.text.urls.addresses import canonical_host
from pipeline_tasks.text.urls.keys import hosts, keys
from pipeline_tasks.text.urls.tracking import TRACKING

pc: Any = pyarrow.compute

DOC, URL, SITE = "doc", "url", "site"

Entry = tuple[str, str]
"""A kind (doc, url or site), and the id, URL or site as it was asked for."""

MAIL = "mail"
"""Kind of a second row of a URL that has an e-mail address: `scrub_pii` writes `<EMAIL>` in its place."""

MATCHING = f"4 {unicodedata.unidata_version}"
"""How keys follow from what was asked for: keys of another way, or of other tables of characters, are not looked up."""

PLACEHOLDER = "%3CEMAIL%3E"
"""What a canonical address has in the place of an e-mail address that `scrub_pii` replaced (`text.pii`)."""

_MAIL = re.compile(r"@|%(?:25)*40")
_ANY_MAIL = r"[^/?#&=]*(?:@|%(?:25)*40)[^/?#&=]*"
_PARTS = re.compile("([/?#&=])")

LIST = pa.schema(
    [
        pa.field("kind", pa.string()),  # doc, url or site
        pa.field("key", pa.string()),  # what documents are compared with, see `key_of`
        pa.field("value", pa.string()),  # as it was asked for
        pa.field("takedown", pa.int64()),  # number of the entry of the log that asked for it first
    ]
)
"""What is taken down as it is listed, and as lists of earlier releases have it; kind and key are unique together."""

KEYED = pa.schema(
    [
        pa.field("key", pa.string()),  # a kind, a space, and what documents are compared with
        pa.field("of", pa.string()),  # of a row of `mail` the key of the URL, "" of any other
        pa.field("value", pa.string()),  # as it was asked for
        pa.field("takedown", pa.int64()),  # number of the entry of the log that said so
        pa.field("undo", pa.bool_()),  # whether that allowed it again
    ]
)
"""What entries of the log said of keys, sorted by `ORDER`: of each key the newest counts."""

ORDER = ("key", "of")
"""Columns that a row is known by."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """A few rows of `KEYED` in memory."""

    table: pa.Table

    def rows(self, wanted: Array) -> pa.Table:
        """Return the rows whose key is in `wanted`."""
        return self.table.filter(pc.is_in(self.table["key"], value_set=wanted))

    def between(self, first: str, stop: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows whose key is not before `first`, and before `stop`."""
        yield from self.table.filter((pc.field("key") >= first) & (pc.field("key") < stop)).to_batches()


@dataclass(frozen=True, slots=True)
class TakenDown:
    """What is taken down, looked up by key; `counts` is how many entries of each kind that was ever named hold.

    With `ever` what was allowed again counts, too. Without it only what entries up to `until` took down does, if that
    is given, and no key of `but`.
    """

    keyed: Keyed
    counts: Mapping[str, int]
    ever: bool = False
    until: int | None = None
    but: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is taken down."""
        return not any(self.counts.values())

    @property
    def held_by_kind(self) -> dict[str, int]:
        """How many ids, URLs and sites are taken down."""
        return {kind: count for kind, count in sorted(self.counts.items()) if count and kind != MAIL}

    def known(self, wanted: Array) -> pa.Table:
        """Return what the log said last of keys, sorted, whether they are taken down or were allowed again."""
        return newest(self.keyed.rows(wanted))

    def held(self, wanted: Array) -> pa.Table:
        """Return the rows of those keys that are taken down."""
        return self._counting(self.known(wanted))

    def of_kind(self, kind: str) -> pa.Table:
        """Return the rows of all that is taken down of a kind, sorted: all of it is read."""
        batches = list(self.keyed.between(f"{kind} ", f"{kind}!"))
        return self._counting(newest(pa.Table.from_batches(batches, KEYED)))

    def _counting(self, rows: pa.Table) -> pa.Table:
        if self.ever or not rows.num_rows:
            return rows
        counts = pc.invert(rows["undo"])
        if self.until is not None:
            counts = pc.and_(counts, pc.less_equal(rows["takedown"], self.until))
        if self.but:
            own = pc.if_else(pc.equal(rows["of"], ""), rows["key"], _named(URL, rows["of"]))
            counts = pc.and_(counts, pc.invert(pc.is_in(own, value_set=pa.array(list(self.but), pa.string()))))
        return rows.filter(counts)


def newest(rows: pa.Table) -> pa.Table:
    """Return the newest row of each key, sorted."""
    if not rows.num_rows:
        return rows
    ordered = rows.sort_by([(name, "ascending") for name in (*ORDER, "takedown")]).combine_chunks()
    return ordered.filter(pa.array(are_last(ordered)))


def are_last(ordered: pa.Table | pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return of each of sorted rows whether the next one has another key."""
    last = np.zeros(ordered.num_rows, np.bool_)
    last[run_starts(*(ordered[name] for name in ORDER))[1:] - 1] = True
    last[-1:] = True
    return last


def read_list(path: str, *listed: Keyed) -> TakenDown:
    """Return the list of a file, which names the segments that are `listed`; "" is the empty one.

    A list of an earlier release has its rows itself, and those of segments with other keys are read, too.
    """
    if not path.endswith(".json"):
        return of_rows(pq.read_table(path, columns=LIST.names).to_pylist() if path else [])
    if not listed:
        message = f"{path}: the segments of this list of takedowns are not given; run the stage by an engine"
        raise ContractError(message)
    facts = json.loads(Path(path).read_bytes())
    return matched(TakenDown(listed[0], facts["counts"]), facts["matching"])


def matched(taken: TakenDown, matching: str) -> TakenDown:
    """Return a list whose keys follow in the way `matching`; of another way than ours all rows are read."""
    return taken if matching == MATCHING else of_rows(rows_of(taken))


def rows_of(taken: TakenDown) -> list[dict[str, Any]]:
    """Return all that is taken down as rows of `LIST`, sorted by kind and key: all of it is read."""
    listed: list[dict[str, Any]] = []
    for kind in (DOC, SITE, URL):
        rows = taken.of_kind(kind).to_pylist() if kind in taken.counts else []
        listed += ({"kind": kind, "key": row["key"].partition(" ")[2], **_asked_for(row)} for row in rows)
    return listed


def _asked_for(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("value", "takedown")}


def of_rows(rows: Iterable[Mapping[str, Any]]) -> TakenDown:
    """Return a list of rows of `LIST`; keys follow from what was asked for, whatever release wrote the list."""
    listed = list(rows)
    return in_memory(changes([(row["kind"], row["value"]) for row in listed], [row["takedown"] for row in listed]))


def of_entries(entries: Sequence[Entry]) -> TakenDown:
    """Return a list of kinds and values that no takedown asked for yet."""
    return in_memory(changes(entries, [0] * len(entries)))


def in_memory(rows: pa.Table) -> TakenDown:
    """Return rows of `KEYED` as a list; the newest of each key counts."""
    state = newest(rows)
    return TakenDown(InMemory(state), counts_of(state))


def counts_of(rows: pa.Table) -> dict[str, int]:
    """Return how many rows, of which each has another key, are taken down, by each kind that any of them has."""
    return {**dict.fromkeys(kinds_of(rows), 0), **kinds_of(rows.filter(pc.invert(rows["undo"])))}


def kinds_of(rows: pa.Table) -> dict[str, int]:
    """Return how many rows there are of each kind."""
    kinds = pc.list_element(pc.split_pattern(rows["key"], " ", max_splits=1), 0)
    counted = sorted(pc.value_counts(kinds).to_pylist(), key=lambda each: str(each["values"]))
    return {each["values"]: each["counts"] for each in counted}


def changes(entries: Sequence[Entry], numbers: Sequence[int], *, undo: bool = False) -> pa.Table:
    """Return what entries of the log with these numbers say of kinds and values: rows of `KEYED`, sorted, each once."""
    rows = []
    for (kind, value), key, number in zip(entries, keys_of(entries), numbers, strict=True):
        rows.append((f"{kind} {key}", "", value, number))
        if kind == URL and _MAIL.search(key):
            rows.append((f"{MAIL} {_without_mail(key)}", key, value, number))
    columns = zip(*rows, strict=True) if rows else [()] * (len(KEYED) - 1)
    table = pa.Table.from_arrays([*map(pa.array, columns), pa.repeat(undo, len(rows))], KEYED.names).cast(KEYED)
    ordered = table.sort_by([(name, "ascending") for name in (*ORDER, "takedown")]).combine_chunks()
    return ordered.filter(pa.array(np.append([True], are_last(ordered)[:-1])[: len(ordered)]))


def _without_mail(key: str) -> str:
    """Return an address's key with the placeholder for each part that has an e-mail address, or had one.

    Of two addresses that differ in e-mail addresses alone, scrubbed or not, these are equal.
    """
    parts = _PARTS.split(key)
    return "".join(PLACEHOLDER if _MAIL.search(part) or PLACEHOLDER in part else part for part in parts)


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


def keys_of(entries: Iterable[Entry]) -> list[str]:
    """Return `key_of` each kind and value; all URLs at once, which takes a hundredth of the time."""
    named = list(entries)
    urls = iter(_keys(pa.array([value for kind, value in named if kind == URL], pa.string())).to_pylist())
    return [(next(urls) or "") if kind == URL else key_of(kind, value) for kind, value in named]


def names_of(entries: Sequence[Entry]) -> list[str]:
    """Return the key of each kind and value as rows of `KEYED` have it."""
    return [f"{kind} {key}" for (kind, _), key in zip(entries, keys_of(entries), strict=True)]


def evidence(taken: TakenDown, rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return for each document the entry that it is taken down by, as JSON, null for none.

    Rows are asked by each column of `KNOWN_BY` that they have: who reads rows for this reads all of these. One
    without a URL is of no URL and no site. All keys are looked up together.
    """
    known = {name: _column(rows, name) for name in KNOWN_BY if name in rows.schema.names}
    urls = known.pop(URL, None)
    own = _keys(urls) if urls is not None and URL in taken.counts else None
    codes: Any = hosts(urls).dictionary_encode() if urls is not None and SITE in taken.counts else None
    named = [] if codes is None else codes.dictionary.to_pylist()
    scrubbed = {} if own is None or MAIL not in taken.counts else _scrubbed(own)
    asked = [
        *([_named(DOC, ids) for ids in known.values()] if DOC in taken.counts else ()),
        *([] if own is None else [_named(URL, own)]),
        pa.array({f"{MAIL} {_without_mail(key)}" for key in scrubbed.values()}, pa.string()),
        pa.array({f"{SITE} {domain}" for host in named for domain in _domains(host)}, pa.string()),
    ]
    held = taken.held(pa.chunked_array(asked, pa.string()).unique().drop_null())
    if not held.num_rows:
        return pa.nulls(rows.num_rows, pa.string())
    listed = held.to_pylist()
    proofs = {row["key"]: _proof(row) for row in listed if not row["of"]}
    columns = [_found(proofs, column) for column in asked[:-2]]
    if scrubbed:
        columns.append(_by_mail(listed, scrubbed, rows.num_rows))
    if codes is not None:
        columns.append(pa.array([_entry_of(proofs, host) for host in named], pa.string()).take(codes.indices))
    return pc.coalesce(*columns)


def _column(rows: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = rows[name]
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _named(kind: str, column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(kind, column.cast(pa.string()), " ")


def _proof(row: Mapping[str, Any]) -> str:
    """Return the entry of a row as documents have it as evidence."""
    kind = URL if row["of"] else row["key"].partition(" ")[0]
    return json.dumps({kind: row["value"], "takedown": row["takedown"]}, sort_keys=True, separators=(",", ":"))


def _found(proofs: Mapping[str, str], asked: pa.Array) -> pa.Array:
    places = pc.index_in(asked, value_set=pa.array(list(proofs), pa.string()))
    return pa.array(list(proofs.values()), pa.string()).take(places)


def hosts_of(taken: TakenDown) -> set[str]:
    """Return the names of the sites of a list, in their canonical form and as they were asked for: all are read."""
    rows = taken.of_kind(SITE)
    asked = {str(value).strip().strip(".").lower() for value in rows["value"].to_pylist()}
    return asked | {key.partition(" ")[2] for key in rows["key"].to_pylist()}


def address_of(proof: str) -> str | None:
    """Return the address that is left in an erased row: it is taken down by the same entry, and says no more."""
    named: Mapping[str, Any] = json.loads(proof)
    if URL in named:
        return str(named[URL])
    return f"http://{named[SITE].strip().strip('.')}/" if SITE in named else None


def _scrubbed(own: pa.Array) -> dict[int, str]:
    """Return the keys of addresses that had an e-mail address which was scrubbed, by their places."""
    is_scrubbed = pc.fill_null(pc.match_substring(own, PLACEHOLDER), fill_value=False)
    return {at: own[at].as_py() for at in pc.indices_nonzero(is_scrubbed).to_pylist()}


def _by_mail(listed: Sequence[Mapping[str, Any]], scrubbed: Mapping[int, str], rows: int) -> pa.Array:
    """Return the evidence of documents whose address had an e-mail address that was scrubbed, null for all others.

    The rest of the address has to be that of an entry: which of several addresses stood there is not known any more.
    """
    mail = {key: list(each) for key, each in groupby((row for row in listed if row["of"]), lambda row: row["key"])}
    proofs: list[str | None] = [None] * rows
    for at, key in scrubbed.items():
        form = re.compile(_ANY_MAIL.join(re.escape(part) for part in key.split(PLACEHOLDER)))
        near = mail.get(f"{MAIL} {_without_mail(key)}", ())
        proofs[at] = next((_proof(row) for row in near if form.fullmatch(row["of"])), None)
    return pa.array(proofs, pa.string())


def _entry_of(proofs: Mapping[str, str], host: str) -> str | None:
    names = (f"{SITE} {domain}" for domain in _domains(host))
    return next((proofs[name] for name in names if name in proofs), None)


def _domains(host: str) -> Iterator[str]:
    """Yield a host, and every domain above it."""
    labels = host.split(".")
    yield from (".".join(labels[at:]) for at in range(len(labels)))
