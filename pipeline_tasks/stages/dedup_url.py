"""Keeps the newest document of each URL, across snapshots too, and records which earlier ones it supersedes."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column

OLDER = "dedup_url:older"
SEEN_BEFORE = "dedup_url:seen_before"
PLACE = ("snapshot", "file", "offset")
"""The columns that name one record; together they are unique."""

SHOWN = ("id", "snapshot", "file", "offset", "record_id", "url", "crawled_at")
"""What is told, and remembered, of the document that a URL has."""

NO_URL = " "
"""First character of the key of a document without a URL; the key of a URL is trimmed, so none begins like this."""

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Params:
    """Which parameters of a URL say nothing about its page, and into how many buckets URLs are spread.

    Two URLs are one when they differ only in `http` and `https`, the case of the host, a default port, the
    fragment, slashes at the end of the path, and parameters that `tracking` names (whatever their case; `utm_*`
    stands for all that begin so). The last crawled document of a URL stays (dates compare as text; of equals the
    one with the lowest file and offset). Documents without a URL all stay. A document of an earlier snapshot that
    has the same text, or is newer, makes the new one `seen_before`; else the new one supersedes it: that is
    remembered as (id, snapshot, file, offset, url, by_id, by_snapshot), and nothing that was published changes.
    `buckets` bounds the memory of a task and must stay the same as long as there is history.
    """

    tracking: tuple[str, ...] = (
        "utm_*",  # Google Analytics, "Custom campaigns"
        "gclid",
        "dclid",
        "gbraid",
        "wbraid",
        "_gl",
        "fbclid",  # Meta
        "igshid",
        "msclkid",  # Microsoft Advertising
        "yclid",  # Yandex
        "mc_cid",  # Mailchimp
        "mc_eid",
        "jsessionid",  # sessions, as the IIPC's URL canonicalizers leave them out
        "phpsessid",
    )
    buckets: int = 8


def key(docs: Batches, *, tracking: tuple[str, ...]) -> Batches:
    """Append `url_key`, and `age`, which sorts the last crawled first."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps
    from pipeline_tasks.text.urls.keys import keys

    for batch in docs:
        place = [batch.column(name).cast(pa.string()).fill_null("") for name in ("snapshot", "file", "offset")]
        own = pc.binary_join_element_wise(NO_URL, *place, "\t")
        keyed = replace_column(batch, "url_key", pc.coalesce(keys(batch.column("url"), tracking), own))
        yield replace_column(keyed, "age", pc.negate(sortable_timestamps(batch.column("crawled_at"))))


def elect(docs: Batches) -> Batches:
    """Keep the first row of each run of equal keys (as `group` sorted them); the others name it as the winner."""
    winner: dict[str, Any] = {"url_key": None}
    for batch in docs:
        shown = batch.select([*SHOWN, "url_key"])
        proofs: list[str | None] = []
        for row, one in enumerate(batch.column("url_key").to_pylist()):
            again = one == winner["url_key"]
            if not again:
                winner = shown.slice(row, 1).to_pylist()[0]
            proofs.append(_evidence(winner) if again else None)
        reasons = pa.array([OLDER if one else None for one in proofs], pa.string())
        yield reject(batch, reasons, pa.array(proofs, pa.string())).drop_columns("age")


def _evidence(winner: dict[str, Any]) -> str:
    return json.dumps({"winner": {name: winner[name] for name in SHOWN}}, sort_keys=True, separators=(",", ":"))


def probe(docs: Batches, *remembered: HistoryReader) -> Batches:
    """Yield what is told of each document, with its key and what the last earlier snapshot kept under it (`was_*`)."""
    for batch in docs:
        told = batch.select(["url_key", *SHOWN])
        keys: Any = told.column("url_key")
        none = pa.Table.from_batches([told.slice(0, 0)])
        # oldest snapshot first, within one shard too, so that the last row of a key is the latest
        known = pa.concat_tables([none, *(one.rows(keys).select(told.schema.names) for one in remembered)])
        at = pc.index_in(keys, value_set=_reversed(known.column("url_key")))
        found = known.combine_chunks().take(pc.subtract(known.num_rows - 1, at))
        for name in SHOWN:
            told = told.append_column(f"was_{name}", found.column(name).combine_chunks())
        yield told


def _reversed(column: Any) -> Any:  # noqa: ANN401 -- an Arrow column
    return column.take(pa.array(range(len(column) - 1, -1, -1), pa.int64()))


