"""Readers of types of files: PDF, office files, books, feeds and mail. Each turns bytes into simple HTML of its blocks.

Imports of the core what a type and its text are (`file_types`, `text.page.file_text`), and nothing else. Libraries are
installed by the extra `files`.
"""

from pipeline_tasks.file_types import FileType

_PDF = (
    r"[\s\x00]{0,1000}%PDF-[0-9]"
    r"|[^<]{0,1000}[^<]{0,24}(?:[\r\n\x00\xBF]%PDF-[0-9]"
    r"|%PDF-[0-9]\.[0-9]\s{0,9}[\r\n]\s{0,9}(?:%[^\r\n]{0,9}[\x80-\xFF]|[0-9]+ [0-9]+ obj\b))"
)
"""Readers accept 1,024 bytes of something else before the mark (ISO 32000, annex H). That is no markup, and blank; or
the mark begins a line, or is behind the mark of UTF-8; or a file goes on behind it, with bytes that are no text or an
object (7.5.2): what speaks of the mark is no PDF, and `pdf_mark` looks closer at plain text. RE2 repeats 1,000 times
at most."""

_ZIP = r"PK\x03\x04"

TYPES = {
    each.name: each
    for each in (
        FileType(
            name="pdf",
            title="PDF",
            read="refinery_files.pdf:read",
            begins=_PDF,
            holds_plain="refinery_files.pdf_mark:holds_plain",
            endings=("pdf",),
            libraries=("pypdfium2",),
            image="refinery_files.pdf_image:draw",
        ),
        FileType(
            name="office",
            title="Office",
            read="refinery_files.office:read",
            begins=rf"{_ZIP}|\s{{0,16}}\{{\\rtf",
            holds="refinery_files.office:holds",
            endings=("docx", "docm", "odt", "rtf", "pptx", "pptm", "ppsx", "odp", "xlsx", "xlsm", "ods"),
            libraries=("lxml",),
        ),
        FileType(
            name="epub",
            title="EPUB",
            read="refinery_files.epub:read",
            begins=_ZIP,
            holds="refinery_files.epub:holds",
            endings=("epub",),
            libraries=("lxml",),
        ),
        FileType(
            name="feed",
            title="Feed",
            read="refinery_files.feed:read",
            begins=r"(?:\xEF\xBB\xBF)?\s*(?:<\?[^>]*\?>\s*|<!--(?:[^-]|-[^-])*-->\s*|<!DOCTYPE[^>\[]*>\s*)*"
            r"<(?:rss|feed|rdf:RDF)[\s>]",
            holds="refinery_files.feed:holds",
            endings=("rss", "atom", "rdf"),
            libraries=("lxml",),
        ),
        FileType(
            name="mail",
            title="Mail",
            read="refinery_files.mail:read",
            begins=r"(?:From [^\r\n]{1,200}\r?\n)?[A-Za-z][A-Za-z0-9-]{1,60}:",
            media_types=("message/rfc822", "application/mbox"),
            holds="refinery_files.mail:holds",
            holds_plain="refinery_files.mail:holds_plain",
            endings=("eml", "mbox", "mht", "mhtml"),
            libraries=("lxml",),
        ),
    )
}
"""The types by their names, in the order in which bytes are looked at."""
