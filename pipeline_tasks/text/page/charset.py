"""Decodes the bytes of a page to text: by its mark, HTTP header, meta tag or a detector, never by dropping bytes."""

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

REPLACED_SHARE = 0.001
"""U+FFFD per character above which a page is read in the wrong encoding (crawls send UTF-16 and KOI8 as UTF-8)."""

_VALID = 10  # multi-byte characters per broken one that make a text UTF-8 with faults rather than something else
_HEAD = 4096  # bytes searched for a meta tag: the HTML standard says 1024, but pages have it later
_START = 1024  # bytes searched for marks and NULs
_TYPE = 1000  # characters of a header that are looked at
_SAMPLE = 1 << 16  # bytes shown to the detector
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FIRST_OF_MARKS = frozenset(mark[:1] for mark, _ in _MARKS)
_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<(?:meta|\?xml)[^>]{1,400}?(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.IGNORECASE)


class Decoded(NamedTuple):
    """A text, the encoding that it was read in, and how many U+FFFD it has."""

    text: str
    encoding: str
    replaced: int

    @property
    def understood(self) -> bool:
        """Whether so few characters were replaced that the text can be used."""
        return self.replaced <= REPLACED_SHARE * len(self.text)


def decode(data: bytes | memoryview, content_type: str) -> Decoded:
    """Decode a page in the first declared encoding that fits; else as UTF-8 with faults or as detected, counted."""
    start = bytes(data[:_START])
    for mark, name in _MARKS if start[:1] in _FIRST_OF_MARKS else ():
        if start.startswith(mark):
            return _replaced(data[len(mark) :], name)
    wide = _wide(start)
    if wide:
        return _replaced(data, wide)
    for name in _declared(data, content_type):
        try:
            text = str(data, name)
        except (UnicodeDecodeError, LookupError):
            continue
        return Decoded(text, name, _count(text))
    broken = _replaced(data, "utf-8")
    if _VALID * broken.replaced < len(broken.text) - len(broken.text.encode("ascii", "ignore")):
        return broken
    guesses = [broken, *(_replaced(data, name) for name in _guessed(data))]
    return min(guesses, key=lambda guess: guess.replaced)


def _declared(data: bytes | memoryview, content_type: str) -> Iterator[str]:
    """Yield the encodings that a page declares, most trusted first, then UTF-8, which hardly fits by chance."""
    yield from _header_encoding(content_type[:_TYPE])
    meta = _META.search(data, 0, _HEAD)
    yield from _named(meta[1].decode("ascii") if meta else "")
    yield "utf-8"


@lru_cache(1024)
def _header_encoding(content_type: str) -> tuple[str, ...]:
    """Return the encoding that an HTTP header names, if any; cached, as a crawl has few different headers."""
    header = _HEADER.search(content_type)
    return _named(header[1] if header else "")


def _named(label: str) -> tuple[str, ...]:
    name = map_encoding_to_html5(label, fallback_utf8=False) if label else None
    return (name,) if name and not name.lower().startswith("utf-16") else ()


def _count(text: str) -> int:
    """Return the number of U+FFFD; most texts have none, and `in` is faster than `count`."""
    return text.count("\ufffd") if "\ufffd" in text else 0


def _guessed(data: bytes | memoryview) -> list[str]:
    sample = bytes(data[:_SAMPLE])
    names = [detect_encoding(sample, max_len=_SAMPLE, html5_compatible=True) or "utf-8"]
    if names[0].lower() in {"utf-8", "windows-1252"}:  # what the detector returns when it does not know
        from charset_normalizer import from_bytes

        best = from_bytes(sample).best()
        names += [best.encoding] if best else []
    return names


def _wide(start: bytes) -> str | None:
    """Recognize UTF-16 without a mark: ASCII in it has a NUL at every second byte, in nothing else."""
    if start.count(0) * 4 < len(start) or len(start) < 4:
        return None
    return "utf-16-be" if start[::2].count(0) > start[1::2].count(0) else "utf-16-le"


def _replaced(data: bytes | memoryview, name: str) -> Decoded:
    try:
        text = str(data, name, "replace")
    except LookupError:
        text = str(data, "utf-8", "replace")
    return Decoded(text, name, _count(text))
