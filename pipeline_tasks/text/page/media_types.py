"""Tells of what media type a page is: what its Content-Type says, else what its first bytes show, as browsers do.

Sources: "extract a MIME type" of the Fetch Standard; parsing (4.4), binary data bytes (3) and unknown types (7.1) of
the MIME Sniffing Standard.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

HTML, XML, PLAIN, OTHER = "text/html", "text/xml", "text/plain", "application/octet-stream"

XML_TYPES = (XML, "application/xml")
"""Types of XML of any kind: XHTML is sent by them as well, which its root shows (WHATWG, Loading XML documents)."""

BINARY = bytes([*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
"""Bytes that no text has."""

WIDE_MARKS = (b"\xfe\xff", b"\xff\xfe")
"""How UTF-16 begins, in which text has NULs."""

_START = 1445  # bytes that are looked at (5.2, resource header)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-zA-Z-]+")
_PARTS = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*"?)+')
_UNKNOWN = frozenset({"unknown/unknown", "application/unknown", "*/*"})
_TAGS = "!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p"
_HTML = re.compile(rf"(?i)[\t\n\f\r ]*<(?:(?:{_TAGS})[ >]|!--)".encode())
_XML = re.compile(rb"[\t\n\f\r ]*<\?xml")
ROOT = (
    r"(?:[\t\n\f\r ]|\xef\xbb\xbf|<\?[^>]*>|<!--(?:[^-]|-[^-]|--+[^->])*--+>"
    r"|<(?i:style|script)(?:[\t\n\f\r ][^>]*)?>(?:[^<]|<+(?:[^</]|/[^sS<]))*</(?i:style|script)[\t\n\f\r ]*>)*"
    r"<(?i:!doctype\s+html|html)\b"
)
"""How a page begins whatever it is called: its doctype or root, behind an XML declaration and comments.

Templates put marks of UTF-8, styles and scripts there, too.
"""

_ROOT = re.compile(ROOT.encode())
_UTF8_MARK, _WIDE_SIGNS = b"\xef\xbb\xbf", b"\xfe\xff"
FILES = (
    r"%PDF-|%!PS-Adobe-|\x1f\x8b\x08|PK\x03\x04|Rar!\x1a|GIF8[79]a|\x89PNG|\xff\xd8\xff|RIFF....(?:WEBP|WAVE|AVI )"
    r"|\xd0\xcf\x11\xe0|BM....\x00\x00\x00\x00|OggS\x00|ID3[\x02-\x04]|\x00\x00\x01\x00|wOF[F2]"
)
"""How files begin that servers send as pages (6.1 to 6.4), where signs of text are followed by more than these."""

_FILES = re.compile(rf"(?s){FILES}".encode())


def media_type(content_type: str, body: bytes | memoryview) -> str:
    """Return the type of a page without parameters, in lower case; XHTML is HTML by whichever type it comes."""
    declared = declared_type(content_type)
    if declared and declared not in XML_TYPES:
        return declared
    sniffed = sniffed_type(body)
    return sniffed if sniffed == HTML else declared or sniffed


@lru_cache(4096)
def declared_type(content_type: str) -> str:
    """Return the type that a Content-Type says: the last one in it that is one; "" if none is, or it is unknown."""
    types = [essence for part in _PARTS.findall(content_type[:1000]) for essence in _essences(part)]
    return types[-1] if types else ""


def _essences(value: str) -> Iterator[str]:
    """Yield the type and subtype of one value, unless it is none or says that nobody knows."""
    kind, _, rest = value.strip("\t\n\r ").partition("/")
    subtype = rest.partition(";")[0].rstrip("\t\n\r ")
    if _TOKEN.fullmatch(kind) and _TOKEN.fullmatch(subtype):
        essence = f"{kind}/{subtype}".lower()
        if essence not in _UNKNOWN:
            yield essence


def sniffed_type(body: bytes | memoryview) -> str:
    """Return the type that the first bytes of a page show: markup, text without binary bytes, or another file."""
    start = bytes(body[:_START])
    signs = start.lstrip(_UTF8_MARK).replace(b"\0", b"")  # UTF-16 has a NUL beside each
    if _HTML.match(signs.lstrip(_WIDE_SIGNS)) or (_XML.match(signs) and _ROOT.match(signs)):
        return HTML
    if _XML.match(signs):
        return XML
    if start.startswith((_UTF8_MARK, *WIDE_MARKS)):
        return PLAIN
    if not start or _FILES.match(start) or len(start.translate(None, BINARY)) < len(start):
        return OTHER
    return PLAIN
