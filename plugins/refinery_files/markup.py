"""Writes the blocks of a file as simple HTML: headings, paragraphs, items in lists, code, tables."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from textwrap import dedent
from typing import NamedTuple

STRONG, EMPHASIS, RAISED, LOWERED, MARKUP, FIXED = 1, 2, 4, 8, 16, 32
"""Bits of a run: `MARKUP` says that it is HTML already, as a formula is, `FIXED` that all letters are as wide."""

MOST_LEVELS = 9
"""Levels of lists; Word and OpenDocument have 9 and 10."""

_TAGS = ((FIXED, "code"), (STRONG, "strong"), (EMPHASIS, "em"), (RAISED, "sup"), (LOWERED, "sub"))
_STRESSES = STRONG | EMPHASIS | FIXED
_FIXED_FONT = re.compile(
    r"(?i)\bmono\b|mono$|courier|consolas|menlo|monaco|lucida console|source code|fira code|typewriter"
)
_BY_FONT = "font"
_NUMBER = re.compile(r"(\d{1,9})[.)]?")
_LETTER = re.compile(r"([a-z])[.)]|([A-Z])[.)]")
_BULLET = re.compile(r"[^\w\s]|[o\u00a7\uf000-\uf0ff]")
"""Signs of fonts of pictures are bullets: the o of Courier New, the section sign of Wingdings."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

Runs = list[tuple[str, int]]
"""The text of a paragraph: parts of one format each; a line feed is a break of the line."""

Rows = Sequence[Sequence[str]]


class Block(NamedTuple):
    """A block: the HTML within it; of an item its level and label (`4`, `a`, "" a bullet), too."""

    tag: str
    html: str
    level: int = 0
    label: str = ""


def inline(runs: Iterable[tuple[str, int]], *, plain: bool = False) -> str:
    """Return runs as HTML, neighbors of one format as one; `plain` leaves stresses out, as of headings."""
    merged: Runs = []
    for text, bits in runs:
        kept = bits & ~_STRESSES if plain or not text.strip() else bits
        if merged and not kept & MARKUP and merged[-1][1] == kept:
            merged[-1] = (merged[-1][0] + text, kept)
        else:
            merged.append((text, kept))
    return "".join(_run(text, bits) for text, bits in merged).strip()


def _run(text: str, bits: int) -> str:
    if bits & MARKUP:
        return text
    html = escaped(text).replace("\n", "<br>")
    for bit, tag in _TAGS:
        if bits & bit:
            html = f"<{tag}>{html}</{tag}>"
    return html


def escaped(text: str) -> str:
    """Return text as HTML has it, without characters that no HTML may have."""
    return escape(_CONTROLS.sub("", text), quote=False)


def paragraph(html: str) -> Block:
    """Return a paragraph."""
    return Block("p", html)


def code(runs: Runs, *, by_font: bool = False) -> Block:
    """Return a line of code: by its style, or by its font, which may be that of all of a text (`prose`)."""
    text = "".join(escaped(text) for text, bits in runs if not bits & MARKUP)
    return Block("pre", text, label=_BY_FONT if by_font else "")


def is_fixed(runs: Runs) -> bool:
    """Return whether all words of a paragraph are of a font whose letters are as wide as each other."""
    words = [bits for text, bits in runs if text.strip()]
    return bool(words) and all(bits & FIXED for bits in words)


def is_fixed_font(name: str) -> bool:
    """Return whether a font is one whose letters are as wide as each other, by its name."""
    return _FIXED_FONT.search(name) is not None


