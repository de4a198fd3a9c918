"""Resolves styles and lists of OpenDocument (OASIS, 1.3, part 3): what a style says, and the labels of items."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from refinery_files.markup import EMPHASIS, FIXED, LOWERED, RAISED, STRONG, is_fixed_font
from refinery_files.office.labels import Counts, numeral
from refinery_files.xml import whole

if TYPE_CHECKING:
    from lxml.etree import _Element

_NS = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, DRAW, STYLE = (f"{{{_NS}{name}:1.0}}" for name in ("text", "table", "drawing", "style"))
OFFICE, SHOWS = f"{{{_NS}office:1.0}}", f"{{{_NS}presentation:1.0}}"
FO = f"{{{_NS}xsl-fo-compatible:1.0}}"
MOST_LEVELS = 10
_MOST_PARENTS = 30
_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_HEAVY = ("bold", "600", "700", "800", "900")


@dataclass(frozen=True, slots=True)
class Look:
    """What a style says, over what it is based on; `name` is the one that a person sees."""

    name: str = ""
    is_hidden: bool = False
    bits: int = 0
    list_name: str = ""

    @property
    def is_code(self) -> bool:
        """Whether its paragraphs are lines of code."""
        return "preformatted" in self.name.lower() or self.name.lower() in ("source_20_code", "source code", "code")

    @property
    def is_title(self) -> bool:
        """Whether its paragraph is the title of the text."""
        return self.name.lower() == "title"


class Looks:
    """The styles of a file by family and name."""

    def __init__(self, *roots: "_Element | None") -> None:
        self._elements = {
            (each.get(f"{STYLE}family", ""), each.get(f"{STYLE}name", "")): each
            for root in roots
            if root is not None
            for each in root.iter(f"{STYLE}style")
        }
        self._found: dict[tuple[str, str], Look] = {}

    def look(self, family: str, name: str | None) -> Look:
        """Return what a style says, nothing where there is none."""
        key = (family, name or "")
        if key not in self._found:
            self._found[key] = self._resolved(family, name or "")
        return self._found[key]

    def element(self, family: str, name: str | None) -> "_Element | None":
        """Return a style as it is written."""
        return self._elements.get((family, name or ""))

    def _resolved(self, family: str, name: str) -> Look:
        chain, seen, at = list["_Element"](), set[str](), name
        while (family, at) in self._elements and at not in seen and len(chain) < _MOST_PARENTS:
            seen.add(at)
            chain.append(self._elements[family, at])
            at = chain[-1].get(f"{STYLE}parent-style-name", "")
        look = Look(name=_shown_name(chain, name))
        for element in reversed(chain):
            look = replace(look, list_name=element.get(f"{STYLE}list-style-name", look.list_name))
            stated = element.find(f"{STYLE}text-properties")
            look = look if stated is None else _over(stated, look)
        return look


def _shown_name(chain: list["_Element"], name: str) -> str:
    """Return the name of the first style that is no automatic one (`P12`)."""
    for element in chain:
        if not element.getparent().tag.endswith("automatic-styles"):
            return str(element.get(f"{STYLE}name", ""))
    return str(chain[-1].get(f"{STYLE}parent-style-name", "")) if chain else name


def _over(stated: "_Element", look: Look) -> Look:
    bits = look.bits
    for attribute, values, bit in (
        (f"{FO}font-weight", _HEAVY, STRONG),
        (f"{FO}font-style", ("italic", "oblique"), EMPHASIS),
    ):
        text = stated.get(attribute)
        if text is not None:
            bits = bits | bit if text in values else bits & ~bit
    place = stated.get(f"{STYLE}text-position", "").partition(" ")[0]
    if place:
        is_low = place.startswith(("sub", "-"))
        height = 0 if place in ("0%", "0") else LOWERED if is_low else RAISED
        bits = bits & ~(RAISED | LOWERED) | height
    font = stated.get(f"{STYLE}font-name") or stated.get(f"{FO}font-family")
    if font is not None:
        bits = bits | FIXED if is_fixed_font(font) else bits & ~FIXED
    display = stated.get(f"{TEXT}display")
    return replace(look, bits=bits, is_hidden=look.is_hidden if display is None else display == "none")


class Numbering:
    """The styles of lists of a file, and the outline that numbers headings."""

    def __init__(self, *roots: "_Element | None") -> None:
        self._styles = {
            each.get(f"{STYLE}name", ""): _levels(each)
            for root in roots
            if root is not None
            for each in root.iter(f"{TEXT}list-style")
        }
        self._outline = next(
            (_levels(each) for root in roots if root is not None for each in root.iter(f"{TEXT}outline-style")), {}
        )
        self._headings = Counts()

    def label(self, style: str, level: int, counts: Counts, start: int | None) -> str:
        """Count an item of a list on, or to `start`, and return its label."""
        levels = self._styles.get(style, {})
        shape = levels.get(level)
        if shape is None:
            return "\u2022"
        if start is not None:
            counts.restart(level)
        starts = {nth: whole(each.get(f"{TEXT}start-value"), 1) for nth, each in levels.items()}
        counts.count(level, starts if start is None else {**starts, level: start})
        return _label(levels, level, counts)

    def heading(self, level: int) -> str:
        """Count a heading and return its number, "" if it shows none."""
        if level not in self._outline:
            return ""
        self._headings.count(
            level, {nth: whole(each.get(f"{TEXT}start-value"), 1) for nth, each in self._outline.items()}
        )
        return _label(self._outline, level, self._headings)


def _levels(style: "_Element") -> dict[int, "_Element"]:
    return {whole(each.get(f"{TEXT}level"), 1) - 1: each for each in style if each.get(f"{TEXT}level")}


def _label(levels: dict[int, "_Element"], level: int, counts: Counts) -> str:
    shape = levels[level]
    if not shape.tag.endswith(("level-style-number", "outline-level-style")):
        return "\u2022"
    form = shape.get(f"{STYLE}num-format", "")
    if not form:
        return ""
    first = max(level + 1 - whole(shape.get(f"{TEXT}display-levels"), 1), 0)
    numbers = [
        numeral(counts.number(nth), _FORMS.get(levels[nth].get(f"{STYLE}num-format", "1"), "decimal"))
        for nth in range(first, level + 1)
        if nth in levels and levels[nth].get(f"{STYLE}num-format", "1")
    ]
    return f"{shape.get(f'{STYLE}num-prefix', '')}{'.'.join(numbers)}{shape.get(f'{STYLE}num-suffix', '')}"
