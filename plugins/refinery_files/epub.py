"""Reads EPUB books (W3C EPUB 3.3, and 2.0.1): the chapters in the order of the spine, without tables of contents."""

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pipeline_tasks.text.page.file_text import DAMAGED, ENCRYPTED, TOO_LARGE, FileRefused, FileText
from refinery_files.archive import Archive, first_names
from refinery_files.body import body_of
from refinery_files.office.package import day_of
from refinery_files.refusals import something
from refinery_files.xml import local, parse

if TYPE_CHECKING:
    from lxml.etree import _Element

_MIMETYPE = b"mimetypeapplication/epub+zip"
_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""How fonts are obfuscated, which hides no text."""

_PAGES = ("application/xhtml+xml", "text/html", "application/xml", "text/x-oeb1-document")
_SUFFIXES = (".xhtml", ".html", ".htm", ".xml")
_OPF = "{http://www.idpf.org/2007/opf}"


def holds(body: bytes) -> bool:
    """Return whether bytes that begin as a zip archive are a book; opens no member."""
    if _MIMETYPE in body[:200]:
        return True
    names = first_names(body)
    return _CONTAINER in names and any(name.lower().endswith(".opf") for name in first_names(body, 10_000))


def read(body: bytes) -> FileText:
    """Return the chapters of a book; FileRefused for one whose chapters are encrypted, or that has none."""
    archive = Archive(body)
    place, package = _package(archive)
    if package is None:
        if not archive.is_cut:
            raise FileRefused(DAMAGED)
        pages = [
            name for name in archive.names if name.lower().endswith(_SUFFIXES) and not name.startswith("META-INF/")
        ]
        return something(FileText(_chapters(archive, pages), is_cut=True))
    spine = _spine(package, place)
    if _encrypted(archive) & set(spine):
        raise FileRefused(ENCRYPTED)
    chapters = _chapters(archive, spine)
    if not chapters and not any(name in archive for name in spine):
        raise FileRefused(DAMAGED)
    told = _told(package)
    text = FileText(chapters, title=told.get("title"), language=told.get("language"), is_cut=archive.is_cut)
    return something(text._replace(published=day_of(told.get("date") or "")))


def _package(archive: Archive) -> tuple[str, "_Element | None"]:
    """Return the name and the root of the document that says what a book has; None if there is none."""
    container = _part(archive, _CONTAINER)
    places = (
        []
        if container is None
        else [each.get("full-path", "") for each in container.iter() if local(each) == "rootfile"]
    )
    places += [name for name in archive.names if name.lower().endswith(".opf")]
    for place in places:
        root = _part(archive, place)
        if root is not None and local(root) == "package":
            return place, root
    return "", None


def _part(archive: Archive, name: str) -> "_Element | None":
    data = archive.read(name)
    try:
        return parse(data, is_cut=archive.is_cut) if data else None
    except FileRefused as refused:
        if refused.args[0] == TOO_LARGE:
            raise
        return None


def _spine(package: "_Element", place: str) -> list[str]:
    """Return the names of the chapters in order, without the one that is a table of contents."""
    folder, items = posixpath.dirname(place), dict[str, str]()
    contents = {
        _name(folder, each.get("href", ""))
        for each in package.iter()
        if local(each) == "reference" and each.get("type") == "toc"
    }
    for each in package.iter():
        if local(each) == "item":
            name = _name(folder, each.get("href", ""))
            is_page = each.get("media-type", _PAGES[0]) in _PAGES
            if is_page and name not in contents and "nav" not in each.get("properties", "").split():
                items[each.get("id", "")] = name
    refs = [each.get("idref", "") for each in package.iter() if local(each) == "itemref"]
    return list(dict.fromkeys(items[ref] for ref in refs if ref in items))


def _name(folder: str, address: str) -> str:
    """Return the name of a member by its address in a document of a folder."""
    return posixpath.normpath(posixpath.join("/", folder, unquote(address.partition("#")[0]))).lstrip("/")


def _encrypted(archive: Archive) -> set[str]:
    """Return the names of members that are encrypted, but fonts that are obfuscated."""
    root = _part(archive, _ENCRYPTION)
    found = set[str]()
    for data in () if root is None else (each for each in root.iter() if local(each) == "EncryptedData"):
        methods = [each.get("Algorithm", "") for each in data if local(each) == "EncryptionMethod"]
        if not any(method in _FONTS for method in methods):
            found.update(_name("", each.get("URI", "")) for each in data.iter() if local(each) == "CipherReference")
    return found


def _chapters(archive: Archive, names: list[str]) -> tuple[str, ...]:
    pages = (body_of(archive.read(name), is_xml=True, is_cut=archive.is_cut) for name in names)
    return tuple(page for page in pages if page)


def _told(package: "_Element") -> dict[str, str]:
    """Return the first title and language of a book, and the day on which it was published, if one is marked so."""
    found, marked = dict[str, str](), ""
    for each in package.iter():
        name, text = local(each), " ".join((each.text or "").split())
        if name in ("title", "language", "date") and text:
            found.setdefault(name, text)
            if name == "date" and each.get(f"{_OPF}event") == "publication":
                marked = text
    return {**found, "date": marked or found.get("date", "")}
