"""Reads a PDF: from bytes to HTML of its pages."""

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import pypdfium2 as pdfium2
from pypdfium2 import raw

from pipeline_tasks.text.page.file_text import DAMAGED, FileRefused, FileText
from refinery_files.pdf import pdfium
from refinery_files.pdf.blocks import Block, blocks_of, is_labeled, tagged_blocks
from refinery_files.pdf.grids import Grid, grids_of, with_grids
from refinery_files.pdf.hidden import Sight
from refinery_files.pdf.inline import with_inline_code
from refinery_files.pdf.joining import Joiner, goes_on, goes_on_below
from refinery_files.pdf.lines import Found, Line, lines_of, read_characters
from refinery_files.pdf.markup import html_of
from refinery_files.pdf.metadata import day_of, language_of, title_of
from refinery_files.pdf.opening import opened
from refinery_files.pdf.rules import NONE, read_rules
from refinery_files.pdf.running import without_running
from refinery_files.pdf.structure import Element, read_structure
from refinery_files.pdf.tables import with_tables
from refinery_files.pdf.unread import is_garbled, is_lost, is_scanned

# characters below which a page may be an image of text
_FEW = 100
# characters of one page; what has more is no page of text
_MOST_CHARACTERS = 400_000
# blocks of a figure that stand between a paragraph and its rest
_MOST_BETWEEN = 4


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
    has_lost_fonts: bool = False
    """Whether it is unread because fonts are missing in the file."""


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
            title=title_of(document, [line.text for line in pages[0].lines] if pages else ()),
            language=language_of(document),
            published=day_of(document),
            is_cut=is_cut,
        )
    finally:
        document.close()


def _is_damaged(pages: list[Page], is_cut: bool) -> bool:
    """Return whether there is no word because pages or fonts cannot be opened, or the file's end is missing.

    Characters of a cut file are garbled because their fonts are missing; images in it are whole or cannot be opened.
    """
    if any(page.lines for page in pages):
        return False
    if is_cut:
        return not any(page.is_image for page in pages)
    unread = [page.is_lost or page.has_lost_fonts for page in pages if page.is_unread]
    return bool(unread) and all(unread)


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
        # tags say what is a table
        drawn = _drawn(page) if structure is None else None
        rules = read_rules(*drawn) if drawn else NONE
        by_mark, hidden = structure.by_mark if structure else None, partial(sight.hidden, page)
        found = read_characters(text_page.raw, count, by_mark, hidden, partial(_drawn, page)) if count > 0 else Found()
        elements = structure.elements if structure else []
        lines = [line for one in found.characters for line in lines_of(with_inline_code(one, elements), rules.down)]
        few = count - found.lost < _FEW or found.lost == found.visible
        is_image = few and is_scanned(
            sum(len(line.text) for line in lines), _image_share(page, *(drawn or _drawn(page)))
        )
        has_lost_fonts = not is_image and is_lost(found.visible, found.lost)
        is_odd = count >= _FEW and is_garbled(" ".join(line.text for line in lines))
        unread = is_image or has_lost_fonts or is_odd
        kept = [] if unread else lines
        return Page(
            kept,
            *_ends(page),
            unread,
            grids_of(rules),
            elements,
            is_image=is_image,
            has_lost_fonts=has_lost_fonts,
        )
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
    """Return blocks of which paragraphs go on in the next column, or below a figure."""
    joined: list[Block] = []
    for block in blocks:
        is_above = bool(joined) and block.top < joined[-1].bottom - block.size
        if is_above and goes_on(joined[-1], block):
            joined[-1].lines += block.lines
        elif (torn := _torn(joined, [block], are_apart=False)) is not None:
            torn[0].lines += block.lines
        else:
            joined.append(block)
    return joined


def _torn(before: list[Block], after: list[Block], *, are_apart: bool) -> tuple[Block, Block] | None:
    """Return a paragraph and its rest, between which a figure stands: white, tables, and captions of another size."""
    for rest in after[:_MOST_BETWEEN]:
        for block in before[: -_MOST_BETWEEN - 1 : -1]:
            if block.kind == rest.kind == "p" and goes_on_below(block, rest, are_apart=are_apart):
                return block, rest
            if not _is_of_figure(block, rest):
                break
        if before and not _is_of_figure(rest, before[-1]):
            break
    return None


def _is_of_figure(block: Block, text: Block) -> bool:
    return block.kind == "table" or (block.kind == "p" and abs(block.size - text.size) > 0.08 * text.size)


def _join_pages(pages: list[list[Block]]) -> None:
    """Move what goes on with a page's last paragraph to it."""
    for before, page in reversed([*pairwise(pages)]):
        _cut_head(before, page)
    last: Block | None = None
    for before, page in pairwise(pages):
        last = before[-1] if before else last
        if last is None or not page:
            continue
        rest, block = _rest_of(before, last, page)
        if rest is not None:
            page.remove(rest)
            block.lines += rest.lines
            block.is_open = rest.is_open
            block.is_numbered = block.is_numbered or (block.kind == "li" and is_labeled(block.lines))
        elif _is_cut_row(last, page[0]):
            cells = page[0].rows.pop(0)
            last.rows[-1] = [f"{one}\n{other}".strip() for one, other in zip(last.rows[-1], cells, strict=True)]


def _rest_of(before: list[Block], last: Block, page: list[Block]) -> tuple[Block | None, Block]:
    """Return the block of a page that is the rest of one of the page before, and that one.

    A file declares it, or it stands at the ends of the pages; figures and tables may stand between.
    """
    opened = next((block for block in reversed(before or [last]) if block.is_open), None)
    rest = next((block for block in page if block.is_rest), None)
    if opened is not None and rest is not None and opened.kind == rest.kind:
        return rest, opened
    if goes_on(last, page[0]):
        return page[0], last
    torn = _torn(before, page, are_apart=True)
    return (torn[1], torn[0]) if torn else (None, last)


def _cut_head(before: list[Block], after: list[Block]) -> None:
    """Take the head of a table from a page on which it is repeated."""
    if not before or not after or before[-1].kind != "table" or after[0].kind != "table":
        return
    if len(after[0].rows) > 1 and after[0].rows[0] == before[-1].rows[0]:
        after[0].rows.pop(0)
        del after[0].begun[:1]


def _is_cut_row(before: Block, after: Block) -> bool:
    """Return whether the first row of a table is the rest of the last one on the page before.

    A file declares it, or not all of its cells go on.
    """
    if before.kind != "table" or after.kind != "table" or len(after.rows) < 2:
        return False
    is_rest = after.begun[0] if after.begun else not all(after.rows[0])
    return is_rest and len(before.rows[-1]) == len(after.rows[0])


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
