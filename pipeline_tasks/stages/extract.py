"""Turns pages into documents: decode, find the main text, normalize, and name it by its content."""

import itertools
import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT, LOCATOR, PAGE
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, reject

METHODS = ("resiliparse", "trafilatura", "justext")

EXTRACTED = pa.schema(
    [
        *DOCUMENT,
        pa.field("html_language", pa.string()),  # what the page says of itself, lower-case BCP 47; a hint
        pa.field("published", pa.string()),  # day that the page says it was published, ISO 8601; null if unsure
        pa.field("extractor", pa.string()),  # what found the text, `plain` for what is no HTML
        pa.field("repaired", pa.int64()),  # lines of the text in which mojibake was undone
    ]
)

TITLE = 500
"""Code points of a title that are kept."""


@dataclass(frozen=True, slots=True)
class Params:
    """How text is found.

    `method` is one of `METHODS`; those of `fallback` are tried, in order, where the text so far is shorter than
    `min_chars` code points (or there is none: too slow, died) and taken where theirs is longer; column `extractor` says
    which one found the text (`plain` for what is no HTML). What is shorter than `min_chars` in the end is set aside.
    `repair` undoes mojibake by ftfy, line by line, where a text shows it; `repaired` counts those lines. `language`
    names jusText's stop words for pages that do not tell their language; `seconds` of processor time (for each method)
    and `memory` in bytes bound each page.
    """

    method: str = "resiliparse"
    fallback: tuple[str, ...] = ()
    language: str = "English"
    min_chars: int = 100
    seconds: float = 10.0
    memory: int = 4 << 30
    repair: bool = True

    def __post_init__(self) -> None:
        """Raise RecipeError for a method that is none of METHODS."""
        for method in (self.method, *self.fallback):
            if method not in METHODS:
                message = f"extract: method {method!r} is none of {', '.join(METHODS)}; correct it in the recipe"
                raise RecipeError(message)


def pull(pages: Batches, *, params: Params) -> Batches:
    """Extract every page in a process of its own; what cannot be used is set aside with its reason."""
    from pipeline_tasks.text.page.sandbox import Limits, borrowed

    with borrowed(Limits(params.language, params.seconds, params.memory)) as box:
        for batch in pages:
            yield _documents(batch, box, params)


@dataclass(slots=True)
class _Texts:
    """What was found in each row (`sandbox.Found`), and its text in normal form with length and lines repaired."""

    found: list[Any]
    texts: pa.Array
    chars: np.ndarray[Any, np.dtype[np.int64]]
    replaced: np.ndarray[Any, np.dtype[np.float64]]
    repaired: np.ndarray[Any, np.dtype[np.int64]]

    def exchange(self, rows: list[int], other: "_Texts", picked: list[int]) -> None:
        """Put rows `picked` of `other` in the place of `rows`, which ascend."""
        from pipeline_tasks.text.base.buffers import replace_rows

        if not rows:
            return
        self.texts = replace_rows(self.texts, rows, other.texts.take(pa.array(picked)))
        for name in ("chars", "replaced", "repaired"):
            getattr(self, name)[rows] = getattr(other, name)[picked]
        for row, pick in zip(rows, picked, strict=True):
            self.found[row] = other.found[pick]


