"""Finds phone numbers by evidence: a pattern proposes runs of digits, and what is in and around one says what it is.

A run needs a reason: the code of a country (`+49 30 1234567`), a word that announces it (`call 785 8949`), a label
behind it (`97 111421 office`), or the form in which a country of the document writes its numbers. What is around a
form counts against it: figures, units, labels of other things. libphonenumber is asked only where there is a reason.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from pipeline_tasks.text.pii.candidates import CONTEXT, Limits, Span, context, is_separate, pattern
from pipeline_tasks.text.pii.phone_forms import (
    FEWEST_DIGITS,
    MOST_DIGITS,
    RUN,
    Form,
    Group,
    digits_of,
    extension_end,
    form_of,
    groups_of,
    is_even,
    is_other_form,
    is_round,
    may_have_form,
)
from pipeline_tasks.text.pii.phone_surroundings import is_among_figures, is_measured, is_other_number
from pipeline_tasks.text.pii.phone_validation import Number, is_possible, is_valid, number_of

_STEMS = (
    r"telephon|telefon|telefoon|telefax|t\x{e9}l\x{e9}phon|tel\x{e9}fon|rufnummer|hotline|helpline|whatsapp|mobilnummer"
    r"|handynummer|numaram|\x{442}\x{435}\x{43b}\x{435}\x{444}\x{43e}\x{43d}|\x{444}\x{430}\x{43a}\x{441}"
    r"|\x{3c4}\x{3b7}\x{3bb}\x{3ad}\x{3c6}\x{3c9}\x{3bd}"
    r"|\x{7535}\x{8bdd}|\x{96fb}\x{8a71}|\x{624b}\x{673a}|\x{624b}\x{6a5f}|\x{643a}\x{5e2f}|\x{4f20}\x{771f}|\x{884c}\x{52d5}"
    r"|\x{c804}\x{d654}|\x{d734}\x{b300}\x{d3f0}|\x{d578}\x{b4dc}\x{d3f0}|\x{d329}\x{c2a4}"
    r"|\x{647}\x{627}\x{62a}\x{641}|\x{62a}\x{644}\x{641}\x{646}|\x{5d8}\x{5dc}\x{5e4}\x{5d5}\x{5df}"
    r"|\x{92b}\x{93c}?\x{94b}\x{928}"
)
"""Words for a phone that a longer word may have as a part."""

_WORDS = (
    r"phones?|phone ?(?:no|nr|num(?:ber)?)|cellphone|tel|telf|telno|t\x{e9}l|tlf|tfn|call|fax|faks|mob|mobile?|mobiel"
    r"|mobiltel|m\x{f3}vil|portable|celular|cellulare|cell|dial|viber|sms|puh|answering at|reached at"
    r"|ligue|chame|llame|llamar|appel(?:ez)?|chiama(?:re)?"
    r"|\x{442}\x{435}\x{43b}|\x{43c}\x{43e}\x{431}|\x{3c4}\x{3b7}\x{3bb}|\x{3ba}\x{3b9}\x{3bd}|\x{5d8}\x{5dc}"
)
_WORDS_OF_COUNTRIES = {
    "DE": "handy|durchwahl",
    "AT": "handy|durchwahl",
    "CH": "handy|natel",
    "TR": "cep|gsm",
    "IT": r"port",
}
"""Words that mean something else in other languages."""

_GAP = r"[^0-9<>\x01\x02\n]{0,20}$"
STRONG_CUE = (
    r"(?i)(?:(?:^|[^\pL])(?:phone|telephone|tel|call|fax|mobile|cell|dial|whatsapp|sms|hotline|answering|reached)"
    r"(?:[ -](?:numbers?|no|nr|us|me|him|her|them|now|toll[ -]free|today))?(?: (?:is|at|on|to|:))?"
    r"(?:[\s.:#]{1,3}|[\s.:#]{1,2}\()"
    r"|<PHONE>[,;/ ]{1,3}|\x02[,;/ ]{1,3})$"
)
"""What makes a number of any format a phone number: it is called, or follows one in a list."""

LABEL = r"(?i)^[ \-]{1,2}\(?(?:office|fax|mobile|cell|home|work|phone|tel|direct)\)?(?:[\n,;\\)/]|$)"
"""What stands behind a number as its kind: `61 51 81 office`."""

FICTIONAL = r"555\D{0,2}01\d\d$"
"""North American numbers that are reserved for fiction, which pseudonyms are made of."""

_GLUE, _BARE_GLUE = b".-+:", b".-+:/"
_DIALED_GROUPS = 4  # `001-755-329-4431`, whose area code is not in use
_ENDS_TRIED = 6  # groups that are given up at the end of a number before its start is
_CHAIN = 3  # bytes between two numbers of a list, at most
_PLUS, _BRACKET = b"+("


class _Cues(NamedTuple):
    """What announces a number ahead of it: anything, and what makes a number of any format one."""

    any: bool
    strong: bool


_NO_CUES = _Cues(any=False, strong=False)


def find_phones(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the phone numbers of `text`, left to right."""
    words = _words_of(limits.regions)
    cue = words + _GAP if pattern(words).search(text) else ""
    last = -1
    for run in pattern(RUN).finditer(text):
        if not cue and not may_have_form(run.group(), limits.regions) and not _is_labeled(text, run.end()):
            continue
        groups = groups_of(text, *run.span())
        at = 0
        while at < len(groups):
            if groups[at].start < last or (span := _number_at(text, groups, at, last, limits, cue)) is None:
                at += 1
                continue
            yield span
            last = span.end


