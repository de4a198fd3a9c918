"""What a PDF declares of itself: title, language, day."""

import ctypes
import datetime as dt
import re
from collections.abc import Iterable

import pypdfium2 as pdfium2
from pypdfium2 import raw

_DATE = re.compile(r"(?:D:)?((?:19|20)\d\d)(\d\d)?(\d\d)?")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*$")
_FILE_NAME = re.compile(
    r"\.(?:docx?|odt|rtf|xlsx?|pptx?|pdf|tex|dvi|indd|qxd|qxp|pmd|p65|ps|eps|html?|txt|wpd|cdr|ai|tmp|fm)$",
    re.IGNORECASE,
)
# programs name what their authors did not
_UNTITLED = re.compile(
    r"(?:untitled|unbenannt|sans titre|document|slide|presentation|powerpoint presentation|book|sheet|page|doc|title"
    r"|print)[\s\d_-]*$",
    re.IGNORECASE,
)
_PROGRAM = re.compile(r"^(?:Microsoft (?:Word|PowerPoint|Excel)|Print|PowerPoint|Word) - ")
_MOST = 500
# characters of a title at least that needs no page to say so
_SHORT = 3


def title_of(document: pdfium2.PdfDocument, lines: Iterable[str] = ()) -> str | None:
    """Return the declared title, if it is one, and no name of a file.

    What is short, or one word with a number, may be a name: the first page's lines say that it is a title.
    """
    title = " ".join(document.get_metadata_value("Title").replace("\x00", " ").split())
    bare = _PROGRAM.sub("", title)
    if not any(map(str.isalpha, bare)) or len(bare) > _MOST or "\ufffd" in bare:
        return None
    if _FILE_NAME.search(bare) or _UNTITLED.match(bare) or re.search(r"[\\/]\S+[\\/]|^\w+://", bare):
        return None
    is_name = " " not in bare and ("_" in bare or any(map(str.isdigit, bare)))
    return bare if (len(bare) >= _SHORT and not is_name) or _is_written(bare, lines) else None


def _is_written(title: str, lines: Iterable[str]) -> bool:
    """Return whether a line is a title, or begins or ends with it; of a short one all of a line."""
    wanted = title.casefold()
    for line in lines:
        written = " ".join(line.casefold().split())
        is_at_end = written.startswith(f"{wanted} ") or written.endswith(f" {wanted}")
        if written == wanted or (len(title) >= _SHORT and is_at_end):
            return True
    return False


def language_of(document: pdfium2.PdfDocument) -> str | None:
    """Return the declared language."""
    buffer = (ctypes.c_ushort * 32)()
    size = raw.FPDFCatalog_GetLanguage(document.raw, buffer, ctypes.sizeof(buffer))
    language = bytes(buffer)[: max(0, min(size, ctypes.sizeof(buffer)) - 2)].decode("utf-16-le", "replace").strip()
    return language.replace("_", "-") if _LANGUAGE.match(language) else None


def day_of(document: pdfium2.PdfDocument) -> str | None:
    """Return the day on which a document was made, ISO 8601."""
    found = _DATE.match(document.get_metadata_value("CreationDate").strip())
    if not found or not found[2] or not found[3]:
        return None
    try:
        return dt.date(int(found[1]), int(found[2]), int(found[3])).isoformat()
    except ValueError:
        return None
