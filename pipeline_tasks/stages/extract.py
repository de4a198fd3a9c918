"""Turns pages into documents: decode, find the main text, normalize, and name it by its content."""

import itertools
import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import DOCUMENT, LOCATOR, PAGE
from pipeline_tasks.stage import Batches, Engine, Shards, Stage, set_aside

METHODS = ("resiliparse", "trafilatura", "justext")

EXTRACTED = pa.schema([*DOCUMENT, pa.field("extractor", pa.string())])


@dataclass(frozen=True, slots=True)
class Params:
    """How text is found.

    `method` is one of `METHODS`; those of `fallback` are tried, in order, where it finds no text at all, takes too long
    or dies; column `extractor` says which one found the text (`plain` for what is no HTML). `language` names jusText's
    stop words; `min_chars` is the least length of a document in code points; `seconds` of processor time (for each
    method) and `memory` in bytes bound each page.
    """

    method: str = "resiliparse"
    fallback: tuple[str, ...] = ()
    language: str = "English"
    min_chars: int = 100
    seconds: float = 10.0
    memory: int = 4 << 30

    def __post_init__(self) -> None:
        """Raise RecipeError for a method that is none of METHODS."""
        for method in (self.method, *self.fallback):
            if method not in METHODS:
                message = f"extract: method {method!r} is none of {', '.join(METHODS)}; correct it in the recipe"
                raise RecipeError(message)


def pull(pages: Batches, *, params: Params) -> Batches:
    """Extract every page in a process of its own; what cannot be used is set aside with its reason."""
    from pipeline_tasks.text.sandbox import Limits, Sandbox

    with Sandbox(Limits((params.method, *params.fallback), params.language, params.seconds, params.memory)) as box:
        for batch in pages:
            yield _documents(batch, box, params)


def _documents(batch: pa.RecordBatch, box: Any, params: Params) -> pa.RecordBatch:  # noqa: ANN401 -- a lazy import
    from pipeline_tasks.text.identity import identity_of_normal

    found = box.extract(_pages(batch))
    texts = [one.text or None for one in found]
    columns = {
        "id": pa.array([text and identity_of_normal(text) for text in texts], pa.string()),
        "text": pa.array(texts, pa.large_string()),
        "title": pa.array([one.title for one in found], pa.string()),
        "chars": pa.array([len(one.text) for one in found], pa.int64()),
        "extractor": pa.array([one.method for one in found], pa.string()),
    }
    located = [batch.column(name) for name in LOCATOR.names]
    documents = pa.record_batch([*located, *columns.values()], schema=EXTRACTED)
    verdicts = [_verdict(one, params) for one in found]
    reasons, evidence = ([pair[side] for pair in verdicts] for side in (0, 1))
    return set_aside(documents, pa.array(reasons, pa.string()), pa.array(evidence, pa.string()))


def _pages(batch: pa.RecordBatch) -> list[Any]:
    from pipeline_tasks.text.sandbox import Page

    ready = batch["text"].is_valid().to_pylist()
    types = batch["content_type"].to_pylist()
    columns = zip(_bodies(batch["text"]), _bodies(batch["payload"]), types, ready, strict=True)
    return [Page(text if is_text else payload, kind or "", is_text) for text, payload, kind, is_text in columns]


def _bodies(column: pa.Array) -> list[memoryview]:
    """Return the bytes of each value of a large binary or string column, none of a null."""
    offsets = memoryview(column.buffers()[1] or bytes(8)).cast("q")[column.offset :][: len(column) + 1].tolist()
    data = memoryview(column.buffers()[2] or b"")
    return [data[start:end] for start, end in itertools.pairwise(offsets)]


def _verdict(found: Any, params: Params) -> tuple[str | None, str | None]:  # noqa: ANN401 -- a lazy import
    if found.outcome == "charset":
        return "error:charset", _proof(detail=found.detail)
    if found.outcome == "crash":
        return "error:extractor_crash", _proof(detail=found.detail)
    if found.outcome == "timeout":
        return "extract:timeout", _proof(seconds=params.seconds)
    if not found.text.strip():
        return "extract:empty", _proof(chars=0)
    if len(found.text) < params.min_chars:
        return "extract:too_short", _proof(chars=len(found.text), min_chars=params.min_chars)
    return None, None


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
    version=2,
    splits=True,
    engine="spark",
    measures=("chars",),
    fires=("extract:empty", "extract:too_short", "extract:timeout", "error:charset", "error:extractor_crash"),
    title="Pages into documents",
)
