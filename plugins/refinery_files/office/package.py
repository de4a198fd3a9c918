"""The parts of a package of Office Open XML, and how they name each other (ECMA-376, part 2)."""

import posixpath
from typing import TYPE_CHECKING, NamedTuple

from pipeline_tasks.text.page.file_text import DAMAGED, TOO_LARGE, FileRefused
from refinery_files.archive import Archive
from refinery_files.xml import local, parse

if TYPE_CHECKING:
    from lxml.etree import _Element

_STRICT = (
    (b"http://purl.oclc.org/ooxml/officeDocument/", b"http://schemas.openxmlformats.org/officeDocument/2006/"),
    (b"http://purl.oclc.org/ooxml/wordprocessingml/", b"http://schemas.openxmlformats.org/wordprocessingml/2006/"),
    (b"http://purl.oclc.org/ooxml/spreadsheetml/", b"http://schemas.openxmlformats.org/spreadsheetml/2006/"),
    (b"http://purl.oclc.org/ooxml/presentationml/", b"http://schemas.openxmlformats.org/presentationml/2006/"),
    (b"http://purl.oclc.org/ooxml/drawingml/", b"http://schemas.openxmlformats.org/drawingml/2006/"),
)
"""Namespaces of the strict form of the standard, and those of the form that all write."""

_HEAD = 4096  # bytes in which a part names its namespaces


class Relation(NamedTuple):
    """Another part that a part names: what it is to it (`styles`, `slide`), and its name."""

    kind: str
    target: str


class Package:
    """The parts of a package, each parsed when it is asked for."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self._found = {name.lower(): name for name in archive.names}

    def data(self, name: str) -> bytes:
        """Return the bytes of a part, b"" if there is none; names differ in case as their writers please."""
        data = self.archive.read(self._found.get(name.lower(), name))
        if b"purl.oclc.org" in data[:_HEAD]:
            for strict, usual in _STRICT:
                data = data.replace(strict, usual)
        return data

    def part(self, name: str) -> "_Element | None":
        """Return the root of a part, None where it is missing or damaged: a file is read without its styles, too."""
        data = self.data(name)
        try:
            return parse(data, is_cut=self.archive.is_cut) if data else None
        except FileRefused as refused:
            if refused.args[0] == TOO_LARGE:
                raise
            return None

    def main(self, name: str) -> "_Element":
        """Return the root of the part that has the text; FileRefused if it is missing or damaged."""
        data = self.data(name)
        if not data:
            raise FileRefused(DAMAGED)
        return parse(data, is_cut=self.archive.is_cut)

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the parts that a part names, by their ids; what is outside of the package is left out."""
        folder, file = posixpath.split(name)
        root = self.part(posixpath.join(folder, "_rels", f"{file}.rels"))
        found = {}
        for each in () if root is None else root:
            if local(each) == "Relationship" and each.get("TargetMode") != "External":
                kind = each.get("Type", "").rpartition("/")[2]
                target = posixpath.normpath(posixpath.join("/", folder, each.get("Target", ""))).lstrip("/")
                found[each.get("Id", "")] = Relation(kind, target)
        return found


class Properties(NamedTuple):
    """What a package says of its file: the title, the language, and the day on which it was changed or made."""

    title: str | None
    language: str | None
    published: str | None


def properties(package: Package) -> Properties:
    """Return the properties of a package (`docProps/core.xml`, or where its relations say)."""
    places = [each.target for each in package.relations("").values() if each.kind == "core-properties"]
    root = package.part(places[0] if places else "docProps/core.xml")
    found = {} if root is None else {local(each): (each.text or "").strip() for each in root}
    day = found.get("modified") or found.get("created") or ""
    return Properties(found.get("title") or None, found.get("language") or None, day_of(day))


def day_of(moment: str) -> str | None:
    """Return the day of a moment of ISO 8601, None if it is none."""
    from datetime import date

    try:
        return date.fromisoformat(moment.strip()[:10]).isoformat()
    except ValueError:
        return None