def prose(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks whose font makes most of them code as paragraphs: typescripts are no code."""
    found = list(blocks)
    fixed = sum(len(block.html) for block in found if block.label == _BY_FONT)
    if 2 * fixed <= sum(len(block.html) for block in found):
        return found
    return [paragraph(block.html.replace("\n", "<br>")) if block.label == _BY_FONT else block for block in found]


def heading(level: int, html: str) -> Block:
    """Return a heading of a level from 1 on; those below the sixth are of the sixth."""
    return Block(f"h{min(max(level, 1), 6)}", html)


def item(label: str, level: int, html: str) -> Block:
    """Return an item of a list by the label that is shown: a number or letter, or a bullet.

    HTML has no other labels: "1.2", "(a)" and "Article 3" begin a paragraph.
    """
    label, level = label.strip(), min(max(level, 0), MOST_LEVELS - 1)
    if not label:
        return paragraph(html)
    if _BULLET.fullmatch(label):
        return Block("li", html, level)
    if number := _NUMBER.fullmatch(label):
        return Block("li", html, level, str(int(number[1])))
    if letter := _LETTER.fullmatch(label):
        return Block("li", html, level, letter[1] or letter[2])
    return paragraph(f"{escaped(label)} {html}")


def table(rows: Iterable[Sequence[Sequence[Block]]], headers: int = 0) -> list[Block]:
    """Return a table of cells, each of blocks; the first `headers` rows are heads.

    What is beside nothing in every row is no table but a frame: its blocks are returned as they are.
    """
    whole = [row for row in rows if any(any(block.html for block in cell) for cell in row)]
    if all(sum(1 for cell in row if cell) <= 1 for row in whole):
        return [block for row in whole for cell in row for block in cell]
    html = "".join(
        _row([_cell(cell) for cell in row], "th" if nth < headers else "td") for nth, row in enumerate(whole)
    )
    return [Block("table", html)]


def plain_table(rows: Rows, headers: int = 0) -> Block:
    """Return a table of cells, each of text."""
    html = "".join(
        _row([escaped(cell).replace("\n", "<br>") for cell in row], "th" if nth < headers else "td")
        for nth, row in enumerate(rows)
    )
    return Block("table", html)


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _cell(blocks: Sequence[Block]) -> str:
    """Return the blocks of a cell as lines: a row of lines stays a row, one with blocks in it would fall apart."""
    if any(block.tag == "table" for block in blocks):
        return write(blocks)
    return "<br>".join(_line(block) for block in blocks if block.html)


def _line(block: Block) -> str:
    if block.tag == "pre":
        return f"<code>{block.html}</code>"
    if block.tag != "li":
        return block.html
    return f"{block.label}. {block.html}" if block.label else f"- {block.html}"


def write(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML: items that follow each other as lists by their levels, lines of code as one."""
    parts, lists, code = list[str](), list[tuple[int, str]](), list[str]()
    for block in blocks:
        if code and block.tag != "pre":
            parts.append(_code(code))
        if not block.html and block.tag != "pre":
            continue
        if block.tag == "li":
            _item(parts, lists, block)
            continue
        parts += _closed(lists, -1)
        if block.tag == "pre":
            code.append(block.html)
        else:
            parts.append(f"<{block.tag}>{block.html}</{block.tag}>\n")
    if code:
        parts.append(_code(code))
    return "".join([*parts, *_closed(lists, -1)])


def _code(lines: list[str]) -> str:
    html = dedent("\n".join(line.replace("<br>", "\n") for line in lines))
    lines.clear()
    return f"<pre>\n{html}</pre>\n" if html.strip() else ""


def _item(parts: list[str], lists: list[tuple[int, str]], block: Block) -> None:
    kind = _kind(block.label)
    parts += _closed(lists, block.level)
    if lists and lists[-1][0] == block.level:
        if lists[-1][1] == kind:
            parts.append("</li>\n")
        else:
            parts += _closed(lists, block.level - 1)
    if not lists or lists[-1][0] < block.level:
        parts.append(f"<{kind}>\n")
        lists.append((block.level, kind))
    value = f' value="{_value(block.label)}"' if block.label else ""
    parts.append(f"<li{value}>{block.html}")


def _closed(lists: list[tuple[int, str]], level: int) -> list[str]:
    """Return what closes the lists that are deeper than a level."""
    parts = []
    while lists and lists[-1][0] > level:
        parts.append(f"</li></{lists.pop()[1].partition(' ')[0]}>\n")
    return parts


def _kind(label: str) -> str:
    if not label:
        return "ul"
    return "ol" if label.isdigit() else f'ol type="{"a" if label.islower() else "A"}"'


def _value(label: str) -> int:
    return int(label) if label.isdigit() else ord(label.lower()) - ord("a") + 1
