"""Finds phone numbers: a pattern proposes runs of digits, the context and libphonenumber accept the numbers in them.

A number is accepted for what it is (`+49 30 1234567`, a national format of one of the document's countries) and for
what announces it (`call 785 8949`, `97 111421 office`). Dates, thousands and numbered things are left alone.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pipeline_tasks.text.pii.candidates import CONTEXT, Limits, Span, context, is_separate, pattern
from pipeline_tasks.text.pii.phone_runs import (
    AHEAD,
    BEHIND,
    EXTENDED,
    FEWEST_TRUNK_DIGITS,
    NORTH_AMERICAN,
    Candidate,
    phone_candidates,
)
from pipeline_tasks.text.pii.phone_shapes import (
    digits_of,
    extension_end,
    is_list,
    is_round,
    is_thousands,
    is_trunk,
    is_unlike_phones,
)
from pipeline_tasks.text.pii.phone_validation import (
    NORTH_AMERICA,
    TEN_DIGITS,
    Number,
    is_formatted,
    is_mobile,
    is_nanp,
    is_possible,
    is_valid,
    number_of,
)

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

FILE_MODE = r"^ {0,8}[-dlbcps][r-][w-][xsS-][r-][w-][xsS-][r-][w-][xtT-][.+@]? "
"""How a line of `ls -l` or `tar -tv` begins; its numbers are links, owners, a size and a date."""

FICTIONAL = r"555\D{0,2}01\d\d$"
"""North American numbers that are reserved for fiction, which pseudonyms are made of."""

_GLUE = b".-+:"
_BARE_GLUE = b".-+:/"
_DIALED_GROUPS = 4  # `001-755-329-4431`, whose area code is not in use
PLUS = ord("+")
_TEN = 10
_LONG_CONTEXT = 40
_LISTED, _MODE = 120, 24  # bytes of a listed file before its date, and of its mode with blanks before
_CHAIN = 3  # bytes between two numbers of a list, at most


class _Cues(NamedTuple):
    """What announces a number ahead of it: anything, and what makes a number of any format one."""

    cue: bool
    strong: bool


_NO_CUES = _Cues(cue=False, strong=False)


def find_phones(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the phone numbers of `text`, left to right."""
    last, run, free = -1, -1, 0
    for candidate in phone_candidates(text):
        if candidate.run != run:
            run, free = candidate.run, 0
        start, end = candidate.start, candidate.end
        if start < free:
            continue
        if candidate.flags & EXTENDED:
            end = extension_end(text, end)
            if not _is_apart(text, start, end, grouped=candidate.groups > 1):
                continue
        number = _accepted(text, candidate, end, last, limits)
        if number is not None:
            last = free = end
            yield Span(start, end, "phone", number)


def is_in_file_listing(text: bytes, start: int) -> bool:
    """Return whether the line of `start` lists a file."""
    begin = text.rfind(b"\n", max(0, start - _LISTED), start) + 1
    return bool(pattern(FILE_MODE).search(text[begin : min(start, begin + _MODE)]))


def _is_apart(text: bytes, start: int, end: int, *, grouped: bool) -> bool:
    """Return whether a number is no part of a word or of a longer number; a word may follow one with `+`."""
    if is_separate(text, start, end, _GLUE if grouped else _BARE_GLUE):
        return True
    if text[start] != PLUS or not text[end : end + 1].isalpha():
        return False
    first = max(0, start - CONTEXT)
    return is_separate(text[first:end], start - first, end - first, _GLUE)  # as if the text ended with the number


# --- Evidence --------------------------------------------------------------------------------------------------------


def _accepted(text: bytes, candidate: Candidate, end: int, last: int, limits: Limits) -> Number | None:
    """Return the identity of a phone number, or None if it is none; `end` is behind its extension."""
    value = text[candidate.start : candidate.end]
    if is_in_file_listing(text, candidate.start):
        return None
    if limits.keep_pseudonyms and pattern(FICTIONAL).search(value):
        return None
    cues = _cues_of(text, candidate, last)
    if value.startswith((b"+", b"(+", b"00")) and (number := _international(value, candidate, cues)):
        return number
    announced = cues.strong or _is_labelled(text, candidate, end)
    cue = announced or cues.cue
    if not cue and not _has_a_form(value, candidate):
        return None
    if is_list(value):
        return None
    ahead = _ahead(text, candidate.start, last)
    if not cues.cue and _is_other(ahead):
        return None
    return (
        _north_american(value, candidate, limits, cue=cue)
        or _national(value, candidate, limits, cue=cue, alone=_is_alone(ahead) and _ends_line(text, end))
        or (_announced(value, candidate) if announced else None)
    )


