"""Office files: texts, slides and sheets of Office Open XML and OpenDocument, and RTF.

`read` decides by what an archive holds, not by its name. Macros never run, objects that are embedded are not read, and
nothing outside of the file is opened.
"""

from pipeline_tasks.text.page.file_text import DAMAGED, FileRefused, FileText
from refinery_files.archive import Archive, first_names
from refinery_files.refusals import something

RTF = b"{\\rtf"
_OPEN = "application/vnd.oasis.opendocument."
_MAIN_PARTS = {
    "word/document.xml": "word",
    "ppt/presentation.xml": "slides",
    "xl/workbook.xml": "sheets",
}
_FOLDERS = ("word/", "ppt/", "xl/")
_MIMETYPE = b"mimetype" + _OPEN.encode()


def holds(body: bytes) -> bool:
    """Return whether bytes that begin as a zip archive or RTF are an office file; opens no member."""
    if body[:64].lstrip().startswith(RTF) or _MIMETYPE in body[:200]:
        return True
    names = first_names(body)
    if any(name.lower().startswith(_FOLDERS) and name.lower().endswith(".xml") for name in names):
        return True
    return {"content.xml", "META-INF/manifest.xml"} <= set(names)


def read(body: bytes) -> FileText:
    """Return the text of an office file; FileRefused for one that is none."""
    return something(_read(body))


def _read(body: bytes) -> FileText:
    if body[:64].lstrip().startswith(RTF):
        from refinery_files.office.rtf import read_rtf

        return read_rtf(body)
    archive = Archive(body)
    if "content.xml" in archive:
        from refinery_files.office.opendocument import read_opendocument

        return read_opendocument(archive)
    return _read_package(archive)


def _read_package(archive: Archive) -> FileText:
    from refinery_files.office.package import Package
    from refinery_files.office.sheets import read_sheets
    from refinery_files.office.slides import read_slides
    from refinery_files.office.word import read_word

    package = Package(archive)
    readers = {"word": read_word, "slides": read_slides, "sheets": read_sheets}
    main = next((each.target for each in package.relations("").values() if each.kind == "officeDocument"), "")
    kind = _MAIN_PARTS.get(main) or next(
        (kind for part, kind in _MAIN_PARTS.items() if part.startswith(_folder(main))), ""
    )
    if not kind:
        main, kind = next(((part, kind) for part, kind in _MAIN_PARTS.items() if part in archive), ("", ""))
    if not kind:
        raise FileRefused(DAMAGED)
    return readers[kind](package, main)


def _folder(name: str) -> str:
    """Return the folder of a part with its slash, one that no part is in where it has none."""
    folder, slash, _ = name.partition("/")
    return f"{folder}/" if slash else "/"
