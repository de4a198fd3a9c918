"""Finds phone numbers: a pattern proposes runs of digits, the context and libphonenumber accept the numbers in them.

A number is accepted for what it is (`+49 30 1234567`, a national format of one of the document's countries) and for
what announces it (`call 785 8949`, `97 111421 office`). Dates, thousands and numbered things are left alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline_tasks.text.pii.candidates import CONTEXT, Limits, Span, candidates, context, is_separate, pattern
from pipeline_tasks.text.pii.phone_shapes import (
    FEWEST_DIGITS,
    MOST_DIGITS,
    RUN,
    Group,
    digits_of,
    extension_end,
    groups_of,
    is_date,
    is_grouped,
    is_list,
    is_north_american,
    is_round,
    is_thousands,
    is_trunk,
    is_unlike_phones,
)
from pipeline_tasks.text.pii.phone_validation import NORTH_AMERICA, TEN_DIGITS, Number, Read, is_nanp, read_number

CUE = (
    r"(?i)(?:phone|telef|telf|t\x{e9}l|tel|call|fax|mobil|\bmob\b|cell|dial|whatsapp|viber|sms\b|hotline|\bcep\b|\bgsm\b"
    r"|handy|rufnummer|telno|\btlf|\bpuh|faks|\bport\.|ligue|llame|llamar|appel|chiama|numaram"
    r"|\x{442}\x{435}\x{43b}|\x{43c}\x{43e}\x{431}|\x{444}\x{430}\x{43a}\x{441}|\x{3c4}\x{3b7}\x{3bb}"
    r"|\x{7535}\x{8bdd}|\x{96fb}\x{8a71}|\x{624b}\x{673a}|\x{624b}\x{6a5f}|\x{643a}\x{5e2f}|\x{4f20}\x{771f}"
    r"|\x{c804}\x{d654}|\x{d734}\x{b300}\x{d3f0}|\x{d578}\x{b4dc}\x{d3f0}|\x{d329}\x{c2a4}"
    r"|\x{647}\x{627}\x{62a}\x{641}|\x{62a}\x{644}\x{641}\x{646}|\x{5d8}\x{5dc}|\x{92b}\x{93c}?\x{94b}\x{928}|\x{42}\x{49}\x{42}\x{49}\x{42})"
    r"[^0-9<>\x{01}\x{02}\n]{0,20}$"
)
"""Words before a number that announce a phone number, in the languages of the packs."""

STRONG_CUE = (
    r"(?i)(?:(?:phone|telephone|tel|call|fax|mobile|cell|dial|whatsapp|sms|hotline|answering|reached)"
    r"(?:[ -](?:numbers?|no|nr|us|me|him|her|them|now|toll[ -]free|today))?(?: (?:is|at|on|to|:))?[\s.:#(]{1,3}"
    r"|<PHONE>[,;/ ]{1,3}|\x{02}[,;/ ]{1,3})$"
)
"""What makes a number of any format a phone number: it is called, or follows one in a list."""

LABEL = r"(?i)^[ \-]{1,2}\(?(?:office|fax|mobile|cell|home|work|phone|tel|direct)\)?(?:[\n,;\\)/]|$)"
"""What stands behind a number as its kind: `61 51 81 office`."""

OTHER_NUMBER = (
    r"(?i)(?:\bisbn|\bissn|\biban|\bbic|\bdoi|\bid\b|order|invoice|\bref|account|konto|ticket|serial|\bssn|\bvat|\bust|steuer|"
    r"siret|siren|\x{438}\x{43d}\x{43d}|\x{43e}\x{433}\x{440}\x{43d}|patent|\bpmid|\barxiv|\bbug|issue|\brfc|\bcve|hrb|"
    r"\bzip\b|postal|catalog|model|part|pages?\b|\bpp?\.|vol)[^0-9\n]{0,12}$"
    r"|\b[a-z]{2}\d\d(?: ?\d{4}){1,6} ?$|[$%\x{20ac}\x{a3}\x{a5}#=] ?$"
)
"""What announces another number than a phone's."""

FICTIONAL = r"555\D{0,2}01\d\d$"
"""North American numbers that are reserved for fiction, which pseudonyms are made of."""

PREFILTER = r"\d(?:[ .\-/()\x{a0}\x{2007}\x{2009}\x{202f}\x{200b}\x{2010}-\x{2015}]{0,4}\d){5}"
"""What every text with a phone number has: six digits."""

_GLUE = b".-+:"
_BARE_GLUE = b".-+:/"
_DIALED_GROUPS = 4  # `001-755-329-4431`, whose area code is not in use
_FEWEST_TRUNK_DIGITS = 9  # `02382 59743`; fewer digits in groups are more often a date
PLUS = ord("+")
_ENDS_TRIED = 6  # groups that are given up at the end of a number before its start is


@dataclass(frozen=True, slots=True)
class _Place:
    """What is around a candidate: a cue ahead, one that is right ahead, another number's, or a line of its own."""

    cue: bool
    strong: bool
    other: bool
    alone: bool


