"""Opens PDFs, and mends those that end before they are whole."""

import re
import zlib
from typing import NamedTuple

import pypdfium2 as pdfium2
from pypdfium2 import raw

from pipeline_tasks.text.page.file_text import DAMAGED, ENCRYPTED, TOO_LARGE, FileRefused
from refinery_files.pdf.bounds import unpacks_to_too_much

MOST_PAGES = 10_000
# a file ends by a mark, which a few bytes may follow
_END = 2_048
_SECURED = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)

_OBJECT = re.compile(rb"(?<!\d)(\d{1,7})\s+(\d{1,5})\s+obj\b")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PACKED = re.compile(rb"/Type\s*/ObjStm\b")
_STREAM = re.compile(rb"stream\r?\n")
# of an object, what is read in search of its type
_HEAD = 4_000
# bytes that objects in streams may unpack to
_MOST_UNPACKED = 64 << 20


class Opened(NamedTuple):
    """An open document, and whether its file ends before it is whole."""

    document: pdfium2.PdfDocument
    is_cut: bool


def opened(body: bytes) -> Opened:
    """Return the document of a file, of which a cut one is mended as far as it goes.

    Raises:
        FileRefused: if it needs a password, has no page, more than `MOST_PAGES`, or unpacks to too much.
    """
    if unpacks_to_too_much(body):
        raise FileRefused(TOO_LARGE)
    is_cut = b"%%EOF" not in body[-_END:] and b"startxref" not in body[-_END:]
    try:
        document = _document(body)
    except FileRefused as refused:
        if refused.args[0] != DAMAGED:
            raise
        return Opened(_document(mended(body)), is_cut=is_cut)
    return Opened(document, is_cut)


def _document(body: bytes) -> pdfium2.PdfDocument:
    try:
        document = pdfium2.PdfDocument(body)
    except pdfium2.PdfiumError as error:
        raise FileRefused(ENCRYPTED if error.err_code in _SECURED else DAMAGED) from error
    count = len(document)
    if 0 < count <= MOST_PAGES:
        return document
    document.close()
    raise FileRefused(TOO_LARGE if count else DAMAGED)


def mended(body: bytes) -> bytes:
    """Return a file with a new catalog at its end, which names the pages that are in it.

    Raises:
        FileRefused: if there is none, or they are encrypted: what says how is at the end.
    """
    found = list(_OBJECT.finditer(body))
    unpacked: dict[int, bytes] = {}
    pages: list[int] = []
    for at, header in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(body)
        head = body[header.end() : min(end, header.end() + _HEAD)]
        if _PACKED.search(head):
            unpacked |= _unpacked(body[header.end() : end], _MOST_UNPACKED - sum(map(len, unpacked.values())))
        elif _PAGE.search(head):
            pages.append(int(header[1]))
    pages += [number for number, content in unpacked.items() if _PAGE.search(content[:_HEAD])]
    if len(pages) > MOST_PAGES:
        raise FileRefused(TOO_LARGE)
    if not pages or b"/Encrypt" in body:
        raise FileRefused(DAMAGED)
    pages = list(dict.fromkeys(pages))
    tree = 1 + max([int(header[1]) for header in found] + [*unpacked])
    kids = b" ".join(b"%d 0 R" % page for page in pages)
    added = [b"%d 0 obj\n%s\nendobj\n" % one for one in unpacked.items()]
    added.append(b"%d 0 obj\n<</Type/Pages/Count %d/Kids[%s]>>\nendobj\n" % (tree, len(pages), kids))
    added.append(b"%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj\n" % (tree + 1, tree))
    added.append(b"trailer\n<</Root %d 0 R/Size %d>>\nstartxref\n0\n%%%%EOF\n" % (tree + 1, tree + 2))
    return body + b"\nendstream\nendobj\n" + b"".join(added)


def _unpacked(content: bytes, bound: int) -> dict[int, bytes]:
    """Return the objects of a stream of objects by their numbers; none if it is damaged, or larger than a bound."""
    begin = _STREAM.search(content)
    first, count = re.search(rb"/First\s+(\d+)", content[:_HEAD]), re.search(rb"/N\s+(\d+)", content[:_HEAD])
    if begin is None or first is None or count is None or bound <= 0:
        return {}
    try:
        data = zlib.decompressobj().decompress(content[begin.end() :], bound)
    except zlib.error:
        return {}
    places = [int(one) for one in data[: int(first[1])].split()[: 2 * int(count[1])] if one.isdigit()]
    starts = [int(first[1]) + place for place in places[1::2]]
    ends = [*starts[1:], len(data)]
    return {number: data[start:end] for number, start, end in zip(places[::2], starts, ends, strict=False)}
