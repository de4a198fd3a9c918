"""Selects the pages among the records of landed files; rejects others by kind, status, type, or as unchanged."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import OMITTED, Bytes, Range
from pipeline_tasks.facets import Requests, UnitCost, Wiring
from pipeline_tasks.file_types import HTML, OWN, TEXT, require_types, type_names
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import HTTP_RIGHTS, PAGE, RECORD, ROBOTS, TYPE
from pipeline_tasks.stage import (
    NO_FILE,
    Batches,
    Engine,
    FilePath,
    HistoryReader,
    Keyed,
    Layer,
    Section,
    Shards,
    Stage,
    buckets_for,
    reject,
    replace_column,
)
from pipeline_tasks.text.base.tables import unchanged

NO_TYPE = "not_html"
"""The reason of a file of no known type: it is no HTML, nor another that is read."""

PAGE_KINDS = ("response", "resource", "conversion", "json", "row", "file")
KEY = pa.binary()
SEEN = pa.schema([pa.field("key", KEY)])
"""The key by which later snapshots recognize a page: a 128-bit hash (XXH3) of its URL and payload digest."""

PLACED = pa.schema([pa.field("place", pa.binary()), *SEEN])
"""A key of a record, and where that is: a 64-bit hash (XXH3) of its file and of `PLACE_BYTES` there."""

PLACE_BYTES = 1 << 30
"""Bytes of a landed file whose seen keys a task has in memory: a gigabyte has some ten million records at most."""

TAKEN_DOWN = "ingest:taken_down"
REVISIT, UNCHANGED = "ingest:revisit", "ingest:unchanged"
NO_PAGE = ("ingest:not_page", REVISIT, UNCHANGED)

LAYER = Layer(stores=tuple(name for name in PAGE.names if name not in ("payload", "text")), changes=("payload", "text"))
"""Locators are stored; payloads and texts stay in the landed file, but for texts that are HTML documents."""

KEYED = ("file", "offset", "kind", "url", "payload_digest", "metadata")
"""The columns that a record's keys, and their place, follow from."""

DROPPED = Layer(reads=KEYED, kept_only=("payload", "text"))
"""Which pages are left when what earlier snapshots have is dropped."""

DAMAGE = (
    "bad_header",
    "bad_length",
    "bomb",
    "chunked",
    "content_encoding",
    "digest",
    "dup_key",
    "empty_file",
    "empty_member",
    "field_type",
    "gzip_corrupt",
    "gzip_truncated",
    "http_header",
    "json",
    "json_depth",
    "lz4_corrupt",
    "lz4_truncated",
    "no_text",
    "not_an_archive",
    "oversize",
    "parquet",
    "truncated",
    "zstd_corrupt",
    "zstd_truncated",
)
"""Every `error` that a record can have (see `landing`)."""

_BLOCK = "(?:p|div|article|section|main|header|table|ul|ol|dl|h[1-6]|blockquote|pre|figure|span|center|font)"
_INLINE = "(?:html|head|body|title|meta|link|script|style|a|b|i|em|strong|br|hr|img|li|t[dhr]|tbody)"
_TAG = rf"(?i)</?(?:{_BLOCK}|{_INLINE})\b[^<>]*>"
_DOCUMENT = (
    r"(?is)\A[\s\x{feff}]*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,500}?-->\s*)*"
    rf"<(?:!doctype\s+html|html|head|body)\b[^>]*>.*<(?:/[a-z]|{_BLOCK}\b)"
)
_PIECE = rf"(?is)\A[\s\x{{feff}}]*<{_BLOCK}\b[^<>]*>.*>\s*\z"
_ROBOTS_URL = r"\A(?i:https?)://[^/?#]+/robots\.txt(?:#.*)?\z"

