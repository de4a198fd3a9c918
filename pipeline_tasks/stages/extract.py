"""Turns pages and files into documents: read, find the main text, normalize it, and identify it by its content."""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.constraints import OMITTED, Bytes, Count, Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import Bound, Canceled, Dial, Requests, UnitCost
from pipeline_tasks.file_types import HTML, OWN, TEXT, brought_types, libraries, require_types
from pipeline_tasks.libraries import UNICODE
from pipeline_tasks.profiles.sums import SITE_COVERAGES
from pipeline_tasks.schema import BLOCK, DOCUMENT, IMAGE_TEXTS, LOCATOR, PAGE, RIGHTS, SEAM_COLUMNS, SEAMS, TYPE
from pipeline_tasks.stage import (
    NO_FILE,
    Batches,
    Engine,
    FilePath,
    Keyed,
    Shards,
    Stage,
    always,
    reject,
    replace_column,
)

if TYPE_CHECKING:  # kernels load it
    from pipeline_tasks.text.page.sandbox_messages import Page, Result
    from pipeline_tasks.text.page.sandbox_pair import SandboxPair

TAKEN_DOWN, TOO_SHORT, SCANNED = "extract:taken_down", "extract:too_short", "extract:scanned"
_OF_FILES = ("extract:encrypted", "extract:damaged", "extract:too_large", SCANNED)
"""Why a file of another type than HTML has no text (`text.page.file_text.REFUSED`), or only images of it."""

_NUMBERS = pa.list_(pa.int32())

EXTRACTORS = ("resiliparse", "trafilatura", "justext")
METHODS = ("blocks", *EXTRACTORS)

BETA = 0.25, 4.0
"""The least and the most that `beta` may be."""

EXTRACTED = pa.schema(
    [
        *DOCUMENT,
        pa.field("html_language", pa.string()),  # what the page declares, lower-case BCP 47; a hint
        pa.field("published", pa.string()),  # day of publication that the page declares, ISO 8601; null if unsure
        pa.field("extractor", pa.string()),  # the method that extracted the text, `plain` for pages that are no HTML
        pa.field("repaired", pa.int64()),  # lines of the text in which mojibake was undone
        pa.field("coverage", pa.float64()),  # share of the page's own sentences that the text has; null if it has none
        SEAM_COLUMNS.field(SEAMS),
        pa.field("blocks", pa.list_(BLOCK)),  # what `method: blocks` decided on each block; null by other methods
        pa.field("truncated", pa.string()),  # why the crawler cut the page (WARC-Truncated); null if it is whole
        PAGE.field(TYPE),
        pa.field("pages", pa.int32()),  # of a file that has pages
        pa.field("unread_pages", pa.list_(pa.int32())),  # its pages, from 1, whose text is not to be had; else null
    ]
)

CUTS = ("length", "time", "disconnect", "unspecified")
"""Why a crawler cut a record (WARC 1.1, 5.13): its page has more bytes than the record has."""

_ERRORS = {"charset": "error:charset", "crash": "error:extractor_crash"}

LEAST_MEMORY = 1 << 30
"""Bytes of address space that loading method `blocks` takes, and a page: its loops take 700 MB."""

LOST = 20
"""A text is too little if it has less than 1 / LOST of the visible characters of its page outside of links, or less
than `min_chars` where the page has that many to see."""

TITLE = 500
"""Code points of a title that are kept."""


