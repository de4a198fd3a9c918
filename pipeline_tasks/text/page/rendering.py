"""Changes a page's tree into what a browser shows of it, before any method reads it.

What a browser hides is left out (HTML Living Standard, 6.1 and 4.12; CSS), what it adds is written (quotation marks,
numbers of items), and what it draws is given as text (formulas, emoji). A page that has nothing of the kind is not
looked at twice: its markup is searched for signs first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pipeline_tasks.text.blocks import VERSE_SIGNS
from pipeline_tasks.text.page.formulas import FORMULAS, children, image_formula, write_formulas

if TYPE_CHECKING:
    from resiliparse.parse.html import ElementNode, HTMLTree, Node

_TAG = re.compile(
    r"""(?x)<(?=[abcdfhilmnopqrstv])(?:
    (template|math|mjx-container|noscript|dialog|canvas|video|audio|figure|ruby)
    | (q)[\s>] | (script)\s[^<>]*math/tex | (span)\s[^<>]*katex | (ol|li)\s[^<>]*(?:start|reversed|type|value)
    | (img)\s[^<>]*(?:emoji|smiley|latex|mimetex|alt=["']?[\\{])
    | (?:i|span)\s[^<>]*-(icons|symbols)
    | (pre)\b[^<>]*>(?:<code\b[^<>]*>)?<[cs] | (p)\b[^<>]*>\s*<a\s[^<>]*>[^<]{80}
    | (?:h[1-6]|dt|summary)\b[^<>]*>\s*(?:<(?:span|div|strong)\b[^<>]*>\s*){0,2}<(button)
    | (button)\s[^<>]*aria-controls
    )"""
)
"""The tags by which a page may have what is changed, in one pass over its markup."""

_SHOUTED = re.compile("<[A-Z](?!OCTYPE)")
_MOST_SHADOWS = 50  # roots that are opened, nested ones after what they are in
_SCREEN_READER = ".sr-only, .visually-hidden, .screen-reader-text"
"""What frameworks name text that they draw nowhere: Bootstrap and Tailwind, Bootstrap 5, WordPress."""

_UNDRAWN = "noscript, dialog:not([open]), [role='dialog'][aria-hidden='true']"
"""By browsers with scripts (HTML Living Standard, 15.3.1), and by scripts that close what is no `dialog` (WAI-ARIA)."""

_HIDDEN = ", ".join(
    (
        "[hidden]",
        _UNDRAWN,
        _SCREEN_READER,
        *(f"[style*='{name}' i]" for name in ("display", "visibility", "opacity", "clip", "font-size", "-9", "-1")),
    )
)
_UNSEEN = re.compile(
    r"""(?ix)(?:^|[;\s"]) (?:
    display\s*:\s*none | content-visibility\s*:\s*hidden
    | (?:left|right|top|bottom|text-indent|margin(?:-left|-top)?)\s*:\s*-(?:\d{4,}|9{3,}|\d{3,}r?em)
    | clip\s*:\s*rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?\s*\)
    | clip-path\s*:\s*(?:inset\(\s*(?:50|100)%|circle\(\s*0)
    | font-size\s*:\s*0(?:[a-z]+|%)?\s*(?:;|!|$)
    )"""
)
_TRANSPARENT = re.compile(
    r"(?i)(?:^|[;\s])(?:opacity\s*:\s*(?:0+(?:\.0*)?|\.0+)%?\s*(?:;|!|$)|visibility\s*:\s*(?:hidden|collapse))"
)
_MOVING = re.compile(r"(?i)transform|transition|animation|will-change")
"""How a text begins that a script lets appear: nearly all of some pages is transparent at first."""

_FRAME = "body, main, :has(main)"
_LABEL = 30  # characters below which a hidden element of its own is a label (`Posts navigation`)
NUMBER = "\x05"
"""Around the number of an item that a page states: `4. `. Libraries extract control characters as they do letters, and
no text in normal form has any."""

_NUMBERED = re.compile(rf"(?:\d+\. |\u2022 ?)?{NUMBER}([^{NUMBER}\n]*){NUMBER} ?")
_SHORT_LINE = 80  # characters that a line of prose has; 97 % of those of fundus' articles are in such paragraphs
_SENTENCE_END = re.compile("[.!?\u2026\u3002\uff01\u061f\uff1f\u0964][\"'\u201d\u2019\u00bb)\\]]*$")
_LITTLE = 1000  # characters of hidden text that are no page

_SYMBOLS = "\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_EMOJI = re.compile(f"(?=.*[{_SYMBOLS}])[0-9#*\u00a9\u00ae\u200d\ufe0f\U000e0020-\U000e007f{_SYMBOLS}]{{1,16}}")
_LIGATURE = re.compile(r"\s*[a-z0-9]+(?:_[a-z0-9]+)*\s*")
_ICONS = re.compile(r"(?i)(?:^|[\s_-])(?:icons|symbols)(?:$|[\s_-])")
_QUOTED = re.compile("\\s*[\"'\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u2018\u2019\u300c\u300e]")
_ASKS = ("?", "\uff1f", "\u061f")
_COUNT = re.compile(r"\d[\d.,]*(?:\s?[kKmM])?(?:\s\w+)?")
"""What a button in a heading says of readers, `11 claps`: it unfolds nothing, as one of a year may."""

_VERSE = re.compile(f"[{VERSE_SIGNS}]$")
_LONG_TABLE = 1000  # characters of a table with others in it, above which it is a layout, as one with links is
_LEAF = "div > div:first-child:not(:has(a, button, div, form, h1, h2, h3, h4, h5, h6, img, ol, p, pre, table, ul))"


class _Kind(NamedTuple):
    """The tags and words of a page that may have something, its selector, and what is done: that returns if it was."""

    tags: str
    words: tuple[str, ...]
    selector: str
    change: Callable[["HTMLTree", list["ElementNode"]], bool]


def render(tree: "HTMLTree", html: str, *, numbers: bool = True) -> bool:
    """Change the tree of a page; return whether there was anything to change.

    `numbers` says whether items get those that `numbered` reads: a reader that counts items by itself wants none.
    """
    if tree.body is None:
        return False
    markup = html.lower() if _SHOUTED.search(html) else html  # a pattern that ignores case takes three times as long
    tags, changed = {tag[tag.lastindex or 0] for tag in _TAG.finditer(markup)}, False
    for kind in _KINDS:
        if kind.change is _number and not numbers:
            continue
        if not tags.isdisjoint(kind.tags.split()) or any(word in markup for word in kind.words):
            nodes = tree.body.query_selector_all(kind.selector).values()
            changed = (bool(nodes) and kind.change(tree, nodes)) or changed
    return changed


def rendered(html: str) -> str:
    """Return the markup of a page as it is shown, for libraries that parse it themselves.

    They read less than browsers do: tables within tables and lines that are elements are given as plain lines.
    """
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse(html)
    changed = render(tree, html)
    if tree.body is not None:
        _remove(tree, [node for node in tree.body.query_selector_all("[hidden]").values() if not _is_all_links(node)])
        changed = _flatten_tables(tree, tree.body.query_selector_all("table table").values()) or changed
        changed = _join_lines(tree, tree.body.query_selector_all(_LEAF).values()) or changed
    return numbered(str(tree)) if changed else html


def numbered(text: str) -> str:
    """Return a text with the numbers that its page states, and not those that a library counts."""
    return _NUMBERED.sub(r"\1", text) if NUMBER in text else text


def replace(tree: "HTMLTree", element: "ElementNode", tag: str = "div") -> None:
    """Put another element in the place of one, with what it has."""
    block = tree.create_element(tag)
    element.parent.insert_before(block, element)
    while element.first_child is not None:
        block.append_child(element.first_child)
    element.remove()


def _open_roots(tree: "HTMLTree", templates: list["ElementNode"]) -> bool:
    """Put declarative shadow roots into their hosts, and what these have into the slots; leave out other templates."""
    queue = templates[:]
    for template in queue:
        if template.parent is None:  # a second root of its host, which has one
            continue
        if len(queue) < _MOST_SHADOWS and (template.getattr("shadowrootmode") or template.getattr("shadowroot")):
            root = tree.create_element("div")
            root.html = template.html.partition(">")[2].rpartition("</")[0]
            host = template.parent
            template.remove()
            _fill_slots(root, host)
            host.append_child(root)
            queue += root.query_selector_all("template").values()
        else:
            template.remove()
    return True


def _fill_slots(root: "ElementNode", host: "ElementNode") -> None:
    """Move the children of a host into the slots of its root; those without a slot are not shown."""
    slots = {slot.getattr("name") or "": slot for slot in reversed(root.query_selector_all("slot").values())}
    filled = set[str]()
    for child in list(children(host)):
        name = (child.getattr("slot") or "") if child.type == 1 else ""
        slot = slots.get(name)
        if slot is None:
            host.remove_child(child)
            continue
        if name not in filled and (child.type == 1 or child.text.strip()):
            filled.add(name)
            while slot.first_child is not None:  # what it has where nothing fills it
                slot.remove_child(slot.first_child)
        slot.append_child(child)


def _hide(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Mark what is not drawn; but not most of a page, nor its frame, which a script shows."""
    hidden, frames = list["ElementNode"](), list["ElementNode"]()
    for node in nodes:
        if node.text.strip() and _is_hidden(node) and not _is_offered(node):
            (frames if node.matches(_FRAME) else hidden).append(node)
    for frame in frames:
        for name in ("hidden", "style"):
            frame.delattr(name)
    sizes = sum(map(_chars, hidden))
    if sizes > _LITTLE and 2 * sizes > _shown_chars(tree):
        return bool(frames)
    for node in hidden:
        if node.matches(_SCREEN_READER):
            _show_twin(node)
        node.setattr("hidden", "")  # it still counts where a library asks how much of a list is links
    return bool(frames) or any(_is_worth_it(node) for node in hidden)


def _is_worth_it(node: "ElementNode") -> bool:
    """Return whether libraries that parse a page themselves would read what is hidden: no label, and no links alone."""
    chars = len(node.text.strip())
    is_label = chars < _LABEL and node.closest("p") is None
    return chars > 0 and not is_label and not _is_all_links(node)


def _is_all_links(node: "ElementNode") -> bool:
    """Return whether an element is links alone: libraries leave it out by that, and judge what is around it by it."""
    if node.closest("a") is not None:
        return True
    return bool(_linked_chars(node) >= _chars(node) > 0)


def _shown_chars(tree: "HTMLTree") -> int:
    unread = tree.body.query_selector_all("script, style, noscript").values()
    return _chars(tree.body) - sum(map(_chars, unread))


def _chars(node: "ElementNode") -> int:
    """Return the characters of an element's text without blanks: hidden formulas are indented line by line."""
    return len("".join(node.text.split()))


def _is_hidden(node: "ElementNode") -> bool:
    if node.hasattr("hidden"):
        return bool(node.getattr("hidden").lower() != "until-found")
    style = node.getattr("style") or ""
    if _UNSEEN.search(style) or node.matches(_UNDRAWN):
        return True
    if _TRANSPARENT.search(style) and not _MOVING.search(style):
        return not any(name.startswith("data-") for name in node.attrs)
    return bool(node.matches(_SCREEN_READER)) and not _is_label(node)


def _is_label(node: "ElementNode") -> bool:
    """Return whether a text for screen readers names a page whose headline is a logo, or is all that a link says."""
    link = node.closest("a, h1")
    return link is not None and (link.tag == "h1" or link.text.strip() == node.text.strip())


def _is_offered(node: "ElementNode") -> bool:
    """Return whether what is hidden has a shown sibling of its class: a page offers to switch, as between units."""
    name = _first_class(node)
    beside = (node.prev_element, node.next_element, node.parent.first_element_child)
    return bool(name) and any(
        one and one.tag == node.tag and _first_class(one) == name and not _is_hidden(one) for one in beside
    )


def _first_class(node: "ElementNode") -> str:
    return str((node.getattr("class") or "").partition(" ")[0])


def _show_twin(node: "ElementNode") -> None:
    """Keep what a paragraph draws in the place of a text for screen readers, and these do not read."""
    for twin in children(node.parent) if node.closest("p") is not None else ():
        if twin.type == 1 and twin.getattr("aria-hidden") == "true" and twin.text.strip():
            twin.delattr("aria-hidden")


def _show_ruby(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Keep words without their readings, which are above and not between them."""
    _remove(tree, [node for node in nodes if node.tag != "ruby"])
    for word in nodes:
        if word.tag == "ruby":
            word.parent.insert_before(tree.create_text_node(word.text), word)
            word.remove()
    return True


def _remove(_: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Leave out elements, as those that are there for browsers that cannot draw or play."""
    changed = any(map(_is_worth_it, nodes))
    for node in nodes:
        node.remove()
    return changed


def _remove_icons(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Leave out names that a font draws as pictures."""
    icons = [node for node in nodes if _ICONS.search(node.getattr("class")) and _LIGATURE.fullmatch(node.text)]
    return _remove(tree, icons)


def write_images(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Give pictures of emoji and formulas as text, unless the formula is there beside its picture."""
    changed = False
    for image in nodes:
        alt = (image.getattr("alt") or "").strip()
        text, before = alt if _EMOJI.fullmatch(alt) else image_formula(image), image.prev_element
        is_doubled = before is not None and not _is_hidden(before) and alt in before.text
        if text and not is_doubled:
            image.parent.insert_before(tree.create_text_node(text), image)
            changed = True
    return changed


def _quote(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    for node in nodes:
        if not _QUOTED.match(node.text):
            mark = "'" if node.parent.closest("q") is not None else '"'
            node.insert_before(tree.create_text_node(mark), node.first_child)
            node.append_child(tree.create_text_node(mark))
    for node in nodes:
        replace(tree, node, "span")
    return True


def _number(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Write the numbers of items that do not begin at one or go on by one, as marks for `numbered`."""
    for node in nodes:
        items = [child for child in children(node) if child.type == 1 and child.tag == "li"]
        step = -1 if node.hasattr("reversed") else 1
        number = _whole(node.getattr("start"), len(items) if step < 0 else 1)
        for item in items:
            number = _whole(item.getattr("value"), number)
            within = item
            while (
                within.first_child is not None
                and within.first_child.type == 1
                and within.first_child.tag in ("p", "div")
            ):
                within = within.first_child
            label = tree.create_text_node(f"{NUMBER}{_label(number, node.getattr('type'))}. {NUMBER}")
            if within.first_child is None:
                within.append_child(label)
            else:
                within.insert_before(label, within.first_child)
            number += step
    return True


def _whole(text: str | None, default: int) -> int:
    found = re.match(r"\s*(-?\d{1,9})", text or "")
    return int(found[1]) if found else default


def _label(number: int, kind: str | None) -> str:
    """Return a number as letters where a list has the type `a` or `A`, which has more than 26 only with two."""
    if kind in ("a", "A") and 1 <= number <= 26:
        return chr(ord(kind) + number - 1)
    return str(number)


def _show_buttons(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Keep headings and questions that are buttons, as those of answers that fold."""
    changed = False
    for node in nodes:
        if node.closest("h1, h2, h3, h4, h5, h6, dt, summary") is not None:
            if _COUNT.fullmatch(" ".join(node.text.split())) and not node.hasattr("aria-expanded"):
                continue
            replace(tree, node, "span")
            changed = True
        elif node.text.strip().endswith(_ASKS):
            replace(tree, node, "p")
            changed = True
    return changed


def _unlink(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Keep a paragraph that is one link and a sentence."""
    changed = False
    for link in nodes:
        text = link.text.strip()
        if (
            len(text) >= _SHORT_LINE
            and _SENTENCE_END.search(text)
            and link.parent.text.strip() == text
            and _is_amid(link.parent)
        ):
            replace(tree, link, "span")
            changed = True
    return changed


def _ancestors(node: "Node") -> Iterator["ElementNode"]:
    """Yield the three elements that a line is in, as a stanza, a poem and a quotation."""
    for _ in range(3):
        node = node.parent
        if node is None or node.tag in ("body", "html"):
            return
        yield node


def _is_amid(paragraph: "ElementNode") -> bool:
    """Return whether there are sentences before and after a paragraph, which may be in an element of its own."""
    alone = paragraph.prev_element is None and paragraph.next_element is None
    block = paragraph.parent if alone else paragraph
    return all(
        beside is not None
        and _SENTENCE_END.search(beside.text.strip())
        and 2 * _linked_chars(beside) < len(beside.text)
        for beside in (block.prev_element, block.next_element)
    )


def _linked_chars(node: "ElementNode") -> int:
    return sum(len(link.text) for link in node.query_selector_all("a").values())


def _show_tables(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """Keep tables and code that are figures, with their captions: libraries leave out figures and captions."""
    for figure in nodes:
        for caption in figure.query_selector_all("figcaption").values():
            replace(tree, caption, "p")
        replace(tree, figure)
    return True


def _parts(node: "Node") -> list["Node"]:
    """Return the elements in an element, and its texts but blanks."""
    return [child for child in children(node) if child.type == 1 or child.text.strip()]


def _break_lines(tree: "HTMLTree", nodes: list["ElementNode"]) -> bool:
    """End the lines of code that are elements, where nothing else ends them."""
    changed = False
    for code in nodes:
        if "\n" in code.text.strip():  # before its parts are listed, which are thousands
            continue
        lines = _parts(code)
        while len(lines) == 1 and lines[0].type == 1:
            lines = _parts(lines[0])
        kinds = {(line.tag, line.getattr("class")) if line.type == 1 else None for line in lines}
        if len(lines) > 1 and len(kinds) == 1 and None not in kinds:
            for line in lines[:-1]:
                line.append_child(tree.create_text_node("\n"))
            changed = True
    return changed


def _flatten_tables(tree: "HTMLTree", tables: Iterable["ElementNode"]) -> bool:
    changed = False
    for table in tables:
        around = table.parent.closest("table")
        if len(around.text) > _LONG_TABLE or around.query_selector("a, script, table table table") is not None:
            continue
        block = tree.create_element("div")
        for row in table.query_selector_all("tr").values():
            cells = row.query_selector_all("td, th").values()
            line = tree.create_element("div")
            line.append_child(tree.create_text_node(" ".join(" ".join(cell.text.split()) for cell in cells)))
            block.append_child(line)
        table.parent.insert_before(block, table)
        table.remove()
        changed = True
    return changed


def _join_lines(tree: "HTMLTree", firsts: Iterable["ElementNode"]) -> bool:
    """Make a paragraph of lines that are elements, as those of a poem."""
    changed = False
    for first in firsts:
        lines = _parts(first.parent)
        if len(lines) < 2 or not all(line.type == 1 and line.matches("div") for line in lines):
            continue
        if any(line.query_selector("a, button, div, form, img, p, table, ul") is not None for line in lines):
            continue
        ends = [_VERSE.search(line.text.strip()) is not None for line in lines]
        if not ends[-1] or 2 * sum(ends) < len(ends):
            continue
        if not any(map(_is_amid, _ancestors(first))):
            continue
        paragraph = tree.create_element("p")
        first.parent.insert_before(paragraph, first)
        for line in lines:
            while line.first_child is not None:
                paragraph.append_child(line.first_child)
            paragraph.append_child(tree.create_element("br"))
            line.remove()
        changed = True
    return changed


_KINDS = (
    _Kind("template", (), "template", _open_roots),
    _Kind("math mjx-container script span", (), FORMULAS, write_formulas),
    _Kind(
        "noscript dialog",
        (
            "hidden",
            "display:",
            "display: ",
            "opacity",
            "collapse",
            "sr-only",
            "screen-reader-text",
            ":-",
            ": -",
            "clip",
            "font-size",
            "STYLE",
        ),
        _HIDDEN,
        _hide,
    ),
    _Kind("ruby", (), "rt, rp, rtc, ruby", _show_ruby),
    _Kind("canvas video audio", (), "canvas, video, audio", _remove),
    _Kind("icons symbols", (), "[class*='icons' i], [class*='symbols' i]", _remove_icons),
    _Kind("img", (), "img[alt]", write_images),
    _Kind("q", (), "q", _quote),
    _Kind("ol li", (), "ol[start], ol[reversed], ol[type='a' i], ol:has(> li[value])", _number),
    _Kind(
        "button",
        (),
        ":is(h1, h2, h3, h4, h5, h6, dt, summary) button, button[aria-expanded][aria-controls]",
        _show_buttons,
    ),
    _Kind("p", (), "p > a:only-child", _unlink),
    _Kind("figure", (), "figure:has(table, pre)", _show_tables),
    _Kind("pre", (), "pre:has(> span + span, > code + code, > code > span + span)", _break_lines),
)
"""In order: what a root has may be hidden, and a formula may be drawn by what is."""