PIECE_TAGS, PIECE_BYTES = 4, 1000
"""Tags of HTML that a piece of a document has at least, and bytes of it for which it has at least one tag."""


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a page.

    `source` names the source of documents that name none; `keep_status` lists HTTP statuses (a record
    without one, as a WET text, passes), `types` the types of files that are read: `html`, `text` and those that
    extensions bring (`pdf`, `office`, `epub`, `feed`, `mail`). Bytes tell the type, and labels only that of plain text.
    A file of a type that is not listed is rejected by its type's name, one of no known type as `not_html`. `max_bytes`
    bounds a payload.
    With `keep_digest_mismatch` a record whose length and structure are right is kept although its digest is not:
    `digest_mismatch` and `digest_declared` in its `metadata` mark it. With `extract_html` a text that is an HTML
    document goes through extraction, as a payload of type `text/html`; without it such a text stays as it is.
    With `rights`, which a recipe with `check_rights` sets, what answers to `/robots.txt` goes on whatever its status,
    as records of the kind `robots`, with the column `status`, and `metadata` has the header fields that say how a page
    may be used. The landing fills in `taken_down`: a list of URLs and sites that were taken down before it.
    """

    source: str = "crawl"
    keep_status: tuple[Annotated[int, Range(100, 999)], ...] = (200,)
    types: tuple[str, ...] = OWN
    max_bytes: Bytes = 10 << 20
    keep_digest_mismatch: bool = False
    extract_html: bool = True
    rights: bool = field(default=False, metadata={OMITTED: False})
    taken_down: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})

    def __post_init__(self) -> None:
        """Raise RecipeError for a type that nobody reads here."""
        require_types(self.types, "ingest: types")


def record_keys(pages: Batches) -> Batches:
    """Yield the keys by which pages and revisits are looked up in earlier snapshots: rows of `PLACED`."""
    for batch in pages:
        places = _places(batch)
        for keys in (_keys(batch), _original_keys(batch)):
            yield pa.record_batch([places, keys], schema=PLACED).filter(keys.is_valid())


def seen_keys(keys: Batches, history: HistoryReader) -> Batches:
    """Yield those of `keys` that an earlier snapshot saved, sorted by their place."""
    table = pa.Table.from_batches(keys)
    is_seen = pc.is_in(table["key"], value_set=history.rows(table["key"])["key"])
    seen = table.filter(is_seen).sort_by([(name, "ascending") for name in PLACED.names])
    yield from seen.to_batches() or [pa.RecordBatch.from_pylist([], PLACED)]


def select_pages(records: Batches, *listed: Keyed, params: Params, revisits: bool = False) -> Batches:
    """Keep pages and reject every other record with its reason.

    With `revisits` those are kept, too: whether they are `unchanged`, `drop_unchanged` knows.
    """
    from pipeline_tasks.text.urls.takedown import evidence, read_list

    taken = read_list(params.taken_down, *listed)
    for landed in records:
        batch = _with_types(_with_rights(landed) if params.rights else _without_rights(landed))
        entries = evidence(taken, batch)
        is_taken = pc.is_valid(entries)
        if pc.any(is_taken).as_py():  # titles and other fields of a line are in `metadata`
            batch = replace_column(batch, "metadata", pc.if_else(is_taken, None, batch["metadata"]))
        reasons = pc.if_else(is_taken, TAKEN_DOWN, _reasons(batch, params, revisits=revisits))
        yield _pages(batch, reasons, pc.coalesce(entries, _evidence(batch, reasons, params)), params)


def _with_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with the type of each payload and text, null for other records and those that are no page."""
    from pipeline_tasks.file_types.recognition import types_of

    types = types_of(batch["content_type"], batch["payload"])
    types = pc.if_else(pc.is_valid(batch["text"]), TEXT, types)
    return batch.append_column(TYPE, pc.if_else(_is_no_page(batch), None, types))


