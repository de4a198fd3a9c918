"""What is around digits and counts against a phone number: units, figures, and the labels of other things."""

from pipeline_tasks.text.pii.candidates import context, pattern
from pipeline_tasks.text.pii.digits import ADDRESS_START, OTHER_THING
from pipeline_tasks.text.pii.phone_forms import Form, digits_of

OTHER_NUMBER = (
    r"(?i)(?:\biban|\bbic|\bid\b|\bref|account|konto|\bssn|\bvat|\bust|steuer|"
    r"siret|siren|\x{438}\x{43d}\x{43d}|\x{43e}\x{433}\x{440}\x{43d}|\barxiv|\bbug|issue|\brfc|\bcve|hrb|"
    r"\bzip\b|postal|\bn[ro]\b|n[\x{b0}\x{ba}]|\x{2116}|\baz\b|pages?\b|\bpp?\.|vol)[^0-9\n]{0,12}$"
    r"|\b[a-z]{2}\d\d(?: ?\d{4}){1,6} ?$|[$%\x{20ac}\x{a3}\x{a5}#=] ?$"
)
"""What announces another number than a phone's."""


UNIT = (
    r"^[ \x{a0}]?(?:[%\x{20ac}$\x{a3}\x{a5}\x{b0}\x{2030}]"
    r"|(?:[kKMGT]?i?(?:B|b|Hz|W|Wh)|[num\x{b5}kcd]?[sgmlL]|min|sec|rows?|bytes?|bits?|EUR|USD|GBP|CHF|PLN|CZK|z\x{142}|K\x{10d}|Ft|kr|m[23\x{b2}\x{b3}]|ha|Stk|times)(?:[^\pL]|$))"
)
"""What makes a number a measure, a price or a count."""

FIGURE = r"\+?\d(?:[ .,:/\-]?\d)*"
_DECIMAL = r"^\d+[.,:]\d"
_WORD = r"\pL{2}"
_DIGIT_AHEAD, _DIGIT_BEHIND = r"\d ?$", r"^ ?\d"
_NEAR = 64  # bytes ahead and behind in which figures count
_MOST_SMALL, _MOST_OTHERS = 3, 2
_SMALL = 5  # digits of a postal code

_FIELD_AHEAD = r"(?:[\n\t|,;(/\x{b7}\x{2022}\x{2013}\x{2014}]\s*|(?:\p{Lu}[\pL'\x{2019}.\-]* ){2})$"
_NAME_AHEAD = r"\p{Lu}[\pL'\x{2019}.\-]* \p{Lu}[\pL'\x{2019}.\-]*\s*[\n\t|,;(/\x{b7}\x{2022}\x{2013}\x{2014}]?\s*$"
_FIELD_BEHIND = r"^\s*(?:[\n\t|,;.)/\x{b7}\x{2022}\x{2013}\x{2014}]|$)"
"""What parts a field of an address or of a list from its neighbors; and a person's name ahead of it."""


def is_other_number(ahead: bytes) -> bool:
    """Return whether another number than a phone's is announced, or the number is a part of a web address."""
    return any(pattern(expression).search(ahead) for expression in (OTHER_NUMBER, OTHER_THING, ADDRESS_START))


def is_measured(text: bytes, end: int) -> bool:
    """Return whether a unit follows."""
    return bool(pattern(UNIT).search(text[end : end + 8]))


def is_among_figures(text: bytes, start: int, end: int, value: bytes, form: Form) -> bool:
    """Return whether text[start:end] may as well be one of the figures around it, or of a text.

    A form without marks is a field of its own, of a person where it could be thousands, and no longer figure is near.
    """
    ahead, behind = context(text, start, _NEAR), text[end : end + _NEAR]
    small = others = alike = 0
    for figure in (*pattern(FIGURE).findall(ahead), *pattern(FIGURE).findall(behind)):
        digits = digits_of(figure)
        if figure.startswith(b"+") or (len(digits) == len(digits_of(value)) and not form.is_figure):
            alike += 1
        elif len(digits) > _SMALL or pattern(_DECIMAL).search(figure):
            others += 1
        else:
            small += 1
    is_distinct = form.is_marked and not value.startswith(b"0")
    if small + others + alike and not is_distinct and not pattern(_WORD).search(ahead + b"\n" + behind):
        return True
    adjacent = bool(pattern(_DIGIT_AHEAD).search(ahead)) + bool(pattern(_DIGIT_BEHIND).search(behind))
    if form.is_marked:
        return others > _MOST_OTHERS or adjacent > 1
    if others or adjacent or small > _MOST_SMALL or not pattern(_FIELD_BEHIND).search(behind):
        return True
    if value.isdigit() and value.startswith(b"0") and ahead.endswith(b": "):
        return False
    return not pattern(_NAME_AHEAD if form.is_figure else _FIELD_AHEAD).search(ahead or b"\n")
