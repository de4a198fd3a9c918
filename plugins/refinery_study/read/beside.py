"""Reads what stands beside a document that a person judges: what its landed page shows, and what stages cut out."""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.cards import maker_of, makes_documents
from pipeline_tasks.inspect.document.text_edits import Piece, marked_whole, scrubbed
from pipeline_tasks.inspect.page_again import Landed, NoPage, draw_pages, landed, read_again
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.store.reading import clears_personal_data, read_manifest, read_shards
from pipeline_tasks.text.page.sandbox_messages import Result
from refinery_study.read.sample import Sampled

pc: Any = pyarrow.compute

LONGEST = 200_000
"""Characters of a page's text that are shown."""

MOST_DRAWN, WIDTH = 8, 900
"""Pages of a file that are drawn, and the pixels that their images are wide."""

_OTHER = re.compile(r"[\W_]+")


class Line(NamedTuple):
    """A line that a page shows, and whether the document has it."""

    text: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class FilePage:
    """A page of a file: its lines, none where its text is not to be had (`is_read`), and how it looks, as PNG.

    `is_withheld` says that its image is not shown, as it may have personal data that the text has not.
    """

    number: int
    lines: tuple[Line, ...] = ()
    is_read: bool = True
    image: bytes = b""
    is_withheld: bool = False

    @property
    def address(self) -> str:
        """The image as an address of its own, "" without one."""
        return f"data:image/png;base64,{b64encode(self.image).decode()}" if self.image else ""


@dataclass(frozen=True, slots=True)
class LandedPage:
    """All that a document's landed page shows, without its markup, or a sentence that says why it is not to be had.

    Of a file with pages, `pages` has these, and `lines` those of all of them.
    """

    lines: tuple[Line, ...] = ()
    why_not: str = ""
    pages: tuple[FilePage, ...] = ()


def landed_page(root: str, version: Version, document: Sampled, *, draws: bool = True) -> LandedPage:
    """Return what the page of a document shows: links, menus and all, without the personal data that is replaced.

    Of a file with pages that has a look, the first `MOST_DRAWN` are drawn, if it `draws`. Nothing raises for what has
    landed: the sentence says what is wrong with it.
    """
    try:
        found = landed(root, version, document)
        result = read_again(found, "resiliparse")
    except NoPage as reason:
        return LandedPage(why_not=str(reason))
    if result.pages:
        return _with_pages(root, version, document, found if draws else None, result)
    [text] = _shown(root, version, document, [str(result.text, "utf-8")])
    return LandedPage(tuple(compared_lines(text, document.text)))


def _shown(root: str, version: Version, document: Sampled, texts: Sequence[str]) -> list[str]:
    """Return texts in normal form and without the personal data that is replaced, `LONGEST` characters of all."""
    return scrubbed(root, version, _normal(texts), document.language, document.url)


def _normal(texts: Sequence[str]) -> list[str]:
    from pipeline_tasks.text.page.normal_form import normalize  # compiles loops, and pages are imported with DAGs

    left, shown = LONGEST, []
    for text in normalize(pa.array(texts, pa.large_string())).texts.to_pylist():
        shown.append(str(text or "")[:left])
        left -= len(shown[-1])
    return shown


def _with_pages(root: str, version: Version, document: Sampled, found: Landed | None, result: Result) -> LandedPage:
    """Return the pages of a file, drawn where nothing of a page is withheld from its text.

    What is on a page without text is not known: it is drawn only where no personal data is replaced in the version.
    """
    texts = _normal(_texts_of_pages(result))
    clear = scrubbed(root, version, texts, document.language, document.url)
    conceals = any(clears_personal_data(stage) for stage in version.manifests)
    unread = {*result.unread}
    withheld = {
        number
        for number, (text, shown) in enumerate(zip(texts, clear, strict=True), 1)
        if shown != text or (conceals and number in unread)
    }
    numbers = [number for number in range(1, result.pages + 1) if number not in withheld][:MOST_DRAWN]
    images = dict(draw_pages(found, numbers, WIDTH)) if found else {}
    pages = [
        FilePage(
            number,
            tuple(compared_lines(text, document.text)) if text else (),
            is_read=number not in unread,
            image=images.get(number, b""),
            is_withheld=number in withheld,
        )
        for number, text in enumerate(clear, 1)
    ]
    return LandedPage(tuple(line for page in pages for line in page.lines), pages=tuple(pages))


def _texts_of_pages(result: Result) -> list[str]:
    """Return the text of each page of a file, "" of one without."""
    from pipeline_tasks.text.page.block_evidence import END, PAGE, START, unpacked

    texts: list[list[str]] = [[] for _ in range(result.pages)]
    for block in unpacked(result.blocks or b""):
        texts[block[PAGE] - 1].append(str(result.text[max(block[START], 0) : max(block[END], 0)], "utf-8"))
    return ["\n\n".join(blocks) for blocks in texts]


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
