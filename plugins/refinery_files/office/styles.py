"""Resolves the styles and lists of a Word file: what a paragraph is by its style, and the label that is before it."""

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from refinery_files.office.labels import Counts, numeral

if TYPE_CHECKING:
    from lxml.etree import _Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
VAL = f"{W}val"
MOST_LEVELS = 9
BODY_LEVEL = 9
"""The level in the outline of what is no heading."""

_MOST_BASES = 30
_TITLES = ("title", "titel", "titre", "t\u00edtulo", "titolo")
_HEADING = re.compile(r"heading ([1-9])")
_CODE = re.compile(
    r"(?i)(?:html )?preformatted(?: text)?|(?:source|code)[ _-]?(?:code|block|listing|text)?|listing|plain text"
)
_PART = re.compile(r"%([1-9])")


@dataclass(frozen=True, slots=True)
class Style:
    """What a style says; None where it says nothing, which its base may."""

    name: str = ""
    level: int | None = None
    list_id: str | None = None
    list_level: int | None = None
    is_hidden: bool | None = None
    is_strong: bool | None = None
    is_emphasis: bool | None = None
    font: str | None = None

    @property
    def heading(self) -> int:
        """The level of a heading, from 1 on, 0 if it is none."""
        name = self.name.lower()
        if name in _TITLES:
            return 1
        if self.level is not None:
            return self.level + 1 if self.level < BODY_LEVEL else 0
        named = _HEADING.fullmatch(name)
        return int(named[1]) if named else 0

    @property
    def is_code(self) -> bool:
        """Whether the lines of its paragraphs are code."""
        return _CODE.fullmatch(self.name) is not None

    @property
    def is_contents(self) -> bool:
        """Whether its paragraphs are lines of a table of contents."""
        return (
            re.fullmatch(r"toc (?:[1-9]|heading)|table of figures|contents (?:[1-9]|heading)", self.name.lower())
            is not None
        )


def is_on(parent: "_Element | None", name: str) -> bool | None:
    """Return what a property that is on or off says, None if it is not there."""
    found = None if parent is None else parent.find(W + name)
    return None if found is None else found.get(VAL, "1") not in ("0", "false", "off")


def font_of(run: "_Element | None") -> str | None:
    """Return the font of Latin letters that properties of a run name."""
    found = None if run is None else run.find(f"{W}rFonts")
    return None if found is None else found.get(f"{W}ascii")


def value(parent: "_Element | None", path: str) -> str | None:
    """Return the value of a property, None if it is not there."""
    found = None if parent is None else parent.find("/".join(W + name for name in path.split("/")))
    return None if found is None else found.get(VAL)


def whole(text: str | None) -> int | None:
    """Return a whole number of at most nine digits, None of what is none."""
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else None


class Styles:
    """The styles of a file by their ids, each over what it is based on."""

    def __init__(self, root: "_Element | None") -> None:
        self._elements = (
            {} if root is None else {each.get(f"{W}styleId", ""): each for each in root.findall(f"{W}style")}
        )
        self._found: dict[str, Style] = {}

    def __getitem__(self, name: str | None) -> Style:
        """Return a style, an empty one if there is none of this id."""
        if not name:
            return Style()
        if name not in self._found:
            self._found[name] = self._resolved(name)
        return self._found[name]

    def _resolved(self, name: str) -> Style:
        style, seen = Style(), set[str]()
        at: str | None = name
        while at and at in self._elements and at not in seen and len(seen) < _MOST_BASES:
            seen.add(at)
            style = _over(style, _stated(self._elements[at]))
            at = value(self._elements[at], "basedOn")
        return style


def _stated(element: "_Element") -> Style:
    paragraph, run = element.find(f"{W}pPr"), element.find(f"{W}rPr")
    return Style(
        name=value(element, "name") or "",
        level=whole(value(paragraph, "outlineLvl")),
        list_id=value(paragraph, "numPr/numId"),
        list_level=whole(value(paragraph, "numPr/ilvl")),
        is_hidden=is_on(run, "vanish"),
        is_strong=is_on(run, "b"),
        is_emphasis=is_on(run, "i"),
        font=font_of(run),
    )


def _over(style: Style, base: Style) -> Style:
    """Return a style with what it lacks from its base, but its name."""
    missing = {name: getattr(base, name) for name in Style.__slots__ if name != "name" and getattr(style, name) is None}
    return replace(style, name=style.name or base.name, **missing)


@dataclass(frozen=True, slots=True)
class _Level:
    form: str
    text: str
    start: int


@dataclass(slots=True)
class _List:
    levels: dict[int, _Level] = field(default_factory=dict)
    overridden: dict[int, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)


class Lists:
    """The lists of a file, which count as their items are read."""

    def __init__(self, root: "_Element | None", styles: Styles) -> None:
        self._abstract = (
            {} if root is None else {e.get(f"{W}abstractNumId", ""): e for e in root.findall(f"{W}abstractNum")}
        )
        self._nums = {} if root is None else {e.get(f"{W}numId", ""): e for e in root.findall(f"{W}num")}
        self._styles = styles
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, Counts] = {}

    def label(self, list_id: str, level: int) -> str:
        """Count an item and return its label, "" if it shows none."""
        if not 0 <= level < MOST_LEVELS or list_id not in self._nums:
            return ""
        if list_id not in self._lists:
            self._lists[list_id] = self._read(list_id)
        found = self._lists[list_id]
        shape = found.levels.get(level)
        if shape is None:
            return ""
        if level in found.overridden:  # a list that goes on with another's counts, but begins anew itself
            found.counts.restart(level)
            del found.overridden[level]
        found.counts.count(level, {nth: each.start for nth, each in found.levels.items()})
        if shape.form == "bullet":
            return "\u2022"
        return _PART.sub(lambda part: self._numeral(found, int(part[1]) - 1), shape.text)

    def _numeral(self, found: _List, level: int) -> str:
        form = found.levels[level].form if level in found.levels else "decimal"
        return numeral(found.counts.number(level), "decimal" if form == "bullet" else form)

    def _read(self, list_id: str) -> _List:
        num = self._nums[list_id]
        abstract_id = self._abstract_id(list_id)
        found = _List(counts=self._counts.setdefault(abstract_id, Counts()))
        for element in self._abstract[abstract_id].findall(f"{W}lvl") if abstract_id in self._abstract else ():
            found.levels[whole(element.get(f"{W}ilvl")) or 0] = _level(element, None)
        for override in num.findall(f"{W}lvlOverride"):
            level, start = whole(override.get(f"{W}ilvl")) or 0, whole(value(override, "startOverride"))
            own = override.find(f"{W}lvl")
            if own is not None:
                found.levels[level] = _level(own, start)
            elif start is not None and level in found.levels:
                before = found.levels[level]
                found.levels[level] = _Level(before.form, before.text, start)
            if start is not None:
                found.overridden[level] = start
        return found

    def _abstract_id(self, list_id: str) -> str:
        """Return which definition a list has; one may name a style that names a list, and so on."""
        seen = set[str]()
        while True:
            abstract_id = value(self._nums.get(list_id), "abstractNumId") or ""
            link = value(self._abstract.get(abstract_id), "numStyleLink")
            following = self._styles[link].list_id if link else None
            if not following or following in seen:
                return abstract_id
            seen.add(following)
            list_id = following


def _level(element: "_Element", start: int | None) -> _Level:
    first = whole(value(element, "start")) if start is None else start
    return _Level(value(element, "numFmt") or "decimal", value(element, "lvlText") or "", 1 if first is None else first)
