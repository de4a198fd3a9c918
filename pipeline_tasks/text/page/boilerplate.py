"""The first look of `auto`: what a page marks as boilerplate, and whether what is left looks like its main text."""

import re
from collections.abc import Iterable
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
)
"""Words of classes and ids: of remarks, authors, facts about the text, pictures, other texts, invitations, the site."""

_UNPRINTED = (
    "jump-",
    "skip",
    "noprint",
    "no-print",
    "print-none",
    "editsection",
    "browsehappy",
    "browserupgrade",
    "outdated",
)
"""Parts of classes and ids of what is not to be printed."""

_PART = re.compile("|".join(name for names in _NAMES for name in names), re.IGNORECASE)
_FIRST = re.compile(rf"(?<!\S)(?i:{_PART.pattern})(?:(?i:s|ed|ing|g?ations?))?(?![a-z])")
SENTENCE_END = re.compile("[.!?\u2026\u3002\uff01\u061f\uff1f\u0964][\"'\u201d\u2019\u00bb)\\]]*$")
"""The end of a sentence in the scripts that have a sign for it, before closing quotes and brackets."""

_BESIDE = (".linenos", ".lineno", ".linenodiv", ".line-numbers-rows", ".gutter", ".rouge-gutter")
"""What stands beside code, and not between its lines: their numbers."""


def _named(names: Iterable[str]) -> list[str]:
    """Return selectors of elements with one of these in their class, and in their id; one for each name is slower."""
    keys = [(key, ", ".join(f'[{key}*="{name}" i]' for name in names)) for key in ("class", "id")]
    return [f"[{key}]:is({named}){_UNLESS}" for key, named in keys]


NOTE = ':is([class*="note" i], [class*="admonition" i], [role="note"])'
"""Marks of a remark within a text, as manuals have it."""

ASIDE = f"aside:not({NOTE})"

CAPTION = "figcaption"
"""The caption of a picture is no part of a published text; in a manual it says what is shown."""

MARKED = (
    *("nav", ASIDE, "footer", "dialog"),
    *(f'[role="{role}"]' for role in ("navigation", "complementary", "contentinfo", "dialog")),
    *_BESIDE,
    *_named([*(name for names in _NAMES for name in names), *_UNPRINTED]),
)
"""Selectors of what is no main text: elements of HTML (4.3, 4.4.13), roles of WAI-ARIA (5.3.4), and common names."""

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


def unname(tree: Any) -> bool:  # noqa: ANN401
    """Take the names off content that they would mark as boilerplate; return whether there was any.

    A name is strong evidence as the first word of a class or id (`share-buttons`). As a later word (`market-share`) or
    a part of one (`metabolism`) it is weak, and what is prose between paragraphs is content.
    """
    changed = False
    for node in tree.body.query_selector_all("p + [class], p + [id]").values() if tree.body is not None else ():
        names = f"{node.getattr('class') or ''} {node.getattr('id') or ''}"
        if _PART.search(names) and not _FIRST.search(names) and _is_between(node):
            for key in ("class", "id"):
                node.delattr(key)
            changed = True
    return changed


def _is_between(node: Any) -> bool:  # noqa: ANN401
    """Return whether an element has prose and is between paragraphs; with pictures, two paragraphs of prose."""
    around = (node.prev_element, node.next_element)
    if not all(sibling is not None and sibling.tag == "p" and _is_prose(sibling) for sibling in around):
        return False
    paragraphs = node.query_selector_all("p").values() or [node]
    least = 1 if node.query_selector("img, picture, svg, video, form, input") is None else 2
    return sum(map(_is_prose, paragraphs)) >= least


def _is_prose(node: Any) -> bool:  # noqa: ANN401
    """Return whether an element is a sentence that is no link."""
    text = node.text.strip()
    if len(text) < SHORT_LINE or not SENTENCE_END.search(text):
        return False
    return 2 * sum(len(link.text) for link in node.query_selector_all("a").values()) < len(text)


def is_doubtful(text: str) -> bool:
    """Return whether the main text of a published page is little, or has many short lines around it."""
    if len(text) < LITTLE:
        return True
    is_long = [len(line) >= SHORT_LINE for line in map(str.strip, text.split("\n")) if line]
    if True not in is_long:
        return True
    return is_long.index(True) + is_long[::-1].index(True) > EDGES
