"""Decodes the bytes of a page to text as browsers do: by its mark, its bytes, HTTP header, meta tag or a detector.

Where bytes and declaration disagree, the bytes are believed only where they leave no doubt: UTF-8 that is valid and has
characters beyond ASCII, UTF-16 with its NULs, ISO-2022-JP with its escapes. No byte is dropped.
"""

import codecs
import contextlib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from resiliparse.parse.encoding import detect_encoding

from pipeline_tasks.text.page.encodings import JIS, UTF8, decode_as, encoding_of, has_jis, replace_as

REPLACED_SHARE = 0.001
"""U+FFFD per character above which a page is read in the wrong encoding (crawls send UTF-16 and KOI8 as UTF-8)."""

REPLACED_FEW, REPLACED_FEW_SHARE = 3, 0.02
"""So many U+FFFD are faults of the page, up to this share of it: one broken character does not lose a short page."""

_VALID = 10  # multi-byte characters per broken one that make a text UTF-8 with faults rather than something else
_HEAD = 4096  # bytes searched for a meta tag: the HTML standard says 1024, but pages have it later
_BEFORE_HEAD = 4 * _HEAD  # bytes from which comments and scripts are taken before they are searched
_START = 1024  # bytes searched for marks and NULs
_TYPE = 1000  # characters of a header that are looked at
_SAMPLE = 1 << 16  # bytes shown to the detector
_MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)
_FIRST_OF_MARKS = frozenset(mark[:1] for mark, _ in _MARKS)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_UNSEEN = re.compile(rb"<!--.*?(?:-->|\Z)|<(script|style|title|textarea)\b.*?(?:</\1|\Z)", re.IGNORECASE | re.DOTALL)
_XML = re.compile(rb"\s*<\?xml[^>]{1,400}?encoding\s*=\s*[\"']\s*([A-Za-z0-9_.:-]+)")
_META = re.compile(rb"<meta[\s/]([^>]{1,1000})", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"([^\s\"'>/=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_WIDE = ("utf-16le", "utf-16be")
_RULED_OUT = {"", UTF8, *_WIDE}  # of a page that is none of these
_NULS = 4  # NULs at even or odd places for each at the others, and at least, that make a page UTF-16


class Decoded(NamedTuple):
    """A text, the encoding that it was read in, and how many U+FFFD it has."""

    text: str
    encoding: str
    replaced: int

    @property
    def understood(self) -> bool:
        """Whether so few characters were replaced, by share and by number, that the text can be used."""
        return is_understood(self.replaced, self.replaced / max(len(self.text), 1))


def is_understood(replaced: int, share: float) -> bool:
    """Return whether a text can be used of which so many characters, and such a share, were replaced."""
    return share <= (REPLACED_FEW_SHARE if replaced <= REPLACED_FEW else REPLACED_SHARE)


def decode(data: bytes | memoryview, content_type: str) -> Decoded:
    """Decode a page in the first encoding that fits; else as UTF-8 with faults or as detected, counted."""
    start = bytes(data[:_START])
    for mark, name in _MARKS if start[:1] in _FIRST_OF_MARKS else ():
        if start.startswith(mark):
            return _replaced(data[len(mark) :], name)
    if wide := _wide(start, content_type):
        return _replaced(data, wide)
    unicode = _unicode(data)
    if unicode is not None:
        return _escaped(data, unicode) or Decoded(unicode, UTF8, _count(unicode))
    faulty = _replaced(data, UTF8)
    if _is_utf8_with_faults(faulty):
        return faulty
    for name in _declared(data, content_type):
        try:
            text = decode_as(data, name)
        except UnicodeDecodeError:
            continue
        return Decoded(text, name, _count(text))
    guesses = [faulty, *(_replaced(data, name) for name in _guessed(data))]
    return min(guesses, key=lambda guess: guess.replaced)


def _unicode(data: bytes | memoryview) -> str | None:
    """Return a page as UTF-8, None if it is none: that hardly fits by chance, whatever is declared."""
    try:
        return str(data, UTF8)
    except UnicodeDecodeError:
        return None


def _escaped(data: bytes | memoryview, ascii_text: str) -> Decoded | None:
    """Return a page of ASCII as ISO-2022-JP, None if it has none of its escapes or is not what they say."""
    if not ascii_text.isascii() or not has_jis(ascii_text):
        return None
    with contextlib.suppress(UnicodeDecodeError):
        return Decoded(decode_as(data, JIS), JIS, 0)
    return None


def _is_utf8_with_faults(faulty: Decoded) -> bool:
    return _VALID * faulty.replaced < len(faulty.text) - len(faulty.text.encode("ascii", "ignore"))


def _declared(data: bytes | memoryview, content_type: str) -> Iterator[str]:
    """Yield the encodings that a page declares, the header's before the page's own; none that its bytes rule out."""
    yield from {_header_encoding(content_type[:_TYPE])} - _RULED_OUT
    yield from {encoding_of(_own_label(bytes(data[:_BEFORE_HEAD])))} - _RULED_OUT


@lru_cache(1024)
def _header_encoding(content_type: str) -> str:
    """Return the last encoding that an HTTP header names, if any; cached, as a crawl has few different headers."""
    labels = _HEADER.findall(content_type)
    return encoding_of(labels[-1]) if labels else ""


def _own_label(start: bytes) -> str:
    """Return the label that a page has in its XML declaration or a meta tag; not in comments, scripts or styles."""
    if xml := _XML.match(start):
        return xml[1].decode("ascii")
    for meta in _META.finditer(_UNSEEN.sub(b"", start)[:_HEAD]):
        attributes = {name.lower(): b"".join(value) for name, *value in reversed(_ATTRIBUTE.findall(meta[1]))}
        if label := attributes.get(b"charset"):
            return label.decode("latin-1")
        is_type = attributes.get(b"http-equiv", b"").strip().lower() == b"content-type"
        if is_type and (named := _HEADER.search(attributes.get(b"content", b"").decode("latin-1"))):
            return named[1]
    return ""


def _count(text: str) -> int:
    """Return the number of U+FFFD; most texts have none, and `in` is faster than `count`."""
    return text.count("\ufffd") if "\ufffd" in text else 0


def _guessed(data: bytes | memoryview) -> list[str]:
    sample = bytes(data[:_SAMPLE])
    names = [detect_encoding(sample, max_len=_SAMPLE, html5_compatible=True) or UTF8]
    if names[0].lower() in {UTF8, "windows-1252"}:  # what the detector returns when it does not know
        from charset_normalizer import from_bytes

        best = from_bytes(sample).best()
        names += [best.encoding] if best else []
    return names


def _wide(start: bytes, content_type: str) -> str:
    """Return which UTF-16 a page without a mark is, "" if none: its markup has a NUL beside each character.

    Text of other scripts has few NULs, but all at even or all at odd places. No other encoding has any, so that a
    header that says UTF-16 is believed with fewer.
    """
    big, little = start[::2].count(0), start[1::2].count(0)
    if max(big, little) < _NULS or max(big, little) < _NULS * min(big, little) or len(start) < 2 * _NULS:
        return ""
    mark = b"\0<" if big > little else b"<\0"
    is_markup = start.find(mark) >= 0
    is_declared = _header_encoding(content_type[:_TYPE]) in _WIDE
    if not (is_markup or is_declared or 4 * max(big, little) >= len(start)):
        return ""
    return "utf-16be" if big > little else "utf-16le"


def _replaced(data: bytes | memoryview, name: str) -> Decoded:
    text = replace_as(data, encoding_of(name) or name)
    return Decoded(text, name, _count(text))