@dataclass(frozen=True, slots=True)
class Params:
    """How text is extracted.

    Each method reads a page as browsers show it: without what is hidden, formulas once and as TeX, items with their
    numbers. `method` is one of `METHODS`. `blocks` reads a page into blocks (paragraphs, headings, items, rows, code),
    and a trained model gives each a score by its text and by what is around it, not by names of classes; the blocks
    with the greatest expected F-measure are the text. `beta` says how many times as much a lost word counts as a
    needless one; `model` is a file of `refinery model extractor` (empty: the model of this package); column `blocks`
    has the score of each block that the page shows, whether it was kept, and where in this stage's text. An item of a
    list is a line with a marker, a row of a table a line with tabs, and code stays as it is; `output: markdown` marks
    headings by `#` and emphasis by `*`, fences code and rules tables, without links. The other methods are libraries,
    and their text is plain. The methods of `fallback`, none by default, are tried, in order, where the text so far is
    too little (see `LOST`) or there is none (too slow, died), and used where theirs is longer; column `extractor` names
    the method that extracted the text (`plain` for pages that are no HTML), column `coverage` is the share of the
    page's own sentences that the text has, by any method (null: the page has no markup, or shows no sentence). Texts
    still shorter than `min_chars` are rejected. A headline that is there twice, and behind the last sentence of a page
    a lead-in or a few bare words, are left out; `seams` counts what else looks so where a block was left out (anywhere,
    by the other methods). `repair` undoes mojibake by ftfy, line by line, where a text shows it; `repaired` counts
    those lines.
    `invisible: keep` leaves soft hyphens and zero-width spaces inside words, which split them for all that follows.
    `language` names jusText's stop words for pages that do not declare their language; `seconds` of processor time (for
    each method) and `memory` in bytes bound each page. `types` are those of `ingest`, which a recipe hands on: a file
    of another type than HTML has all of its blocks as its text, by the reader of its type, and column `extractor` names
    the type. Of a file with pages, column `pages` counts these, and `unread_pages` lists those whose text is not to be
    had, as they are images. The landing fills in `taken_down`: a list of documents that were taken down before it, by
    id.
    """

    method: str = "blocks"
    output: Literal["plain", "markdown"] = "plain"
    beta: Annotated[float, Range(*BETA)] = field(default=1.0, metadata={OMITTED: 1.0})
    model: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})
    fallback: tuple[str, ...] = ()
    language: str = "English"
    min_chars: Count = 100
    seconds: Annotated[float, Range(0, 3600, above=True)] = 10.0
    memory: Bytes = 4 << 30
    repair: bool = True
    invisible: Literal["remove", "keep"] = "remove"
    types: tuple[str, ...] = field(default=OWN, metadata={OMITTED: OWN})
    taken_down: FilePath = field(default=NO_FILE, metadata={OMITTED: NO_FILE})

    def __post_init__(self) -> None:
        """Raise RecipeError for unknown methods and types, Markdown of a library, and too little memory for blocks."""
        require_types(self.types, "extract: types")
        for methods, known in (((self.method,), METHODS), (self.fallback, EXTRACTORS)):
            for method in methods:
                if method not in known:
                    message = f"extract: method {method!r} is none of {', '.join(known)}; correct it, or leave it out"
                    raise RecipeError(message)
        if self.output == "markdown" and self.method != "blocks":
            message = f"extract: output markdown is by method blocks, and {self.method} gives plain text; correct one"
            raise RecipeError(message)
        if self.method == "blocks" and self.memory < LEAST_MEMORY:
            message = f"extract: memory is {self.memory} bytes, and method blocks takes {LEAST_MEMORY}; give it as many"
            raise RecipeError(message)


def extract_pages(pages: Batches, *listed: Keyed, params: Params) -> Batches:
    """Extract every page in a process of its own; reject what cannot be used with its reason."""
    from pipeline_tasks.text.page.sandbox_messages import Limits
    from pipeline_tasks.text.page.sandbox_pair import borrow_sandbox
    from pipeline_tasks.text.urls.takedown import evidence, read_list

    taken = read_list(params.taken_down, *listed)
    model = _model(params) if params.method == "blocks" else ""
    limits = Limits(params.language, params.seconds, params.memory, params.output, params.beta, model)
    with borrow_sandbox(limits) as sandbox:
        for batch in pages:
            documents = _documents(batch, sandbox, params)
            yield _without(documents, evidence(taken, documents.select(["id"])))


def _without(documents: pa.RecordBatch, entries: pa.Array) -> pa.RecordBatch:
    """Reject the documents that were taken down, and leave out their texts, and what was decided on parts of them."""
    is_taken = pc.is_valid(entries)
    if not pc.any(is_taken).as_py():
        return documents
    for name in ("text", "title", "blocks"):
        column = documents[name]
        documents = replace_column(documents, name, pc.if_else(is_taken, pa.scalar(None, column.type), column))
    reasons = pc.if_else(is_taken, TAKEN_DOWN, documents["reason"])
    return reject(documents, reasons, pc.coalesce(entries, documents["evidence"]))