def _documents(batch: pa.RecordBatch, box: Any, params: Params) -> pa.RecordBatch:  # noqa: ANN401 -- a lazy import
    from pipeline_tasks.text.page.identity import identities

    best = _best(batch, box, params)
    there = pa.array(best.chars > 0)
    texts = pc.if_else(there, best.texts, pa.scalar(None, pa.large_string()))
    columns = {
        "id": pc.if_else(there, pa.array(identities(best.texts), pa.string()), pa.scalar(None, pa.string())),
        "text": texts,
        "title": _titles(best.found, box, params),
        "chars": pa.array(best.chars),
        "html_language": _languages(best.found, batch["metadata"]),
        "published": _past([one.published for one in best.found], batch["crawled_at"]),
        "extractor": pa.array([one.method for one in best.found], pa.string()),
        "repaired": pa.array(best.repaired),
    }
    located = [batch.column(name) for name in LOCATOR.names]
    documents = pa.record_batch([*located, *columns.values()], schema=EXTRACTED)
    shares = zip(best.found, best.chars.tolist(), best.replaced.tolist(), strict=True)
    verdicts = [_verdict(one, chars, replaced, params) for one, chars, replaced in shares]
    reasons, evidence = ([pair[side] for pair in verdicts] for side in (0, 1))
    return reject(documents, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _best(batch: pa.RecordBatch, box: Any, params: Params) -> _Texts:  # noqa: ANN401
    """Return the text of each row by the first method that finds `min_chars` of it, else the longest."""
    pages = _pages(batch, params)
    ready = batch["text"].is_valid().to_pylist()
    best = _texts(_found(batch, pages, ready, box, params), box, params)
    for method in params.fallback:
        again = [at for at, is_ready in enumerate(ready) if not is_ready and _is_open(best, at, params)]
        other = _texts(list(box.work(method, [pages[at] for at in again])), box, params)
        more = [pick for pick, at in enumerate(again) if other.chars[pick] > best.chars[at]]
        best.exchange([again[pick] for pick in more], other, more)
    return best


def _is_open(best: _Texts, at: int, params: Params) -> bool:
    """Tell whether another method may find more in a row."""
    one = best.found[at]
    return one.outcome != "charset" and one.method != "plain" and bool(best.chars[at] < params.min_chars)


def _found(batch: pa.RecordBatch, pages: list[Any], ready: list[bool], box: Any, params: Params) -> list[Any]:  # noqa: ANN401
    """Return what the first method finds in each page; ready text is there already."""
    from pipeline_tasks.text.page.sandbox import PLAIN, Found

    texts = _bodies(batch["text"])
    asked = box.work(params.method, [page for page, is_ready in zip(pages, ready, strict=True) if not is_ready])
    return [
        Found("done", text, method=PLAIN) if is_ready else next(asked)
        for text, is_ready in zip(texts, ready, strict=True)
    ]


def _pages(batch: pa.RecordBatch, params: Params) -> list[Any]:
    """Return the payloads with what a first look tells of their markup; depth matters only to some methods."""
    from pipeline_tasks.text.page.main_text import DEEPEST, LXML_DEPTH
    from pipeline_tasks.text.page.sandbox import Page
    from pipeline_tasks.text.page.tags import survey

    payloads = batch["payload"]
    limit = DEEPEST if {params.method, *params.fallback} == {"resiliparse"} else LXML_DEPTH
    seen = survey(payloads, limit, DEEPEST)
    types = [kind or "" for kind in batch["content_type"].to_pylist()]
    columns = zip(_bodies(payloads), types, seen.depth.tolist(), seen.bits.tolist(), strict=True)
    return [Page(*fields) for fields in columns]


def _bodies(column: pa.Array) -> list[memoryview]:
    """Return the bytes of each value of a large binary or string column, none of a null."""
    offsets = memoryview(column.buffers()[1] or bytes(8)).cast("q")[column.offset :][: len(column) + 1].tolist()
    data = memoryview(column.buffers()[2] or b"")
    return [data[start:end] for start, end in itertools.pairwise(offsets)]


def _texts(found: list[Any], box: Any, params: Params) -> _Texts:  # noqa: ANN401
    """Bring what was found into normal form, after mojibake is undone."""
    from pipeline_tasks.text.page.normal_form import normalize

    raw = _column([one.text for one in found])
    repaired = _mend(raw, box) if params.repair else {}
    normal = normalize(raw)
    best = _Texts(found, normal.texts, normal.chars, normal.replaced, np.zeros(len(found), np.int64))
    if repaired:
        anew = normalize(_column([one.text for one in repaired.values()]))
        counts = np.array([one.repaired for one in repaired.values()])
        rows = list(repaired)
        best.exchange(
            rows,
            _Texts([found[row] for row in rows], *anew, counts),
            list(range(len(rows))),
        )
    return best


def _mend(texts: pa.Array, box: Any) -> dict[int, Any]:  # noqa: ANN401
    """Return {row: what was repaired} of the texts in which mojibake was undone."""
    from pipeline_tasks.text.page.mojibake_suspects import suspects
    from pipeline_tasks.text.page.sandbox import REPAIR, Page

    rows = np.flatnonzero(suspects(texts)).tolist()
    if not rows:
        return {}
    bodies = _bodies(texts)
    answers = box.work(REPAIR, [Page(bodies[row]) for row in rows])
    return {row: one for row, one in zip(rows, answers, strict=True) if one.repaired}


def _column(parts: list[Any]) -> pa.Array:
    """Return pieces of UTF-8 as one large_string column."""
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=ends[1:])
    return pa.LargeStringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts)))


