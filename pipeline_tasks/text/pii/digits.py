"""Check digits of numbers, and what announces a number as another one than a person's."""

from collections.abc import Sequence

from pipeline_tasks.text.pii.candidates import context, pattern, spoken

ADDRESS_START = r"(?:://|www\.|\b(?:href|src)=|[?&/][\w.%+\-]+[=/]|\b10\.\d{4,9}/)[^\s\"'<>]*$"
"""Where the word before a number is a web address, a path or a DOI, whose numbers name pages."""

QUESTION = r"[?&;]([\w.\-\[\]]+)(?:=|%3[Dd])$"
"""The name of what is asked for in a web address: `?card=`."""

MONEY_AHEAD = r"[$\x{20ac}\x{a3}\x{a5}#] ?$"

OTHER_THING = (
    r"(?i)(?:\bisbn|\bissn|\bean|\bupc|\bgtin|\bsku|\basin|\bdoi|\bpmid|\borcid|\bimei|\bimsi|\biccid|serial|order|invoice|ticket|track"
    r"|\bitem|product|model|part|version|build|commit|patent|catalog|article|\bart\.|barcode|\buuid|\bguid|timestamp|epoch|\bseed|rng\b"
    r"|bestell|rechnung|artikel|commande|factura|pedido|ordine|\x{437}\x{430}\x{43a}\x{430}\x{437})[^0-9\n]{0,12}$"
)
"""What announces the number of a thing."""

RECORD = r"(?i)\bids?\b[^0-9\n]{0,12}$"
"""What announces the number of a record: `user_id`, `orderId`."""

_LONGEST_ADDRESS = 200
_THING_CONTEXT = 32


def digits_of(value: bytes) -> str:
    """Return the ASCII digits of `value`."""
    return "".join(chr(byte) for byte in value if 0x30 <= byte <= 0x39)


def alphanumerics_of(value: bytes) -> str:
    """Return the letters and digits of `value`, a match of a form, without the blanks and marks between them."""
    return "".join(sign for sign in value.decode() if sign.isalnum())


def is_in_address(text: bytes, start: int, cue: str) -> bool:
    """Return whether what begins at `start` is within a web address or a path.

    What a query gives under a name that the cue matches (`?card=4111...`) is not: it names no page.
    """
    ahead = text[max(0, start - _LONGEST_ADDRESS) : start]
    if not pattern(ADDRESS_START).search(ahead):
        return False
    question = pattern(QUESTION).search(ahead)
    return question is None or not pattern(cue).search(spoken(question.group(1)) + b" ")


def is_thing(text: bytes, start: int) -> bool:
    """Return whether what begins at `start` is announced as the number of a thing, or is an amount of money."""
    ahead = context(text, start, _THING_CONTEXT)
    return bool(pattern(OTHER_THING).search(ahead) or pattern(MONEY_AHEAD).search(ahead))


def is_record(text: bytes, start: int) -> bool:
    """Return whether what begins at `start` is called an id: of a record, as of a person."""
    return bool(pattern(RECORD).search(spoken(context(text, start, _THING_CONTEXT))))


def luhn(digits: str) -> bool:
    """Return whether the last digit is the check digit of ISO/IEC 7812-1, annex B."""
    total = 0
    for at, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + at % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def weighted(digits: Sequence[int], weights: Sequence[int]) -> int:
    """Return the sum of digits times weights."""
    return sum(digit * weight for digit, weight in zip(digits, weights, strict=True))


_PRODUCTS = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip
_MOVES = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
"""The group of ten symmetries, and the permutation of each place, of J. Verhoeff (1969)."""


def verhoeff(digits: str) -> bool:
    """Return whether the last digit is Verhoeff's check digit."""
    check = 0
    for at, digit in enumerate(reversed(digits)):
        check = int(_PRODUCTS[check][int(_MOVES[at % 8][int(digit)])])
    return check == 0


def mod_11_10(digits: str) -> bool:
    """Return whether the last digit is the check digit of ISO/IEC 7064, MOD 11,10."""
    product = 10
    for digit in digits[:-1]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    return (11 - product) % 10 == int(digits[-1])