@dataclass(slots=True)
class _Texts:
    """The result of each row (`sandbox_messages.Result`), its text in normal form, with length and repaired lines."""

    results: list["Result"]
    texts: pa.Array
    chars: npt.NDArray[np.int64]
    replaced: npt.NDArray[np.float64]
    repaired: npt.NDArray[np.int64]

    def replace(self, rows: list[int], other: "_Texts", picked: list[int]) -> None:
        """Replace `rows`, which ascend, by the rows `picked` of `other`."""
        from pipeline_tasks.text.base.replacing import replace_rows

        if not rows:
            return
        self.texts = replace_rows(self.texts, rows, other.texts.take(pa.array(picked)))
        for name in ("chars", "replaced", "repaired"):
            getattr(self, name)[rows] = getattr(other, name)[picked]
        for row, pick in zip(rows, picked, strict=True):
            self.results[row] = other.results[pick]


def _documents(batch: pa.RecordBatch, sandbox: "SandboxPair", params: Params) -> pa.RecordBatch:
    from pipeline_tasks.text.edits.seams import count_seams
    from pipeline_tasks.text.page.block_evidence import block_column
    from pipeline_tasks.text.page.identity import identities

    types = _types(batch)
    best = _best(batch, types, sandbox, params)
    _mend(best)
    exists = pa.array(best.chars > 0)
    blocks = block_column(best.results, best.texts)
    columns = {
        "id": pc.if_else(exists, pa.array(identities(best.texts), pa.string()), pa.scalar(None, pa.string())),
        "text": pc.if_else(exists, best.texts, pa.scalar(None, pa.large_string())),
        "title": _titles(best.results, sandbox, params),
        "chars": pa.array(best.chars),
        "html_language": _languages(best.results, batch["metadata"]),
        "published": _not_after([result.published for result in best.results], batch["crawled_at"]),
        "extractor": pa.array([result.method for result in best.results], pa.string()),
        "repaired": pa.array(best.repaired),
        "coverage": _coverages(best, batch["payload"]),
        SEAMS: pc.if_else(_is_page(best.results), count_seams(best.texts, blocks), 0),
        "blocks": blocks,
        "truncated": _truncated(batch["metadata"], best.results),
        TYPE: types,
        "pages": pa.array([result.pages or None for result in best.results], pa.int32()),
        "unread_pages": pa.array([result.unread if result.pages else None for result in best.results], _NUMBERS),
    }
    located = [batch.column(name) for name in LOCATOR.names]
    documents = pa.record_batch([*located, *columns.values()], schema=EXTRACTED)
    for name in RIGHTS.names:
        if name in batch.schema.names:
            documents = replace_column(documents, name, batch[name])
    outcomes = zip(best.results, best.chars.tolist(), best.replaced.tolist(), _garbled(best), strict=True)
    verdicts = [_verdict(*outcome, params=params) for outcome in outcomes]
    reasons, evidence = ([verdict[side] for verdict in verdicts] for side in (0, 1))
    return reject(documents, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _mend(best: _Texts) -> None:
    """Leave out what extraction left at the sides of the texts of pages; texts that were ready are as they came."""
    from pipeline_tasks.text.base.replacing import replace_rows
    from pipeline_tasks.text.edits.seams import mend

    pages = np.flatnonzero(_is_page(best.results))
    mended = mend(None, best.texts.take(pa.array(pages)))
    picked = np.unique(mended.rows)
    if len(picked):
        texts = mended.texts.take(pa.array(picked))
        best.texts = replace_rows(best.texts, pages[picked].tolist(), texts)
        best.chars[pages[picked]] = pc.utf8_length(texts).to_numpy()


def _is_page(results: Sequence["Result"]) -> pa.Array:
    """Return whether each text is what a method left of a page; others are all that there was."""
    return pa.array([result.method in METHODS for result in results], pa.bool_())


def _types(batch: pa.RecordBatch) -> pa.Array:
    """Return the type of each page: as `ingest` told it, else as it would."""
    from pipeline_tasks.file_types.recognition import types_of

    types = batch[TYPE]
    unsure = pc.and_(pc.is_null(types), pc.is_valid(batch["payload"]))
    if not pc.any(unsure).as_py():
        return types
    told = types_of(batch["content_type"].filter(unsure), batch["payload"].filter(unsure))
    return pc.replace_with_mask(types, unsure, pc.fill_null(told, HTML))


def _method(kind: str | None, method: str) -> str:
    """Return by what the pages of a type are read: a method of `main_text`, or the place of a reader."""
    from pipeline_tasks.text.page.sandbox_messages import PLAIN

    if kind == HTML:
        return method
    return PLAIN if kind in (None, TEXT) else brought_types()[kind].read


def _best(batch: pa.RecordBatch, types: pa.Array, sandbox: "SandboxPair", params: Params) -> _Texts:
    """Return the text of each row by the first method that finds enough of it, else the longest."""
    pages = _pages(batch, types, params)
    is_page = pc.and_(pc.is_null(batch["text"]), pc.fill_null(pc.equal(types, HTML), fill_value=False))
    unread = np.flatnonzero(is_page).tolist()
    first = _first_results(batch["text"], types, pages, sandbox, params.method)
    best = _texts(_with_images(first, batch), sandbox, params)
    methods = dict.fromkeys(name for name in params.fallback if name != params.method)
    visible = _visible(best, unread, batch["payload"], params) if methods else {}
    for method in methods:
        retried = [row for row in visible if _is_lost(best, row, visible[row], params)]
        other = _texts(list(sandbox.process(method, [pages[row] for row in retried])), sandbox, params)
        longer = [pick for pick, row in enumerate(retried) if other.chars[pick] > best.chars[row]]
        best.replace([retried[pick] for pick in longer], other, longer)
    return best


def _with_images(results: list["Result"], batch: pa.RecordBatch) -> list["Result"]:
    """Return results with the texts of pages that `read_images` had read, if the recipe has that stage."""
    from pipeline_tasks.text.page.image_texts import with_images

    if IMAGE_TEXTS not in batch.schema.names:
        return results
    columns = zip(results, batch[IMAGE_TEXTS].to_pylist(), strict=True)
    return [
        with_images(result, {page["page"]: page["text"] for page in pages}) if pages else result
        for result, pages in columns
    ]


def _coverages(best: _Texts, payloads: pa.Array) -> pa.Array:
    """Return which share of its page's own sentences each text has, null where there is no markup or no sentence."""
    from pipeline_tasks.text.page.coverage import coverages
    from pipeline_tasks.text.page.encodings import replace_as

    shares = np.full(len(payloads), np.nan)
    read = [row for row, result in enumerate(best.results) if result.outcome == "done" and result.method in METHODS]
    other = {row: encoding for row in read if (encoding := best.results[row].encoding)}
    rows = [row for row in read if row not in other]
    shares[rows] = coverages(payloads, rows, best.texts)
    if other:
        bodies = _bodies(payloads)
        decoded = _column(
            [replace_as(bodies[row], encoding).encode("utf-8", "ignore") for row, encoding in other.items()]
        )
        rows = list(other)
        shares[rows] = coverages(decoded, list(range(len(rows))), best.texts.take(pa.array(rows)))
    return pa.array(shares, from_pandas=True)


def _visible(best: _Texts, rows: list[int], payloads: pa.Array, params: Params) -> dict[int, int]:
    """Return {row: visible characters} of the rows in which another method may find more, by the bytes of their pages.

    A text only gets longer by the methods that follow, so no other row becomes one of them.
    """
    from pipeline_tasks.text.page.visible import visible_characters

    sizes = pc.fill_null(pc.binary_length(payloads), 0).to_pylist()  # no page shows more characters than it has bytes
    lost = [row for row in rows if _is_lost(best, row, sizes[row], params)]
    return dict(zip(lost, visible_characters(payloads, lost).tolist(), strict=True))


def _is_lost(best: _Texts, row: int, visible: int, params: Params) -> bool:
    """Return whether a page that shows so many characters has no result, or too little text."""
    result, chars = best.results[row], int(best.chars[row])
    if result.outcome == "charset":
        return False
    return result.outcome != "done" or chars * LOST < visible or chars < params.min_chars <= visible


def _first_results(
    texts: pa.Array, types: pa.Array, pages: list["Page"], sandbox: "SandboxPair", method: str
) -> list["Result"]:
    """Return the results of a method, or of the readers of other types, for all pages but those whose text is ready."""
    from pipeline_tasks.text.page.sandbox_messages import PLAIN, Result

    results = [Result("done", text, method=PLAIN) for text in _bodies(texts)]
    unread = pc.is_null(texts)
    for kind in pc.unique(types.filter(unread)).to_pylist():
        rows = np.flatnonzero(pc.and_(unread, pc.equal(types, kind) if kind else pc.is_null(types))).tolist()
        found = sandbox.process(_method(kind, method), [pages[row] for row in rows])
        for row, result in zip(rows, found, strict=True):
            results[row] = result if kind in OWN else result._replace(method=kind)
    return results


def _pages(batch: pa.RecordBatch, types: pa.Array, params: Params) -> list["Page"]:
    """Return the payloads, those of HTML with a survey of their markup; depth matters only to some methods."""
    from pipeline_tasks.text.page.main_text import DEEPEST, LXML_DEPTH
    from pipeline_tasks.text.page.sandbox_messages import Page
    from pipeline_tasks.text.page.tags import survey

    payloads = batch["payload"]
    limit = DEEPEST if {params.method, *params.fallback} == {"resiliparse"} else LXML_DEPTH
    is_own = pc.is_in(types, pa.array(OWN))
    markup = payloads if pc.all(is_own).as_py() else pc.if_else(is_own, payloads, pa.scalar(None, payloads.type))
    surveyed = survey(markup, limit, DEEPEST)
    labels = [label or "" for label in batch["content_type"].to_pylist()]
    columns = zip(_bodies(payloads), labels, surveyed.depth.tolist(), surveyed.bits.tolist(), strict=True)
    return [Page(*fields) for fields in columns]


def _bodies(column: pa.Array) -> list[memoryview]:
    """Return the bytes of each value of a large binary or string column, none of a null."""
    offsets = memoryview(column.buffers()[1] or bytes(8)).cast("q")[column.offset :][: len(column) + 1].tolist()
    data = memoryview(column.buffers()[2] or b"")
    return [data[start:end] for start, end in itertools.pairwise(offsets)]


def _texts(results: list["Result"], sandbox: "SandboxPair", params: Params) -> _Texts:
    """Bring the texts of results into normal form, after mojibake is undone."""
    from pipeline_tasks.text.page.normal_form import normalize

    raw = _column([result.text for result in results])
    repairs = _repair(raw, sandbox) if params.repair else {}
    keeps = params.invisible == "keep"
    normal = normalize(raw, keeps_invisible=keeps)
    texts = _Texts(results, normal.texts, normal.chars, normal.replaced, np.zeros(len(results), np.int64))
    if repairs:
        rows = list(repairs)
        normal = normalize(_column([repair.text for repair in repairs.values()]), keeps_invisible=keeps)
        counts = np.array([repair.repaired for repair in repairs.values()])
        texts.replace(rows, _Texts([results[row] for row in rows], *normal, counts), list(range(len(rows))))
    return texts


def _repair(texts: pa.Array, sandbox: "SandboxPair") -> dict[int, "Result"]:
    """Return {row: result} of the texts in which mojibake was undone."""
    from pipeline_tasks.text.page.mojibake_suspects import suspects
    from pipeline_tasks.text.page.sandbox_messages import REPAIR, Page

    rows = np.flatnonzero(suspects(texts)).tolist()
    if not rows:
        return {}
    bodies = _bodies(texts)
    results = sandbox.process(REPAIR, [Page(bodies[row]) for row in rows])
    return {row: result for row, result in zip(rows, results, strict=True) if result.repaired}


def _column(parts: Sequence[bytes | memoryview]) -> pa.Array:
    """Return pieces of UTF-8 as one large_string column."""
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=ends[1:])
    return pa.LargeStringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))