def _with_rights(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with those of a robots.txt named as such."""
    is_robots = pc.and_(pc.equal(batch["kind"], "response"), pc.match_substring_regex(batch["url"], _ROBOTS_URL))
    return replace_column(batch, "kind", pc.if_else(pc.fill_null(is_robots, fill_value=False), ROBOTS, batch["kind"]))


def _without_rights(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return records without the header fields that only `check_rights` reads."""
    has_rights = pc.fill_null(pc.match_substring(batch["metadata"], f'"{HTTP_RIGHTS}":'), fill_value=False)
    if not pc.any(has_rights).as_py():
        return batch
    metadata = batch["metadata"].to_pylist()
    for at in np.flatnonzero(np.asarray(has_rights)).tolist():
        if batch["kind"][at].as_py() in ("response", "revisit"):  # the fields of lines and tables are their own
            facts = orjson.loads(metadata[at])
            facts.pop(HTTP_RIGHTS)
            metadata[at] = orjson.dumps(facts).decode() if facts else None
    return replace_column(batch, "metadata", pa.array(metadata, pa.string()))


def drop_unchanged(pages: Batches, seen: HistoryReader) -> Batches:
    """Reject what an earlier snapshot has: pages whose key is `seen`, and revisits, `unchanged` where that is so."""
    from pipeline_tasks.text.base.sorted_keys import SortedKeys

    asked, known = pa.array([], PLACED.field("place").type), SortedKeys(pa.array([], KEY))
    for batch in pages:
        places = _places(batch).unique()
        if not places.equals(asked):
            asked, known = places, SortedKeys(seen.rows(places)["key"].combine_chunks())
        is_revisit, is_seen = pc.equal(batch["kind"], "revisit"), pc.is_valid(known.places(_keys(batch)))
        if pc.any(is_revisit).as_py():
            is_seen = pc.or_(is_seen, pc.is_valid(known.places(_original_keys(batch))))
        is_seen = pc.and_(is_seen, pc.not_equal(batch["kind"], ROBOTS))  # one that did not change is in force as well
        revisit = pc.if_else(is_revisit, pa.scalar(REVISIT), pa.scalar(None, pa.string()))
        reasons = pc.if_else(is_seen, pa.scalar(UNCHANGED), revisit)
        yield reject(batch, reasons, _proofs(reasons, batch.select(("kind", "payload_digest")), lambda _, row: row))


def _places(batch: pa.RecordBatch) -> pa.Array:
    """Return the place of each record."""
    from xxhash import xxh3_64_digest

    parts = pc.divide(batch["offset"], PLACE_BYTES).cast(pa.string())
    named = pc.binary_join_element_wise(batch["file"], parts, " ").dictionary_encode()
    hashed = [xxh3_64_digest(name.encode()) for name in named.dictionary.to_pylist()]
    return pa.array(hashed, PLACED.field("place").type).take(named.indices)


def _keys(batch: pa.RecordBatch) -> pa.Array:
    """Return the key of each record, null without a URL or a payload digest."""
    return _hashed(batch["url"].to_pylist(), batch["payload_digest"].to_pylist())


def _original_keys(batch: pa.RecordBatch) -> pa.Array:
    """Return the key of the record that each `revisit` refers to, null for all others."""
    urls: list[str | None] = [None] * batch.num_rows
    for at in np.flatnonzero(np.asarray(pc.equal(batch["kind"], "revisit"))):
        facts = json.loads(batch["metadata"][at].as_py() or "{}")
        urls[at] = (facts.get("warc-refers-to-target-uri") or "").strip("<>") or None
    return _hashed(urls, batch["payload_digest"].to_pylist())


def _hashed(urls: Sequence[str | None], digests: Sequence[str | None]) -> pa.Array:
    from xxhash import xxh3_128_digest

    pairs = zip(urls, digests, strict=True)
    hashed = [None if None in pair else xxh3_128_digest(f"{pair[0]}\n{pair[1]}".encode()) for pair in pairs]
    return pa.array(hashed, KEY)


def _reasons(batch: pa.RecordBatch, params: Params, *, revisits: bool) -> pa.Array:
    """Return one reason per row, the first that applies, null for pages and, with `revisits`, for those."""
    text, payload = batch.column("text"), batch.column("payload")
    is_revisit = pc.equal(batch["kind"], "revisit")
    length = pc.max_element_wise(_lengths(payload), _lengths(text))
    reasons = (
        (pc.equal(batch["kind"], ROBOTS), None),
        (is_revisit, None if revisits else "revisit"),
        (_is_no_page(batch), "not_page"),
        (_has_other_status(batch["status"], params), "status"),
        (pc.and_(pc.is_null(text), pc.equal(_lengths(payload), 0)), "empty"),
        (pc.and_(pc.is_valid(text), pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0)), "empty"),
        (pc.and_(pc.is_null(text), _is_other_type(batch[TYPE], params)), pc.fill_null(batch[TYPE], NO_TYPE)),
        (pc.greater(length, params.max_bytes), "too_large"),
    )
    error = batch["error"]
    if params.keep_digest_mismatch:
        is_mismatch = pc.fill_null(pc.equal(error, "digest"), fill_value=False)
        error = pc.if_else(is_mismatch, pa.scalar(None, pa.string()), error)
    words = [word if isinstance(word, pa.Array) else pa.scalar(word, pa.string()) for _, word in reasons]
    return pc.case_when(
        pc.make_struct(pc.is_valid(error), *(applies for applies, _ in reasons)),
        pc.binary_join_element_wise("error", error, ":"),
        *(pc.binary_join_element_wise("ingest", word, ":") for word in words),
        pa.scalar(None, pa.string()),
    )


