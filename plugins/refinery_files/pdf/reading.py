"""Reads a PDF: from bytes to HTML of its pages."""

import ctypes
from collections import Counter
from dataclasses import dataclass, field

import pypdfium2 as pdfium2
import pypdfium2.raw as raw

from pipeline_tasks.text.page.file_text import FileRefused, FileText
from refinery_files.pdf import pdfium
from refinery_files.pdf.blocks import Block, blocks_of, tagged_blocks
from refinery_files.pdf.joining import Joiner, goes_on
from refinery_files.pdf.lines import Line, lines_of, read_characters
from refinery_files.pdf.markup import html_of
from refinery_files.pdf.structure import Element, read_structure
from refinery_files.pdf.running import without_running
from refinery_files.pdf.tables import with_tables
from refinery_files.pdf.unread import is_garbled, is_scanned

MOST_PAGES = 10_000
# characters of one page; what has more is no page of text
_MOST_CHARACTERS = 400_000


@dataclass(slots=True)
class Page:
    """A page: its lines in the order of the file, its ends, and whether its text is not to be had."""

    lines: list[Line]
    top: float
    bottom: float
    is_unread: bool
    elements: list[Element] = field(default_factory=list)
    """The structure that it declares."""


def read(body: bytes) -> FileText:
    """Return the text of a PDF.

    Raises:
        FileRefused: if it needs a password, has no page that can be opened, or more than `MOST_PAGES`.
    """
    document = _opened(body)
    try:
        count = len(document)
        if count > MOST_PAGES:
            raise FileRefused("too_large")
        if not count:
            raise FileRefused("damaged")
        is_tagged = bool(raw.FPDFCatalog_IsTagged(document.raw))
        pages = [_page(document, number, is_tagged) for number in range(count)]
        return FileText(
            _parts(pages),
            is_paged=True,
            unread=tuple(number for number, page in enumerate(pages, 1) if page.is_unread),
        )
    finally:
        document.close()


def _opened(body: bytes) -> pdfium2.PdfDocument:
    try:
        return pdfium2.PdfDocument(body)
    except pdfium2.PdfiumError as error:
        raise FileRefused("encrypted" if error.err_code == raw.FPDF_ERR_PASSWORD else "damaged") from error


def _page(document: pdfium2.PdfDocument, number: int, is_tagged: bool) -> Page:
    """Return a page; one that cannot be opened has no text."""
    try:
        page = document[number]
        text_page = page.get_textpage()
    except pdfium2.PdfiumError:
        return Page([], 0, 1, is_unread=True)
    try:
        count = min(text_page.count_chars(), _MOST_CHARACTERS)
        structure = read_structure(page.raw) if is_tagged else None
        by_mark = structure.by_mark if structure else None
        found = read_characters(pdfium.address(text_page.raw), count, by_mark) if count > 0 else ()
        lines = [line for characters in found for line in lines_of(characters)]
        top, bottom = _ends(lines, page)
        text = " ".join(line.text for line in lines)
        unread = is_scanned(count, _image_share(page)) if count < 100 else is_garbled(text)
        return Page([] if unread else lines, top, bottom, unread, structure.elements if structure else [])
    finally:
        text_page.close()
        page.close()


def _ends(lines: list[Line], page: pdfium2.PdfPage) -> tuple[float, float]:
    left, bottom, right, top = page.get_bbox()
    return -top, -bottom


def _image_share(page: pdfium2.PdfPage) -> float:
    """Return the share of a page that its largest image fills."""
    at = pdfium.address(page.raw)
    objects = pdfium.objects_of(at, raw.FPDFPage_CountObjects(page.raw))
    kinds = pdfium.types_of(objects)
    images = [one for one, kind in zip(objects, kinds, strict=True) if kind in (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM)]
    if not images:
        return 0.0
    left, bottom, right, top = pdfium.bounds_of(images).T
    width, height = page.get_size()
    return float(((right - left) * (top - bottom)).clip(0).sum()) / max(1.0, width * height)


def _parts(pages: list[Page]) -> tuple[str, ...]:
    kept = without_running([page.lines for page in pages], [(page.top, page.bottom) for page in pages])
    lines = [line for page in kept for line in page]
    body, has_code = _body(lines)
    found = [
        _blocks(kept_lines, page.elements, body, has_code) for kept_lines, page in zip(kept, pages, strict=True)
    ]
    _join_pages(found)
    _set_levels([block for page in found for block in page], body)
    joiner = Joiner(lines)
    return tuple(html_of(page, joiner) for page in found)


def _body(lines: list[Line]) -> tuple[float, bool]:
    """Return the size of most characters, and whether fixed pitch means code: not where all is of fixed pitch."""
    sizes: Counter[float] = Counter()
    mono = total = 0
    for line in lines:
        sizes[round(line.size * 2) / 2] += len(line.text)
        total += len(line.text)
        mono += len(line.text) if line.is_mono else 0
    return (sizes.most_common(1)[0][0] if sizes else 10.0), mono < 0.8 * total


def _blocks(lines: list[Line], elements: list[Element], body: float, has_code: bool) -> list[Block]:
    """Return the blocks of a page in reading order."""
    inside = sum(len(line.text) for line in lines if line.element >= 0)
    if inside * 2 > sum(len(line.text) for line in lines):
        return _with_joined_columns(tagged_blocks(lines, elements, body, has_code))
    blocks: list[Block] = []
    run: list[Line] = []
    for one in with_tables(lines, has_code):
        if isinstance(one, Line):
            run.append(one)
            continue
        blocks += blocks_of(run, body, has_code)
        run = []
        blocks.append(one)
    return _with_joined_columns(blocks + blocks_of(run, body, has_code))


def _with_joined_columns(blocks: list[Block]) -> list[Block]:
    """Return blocks of which paragraphs go on in the next column."""
    joined: list[Block] = []
    for block in blocks:
        if joined and block.top < joined[-1].bottom - block.size and goes_on(joined[-1], block):
            joined[-1].lines += block.lines
        else:
            joined.append(block)
    return joined


def _join_pages(pages: list[list[Block]]) -> None:
    """Move what goes on with a page's last paragraph to it."""
    last: Block | None = None
    for page in pages:
        if last is not None and page and goes_on(last, page[0]):
            last.lines += page.pop(0).lines
        if page:
            last = page[-1]


def _set_levels(blocks: list[Block], body: float) -> None:
    """Give headings levels by their sizes and weights, the largest first."""
    styles: Counter[tuple[float, bool]] = Counter()
    for block in blocks:
        if block.kind == "h" and len(block.lines) > 4:
            block.kind = "p"
        if block.kind == "h":
            styles[_style(block)] += 1
    declared = {_style(block): block.level for block in reversed(blocks) if block.kind == "h" and block.level}
    order = {style: min(level, 6) for level, style in enumerate(sorted(styles, reverse=True), 1)} | declared
    for block in blocks:
        if block.kind == "h" and not block.level:
            block.level = order[_style(block)]


def _style(block: Block) -> tuple[float, bool]:
    return round(block.size * 2) / 2, block.lines[0].is_bold
