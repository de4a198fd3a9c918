"""Shows what `extract` decided on each block of a document's page, with texts from the landed page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_tasks.counted import counted
from pipeline_tasks.inspect.document.text_edits import scrubbed
from pipeline_tasks.inspect.page_again import NoPage, Place, page_again
from pipeline_tasks.publish.logs.version_log import Version
from pipeline_tasks.text.page.main_text import ALL_BLOCKS

LONGEST, PRINTED = 400, 80
"""Characters that are shown of a block, and on the command line."""

OTHER = "Its page is read into other blocks today than when it was extracted; refine the snapshot again to see them."


@dataclass(frozen=True, slots=True)
class PageBlock:
    """A block: the log-odds that it is main text, its words, whether it was kept, and the beginning of its text.

    `page` is the page on which it begins, of a file that has pages.
    """

    score: float
    words: int
    is_kept: bool
    text: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class PageBlocks:
    """The blocks that a page shows, in order. `why_not` says why those that were not kept have no text here."""

    blocks: tuple[PageBlock, ...]
    why_not: str = ""

    @property
    def has_pages(self) -> bool:
        """Whether they are of a file with pages."""
        return any(block.page is not None for block in self.blocks)

    @property
    def kept(self) -> int:
        """How many of them were kept."""
        return sum(block.is_kept for block in self.blocks)


def page_blocks(
    root: str, version: Version, place: Place, stored: Sequence[Mapping[str, Any]], text: str, language: str
) -> PageBlocks:
    """Return the `stored` blocks of a page (`schema.BLOCK`), without the personal data that is replaced.

    Their texts are read from the page that landed at `place`; where it is not to be had, those of kept ones come from
    `text`, which is what `extract` wrote.
    """
    from pipeline_tasks.text.page.block_evidence import STEPS  # compiles loops, and pages are imported with DAGs

    try:
        texts, why_not = _texts_of_page(root, version, place, [block["words"] for block in stored]), ""
    except NoPage as reason:
        texts = [text[block["start"] or 0 : block["end"] or 0] for block in stored]
        why_not = str(reason)
    shown = scrubbed(root, version, [" ".join(text.split())[:LONGEST] for text in texts], language, place.url)
    scores = [block["score"] / (1 << STEPS) for block in stored]
    blocks = zip(scores, stored, shown, strict=True)
    return PageBlocks(
        tuple(
            PageBlock(score, block["words"], block["kept"], text, block.get("page")) for score, block, text in blocks
        ),
        why_not,
    )


def _texts_of_page(root: str, version: Version, place: Place, words: Sequence[int]) -> list[str]:
    """Return the text of each block of a landed page; NoPage if they are not those that have so many `words`."""
    from pipeline_tasks.text.page.block_evidence import END, START, WORDS, unpacked

    result = page_again(root, version, place, ALL_BLOCKS)
    rows = unpacked(result.blocks or b"")
    if rows[:, WORDS].tolist() != words:
        raise NoPage(OTHER)
    return [str(result.text[max(start, 0) : max(end, 0)], "utf-8") for start, end in rows[:, [START, END]].tolist()]


def block_lines(page: PageBlocks) -> Iterator[str]:
    """Yield the blocks of a page for a person."""
    columns = "page, words, text" if page.has_pages else "score, words, text"
    where = "in its file" if page.has_pages else "on its page"
    yield f"  {'blocks':<18}{counted(len(page.blocks), 'block')} {where}, {page.kept:,} kept: {columns}"
    if page.why_not:
        yield f"  {'':<18}no text of those that were not kept: {page.why_not}"
    for block in page.blocks:
        fate = "kept" if block.is_kept else "-"
        first = f"{block.page or '':>8}" if page.has_pages else f"{block.score:>8.2f}"  # all of a file is main text
        yield f"  {fate:<6}{first}{block.words:>7,}  {block.text[:PRINTED]}".rstrip()
