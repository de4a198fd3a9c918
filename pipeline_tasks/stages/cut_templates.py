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
from pipeline_tasks.facets import Canceled, Grouped, Requests, UnitCost
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.near_duplicates.id_order import in_buckets, require_met
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

NAME = "cut_templates"

SPAN = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())])
"""First code point in the input text, and past the last one."""

LINES = pa.schema([pa.field(name, pa.int64()) for name in ("hash", "check", "page")])
"""A line at a side of a site's pages, as two hashes of site, side and line, and that of a page that has it there."""

SECTION = "line_pages"
"""The section of history; until version 2 it was `lines`, with counts of documents, which cannot count pages."""

SHARD_LINES = pa.schema([*LINES, pa.field("id", pa.string())])
"""The same of one shard, with a document of it that has the line: by its id the line finds back to the shard."""

COUNTED = pa.schema([*SHARD_LINES, pa.field("total", pa.int64())])
"""The same with the pages of the whole snapshot and of history, counted up to `documents`."""

RECURRING = 2
"""Pages of a snapshot that have a line which history has for later ones."""


@dataclass(frozen=True, slots=True)
class Params:
    """When a line is a template, and how much of a document may be cut.

    A short line is compared with the first and last `depth` lines of the other pages of its site, head with head and
    end with end; prose, rows of tables, code and lines without three letters are no templates. One that at least
    `documents` pages have there, over the snapshot and earlier ones, is a template: copyright lines, links back,
    notices, a heading whose list extraction left out. Editions of a page in other languages and versions are one
    page of one site (`text.urls.keys`), and last lines that differ in a version or a time alone are one line.
    Templates are cut from the end of a text upward until a line is none, and from its head where at least two
    follow each other: a single one may head what follows, as `SYNOPSIS` does. A list goes as a whole or stays.
    Nothing between is cut, so headings that a site repeats stay. Where more than `most` of a text would be cut,
    nothing of it is. Spans are listed in `template_spans`, lines that lead to them in `seam_spans`, and the text
    keeps its id. `buckets` is as in `dedup_paragraphs`.
    """

    documents: Positive = 5
    depth: Positive = 8
    most: Ratio = 0.25
    buckets: Buckets = 0


class _Lines(NamedTuple):
    """The parts of a batch's texts, those of them at a side of their text, and a hash of the page of each text."""

    parts: "Parts"
    edges: "Edges"
    pages: npt.NDArray[np.int64]


def _with_lines(documents: Batches, depth: int) -> Iterator[tuple[pa.RecordBatch, _Lines]]:
    from pipeline_tasks.text.base.hashed import hash_texts
    from pipeline_tasks.text.edits import edges, paragraphs
    from pipeline_tasks.text.urls.keys import edition_hosts, edition_pages

    for batch in documents:
        texts = batch.column("text")
        parts = paragraphs.cut_parts(texts, 1, 1)
        named = edition_hosts(batch.column("url"))
        found = edges.edge_lines(texts, parts, hash_texts(named.fill_null("")), depth)
        has_host = named.is_valid().to_numpy(zero_copy_only=False)[parts.doc[found.part]]
        page = hash_texts(edition_pages(batch.column("url")).fill_null("")).view(np.int64)
        yield batch, _Lines(parts, found.of(has_host), page)


def edge_lines(documents: Batches, *, params: Params) -> Batches:
    """Yield `SHARD_LINES`: every distinct line at a side of the shard's documents, of at most `documents` pages."""
    tables = [SHARD_LINES.empty_table()]
    for batch, (parts, edges, pages) in _with_lines(documents, params.depth):
        owners = parts.doc[edges.part]
        columns = {"hash": edges.hash, "check": edges.check, "page": pages[owners]}
        ids = batch.column("id").take(pa.array(owners))
        found = batch_of(SHARD_LINES, **{name: pa.array(column) for name, column in columns.items()}, id=ids)
        tables.append(_first_pages(pa.Table.from_batches([found]), params.documents))
    yield from batches_of(_first_pages(pa.concat_tables(tables), params.documents))


def _first_pages(lines: pa.Table, most: int) -> pa.Table:
    """Return one row for each line and page, sorted, for the first `most` pages of each line.

    So many pages decide, and no line of many has more rows than that.
    """
    order = [(name, "ascending") for name in lines.column_names]
    distinct = lines.sort_by(order)
    distinct = distinct.take(pa.array(run_starts(*(distinct.column(name) for name in LINES.names))))
    starts = run_starts(distinct.column("hash"), distinct.column("check"))
    rank = np.arange(distinct.num_rows) - starts[run_numbers(starts, distinct.num_rows)]
    return distinct.filter(pa.array(rank < most)).combine_chunks()


def _counts(lines: pa.Table, most: int) -> pa.Table:
    """Return how many pages each line has, up to `most`."""
    pages = _first_pages(lines.select(LINES.names), most)
    return pages.group_by(["hash", "check"]).aggregate([("page", "count")])