def find_phones(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the phone numbers of `text`, left to right."""
    last = -1
    for start, end in candidates(RUN, text):
        groups = groups_of(text, start, end)
        at = 0
        while at < len(groups):
            number = _number_at(text, groups, at, last, limits)
            if number is None:
                at += 1
                continue
            at, span = number
            last = span.end
            yield span


def _number_at(text: bytes, groups: list[Group], at: int, last: int, limits: Limits) -> tuple[int, Span] | None:
    """Return the longest number that begins with group `at`, and the group behind it."""
    if not _may_begin(groups, at):
        return None
    place: _Place | None = None
    for stop in _stops(groups, at):
        start, end = groups[at].start, extension_end(text, groups[stop - 1].end)
        if not _is_apart(text, start, end, grouped=stop - at > 1):
            continue
        place = place or _place_of(text, start, last)
        number = _accepted(text, groups[at:stop], end, place, limits)
        if number is not None:
            return _next_group(groups, stop, end), Span(start, end, "phone", number)
    return None


def _may_begin(groups: list[Group], at: int) -> bool:
    """Return whether a number may begin here: behind a space or slash, not amid the parts of another number."""
    return at == 0 or groups[at].loose


def _stops(groups: list[Group], at: int) -> Iterator[int]:
    """Yield where a number that begins with group `at` may stop, the most groups first, within the digits of E.164."""
    stops: list[int] = []
    digits = 0
    for stop in range(at + 1, len(groups) + 1):
        digits += groups[stop - 1].digits
        if digits > MOST_DIGITS or (stop - 1 > at and groups[stop - 1].opens):
            break
        if digits >= FEWEST_DIGITS and (stop == len(groups) or groups[stop].loose):
            stops.append(stop)
    return iter(stops[::-1][:_ENDS_TRIED])


def _is_apart(text: bytes, start: int, end: int, *, grouped: bool) -> bool:
    """Return whether a number is no part of a word or of a longer number; a word may follow one with `+`."""
    if is_separate(text, start, end, _GLUE if grouped else _BARE_GLUE):
        return True
    if text[start] != PLUS or not text[end : end + 1].isalpha():
        return False
    first = max(0, start - CONTEXT)
    return is_separate(text[first:end], start - first, end - first, _GLUE)  # as if the text ended with the number


def _next_group(groups: list[Group], stop: int, end: int) -> int:
    """Return the first group behind `end`: an extension may have taken groups."""
    while stop < len(groups) and groups[stop].start < end:
        stop += 1
    return stop


# --- Evidence --------------------------------------------------------------------------------------------------------


def _place_of(text: bytes, start: int, last: int) -> _Place:
    ahead = context(text, start)
    if 0 <= last < start and start - last <= 3:
        ahead = b"<PHONE>" + text[last:start]
    strong = bool(pattern(STRONG_CUE).search(ahead))
    cue = strong or bool(pattern(CUE).search(ahead))
    other = not cue and bool(pattern(OTHER_NUMBER).search(ahead))
    return _Place(
        cue, strong, other, alone=not ahead.rpartition(b"\n")[2].strip() and (len(ahead) < 40 or b"\n" in ahead)
    )


def _accepted(text: bytes, groups: list[Group], end: int, place: _Place, limits: Limits) -> Number | None:
    """Return the identity of a phone number, or None if it is none; `end` is behind its extension."""
    value = text[groups[0].start : groups[-1].end]
    if limits.keep_pseudonyms and pattern(FICTIONAL).search(value):
        return None
    announced = place.strong or bool(pattern(LABEL).search(text[end : end + CONTEXT]))
    if value.startswith((b"+", b"(+", b"00")) and (number := _international(value, groups, place)):
        return number
    if place.other or is_date(value) or is_list(value):
        return None
    cue = announced or place.cue
    return (
        _north_american(value, groups, limits, cue=cue)
        or _national(value, groups, limits, cue=cue, alone=place.alone and _ends_line(text, end))
        or (_announced(value, groups) if announced else None)
    )


def _ends_line(text: bytes, end: int) -> bool:
    line, newline, _ = text[end : end + CONTEXT].partition(b"\n")
    return not line.strip() and (bool(newline) or end + CONTEXT >= len(text))


def _international(value: bytes, groups: list[Group], place: _Place) -> Number | None:
    dialed = value.startswith(b"00")
    if dialed and not (is_grouped(groups) or place.cue):
        return None
    read = read_number(b"+" + value.lstrip(b"0 .-/") if dialed else value, "")
    groups_needed = _DIALED_GROUPS if dialed else 2
    return read.number if read.valid or (read.possible and len(groups) >= groups_needed) else None


def _north_american(value: bytes, groups: list[Group], limits: Limits, *, cue: bool) -> Number | None:
    if not is_north_american(groups) or not any(map(is_nanp, limits.regions)):
        return None
    read = read_number(value, NORTH_AMERICA)
    if not read.valid:
        return None
    marked = any(mark in value for mark in (b"-", b".", b"(", b"\xe2"))
    return read.number if marked or cue else None  # ten bare digits are more often an id than a phone


def _national(value: bytes, groups: list[Group], limits: Limits, *, cue: bool, alone: bool) -> Number | None:
    for region in limits.regions:
        if is_nanp(region) and not cue:
            continue
        read = read_number(value, region)
        if read.valid and ((cue and not is_round(value)) or _is_usual(value, groups, region, read, alone=alone)):
            return read.number
    return None


def _is_usual(value: bytes, groups: list[Group], region: str, read: Read, *, alone: bool) -> bool:
    """Return whether a valid number is written as numbers of its country are, so that it needs no cue."""
    if is_unlike_phones(value):
        return False
    if is_trunk(value):
        short = len(digits_of(value)) < _FEWEST_TRUNK_DIGITS
        return not short and (is_grouped(groups) or read.mobile or region in TEN_DIGITS)
    if read.formatted and not is_thousands(value):
        return True
    return alone and region in TEN_DIGITS and sum(group.digits for group in groups) == 10


def _announced(value: bytes, groups: list[Group]) -> Number | None:
    """Return a number of any format that is called a phone number, unless it is a round one."""
    if not is_grouped(groups) or is_round(value):
        return None
    return "local:" + digits_of(value).decode()


@lru_cache(maxsize=256)
def is_nanp_only(regions: tuple[str, ...]) -> bool:
    """Return whether all regions share the North American Numbering Plan."""
    return all(map(is_nanp, regions))
