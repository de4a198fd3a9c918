"""The written forms of phone numbers: extensions, and what only looks like a number."""

from pipeline_tasks.text.pii.candidates import pattern
from pipeline_tasks.text.pii.phone_runs import FEWEST_DIGITS

EXTENSION = (
    r"(?i)^(?:[ ,;]{0,2}(?:x|ext(?:n|ension)?|poste|durchwahl|dw|\x{434}\x{43e}\x{431}|\x{432}\x{43d}|dahili|anexo"
    r"|ramal|\x{5185}\x{7dda}|\x{5206}\x{673a}|#)[ .:]{0,2}\d{1,6})?"
)
"""Behind a number: `ext. 12`."""

LAST_DIGITS = r"^(?:/\d{1,4}){1,4}"
"""Behind a number: the last digits of others that differ only there, `5000/5001`."""

_THOUSANDS = r"^\d{1,3}(?:[ .\x{a0}\x{2009}\x{202f}]\d{3})+$"
_TRUNK = r"^(?:0[1-9]|0[ \-/(]|\(\d{1,5}\))"
_UNLIKE = (
    r"(?:^|[^\d./\-])[0-3]?\d[./\-][01]?\d[./\-](?:19|20)?\d\d(?:[^\d./\-]|$)"  # 03/04/02
    r"|^\d{5}-\d{4}$"  # 02110-1301, a postal code
    r"|^[0-2]?\d[.:][0-5]\d\D{1,5}[0-2]?\d[.:][0-5]\d$"  # 08.30 - 12.00
    r"|^\d{1,2}/"  # 01/2018
    r"|(?:^|\D)\d\D+\d\D+\d\D+\d(?:\D|$)"  # 0 1 2 3
    r"|^\([^)]*$"
)
"""Dates, times, issues of a journal, single digits, and an open bracket."""

_LONGEST_TAIL = 40


def digits_of(value: bytes) -> bytes:
    """Return the ASCII digits of `value`."""
    return bytes(byte for byte in value if 0x30 <= byte <= 0x39)


def extension_end(text: bytes, end: int) -> int:
    """Return where the extension or the list behind a number ends that ends at `end`."""
    for expression, more in ((EXTENSION, r"^\d"), (LAST_DIGITS, r"^[.\-]?\d")):
        tail = text[end : end + _LONGEST_TAIL].decode(errors="ignore").encode()
        match = pattern(expression).search(tail)
        if match and not pattern(more).search(tail[match.end() :]):
            end += match.end()
    return end


def is_list(value: bytes) -> bool:
    """Return whether a run of digits is two numbers with a slash between them."""
    return len(digits_of(value.partition(b"/")[0])) > FEWEST_DIGITS and b"/" in value


def is_thousands(value: bytes) -> bool:
    """Return whether a run of digits is one number with marks at the thousands."""
    return bool(pattern(_THOUSANDS).search(value))


def is_round(value: bytes) -> bool:
    """Return whether a run of digits is a number of whole thousands."""
    return is_thousands(value) and value.endswith(b"000")


def is_trunk(value: bytes) -> bool:
    """Return whether a number begins as one that is dialed within its country: with one zero, or a code in brackets."""
    return bool(pattern(_TRUNK).search(value))


def is_unlike_phones(value: bytes) -> bool:
    """Return whether a run of digits has a form that phone numbers do not have but other things have."""
    return bool(pattern(_UNLIKE).search(value))
