"""Judges every record of landed files: pages go on, all else is set aside by kind, status, type or earlier sight."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.schema import PAGE, RECORD
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column

PAGE_KINDS = ("response", "resource", "conversion", "json", "row")
KEY = pa.binary()
SEEN = pa.schema([pa.field("key", KEY)])
"""What later snapshots recognize a page by: a 128-bit hash (XXH3) of its URL and payload digest."""

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
"""Every `error` that a record can have (`formats`)."""

_OTHER_BYTES = (  # files that servers send as text/html
    r"(?s)\A(?:%PDF-|\x89PNG|\xff\xd8\xff|GIF8[79]a|PK\x03\x04|\x1f\x8b|RIFF....WEBP|\x00\x00\x01\x00|wOF[F2]|Rar!)"
)
_MARKUP = r"(?is)\A(?:\xef\xbb\xbf)?[\s\x00]*(?:<!doctype html|<html|<head|<body|<!--|<\?xml)"


@dataclass(frozen=True, slots=True)
class Params:
    """What counts as a page.

    `source` names where the documents come from when they are read; `keep_status` holds HTTP statuses (a record
    without one, as a WET text, passes), `keep_types` media types without parameters, `max_bytes` bounds a payload.
    """

    source: str = "crawl"
    keep_status: tuple[int, ...] = (200,)
    keep_types: tuple[str, ...] = ("text/html", "application/xhtml+xml", "text/plain")
    max_bytes: int = 10 << 20


def ask(records: Batches) -> Batches:
    """Turn records into the keys under which an earlier snapshot may remember them, one row each."""
    for batch in records:
        for keys in (_keys(batch), _original_keys(batch)):
            yield pa.record_batch([keys.drop_null()], schema=SEEN)


def recall(asked: Batches, remembered: HistoryReader) -> Batches:
    """Yield those of the `asked` keys that are `remembered`."""
    wanted = pa.Table.from_batches(asked)
    there = pc.is_in(wanted.column("key"), value_set=remembered.rows(wanted.column("key")).column("key"))
    yield pa.record_batch([wanted.filter(there).column("key").combine_chunks()], schema=SEEN)


def sift(records: Batches, seen: Batches | None = None, *, params: Params) -> Batches:
    """Keep pages and say of every other record why it is none; one `seen` in an earlier snapshot is `unchanged`."""
    known = pa.Table.from_batches(seen).column("key").combine_chunks() if seen is not None else pa.array([], KEY)
    for batch in records:
        reasons = _reasons(batch, params, known)
        yield _pages(batch, reasons, params)


def _keys(batch: pa.RecordBatch) -> pa.Array:
    """Return what each record is remembered by, null without a URL or a payload digest."""
    return _hashed(batch["url"].to_pylist(), batch["payload_digest"].to_pylist())


def _original_keys(batch: pa.RecordBatch) -> pa.Array:
    """Return what the record that a `revisit` refers to is remembered by, null for all others."""
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


def _reasons(batch: pa.RecordBatch, params: Params, known: pa.Array) -> pa.Array:
    """Return one reason per row, the first that applies, null for pages."""
    kind, status, payload, text = (batch.column(name) for name in ("kind", "status", "payload", "text"))
    media = pc.utf8_lower(pc.utf8_trim_whitespace(pc.replace_substring_regex(batch["content_type"], ";.*", "")))
    bare = pc.fill_null(pc.equal(media, ""), fill_value=True)
    wanted = pc.or_(
        pc.is_in(media, pa.array(params.keep_types, pa.string())),
        pc.and_(bare, pc.fill_null(pc.match_substring_regex(payload, _MARKUP), fill_value=False)),
    )
    other = pc.fill_null(pc.match_substring_regex(payload, _OTHER_BYTES), fill_value=False)
    scheme = pc.fill_null(
        pc.match_substring_regex(batch["url"], r"(?i)\A(?:dns|whois|metadata|filedesc|warcinfo):"), fill_value=False
    )
    seen = _seen(batch, known)
    return pc.case_when(
        pc.make_struct(
            pc.is_valid(batch["error"]),
            pc.and_(pc.equal(kind, "revisit"), seen),
            pc.equal(kind, "revisit"),
            pc.or_(pc.invert(pc.is_in(kind, pa.array(PAGE_KINDS))), scheme),
            pc.and_(pc.is_valid(status), pc.invert(pc.is_in(status, pa.array(params.keep_status, pa.int32())))),
            pc.and_(pc.is_null(text), pc.equal(_lengths(payload), 0)),
            pc.and_(pc.is_valid(text), pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0)),
            pc.and_(pc.is_null(text), pc.or_(pc.invert(wanted), other)),
            pc.greater(pc.max_element_wise(_lengths(payload), _lengths(text)), params.max_bytes),
            seen,
        ),
        pc.binary_join_element_wise("error", batch["error"], ":"),
        *(
            pa.scalar(f"ingest:{why}")
            for why in (
                "unchanged",
                "revisit",
                "not_page",
                "status",
                "empty",
                "empty",
                "not_html",
                "too_large",
                "unchanged",
            )
        ),
        pa.scalar(None, pa.string()),
    )


def _seen(batch: pa.RecordBatch, known: pa.Array) -> pa.Array:
    """Tell of each record whether it, or what it refers to, is `known`; without a history nothing is hashed for it."""
    if not len(known):
        return pa.array(np.zeros(batch.num_rows, bool))
    return pc.or_(pc.is_in(_keys(batch), value_set=known), pc.is_in(_original_keys(batch), value_set=known))


def _lengths(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_length(values), fill_value=0).cast(pa.int64())


def _pages(batch: pa.RecordBatch, reasons: pa.Array, params: Params) -> pa.RecordBatch:
    """Return the columns of a page, without payload and text where a reason stands."""
    kept = pc.is_null(reasons)
    pages = _named(batch.select(PAGE.names), params.source)
    for name in ("payload", "text"):
        column = pages.column(name)
        pages = replace_column(pages, name, pc.if_else(kept, column, pa.scalar(None, column.type)))
    return reject(pages, reasons, _evidence(batch, reasons, params))


def _named(pages: pa.RecordBatch, source: str) -> pa.RecordBatch:
    """Return pages with `source` where the record itself names no source."""
    own = pages.column("source")
    return replace_column(pages, "source", pc.if_else(pc.equal(own, ""), pa.scalar(source), own))


def _evidence(batch: pa.RecordBatch, reasons: pa.Array, params: Params) -> pa.Array:
    """Say for every row with a reason what was found, and against which bound."""
    proofs: list[str | None] = [None] * batch.num_rows
    size = pc.max_element_wise(_lengths(batch["payload"]), _lengths(batch["text"]))
    shown = ("kind", "status", "content_type", "payload_digest", "error_detail")
    facts = batch.select(shown).append_column("bytes", size)
    for at in np.flatnonzero(np.asarray(pc.is_valid(reasons))):
        why = reasons[at].as_py().partition(":")[2]
        row = {name: facts[name][at].as_py() for name in facts.schema.names}
        proofs[at] = json.dumps(_proof(why, row, params), sort_keys=True, separators=(",", ":"))
    return pa.array(proofs, pa.string())


def _proof(why: str, row: dict[str, Any], params: Params) -> dict[str, Any]:
    proof = {"kind": row["kind"]}
    if why == "status":
        return {**proof, "status": row["status"], "keep_status": list(params.keep_status)}
    if why == "not_html":
        return {**proof, "content_type": (row["content_type"] or "")[:100]}
    if why == "too_large":
        return {**proof, "bytes": row["bytes"], "max_bytes": params.max_bytes}
    if why in {"unchanged", "revisit"}:
        return {**proof, "payload_digest": row["payload_digest"]}
    return {**proof, "detail": row["error_detail"]} if row["error_detail"] else proof


def jot(pages: Batches) -> Batches:
    """Turn pages into the keys that later snapshots recognize them by, sorted; one without URL or digest has none."""
    keys = pc.unique(pa.chunked_array([_keys(batch) for batch in pages], KEY).drop_null())
    yield pa.record_batch([keys.take(pc.array_sort_indices(keys))], schema=SEEN)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Sift every landed file against all earlier snapshots, and remember the pages that are kept.

    With a history every file is read twice: first for its keys, so that history is asked once for all of them.
    """
    earlier = sum(on.history("pages"), ())
    seen = [on.map(recall, on.map(ask, shards), broadcast=earlier)] if earlier else []
    pages = on.map(partial(sift, params=params), shards, *seen)
    on.save_history("pages", on.map(jot, pages))
    return pages


STAGE = Stage(
    name="ingest",
    run=run,
    params=Params,
    reads=RECORD,
    writes=PAGE,
    version=2,
    splits=True,
    history={"pages": Section(SEEN, key="key")},
    engine="spark",
    profiled=("source", "content_type"),
    reasons=(
        *(f"ingest:{why}" for why in ("not_page", "revisit", "unchanged", "status", "not_html", "empty", "too_large")),
        *(f"error:{why}" for why in DAMAGE),
    ),
    title="Records into pages",
)
