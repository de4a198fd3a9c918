"""Asks libphonenumber whether digits are a phone number of a country, and which."""

from functools import lru_cache
from typing import Any

Number = str
"""What identifies a phone number: its E.164 form, or `local:` and its digits."""

TEN_DIGITS = frozenset(("TR", "IN", "MX", "CO"))
"""Countries whose numbers all have ten digits and are often written without a trunk prefix."""


_Parsed = Any
"""A `phonenumbers.PhoneNumber`, which has no stubs; None if the digits are none."""


@lru_cache(maxsize=65536)
def _parse(value: bytes, region: str) -> _Parsed:
    """Return `value` as a number of `region`; with no region it has its country code."""
    import phonenumbers

    try:
        return phonenumbers.parse(value.decode(errors="ignore"), region or None)
    except phonenumbers.NumberParseException:
        return None


@lru_cache(maxsize=65536)
def is_valid(value: bytes, region: str) -> bool:
    """Return whether `value` is in a range of numbers that is in use."""
    import phonenumbers

    number = _parse(value, region)
    return number is not None and bool(phonenumbers.is_valid_number(number))


@lru_cache(maxsize=65536)
def is_possible(value: bytes, region: str) -> bool:
    """Return whether `value` has as many digits as a number may have."""
    import phonenumbers

    number = _parse(value, region)
    return number is not None and bool(phonenumbers.is_possible_number(number))


@lru_cache(maxsize=65536)
def is_mobile(value: bytes, region: str) -> bool:
    """Return whether `value` is a number of a mobile phone."""
    import phonenumbers

    number = _parse(value, region)
    return number is not None and phonenumbers.number_type(number) == phonenumbers.PhoneNumberType.MOBILE


@lru_cache(maxsize=65536)
def number_of(value: bytes, region: str) -> Number:
    """Return what identifies a number that is valid or possible: its E.164 form."""
    import phonenumbers

    return str(phonenumbers.format_number(_parse(value, region), phonenumbers.PhoneNumberFormat.E164))


@lru_cache(maxsize=256)
def is_nanp(region: str) -> bool:
    """Return whether a country shares the North American Numbering Plan."""
    import phonenumbers

    return bool(phonenumbers.country_code_for_region(region) == 1)


def forget() -> None:
    """Forget all answers, as a new process has none: for measurements."""
    for answers in (_parse, is_valid, is_possible, is_mobile, number_of):
        answers.cache_clear()
