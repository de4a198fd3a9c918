"""Marks stretches of characters that another document has already, or cuts them out; every one is found exactly."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Buckets, Count, Range
from pipeline_tasks.facets import Canceled, Grouped, UnitCost, Wiring
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.id_order import in_buckets, in_id_order, require_met
from pipeline_tasks.schema import DOCUMENT, SEAM_COLUMNS, SEAMS
from pipeline_tasks.stage import (
    QUICK,
    Batches,
    Engine,
    Layer,
    Shards,
    Stage,
    always,
    reject,
    replace_column,
)
from pipeline_tasks.text.base.tables import (
    batch_of,
    batches_of,
    flags,
    read_table,
    run_numbers,
    run_starts,
    unchanged,
    whole_numbers,
    whole_runs,
)

if TYPE_CHECKING:
    from pipeline_tasks.stages.dedup_substrings.cutting import Span
    from pipeline_tasks.stages.dedup_substrings.windows import Matches

NAME = "dedup_substrings"
TOO_LITTLE_LEFT = f"{NAME}:too_little_left"

SPAN = pa.struct(
    [
        pa.field("start", pa.int64()),  # first code point, in the input text
        pa.field("end", pa.int64()),  # past the last one
        pa.field("winner", pa.string()),  # id of the document that has it first; null for white space around a cut
        pa.field("winner_start", pa.int64()),  # where, in the input text of that document
    ]
)

pc: Any = pyarrow.compute

KEYS = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("again", pa.bool_()),  # the key has more than one piece, or one that is long enough for two windows
        pa.field("id", pa.string()),  # of the first document of the batch that has it
    ],
    metadata=QUICK,
)
"""A key of pieces of a batch."""

PIECES = pa.schema(
    [
        pa.field("key", pa.int64()),
        DOCUMENT.field("id"),
        pa.field("at", pa.int64()),  # code point of the document at which it begins
        pa.field("piece", pa.large_string()),
    ]
)
"""Characters of all windows of a piece whose key others have, too."""

FOUND = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("start", pa.int64()),  # code points of the document
        pa.field("end", pa.int64()),
        pa.field("winner", pa.string()),  # the document that has them first; "" where it is this one, for another
        pa.field("winner_start", pa.int64()),
    ],
    metadata=QUICK,
)
"""A run of windows that another place has before, or that others have after."""


@dataclass(frozen=True, slots=True)
class Params:
    """How long a stretch must be, what is done about it, and how much of a document must be left.

    A stretch is `min_chars` or more code points in a row that two documents have, or one has twice, without an overlap,
    letter by letter. The default of 200 is about the 50 tokens of Lee et al., Deduplicating Training Data Makes
    Language Models Better (2022). The first one stays: that of the lowest id, else the first in its document. Of all
    others `substring_spans` lists the places, with the document and the place that have them first. A stretch begins
    and ends with whole words, and without white space. Earlier snapshots are not compared: their texts would be read.
    `mark` changes no text. `cut` takes stretches out, with lines that led to them (`seam_spans`); the text keeps its
    id. A document of which less than `min_left` code points would be left is rejected unchanged, unless it is the first
    to have some of those. On the web most stretches are examples, and what editions of a page in several languages
    share: of 31 that were read 3 were notices of a site (decision 116). `buckets` is the number of shards of documents:
    it must be that of `dedup_exact` (0 takes it).
    """

    min_chars: Annotated[int, Range(2, 1_000_000)] = 200
    action: Literal["mark", "cut"] = "mark"
    min_left: Count = 100
    buckets: Buckets = 0


# --- Which keys more than one piece has -----------------------------------------------------------------------


def batch_keys(documents: Batches, *, params: Params) -> Batches:
    """Yield `KEYS` of each batch; ContractError where documents are not in id order."""
    from pipeline_tasks.stages.dedup_substrings.windows import cut_pieces

    for batch in in_id_order(documents, NAME):
        pieces = cut_pieces(_texts(batch), params.min_chars)
        keys, first, number, counts = np.unique(pieces.key, return_index=True, return_inverse=True, return_counts=True)
        again = counts > 1
        again[number[pieces.windows > params.min_chars]] = True
        ids_of = batch.column("id").take(pa.array(pieces.doc[first]))
        yield batch_of(KEYS, key=pa.array(keys), again=pa.array(again), id=ids_of)


def _texts(batch: pa.RecordBatch) -> list[str]:
    texts: list[str] = batch.column("text").fill_null("").to_pylist()
    return texts


def shared_keys(keys: Batches) -> Batches:
    """Yield the rows of keys that several batches have, or one more than once."""
    for rows in whole_runs(keys, "key"):  # a key has a row of each batch at most
        starts = run_starts(rows.column("key"))
        numbers = run_numbers(starts, rows.num_rows)
        shared = np.bincount(numbers) > 1 if rows.num_rows else np.empty(0, np.bool_)
        shared[numbers[flags(rows.column("again"))]] = True
        yield from batches_of(rows.filter(pa.array(shared[numbers])).combine_chunks())


# --- Which of their windows have equal characters -------------------------------------------------------------


def shared_pieces(documents: Batches, shared: Batches, *, params: Params) -> Batches:
    """Yield `PIECES` of each batch whose key is shared."""
    from pipeline_tasks.stages.dedup_substrings.windows import cut_pieces

    returned = read_table(shared)
    keys, owners, met = np.unique(whole_numbers(returned.column("key"))), returned.column("id").combine_chunks(), 0
    for batch in documents:
        met += pc.sum(pc.is_in(owners, value_set=batch.column("id"))).as_py() or 0
        texts = _texts(batch)
        pieces = cut_pieces(texts, params.min_chars)
        taken = np.flatnonzero(np.isin(pieces.key, keys))
        stops = pieces.start + pieces.windows + params.min_chars - 1
        places = zip(*(column[taken].tolist() for column in (pieces.doc, pieces.start, stops)), strict=True)
        yield batch_of(
            PIECES,
            key=pa.array(pieces.key[taken]),
            id=batch.column("id").take(pa.array(pieces.doc[taken])),
            at=pa.array(pieces.start[taken]),
            piece=pa.array([texts[doc][start:stop] for doc, start, stop in places], pa.large_string()),
        )
    require_met(NAME, met, returned.num_rows)


def find_repeated(pieces: Batches, *, params: Params) -> Batches:
    """Yield `FOUND` of pieces sorted by key, id and place; of a key only what no piece had before stays in memory."""
    from pipeline_tasks.stages.dedup_substrings.windows import find_first

    waiting: list[pa.RecordBatch] = []
    known = rows = 0  # pieces of the key before that have a window first, and those that came since
    for batch in pieces:
        waiting.append(batch)
        rows += batch.num_rows
        if rows < known:  # else a key of many other texts would be looked at again with each batch
            continue
        table = read_table(waiting)
        matches, having_first = find_first(table.column("piece").to_pylist(), params.min_chars)
        yield from batches_of(_found(table, matches, known, params.min_chars))
        last = int(run_starts(table.column("key"))[-1]) if table.num_rows else 0
        waiting = table.take(pa.array(having_first[having_first >= last])).combine_chunks().to_batches()
        known, rows = sum(batch.num_rows for batch in waiting), 0
    if rows:
        table = read_table(waiting)
        matches, _ = find_first(table.column("piece").to_pylist(), params.min_chars)
        yield from batches_of(_found(table, matches, known, params.min_chars))


def _found(table: pa.Table, matches: "Matches", known: int, width: int) -> pa.Table:
    """Return `FOUND` of the pieces behind the `known` ones."""
    ids, at = table.column("id").combine_chunks(), whole_numbers(table.column("at"))
    start, place = at[matches.piece] + matches.at, at[matches.first] + matches.place
    own, winner = ids.take(pa.array(matches.piece)), ids.take(pa.array(matches.first))
    is_overlap = flags(pc.equal(own, winner)) & (start < place + width)
    is_new = (matches.piece >= known) & ~is_overlap
    taken = pa.array(is_new)
    stop = matches.windows[is_new] + width - 1
    lost = [own.filter(taken), start[is_new], start[is_new] + stop, winner.filter(taken), place[is_new]]
    won = pa.table({"id": lost[3], "start": place[is_new], "end": place[is_new] + stop}).group_by(
        ["id", "start", "end"]
    )
    distinct = won.aggregate([])
    rows = distinct.num_rows
    marked = [*distinct.columns, np.full(rows, "", object), np.zeros(rows, np.int64)]
    tables = [pa.table([pa.array(one) for one in columns], schema=FOUND) for columns in (lost, marked)]
    return pa.concat_tables(tables).combine_chunks()


# --- Cutting --------------------------------------------------------------------------------------------------


class _Row(NamedTuple):
    """What the stage says of one document."""

    spans: "list[Span]"
    left: str
    is_owner: bool  # others have lost what is left of it


def cut_repeated(documents: Batches, found: Batches, *, params: Params) -> Batches:
    """Append `substring_spans` and `substring_chars`; cut these out, or leave the texts as they are."""
    rows = read_table(found)
    ids, met = rows.column("id").combine_chunks(), 0
    starts = run_starts(ids).tolist()
    places = dict(zip(ids.take(pa.array(starts, pa.int64())).to_pylist(), pairwise([*starts, len(ids)]), strict=True))
    for batch in documents:
        named = {row: places[name] for row, name in enumerate(batch.column("id").to_pylist()) if name in places}
        met += sum(end - begin for begin, end in named.values())
        texts = batch.column("text")
        judged = {
            row: _judged(texts[row].as_py() or "", rows.slice(begin, end - begin).to_pylist(), params.min_left)
            for row, (begin, end) in named.items()
        }
        yield _marked(batch, {row: one for row, one in judged.items() if one.spans}, params)
    require_met(NAME, met, rows.num_rows)


def _judged(text: str, found: list[dict[str, Any]], min_left: int) -> _Row:
    """Return what a text loses of the runs that were found in it; the owner is asked for where little is left."""
    from pipeline_tasks.stages.dedup_substrings.cutting import disjoint, whole_words

    lost = [(row["start"], row["end"], row["winner"], row["winner_start"]) for row in found if row["winner"]]
    spans = whole_words(text, disjoint(lost))
    around = pairwise([0, *(place for span in spans for place in (span.start, span.end)), len(text)])
    kept = [(begin, end) for begin, end in islice(around, 0, None, 2) if begin < end]
    left = "".join(text[begin:end] for begin, end in kept)
    won = [row for row in found if not row["winner"]] if len(left) < min_left else []
    is_owner = any(row["start"] < end and row["end"] > begin for row in won for begin, end in kept)
    return _Row(spans, left, is_owner)


def _marked(batch: pa.RecordBatch, judged: Mapping[int, _Row], params: Params) -> pa.RecordBatch:
    from pipeline_tasks.text.edits.seams import with_cut

    count = batch.num_rows
    spans = [judged[row].spans if row in judged else [] for row in range(count)]
    listed = [[dict(zip(SPAN.names, span, strict=True)) for span in of_row] for of_row in spans]
    chars = [sum(span.end - span.start for span in of_row) for of_row in spans]
    gone = {
        row: len(one.left)
        for row, one in judged.items()
        if params.action == "cut" and len(one.left) < params.min_left and not one.is_owner
    }
    cut = [row for row in judged if row not in gone] if params.action == "cut" else []
    if params.action == "cut":
        touched = pa.array(np.isin(np.arange(count), cut))
        batch = with_cut(batch, pa.array([judged[row].left for row in cut], pa.large_string()), touched)
    batch = replace_column(batch, "substring_spans", pa.array(listed, pa.list_(SPAN)))
    batch = replace_column(batch, "substring_chars", pa.array(chars, pa.int64()))
    ids = batch.column("id")
    proofs = [
        _evidence(params.min_left, gone[row], spans[row], ids[row].as_py()) if row in gone else None
        for row in range(count)
    ]
    reasons = pa.array([TOO_LITTLE_LEFT if proof else None for proof in proofs], pa.string())
    return reject(batch, reasons, pa.array(proofs, pa.string()))


def _evidence(bound: int, left: int, spans: "list[Span]", own: str) -> str:
    """Return canonical JSON: what is left, and the other document that has most of what is not."""
    chars: Counter[str] = Counter()
    for span in spans:
        if span.winner not in (None, own):
            chars[span.winner or ""] += span.end - span.start
    most = min(chars, key=lambda winner: (-chars[winner], winner), default="")
    named = {"winner": most} if most else {}
    return json.dumps({"bound": bound, "left": left, **named}, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Find the keys that pieces of any shards share, bring those pieces together by key, send what they find back, cut.

    The result depends on the set of documents only. Of each shard travel a key for each piece (about a quarter of
    `min_chars` code points apart, 50 bytes each) and back those that others have, then the characters of these pieces.
    No task has more than those of a shard, of a range of keys, or of one key what no other piece of it has. Text is
    read three times, and not shuffled, unless documents are not in id order.
    """
    documents, buckets = in_buckets(shards, params.buckets, on)
    keys = on.map(partial(batch_keys, params=params), documents, reads=("id", "text"))
    shared = on.group(shared_keys, keys, by="key", order=("id", "again"), buckets=buckets)
    returned = on.group(unchanged, shared, by="id", order=("key", "again"), buckets=buckets)
    pieces = on.map(partial(shared_pieces, params=params), documents, returned, reads=("id", "text"))
    finding = partial(find_repeated, params=params)
    found = on.group(finding, pieces, by="key", order=("id", "at"), buckets=buckets)
    lost = on.group(unchanged, found, by="id", order=("start", "end", "winner", "winner_start"), buckets=buckets)
    layer = Layer(stores=(*ADDED.names, *writes_for(params).names), changes=("text", "chars"))
    return on.map(partial(cut_repeated, params=params), documents, lost, layer=layer)


ADDED = pa.schema([pa.field("substring_spans", pa.list_(SPAN)), pa.field("substring_chars", pa.int64())])


def writes_for(params: Params) -> pa.Schema:
    """Return the columns of a cut."""
    return SEAM_COLUMNS if params.action == "cut" else pa.schema([])


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one turns off."""
    if params.action == "mark":
        yield Canceled("min_left", "`action: mark` cuts no text", "write `action: cut`")


STAGE = Stage(
    name=NAME,
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, *ADDED]),
    writes_for=writes_for,
    version=2,
    splits=False,
    libraries={"publicsuffixlist": always, UNICODE: always},
    profiled=("chars", "substring_chars", "origins", SEAMS),
    reasons=(TOO_LITTLE_LEFT,),
    title="repeated substrings",
    removes="copies",
    canceled=canceled,
    cost=UnitCost(0.60, 1.01, 0.02, 6),
    buckets=Grouped(by_id=True, keeps=True),
    wiring=Wiring(follows=("dedup_exact",)),
    changes=("text", "chars"),
)
