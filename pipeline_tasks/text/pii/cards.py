"""Numbers of payment cards: the ranges and lengths of their issuers, and Luhn's check digit (ISO/IEC 7812-1)."""

from pipeline_tasks.text.pii.candidates import is_named, pattern
from pipeline_tasks.text.pii.digits import digits_of, is_in_address, is_record, is_thing, luhn
from pipeline_tasks.text.pii.forms import Forms, Found, Place

ISSUERS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (4, 4, (13, 16, 19)),  # Visa
    (51, 55, (16,)),  # Mastercard
    (2221, 2720, (16,)),
    (34, 34, (15,)),  # American Express
    (37, 37, (15,)),
    (300, 305, (14, 16)),  # Diners Club
    (3095, 3095, (14, 16)),
    (36, 36, (14, 16)),
    (38, 39, (14, 16)),
    (6011, 6011, (16, 19)),  # Discover
    (644, 659, (16, 19)),
    (3528, 3589, (16, 19)),  # JCB
    (62, 62, (16, 19)),  # UnionPay
    (81, 81, (16,)),
    (2200, 2204, (16,)),  # Mir
    (5018, 5018, (16, 19)),  # Maestro
    (5020, 5020, (16, 19)),
    (5038, 5038, (16, 19)),
    (5893, 5893, (16, 19)),
    (6304, 6304, (16, 19)),
    (6759, 6759, (16, 19)),
    (6761, 6763, (16, 19)),
)
"""First digits from, to, and how many digits a number has."""

CUE = (
    r"(?i)(?:\bcards?\b|\bcc\b|visa|master ?card|maestro|amex|american express|diners|discover|\bjcb\b|unionpay"
    r"|kreditkarte|karten"
    r"|carte|tarjeta|cart\x{e3}o|\bcarta\b|kart|creditcard|betaal|\x{43a}\x{430}\x{440}\x{442}|\x{5361}"
    r"|\x{30ab}\x{30fc}\x{30c9}|\x{ce74}\x{b4dc})"
    r"[^0-9\n]{0,30}$"
)
"""What announces a card, in the languages of the packs."""

GROUP_AHEAD = r"(?:[0-9A-Z]\d|\d[A-F]+|\b\d \d)[ \-]$"
GROUP_BEHIND = r"^[ \-](?:\d{4}(?:\D|$)|\d+[A-F])"
"""More groups beside a number: it is a part of a longer one, such as an account's, or of a row of a table."""

ROW_AHEAD = r"(?:^|[^\dA-F])(\d{4}(?:[ \-]\d{4}){2,})[ \t]*\r?\n[ \t]*$"
ROW_BEHIND = r"^[ \t]*\r?\n[ \t]*(\d{4}(?:[ \-]\d{4}){2,})(?:\D|$)"
"""Groups of digits in the line ahead and in that behind: rows of a table, unless they are cards, too."""

_LONGEST_ROW = 120
_USUAL = 15
"""Digits from which on a number without blanks needs no cue; shorter ones are as often times and article numbers."""


def accepted(place: Place) -> Found | None:
    """Return a number of a card, unless it names a page or a thing."""
    text, start, end, _ = place
    digits = digits_of(text[start:end])
    if not _is_issued(digits) or not luhn(digits) or len(set(digits)) < 2:
        return None
    if text[max(start - 1, 0) : start] == b".":
        return None
    is_called = is_named(text, start, CUE)
    if not is_called and not _stands_alone(text, start, end, len(digits)):
        return None
    return None if is_in_address(text, start, CUE) else Found(start, end, digits)


def _stands_alone(text: bytes, start: int, end: int, digits: int) -> bool:
    """Return whether a number that nothing calls a card's is one: of a usual length, no part of another, no thing's."""
    if end - start == digits and not _USUAL <= digits <= _USUAL + 1:
        return False
    ahead, behind = text[max(start - 8, 0) : start], text[end : end + 8]
    if pattern(GROUP_AHEAD).search(ahead) or pattern(GROUP_BEHIND).search(behind):
        return False
    if end - start > digits and _is_row(text, start, end):
        return False
    return not is_thing(text, start) and not is_record(text, start)


def _is_row(text: bytes, start: int, end: int) -> bool:
    """Return whether a number in groups is a row of a table: a line beside it has groups that are no card."""
    ahead = pattern(ROW_AHEAD).search(text[max(start - _LONGEST_ROW, 0) : start])
    behind = pattern(ROW_BEHIND).search(text[end : end + _LONGEST_ROW])
    rows = [digits_of(row.group(1)) for row in (ahead, behind) if row]
    return any(not (_is_issued(row) and luhn(row)) for row in rows)


def _is_issued(digits: str) -> bool:
    return any(len(digits) in lengths and low <= int(digits[: len(str(low))]) <= high for low, high, lengths in ISSUERS)


FORMS = (
    Forms(
        accepted,
        (
            "9999 9999 9999 9999",
            "9999-9999-9999-9999",
            "9999.9999.9999.9999",
            "9999 9999 9999 9999 999",
            "9999 999999 99999",
            "9999-999999-99999",
            "9999 999999 9999",
            "9999-999999-9999",
            "9999999999999",
            "99999999999999",
            "999999999999999",
            "9999999999999999",
            "9999999999999999999",
        ),
    ),
)
