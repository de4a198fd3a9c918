"""Marks the texts of a column that may have personal data, by one RE2 pattern; no text that has some is left out."""

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.text.pii.candidates import pattern
from pipeline_tasks.text.pii.forms import patterns_of
from pipeline_tasks.text.pii.kinds import DEFAULT_KINDS, Kind
from pipeline_tasks.text.pii.visible import visible

pc: Any = pyarrow.compute

_DIGITS = r"\d(?:[ .\-/()\x{a0}\x{2007}\x{2009}\x{202f}\x{2010}-\x{2015}]{0,4}\d){5}"
"""Six digits with marks between, as a phone number and most numbers of persons, cards and accounts have them."""

_ADDRESSES = (
    r"[^\x00- ](?:@|%(?:25)*40|\x{ff20})[^\x00- ]",
    r"\d\.\d{1,3}\.\d{1,3}\.\d",
    r":[0-9A-Fa-f]{0,4}:",
    r"[(\[{] ?(?i:at|@|\x{e4}t|arroba) ?[)\]}]",
    r" (?i:dot) | AT ",
)
_READS_OTHERWISE = (
    r"[\x{ad}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{2066}-\x{2069}\x{feff}"
    r"\x{ff08}\x{ff0e}\x{ff10}-\x{ff3b}\x{ff41}-\x{ff5b}]"
)
"""Invisible characters, and the full-width forms of letters, digits, dots and opening brackets (`text.pii.visible`)."""


def suspects(texts: pa.Array, kinds: frozenset[Kind] = DEFAULT_KINDS) -> pa.Array:
    """Return for each text whether it may have personal data of some kinds; a null has none.

    What e-mail addresses, phone numbers and IP addresses look like makes a text suspect whatever the kinds are.
    """
    marks = pc.fill_null(pc.match_substring_regex(texts, _pattern(kinds)), fill_value=False)
    unmarked = pc.invert(marks)
    rest = texts.filter(unmarked)
    others = pc.fill_null(pc.match_substring_regex(rest, _READS_OTHERWISE), fill_value=False)
    seen = [_is_suspect(text, kinds) for text in rest.filter(others).to_pylist()]
    return pc.replace_with_mask(marks, unmarked, pc.replace_with_mask(others, others, pa.array(seen, pa.bool_())))


def _is_suspect(text: str, kinds: frozenset[Kind]) -> bool:
    """Return whether a text may have personal data as it reads."""
    seen = visible(text.encode())
    return seen is not None and bool(pattern(_pattern(kinds)).search(seen.text))


@cache
def _pattern(kinds: frozenset[Kind]) -> str:
    """Return the pattern of what may be a value of some kinds."""
    return "|".join([_DIGITS, *_ADDRESSES, *patterns_of(kinds)])