def _titles(results: list["Result"], sandbox: "SandboxPair", params: Params) -> pa.Array:
    """Return titles in normal form, repaired as texts are, null where there is none."""
    from pipeline_tasks.text.page.normal_form import normalize

    titles = [result.title or "" for result in results]
    raw = pa.array(titles, pa.large_string())
    repairs = _repair(raw, sandbox) if params.repair else {}
    for row, repair in repairs.items():
        titles[row] = str(repair.text, "utf-8")
    if repairs:
        raw = pa.array(titles, pa.large_string())
    titles_in_form = normalize(raw, keeps_invisible=params.invisible == "keep").texts
    column = pc.utf8_slice_codeunits(titles_in_form, 0, TITLE).cast(pa.string())
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _languages(results: list["Result"], metadata: pa.Array) -> pa.Array:
    """Return the language that each page declares, else the one of its header Content-Language."""
    declared = pa.array([result.language for result in results], pa.string())
    has_header = pc.match_substring(metadata, '"http-content-language"')
    headers = pc.and_(pc.is_null(declared), has_header).fill_null(fill_value=False)
    if not pc.any(headers).as_py():
        return declared
    by_header = {row: _header_language(metadata[row].as_py()) for row in np.flatnonzero(headers).tolist()}
    return pa.array([by_header.get(row, result.language) for row, result in enumerate(results)], pa.string())


