"""Keeps the newest document of each URL, across snapshots too, and records which earlier ones it supersedes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Buckets
from pipeline_tasks.facets import BUCKET_MEMORY, Copies, Grouped, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.schema import DOCUMENT, Array
from pipeline_tasks.stage import (
    Batches,
    Engine,
    HistoryReader,
    Layer,
    Section,
    Shards,
    Stage,
    always,
    buckets_for,
    reject,
    replace_column,
)
from pipeline_tasks.text.base.tables import batch_of, combined, unchanged
from pipeline_tasks.text.urls.tracking import TRACKING

OLDER = "dedup_url:older"
SEEN_BEFORE = "dedup_url:seen_before"
PLACE = ("snapshot", "file", "offset")
"""The columns that name one record; together they are unique."""

SHOWN = ("id", "snapshot", "file", "offset", "record_id", "url", "crawled_at")
"""The columns of a URL's document that evidence shows and history has."""

URLS = pa.schema([pa.field("url_key", pa.string()), *(DOCUMENT.field(name) for name in SHOWN)])
"""What later snapshots see of the document that a URL has."""

SUPERSEDED = pa.schema(
    [
        *(DOCUMENT.field(name) for name in ("id", "snapshot", "file", "offset", "url")),
        pa.field("by_id", pa.string()),
        pa.field("by_snapshot", pa.string()),
    ]
)
"""An earlier document that a document of this snapshot supersedes."""

COMPARED = pa.schema([*URLS, *(pa.field(f"was_{name}", DOCUMENT.field(name).type) for name in SHOWN)])
"""A document of this snapshot, and what the last earlier snapshot has under its URL (`was_*`, null if nothing)."""

NO_URL = " "
"""First character of the key of a document without a URL; the key of a URL is trimmed, so none begins like this."""

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Params:
    """Which parameters of a URL are no part of its page's identity, and the number of buckets of URLs.

    Two URLs are one when a browser takes them for one (`text.urls.addresses`), or when they differ only in `http` and
    `https`, slashes at the end of the path, and parameters that `tracking` names (whatever their case; `utm_*` is all
    that begin so). The last crawled document of a URL is kept (dates compare as text; of equals the
    one with the lowest file and offset). Documents without a URL are all kept. A document of an earlier snapshot that
    has the same text, or is newer, makes the new one `seen_before`; else the new one supersedes it: history has
    (id, snapshot, file, offset, url, by_id, by_snapshot) of it, and published documents do not change.
    `buckets` bounds the memory of a task (0: as in `dedup_exact`), and may change from one snapshot to the next.
    """

    tracking: tuple[str, ...] = TRACKING
    buckets: Buckets = 0


def with_url_key(documents: Batches, *, tracking: tuple[str, ...]) -> Batches:
    """Append `url_key`, and `age`, which sorts the last crawled first."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps
    from pipeline_tasks.text.urls.keys import keys

    for batch in documents:
        place = [batch.column(name).cast(pa.string()).fill_null("") for name in PLACE]
        own = pc.binary_join_element_wise(NO_URL, *place, "\t")
        keyed = replace_column(batch, "url_key", pc.coalesce(keys(batch.column("url"), tracking), own))
        yield replace_column(keyed, "age", pc.negate(sortable_timestamps(batch.column("crawled_at"))))


def keep_newest(documents: Batches) -> Batches:
    """Keep the first row of each run of equal keys (as `group` sorted them); the others name it as the winner."""
    winner: dict[str, Any] = {"url_key": None}
    for batch in documents:
        shown = batch.select([*SHOWN, "url_key"])
        evidence: list[str | None] = []
        for row, key in enumerate(batch.column("url_key").to_pylist()):
            again = key == winner["url_key"]
            if not again:
                winner = shown.slice(row, 1).to_pylist()[0]
            evidence.append(_evidence(winner) if again else None)
        yield _rejected(batch, evidence, OLDER).drop_columns("age")


def _rejected(batch: pa.RecordBatch, evidence: list[str | None], reason: str) -> pa.RecordBatch:
    """Reject the rows that have evidence."""
    reasons = pa.array([reason if proof else None for proof in evidence], pa.string())
    return reject(batch, reasons, pa.array(evidence, pa.string()))


def _evidence(winner: Mapping[str, Any]) -> str:
    return json.dumps({"winner": {name: winner[name] for name in SHOWN}}, sort_keys=True, separators=(",", ":"))


def compare_with_history(documents: Batches, *history: HistoryReader) -> Batches:
    """Yield `COMPARED`."""
    for batch in documents:
        keys: Any = batch.column("url_key")
        # Oldest snapshot first, within one shard too, so that the last row of a key is the latest.
        known = pa.concat_tables([URLS.empty_table(), *(reader.rows(keys).select(URLS.names) for reader in history)])
        backwards = known.take(pa.array(np.arange(known.num_rows)[::-1])).combine_chunks()
        latest = backwards.take(pc.index_in(keys, value_set=combined(backwards.column("url_key"))))
        was = {f"was_{name}": latest.column(name) for name in SHOWN}
        yield batch_of(COMPARED, **{name: batch.column(name) for name in URLS.names}, **was)


def _is_kept(compared: pa.RecordBatch | pa.Table) -> Array:
    """Return for each document whether no earlier snapshot has this text, or something as new, under its URL."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps

    same = pc.equal(compared.column("id"), compared.column("was_id")).fill_null(fill_value=False)
    now, then = (sortable_timestamps(compared.column(name)) for name in ("crawled_at", "was_crawled_at"))
    late = pc.and_(pc.is_valid(compared.column("was_id")), pc.greater(then, now))
    return pc.invert(pc.or_(same, late))


