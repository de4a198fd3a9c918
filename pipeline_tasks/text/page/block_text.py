"""Finds the main text of a page by the model of its blocks, and its metadata."""

import html as references
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline_tasks.text.blocks import SHIPPED
from pipeline_tasks.text.blocks.blocks import Blocks, read_blocks
from pipeline_tasks.text.blocks.features import shown_blocks
from pipeline_tasks.text.blocks.main_blocks import main_blocks
from pipeline_tasks.text.blocks.model import load_model
from pipeline_tasks.text.blocks.writing import write_blocks
from pipeline_tasks.text.page.block_evidence import moved, packed
from pipeline_tasks.text.page.drawn import drawn_texts
from pipeline_tasks.text.page.metadata import DATED_PART, PageMetadata, read_metadata
from pipeline_tasks.text.page.recipes import complete
from pipeline_tasks.text.page.rendering import render
from pipeline_tasks.text.page.sandbox_messages import Output

if TYPE_CHECKING:
    from resiliparse.parse.html import HTMLTree


class BlockText(NamedTuple):
    """The main text of a page and its metadata, and the rows of `block_evidence` for each block that the page shows."""

    text: str
    metadata: PageMetadata
    blocks: bytes


_LINE = re.compile(r"(</code>)(?=<code\b)|(</span>)(?=<span class=[\"']?(?:[\w-]+-)?line\b)")
_ENDED = r"\g<0>\n"


def _with_lines(html: str) -> str:
    """Return a page in which lines of code that are elements end, where nothing else ends them."""
    parts = html.split("<pre")
    for at, part in enumerate(parts[1:], 1):
        begin, end = part.find(">") + 1, part.find("</pre")
        code = part[begin : max(end, begin)]
        if "\n" not in code.strip() and "<br" not in code:
            parts[at] = f"{part[:begin]}{_LINE.sub(_ENDED, code)}{part[max(end, begin) :]}"
    return "<pre".join(parts)


def _rendered(html: str) -> str:
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    render(tree, html, numbers=False)
    return str(tree)


def block_text(html: str, output: Output, beta: float, model: str, bits: int) -> BlockText:
    """Extract the blocks of a page with the greatest expected F-beta.

    `model` is a file, "" that of the package; `bits` are those of `tags.survey`.
    """
    data, blocks = _read(html)
    choice = main_blocks(blocks, np.frombuffer(data, np.uint8), load_model(model or str(SHIPPED)), beta)
    text, starts = write_blocks(blocks, choice.chosen, drawn_texts(blocks, data), output)
    rows = packed(choice.scores, blocks.words, starts, len(text))[choice.shown]
    whole = complete(text.decode(), html)
    longer = whole.encode("utf-8", "ignore")
    rows = rows if longer == text else moved(rows, text, longer)
    start, end = blocks.title
    title = references.unescape(data[start:end].decode()) if start >= 0 else None

    @cache
    def tree() -> "HTMLTree":
        from resiliparse.parse.html import HTMLTree

        end = -1 if DATED_PART in html else html.find("</head")
        return HTMLTree.parse(html if end < 0 else html[:end])

    return BlockText(whole, read_metadata(html, title, tree, bits), rows.tobytes())


def all_blocks(html: str, output: Output = "plain") -> BlockText:
    """Return the texts of all blocks that a page shows, in the rows and the order in which `block_text` has them."""
    data, blocks = _read(html)
    shown = shown_blocks(blocks)
    text, starts = write_blocks(blocks, shown, drawn_texts(blocks, data), output)
    rows = packed(np.zeros(len(starts), np.int32), blocks.words, starts, len(text))[shown]
    return BlockText(text.decode(), PageMetadata(None, None, None), rows.tobytes())


def _read(html: str) -> tuple[bytes, Blocks]:
    html = _with_lines(html) if "<pre" in html else html
    data, blocks = _read_as_it_is(html)
    return _read_as_it_is(_rendered(html)) if blocks.needs_tree else (data, blocks)


def _read_as_it_is(html: str) -> tuple[bytes, Blocks]:
    data = html.encode("utf-8", "ignore")
    return data, read_blocks(np.frombuffer(data, np.uint8))