def _header_language(metadata: str) -> str | None:
    """Return the language of the header Content-Language; lines and tables may have anything under its name."""
    from pipeline_tasks.text.page.metadata import language_tag

    header = json.loads(metadata).get("http-content-language")
    return language_tag(header) if isinstance(header, str) else None


def _truncated(metadata: pa.Array, results: list["Result"]) -> pa.Array:
    """Return why each record was cut, by its header WARC-Truncated: a word of `CUTS`, `unspecified` for other words.

    So is a file that ends before it is whole.
    """
    cut = pc.match_substring(metadata, '"warc-truncated"').fill_null(fill_value=False)
    reasons: list[str | None] = [CUTS[-1] if result.is_cut else None for result in results]
    for row in np.flatnonzero(cut).tolist():
        reason = str(json.loads(metadata[row].as_py()).get("warc-truncated")).strip().lower()
        reasons[row] = reason if reason in CUTS else CUTS[-1]
    return pa.array(reasons, pa.string())


def _not_after(days: list[str | None], crawled: pa.Array) -> pa.Array:
    """Return days of publication without those after the crawl."""
    published = pa.array(days, pa.string())
    future = pc.greater(published, pc.utf8_slice_codeunits(crawled, 0, len("2026-11-20")))
    return pc.if_else(pc.fill_null(future, fill_value=False), pa.scalar(None, pa.string()), published)


