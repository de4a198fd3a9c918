"""Pages of documentation, forums, recipes and references, made of texts of ours in the layouts that such sites have.

`contents.txt` has the texts in a short form. A layout gives each block the markup of its kind of site, and puts around
it what such sites have around: each of these blocks is dropped for the reason that stands with it, each block of the
text is kept. So every block of a page is annotated, and the pages are ours to ship.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

CONTENTS = Path(__file__).with_name("contents.txt")


class Block(NamedTuple):
    """A block of a page: its kind, its text (a row: its cells), and whether a reader keeps it, and why."""

    kind: str
    text: str
    kept: bool = True
    reason: str = "the page is about it"


class Page(NamedTuple):
    """A page by its name, its markup, and its blocks."""

    name: str
    html: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The markup of a kind of site.

    `page` has places for language, title and content. `marks` map kinds of blocks to templates with a place for the
    text; `dropped` are the texts in `page` that no reader keeps, each with its reason.
    """

    page: str
    dropped: dict[str, str]
    marks: dict[str, str] = field(default_factory=dict)
    code: Callable[[str], str] = lambda code: f"<pre><code>{code}</code></pre>"
    titled: bool = True  # the page's heading is in its text, and not only in its title


MARKS = {
    "h2": "<h2>{}</h2>",
    "h3": "<h3>{}</h3>",
    "p": "<p>{}</p>",
    "quote": "<blockquote><p>{}</p></blockquote>",
    "ul": "<ul>{}</ul>",
    "ol": "<ol>{}</ol>",
    "li": "<li>{}</li>",
    "dl": "<dl>{}</dl>",
    "dt": "<dt>{}</dt>",
    "dd": "<dd>{}</dd>",
    "table": "<table>{}</table>",
    "tr": "<tr>{}</tr>",
    "th": "<th>{}</th>",
    "td": "<td>{}</td>",
}


def words(text: str) -> str:
    """Return what a reader sees of the short form of a line."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def inline(text: str) -> str:
    """Return the markup of a line in the short form."""
    marked = re.sub(r"\[([^\]]*)\]\(([^)]*)\)", r'<a href="\2">\1</a>', html.escape(text, quote=False))
    return re.sub("`([^`]*)`", r"<code>\1</code>", marked)


def colored(code: str) -> str:
    """Return code in the spans of a highlighter."""
    return re.sub(r"\b(def|for|in|import|from|if|return|yield)\b", r'<span class="k">\1</span>', code)


def numbered(code: str) -> str:
    """Return code in a table, its line numbers in a column of their own, as Pygments does."""
    numbers = "\n".join(str(line) for line in range(1, code.count("\n") + 2))
    return (
        '<div class="highlight"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>'
        f'<span></span>{numbers}</pre></div></td><td class="code"><div><pre><span></span><code>{colored(code)}\n'
        "</code></pre></div></td></tr></table></div>"
    )


def lines_of(content: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the groups of a text in the short form: (kind, lines), items and rows together."""
    rows = content.split("\n")
    at = 0
    while at < len(rows):
        row = rows[at]
        if row == "```":
            end = rows.index("```", at + 1)
            yield "code", rows[at + 1 : end]
            at = end + 1
            continue
        kind = next(kind for kind, starts in STARTS.items() if re.match(starts, row))
        end = at + 1
        while kind in GROUPED and end < len(rows) and re.match(STARTS[kind], rows[end]):
            end += 1
        yield kind, rows[at:end]
        at = end


STARTS = {
    "h3": "### ",
    "h2": "## ",
    "p": "p ",
    "quote": "> ",
    "ul": " ?- ",
    "ol": r"\d+\. ",
    "dl": "[:=]",
    "table": r"\|",
}
GROUPED = ("ul", "ol", "dl", "table")


def rendered(content: str, layout: Layout) -> tuple[str, list[Block]]:
    """Return the markup of a text in a layout, and its blocks."""
    marks, parts, blocks = MARKS | layout.marks, list[str](), list[Block]()
    for kind, rows in lines_of(content):
        if kind == "code":
            blocks.append(Block("code", "\n".join(rows)))
            parts.append(layout.code(html.escape("\n".join(rows), quote=False)))
        elif kind in ("ul", "ol"):
            parts.append(listed(kind, rows, marks))
            blocks += [Block("item", words(row.lstrip().split(" ", 1)[1])) for row in rows]
        elif kind == "dl":
            is_term = [row[0] == ":" for row in rows]
            texts = [row[1:].strip() for row in rows]
            inner = [
                marks["dt" if term else "dd"].format(inline(text), id=slug(text))
                for term, text in zip(is_term, texts, strict=True)
            ]
            parts.append(marks["dl"].format("\n".join(inner)))
            blocks += [
                Block("term" if term else "definition", words(text)) for term, text in zip(is_term, texts, strict=True)
            ]
        elif kind == "table":
            cells = [[cell.strip() for cell in row[1:].split("|")] for row in rows]
            table = []
            for nth, row in enumerate(cells):
                cell = marks["th" if nth == 0 and len(row) > 2 else "td"]
                table.append(marks["tr"].format("\n".join(cell.format(inline(text)) for text in row)))
            parts.append(marks["table"].format("\n".join(table)))
            blocks += [Block("row", "\t".join(map(words, row))) for row in cells]
        else:
            text = rows[0].split(" ", 1)[1]
            parts.append(marks[kind].format(inline(text), id=slug(text)))
            blocks.append(Block("heading" if kind in ("h2", "h3") else kind, words(text)))
    return "\n".join(parts), blocks


def slug(text: str) -> str:
    return re.sub(r"\W+", "-", words(text).lower()).strip("-")


def listed(kind: str, rows: list[str], marks: dict[str, str]) -> str:
    """Return a list; an item that begins with a blank is in a list inside the item before it."""
    items: list[tuple[str, list[str]]] = []
    for row in rows:
        text = inline(row.lstrip().split(" ", 1)[1])
        if row.startswith(" "):
            items[-1][1].append(text)
        else:
            items.append((text, []))
    inner = []
    for text, nested in items:
        below = marks[kind].format("\n".join(marks["li"].format(item) for item in nested)) if nested else ""
        inner.append(marks["li"].format(text).removesuffix("</li>") + below + "</li>")
    return marks[kind].format("\n".join(inner))


@cache
def contents() -> dict[str, tuple[str, str, str]]:
    """Return {name: (language, title, text)}."""
    parts = re.split(r"(?m)^=== (\S+) (\S+) (.*)\n", CONTENTS.read_text("utf-8"))[1:]
    return {
        name: (language, title, text.rstrip("\n"))
        for name, language, title, text in zip(parts[::4], parts[1::4], parts[2::4], parts[3::4], strict=True)
    }


@cache
def pages() -> tuple[Page, ...]:
    """Return every page: each layout with the texts that fit it."""
    from tests.golden.structure.layouts import LAYOUTS, TEXTS

    made = []
    for name, layout in LAYOUTS.items():
        for content_name in TEXTS[name]:
            language, title, content = contents()[content_name]
            markup, blocks = rendered(content, layout)
            page = layout.page.replace("{language}", language).replace("{title}", html.escape(title))
            page = page.replace("{content}", markup)
            dropped = [
                Block("around", text, kept=False, reason=reason)
                for text, reason in layout.dropped.items()
                if text in page
            ]
            heading = [Block("heading", title)] if layout.titled else []
            made.append(Page(f"{name}/{content_name}", page, (*heading, *blocks, *dropped)))
    return tuple(made)
