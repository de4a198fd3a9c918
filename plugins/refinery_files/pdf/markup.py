"""Blocks as HTML."""

from html import escape
from itertools import groupby

from refinery_files.pdf.blocks import Block
from refinery_files.pdf.joining import Joiner, text_of

# characters that code is indented by at most
_WIDEST = 160


def html_of(blocks: list[Block], joiner: Joiner) -> str:
    """Return blocks as HTML."""
    parts: list[str] = []
    for is_list, group in groupby(blocks, lambda block: _tag(block) == "li"):
        written = [_written(block, joiner) for block in group]
        parts += ["<ul>", *written, "</ul>"] if is_list else written
    return "\n".join(part for part in parts if part)


def _written(block: Block, joiner: Joiner) -> str:
    if block.kind == "table":
        return _table(block, joiner)
    if block.kind == "pre":
        return f"<pre>{escape(_code(block), quote=False)}</pre>"
    text = escape(text_of(block, joiner), quote=False)
    tag = _tag(block)
    return f"<{tag}>{text}</{tag}>" if text else ""


def _tag(block: Block) -> str:
    """Return the tag of a block; a numbered item is a paragraph: the label that the page shows is its text."""
    if block.kind == "h":
        return f"h{block.level}"
    return "p" if block.is_numbered else block.kind


def _table(block: Block, joiner: Joiner) -> str:
    rows = ("".join(f"<td>{escape(joiner.clean(cell), quote=False)}</td>" for cell in row) for row in block.rows)
    return "<table>" + "".join(f"<tr>{cells}</tr>" for cells in rows) + "</table>"


def _code(block: Block) -> str:
    """Return the lines of code, indented as they stand."""
    left = block.left
    widths = sorted((line.right - line.left) / len(line.text) for line in block.lines if line.text)
    width = max(widths[len(widths) // 2] if widths else 0.0, 0.1)
    written: list[str] = []
    base = float("-inf")
    for line in block.lines:
        column = min(round((line.left - left) / width), _WIDEST)
        if abs(line.base - base) < 0.4 * line.size:
            written[-1] = f"{written[-1]} ".ljust(column) + line.text
        else:
            written.append(" " * column + line.text)
        base = line.base
    return "\n".join(written)
