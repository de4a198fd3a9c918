"""Annotates documents with what they are: type, reading level, licence notice, structure, and an estimate of tokens."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pipeline_tasks.stage import Batches, Engine, Layer, Shards, Stage, replace_column

TYPE, LEVEL, NOTICE = "document_type", "reading_level", "license_notice"

STRUCTURE = ("headings", "list_lines", "table_rows", "code_lines")

COLUMNS = pa.schema(
    [
        pa.field(TYPE, pa.string()),  # `unknown` where the rules do not decide
        pa.field("reading_ease", pa.float64()),  # Flesch's scale, by the formula of the language; null if unknown
        pa.field(LEVEL, pa.string()),  # `easy`, `standard`, `hard`, `very_hard`, `unknown`
        pa.field(NOTICE, pa.string()),  # the first notice of a licence; `unknown` where there is none
        pa.field("license_start", pa.int64()),  # first code point of the notice in `text`; null without one
        pa.field("license_end", pa.int64()),  # past its last one
        *(pa.field(name, pa.int64()) for name in STRUCTURE),  # lines of each kind
        pa.field("structure_ratio", pa.float64()),  # share of the bytes in lists, tables and code
        pa.field("token_estimate", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Params:
    """There are none: rules are data files of the package, and their version is the stage's."""


def enrich(docs: Batches) -> Batches:
    """Yield every document with COLUMNS; texts are read once, and do not change."""
    from pipeline_tasks.text.base.buffers import views
    from pipeline_tasks.text.kinds.document_types import ANY_LANGUAGE, cues, document_types
    from pipeline_tasks.text.kinds.measures import measures
    from pipeline_tasks.text.kinds.reading import SILENT_E, reading_ease, reading_levels
    from pipeline_tasks.text.kinds.tokens import token_estimates

    known = cues()
    for batch in docs:
        languages = _languages(batch)
        numbers = np.array([known.languages.get(code, ANY_LANGUAGE - 1) for code in languages], np.int64)
        silent = np.array([code in SILENT_E for code in languages], np.bool_)
        found = measures(views(batch["text"]), numbers, silent, known.table, known.meanings, len(known.types))
        ease, counts = reading_ease(found, languages), found.counts
        kinds, none = found.notices[:, 0], found.notices[:, 0] < 0
        structured = counts["list_bytes"] + counts["table_bytes"] + counts["code_bytes"]
        values = {
            TYPE: document_types(found, batch["url"]),
            "reading_ease": pa.array(ease, mask=np.isnan(ease)),
            LEVEL: reading_levels(ease),
            NOTICE: pa.array([*known.notices, "unknown"], pa.string()).take(pa.array(kinds % (len(known.notices) + 1))),
            "license_start": pa.array(found.notices[:, 1], mask=none),
            "license_end": pa.array(found.notices[:, 2], mask=none),
            **{name: pa.array(counts[name]) for name in STRUCTURE},
            "structure_ratio": pa.array(structured / np.maximum(counts["bytes"], 1)),
            "token_estimate": pa.array(token_estimates(found, languages)),
        }
        for name, column in values.items():
            batch = replace_column(batch, name, column)  # noqa: PLW2901 -- the batch, with one column more
        yield batch


def _languages(batch: pa.RecordBatch) -> list[str]:
    """Return the code of each document's language without script and region, "" where there is none."""
    if "language" not in batch.schema.names:
        return [""] * batch.num_rows
    return [(code or "").partition("-")[0].partition("_")[0] for code in batch["language"].to_pylist()]


def run(shards: Shards, params: Params, on: Engine) -> Shards:  # noqa: ARG001 -- the signature of all stages
    """Annotate every shard by itself."""
    layer = Layer(reads=("text", "chars", "url", "language"), stores=tuple(COLUMNS.names))
    return on.map(partial(enrich), shards, layer=layer)


_READS = pa.schema([pa.field("text", pa.large_string()), pa.field("url", pa.string())])

_PROFILED = (TYPE, LEVEL, NOTICE, "reading_ease", *STRUCTURE, "structure_ratio", "token_estimate", "chars", "language")

STAGE = Stage(
    name="enrich",
    run=run,
    params=Params,
    reads=_READS,
    writes=pa.schema([*_READS, *COLUMNS]),
    version=1,
    splits=True,
    profiled=_PROFILED,
    title="Say what each document is",
)
