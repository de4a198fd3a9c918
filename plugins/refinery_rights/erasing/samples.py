"""Finds what documents say in objects that are no tables: reports, pages of Data Docs, messages, exports.

Of a text, stretches of `PROBE` letters and digits are looked for, so that no mark-up, escape or line break between
words hides one. A text of fewer is looked for as a whole, from `SHORTEST` on; a shorter one may be anywhere by chance.
"""

import gzip
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import zstandard

PROBE = 40
SHORTEST = 16
MOST_PROBES = 400
"""Stretches of a text: of a longer one they are spread over it, with the first `HEAD` whole, as samples begin there."""

HEAD = 200

LEAST_IDS, MOST_IDS = 8, 16
"""Tokens of a stretch that is looked for."""

LARGEST = 256 << 20
"""Bytes of an object that is searched."""

_TAG = re.compile(r"<[^<>]*>")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf])")
_END = r"(?![\w/?=&%~-])"
"""What does not follow an address: another letter of it."""

_SIGNS = re.compile(r"[\W_]+")


@dataclass(slots=True)
class Probes:
    """Stretches of what documents say, by their length, their addresses, stretches of their tokens, and their sites."""

    by_length: dict[int, set[str]] = field(default_factory=dict)
    urls: set[str] = field(default_factory=set)
    tokens: set[bytes] = field(default_factory=set)
    hosts: set[str] = field(default_factory=set)

    @property
    def any(self) -> bool:
        """Whether anything is looked for in objects that are no tables of tokens."""
        return bool(self.by_length or self.urls or self.hosts)

    def add(self, text: str) -> None:
        """Add the stretches of a text."""
        letters = _letters(text)
        if len(letters) < PROBE:
            if len(letters) >= SHORTEST:
                self.by_length.setdefault(len(letters), set()).add(letters)
            return
        starts = [*range(0, len(letters) - PROBE + 1, PROBE), len(letters) - PROBE]
        step = max(1, len(starts) // (MOST_PROBES - HEAD))
        chosen = {*starts[:HEAD], *starts[HEAD::step]}
        self.by_length.setdefault(PROBE, set()).update(letters[at : at + PROBE] for at in chosen)

    def add_tokens(self, ids: Sequence[int]) -> None:
        """Add the beginning, the middle and the end of a document's tokens, as packed shards store them."""
        for start in {0, len(ids) // 2, max(len(ids) - MOST_IDS, 0)} if any(ids) else ():
            some = ids[start : start + MOST_IDS]
            if len(some) >= LEAST_IDS:
                self.tokens.update(np.array(some).astype(dtype).tobytes() for dtype in ("<u2", "<u4"))

    def tokens_in(self, body: bytes) -> bool:
        """Return whether the bytes of packed ids have those of a document."""
        return any(ids in body for ids in self.tokens)

    def are_in(self, body: bytes, *, urls: bool = False) -> bool:
        """Return whether bytes, unpacked, have one of the stretches, or with `urls` one of the addresses or hosts."""
        plain = unpacked(body).decode("utf-8", "replace")
        forms = {plain, html.unescape(_TAG.sub("", plain)), _ESCAPE.sub(_unescaped, plain)}
        return any(
            self._are_in(_letters(form)) or (urls and (self._has_url(form) or self.has_host(form))) for form in forms
        )

    def has_host(self, text: str) -> bool:
        """Return whether a text has the name of a site, in whatever case."""
        lower = text.lower() if self.hosts else ""
        return any(host in lower for host in self.hosts)

    def _has_url(self, text: str) -> bool:
        return any(url in text and re.search(re.escape(url) + _END, text) for url in self.urls)

    def _are_in(self, letters: str) -> bool:
        for length, known in self.by_length.items():
            if length == PROBE:
                if any(letters[at : at + PROBE] in known for at in range(len(letters) - PROBE + 1)):
                    return True
            elif any(probe in letters for probe in known):
                return True
        return False


def _letters(text: str) -> str:
    return _SIGNS.sub("", text)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else " "


def unpacked(body: bytes) -> bytes:
    """Return bytes without their compression by gzip or zstd."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if body[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().stream_reader(body).read()
    return body
