"""Bank accounts: ISO 13616, with the lengths of the SWIFT registry and the check digits of ISO/IEC 7064, MOD 97-10."""

from pipeline_tasks.text.pii.candidates import is_announced, is_separate
from pipeline_tasks.text.pii.forms import Forms, Found, Place

_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29"
    " ES24 FI18 "
    "FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21"
    " LT20 LU20 "
    "LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33"
    " SA24 SC31 "
    "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
LENGTHS = {entry[:2].encode(): int(entry[2:]) for entry in _LENGTHS.split()}
"""Letters and digits of an account number, by country."""

_BETWEEN = (b" ", b"-", b".", *(blank.encode() for blank in "\u00a0\u2007\u2009\u202f\u2010\u2011"))
_MOST_BETWEEN = 2
CUE = r"(?i)iban[^0-9\n]{0,30}$"


def accepted(place: Place) -> Found | None:
    """Return the account number that begins with a country and two digits, in groups or not.

    Its letters are all capitals or all small, unless it is called an IBAN.
    """
    text, start, end, _ = place
    length = LENGTHS.get(text[start : start + 2].upper(), 0)
    written, end = _read(text, start, length)
    value = written.upper()
    if len(value) != length or not length or not is_separate(text, start, end, b"-"):
        return None
    if written not in (value, written.lower()) and not is_announced(text, start, CUE):
        return None
    moved = value[4:] + value[:4]
    number = int("".join(str(int(letter, 36)) for letter in moved))
    return Found(start, end, value) if number % 97 == 1 else None


def _read(text: bytes, at: int, length: int) -> tuple[str, int]:
    """Return the next `length` letters and digits, with at most two signs between two, and where they end."""
    letters: list[str] = []
    while len(letters) < length:
        begin = _behind_blanks(text, at) if letters else at
        letter = text[begin : begin + 1].decode("ascii", "ignore")
        if not letter.isalnum():
            break
        letters.append(letter)
        at = begin + 1
    return "".join(letters), at


def _behind_blanks(text: bytes, at: int) -> int:
    """Return the place behind the blanks, hyphens and dots at `at`."""
    for _ in range(_MOST_BETWEEN):
        at += next((len(sign) for sign in _BETWEEN if text.startswith(sign, at)), 0)
    return at


FORMS = (Forms(accepted, ("aa99*",)),)
