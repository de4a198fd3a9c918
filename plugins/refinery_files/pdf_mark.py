"""Tells PDFs that are called plain text from texts that speak of what PDFs begin with."""

import re

_FILE = re.compile(rb"[\s\x00]*%PDF-[0-9]\.[0-9]\s*[\r\n]\s*(?:%[^\r\n]*\s+)*[0-9]+ [0-9]+ obj\b")
_NO_TEXT = bytes([*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
"""Bytes that no text has (binary data bytes of the MIME Sniffing Standard, 3); streams of a PDF have them."""


def holds_plain(body: bytes) -> bool:
    """Return whether bytes that are called plain text, and have the mark of a PDF, are one.

    They begin with the mark and an object behind it (ISO 32000, 7.5.2), or have bytes that no text has: a guide to the
    format shows the mark in a line of its own, or a whole small file.
    """
    return bool(_FILE.match(body)) or len(body.translate(None, _NO_TEXT)) < len(body)
