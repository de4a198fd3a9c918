"""The identity of a text: a 128-bit hash that ignores how its white space is laid out and nothing else."""

import re
import unicodedata

from xxhash import xxh3_128_hexdigest

_BREAKS = re.compile(r"\n[\n ]+")


def identity(text: str) -> str:
    """Return 32 hex digits: XXH3-128, seed 0, of `text` in NFC, runs of white space as one space, stripped, as UTF-8.

    Case, punctuation and everything else count. The digits are frozen by tests: stored ids depend on them.
    """
    return _digits(" ".join(text.split()))


def identity_of_normal(text: str) -> str:
    """Return the same of a text that `normal.normalize` has made, whose only runs of white space are line ends."""
    return _digits(_BREAKS.sub("\n", text).replace("\n", " ").strip(" "))


def _digits(flat: str) -> str:
    name: str = xxh3_128_hexdigest((flat if flat.isascii() else unicodedata.normalize("NFC", flat)).encode())
    return name