def _counted(lines: pa.Table, counts: pa.Table) -> pa.Table:
    """Return the rows of `COUNTED`."""
    rows = lines.append_column("row", pa.array(np.arange(lines.num_rows)))
    joined = rows.select(["hash", "check", "row"]).join(counts, ["hash", "check"]).sort_by("row")
    return lines.select(SHARD_LINES.names).append_column("total", joined.column("page_count")).combine_chunks()


def count_pages(lines: Batches, *, params: Params) -> Batches:
    """Yield `COUNTED` of rows sorted by both hashes."""
    for table in whole_runs(lines, "hash", "check"):  # a line has rows of each shard
        yield from batches_of(_counted(table, _counts(table, params.documents)))


def add_history(counted: Batches, *history: HistoryReader, params: Params) -> Batches:
    """Count the pages of earlier snapshots, too."""
    for table in whole_runs(counted, "hash", "check"):
        saved = [reader.rows(pc.unique(table.column("hash"))).select(LINES.names) for reader in history]
        whole = pa.concat_tables([table.select(LINES.names), *saved])
        yield from batches_of(_counted(table, _counts(whole, params.documents)))


def recurring_lines(counted: Batches, *, params: Params) -> Batches:
    """Yield the `LINES` that at least two pages of this snapshot have, for later snapshots."""
    for table in whole_runs(counted, "hash", "check"):  # the rows of a line may come in several batches
        again = table.filter(pc.greater_equal(table.column("total"), RECURRING))
        yield from batches_of(_first_pages(again.select(LINES.names), params.documents))


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
    for batch, (parts, edges, _) in _with_lines(documents, params.depth):
        repeated = seen.find(edges.hash, edges.check) >= 0
        removed = template_runs(batch.column("text"), parts, edges, repeated, HEAD_RUN, params.most)
        texts, bounds = remove_parts(batch.column("text"), parts, removed)
        met += pc.sum(pc.is_in(owners, value_set=batch.column("id"))).as_py() or 0
        yield _shortened(batch, texts, _spans(parts, bounds, removed, batch.num_rows))
    require_met(NAME, met, table.num_rows)


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
    from pipeline_tasks.text.edits.seams import with_cut

    touched = pc.greater(pc.list_value_length(spans), 0)
    left = pc.utf8_length(texts).cast(pa.int64())
    before = pc.utf8_length(batch.column("text").fill_null("")).cast(pa.int64())
    shorter = replace_column(with_cut(batch, texts.filter(touched), touched), "template_spans", spans)
    return replace_column(shorter, "template_chars", pc.if_else(touched, pc.subtract(before, left), 0))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Count the lines at the sides of all pages of a site, send templates back to their shards, and cut.

    Of each shard its distinct lines travel (50 bytes each, at most 2 `depth` per document, and of a line `documents`
    pages), and back only templates.
    Text is read twice and not shuffled, unless documents are not in id order. The result depends on the set of
    documents and of history only.
    """
    documents, buckets = in_buckets(shards, params.buckets, on)
    lines = on.map(partial(edge_lines, params=params), documents, reads=("id", "url", "text"))
    counting = partial(count_pages, params=params)
    counted = on.group(counting, lines, by="hash", order=("check", "page", "id"), buckets=buckets)
    on.save_history(SECTION, on.map(partial(recurring_lines, params=params), counted))
    if earlier := on.history(SECTION):
        counted = on.map(partial(add_history, params=params), counted, *earlier)
    found = on.map(partial(templates, params=params), counted)
    returned = on.group(unchanged, found, by="id", order=("hash", "check", "page"), buckets=buckets)
    return on.map(partial(cut, params=params), documents, returned, layer=LAYER)


LAYER = Layer(stores=("template_spans", "template_chars", *SEAM_COLUMNS.names), changes=("text", "chars"))


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    if not params.most:
        for name in ("documents", "depth"):
            yield Canceled(name, "`most: 0` lets no text lose a line", "raise `most`")


STAGE = Stage(
    name=NAME,
    run=run,
    params=Params,
    reads=DOCUMENT,
    writes=pa.schema(
        [
            *DOCUMENT,
            pa.field("template_spans", pa.list_(SPAN)),
            pa.field("template_chars", pa.int64()),
            *SEAM_COLUMNS,
        ]
    ),
    version=4,
    splits=False,
    libraries={UNICODE: always},
    history={SECTION: Section(LINES, key="hash", order=("check", "page"))},
    profiled=("chars", "template_chars", SEAMS),
    reasons=(),
    title="lines that a site repeats out",
    canceled=canceled,
    cost=UnitCost(0.05, 1.00, 0.05, 4, requests=Requests(43, 19), rows=1.0),
    buckets=Grouped(by_id=True, keeps=True),
    changes=("text", "chars"),
)
