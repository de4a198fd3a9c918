"""Reads a PDF: from bytes to HTML of its pages."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pypdfium2 as pdfium2
from pypdfium2 import raw

from pipeline_tasks.text.page.file_text import DAMAGED, FileRefused, FileText
from refinery_files.pdf import pdfium
from refinery_files.pdf.blocks import Block, blocks_of, tagged_blocks
from refinery_files.pdf.grids import Grid, grids_of, with_grids
from refinery_files.pdf.hidden import Sight
from refinery_files.pdf.joining import Joiner, goes_on
from refinery_files.pdf.lines import Line, lines_of, read_characters
from refinery_files.pdf.markup import html_of
from refinery_files.pdf.metadata import day_of, language_of, title_of
from refinery_files.pdf.opening import opened
from refinery_files.pdf.rules import read_rules
from refinery_files.pdf.running import without_running
from refinery_files.pdf.structure import Element, read_structure
from refinery_files.pdf.tables import with_tables
from refinery_files.pdf.unread import is_garbled, is_scanned

# characters below which a page may be an image of text
_FEW = 100
_NOTHING: tuple[list[int], np.ndarray] = ([], np.zeros(0, np.int32))
# characters of one page; what has more is no page of text
_MOST_CHARACTERS = 400_000


@dataclass(slots=True)
class Page:
    """A page: its lines in the order of the file, its ends, and whether its text is not to be had."""

    lines: list[Line]
    top: float
    bottom: float
    is_unread: bool
    grids: list[Grid] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    """The structure that it declares."""
    is_lost: bool = False
    """Whether it cannot be opened."""
    is_image: bool = False
    """Whether it is an image of its text."""


def read(body: bytes) -> FileText:
    """Return the text of a PDF.

    Raises:
        FileRefused: if it needs a password, has no page that can be opened, or more than `opening.MOST_PAGES`.
    """
    document, is_cut = opened(body)
    try:
        is_tagged = bool(raw.FPDFCatalog_IsTagged(document.raw))
        sight = Sight()
        pages = [_page(document, number, is_tagged, sight) for number in range(len(document))]
        while is_cut and pages and not pages[-1].lines and (pages[-1].is_lost or not pages[-1].is_unread):
            pages.pop()
        if _is_damaged(pages, is_cut):
            raise FileRefused(DAMAGED)
        return FileText(
            _parts(pages),
            is_paged=True,
            unread=tuple(number for number, page in enumerate(pages, 1) if page.is_unread),
            title=title_of(document),
            language=language_of(document),
            published=day_of(document),
            is_cut=is_cut,
        )
    finally:
        document.close()


def _is_damaged(pages: list[Page], is_cut: bool) -> bool:
    """Return whether there is no word because some pages cannot be opened, or the file's end is missing.

    Characters of a cut file are garbled because their fonts are missing; images in it are whole or cannot be opened.
    """
    if any(page.lines for page in pages):
        return False
    if is_cut:
        return not any(page.is_image for page in pages)
    return any(page.is_lost for page in pages) and not any(page.is_unread and not page.is_lost for page in pages)


def _page(document: pdfium2.PdfDocument, number: int, is_tagged: bool, sight: Sight) -> Page:
    """Return a page; one that cannot be opened has no text."""
    try:
        page = document[number]
        text_page = page.get_textpage()
    except pdfium2.PdfiumError:
        return Page([], 0, 1, is_unread=True, is_lost=True)
    try:
        count = min(text_page.count_chars(), _MOST_CHARACTERS)
        structure = read_structure(page.raw) if is_tagged and count else None
        # tags say what is a table, and few characters that there may be an image instead
        drawn = _drawn(page) if structure is None or count < _FEW else _NOTHING
        rules = read_rules(*drawn)
        by_mark, hidden = structure.by_mark if structure else None, partial(sight.hidden, page)
        found = read_characters(text_page.raw, count, by_mark, hidden, partial(_drawn, page)) if count > 0 else ()
        lines = [line for characters in found for line in lines_of(characters, rules.down)]
        is_image = count < _FEW and is_scanned(count, _image_share(page, *drawn))
        unread = is_image or (count >= _FEW and is_garbled(" ".join(line.text for line in lines)))
        elements = structure.elements if structure else []
        kept = [] if unread else lines
        return Page(kept, *_ends(page), unread, grids_of(rules), elements, is_image=is_image)
    finally:
        text_page.close()
        page.close()


def _ends(page: pdfium2.PdfPage) -> tuple[float, float]:
    """Return the upper and the lower end of a page, with y downwards."""
    _, bottom, _, top = page.get_bbox()
    return -top, -bottom


def _drawn(page: pdfium2.PdfPage) -> tuple[list[int], np.ndarray]:
    """Return a page's objects, and their types."""
    objects = pdfium.objects_of(pdfium.address(page.raw), raw.FPDFPage_CountObjects(page.raw))
    return objects, pdfium.types_of(objects)


def _image_share(page: pdfium2.PdfPage, objects: list[int], kinds: np.ndarray) -> float:
    """Return the share of a page that its images fill."""
    pictured = np.isin(kinds, (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM))
    images = [one for one, is_image in zip(objects, pictured.tolist(), strict=True) if is_image]
    if not images:
        return 0.0
    left, bottom, right, top = pdfium.bounds_of(images).T
    width, height = page.get_size()
    filled = float(((right - left) * (top - bottom)).clip(0).sum())
    return filled / max(1.0, float(width * height))


def _parts(pages: list[Page]) -> tuple[str, ...]:
    kept = without_running([page.lines for page in pages], [(page.top, page.bottom) for page in pages])
    lines = [line for page in kept for line in page]
    body, has_code = _body(lines)
    found = [_blocks(kept_lines, page, body, has_code) for kept_lines, page in zip(kept, pages, strict=True)]
    _join_pages(found)
    _set_levels([block for page in found for block in page])
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


def _blocks(lines: list[Line], page: Page, body: float, has_code: bool) -> list[Block]:
    """Return the blocks of a page in reading order."""
    inside = sum(len(line.text) for line in lines if line.element >= 0)
    if inside * 2 > sum(len(line.text) for line in lines):
        return _with_joined_columns(tagged_blocks(lines, page.elements, body, has_code))
    blocks: list[Block] = []
    run: list[Line] = []
    for one in _with_tables(lines, page.grids, has_code):
        if isinstance(one, Line):
            run.append(one)
            continue
        blocks += blocks_of(run, body, has_code)
        run = []
        blocks.append(one)
    return _with_joined_columns(blocks + blocks_of(run, body, has_code))


def _with_tables(lines: list[Line], grids: list[Grid], has_code: bool) -> list[Line | Block]:
    """Return lines in their order, and tables in the place of their lines."""
    found: list[Line | Block] = []
    run: list[Line] = []
    for one in with_grids(lines, grids):
        if isinstance(one, Line):
            run.append(one)
        else:
            found += [*with_tables(run, has_code), one]
            run = []
    return found + with_tables(run, has_code)


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
        elif last is not None and page and _is_cut_row(last, page[0]):
            cells = page[0].rows.pop(0)
            last.rows[-1] = [f"{before}\n{after}".strip() for before, after in zip(last.rows[-1], cells, strict=True)]
        if page:
            last = page[-1]


def _is_cut_row(before: Block, after: Block) -> bool:
    """Return whether the first row of a table is the rest of the last one on the page before: not all cells go on."""
    if before.kind != "table" or after.kind != "table" or len(after.rows) < 2:
        return False
    return len(before.rows[-1]) == len(after.rows[0]) and not all(after.rows[0])


def _set_levels(blocks: list[Block]) -> None:
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