def _titles(found: list[Any], box: Any, params: Params) -> pa.Array:  # noqa: ANN401
    """Return titles in normal form, repaired as texts are, null where there is none."""
    from pipeline_tasks.text.page.normal_form import normalize

    raw = pa.array([one.title or "" for one in found], pa.large_string())
    repaired = _mend(raw, box) if params.repair else {}
    if repaired:
        raw = pa.array(
            [str(repaired[at].text, "utf-8") if at in repaired else one.title or "" for at, one in enumerate(found)],
            pa.large_string(),
        )
    titles = pc.utf8_slice_codeunits(normalize(raw).texts, 0, TITLE).cast(pa.string())
    return pc.if_else(pc.equal(titles, ""), pa.scalar(None, pa.string()), titles)


def _languages(found: list[Any], metadata: pa.Array) -> pa.Array:
    """Return what each page says its language is, else what the header Content-Language says."""
    from pipeline_tasks.text.page.metadata import language_tag

    said = pa.array([one.language for one in found], pa.string())
    headers = pc.and_(pc.is_null(said), pc.match_substring(metadata, '"http-content-language"')).fill_null(False)  # noqa: FBT003 -- Arrow takes it by place
    if not pc.any(headers).as_py():
        return said
    more = {
        at: language_tag(json.loads(metadata[at].as_py())["http-content-language"])
        for at in np.flatnonzero(headers).tolist()
    }
    return pa.array([more.get(at, one.language) for at, one in enumerate(found)], pa.string())


def _past(days: list[str | None], crawled: pa.Array) -> pa.Array:
    """Return days of publication without those after the crawl."""
    published = pa.array(days, pa.string())
    future = pc.greater(published, pc.utf8_slice_codeunits(crawled, 0, len("2026-11-20")))
    return pc.if_else(pc.fill_null(future, fill_value=False), pa.scalar(None, pa.string()), published)


def _verdict(found: Any, chars: int, replaced: float, params: Params) -> tuple[str | None, str | None]:  # noqa: ANN401
    if found.outcome != "done":
        why = {"charset": "error:charset", "crash": "error:extractor_crash", "timeout": "extract:timeout"}[
            found.outcome
        ]
        slow = found.outcome == "timeout"
        return why, _proof(seconds=params.seconds) if slow else _proof(detail=found.detail)
    if found.method == "plain" and _is_garbled(replaced):
        return "error:charset", _proof(detail=f"{replaced:.2%} of the characters were replaced")
    if not chars:
        return "extract:empty", _proof(chars=0)
    if chars < params.min_chars:
        return "extract:too_short", _proof(chars=chars, min_chars=params.min_chars)
    return None, None


def _is_garbled(replaced: float) -> bool:
    from pipeline_tasks.text.page.charset import REPLACED_SHARE

    return replaced > REPLACED_SHARE


def _proof(**facts: str | float) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def run(shards: Shards, params: Params, on: Engine) -> Shards:
    """Extract the pages of each shard, in place."""
    return on.map(partial(pull, params=params), shards)


STAGE = Stage(
    name="extract",
    run=run,
    params=Params,
    reads=PAGE,
    writes=EXTRACTED,
    version=3,
    splits=True,
    engine="spark",
    profiled=("chars", "extractor", "repaired"),
    reasons=("extract:empty", "extract:too_short", "extract:timeout", "error:charset", "error:extractor_crash"),
    title="Pages into documents",
)
