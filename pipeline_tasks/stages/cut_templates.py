"""Cuts the lines out that a site repeats at the head or the end of its pages, and records every span."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Buckets, Positive, Ratio
from pipeline_tasks.errors import ContractError
from pipeline_tasks.libraries import UNICODE
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
    buckets_of,
    replace_column,
)
from pipeline_tasks.text.base.tables import (
    batch_of,
    batches_of,
    read_table,
    run_numbers,
    run_starts,
    unchanged,
    whole_runs,
)

if TYPE_CHECKING:
    from pipeline_tasks.text.edits.edges import Edges
    from pipeline_tasks.text.edits.paragraphs import Parts

pc: Any = pyarrow.compute

SPAN = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())])
"""First code point in the input text, and past the last one."""

LINES = pa.schema([pa.field(name, pa.int64()) for name in ("hash", "check", "documents")])
"""A line at a side of a site's pages, as two hashes of site, side and line, and how many documents have it there."""

SHARD_LINES = pa.schema([*LINES, pa.field("id", pa.string())])
"""The same of one shard, with its first document that has the line: by its id the line finds back to the shard."""

COUNTED = pa.schema([*SHARD_LINES, pa.field("total", pa.int64())])
"""The same with the documents of the whole snapshot and of history."""

RECURRING = 2
"""Documents of a snapshot that have a line which history remembers."""


@dataclass(frozen=True, slots=True)
class Params:
    """When a line is a template, and how much of a document may be cut.

    A line is compared with the first and last `depth` lines of the other documents of its host, head with head and end
    with end. One that at least `documents` documents have there, over the snapshot and earlier ones, is a template:
    copyright lines, links back, notices, a heading whose list extraction left out. Templates are cut from the end of a
    text upward until a line is none, and from its head where at least two follow each other: a single one may head
    what follows, as `SYNOPSIS` does. Nothing between is cut, so headings that a site repeats stay. Lines without three
    letters are none: brackets end code. Where more than `most` of a text would be cut, nothing of it is. Spans are
    listed in `template_spans`, and the text keeps its id. `buckets` is as in `dedup_paragraphs`.
    """

    documents: Positive = 5
    depth: Positive = 8
    most: Ratio = 0.25
    buckets: Buckets = 0


class _Lines(NamedTuple):
    """The parts of a batch's texts, and those of them at a side of their text."""

    parts: "Parts"
    edges: "Edges"


def _with_lines(documents: Batches, depth: int) -> Iterator[tuple[pa.RecordBatch, _Lines]]:
    from pipeline_tasks.text.base.hashed import hash_texts
    from pipeline_tasks.text.edits import edges, paragraphs
    from pipeline_tasks.text.urls.keys import hosts

    for batch in documents:
        texts = batch.column("text")
        parts = paragraphs.cut_parts(texts, 1, 1)
        named = hosts(batch.column("url"))
        found = edges.edge_lines(texts, parts, hash_texts(named.fill_null("")), depth)
        has_host = named.is_valid().to_numpy(zero_copy_only=False)[parts.doc[found.part]]
        yield batch, _Lines(parts, found.of(has_host))


def edge_lines(documents: Batches, *, params: Params) -> Batches:
    """Yield `SHARD_LINES`: every distinct line at a side of the shard's documents, once."""
    rows: list[pa.RecordBatch] = []
    for batch, (parts, edges) in _with_lines(documents, params.depth):
        first, counts = _distinct(edges, parts.doc[edges.part])
        ids = batch.column("id").take(pa.array(parts.doc[edges.part[first]]))
        columns = {"hash": edges.hash[first], "check": edges.check[first], "documents": counts}
        rows.append(batch_of(SHARD_LINES, **{name: pa.array(column) for name, column in columns.items()}, id=ids))
    table = pa.Table.from_batches(rows, SHARD_LINES).sort_by(
        [("hash", "ascending"), ("check", "ascending"), ("id", "ascending")]
    )
    starts, totals = _summed(table)
    merged = table.take(pa.array(starts)).set_column(2, "documents", pa.array(totals))
    yield from batches_of(merged.combine_chunks())


