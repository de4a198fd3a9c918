"""Makes blocks of plain text: paragraphs between empty lines, with their lines as they are."""

import re

from refinery_files.markup import Block, escaped, paragraph

_EMPTY = re.compile(r"\n(?:[ \t]*\n)+")
_DRAWN = re.compile(r"(?m)^ +\S|\t|\S {3,}\S|^[-+] {2,}\S")
"""Lines that are indented or have columns, and those of patches: blanks mean something."""


def plain_blocks(text: str) -> list[Block]:
    """Return the paragraphs of a text; those whose lines are indented or in columns keep their blanks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    blocks = list[Block]()
    for part in _EMPTY.split(text):
        if _DRAWN.search(part):
            blocks += [
                *([Block("pre", "")] if blocks and blocks[-1].tag == "pre" else []),
                Block("pre", escaped(part.rstrip())),
            ]
        else:
            blocks.append(paragraph(escaped(part.strip()).replace("\n", "<br>")))
    return [block for block in blocks if block.html or block.tag == "pre"]
