"""The words by which languages count, date, deny and address, read once from `words/`, and plain forms of texts."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

FOLDER = Path(__file__).with_name("words")

LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "pt", "ru", "zh")
"""Languages with words of their own. Texts in others have digits, symbols, ISO dates and capitals."""

UNSPACED = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my", "bo"})
"""Written without blanks between words, as in `text.words.languages`."""

Names = Mapping[str, float]


WINDOWS, WORDS = 64, 2**16
"""How many texts and how many words are remembered with what was read of them: a window has several prompts."""


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What a language counts, dates, denies and addresses by; all words are in small letters.

    `numbers` are words that say a number and nothing else, `supporting` those that may say one (`a`, `second`, `half`):
    a source is believed by both, and a rewrite has to answer for the first alone. `units` leads from words to the
    names of `units.UNITS`. `months` and `weekdays` lead to their place, from 1 on. `negations` deny; `negatives` are
    words by which a sentence may deny without one (`lack`, `only`), those of one meaning with one number; `limits` is
    a pattern of negations that deny nothing (`no more than`). `persons` are those who speak and are spoken to.
    With `nouns` every noun has a capital; `bare` are nouns that need no article. `glued` numbers are one word.
    """

    decimal: str = "."
    spaced: bool = True
    glued: bool = False
    nouns: bool = False
    joiners: frozenset[str] = frozenset()
    function: frozenset[str] = frozenset()
    numbers: Names = field(default_factory=dict)
    supporting: Names = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    months: Mapping[str, int] = field(default_factory=dict)
    weekdays: Mapping[str, int] = field(default_factory=dict)
    negations: frozenset[str] = frozenset()
    negatives: Mapping[str, int] = field(default_factory=dict)
    limits: str = ""
    negative_prefixes: tuple[str, ...] = ()
    negative_suffixes: tuple[str, ...] = ()
    hedges: tuple[str, ...] = ()
    persons: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    counters: str = ""
    surnames: str = ""
    places: str = ""
    places_common: frozenset[str] = frozenset()


@cache
def vocabulary(language: str) -> Vocabulary:
    """Return the words of a language (`en`, `zh-Hant`); those of one that has none here are empty."""
    code = language.partition("-")[0]
    if code not in LANGUAGES:
        return Vocabulary(spaced=code not in UNSPACED)
    read: dict[str, Any] = tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
    words: dict[str, Any] = {name: read[name] for name in ("decimal", "spaced", "glued", "nouns") if name in read}
    words |= {name: read.get(name, "") for name in ("counters", "surnames", "places")}
    words |= {name: frozenset(read.get(name, "").split()) for name in ("function", "bare", "places_common")}
    words |= {name: frozenset(read[name]) for name in ("joiners", "negations", "persons")}
    words |= {name: tuple(read[name]) for name in ("negative_prefixes", "negative_suffixes", "hedges")}
    words |= {name: MappingProxyType(dict(read[name])) for name in ("numbers", "supporting")}
    words["units"] = {word: unit for unit, forms in read["units"].items() for word in forms}
    words |= {name: _places(read[name]) for name in ("months", "weekdays", "negatives")}
    words["limits"] = "|".join(read["limits"])
    return Vocabulary(**words)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {form: place for place, forms in enumerate(names, 1) for form in forms.split()}


class _Plain(dict[int, int]):
    """Leads each code point to one that says the same: digits of any script, and forms of signs; never to several."""

    def __missing__(self, code: int) -> int:
        sign = chr(code)
        plain = _SIGNS.get(sign)
        if plain is None:
            digit = unicodedata.decimal(sign, None)
            form = unicodedata.normalize("NFKC", sign) if unicodedata.east_asian_width(sign) == "F" else sign
            plain = str(digit) if digit is not None else form if len(form) == 1 else sign
        self[code] = ord(plain)
        return self[code]


_SIGNS = {
    **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u3000\t", " "),
    **dict.fromkeys("‘’ʼ＇`´", "'"),
    **dict.fromkeys("‐‑‒–—−", "-"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("٫", "."),
    **dict.fromkeys("٬", ","),
    "٪": "%",
}
_PLAIN = _Plain()


@lru_cache(WINDOWS)
def plain(text: str) -> str:
    """Return a text with digits of any script, blanks, quotes and dashes as in ASCII: code point by code point."""
    return text.translate(_PLAIN)


WORD = re.compile(r"(?<![^\W_])(?:[cdjlmnst]|qu)'(?=[^\W_])|[^\W_]+(?:['\-.][^\W\d_]+)*(?<!\.)", re.IGNORECASE)
"""A word: letters and digits, with apostrophes, hyphens and points within; an article that lost its vowel is one."""

_SUFFIX = re.compile(r"'s?$|'$")


@lru_cache(WORDS)
def bare(word: str) -> str:
    """Return a word in small letters, without the mark of a possessor and without accents."""
    small = _SUFFIX.sub("", word.casefold())
    if small.isascii():
        return small
    return "".join(sign for sign in unicodedata.normalize("NFD", small) if not unicodedata.combining(sign))


_ABBREVIATION = re.compile(
    r"(?:(?<![\w/])[A-Z]|\b[a-zA-Z]\.[a-zA-Z]"
    r"|\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Sra|Jr|Mme|Mlle|Hr|Fr|Nr|No|vs|bzw|ca|etc|Gen|Col|Lt|Rev))$"
)
_ORDINAL = re.compile(r"\b\d{1,2}$")
_STOP = re.compile(r"[.!?]+[\"')\]]*(?=\s|$)|[。！？!?][」』”\"]*|\n+|[;；](?=\s|$)?")


@lru_cache(WINDOWS)
def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Return the bounds of the sentences of a plain text: points behind abbreviations and ordinals end none."""
    bounds: list[tuple[int, int]] = []
    start = 0
    for stop in _STOP.finditer(text):
        if stop[0].startswith(".") and _goes_on(text, start, stop):
            continue
        if text[start : stop.end()].strip():
            bounds.append((start, stop.end()))
        start = stop.end()
    if text[start:].strip():
        bounds.append((start, len(text)))
    return tuple(bounds)


def _goes_on(text: str, start: int, stop: re.Match[str]) -> bool:
    """Return whether a point ends no sentence: it is that of an abbreviation, or of an ordinal before a month."""
    if _ABBREVIATION.search(text, max(start, stop.start() - 5), stop.start()):
        return True
    following = WORD.match(text, stop.end() + 1)
    if following is None or following[0].casefold() not in vocabulary("de").months:
        return False
    return bool(_ORDINAL.search(text, max(start, stop.start() - 3), stop.start()))
