"""Finds personal data by patterns over the whole text, one number after another: what the compiled loops must equal.

The rules are those of `pipeline_tasks.text.pii`; the patterns and validators that the finders still use come from there.
"""

import ipaddress
import re
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipeline_tasks.text.pii import emails, forms, ip_addresses, phones
from pipeline_tasks.text.pii.candidates import (
    CONTEXT,
    Limits,
    Span,
    context,
    is_separate,
    masked,
    pattern,
)
from pipeline_tasks.text.pii.findings import _overlaps
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
from pipeline_tasks.text.pii.phones import CUE, FICTIONAL, LABEL, OTHER_NUMBER, STRONG_CUE
from pipeline_tasks.text.pii.visible import visible

IPV4 = r"\d+(?:\.\d+){3,}"
IPV6 = r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,}(?:\.\d{1,3}){0,3}(?:%[0-9A-Za-z]+)?"
GAP = r"[ .\-/()\x{a0}\x{2007}\x{2009}\x{202f}\x{200b}\x{2010}-\x{2015}]"
RUN = rf"[+(]{{0,2}}\d(?:{GAP}{{0,4}}\d){{5,}}"
_DATE = (
    r"^(?:(?:19|20)\d\d[ ./\-]+[0-3]?\d[ ./\-]+[0-3]?\d|[0-3]?\d[ ./\-]+[0-3]?\d[ ./\-]+(?:19|20)\d\d)(?:\D|$)"
    r"|^(?:19|20)\d\d\D{1,3}(?:19|20)\d\d$"
)
_GROUP = r"(?:\+ ?|\(\+?)?\d+\)?"
_LOOSE = r"[ /(\x{a0}\x{2009}\x{202f}]"
FEWEST_DIGITS, MOST_DIGITS = 6, 15
_GLUE = b".-+:"
_BARE_GLUE = b".-+:/"
_DIALED_GROUPS = 4
_FEWEST_TRUNK_DIGITS = 9
PLUS = ord("+")
_ENDS_TRIED = 6


