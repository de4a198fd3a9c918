"""Cuts paragraphs or lines out that another document has already, across snapshots too, and records every span."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.schema import DOCUMENT
from pipeline_tasks.stage import Batches, Engine, HistoryReader, Section, Shards, Stage, reject, replace_column

if TYPE_CHECKING:
    from pipeline_tasks.text.edits.paragraphs import Parts

TOO_LITTLE_LEFT = "dedup_paragraphs:too_little_left"
BREAKS = {"paragraph": 2, "line": 1}
"""Newlines in a row that part a text."""

SPAN = pa.struct(
    [
        pa.field("start", pa.int64()),  # first code point of the text as it came
        pa.field("end", pa.int64()),  # past the last one
        pa.field("hash", pa.int64()),
        pa.field("winner", pa.string()),  # id of the document that keeps the part
        pa.field("snapshot", pa.string()),  # of that document
    ]
)

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class Params:
    """What is compared, how long it must be, and how much of a document must be left.

    A part is a `line`, which after `extract` is what a page shows as a paragraph, or for texts that have empty lines a
    `paragraph`. Only parts of at least `min_chars` code points are compared, byte by byte (by two 64-bit hashes); the
    default of 200 is about the 50 tokens of Lee et al., Deduplicating Training Data Makes Language Models Better
    (2022). The first one stays: that of an earlier snapshot, else of the lowest id (within a bucket that is home
    order), else the first in its document; all others are cut out with their line ends and told in `cut_spans`,
    and the text keeps its id.
    A document of which less than `min_left` code points would stay is set aside whole, as it came. `min_left` is at
    most `min_chars`: so a document that keeps any part is never set aside, and no part is lost with it. `buckets` is
    how many home shards there are and how the memory of earlier snapshots is cut: it must be that of `dedup_exact`,
    and stay the same as long as there is history.
    """

    unit: Literal["line", "paragraph"] = "line"
    min_chars: int = 200
    min_left: int = 100
    buckets: int = 8


# --- Which parts there are ------------------------------------------------------------------------------------


def survey(docs: Batches, *, params: Params) -> Batches:
    """Yield (hash, check, id, snapshot) of every different part of a shard, with the first document that has it.

    What a shard repeats within itself stays here, so a line that is on every page of a crawl travels once a shard.
    """
    from pipeline_tasks.text.edits.paragraphs import Seen

    seen = Seen()
    for batch, parts in _parted(docs, params):
        new = (seen.add(parts.hash, parts.check, parts.doc) < 0) & (parts.hash != 0)
        told = batch.select(["id", "snapshot"]).take(pa.array(parts.doc[new]))
        yield pa.RecordBatch.from_pydict(
            {
                "hash": pa.array(parts.hash[new]),
                "check": pa.array(parts.check[new]),
                "id": told.column("id"),
                "snapshot": told.column("snapshot"),
            }
        )


def _parted(docs: Batches, params: Params) -> Iterator[tuple[pa.RecordBatch, "Parts"]]:
    """Yield batches with their parts; ContractError where documents are not in home order."""
    from pipeline_tasks.text.edits import paragraphs

    last = ""
    for batch in docs:
        ids = [last, *batch.column("id").to_pylist()]
        wrong = next((after for before, after in pairwise(ids) if not before < after), None)
        if wrong is not None:
            message = f"dedup_paragraphs: document {wrong} is not in home order, or there twice; run dedup_exact before"
            raise ContractError(message)
        last = ids[-1]
        yield batch, paragraphs.cut(batch.column("text"), BREAKS[params.unit], params.min_chars)


def elect(rows: Batches) -> Batches:
    """Append `winner` and `winner_snapshot`: the first row of each run of equal hashes (as `group` sorted them)."""
    whole = pa.Table.from_batches(list(rows)).combine_chunks()
    hashes = [whole.column(name).to_numpy() for name in ("hash", "check")]
    differs = np.any([one[1:] != one[:-1] for one in hashes], axis=0)
    starts = np.flatnonzero(np.concatenate([np.ones(min(whole.num_rows, 1), bool), differs]))
    winners = whole.take(pa.array(np.repeat(starts, np.diff(np.append(starts, whole.num_rows)))))
    told = whole.append_column("winner", winners.column("id"))
    told = told.append_column("winner_snapshot", winners.column("snapshot")).combine_chunks()
    yield from told.to_batches() or [pa.RecordBatch.from_pylist([], schema=told.schema)]


def recall(rows: Batches, *remembered: HistoryReader) -> Batches:
    """Exchange the winner for the document of an earlier snapshot that has the part, where there is one."""
    for batch in rows:
        found = [one.rows(batch.column("hash")).select(["hash", "check", "id", "snapshot"]) for one in remembered]
        known = pa.concat_tables([pa.Table.from_batches([batch.select(found[0].schema.names).slice(0, 0)]), *found])
        at = pc.index_in(_names(batch), value_set=_names(known.combine_chunks()))
        told = known.take(at)
        winner = pc.coalesce(told.column("id").combine_chunks(), batch.column("winner"))
        snapshot = pc.coalesce(told.column("snapshot").combine_chunks(), batch.column("winner_snapshot"))
        yield replace_column(replace_column(batch, "winner", winner), "winner_snapshot", snapshot)


def _names(rows: pa.RecordBatch | pa.Table) -> Any:  # noqa: ANN401 -- an Arrow array
    """Return both hashes of each row as 16 bytes."""
    pair = np.stack([rows.column(name).to_numpy() for name in ("hash", "check")], axis=1)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows.num_rows, [None, pa.py_buffer(pair.tobytes())])


def _stays(rows: pa.RecordBatch) -> Any:  # noqa: ANN401 -- an Arrow array
    """Tell which rows are their own winner: the part stays in that document."""
    same = [
        pc.equal(rows.column(one), rows.column(other))
        for one, other in (("id", "winner"), ("snapshot", "winner_snapshot"))
    ]
    return pc.and_(*same)


def lose(rows: Batches) -> Batches:
    """Yield (id, hash, check, winner, snapshot) of every part that a shard has and has to give up, first document."""
    for batch in rows:
        lost = batch.filter(pc.invert(_stays(batch)))
        told = lost.select(["id", "hash", "check", "winner"])
        yield replace_column(told, "snapshot", lost.column("winner_snapshot"))


def jot(rows: Batches, *, buckets: int) -> Batches:
    """Yield what later snapshots need to know: each part that nobody had before, and who has it."""
    for batch in rows:
        new = batch.filter(_stays(batch)).select(["hash", "check", "id", "snapshot"])
        yield replace_column(new, "buckets", pa.array([buckets] * new.num_rows, pa.int64()))


# --- Cutting --------------------------------------------------------------------------------------------------


def cut(docs: Batches, lost: Batches, *, params: Params) -> Batches:
    """Cut every part out that the shard gives up or has had before; append `cut_spans` and `cut_chars`."""
    from pipeline_tasks.text.edits.paragraphs import Seen, remove

    given_up = pa.Table.from_batches(list(lost)).combine_chunks()
    holders, seen = given_up.select(["winner", "snapshot"]), Seen()
    hashes, checks = (given_up.column(name).to_numpy() for name in ("hash", "check"))
    seen.add(hashes, checks, np.arange(given_up.num_rows))
    met = np.zeros(given_up.num_rows, bool)
    for batch, parts in _parted(docs, params):
        holder = seen.add(parts.hash, parts.check, parts.doc + holders.num_rows)
        here = batch.select(["id", "snapshot"]).rename_columns(["winner", "snapshot"])
        holders = pa.concat_tables([holders, pa.Table.from_batches([here])])
        texts, spans = remove(batch.column("text"), parts, holder >= 0)
        out = np.flatnonzero(holder >= 0)
        met[holder[out][holder[out] < len(met)]] = True
        winners = holders.take(pa.array(holder[out])).combine_chunks()
        told = pa.table([spans[out, 0], spans[out, 1], parts.hash[out], *winners.columns], schema=pa.schema(SPAN))
        yield _decided(batch, texts, _lists(told, parts.doc[out], batch.num_rows), params)
    if not met.all():
        message = (
            "dedup_paragraphs: documents are not in their buckets; run dedup_exact before, with the same `buckets`"
        )
        raise ContractError(message)


def _lists(spans: pa.Table, docs: Any, rows: int) -> pa.ListArray:  # noqa: ANN401 -- a numpy array
    """Return the spans of each document as a list."""
    bounds = np.searchsorted(docs, np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), spans.to_struct_array().combine_chunks())


def _decided(batch: pa.RecordBatch, texts: Any, spans: pa.ListArray, params: Params) -> pa.RecordBatch:  # noqa: ANN401 -- Arrow
    """Put the shorter texts in place, but set documents aside as they came where too little is left."""
    left = pc.utf8_length(texts).cast(pa.int64())
    whole = pc.utf8_length(batch.column("text").fill_null("")).cast(pa.int64())
    touched = pc.greater(pc.list_value_length(spans), 0)
    gone = pc.and_(touched, pc.less(left, params.min_left))
    changed = pc.and_(touched, pc.invert(gone))
    shorter = replace_column(batch, "text", pc.if_else(changed, texts, batch.column("text")))
    shorter = replace_column(shorter, "chars", pc.if_else(changed, left, batch.column("chars")))
    told = replace_column(shorter, "cut_spans", spans)
    told = replace_column(told, "cut_chars", pc.subtract(whole, left))
    proofs = [
        json.dumps({"bound": params.min_left, "left": size}, separators=(",", ":")) if out else None
        for out, size in zip(gone.to_pylist(), left.to_pylist(), strict=True)
    ]
    return reject(
        told, pa.array([TOO_LITTLE_LEFT if one else None for one in proofs], pa.string()), pa.array(proofs, pa.string())
    )


def keep(rows: Batches) -> Batches:
    """Yield rows as they come: what is wanted is `group`'s order."""
    yield from rows


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Survey every shard, elect a winner per part by hash range, send what is lost home, and cut.

    The result depends on the set of documents and of remembered parts only. No task holds more than the different
    parts of one shard or of one range of hashes (about 70 bytes each); text is read twice and never shuffled,
    unless documents are not in home order. Every part of `min_chars` stays exactly once.
    """
    if not 0 <= params.min_left <= params.min_chars:
        message = f"dedup_paragraphs: min_left {params.min_left} must be between 0 and min_chars {params.min_chars}"
        raise RecipeError(message)
    place = ("snapshot", "file", "offset")
    home = shards
    if len(shards) != params.buckets:
        home = on.group(keep, shards, by="id", order=place, buckets=params.buckets)
    parts = on.map(partial(survey, params=params), home)
    rows = on.group(elect, parts, by="hash", order=("check", "id"), buckets=params.buckets)
    if earlier := on.history("paragraphs"):
        rows = on.map(recall, rows, *earlier)
    on.save_history("paragraphs", on.map(partial(jot, buckets=params.buckets), rows))
    lost = on.group(keep, on.map(lose, rows), by="id", order=("hash", "check"), buckets=params.buckets)
    return on.map(partial(cut, params=params), home, lost)


PARTS = pa.schema(
    [
        pa.field("hash", pa.int64()),
        pa.field("check", pa.int64()),
        *(DOCUMENT.field(name) for name in ("id", "snapshot")),
        pa.field("buckets", pa.int64()),
    ]
)
"""What later snapshots see of a part that no document had before, and of the document that has it."""

STAGE = Stage(
    name="dedup_paragraphs",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("cut_spans", pa.list_(SPAN)), pa.field("cut_chars", pa.int64())]),
    version=1,
    splits=False,
    history={"paragraphs": Section(PARTS, key="hash", order=("check",))},
    profiled=("chars", "cut_chars", "origins"),
    reasons=(TOO_LITTLE_LEFT,),
    title="repeated paragraphs out",
)