def _verdict(
    result: "Result", chars: int, replaced: float, garbled: bool, *, params: Params
) -> tuple[str | None, str | None]:
    """Return reason and evidence of a page, None for both if its text is kept."""
    if result.outcome != "done":
        return _unread(result, params)
    if result.method == "plain" and garbled:
        return "error:charset", _proof(detail=f"{replaced:.2%} of the characters were replaced")
    if chars < params.min_chars and result.unread:
        return SCANNED, _proof(chars=chars, pages=result.pages, unread_pages=len(result.unread))
    if not chars:
        return "extract:empty", _proof(chars=0)
    if chars < params.min_chars:
        return TOO_SHORT, _proof(chars=chars, min_chars=params.min_chars)
    return None, None


def _unread(result: "Result", params: Params) -> tuple[str, str]:
    """Return reason and evidence of a page that could not be read."""
    if result.outcome == "timeout":
        return "extract:timeout", _proof(seconds=params.seconds)
    if result.outcome == "refused":
        return f"extract:{result.detail}", _proof(type=result.method or "")
    return _ERRORS[result.outcome], _proof(detail=result.detail)


def _garbled(best: _Texts) -> list[bool]:
    """Return whether too many characters of each text are U+FFFD; pages count theirs as they are read."""
    from pipeline_tasks.text.page.charset import is_understood

    if not best.replaced.any():
        return [False] * len(best.results)
    counts = pc.count_substring(best.texts, "\ufffd").to_pylist()
    return [not is_understood(count, share) for count, share in zip(counts, best.replaced.tolist(), strict=True)]