def kept_urls(compared: Batches) -> Batches:
    """Yield `URLS` of the documents that are kept and have a URL."""
    for batch in compared:
        named = pc.invert(pc.starts_with(batch.column("url_key"), NO_URL))
        yield batch.filter(pc.and_(_is_kept(batch), named)).select(URLS.names)


def superseded_documents(compared: Batches) -> Batches:
    """Yield `SUPERSEDED`."""
    for batch in compared:
        over = batch.filter(pc.and_(_is_kept(batch), pc.is_valid(batch.column("was_id"))))
        was = {name: over.column(f"was_{name}") for name in ("id", "snapshot", "file", "offset", "url")}
        yield batch_of(SUPERSEDED, **was, by_id=over.column("id"), by_snapshot=over.column("snapshot"))


def reject_seen_before(documents: Batches, compared: Batches) -> Batches:
    """Reject the documents that an earlier snapshot has, and drop the key."""
    from pipeline_tasks.text.base.lookup import Lookup

    table = Lookup(compared, "url_key")
    for batch in documents:
        rows = table.rows(batch.column("url_key"))
        seen = pc.invert(_is_kept(rows)).to_pylist()
        was = rows.select([f"was_{name}" for name in SHOWN]).rename_columns(list(SHOWN))
        evidence = [_evidence(was.slice(row, 1).to_pylist()[0]) if again else None for row, again in enumerate(seen)]
        yield _rejected(batch.drop_columns("url_key"), evidence, SEEN_BEFORE)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Group by key, keep the newest, compare it with what earlier snapshots kept, and save what is kept.

    It comes before `dedup_exact`: if equal texts went first, a text could leave with the outdated page that it was
    kept under. So text is shuffled once here and once more there. Of history (about 200 bytes per URL) it reads the
    pages that can have the new keys.
    """
    buckets = params.buckets or buckets_for(shards)
    keyed = on.map(
        partial(with_url_key, tracking=params.tracking), shards, layer=Layer(reads=(*PLACE, "url", "crawled_at"))
    )
    newest = on.group(keep_newest, keyed, by="url_key", order=("age", *PLACE), buckets=buckets)
    compared = on.map(compare_with_history, newest, *on.history("urls"))
    on.save_history("urls", on.map(kept_urls, compared))
    superseded = on.map(superseded_documents, compared)
    on.save_history("superseded", on.group(unchanged, superseded, by="id", order=PLACE, buckets=buckets))
    return on.map(reject_seen_before, newest, compared, layer=Layer(reads=("url_key",)))


STAGE = Stage(
    name="dedup_url",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=DOCUMENT,
    version=4,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    history={
        "urls": Section(URLS, key="url_key", order=("snapshot",)),
        "superseded": Section(SUPERSEDED, key="id", order=PLACE),
    },
    profiled=("chars", "origins", "clusters"),
    reasons=(OLDER, SEEN_BEFORE),
    title="newest page of each URL",
    removes="copies",
    copies=Copies("all", replaced="superseded"),
    cost=UnitCost(0.13, 1.00, 1.04, 6, BUCKET_MEMORY),
    buckets=Grouped(),
)
