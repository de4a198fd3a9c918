"""Keeps one document of each normalized text, across snapshots too, and brings documents into id order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import OMITTED, Buckets
from pipeline_tasks.facets import BUCKET_MEMORY, Copies, Grouped, Requests, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.id_order import PLACE
from pipeline_tasks.schema import DOCUMENT
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
from pipeline_tasks.text.near.ranking import place_of, require_policy

DUPLICATE = "dedup_exact:duplicate"
SEEN_BEFORE = "dedup_exact:seen_before"
PREFERRED, AGE = "preferred", "age"
"""Columns that order equal documents, and are gone behind the stage."""

SHOWN = ("snapshot", "file", "offset", "record_id", "url", "crawled_at")
"""The columns of the kept document that evidence shows and history has."""

KEPT = pa.schema([DOCUMENT.field(name) for name in ("id", *SHOWN)])
"""What later snapshots see of a document that is kept."""

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Params:
    """Which of several equal documents is kept, and the number of buckets of documents.

    `id` is the hash of the normalized text, so equal texts share it. `oldest` keeps the first crawled, `newest` the
    last (dates compare as text, which for WARC-Date is the order of time); ties go to the lowest snapshot, file and
    offset. Before both comes `prefer`, a column of names with its values, the best first, as in `dedup_minhash`. A
    document of an earlier snapshot is always kept: published documents never change. `buckets` is the number
    of shards that come out; 0 takes as many as the bytes of the input ask for, a power of two: of 128 MB each at most,
    and of 4 MB where up to 8 are enough. It bounds the memory of every later verb that works by document, and may
    change from one snapshot to the next.
    """

    keep: Literal["oldest", "newest"] = "oldest"
    prefer: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata={OMITTED: {}})
    buckets: Buckets = 0

    def __post_init__(self) -> None:
        """Raise RecipeError for a vague `prefer`."""
        require_policy("dedup_exact", (), (), self.prefer)


def with_order(documents: Batches, *, prefer: Mapping[str, Sequence[str]], newest: bool) -> Batches:
    """Append what sorts the row to keep first among equals: `preferred`, and `age`, by which the last crawled is first.

    Values that are not named come behind those that are, and undated documents last.
    """
    from pipeline_tasks.text.base.timestamps import sortable_timestamps

    for batch in documents:
        ordered = batch
        for column, values in prefer.items():
            ordered = replace_column(ordered, PREFERRED, pa.array(place_of(batch.column(column), values)))
        if newest:
            ordered = replace_column(ordered, AGE, pc.negate(sortable_timestamps(batch.column("crawled_at"))))
        yield ordered


def keep_first(documents: Batches) -> Batches:
    """Keep the first row of each run of equal ids (as `group` sorted them); the others name it as the winner."""
    last: str | None = None
    first = pa.record_batch({})  # the first row of the run
    winner: dict[str, Any] = {}  # the same as evidence shows it, once another row follows
    for batch in documents:
        evidence: list[str | None] = []
        shown = batch.select([*SHOWN, "payload_digest"])
        for row, id_ in enumerate(batch.column("id").to_pylist()):
            if id_ != last:
                last, first, winner = id_, shown.slice(row, 1), {}
                evidence.append(None)
                continue
            winner = winner or first.to_pylist()[0]
            digest = shown.column("payload_digest")[row].as_py()
            evidence.append(_evidence(winner, same_payload=digest is not None and digest == winner["payload_digest"]))
        marked = _rejected(batch, evidence, DUPLICATE)
        yield marked.select([name for name in marked.schema.names if name not in (PREFERRED, AGE)])


def _rejected(batch: pa.RecordBatch, evidence: list[str | None], reason: str) -> pa.RecordBatch:
    """Reject the rows that have evidence."""
    reasons = pa.array([reason if proof else None for proof in evidence], pa.string())
    return reject(batch, reasons, pa.array(evidence, pa.string()))


def _evidence(winner: Mapping[str, Any], **facts: object) -> str:
    shown = {name: winner[name] for name in SHOWN}
    return json.dumps({"winner": shown, **facts}, sort_keys=True, separators=(",", ":"))


def reject_seen_before(documents: Batches, *history: HistoryReader) -> Batches:
    """Reject documents whose id an earlier snapshot kept; the earliest snapshot that did has the winner."""
    for batch in documents:
        ids: Any = batch.column("id")
        winners: dict[Any, Mapping[str, Any]] = {}
        for reader in history:
            rows = reader.rows(ids).to_pylist()
            winners = {row["id"]: row for row in reversed(rows)} | winners
        seen = [winners.get(id_) for id_ in (ids.to_pylist() if winners else [None] * batch.num_rows)]
        yield _rejected(batch, [_evidence(winner) if winner else None for winner in seen], SEEN_BEFORE)


def kept_documents(documents: Batches) -> Batches:
    """Yield `KEPT`."""
    for batch in documents:
        yield batch.select(KEPT.names)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Group by id, keep one document of each, reject what earlier snapshots kept, and save what is kept.

    Of history (about 100 bytes per document) it reads the pages that can have the new ids. Text is shuffled once,
    here, and never again.
    """
    newest, buckets = params.keep == "newest", params.buckets or buckets_for(shards)
    added = (*((PREFERRED,) if params.prefer else ()), *((AGE,) if newest else ()))
    layer = Layer(reads=("crawled_at", *params.prefer), stores=added)
    kernel = partial(with_order, prefer=params.prefer, newest=newest)
    ordered = on.map(kernel, shards, layer=layer) if added else shards
    order = (*added, *(() if newest else ("crawled_at",)), *PLACE)
    documents = on.group(keep_first, ordered, by="id", order=order, buckets=buckets)
    if earlier := on.history("documents"):
        documents = on.map(reject_seen_before, documents, *earlier, layer=Layer(reads=("id",)))
    on.save_history("documents", on.map(kept_documents, documents))
    return documents


STAGE = Stage(
    name="dedup_exact",
    run=run,
    params=Params,
    reads=DOCUMENT,
    reads_for=lambda params: tuple(params.prefer),
    writes=DOCUMENT,
    version=3,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    history={"documents": Section(KEPT, key="id", order=PLACE)},
    profiled=("chars", "origins", "clusters"),
    reasons=(DUPLICATE, SEEN_BEFORE),
    title="equal texts out",
    removes="copies",
    copies=Copies("all", equal=True),
    cost=UnitCost(
        0.023,
        0.60,
        0.63,
        4,
        BUCKET_MEMORY,
        requests=Requests(6.5, 0.25),
        bucket_requests=Requests(17, 8),
        rows=0.998,
        published=0.50,
    ),
    buckets=Grouped(by_id=True),
)