def _is_no_page(batch: pa.RecordBatch) -> pa.Array:
    """Return whether each record is of a kind that has no page, or has a URL that names none."""
    scheme = pc.match_substring_regex(batch["url"], r"(?i)\A(?:dns|whois|metadata|filedesc|warcinfo):")
    is_page_kind = pc.is_in(batch["kind"], pa.array(PAGE_KINDS))
    return pc.or_(pc.invert(is_page_kind), pc.fill_null(scheme, fill_value=False))


def _has_other_status(status: pa.Array, params: Params) -> pa.Array:
    wanted = pc.is_in(status, pa.array(params.keep_status, pa.int32()))
    return pc.and_(pc.is_valid(status), pc.invert(wanted))


def _is_other_type(types: pa.Array, params: Params) -> pa.Array:
    """Return whether each file is of a type that is not read, or of none that is known."""
    return pc.invert(pc.is_in(types, pa.array(params.types, pa.string())))


def _lengths(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_length(values), fill_value=0).cast(pa.int64())


def _pages(batch: pa.RecordBatch, reasons: pa.Array, evidence: pa.Array, params: Params) -> pa.RecordBatch:
    """Return the columns of a page, without payload and text in rows with a reason."""
    kept = pc.is_null(reasons)
    status = ("status",) if params.rights else ()
    pages = _named(batch.select([*PAGE.names, *status]), params.source)
    for name in ("payload", "text"):
        column = pages.column(name)
        if pc.any(pc.and_not(pc.is_valid(column), kept)).as_py():  # else all of it would be copied for nothing
            pages = replace_column(pages, name, pc.if_else(kept, column, pa.scalar(None, column.type)))
    pages = _as_payloads(pages) if params.extract_html else pages
    return reject(pages, reasons, evidence)


def _as_payloads(pages: pa.RecordBatch) -> pa.RecordBatch:
    """Return pages with texts that are HTML documents as payloads."""
    text = pages.column("text")
    is_html = _is_html(text)
    if not pc.any(is_html).as_py():
        return pages
    payload = pc.if_else(is_html, text.cast(pa.large_binary()), pages.column("payload"))
    content_type = pc.if_else(is_html, pa.scalar("text/html; charset=utf-8"), pages.column("content_type"))
    pages = replace_column(pages, "text", pc.if_else(is_html, pa.scalar(None, text.type), text))
    pages = replace_column(pages, TYPE, pc.if_else(is_html, HTML, pages[TYPE]))
    return replace_column(replace_column(pages, "payload", payload), "content_type", content_type)


def _is_html(text: pa.Array) -> pa.Array:
    """Return whether each text is an HTML document, or a piece of one.

    A document begins as one and has a block or a closing tag: many never close what they open. A piece is markup from
    its first to its last character: it begins with a block and ends with a tag, and has at least `PIECE_TAGS` tags of
    HTML, and one for each `PIECE_BYTES` bytes.
    A text about HTML, which mentions or quotes tags, begins or ends with words.
    """
    begins = pc.fill_null(pc.match_substring_regex(text, r"\A[\s\x{feff}]*<"), fill_value=False)
    if not pc.any(begins).as_py():
        return begins
    tags = pc.fill_null(pc.count_substring_regex(text, _TAG), fill_value=0)
    is_document = pc.match_substring_regex(text, _DOCUMENT)
    is_dense = pc.greater_equal(pc.multiply(tags, PIECE_BYTES), _lengths(text))
    is_piece = pc.and_(pc.match_substring_regex(text, _PIECE), pc.and_(pc.greater_equal(tags, PIECE_TAGS), is_dense))
    return pc.and_(begins, pc.fill_null(pc.or_(is_document, is_piece), fill_value=False))


def _named(pages: pa.RecordBatch, source: str) -> pa.RecordBatch:
    """Return pages with `source` where the record itself names no source."""
    own = pages.column("source")
    return replace_column(pages, "source", pc.if_else(pc.equal(own, ""), pa.scalar(source), own))


def _evidence(batch: pa.RecordBatch, reasons: pa.Array, params: Params) -> pa.Array:
    """Return for every row with a reason the facts it follows from, and the bound they break."""
    size = pc.max_element_wise(_lengths(batch["payload"]), _lengths(batch["text"]))
    shown = ("kind", "status", "content_type", "payload_digest", "error_detail")
    facts = batch.select(shown).append_column("bytes", size)
    return _proofs(reasons, facts, partial(_proof, params=params))