def _has_a_form(value: bytes, candidate: Candidate) -> bool:
    """Return whether a number that nothing announces may be accepted: it is marked, or grouped, or may stand alone."""
    if candidate.flags & NORTH_AMERICAN and _is_marked(value):
        return True
    grouped = candidate.groups > 2 and not is_thousands(value)
    return (grouped or candidate.digits == _TEN or is_trunk(value)) and not is_unlike_phones(value)


def _is_labelled(text: bytes, candidate: Candidate, end: int) -> bool:
    """Return whether the kind of a number stands behind it."""
    return bool(candidate.flags & (BEHIND | EXTENDED) and pattern(LABEL).search(text[end : end + CONTEXT]))


def _ahead(text: bytes, start: int, last: int) -> bytes:
    """Return what is before a number: after another number, which ended at `last`, only that."""
    if 0 <= last < start and start - last <= _CHAIN:
        return b"<PHONE>" + text[last:start]
    return context(text, start)


def _cues_of(text: bytes, candidate: Candidate, last: int) -> _Cues:
    """Return what announces a number, if its flags say that there may be something."""
    if candidate.flags & AHEAD or 0 <= candidate.start - last <= _CHAIN:
        return _read_cues(_ahead(text, candidate.start, last))
    return _NO_CUES


@lru_cache(maxsize=1024)
def _read_cues(ahead: bytes) -> _Cues:
    if not pattern(f"{STRONG_CUE}|{CUE}").search(ahead):
        return _NO_CUES
    return _Cues(cue=True, strong=bool(pattern(STRONG_CUE).search(ahead)))


@lru_cache(maxsize=1024)
def _is_other(ahead: bytes) -> bool:
    """Return whether another number than a phone's is announced."""
    return bool(pattern(OTHER_NUMBER).search(ahead))


def _is_alone(ahead: bytes) -> bool:
    """Return whether a number begins its line."""
    return not ahead.rpartition(b"\n")[2].strip() and (len(ahead) < _LONG_CONTEXT or b"\n" in ahead)


def _ends_line(text: bytes, end: int) -> bool:
    line, newline, _ = text[end : end + CONTEXT].partition(b"\n")
    return not line.strip() and (bool(newline) or end + CONTEXT >= len(text))


def _international(value: bytes, candidate: Candidate, cues: _Cues) -> Number | None:
    dialed = value.startswith(b"00")
    if dialed and not (candidate.groups > 1 or cues.cue):
        return None
    value = b"+" + value.lstrip(b"0 .-/") if dialed else value
    enough = candidate.groups >= (_DIALED_GROUPS if dialed else 2)
    return number_of(value, "") if is_valid(value, "") or (enough and is_possible(value, "")) else None


def _is_marked(value: bytes) -> bool:
    """Return whether more than spaces and slashes separates the groups of a number."""
    return any(mark in value for mark in (b"-", b".", b"(", b"\xe2"))


def _north_american(value: bytes, candidate: Candidate, limits: Limits, *, cue: bool) -> Number | None:
    """Return a number with North American groups; ten bare digits are more often an id than a phone."""
    if not candidate.flags & NORTH_AMERICAN or not (cue or _is_marked(value)) or not any(map(is_nanp, limits.regions)):
        return None
    return number_of(value, NORTH_AMERICA) if is_valid(value, NORTH_AMERICA) else None


def _national(value: bytes, candidate: Candidate, limits: Limits, *, cue: bool, alone: bool) -> Number | None:
    called = cue and not is_round(value)
    usual = not is_unlike_phones(value)
    for region in limits.regions:
        if is_nanp(region) and not cue:
            continue
        if (called or (usual and _is_usual(value, candidate, region, alone=alone))) and is_valid(value, region):
            return number_of(value, region)
    return None


def _is_usual(value: bytes, candidate: Candidate, region: str, *, alone: bool) -> bool:
    """Return whether a number, if valid, is written as numbers of its country are, so that it needs no cue."""
    if is_trunk(value):
        long = candidate.digits >= FEWEST_TRUNK_DIGITS
        return long and (candidate.groups > 1 or region in TEN_DIGITS or is_mobile(value, region))
    if candidate.groups > 2 and not is_thousands(value) and is_formatted(value, region):
        return True
    return alone and region in TEN_DIGITS and candidate.digits == _TEN


def _announced(value: bytes, candidate: Candidate) -> Number | None:
    """Return a number of any format that is called a phone number, unless it is a round one."""
    if candidate.groups == 1 or is_round(value):
        return None
    return "local:" + digits_of(value).decode()
