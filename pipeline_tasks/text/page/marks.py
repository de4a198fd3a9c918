"""Marks what resiliparse's plain text does not show: cells, code, headings; as control characters in the markup.

The library extracts control characters as it does letters, and no text in normal form has any. `layout` reads the marks
and takes them out. A page's own control characters can only spoil the layout of that page.
"""

import re

CELL, CELL_END = "\x01", "\x02"
CODE, CODE_END = "\x03", "\x04"
NUMBER = "\x05"
"""Around the number of an item that a page states: `4. `."""

TABLE_END = "\x07"
HEADINGS = "\x11\x12\x13\x14\x15\x16"
"""Begin headings of levels one to six."""

HEADING_END = "\x17"
FILLER = "\x06"
"""Stands for nothing: with it a text is no longer a single character, or a list no longer mostly links."""

_ALL = (CELL, CELL_END, CODE, CODE_END, NUMBER, TABLE_END, *HEADINGS, HEADING_END)
_TAG = re.compile(r"<(/?(?:t[dh]|table|pre|summary|legend|caption))(?=[\s>/])[^<>]*>", re.IGNORECASE)
_TAG_OR_HEADING = re.compile(_TAG.pattern.replace("t[dh]", "t[dh]|h[1-6]"), re.IGNORECASE)
_NUMBERED = re.compile(rf"(?:\d+\. |\u2022 ?)?{NUMBER}([^{NUMBER}\n]*){NUMBER} ?")
_LINE = "<br>"  # around what the library glues to the text beside it
_AROUND = {
    "td": ("", CELL),
    "/td": (CELL_END, ""),
    "th": ("", CELL),
    "/th": (CELL_END, ""),
    "/table": ("", TABLE_END),
    "pre": ("", CODE),
    "/pre": (CODE_END, ""),
    **{f"h{level}": ("", mark) for level, mark in enumerate(HEADINGS, 1)},
    **dict.fromkeys([f"/h{level}" for level in range(1, 7)], (HEADING_END, "")),
    **dict.fromkeys(("summary", "legend"), (_LINE, "")),
    **dict.fromkeys(("/summary", "/legend", "/caption"), ("", _LINE)),
}

_LONE = re.compile(
    "(>\\s*(?:[\u0800-\u2027\u202f-\u2038\u203b-\u257f\u2713\u2714\u2717\u2718\u2900-\udfff\uf900-\ufdcf\ufdf0-\ufffd]"
    r"|&(?:#\d{4,5}|#[xX][\da-fA-F]{3,4}|[mn]dash|[lr][sd]quo|hellip|[lrud]arr|[lgn]e|times|bull);"
    "|[^<>&](?:[\u0080-\u07ff]|&#?\\w{2,8};)))(?=\\s*<)"
)
"""A text of a single character, or of two whose second one is a letter beyond ASCII, an entity or a combining mark.

Resiliparse takes any of three bytes that ends beyond ASCII for an icon and drops it, be it a dash, a quotation mark, an
arrow between menu items, a Chinese word between two names, or `s\u00ed`, `m\u00b2` and `1\u00be`. Icon fonts' private
characters, triangles and the like, and single angle quotes stay dropped: they decorate.
"""

_EMPTY_ANCHOR = re.compile(r"""<a (?:id|name)=(?:"[^"<>]*"|'[^'<>]*')\s*/>""")
"""An anchor of XHTML. HTML has no empty `a`: the rest of the page would be inside it, under its name."""


def mark(html: str, *, headings: bool = False) -> str:
    """Return a page with marks around the content of cells, code and, if told, headings; without empty anchors."""
    html = _LONE.sub(rf"\1{FILLER}", _EMPTY_ANCHOR.sub("", html))
    return (_TAG_OR_HEADING if headings else _TAG).sub(_marked, html)


def _marked(tag: re.Match[str]) -> str:
    around = _AROUND.get(tag[1].lower())
    return f"{around[0]}{tag[0]}{around[1]}" if around else tag[0]


def numbered(text: str) -> str:
    """Return a text with the numbers that its page states, and not those that a library counts."""
    return _NUMBERED.sub(r"\1", text) if NUMBER in text else text


def unmarked(text: str) -> str:
    """Return a text without marks; fillers stay."""
    for mark in _ALL:
        text = text.replace(mark, "")
    return text
