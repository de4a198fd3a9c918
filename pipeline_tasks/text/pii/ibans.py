"""Bank accounts: ISO 13616, with the lengths of the SWIFT registry and the check digits of ISO/IEC 7064, MOD 97-10."""

from pipeline_tasks.text.pii.candidates import is_separate
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

_BLANKS = (b" ", b"-", "\u00a0".encode(), "\u202f".encode())


def accepted(place: Place) -> Found | None:
    """Return the account number that begins with a country and two digits, in groups or not."""
    text, start, end, _ = place
    length = LENGTHS.get(text[start : start + 2], 0)
    value, end = _read(text, start, length)
    if len(value) != length or not length or not is_separate(text, start, end, b"-"):
        return None
    moved = value[4:] + value[:4]
    number = int("".join(str(int(letter, 36)) for letter in moved))
    return Found(start, end, value) if number % 97 == 1 else None


def _read(text: bytes, at: int, length: int) -> tuple[str, int]:
    """Return the next `length` capital letters and digits, with at most one blank between two, and where they end."""
    letters: list[str] = []
    while len(letters) < length and at < len(text):
        skipped = next((len(blank) for blank in _BLANKS if letters and text.startswith(blank, at)), 0)
        letter = text[at + skipped : at + skipped + 1].decode("ascii", "ignore")
        if not ("A" <= letter <= "Z" or "0" <= letter <= "9"):
            break
        letters.append(letter)
        at += skipped + 1
    return "".join(letters), at


FORMS = (Forms(accepted, ("AA99*",)),)
