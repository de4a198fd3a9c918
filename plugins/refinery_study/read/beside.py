"""Reads what stands beside a document that a person judges: what its landed page shows, and what stages cut out."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import maker_of, makes_documents
from pipeline_tasks.inspect.document.text_edits import Piece, marked_whole, scrubbed
from pipeline_tasks.inspect.page_again import NoPage, page_again
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import read_manifest, read_shards
from refinery_study.read.sample import Sampled

pc: Any = pyarrow.compute

LONGEST = 200_000
"""Characters of a page's text that are shown."""

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

    Nothing raises for what has landed: the sentence says what is wrong with it.
    """
    from pipeline_tasks.text.page.normal_form import normalize  # compiles loops, and pages are imported with DAGs

    try:
        result = page_again(root, version, document, "resiliparse")
    except NoPage as reason:
        return LandedPage(why_not=str(reason))
    shown = str(normalize(pa.array([str(result.text, "utf-8")], pa.large_string())).texts[0].as_py() or "")
    [text] = scrubbed(root, version, [shown[:LONGEST]], document.language, document.url)
    return LandedPage(tuple(compared_lines(text, document.text)))


def compared_lines(shown: str, text: str) -> Iterator[Line]:
    """Yield the lines that a page shows, each with whether a text has its letters and digits in a row."""
    known = _letters(text)
    return (Line(line, _letters(line) in known) for line in shown.split("\n"))


def _letters(text: str) -> str:
    return _OTHER.sub("", text).casefold()


# --- Cuts -------------------------------------------------------------------------------------------------------------


def cut_pieces(root: str, version: Version, document: Sampled) -> Sequence[Piece]:
    """Return the text of a document, with the stretches marked that stages behind `extract` cut, added or replaced.

    Personal data is replaced in what they cut, too. Reads places of all documents, and one shard.
    """
    before = "" if makes_documents(document.stage) else _extracted(root, version, document)
    if not before:
        return marked_whole(document.text, document.text)
    [before] = scrubbed(root, version, [before], document.language, document.url)
    return marked_whole(before, document.text)


def _extracted(root: str, version: Version, document: Sampled) -> str:
    """Return the text that `extract` gave a document, "" where no row of it has the document's place."""
    maker = maker_of(version.manifests)
    for shard in read_manifest(root, version.manifests[maker]).shards if maker else ():
        if any(_rows_of(batch, document).num_rows for batch in read_shards(root, [shard], ("file", "offset"))):
            for batch in read_shards(root, [shard], ("file", "offset", "text")):
                for text in _rows_of(batch, document).column("text").to_pylist():
                    return str(text or "")
    return ""


def _rows_of(batch: pa.RecordBatch, document: Sampled) -> pa.RecordBatch:
    is_there = pc.and_(pc.equal(batch["file"], document.file), pc.equal(batch["offset"], document.offset))
    return batch.filter(is_there)
