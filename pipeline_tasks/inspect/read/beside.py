"""Reads what stands beside a document that a person judges: what its landed page shows, and what stages cut out."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.binding import bind
from pipeline_tasks.counted import counted
from pipeline_tasks.errors import RefineryError
from pipeline_tasks.inspect.document.text_edits import Piece, marked_whole, scrubbed
from pipeline_tasks.inspect.read.sample import Sampled
from pipeline_tasks.landing.formats import read_records
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.recipe import LAND
from pipeline_tasks.stage import LANDING
from pipeline_tasks.stages import ingest
from pipeline_tasks.store import storage
from pipeline_tasks.store.reading import read_manifest, read_shards
from pipeline_tasks.text.page.main_text import DEEPEST
from pipeline_tasks.text.page.sandbox import Sandbox
from pipeline_tasks.text.page.sandbox_messages import Limits
from pipeline_tasks.text.page.sandbox_messages import Page as SandboxedPage

pc: Any = pyarrow.compute

MOST_FILE = 64 << 20
"""Bytes of a landed file that is read from its start, where its records cannot be found by their places."""

MOST_PAGE = 4 << 20
"""Bytes of a page that is parsed."""

LONGEST = 200_000
"""Characters of a page's text that are shown."""

SECONDS = 5.0
"""Seconds of processor time to parse a page."""

EXTRACT = "extract"
_OTHER = re.compile(r"[\W_]+")


class Line(NamedTuple):
    """A line that a page shows, and whether the document has it."""

    text: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class LandedPage:
    """All that a document's landed page shows, without its markup, or a sentence that says why it is not to be had."""

    lines: tuple[Line, ...] = ()
    why_not: str = ""


def landed_page(root: str, version: Version, document: Sampled) -> LandedPage:
    """Return what the page of a document shows: links, menus and all, without the personal data that is replaced.

    Reads one record by its place, or a landed file of at most MOST_FILE bytes from its start. A page of more than
    MOST_PAGE bytes is not parsed. Nothing raises for what has landed: the sentence says what is wrong with it.
    """
    try:
        payload, content_type = _payload(root, version, document)
    except FileNotFoundError:
        return LandedPage(why_not=f"The landed file {document.file} is not there any more.")
    except RefineryError as error:
        return LandedPage(why_not=f"Its landed record could not be read: {error}")
    except _NoPage as reason:
        return LandedPage(why_not=str(reason))
    shown = _visible(payload, content_type)
    if shown is None:
        return LandedPage(why_not="Its page could not be parsed in the time and memory that a page has.")
    [text] = scrubbed(root, version, [shown[:LONGEST]], document.language, document.url)
    return LandedPage(tuple(compared_lines(text, document.text)))


def compared_lines(shown: str, text: str) -> Iterator[Line]:
    """Yield the lines that a page shows, each with whether a text has its letters and digits in a row."""
    known = _letters(text)
    return (Line(line, _letters(line) in known) for line in shown.split("\n"))


def _letters(text: str) -> str:
    return _OTHER.sub("", text).casefold()


class _NoPage(Exception):
    """Says why a record has no page to show."""


def _payload(root: str, version: Version, document: Sampled) -> tuple[bytes, str]:
    """Return the bytes of a document's page, as `ingest` read it, and their content type."""
    stage = read_manifest(root, version.manifests[ingest.STAGE.name])
    record = _record(version, document, _fields(root, version, document.file))
    params = bind(ingest.STAGE, {**stage.params, "taken_down": ""})
    [page] = ingest.select_pages(iter([record]), params=params)
    payload = page.column("payload")[0].as_py()
    if payload is None:
        message = "Its landed record has a text and no HTML page."
        raise _NoPage(message)
    if len(payload) > MOST_PAGE:
        message = f"Its page has {counted(len(payload), 'byte')}; pages of up to {MOST_PAGE:,} are shown."
        raise _NoPage(message)
    return payload, page.column("content_type")[0].as_py() or ""


def _fields(root: str, version: Version, file: str) -> str:
    """Return how the records of a landed file name their fields, as its shard says."""
    if LAND not in version.manifests:
        return ""
    shards = read_manifest(root, version.manifests[LAND]).shards
    return next((shard.fields for shard in shards if shard.path == f"{LANDING}{file}"), "")


def _record(version: Version, document: Sampled, fields: str) -> pa.RecordBatch:
    """Return the landed record of a document as one row of `schema.RECORD`; its URL tells whether it is still there."""
    uri = f"{version.landing}/{document.file}"
    names = {"snapshot": version.snapshot, "batch_bytes": 1, "fields": json.loads(fields or "{}")}
    with storage.open_landed(uri) as stream:
        stream.seek(document.offset)
        first = next(read_records(document.file, stream, start=document.offset, **names))
        if _is_of(first, document):
            return first
        if (storage.connect(version.landing).size(document.file) or 0) > MOST_FILE:
            message = f"{document.file} is compressed as a whole, or a table, and has over {MOST_FILE >> 20} MiB."
            raise _NoPage(message)
        stream.seek(0)
        for batch in read_records(document.file, stream, **names):
            if batch["offset"][0].as_py() == document.offset and _is_of(batch, document):
                return batch
    message = f"{document.file} has no record of its URL at byte {document.offset:,}: the file was changed."
    raise _NoPage(message)


def _is_of(batch: pa.RecordBatch, document: Sampled) -> bool:
    is_sound = batch.num_rows == 1 and batch["kind"][0].as_py() != "damage"
    return is_sound and (batch["url"][0].as_py() or "") == document.url


def _visible(payload: bytes, content_type: str) -> str | None:
    """Return all that a page shows, parsed in a process of its own; None if that has failed."""
    from pipeline_tasks.text.page.normal_form import normalize  # compiles loops, and pages are imported with DAGs

    page = SandboxedPage(payload, content_type, depth=DEEPEST + 1)  # of so deep a page the main part is not looked for
    with Sandbox(Limits(seconds=SECONDS)) as sandbox:
        [result] = sandbox.process("resiliparse", [page])
    if result.outcome != "done":
        return None
    return str(normalize(pa.array([str(result.text, "utf-8")], pa.large_string())).texts[0].as_py() or "")


# --- Cuts -------------------------------------------------------------------------------------------------------------


def cut_pieces(root: str, version: Version, document: Sampled) -> Sequence[Piece]:
    """Return the text of a document, with the stretches marked that stages behind `extract` cut, added or replaced.

    Personal data is replaced in what they cut, too. Reads places of all documents, and one shard.
    """
    before = "" if document.stage == EXTRACT else _extracted(root, version, document)
    if not before:
        return marked_whole(document.text, document.text)
    [before] = scrubbed(root, version, [before], document.language, document.url)
    return marked_whole(before, document.text)


def _extracted(root: str, version: Version, document: Sampled) -> str:
    """Return the text that `extract` gave a document, "" where no row of it has the document's place."""
    if EXTRACT not in version.manifests:
        return ""
    for shard in read_manifest(root, version.manifests[EXTRACT]).shards:
        if any(_rows_of(batch, document).num_rows for batch in read_shards(root, [shard], ("file", "offset"))):
            for batch in read_shards(root, [shard], ("file", "offset", "text")):
                for text in _rows_of(batch, document).column("text").to_pylist():
                    return str(text or "")
    return ""


def _rows_of(batch: pa.RecordBatch, document: Sampled) -> pa.RecordBatch:
    is_there = pc.and_(pc.equal(batch["file"], document.file), pc.equal(batch["offset"], document.offset))
    return batch.filter(is_there)
