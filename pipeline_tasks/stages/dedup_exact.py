"""Keeps one document of each normalized text, across snapshots too, and brings documents into home order."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column

DUPLICATE = "dedup_exact:duplicate"
SEEN_BEFORE = "dedup_exact:seen_before"
PLACE = ("snapshot", "file", "offset")
"""The columns that name one record; together they are unique."""

SHOWN = ("snapshot", "file", "offset", "record_id", "url", "crawled_at")
"""What is told, and remembered, of the document that was kept."""


@dataclass(frozen=True, slots=True)
class Params:
    """Which of several equal documents stays, and into how many buckets documents are spread.

    `id` is already the hash of the normalized text, so equal texts share it. `oldest` keeps the first crawled,
    `newest` the last (dates compare as text, which for WARC-Date is the order of time); ties go to the lowest
    snapshot, file and offset. A document of an earlier snapshot
    always stays: what was published never changes. `buckets` is how many shards come out; it bounds the memory
    of every later verb that works by document, and the memory of this stage is kept in as many shards per
    snapshot, so it must stay the same as long as there is history.
    """

    keep: Literal["oldest", "newest"] = "oldest"
    buckets: int = 8


def elect(docs: Batches) -> Batches:
    """Keep the first row of each run of equal ids (as `group` sorted them); the others name it as the winner."""
    last: str | None = None
    winner: dict[str, Any] = {}
    for batch in docs:
        reasons: list[str | None] = []
        proofs: list[str | None] = []
        shown = batch.select([*SHOWN, "payload_digest"])
        for row, one in enumerate(batch.column("id").to_pylist()):
            if one != last:
                last, winner = one, shown.slice(row, 1).to_pylist()[0]
                reasons.append(None)
                proofs.append(None)
                continue
            digest = shown.column("payload_digest")[row].as_py()
            reasons.append(DUPLICATE)
            proofs.append(_evidence(winner, same_payload=digest is not None and digest == winner["payload_digest"]))
        marked = reject(batch, pa.array(reasons, pa.string()), pa.array(proofs, pa.string()))
        yield marked.select([name for name in marked.schema.names if name != "age"])


def _evidence(winner: dict[str, Any], **facts: object) -> str:
    told = {name: winner[name] for name in SHOWN}
    return json.dumps({"winner": told, **facts}, sort_keys=True, separators=(",", ":"))


def date(docs: Batches) -> Batches:
    """Append `age`, which sorts the last crawled first among equals; undated documents come last."""
    for batch in docs:
        digits: Any = pc.replace_substring_regex(batch.column("crawled_at").fill_null(""), r"\D", "")
        moments = pc.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, 14), 14, "0").cast(pa.int64())
        yield replace_column(batch, "age", pc.if_else(pc.equal(digits, pa.scalar("")), 0, pc.negate(moments)))


def recall(docs: Batches, *remembered: HistoryReader) -> Batches:
    """Set aside documents whose id an earlier snapshot kept; the earliest that did is the winner told."""
    for batch in docs:
        ids: Any = batch.column("id")
        winners: dict[Any, dict[str, Any]] = {}
        for one in remembered:
            found = one.rows(ids).to_pylist()
            winners = {row["id"]: row for row in reversed(found)} | winners
        seen = [winners.get(one) for one in (ids.to_pylist() if winners else [None] * batch.num_rows)]
        reasons = pa.array([SEEN_BEFORE if winner else None for winner in seen], pa.string())
        yield reject(batch, reasons, pa.array([_evidence(winner) if winner else None for winner in seen], pa.string()))


def jot(docs: Batches, *, buckets: int) -> Batches:
    """Yield what later snapshots need to know: the id and whereabouts of each document that is kept."""
    for batch in docs:
        told = batch.select(["id", *SHOWN])
        yield replace_column(told, "buckets", pa.array([buckets] * batch.num_rows, pa.int64()))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Group by id, elect, recall what earlier snapshots kept, and remember what is kept now.

    Of what earlier snapshots kept (about 100 bytes per document) it reads the pages that can hold the new ids.
    Text is shuffled once, here, and never again.
    """
    newest = params.keep == "newest"
    dated = on.map(date, shards) if newest else shards
    first = "age" if newest else "crawled_at"
    home = on.group(elect, dated, by="id", order=(first, *PLACE), buckets=params.buckets)
    if earlier := on.history("documents"):
        home = on.map(recall, home, *earlier)
    on.save_history("documents", on.map(partial(jot, buckets=params.buckets), home))
    return home


KEPT = pa.schema([*(DOCUMENT.field(name) for name in ("id", *SHOWN)), pa.field("buckets", pa.int64())])
"""What later snapshots see of a document that is kept."""

STAGE = Stage(
    name="dedup_exact",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=DOCUMENT,
    version=2,
    splits=False,
    history={"documents": Section(KEPT, key="id", order=PLACE)},
    profiled=("chars", "origins", "clusters"),
    reasons=(DUPLICATE, SEEN_BEFORE),
    title="equal texts out",
)
