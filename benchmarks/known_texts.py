"""Writes the known texts of the files of `file_types.py`: documents of simple HTML blocks in eleven languages.

The prose is that of `block_pages.py`, and one more language (`known_texts.txt`). The manuals are pages of `docs/`.
Only the standard library is used, and markdown-it for the manuals: the makers of files run in their own environment.
"""

import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import block_pages

HERE = Path(__file__).parent
SECTIONS = 8
MANUALS = ("refine/remove-duplicates.md", "sources/land-data.md", "people/take-documents-down.md")
LEAVES = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "pre", "td", "th", "dt", "dd", "caption")
RIGHT_TO_LEFT = ("ar", "he")
UNSPACED = ("zh", "ja")
COMMAS = ",\u3001\uff0c\u060c"


class Block(NamedTuple):
    """A block of a document: a heading, a paragraph, an item, code or a table with its rows of cells."""

    kind: str
    text: str
    rows: list[list[str]]


class Known(NamedTuple):
    """A document whose text is known, as HTML of its blocks; `layout` is `plain`, `columns` or `tables`."""

    name: str
    language: str
    layout: str
    title: str
    head: str
    foot: str
    html: str


class _Reader(HTMLParser):
    """Collects the blocks of HTML as readers write it: text outside of blocks is a paragraph."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.kind, self.parts = "", list[str]()
        self.tables: list[list[list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 -- as the parser calls it
        if tag == "br":
            self.parts.append("\n")
        elif tag == "table":
            self.flush()
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.flush()
            self.tables[-1].append([])
        elif tag in LEAVES and not (tag == "p" and self.kind in ("li", "td", "th", "dd")):
            self.flush()
            self.kind = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in LEAVES:
            if tag == self.kind:
                self.flush(closes=True)
            elif self.parts:
                self.parts.append(" ")
        elif tag == "table" and self.tables:
            self.flush()
            self.blocks.append(Block("table", "", self.tables.pop()))

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def flush(self, *, closes: bool = False) -> None:
        text = "".join(self.parts)
        text = text if self.kind == "pre" else " ".join(text.split())
        if self.tables and self.kind in ("td", "th"):
            if closes or text:
                self.tables[-1][-1:] = [[*(self.tables[-1][-1] if self.tables[-1] else []), text]]
        elif text.strip():
            self.blocks.append(Block(self.kind or "p", text, []))
        self.kind, self.parts = "", []


def blocks_of(html: str) -> list[Block]:
    """Return the blocks of HTML in order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.flush()
    return reader.blocks


def text_of(blocks: list[Block]) -> str:
    """Return the text of blocks, a line each; cells have tabs between them."""
    return "\n".join(
        "\n".join("\t".join(row) for row in block.rows) if block.kind == "table" else block.text for block in blocks
    )


# --- Documents --------------------------------------------------------------------------------------------------


def proses() -> list[block_pages.Prose]:
    """Return the prose of each language."""
    return [*block_pages.proses(), *block_pages.proses(HERE / "known_texts.txt")]


def documents() -> list[Known]:
    """Return all documents: prose, two columns and tables in each language, and manuals."""
    written = [write(prose) for prose in proses() for write in (_plain, _columns, _tables)]
    return [*written, *_manuals()]


def _known(prose: block_pages.Prose, layout: str, inner: list[str]) -> Known:
    title, head = escape(prose.title), f"{prose.menu[2]} · {prose.menu[0]}"
    html = "\n".join([f"<h1>{title}</h1>", *inner])
    return Known(f"{layout}-{prose.language}", prose.language, layout, prose.title, head, prose.footer, html)


def _sections(prose: block_pages.Prose, count: int) -> Iterator[tuple[int, str]]:
    """Yield sections, each a heading and two paragraphs whose sentences are in an order of their own."""
    for number in range(count):
        said = prose.of(number)
        heading = f"<h2>{number + 1}. {escape(said.words(0).rstrip(COMMAS))}</h2>"
        first, second = (0, 3, 6, 9), (1, 4, 7, 11) if number % 2 else (2, 5, 10)
        yield number, f"{heading}\n{said.paragraph(*first)}\n{said.paragraph(*second)}"


def _plain(prose: block_pages.Prose) -> Known:
    inner = []
    for number, section in _sections(prose, SECTIONS):
        said = prose.of(number)
        items = "".join(f"<li>{escape(said.sentences[at])}</li>" for at in (8, 12, 13))
        inner += [section, f"<ul>{items}</ul>"] if number % 3 == 1 else [section]
    return _known(prose, "plain", inner)


def _columns(prose: block_pages.Prose) -> Known:
    return _known(prose, "columns", [section for _, section in _sections(prose, SECTIONS)])


def _rows(rows: list[list[str]], tag: str) -> str:
    return "".join(f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in row)}</tr>" for row in rows)


def _tables(prose: block_pages.Prose) -> Known:
    """Return a document with a table that is ruled, one without rules, and one with rules and sentences in cells."""
    said, head = prose.of(1), prose.columns[:3]
    numbers = [[said.words(at), f"{12 * at + 3}.{at}", "km" if at % 2 else "°C"] for at in range(5)]
    wide = [[f"{1990 + at}", f"{7 * at + 11}", f"{at * at}.{at}", f"{100 - 3 * at} %"] for at in range(8)]
    long = [[said.words(at + 5), said.sentences[at], f"{at + 1}"] for at in range(4)]
    inner = [said.paragraph(0, 1, 2), f"<table>{_rows([head], 'th')}{_rows(numbers, 'td')}</table>"]
    inner += [said.paragraph(3, 4), f"<table>{_rows([['A', 'B', 'C', 'D']], 'th')}{_rows(wide, 'td')}</table>"]
    inner += [said.paragraph(6, 7, 8), f"<table>{_rows([head], 'th')}{_rows(long, 'td')}</table>"]
    return _known(prose, "tables", [*inner, said.paragraph(9, 10, 11, 12)])


def _manuals() -> Iterator[Known]:
    """Yield pages of `docs/`: long English texts with headings, lists, code and tables."""
    from markdown_it import MarkdownIt

    for name in MANUALS:
        html = MarkdownIt("commonmark").enable("table").render((HERE.parent / "docs/how-to" / name).read_text("utf-8"))
        html = re.sub(r"<(/?)(?:a|code|strong|em|thead|tbody)\b[^>]*>", "", html)
        stem = Path(name).stem
        yield Known(f"manual-{stem}", "en", "plain", stem, "Manual", "All rights reserved.", html)
