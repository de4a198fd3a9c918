"""The first look of `auto`: what a page marks as boilerplate, and whether what is left looks like its main text."""

from typing import Any

PUBLISHED = 'meta[property^="og:"], article, [itemprop="articleBody"]'
"""Marks of a page that is published as a piece of its own: OpenGraph, HTML (4.3.2), schema.org. Manuals have none."""

_UNLESS = ":not(html, body, article, main, :has(h1, p ~ p ~ p ~ p))"
"""A name marks no element that has the page's heading or four paragraphs in a row: then it names a layout, a theme or a
subject, as `sidebar` in the class of a body does. On trafilatura's gold, names so guarded remove 52 of 147 unwanted
segments and 7 of 597 wanted ones; without the guard 184 wanted ones."""

_NAMES = (
    ("comment", "respond"),
    ("author", "byline", "contact", "copyright", "credit"),
    ("meta", "tags", "category", "topics"),
    ("caption", "gallery", "image"),
    ("related", "recommend", "popular", "teaser", "more-"),
    ("share", "social", "newsletter", "cookie"),
    ("breadcrumb", "footer", "navi", "sidebar", "navhead", "navbar", "navbox", "nav_"),
    ("jump-", "skip", "noprint", "no-print", "print-none", "editsection", "browsehappy", "browserupgrade"),
)
"""Parts of classes and ids: of remarks, authors, facts about the text, pictures, other texts, invitations, the site,
and of what is not to be printed."""

_BESIDE = ("rp", "rt", ".linenos", ".lineno", ".linenodiv", ".line-numbers-rows", ".gutter", ".rouge-gutter")
"""What stands beside words or code, and not between them: readings, and the numbers of lines."""


def _named(key: str) -> str:
    return ", ".join(f'[{key}*="{name}" i]' for names in _NAMES for name in names)


NOTE = ':is([class*="note" i], [class*="admonition" i], [role="note"])'
"""Marks of a remark within a text, as manuals have it."""

ASIDE = f"aside:not({NOTE})"

CAPTION = "figcaption"
"""The caption of a picture is no part of a published text; in a manual it says what is shown."""

MARKED = (
    *("nav", ASIDE, "footer", "dialog"),
    *(f'[role="{role}"]' for role in ("navigation", "complementary", "contentinfo", "dialog")),
    *_BESIDE,
    *(f"[{key}]:is({_named(key)}){_UNLESS}" for key in ("class", "id")),
)
"""Selectors of what is no main text: elements of HTML (4.3, 4.4.13), roles of WAI-ARIA (5.3.4), and common names.

The names are two selectors: as one for each name they take a fourth more of the library's time.
"""

HEADING = "h1"
"""The headings of a published page are its headline, which is put in front, and names of the site and its parts."""

SECTIONS = 4
"""Headings of the first level from which on they are those of sections, as in the text of a repository."""

SHORT_LINE = 80
"""Characters that a line of prose has; 97 % of the characters of fundus' articles are in such paragraphs."""

EDGES = 3
"""Short lines before the first long one and behind the last, above which a text has more around it than itself: dates,
names, links. Measured, as LITTLE, on half of the pages with gold: docs/decisions/0036."""

LITTLE = 1500
"""Characters below which a text is looked for again: a published page mostly has more, and may have lost it."""


def is_published(tree: Any) -> bool:  # noqa: ANN401 -- an HTMLTree of resiliparse, which is loaded late
    """Return whether a page says that it is an article, a recipe or the like."""
    return tree.document.query_selector(PUBLISHED) is not None


def is_doubtful(text: str) -> bool:
    """Return whether the main text of a published page is little, or has many short lines around it."""
    if len(text) < LITTLE:
        return True
    is_long = [len(line) >= SHORT_LINE for line in map(str.strip, text.split("\n")) if line]
    if True not in is_long:
        return True
    return is_long.index(True) + is_long[::-1].index(True) > EDGES
