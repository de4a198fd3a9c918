"""The columns that travel through the refinery, and the content identity of a document."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

Array: TypeAlias = pa.Array | pa.ChunkedArray
"""A column of a batch, or of a table."""

LOCATOR = pa.schema(
    [
        pa.field("source", pa.string()),  # the recipe's name of where documents come from, e.g. `crawl`
        pa.field("snapshot", pa.string()),  # the landed snapshot, e.g. `2026-11-20` or `CC-MAIN-2026-45`
        pa.field("file", pa.string()),  # name of the landed file, relative to the snapshot
        pa.field("offset", pa.int64()),  # first byte of the record in that file (a row number for Parquet)
        pa.field("length", pa.int64()),  # bytes of the record in that file
        pa.field("record_id", pa.string()),  # WARC-Record-ID, or `file:offset` where the format has none
        pa.field("url", pa.string()),
        pa.field("crawled_at", pa.string()),  # WARC-Date of the record, unchanged
        pa.field("payload_digest", pa.string()),  # `sha1:BASE32` of the HTTP body as transferred
    ]
)
"""Where a document came from; carried by every table of documents, unchanged, from `ingest` to `tokenize`."""

RECORD = pa.schema(
    [
        *list(LOCATOR),
        pa.field("kind", pa.string()),  # WARC-Type, or `json`, `row`, or `damage` for an unreadable stretch
        pa.field("status", pa.int32()),  # HTTP status, null where there is none
        pa.field("content_type", pa.string()),  # HTTP Content-Type as sent
        pa.field("payload", pa.large_binary()),  # HTTP body after transfer and content decoding; null for text records
        pa.field("text", pa.large_string()),  # text of WET, JSONL and Parquet records; null for payload records
        pa.field("metadata", pa.string()),  # JSON of the fields that have no column
        pa.field("error", pa.string()),  # why it cannot be used (`gzip_truncated`, `bad_length`, ...); null = sound
        pa.field("error_detail", pa.string()),  # at most 200 characters, never content
    ]
)
"""One landed record, as `formats` reads it and `ingest` judges it."""

FIELDS: Mapping[str, Sequence[str]] = {
    "text": ("text", "content", "raw_content", "contents"),
    "url": ("url",),
    "id": ("id",),
    "date": ("date", "timestamp", "crawled_at", "date_download"),
    "source": ("source",),
    "html": (),
}
"""The fields of JSON lines and rows of tables that become columns of a record (`id` as `record_id`, `date` as
`crawled_at`, `html` as `payload`, in place of a text): the names by which each is looked for, in order. The first that
a record has is read. A name with dots that no field has is a path: `doc.body` is the field `body` of `doc`."""

PARENT = "parent"
"""Column: `id` of the document that a generated one was made of; null of a source."""

KNOWN_BY = ("id", "url", PARENT)
"""Columns by which a document is known to who asks for it, or takes it down; rows may lack some of them.

A generated document is that of its parent: it has an id of its own, and the address of its parent.
"""

TYPE = "type"
"""Column: the type of a file, `html`, `text` or another of `file_types`; null for no known type, and for no file."""

PAGE = pa.schema(
    [
        *list(LOCATOR),
        RECORD.field("kind"),
        pa.field("content_type", pa.string()),
        pa.field("payload", pa.large_binary()),
        pa.field("text", pa.large_string()),
        pa.field("metadata", pa.string()),
        pa.field(TYPE, pa.string()),
    ]
)
"""A page worth extracting: HTML or another type of file in `payload`, or ready text in `text`."""

IMAGE_TEXTS = "image_texts"
"""Column: the pages of a file that a model read as images, with their texts; null where none had to be."""

IMAGE_TEXT = pa.list_(pa.struct([("page", pa.int32()), ("text", pa.large_string())]))

DOCUMENT = pa.schema(
    [
        *list(LOCATOR),
        pa.field("id", pa.string()),  # 32 hex digits: 128-bit hash of the normalized text
        pa.field("text", pa.large_string()),
        pa.field("title", pa.string()),
        pa.field("chars", pa.int64()),  # code points of `text`
    ]
)
"""A document: identity, text, origin. Later stages append columns and never reorder these."""

HTTP_RIGHTS = "http-rights"
"""Key of a record's `metadata`: its header fields that say how it may be used, by name (`header_fields.RIGHTS`)."""

ROBOTS = "robots"
"""The `kind` of the record of a robots.txt: it is no page, and says what its host allows."""

RIGHT = pa.struct(
    [
        pa.field("signal", pa.string()),  # what is said: `robots_txt`, `noai`, ... (`text.rights.signals.SIGNALS`)
        pa.field("value", pa.string()),  # how it was said: the line, word or address; at most 200 characters
        pa.field("source", pa.string()),  # where: `robots.txt`, `http x-robots-tag`, `html meta`, ...
        pa.field("agent", pa.string()),  # whom it is said to; `*` for everybody
        pa.field("at", pa.string()),  # when a robots.txt was crawled; null where the record itself says it
    ]
)
"""A signal that whoever publishes a page gives about its use."""

RIGHTS = pa.schema(
    [
        pa.field("rights", pa.list_(RIGHT)),  # all signals in force at the crawl; empty if there are none
        pa.field("license", pa.string()),  # SPDX id of the license that the page links to; null if none, or several
        pa.field("robots_txt", pa.string()),  # `allowed`, `disallowed`, `unreachable`; null: no robots.txt landed
        pa.field("opt_out", pa.string()),  # the first signal of `SIGNALS` that the policy tags; null if there is none
    ]
)
"""What `check_rights` says of a page; its documents carry it."""

