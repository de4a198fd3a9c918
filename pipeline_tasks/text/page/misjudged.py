"""Changes a page's tree where resiliparse's rules of main content would misjudge it."""

from itertools import pairwise
from typing import Any

from pipeline_tasks.text.page.boilerplate import NOTE
from pipeline_tasks.text.page.marks import FILLER
from pipeline_tasks.text.page.rendering import replace

_SUNK = 3  # elements above a list, from which on it is deep enough
_SHALLOW = "body > ul, body > * > ul, body > * > * > ul"
_LINKED = (
    ":is(p + ul, p + div > ul, dd > ul, h2 + ul, h3 + ul, h4 + ul, h2 + aside + ul, h2 + aside + script + ul):has(a)"
)
_UNPICTURED = (
    "figure:has(code, figcaption), "
    "figure:not(:has(img, picture, video, audio, svg, canvas, iframe, object, embed, noscript))"
)
_NOTES = f"aside{NOTE}"
_OPENING = "[id='header']:has(h2[id] + div > p), .manpage > [id='header']"  # a manual's name and title, by asciidoc
_LONE = ":is(h2, h3, h4) + div p:first-child:last-child:has(> a)"
_NAMED = ":is(h2, h3, h4, h5, h6, dt, dd, li, a, span, code, pre, table, tr, td, th, p)[id]"
_SECTION = "section[id], div.section[id]"
_TITLED = ":not([id*='sidebar' i], [id*='footer' i], [id^='related' i]):has(> :is(h2, h3, h4, h5, h6))"
_LOOKED_AT = (  # at once: each search goes through the whole tree
    f"h1, figure, {_NOTES}, {_OPENING}, {_LONE}, {_NAMED}, {_SECTION}, {_LINKED}, {_SHALLOW}"
)

_DILUTE = 4
"""Characters beside links for each one in a link, with which the library takes no list for navigation."""

_TEXT = 8
"""Characters beside its links that an item of a list of content has, on average."""


def prepare(tree: Any, *, published: bool) -> list[Any]:  # noqa: ANN401 -- an HTMLTree of resiliparse, which is loaded late
    """Change a tree so that its content is taken for content; return its headings of the first level.

    A `published` page also announces links to others.
    """
    headings = list[Any]()
    for node in tree.body.query_selector_all(_LOOKED_AT).values() if tree.body is not None else ():
        tag = node.tag
        if tag == "h1":
            headings.append(node)
        elif tag == "aside":
            replace(tree, node)
        elif tag == "figure":
            if not published and node.matches(_UNPICTURED):
                _unfold(tree, node)
        elif tag == "ul":
            if node.matches(_LINKED):
                _dilute(tree, node, published=published)
            if node.matches(_SHALLOW):
                _sink(tree, node)
        elif node.matches(_SECTION):
            if not published and node.matches(_TITLED):  # its name is that of its subject: `metadata`, `authoring`
                node.delattr("id")
        else:
            if tag == "p" and not published and node.matches(_LONE):
                _dilute_lone(tree, node)
            node.delattr("id")
    return headings


def _unfold(tree: Any, figure: Any) -> None:  # noqa: ANN401
    """Put a figure's content in its place: the library leaves figures out.

    A manual's figure has a caption, code, or words alone; a picture beside code is a sign (`Bad code. Don't copy!`). In
    published pages such words repeat a sentence of the text (`pullquote`), and captions are of pictures.
    """
    caption = figure.query_selector("figcaption")
    if caption is not None:
        replace(tree, caption, "p")
    replace(tree, figure)


def _dilute(tree: Any, linked: Any, *, published: bool) -> None:  # noqa: ANN401
    """Make a list of content less dense in links, above which the library takes it for navigation.

    Its items have words beside their links; or what comes before it announces it by a colon, which published pages do
    with links to others, too.
    """
    items = linked.query_selector_all("li").values()
    links = sum(len(link.text) for link in linked.query_selector_all("a").values())
    beside = len(linked.text) - links
    if (
        items
        and beside < _DILUTE * links
        and (beside > _TEXT * len(items) or (not published and _is_announced(linked)))
    ):
        items[0].append_child(tree.create_text_node(FILLER * (_DILUTE * links)))


def _dilute_lone(tree: Any, paragraph: Any) -> None:  # noqa: ANN401
    """Make a section that is one paragraph of links less dense in them: `SEE ALSO` in a manual has no more."""
    section = paragraph.parent
    while section.tag == "div" and section.prev_element is None:
        section = section.parent
    if section.text.strip() == paragraph.text.strip():
        paragraph.append_child(tree.create_text_node(FILLER * (_DILUTE * len(paragraph.text))))


def _is_announced(linked: Any) -> bool:  # noqa: ANN401
    before = linked.prev_element or linked.parent.prev_element
    return before is not None and before.text.rstrip().endswith((":", "\uff1a"))


def _sink(tree: Any, shallow: Any) -> None:  # noqa: ANN401
    """Put three elements around a list near the top of a page.

    Resiliparse takes a list at most three elements below the root for navigation. Of 189 pages of a crawl with such
    lists it was wrong in 185; what is navigation, a page mostly marks.
    """
    around = [tree.create_element("div") for _ in range(_SUNK)]
    shallow.parent.insert_before(around[0], shallow)
    for outer, inner in pairwise([*around, shallow]):
        outer.append_child(inner)