def _proofs(
    reasons: pa.Array, facts: pa.RecordBatch, proof: Callable[[str, dict[str, Any]], dict[str, Any]]
) -> pa.Array:
    """Return for every row with a reason, as JSON, the proof that its facts are of it."""
    proofs: list[str | None] = [None] * facts.num_rows
    for at in np.flatnonzero(np.asarray(pc.is_valid(reasons))):
        row = {name: facts[name][at].as_py() for name in facts.schema.names}
        shown = proof(reasons[at].as_py().partition(":")[2], row)
        proofs[at] = json.dumps(shown, sort_keys=True, separators=(",", ":"))
    return pa.array(proofs, pa.string())


def _proof(reason: str, row: dict[str, Any], params: Params) -> dict[str, Any]:
    proof = {"kind": row["kind"]}
    if reason == "status":
        return {**proof, "status": row["status"], "keep_status": list(params.keep_status)}
    if reason in (NO_TYPE, *type_names()):
        return {**proof, "content_type": (row["content_type"] or "")[:100]}
    if reason == "too_large":
        return {**proof, "bytes": row["bytes"], "max_bytes": params.max_bytes}
    if reason == "revisit":
        return {**proof, "payload_digest": row["payload_digest"]}
    return {**proof, "detail": row["error_detail"]} if row["error_detail"] else proof


def page_keys(pages: Batches) -> Batches:
    """Yield the keys by which later snapshots look up pages, sorted; a page without URL or digest has none."""
    keys = pc.unique(pa.chunked_array([_keys(batch) for batch in pages], KEY).drop_null())
    yield pa.record_batch([keys.take(pc.array_sort_indices(keys))], schema=SEEN)


def resources(params: Params) -> tuple[str, ...]:
    """Return the list of what was taken down, if there is one."""
    return (params.taken_down,) if params.taken_down else ()


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Select the pages of every landed file, and save their keys for later snapshots.

    Every file is read once. The keys of all files are looked up together: an earlier snapshot has a segment for each of
    its files, so one lookup for each file would ask for as many segments as the product of the two. Each file then asks
    for those of its own keys that were seen.
    """
    layer = replace(LAYER, stores=(*LAYER.stores, "status")) if params.rights else LAYER
    earlier, listed = sum(on.history("pages"), ()), on.keyed(params.taken_down)
    if earlier:
        selected = on.map(partial(select_pages, params=params, revisits=True), shards, broadcast=listed, layer=layer)
        keys = on.map(record_keys, selected, reads=KEYED)
        keys = on.group(unchanged, keys, by="key", order=("place",), buckets=buckets_for(keys))
        seen = on.index(seen_keys, keys, by=tuple(PLACED.names), broadcast=earlier)
        pages = on.map(drop_unchanged, selected, broadcast=seen, layer=DROPPED)
    else:
        pages = on.map(partial(select_pages, params=params), shards, broadcast=listed, layer=layer)
    on.save_history("pages", on.map(page_keys, pages, reads=("url", "payload_digest")))
    return pages


def remarks(params: Params) -> Iterator[str]:
    """Yield that nothing is read."""
    if not params.types:
        yield f"`types` is empty, so every file is rejected; name some of {', '.join(type_names())}"


def writes_for(params: Params) -> pa.Schema:
    """Return the status of what is no page, if such records go on."""
    return pa.schema([RECORD.field("status")] if params.rights else [])


STAGE = Stage(
    name="ingest",
    run=run,
    params=Params,
    reads=RECORD,
    writes=PAGE,
    version=11,
    splits=True,
    libraries={UNICODE: lambda params: bool(params.taken_down)},
    history={"pages": Section(SEEN, key="key")},
    writes_for=writes_for,
    remarks=remarks,
    resources=resources,
    engine="spark",
    profiled=("source", "content_type", TYPE),
    reasons=(
        *NO_PAGE,
        *(f"ingest:{reason}" for reason in ("status", NO_TYPE, *type_names(), "empty", "too_large")),
        TAKEN_DOWN,
        *(f"error:{reason}" for reason in DAMAGE),
    ),
    title="Select pages",
    cost=UnitCost(0.026, 1.01, 0.02, 5, requests=Requests(21, 7), rows=0.598),
    wiring=Wiring(serves={"rights": "check_rights"}, passes={"extract": ("types",)}),
    no_page=NO_PAGE,
    changes=("payload", "text"),
)
