"""Finds phone numbers: patterns propose them, libphonenumber accepts them."""

from collections.abc import Iterator
from functools import lru_cache

from pipeline_tasks.text.pii.candidates import DIGITS, Limits, Span, candidates, context, is_separate, pattern

GAP = r"[ .\-\x{a0}\x{2010}-\x{2013}]"
_EXTENSION = r"(?:,? ?(?:x|X|[eE]xt(?:\.|ension)?)[ .:]?\d{1,6})?"
INTERNATIONAL = rf"\+\d{{1,4}}(?:[/]?{GAP}?\(?\d{{1,5}}\)?){{1,8}}{_EXTENSION}"
NANP = rf"(?:\+?1{GAP}?)?(?:\(\d{{3}}\) ?|\d{{3}}{GAP}?)\d{{3}}{GAP}?\d{{4}}{_EXTENSION}"
"""The North American Numbering Plan: country code 1, three digits of area, seven of the subscriber."""

NATIONAL = rf"\(?\d{{2,5}}\)?(?:[/]?{GAP}?\(?\d{{2,8}}\)?){{1,5}}{_EXTENSION}"
CUE = (
    r"(?i)(?:phone|telef|tel|call|fax|mobile|cell|dial|whatsapp|sms|hotline|cep|\x{7535}\x{8bdd})"
    r"[^0-9<>]{0,20}$"
)
"""Words before a number that announce a phone number."""

_GLUE = b".-/+"
_DIGIT_COUNTS = range(7, 16)  # E.164: at most 15
_TRIES = 4  # trailing digit groups removed before a candidate is given up


def find_phones(text: bytes, limits: Limits) -> Iterator[Span]:
    """Yield the phone numbers of `text`: those with `+`, then those in the national formats of the regions."""
    if b"+" in text:
        yield from _find_international(text)
    if any(_is_nanp(region) for region in limits.regions):
        yield from _find_nanp(text)
    for region in limits.regions:
        if not _is_nanp(region):
            yield from _find_national(text, region)


def _find_international(text: bytes) -> Iterator[Span]:
    for start, end in candidates(INTERNATIONAL, text):
        yield from _longest_valid(text, start, end, None)


def _find_nanp(text: bytes) -> Iterator[Span]:
    for start, end in candidates(NANP, text):
        plain = not any(mark in text[start:end] for mark in (b"-", b".", b"(", b"+", b"\xe2"))
        if not is_separate(text, start, end, _GLUE) or text[max(0, start - 1) : start] in (b"$", b"%"):
            continue
        if plain and not _has_cue(text, start):  # ten bare digits are more often an id than a phone
            continue
        value = _valid_number(text[start:end], "US")
        if value is not None:
            yield Span(start, end, "phone", value)


def _find_national(text: bytes, region: str) -> Iterator[Span]:
    for start, end in candidates(NATIONAL, text):
        grouped = text[start : start + 1] in (b"0", b"(") and any(
            mark in text[start:end] for mark in (b" ", b"-", b"/", b")")
        )
        if grouped or _has_cue(text, start):
            yield from _longest_valid(text, start, end, region)


def _longest_valid(text: bytes, start: int, end: int, region: str | None) -> Iterator[Span]:
    """Yield the longest valid number at `start`, giving up trailing groups behind a space."""
    for _ in range(_TRIES):
        value = _valid_number(text[start:end], region) if is_separate(text, start, end, _GLUE) else None
        if value is not None:
            yield Span(start, end, "phone", value)
            return
        end = text.rfind(b" ", start, end)
        if end <= start:
            return


def _has_cue(text: bytes, start: int) -> bool:
    return bool(pattern(CUE).search(context(text, start)))


def _valid_number(value: bytes, region: str | None) -> str | None:
    """Return the E.164 form of a valid number, or None; 555-01xx is reserved for fiction and nobody's."""
    import phonenumbers

    if sum(byte in DIGITS for byte in value.lower().split(b"x")[0].split(b"e")[0]) not in _DIGIT_COUNTS:
        return None
    try:
        number = phonenumbers.parse(value.decode(), region)
    except phonenumbers.NumberParseException:
        return None
    fiction = number.country_code == 1 and (number.national_number or 0) // 100 % 100_000 == 55_501
    if fiction or not phonenumbers.is_valid_number(number):
        return None
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


@lru_cache(maxsize=256)
def _is_nanp(region: str) -> bool:
    import phonenumbers

    return bool(phonenumbers.country_code_for_region(region) == 1)


def is_nanp_only(regions: tuple[str, ...]) -> bool:
    """Return whether all regions share the North American Numbering Plan."""
    return all(_is_nanp(region) for region in regions)
