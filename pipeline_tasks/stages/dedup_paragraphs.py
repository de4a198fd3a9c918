"""Cuts paragraphs or lines out that another document has already, across snapshots too, and records every span."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Buckets, Count
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Grouped, UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.id_order import in_buckets, in_id_order, require_met
from pipeline_tasks.schema import DOCUMENT, SEAM_COLUMNS, SEAMS
from pipeline_tasks.stage import (
    Batches,
    Engine,
    HistoryReader,
    Layer,
    Section,
    Shards,
    Stage,
    always,
    reject,
    replace_column,
)
from pipeline_tasks.text.base.tables import (
    Rows,
    batch_of,
    batches_of,
    combined,
    read_table,
    run_numbers,
    run_starts,
    unchanged,
    whole_numbers,
    whole_runs,
)

if TYPE_CHECKING:
    from pipeline_tasks.text.edits.paragraphs import Parts

NAME = "dedup_paragraphs"
TOO_LITTLE_LEFT = f"{NAME}:too_little_left"
BREAKS = {"paragraph": 2, "line": 1}
"""Newlines in a row that part a text."""

SPAN = pa.struct(
    [
        pa.field("start", pa.int64()),  # first code point, in the input text
        pa.field("end", pa.int64()),  # past the last one
        pa.field("hash", pa.int64()),
        pa.field("winner", pa.string()),  # id of the document that keeps the part
        pa.field("snapshot", pa.string()),  # of that document
    ]
)

pc: Any = pyarrow.compute


PARTS = pa.schema(
    [
        pa.field("hash", pa.int64()),  # two hashes of the part's bytes
        pa.field("check", pa.int64()),
        *(DOCUMENT.field(name) for name in ("id", "snapshot")),  # of the first document that has the part
    ]
)
"""A part of a document; in history, one that no document of an earlier snapshot has."""

WON_PARTS = pa.schema([*PARTS, pa.field("winner", pa.string()), pa.field("winner_snapshot", pa.string())])
"""A part of one shard, and the document that keeps it."""

LOST_PARTS = pa.schema(
    [
        pa.field("id", pa.string()),  # the first document of the shard that has the part
        pa.field("hash", pa.int64()),
        pa.field("check", pa.int64()),
        pa.field("winner", pa.string()),  # the document that keeps it
        pa.field("snapshot", pa.string()),  # of the winner
    ]
)
"""A part that a shard has to give up."""


@dataclass(frozen=True, slots=True)
class Params:
    """What is compared, how long it must be, and how much of a document must be left.

    A part is a `line`, which after `extract` is what a page shows as a paragraph, or for texts that have empty lines a
    `paragraph`. Only parts of at least `min_chars` code points are compared, byte by byte (by two 64-bit hashes); the
    default of 200 is about the 50 tokens of Lee et al., Deduplicating Training Data Makes Language Models Better
    (2022). The first one is kept: that of an earlier snapshot, else of the lowest id (within a bucket that is the
    order of documents), else the first in its document. All others are cut out with their line ends and listed in
    `cut_spans`, lines that led to them in `seam_spans`, and the text keeps its id.
    A document of which less than `min_left` code points would be left is rejected unchanged. `min_left` is at
    most `min_chars`: so a document that keeps any part is never rejected, and no part is lost with it. `buckets` is
    the number of shards of documents and of history: it must be that of `dedup_exact` (0 takes it), and may change from
    one snapshot to the next.
    """

    unit: Literal["line", "paragraph"] = "line"
    min_chars: Count = 200
    min_left: Count = 100
    buckets: Buckets = 0

    def __post_init__(self) -> None:
        if not 0 <= self.min_left <= self.min_chars:
            message = f"{NAME}: min_left {self.min_left} must be between 0 and min_chars {self.min_chars}"
            raise RecipeError(message)


# --- Which document keeps a part ------------------------------------------------------------------------------


def distinct_parts(documents: Batches, *, params: Params) -> Batches:
    """Yield `PARTS`: every distinct part of a shard, with the first document that has it.

    Repetitions within a shard do not leave it, so a line that is on every page of a crawl travels once per shard.
    """
    from pipeline_tasks.text.edits.paragraphs import Seen

    seen = Seen()
    for batch, parts in _with_parts(documents, params):
        new = (seen.add(parts.hash, parts.check, parts.doc) < 0) & (parts.hash != 0)
        owners = batch.select(["id", "snapshot"]).take(pa.array(parts.doc[new]))
        yield batch_of(
            PARTS,
            hash=pa.array(parts.hash[new]),
            check=pa.array(parts.check[new]),
            id=owners.column("id"),
            snapshot=owners.column("snapshot"),
        )


def _with_parts(documents: Batches, params: Params) -> Iterator[tuple[pa.RecordBatch, "Parts"]]:
    """Yield batches with their parts; ContractError where documents are not in id order."""
    from pipeline_tasks.text.edits import paragraphs

    for batch in in_id_order(documents, NAME):
        yield batch, paragraphs.cut_parts(batch.column("text"), BREAKS[params.unit], params.min_chars)


def elect_winners(parts: Batches) -> Batches:
    """Yield `WON_PARTS`: the first row of each run of equal hashes (as `group` sorted them) is the winner."""
    for rows in whole_runs(parts, "hash", "check"):  # a part has a row of each shard at most
        starts = run_starts(rows.column("hash"), rows.column("check"))
        winners = rows.take(pa.array(starts[run_numbers(starts, rows.num_rows)]))
        won = rows.append_column("winner", winners.column("id"))
        yield from batches_of(won.append_column("winner_snapshot", winners.column("snapshot")).combine_chunks())


def prefer_history(won: Batches, *history: HistoryReader) -> Batches:
    """Replace the winner by the document of an earlier snapshot that has the part, where there is one."""
    for batch in won:
        saved = [reader.rows(batch.column("hash")).select(PARTS.names) for reader in history]
        known = pa.concat_tables([PARTS.empty_table(), *saved]).combine_chunks()
        earlier = known.take(pc.index_in(_both_hashes(batch), value_set=_both_hashes(known)))
        winner = pc.coalesce(combined(earlier.column("id")), batch.column("winner"))
        snapshot = pc.coalesce(combined(earlier.column("snapshot")), batch.column("winner_snapshot"))
        yield replace_column(replace_column(batch, "winner", winner), "winner_snapshot", snapshot)


def _both_hashes(rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """Return both hashes of each row as 16 bytes."""
    pair = np.stack([rows.column(name).to_numpy() for name in ("hash", "check")], axis=1)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), rows.num_rows, [None, pa.py_buffer(pair.tobytes())])


def _is_winner(won: pa.RecordBatch) -> pa.Array:
    """Return for each row whether its document keeps the part."""
    same_id = pc.equal(won.column("id"), won.column("winner"))
    return pc.and_(same_id, pc.equal(won.column("snapshot"), won.column("winner_snapshot")))


def lost_parts(won: Batches) -> Batches:
    """Yield `LOST_PARTS`."""
    for batch in won:
        lost = batch.filter(pc.invert(_is_winner(batch)))
        columns = {name: lost.column(name) for name in ("id", "hash", "check", "winner")}
        yield batch_of(LOST_PARTS, **columns, snapshot=lost.column("winner_snapshot"))


def new_parts(won: Batches) -> Batches:
    """Yield the `PARTS` that no document had before."""
    for batch in won:
        yield batch.filter(_is_winner(batch)).select(PARTS.names)


# --- Cutting --------------------------------------------------------------------------------------------------


def cut_parts(documents: Batches, lost: Batches, *, params: Params) -> Batches:
    """Cut every part that the shard gives up or has had before; append `cut_spans` and `cut_chars`."""
    from pipeline_tasks.text.edits.paragraphs import Seen, remove_parts

    given_up = read_table(lost)
    # Each part that is seen has a holder: first those of `given_up`, then the documents of this shard.
    holders, seen = given_up.select(["winner", "snapshot"]), Seen()
    seen.add(
        whole_numbers(given_up.column("hash")), whole_numbers(given_up.column("check")), np.arange(given_up.num_rows)
    )
    met = np.zeros(given_up.num_rows, bool)
    for batch, parts in _with_parts(documents, params):
        holder = seen.add(parts.hash, parts.check, parts.doc + holders.num_rows)
        here = batch.select(["id", "snapshot"]).rename_columns(["winner", "snapshot"])
        holders = pa.concat_tables([holders, pa.Table.from_batches([here])])
        texts, bounds = remove_parts(batch.column("text"), parts, holder >= 0)
        out = np.flatnonzero(holder >= 0)
        met[holder[out][holder[out] < len(met)]] = True
        winners = holders.take(pa.array(holder[out])).combine_chunks()
        spans = pa.table([bounds[out, 0], bounds[out, 1], parts.hash[out], *winners.columns], schema=pa.schema(SPAN))
        yield _shortened(batch, texts, _lists(spans, parts.doc[out], batch.num_rows), params)
    require_met(NAME, int(met.sum()), len(met))


def _lists(spans: pa.Table, rows_of_spans: Rows, rows: int) -> pa.ListArray:
    """Return the spans of each of `rows` documents as a list."""
    bounds = np.searchsorted(rows_of_spans, np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), spans.to_struct_array().combine_chunks())


def _shortened(batch: pa.RecordBatch, texts: pa.Array, spans: pa.ListArray, params: Params) -> pa.RecordBatch:
    """Replace texts by the shorter ones; reject documents of which too little is left, unchanged."""
    from pipeline_tasks.text.edits.seams import with_cut

    left = pc.utf8_length(texts).cast(pa.int64())
    before = pc.utf8_length(batch.column("text").fill_null("")).cast(pa.int64())
    touched = pc.greater(pc.list_value_length(spans), 0)
    gone = pc.and_(touched, pc.less(left, params.min_left))
    changed = pc.and_(touched, pc.invert(gone))
    shorter = replace_column(with_cut(batch, texts.filter(changed), changed), "cut_spans", spans)
    shorter = replace_column(shorter, "cut_chars", pc.subtract(before, left))
    evidence = [
        json.dumps({"bound": params.min_left, "left": size}, separators=(",", ":")) if out else None
        for out, size in zip(gone.to_pylist(), left.to_pylist(), strict=True)
    ]
    reasons = pa.array([TOO_LITTLE_LEFT if proof else None for proof in evidence], pa.string())
    return reject(shorter, reasons, pa.array(evidence, pa.string()))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Find the parts of every shard, elect a winner per part by hash range, send lost parts to their documents, cut.

    The result depends on the set of documents and of history only. No task has more than the distinct parts of one
    shard or of one range of hashes (about 70 bytes each); text is read twice and never shuffled, unless documents are
    not in id order. Every part of `min_chars` is kept exactly once.
    """
    documents, buckets = in_buckets(shards, params.buckets, on)
    parts = on.map(partial(distinct_parts, params=params), documents)
    won = on.group(elect_winners, parts, by="hash", order=("check", "id"), buckets=buckets)
    if earlier := on.history("paragraphs"):
        won = on.map(prefer_history, won, *earlier)
    on.save_history("paragraphs", on.map(new_parts, won))
    lost = on.group(unchanged, on.map(lost_parts, won), by="id", order=("hash", "check"), buckets=buckets)
    return on.map(partial(cut_parts, params=params), documents, lost, layer=LAYER)


LAYER = Layer(stores=("cut_spans", "cut_chars", *SEAM_COLUMNS.names), changes=("text", "chars"))

STAGE = Stage(
    name=NAME,
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema(
        [*DOCUMENT, pa.field("cut_spans", pa.list_(SPAN)), pa.field("cut_chars", pa.int64()), *SEAM_COLUMNS]
    ),
    version=4,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    history={"paragraphs": Section(PARTS, key="hash", order=("check",))},
    profiled=("chars", "cut_chars", "origins", SEAMS),
    reasons=(TOO_LITTLE_LEFT,),
    title="repeated paragraphs out",
    removes="copies",
    cost=UnitCost(0.30, 1.01, 0.18, 4),
    buckets=Grouped(by_id=True, keeps=True),
    wiring=Wiring(follows=("dedup_exact",)),
    changes=("text", "chars"),
)