EDIT_SPAN = pa.struct(
    [
        pa.field("rule", pa.string()),  # `<filter>:<why>`
        pa.field("start", pa.int64()),  # first code point that was removed, of the text that the filter got
        pa.field("end", pa.int64()),  # past the last one
    ]
)
"""A stretch of a text that a filter took out."""

SEAM_SPAN = pa.struct(
    [
        pa.field("kind", pa.string()),  # `lead_in`, `heading`, `doubled` or `scrap`
        pa.field("start", pa.int64()),  # first code point, of the text that the stage's own removal left
        pa.field("end", pa.int64()),  # past the last one
    ]
)
"""A line that led to what a stage removed, or was left behind by it, and so was removed, too."""

BLOCK = pa.struct(
    [
        pa.field("score", pa.int16()),  # log-odds that it is main text, times 64
        pa.field("words", pa.int32()),  # each letter of a script without blanks is one
        pa.field("kept", pa.bool_()),  # whether it is in the text
        pa.field("start", pa.int32()),  # its first code point of the text that `extract` wrote; null: it is not there
        pa.field("end", pa.int32()),  # past the last one
        pa.field("page", pa.int32()),  # of a file with pages: that on which it begins, from 1
    ]
)
"""A block that a page shows, and what was decided on it; never its text."""

EMBEDDING, EMBEDDING_MODEL = "embedding", "embedding_model"
"""Columns: a vector of the text in float16, and the name of the model that made it."""

EMBEDDING_LANGUAGES = "embedding_languages"
"""Column: the languages that the model's card names, sorted and with commas between; null where it names none."""

SEAMS = "seams"

SEAM_COLUMNS = pa.schema(
    [
        pa.field(SEAMS, pa.int64()),  # seams that the stage left where it took something out (`text.edits.seams`)
        pa.field("seam_spans", pa.list_(SEAM_SPAN)),
    ]
)
"""What a stage writes that takes stretches out of texts."""

GENERATION = pa.struct(
    [
        pa.field("prompt", pa.string()),  # its name
        pa.field("prompt_digest", pa.string()),  # 32 hex digits of what the prompt says
        pa.field("start", pa.int64()),  # first code point of the source's text that the model read
        pa.field("end", pa.int64()),  # past the last one
        pa.field("tokens_in", pa.int64()),
        pa.field("tokens_out", pa.int64()),
        pa.field("seed", pa.int64()),  # follows from the window, prompt, model and params
        pa.field("model", pa.string()),  # `name@` and 16 hex digits of its digest
        pa.field("model_license", pa.string()),  # as its card says; null if it says none
    ]
)
"""How a text was generated, and of which stretch of its source."""

GENERATED = pa.struct(
    [
        *list(GENERATION),
        pa.field("text", pa.large_string()),  # null where there is none
        pa.field("stop", pa.string()),  # `generators.generator.Stop`
        pa.field("detail", pa.string()),  # more of that, never content; null where there is no more to say
    ]
)
"""A text that a model wrote of a document, or was asked for."""

GENERATED_TEXTS = "generated"
"""Column: the texts that a model wrote of a document, a list of `GENERATED`."""

N_GENERATED = "n_generated"
"""Column: how many generated texts a document brings, each of which becomes a row or a rejection."""

ORIGIN, OF_SOURCE, OF_GENERATOR = "origin", "source", "generated"
"""Column: what a document is, a source that was landed, or a text that was generated of one; and its two values."""


def brings_offspring(columns: pa.Schema) -> bool:
    """Return whether rows say how many generated texts they bring."""
    return N_GENERATED in columns.names and pa.types.is_integer(columns.field(N_GENERATED).type)


OFFSPRING = pa.schema(
    [
        pa.field(ORIGIN, pa.string()),  # `OF_SOURCE` or `OF_GENERATOR`
        pa.field(PARENT, pa.string()),  # `id` of the document that a generated one was made of; null of a source
        pa.field("generation", GENERATION),  # null of a source
    ]
)
"""What documents have behind the stage that makes documents of generated texts."""

REDACTION = pa.struct(
    [
        pa.field("kind", pa.string()),  # `email`, `card` or another of `text.pii.kinds`
        pa.field("start", pa.int64()),  # first code point that was replaced, of the text that `scrub_pii` got
        pa.field("end", pa.int64()),  # past the last one
        pa.field("at", pa.int64()),  # first code point of what replaced it, of the text that `scrub_pii` wrote
        pa.field("action", pa.string()),  # `redact`, `pseudonymize` or `drop`
    ]
)
"""A stretch of a text that was personal data; never the value."""

ENTITY = pa.struct(
    [
        pa.field("label", pa.string()),  # as the pipeline names it, such as `PERSON`
        pa.field("start", pa.int64()),  # first code point of `text`
        pa.field("end", pa.int64()),  # past the last one
    ]
)
"""A name in a text; never the name, which is in `text` at its place."""

TOXIC_SPAN = pa.struct(
    [
        pa.field("kind", pa.string()),  # the label of the word: `obscene`, `threat`, `insult`, `identity_hate`, `adult`
        pa.field("start", pa.int64()),  # first code point of the text that `filter_toxicity` got
        pa.field("end", pa.int64()),  # past the last one
        pa.field("used", pa.bool_()),  # false where it is mentioned, or harmless without others
        pa.field("at", pa.int64()),  # first code point of what replaced it, null where nothing did
    ]
)
"""A word of a lexicon in a text; never the word."""

VERDICT = pa.schema([pa.field("reason", pa.string()), pa.field("evidence", pa.string())])
"""Appended by kernels that reject rows; tasks split rows on it, and it is never part of kept shards."""

REASON_PATTERN = r"^[a-z][a-z0-9_]*:[a-z0-9_]+$"
"""`<stage or filter>:<why>`; the prefix `error` means quarantine."""