def _stays(told: pa.RecordBatch | pa.Table) -> Any:  # noqa: ANN401 -- an Arrow array
    """Tell which documents stay: no earlier snapshot has this text, or something as new, under their URL."""
    from pipeline_tasks.text.base.timestamps import sortable_timestamps

    same = pc.equal(told.column("id"), told.column("was_id")).fill_null(fill_value=False)
    now, then = (sortable_timestamps(told.column(name)) for name in ("crawled_at", "was_crawled_at"))
    late = pc.and_(pc.is_valid(told.column("was_id")), pc.greater(then, now))
    return pc.invert(pc.or_(same, late))


def jot(told: Batches, *, buckets: int) -> Batches:
    """Yield what later snapshots need to know of the documents that stay and have a URL."""
    for batch in told:
        named = pc.invert(pc.starts_with(batch.column("url_key"), NO_URL))
        stays = batch.filter(pc.and_(_stays(batch), named)).select(["url_key", *SHOWN])
        yield replace_column(stays, "buckets", pa.array([buckets] * stays.num_rows, pa.int64()))


def supersede(told: Batches) -> Batches:
    """Yield the earlier documents that those that stay supersede, and by which."""
    for batch in told:
        over = batch.filter(pc.and_(_stays(batch), pc.is_valid(batch.column("was_id"))))
        told_of = {name: over.column(f"was_{name}") for name in ("id", "snapshot", "file", "offset", "url")}
        yield pa.RecordBatch.from_pydict(
            {**told_of, "by_id": over.column("id"), "by_snapshot": over.column("snapshot")}
        )


def keep(rows: Batches) -> Batches:
    """Yield rows as they come: what is wanted is `group`'s order."""
    yield from rows


def sift(docs: Batches, told: Batches) -> Batches:
    """Set aside the documents that an earlier snapshot has, and leave the key behind."""
    from pipeline_tasks.text.base.lookup import Lookup

    table = Lookup(told, "url_key")
    for batch in docs:
        rows = table.rows(batch.column("url_key"))
        gone = pc.invert(_stays(rows)).to_pylist()
        was = rows.select([f"was_{name}" for name in SHOWN]).rename_columns(list(SHOWN))
        proofs = [_evidence(was.slice(row, 1).to_pylist()[0]) if out else None for row, out in enumerate(gone)]
        reasons = pa.array([SEEN_BEFORE if out else None for out in gone], pa.string())
        yield reject(batch.drop_columns("url_key"), reasons, pa.array(proofs, pa.string()))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Group by key, elect the newest, probe what earlier snapshots kept, and remember what is kept now.

    Stands before `dedup_exact`: were equal texts gone first, a text could leave with the outdated page that it was
    kept under. So text is shuffled once here and once more there. Of what earlier snapshots remember (about 200
    bytes per URL) it reads the pages that can hold the new keys.
    """
    keyed = on.map(partial(key, tracking=params.tracking), shards)
    order = ("age", "snapshot", "file", "offset")
    newest = on.group(elect, keyed, by="url_key", order=order, buckets=params.buckets)
    told = on.map(probe, newest, *on.history("urls"))
    on.save_history("urls", on.map(partial(jot, buckets=params.buckets), told))
    over = on.group(keep, on.map(supersede, told), by="id", order=PLACE, buckets=params.buckets)
    on.save_history("superseded", over)
    return on.map(sift, newest, told)


URLS = pa.schema(
    [
        pa.field("url_key", pa.string()),
        *(DOCUMENT.field(name) for name in SHOWN),
        pa.field("buckets", pa.int64()),
    ]
)
"""What later snapshots see of the document that a URL has."""

SUPERSEDED = pa.schema(
    [
        *(DOCUMENT.field(name) for name in ("id", "snapshot", "file", "offset", "url")),
        pa.field("by_id", pa.string()),
        pa.field("by_snapshot", pa.string()),
    ]
)
"""An earlier document that a document of this snapshot supersedes."""

STAGE = Stage(
    name="dedup_url",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=DOCUMENT,
    version=1,
    splits=False,
    history={
        "urls": Section(URLS, key="url_key", order=("snapshot",)),
        "superseded": Section(SUPERSEDED, key="id", order=PLACE),
    },
    profiled=("chars", "origins", "clusters"),
    reasons=(OLDER, SEEN_BEFORE),
    title="newest page of each URL",
)
