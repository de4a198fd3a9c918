"""Bounds what a PDF unpacks to, before a library that has none takes it."""

import re
import zlib

# bytes that one stream that is read may unpack to, and all of a file
_MOST_OF_STREAM = 48 << 20
_MOST_OF_FILE = 400 << 20
# states of graphics that a stream may save and not restore: PDFium keeps each
_MOST_SAVED = 200_000
_LARGE = 1 << 20
# of an object, what is read in search of its filters
_HEAD = 800
_FLATE = re.compile(rb"/Fl(?:ateDecode)?\b")
# what is not unpacked to read text
_UNREAD = re.compile(rb"/Subtype\s*/Image\b|/Type\s*/EmbeddedFile\b")
_SAVES, _RESTORES = re.compile(rb"\bq\b"), re.compile(rb"\bQ\b")


def unpacks_to_too_much(body: bytes) -> bool:
    """Return whether a stream of a file, or all of them, unpack to more than the bounds allow."""
    total = at = 0
    while (at := body.find(b"stream", at)) >= 0:
        begin, at = at + 6, at + 6
        head = body[max(0, begin - _HEAD) : begin]
        head = head[head.rfind(b"obj") + 3 :]
        filters = len(_FLATE.findall(head))
        if not filters or _UNREAD.search(head):
            continue
        end = body.find(b"endstream", begin)
        end = len(body) if end < 0 else end
        data = body[begin:end].lstrip(b"\r\n")
        for _ in range(min(filters, 4)):
            data = _unpacked(data)
        total += len(data)
        if len(data) > _MOST_OF_STREAM or total > _MOST_OF_FILE or _saves_too_much(data):
            return True
        at = end
    return False


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, _MOST_OF_STREAM + 1)
    except zlib.error:
        return b""


def _saves_too_much(data: bytes) -> bool:
    if len(data) < _LARGE or data.count(b"q") < _MOST_SAVED:
        return False
    return len(_SAVES.findall(data)) - len(_RESTORES.findall(data)) > _MOST_SAVED
