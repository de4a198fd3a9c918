"""Asks libphonenumber whether digits are a phone number of a country, and which."""

from functools import lru_cache
from typing import Any, NamedTuple

Number = str
"""What identifies a phone number: its E.164 form, or `local:` and its digits."""

NORTH_AMERICA = "US"
"""A country of the North American Numbering Plan, for which libphonenumber accepts the numbers of all."""

TEN_DIGITS = frozenset(("TR", "IN", "MX", "CO"))
"""Countries whose numbers all have ten digits and are often written without a trunk prefix."""


class Read(NamedTuple):
    """What libphonenumber says: the number, and whether it is assigned, of a possible length, in the usual groups."""

    number: Number = ""
    valid: bool = False
    possible: bool = False
    formatted: bool = False
    mobile: bool = False


@lru_cache(maxsize=65536)
def read_number(value: bytes, region: str) -> Read:
    """Return what `value` is as a number of `region`; with no region it has its country code."""
    import phonenumbers

    try:
        number = phonenumbers.parse(value.decode(errors="ignore"), region or None)
    except phonenumbers.NumberParseException:
        return Read()
    return Read(
        number=str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)),
        valid=bool(phonenumbers.is_valid_number(number)),
        possible=bool(phonenumbers.is_possible_number(number)),
        formatted=_is_formatted(value, number),
        mobile=phonenumbers.number_type(number) == phonenumbers.PhoneNumberType.MOBILE,
    )


def _is_formatted(value: bytes, number: Any) -> bool:  # noqa: ANN401 -- a PhoneNumber
    """Return whether a number is grouped, in three parts or more, as its country writes it."""
    import phonenumbers

    usual = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    parts = _parts(value.decode(errors="ignore"))
    return len(parts) > 2 and parts == _parts(usual)


def _parts(value: str) -> list[str]:
    return "".join(letter if letter.isdigit() else " " for letter in value).split()


@lru_cache(maxsize=256)
def is_nanp(region: str) -> bool:
    """Return whether a country shares the North American Numbering Plan."""
    import phonenumbers

    return bool(phonenumbers.country_code_for_region(region) == 1)