@cache
def _words_of(regions: tuple[str, ...]) -> str:
    """Return the pattern of the words that announce a number in some countries, or in English."""
    words = "|".join([_WORDS, *(_WORDS_OF_COUNTRIES[region] for region in regions if region in _WORDS_OF_COUNTRIES)])
    field = r"(?-i:\p{Ll}(?:Phone|Tel|Fax|Mobile))"
    return rf"(?i)(?:(?:(?:^|[^\pL])(?:{words})|{field})(?:[^\pL0-9<>\x01\x02\n]|$)|{_STEMS})"


def _number_at(text: bytes, groups: Sequence[Group], at: int, last: int, limits: Limits, cue: str) -> Span | None:
    """Return the longest number that begins with group `at`, where one may begin."""
    start = groups[at].start
    follows = 0 <= last <= start <= last + _CHAIN
    plus, dialed = text[start] == _PLUS or text[start : start + 2] == b"(+", text[start : start + 2] == b"00"
    if at > 1 and not (follows or plus or text[start] == _BRACKET):
        return None
    ahead = b"<PHONE>" + text[last:start] if follows else context(text, start)
    cues = _cues_of(ahead, cue) if at == 0 or follows else _NO_CUES
    for stop in _stops(groups, at):
        part, end = groups[at:stop], groups[stop - 1].end
        form = form_of(part, text[start:end], limits.regions)
        labeled = stop == len(groups) and _is_labeled(text, end)
        coded = plus or (dialed and (cues.any or len(part) == len(groups)))
        if not (coded or cues.any or labeled or form):
            continue
        end = extension_end(text, end)
        value = text[start : part[-1].end]
        if limits.keep_pseudonyms and pattern(FICTIONAL).search(value):
            continue
        number = _international(value, part, announced=cues.any) if coded else None
        if number is None:
            number = _accepted(text, part, end, ahead, cues._replace(strong=cues.strong or labeled), form, limits)
        if number and _is_apart(text, start, end, grouped=len(part) > 1):
            opened = text[start - 1 : start] == b"(" and text.count(b")", start, end) > text.count(b"(", start, end)
            return Span(start - opened, end, "phone", number)
    return None


def _is_labeled(text: bytes, end: int) -> bool:
    """Return whether the kind of a number is behind it, perhaps behind its extension."""
    return bool(pattern(LABEL).search(text[(last := extension_end(text, end)) : last + CONTEXT]))


def _stops(groups: Sequence[Group], at: int) -> list[int]:
    """Return where a number that begins with group `at` may stop, the most groups first, within the digits of E.164."""
    stops: list[int] = []
    digits = 0
    for stop in range(at + 1, len(groups) + 1):
        digits += groups[stop - 1].digits
        if digits > MOST_DIGITS or (stop - 1 > at and groups[stop - 1].opens):
            break
        if digits >= FEWEST_DIGITS and (stop == len(groups) or groups[stop].loose):
            stops.append(stop)
    return stops[: -_ENDS_TRIED - 1 : -1]


def _is_apart(text: bytes, start: int, end: int, *, grouped: bool) -> bool:
    """Return whether a number is no part of a word or of a longer number; a word may follow one with `+`."""
    if is_separate(text, start, end, _GLUE if grouped else _BARE_GLUE):
        return True
    if text[start] != _PLUS or not text[end : end + 1].isalpha():
        return False
    first = max(0, start - CONTEXT)
    return is_separate(text[first:end], start - first, end - first, _GLUE)  # as if the text ended with the number


def _cues_of(ahead: bytes, cue: str) -> _Cues:
    """Return what announces a number ahead of it."""
    strong = (
        bool(pattern(STRONG_CUE).search(ahead)) if cue or ahead.startswith(b"<PHONE>") or b"\x02" in ahead else False
    )
    return _Cues(strong or (bool(cue) and bool(pattern(cue).search(ahead))), strong)


# --- Evidence --------------------------------------------------------------------------------------------------------


def _accepted(
    text: bytes, part: Sequence[Group], end: int, ahead: bytes, cues: _Cues, form: Form | None, limits: Limits
) -> Number | None:
    """Return the identity of a number without its country's code, or None; `end` is behind its extension."""
    start = part[0].start
    value = text[start : part[-1].end]
    if is_other_form(value) or is_measured(text, end):
        return None
    if cues.any or cues.strong:
        if not cues.any and is_other_number(ahead):
            return None
        number = None if is_round(value) else _of_any(value, limits.regions)
        return number or (
            "local:" + digits_of(value) if cues.strong and len(part) > 1 and not is_round(value) else None
        )
    if form is None or is_other_number(ahead) or is_among_figures(text, start, end, value, form):
        return None
    return _of_any(value, form.regions)


def _of_any(value: bytes, regions: Sequence[str]) -> Number | None:
    """Return the number that digits are in the first country where they are one."""
    return next((number_of(value, region) for region in regions if is_valid(value, region)), None)


def _international(value: bytes, part: Sequence[Group], *, announced: bool) -> Number | None:
    """Return a number with the code of its country, which is valid, or in groups and as long as one."""
    dialed = value.startswith(b"00")
    if dialed and not announced and (len(part) == 1 or part[0].digits == len("00") or not is_even(value)):
        return None
    value = b"+" + value.lstrip(b"0 .-/") if dialed else value
    enough = len(part) >= (_DIALED_GROUPS if dialed else 2)
    return number_of(value, "") if is_valid(value, "") or (enough and is_possible(value, "")) else None
