"""Names of elements and what each is in a page (HTML Living Standard, 4, 13 and 15), as numbers for compiled loops."""

import re

import numpy as np

from pipeline_tasks.text.base.ascii import EQUAL, GREATER, HYPHEN, SLASH, SPACE, lower
from pipeline_tasks.text.base.compiled import inlined

_NAMES = re.findall(
    r"\S+",
    "other x- "  # any name that is none of these, and any that has a hyphen
    "html head body title meta link base script style template noscript iframe noembed noframes textarea xmp "
    "svg math object canvas audio video select option optgroup datalist "
    "a abbr b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike "
    "strong sub sup time tt u var ruby rb rt rp rtc br hr img wbr input area col embed param source track frame "
    "address article aside blockquote button caption center colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup legend li main menu nav ol p pre "
    "search section summary table tbody td tfoot th thead tr ul listing slot picture mjx-container",
)
TAGS = {name: number for number, name in enumerate(_NAMES)}
COUNT = len(_NAMES)

BLOCK, VOID, RAW, SKIPPED, FORMATTING, CLOSES_P, UNDRAWN, CELL, HEADING, LIST, STRONG, EMPHASIS = (
    1 << bit for bit in range(12)
)
"""Bits of an element: it makes blocks of its own; has no content; its content has no markup; is not read; is closed
alone where it is misnested; ends an open paragraph; is not drawn by browsers with scripts."""


def _bits(**kinds: str) -> np.ndarray:
    bits = np.zeros(COUNT, np.int64)
    for kind, names in kinds.items():
        for name in re.findall(r"\S+", names):
            bits[TAGS[name]] |= globals()[kind]
    return bits


_BLOCKS = (
    "x- body address article aside blockquote button caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search section "
    "summary table tbody td tfoot th thead tr ul listing noscript"
)
BITS = _bits(
    BLOCK=_BLOCKS,
    VOID="br hr img wbr input area col embed param source track frame meta link base",
    RAW="script style title iframe noembed noframes textarea xmp",
    SKIPPED="svg select datalist canvas audio video template object",
    FORMATTING="a b big code em font i nobr s small strike strong tt u span label cite kbd samp sub sup var q mark",
    CLOSES_P=(
        "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form "
        "h1 h2 h3 h4 h5 h6 header hgroup hr main menu nav ol p pre search section summary table ul listing li dd dt"
    ),
    UNDRAWN="noscript dialog",
    CELL="td th",
    HEADING="h1 h2 h3 h4 h5 h6",
    LIST="ul ol menu dir",
    STRONG="b strong",
    EMPHASIS="em i",
)

_PRIME = 0x100000001B3
_BASIS = 0xCBF29CE484222325
_SLOTS = 1024


def name_key(name: str) -> int:
    """Return the key by which loops know a name of an element or attribute (FNV-1a of its small letters)."""
    key = _BASIS
    for byte in name.encode():
        key = ((key ^ byte) * _PRIME) & (1 << 64) - 1
    return key


def _table() -> tuple[np.ndarray, np.ndarray]:
    keys, numbers = np.zeros(_SLOTS, np.uint64), np.zeros(_SLOTS, np.uint8)
    for name, number in TAGS.items():
        if name not in ("other", "x-"):
            at = name_key(name) % _SLOTS
            while keys[at]:
                at = (at + 1) % _SLOTS
            keys[at], numbers[at] = name_key(name), number
    return keys, numbers


_KEYS, _NUMBERS = _table()
BASIS, PRIME = np.uint64(_BASIS), np.uint64(_PRIME)
_OTHER, _CUSTOM = TAGS["other"], TAGS["x-"]


@inlined
def read_key(page, at, end):
    """Return the key of the name that begins here, where it ends, and whether it has a hyphen."""
    key, hyphenated = BASIS, False
    while at < end:
        byte = page[at]
        if byte <= SPACE or byte in (EQUAL, GREATER, SLASH):
            break
        hyphenated |= byte == HYPHEN
        key = (key ^ np.uint64(lower(byte))) * PRIME
        at += 1
    return key, at, hyphenated


@inlined
def tag_of(key, hyphenated):
    """Return the number of an element by the key of its name."""
    at = np.int64(key % np.uint64(_SLOTS))
    while _KEYS[at]:
        if _KEYS[at] == key:
            return np.int64(_NUMBERS[at])
        at = (at + 1) % _SLOTS
    return np.int64(_CUSTOM if hyphenated else _OTHER)