def _proof(**facts: str | float) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def resources(params: Params) -> tuple[str, ...]:
    """Return the list of what was taken down, if there is one, and the model of blocks."""
    models = (_model(params),) if params.method == "blocks" else ()
    return (*((params.taken_down,) if params.taken_down else ()), *models)


def _model(params: Params) -> str:
    from pipeline_tasks.text.blocks import SHIPPED

    return params.model or str(SHIPPED)


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Extract the pages of each shard, in place."""
    return on.map(partial(extract_pages, params=params), shards, broadcast=on.keyed(params.taken_down))


def _by_trafilatura(params: Params) -> bool:
    return "trafilatura" in (params.method, *params.fallback)


def _by_justext(params: Params) -> bool:
    return "justext" in (params.method, *params.fallback)


_LIBRARIES: Mapping[str, Callable[[Params], bool]] = {
    "resiliparse": always,
    "charset-normalizer": always,
    "trafilatura": _by_trafilatura,
    "justext": lambda params: _by_trafilatura(params) or _by_justext(params),
    "lxml": lambda params: _by_trafilatura(params) or _by_justext(params),
    "lxml-html-clean": _by_justext,
    "ftfy": lambda params: params.repair,
    UNICODE: always,
}
"""Libraries of pages, with whether params use them."""


def _uses(library: str, params: Params) -> bool:
    """Return whether a library decides texts of pages, or of files of types that are read."""
    is_of_pages = library in _LIBRARIES and _LIBRARIES[library](params)
    return is_of_pages or not libraries().get(library, frozenset()).isdisjoint(params.types)


def canceled(params: Params) -> Iterator[Canceled]:
    """Yield the params that another one, or an absent one, turns off."""
    methods = {params.method, *params.fallback}
    if "justext" not in methods:
        yield Canceled("language", "it names jusText's stop words, and no method is justext", "add it to `fallback`")
    if params.fallback and set(params.fallback) == {params.method}:
        yield Canceled("fallback", f"it names {params.method} alone, which `method` is", "name another method")


def dials(params: Params) -> tuple[Dial, ...]:
    """Return `beta`, by which blocks are chosen."""

    def words(batch: pa.RecordBatch, then: float) -> tuple[pa.Array, pa.Array]:
        from pipeline_tasks.text.blocks.other_choice import words_by

        return words_by(batch["blocks"], params.beta, then)

    return (Dial("beta", params.beta, *BETA, ("blocks",), words),) if params.method == "blocks" else ()


STAGE = Stage(
    name="extract",
    run=run,
    params=Params,
    reads=PAGE,
    writes=EXTRACTED,
    version=23,
    splits=True,
    libraries={library: partial(_uses, library) for library in (*_LIBRARIES, *libraries())},
    engine="spark",
    profiled=("chars", "extractor", "repaired", "coverage", SEAMS, *SITE_COVERAGES, "truncated", TYPE),
    resources=resources,
    reasons=(
        *("extract:empty", TOO_SHORT, "extract:timeout", TAKEN_DOWN, *_OF_FILES),
        *("error:charset", "error:extractor_crash"),
    ),
    title="Pages into documents",
    removes="unfit",
    canceled=canceled,
    dials=dials,
    bounds=lambda params: (Bound("min_chars", params.min_chars, TOO_SHORT, ("chars",), most=math.inf),),
    cost=UnitCost(0.27, 0.22, 0.22, 3, requests=Requests(8, 2), rows=0.996, published=0.50),
    changes=("text",),
    derived_from=("payload", "text", "url", "crawled_at", "kind", "content_type", "metadata", "type", IMAGE_TEXTS),
)