def _distinct(edges: "Edges", docs: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """Return the first row of each distinct line, and how many documents have it; a document counts once."""
    order = np.lexsort((docs, edges.check, edges.hash))
    hashes, checks, owners = edges.hash[order], edges.check[order], docs[order]
    is_line = np.ones(len(order), np.bool_)
    is_line[1:] = (hashes[1:] != hashes[:-1]) | (checks[1:] != checks[:-1])
    is_new = is_line.copy()
    is_new[1:] |= owners[1:] != owners[:-1]
    starts = np.flatnonzero(is_line)
    counts = np.add.reduceat(is_new.astype(np.int64), starts) if len(starts) else np.zeros(0, np.int64)
    return order[starts], counts


def _summed(table: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each line of a sorted table begins, and the documents of it."""
    starts = run_starts(table.column("hash"), table.column("check"))
    counts = table.column("documents").to_numpy()
    return starts, np.add.reduceat(counts, starts) if len(starts) else np.zeros(0, np.int64)


def count_documents(lines: Batches) -> Batches:
    """Yield `COUNTED` of rows sorted by both hashes."""
    for table in whole_runs(lines, "hash", "check"):  # a line has a row of each shard at most
        starts, totals = _summed(table)
        numbers = run_numbers(starts, table.num_rows)
        yield from batches_of(table.append_column("total", pa.array(totals[numbers], pa.int64())).combine_chunks())


def add_history(counted: Batches, *history: HistoryReader) -> Batches:
    """Add the documents of earlier snapshots to `total`."""
    for batch in counted:
        saved = [reader.rows(batch.column("hash")).select(LINES.names) for reader in history]
        known = (
            pa.concat_tables([LINES.empty_table(), *saved])
            .group_by(["hash", "check"])
            .aggregate([("documents", "sum")])
        )
        joined = (
            pa.table({name: batch.column(name) for name in ("hash", "check")})
            .append_column("row", pa.array(np.arange(batch.num_rows)))
            .join(known, ["hash", "check"])
            .sort_by("row")
        )
        earlier = pc.fill_null(joined.column("documents_sum").combine_chunks(), 0)
        yield replace_column(batch, "total", pc.add(batch.column("total"), earlier))


def recurring_lines(counted: Batches) -> Batches:
    """Yield the `LINES` that at least two documents of this snapshot have, for later snapshots."""
    for table in whole_runs(counted, "hash", "check"):  # the rows of a line may come in several batches
        lines = table.take(pa.array(run_starts(table.column("hash"), table.column("check"))))
        lines = lines.set_column(2, "documents", lines.column("total")).select(LINES.names)
        yield from batches_of(lines.filter(pc.greater_equal(lines.column("documents"), RECURRING)).combine_chunks())


def templates(counted: Batches, *, params: Params) -> Batches:
    """Yield the rows of lines that are templates."""
    for batch in counted:
        yield batch.filter(pc.greater_equal(batch.column("total"), params.documents))


def cut(documents: Batches, found: Batches, *, params: Params) -> Batches:
    """Cut the runs of templates from both sides of each text; append `template_spans` and `template_chars`."""
    from pipeline_tasks.text.edits.edges import template_runs
    from pipeline_tasks.text.edits.paragraphs import Seen, remove_parts

    table = read_table(found)
    seen, owners, met = Seen(), table.column("id").combine_chunks(), 0
    hashes, checks = (table.column(name).to_numpy() for name in ("hash", "check"))
    seen.add(hashes, checks, np.arange(table.num_rows))
    for batch, (parts, edges) in _with_lines(documents, params.depth):
        repeated = seen.find(edges.hash, edges.check) >= 0
        removed = template_runs(parts, edges, repeated, HEAD_RUN, params.most)
        texts, bounds = remove_parts(batch.column("text"), parts, removed)
        met += pc.sum(pc.is_in(owners, value_set=batch.column("id"))).as_py() or 0
        yield _shortened(batch, texts, _spans(parts, bounds, removed, batch.num_rows))
    if met != table.num_rows:
        message = "cut_templates: documents are not in their buckets; run dedup_exact before, with the same `buckets`"
        raise ContractError(message)


HEAD_RUN = 2
"""Lines in a row that are templates at the head of a text."""


def _spans(parts: "Parts", bounds: npt.NDArray[np.int64], removed: npt.NDArray[np.bool_], rows: int) -> pa.ListArray:
    """Return the spans of each of `rows` texts; lines that follow each other are one."""
    out = np.flatnonzero(removed)
    is_first = np.ones(len(out), np.bool_)
    is_first[1:] = (out[1:] != out[:-1] + 1) | (parts.doc[out[1:]] != parts.doc[out[:-1]])
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(out)) - 1
    fields = [pa.array(bounds[out[starts], 0]), pa.array(bounds[out[ends] if len(out) else ends[:0], 1])]
    spans = pa.StructArray.from_arrays(fields, fields=list(SPAN))
    lists = np.searchsorted(parts.doc[out[starts]], np.arange(rows + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(lists), spans)


def _shortened(batch: pa.RecordBatch, texts: pa.Array, spans: pa.ListArray) -> pa.RecordBatch:
    touched = pc.greater(pc.list_value_length(spans), 0)
    left = pc.utf8_length(texts).cast(pa.int64())
    before = pc.utf8_length(batch.column("text").fill_null("")).cast(pa.int64())
    shorter = replace_column(batch, "text", pc.if_else(touched, texts, batch.column("text")))
    shorter = replace_column(shorter, "chars", pc.if_else(touched, left, batch.column("chars")))
    shorter = replace_column(shorter, "template_spans", spans)
    return replace_column(shorter, "template_chars", pc.if_else(touched, pc.subtract(before, left), 0))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count the lines at the sides of all pages of a host, send templates back to their shards, and cut.

    Of each shard its distinct lines travel (40 bytes each, at most 2 `depth` per document), and back only templates.
    Text is read twice and not shuffled, unless documents are not in id order. The result depends on the set of
    documents and of history only.
    """
    placed = params.buckets or buckets_of(shards, on.origin(shards))
    documents, buckets = shards, placed or buckets_for(shards)
    if len(shards) != placed:
        documents = on.group(unchanged, shards, by="id", order=("snapshot", "file", "offset"), buckets=buckets)
    lines = on.map(partial(edge_lines, params=params), documents, reads=("id", "url", "text"))
    counted = on.group(count_documents, lines, by="hash", order=("check", "id"), buckets=buckets)
    on.save_history("lines", on.map(recurring_lines, counted))
    if earlier := on.history("lines"):
        counted = on.map(add_history, counted, *earlier)
    found = on.map(partial(templates, params=params), counted)
    returned = on.group(unchanged, found, by="id", order=("hash", "check"), buckets=buckets)
    return on.map(partial(cut, params=params), documents, returned, layer=LAYER)


LAYER = Layer(stores=("template_spans", "template_chars"), changes=("text", "chars"))

STAGE = Stage(
    name="cut_templates",
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema([*DOCUMENT, pa.field("template_spans", pa.list_(SPAN)), pa.field("template_chars", pa.int64())]),
    version=2,
    splits=False,
    libraries={UNICODE: always},
    history={"lines": Section(LINES, key="hash", order=("check",))},
    profiled=("chars", "template_chars"),
    reasons=(),
    title="lines that a site repeats out",
)
