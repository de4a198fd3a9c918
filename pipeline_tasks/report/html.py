"""Writes HTML in which every text is escaped, and pages that open offline: no script, nothing fetched."""

import re
from collections.abc import Iterable, Sequence
from html import escape

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control and direction characters, which can make a text look like a different text."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --dim: #667487; --paper: #fbfbf9; --card: #fff; --line: #e4e6e9;
  --keep: #3f7d6e; --lose: #d9dee3; --blue: #4a6fa5; --ok: #2e7d4f; --warn: #a86400; --bad: #b3382c; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde3ea; --dim: #8d99a8; --paper: #14181d; --card: #1b2026;
  --line: #2c333b; --keep: #5fa893; --lose: #333c46; --blue: #7d9fd0;
  --ok: #6cc08f; --warn: #e0a54a; --bad: #ea7d70; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 3rem 1.5rem 5rem; }
h1 { font-size: 1.9rem; font-weight: 650; letter-spacing: -.02em; margin: 0; }
h2 { font-size: 1.15rem; font-weight: 650; margin: 3rem 0 .3rem; }
h3 { font-size: .95rem; font-weight: 600; margin: 1.2rem 0 .3rem; }
p { margin: .3rem 0 .9rem; max-width: 46rem; } .dim, p.lead { color: var(--dim); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1.8rem 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem; }
.tile b { display: block; font-size: 1.5rem; font-weight: 600; letter-spacing: -.01em; }
.tile span { color: var(--dim); font-size: .82rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .4rem 1.1rem;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--dim); font-weight: 500; font-size: .8rem; }
th, td { padding: .42rem .9rem .42rem 0; vertical-align: top; } tr + tr td { border-top: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
td .dim { font-size: .86rem; } td .title::first-letter { text-transform: uppercase; }
.num { text-align: right; white-space: nowrap; } .word, .word code { white-space: nowrap; }
.wide { width: 38%; } .long { overflow-wrap: anywhere; }
code { font: .84em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.bar { display: block; height: .62rem; margin-top: .45rem; border-radius: .31rem; background: var(--lose);
  overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--keep); } .bar.blue i { background: var(--blue); }
.bar.bare { background: none; } .bar.bare i { border-radius: .31rem; min-width: .15rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 0 1.2rem; }
.pass { color: var(--ok); } .warn { color: var(--warn); } .refuse { color: var(--bad); font-weight: 600; }
blockquote { margin: .2rem 0 .5rem; white-space: pre-wrap; overflow-wrap: anywhere; font-family: Georgia, serif; }
a { color: var(--blue); } footer { margin-top: 3rem; color: var(--dim); font-size: .82rem; }
"""


class Html(str):
    """Text that is HTML already; any other text is escaped when it is put into a page."""

    __slots__ = ()


Child = Html | str | int


def shown(text: str, most: int = 200) -> str:
    """Return at most `most` characters of a text from the crawl, without invisible characters."""
    clean = UNSEEN.sub("", text[: most + 100])
    return clean if len(clean) <= most else f"{clean[:most].rstrip()} …"


def tag(name: str, *children: Child, css: str = "", **attributes: str) -> Html:
    """Return an element; children that are not `Html` are escaped."""
    pairs = {"class": css, **attributes} if css else attributes
    inside = "".join(f' {key}="{escape(value)}"' for key, value in pairs.items())
    return Html(f"<{name}{inside}>{join(children)}</{name}>")


def join(children: Iterable[Child], between: str = "") -> Html:
    """Return children in order, escaped unless they are `Html`."""
    return Html(escape(between).join(child if isinstance(child, Html) else escape(str(child)) for child in children))


def bar(part: float, whole: float, css: str = "") -> Html:
    """Return a horizontal bar of which part / whole is filled."""
    share = 100 * min(max(part / whole, 0), 1) if whole else 0
    return tag("span", tag("i", style=f"width:{share:.2f}%"), css=f"bar {css}".strip())


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], numeric: Iterable[int] = (), wide: int = -1) -> Html:
    """Return a table in a card; columns in `numeric` are aligned to the right, column `wide` has bars."""
    classes = dict.fromkeys(numeric, "num") | ({wide: "wide"} if wide >= 0 else {})
    lines = [tag("tr", *(tag("td", cell, css=classes.get(at, "")) for at, cell in enumerate(row))) for row in rows]
    heads = tag("tr", *(tag("th", name, css=classes.get(at, "")) for at, name in enumerate(head)))
    return tag("div", tag("table", tag("thead", heads), tag("tbody", *lines)), css="card")


def section(title: str, lead: str, *content: Child) -> Html:
    """Return a section: a heading, a sentence on what it shows, and its content."""
    return tag("section", tag("h2", title), tag("p", lead, css="lead"), *content)


def page(title: str, *sections: Html) -> bytes:
    """Return a whole page as UTF-8."""
    head = [
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="referrer" content="no-referrer">'),
        tag("title", title),
        tag("style", Html(STYLE)),
    ]
    whole = tag("html", tag("head", *head), tag("body", tag("main", *sections)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n".encode()


def count(value: float) -> str:
    """Return a number as people read it: 1,234,567."""
    return f"{value:,.0f}"


def percent(part: float, whole: float) -> str:
    """Return part / whole as a percentage, "-" if the whole is 0; shares near 0 and 100 have a second digit."""
    if not whole:
        return "-"
    share = 100 * part / whole
    return f"{share:.2f} %" if 0 < share < 0.1 or 99.9 < share < 100 else f"{share:.1f} %"  # noqa: PLR2004 -- percent


def size(value: float) -> str:
    """Return bytes as people read them: 12.3 MB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":  # noqa: PLR2004 -- SI prefixes
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1000
    return ""