def candidates(expression: str, text: bytes) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges that match, left to right, without overlaps."""
    for match in pattern(expression).finditer(text):
        yield match.span()


def is_date(value: bytes) -> bool:
    """Return whether a run of digits is a date, a time stamp or a range of years."""
    return bool(pattern(_DATE).search(value))


def find_pii(text: bytes, limits: Limits) -> list[Span]:
    seen = visible(text)
    return (
        _find_pii(text, limits) if seen is None else [seen.in_original(span) for span in _find_pii(seen.text, limits)]
    )


def _find_pii(text: bytes, limits: Limits) -> list[Span]:
    """Return the findings of `text`: mail wins over IP over what has a form over phone."""
    spans: list[Span] = []
    for finders in ((find_emails,), (find_ipv4s, find_ipv6s), (find_forms,), (find_phones,)):
        view = masked(text, spans) if spans else text
        for finder in finders:
            for span in finder(view, limits):
                if not _overlaps(span, spans):
                    insort(spans, span)
    return spans


def find_emails(text: bytes, limits: Limits) -> Iterator[Span]:
    yield from emails._with_sign(text, 0, len(text), limits)
    for expression in (emails.IN_BRACKETS, emails.IN_WORDS, emails.IN_CAPITALS):
        yield from emails._written_out(text, expression)


_CLASSES = {
    "9": rb"[0-9]", "A": rb"[A-Z]", "a": rb"[A-Za-z]", "#": rb"[0-9xX]", "H": rb"[0-9A-Fa-f]",
    " ": rb"(?: |\xc2\xa0|\xe2\x80[\x87\x89\xaf])", "-": rb"(?:-|\xe2\x80[\x90-\x93])",
}  # fmt: skip
_WORD = re.compile(rb"[A-Za-z0-9]+")
_LONG = re.compile(rb"[A-Za-z0-9_-]{20,}|-----(?=B)")


def form_starts(text: bytes) -> set[int]:
    """Return where a value may begin: with a word that has a digit, or with one or two letters right before it."""
    starts = set()
    for word in _WORD.finditer(text):
        first = re.search(rb"[0-9]", word.group())
        if first and first.start() <= 18:
            starts.add(word.start())
            prefix = re.search(rb"(?<![A-Za-z0-9])[A-Za-z]{1,2}[ -]$", text[max(0, word.start() - 4) : word.start()])
            starts |= {word.start() - len(prefix.group())} if prefix else set()
    return starts


def find_forms(text: bytes, limits: Limits) -> Iterator[Span]:
    table, spans = forms._table(limits.kinds), []
    for form, (kind, check) in enumerate(table.owners):
        signs, places, *_ = table.forms
        written_as = signs[places[form] : places[form + 1]].tobytes().decode("latin-1")
        body = written_as.removesuffix("*")
        written = re.compile(b"".join(_CLASSES.get(sign, re.escape(sign.encode("latin-1"))) for sign in body))
        for start in form_starts(text):
            match = written.match(text, start)
            if match:
                ahead = is_separate(text[:start] + b" ", start, start, b".-+")
                behind = body != written_as or is_separate(b" " + text[match.end() :], 1, 1, b".-+")
                if ahead and behind and (accepted := check(forms.Place(text, start, match.end(), limits))):
                    spans.append(Span(accepted.start, accepted.end, kind, accepted.value))
    for word in _LONG.finditer(text):
        for kind, check in table.words:
            if accepted := check(forms.Place(text, word.start(), word.end(), limits)):
                spans.append(Span(accepted.start, accepted.end, kind, accepted.value))
    last = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= last:
            last = span.end
            yield span


def find_ipv4s(text: bytes, limits: Limits) -> Iterator[Span]:
    last = version = -1
    for start, end in candidates(IPV4, text):
        if not is_separate(text, start, end, b"."):
            continue
        if ip_addresses.is_version(text, start, end, version):
            version = end
            continue
        address = ip_addresses._parse(text[start:end])
        if not isinstance(address, ipaddress.IPv4Address) or not ip_addresses._counts(address, limits):
            continue
        small = max(address.packed) < ip_addresses._LOW_PART
        if limits.public_ips and small and not ip_addresses._is_announced(text, start, last):
            continue
        last = end
        yield Span(start, end, "ip", address.compressed)


def find_ipv6s(text: bytes, limits: Limits) -> Iterator[Span]:
    for start, end in candidates(IPV6, text):
        if end - start > 64 or not is_separate(text, start, end, b":."):
            continue
        address = ip_addresses._parse(text[start:end])
        if address is not None and ip_addresses._counts(address, limits):
            yield Span(start, end, "ip", address.compressed)


class Group(NamedTuple):
    """Digits without a mark between them: where they are, how many, and whether a space, slash or bracket is ahead."""

    start: int
    end: int
    digits: int
    loose: bool
    opens: bool


def groups_of(text: bytes, start: int, end: int) -> list[Group]:
    """Return the groups of digits of a run, with the marks `+` and `(` that belong to them."""
    groups: list[Group] = []
    last = start
    for match in pattern(_GROUP).finditer(text[start:end]):
        value = match.group()
        opened, closed = value.startswith(b"("), value.endswith(b")")
        first = start + match.start() + (opened and not closed)  # a bracket around the whole number is no part of it
        stop = start + match.end() - (closed and not opened)
        loose = bool(pattern(_LOOSE).search(text[last:first] + value[:1]))
        groups.append(Group(first, stop, len(digits_of(value)), loose, b"+" in value))
        last = stop
    return groups


def is_grouped(groups: list[Group]) -> bool:
    """Return whether a number is written in parts."""
    return len(groups) > 1


def is_north_american(groups: list[Group]) -> bool:
    """Return whether groups are area, exchange and line of the North American plan, with or without its code 1."""
    lengths = [group.digits for group in groups]
    if lengths[:1] == [1]:
        lengths = lengths[1:]
    return lengths in ([3, 3, 4], [3, 7], [6, 4], [10], [11])


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
        at = len(groups) if phones.is_in_file_listing(text, start) else 0
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
    value = b"+" + value.lstrip(b"0 .-/") if dialed else value
    enough = len(groups) >= (_DIALED_GROUPS if dialed else 2)
    return number_of(value, "") if is_valid(value, "") or (is_possible(value, "") and enough) else None


def _north_american(value: bytes, groups: list[Group], limits: Limits, *, cue: bool) -> Number | None:
    if not is_north_american(groups) or not any(map(is_nanp, limits.regions)):
        return None
    if not is_valid(value, NORTH_AMERICA):
        return None
    marked = any(mark in value for mark in (b"-", b".", b"(", b"\xe2"))
    return (
        number_of(value, NORTH_AMERICA) if marked or cue else None
    )  # ten bare digits are more often an id than a phone


def _national(value: bytes, groups: list[Group], limits: Limits, *, cue: bool, alone: bool) -> Number | None:
    for region in limits.regions:
        if is_nanp(region) and not cue:
            continue
        called = cue and not is_round(value)
        if is_valid(value, region) and (called or _is_usual(value, groups, region, alone=alone)):
            return number_of(value, region)
    return None


def _is_usual(value: bytes, groups: list[Group], region: str, *, alone: bool) -> bool:
    """Return whether a valid number is written as numbers of its country are, so that it needs no cue."""
    if is_unlike_phones(value):
        return False
    if is_trunk(value):
        short = len(digits_of(value)) < _FEWEST_TRUNK_DIGITS
        return not short and (is_grouped(groups) or is_mobile(value, region) or region in TEN_DIGITS)
    if is_formatted(value, region) and not is_thousands(value):
        return True
    return alone and region in TEN_DIGITS and sum(group.digits for group in groups) == 10


def _announced(value: bytes, groups: list[Group]) -> Number | None:
    """Return a number of any format that is called a phone number, unless it is a round one."""
    if not is_grouped(groups) or is_round(value):
        return None
    return "local:" + digits_of(value).decode()
