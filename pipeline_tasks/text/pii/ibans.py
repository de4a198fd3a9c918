"""Bank accounts: ISO 13616, with the lengths of the SWIFT registry and the check digits of ISO/IEC 7064, MOD 97-10."""

from pipeline_tasks.text.pii.candidates import is_announced, is_separate, pattern
from pipeline_tasks.text.pii.digits import alphanumerics_of
from pipeline_tasks.text.pii.forms import Forms, Found, Place

_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29"
    " ES24 FI18 "
    "FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21"
    " LT20 LU20 "
    "LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33"
    " SA24 SC31 "
    "SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
LENGTHS = {entry[:2].encode(): int(entry[2:]) for entry in _LENGTHS.split()}
"""Letters and digits of an account number, by country."""

BETWEEN = r"(?:[ .\-]|[\x{a0}\x{2007}\x{2009}\x{202f}\x{2010}\x{2011}])"
"""Blanks, hyphens and dots, of which up to two may be between two letters or digits."""

_LONGEST = 34 * 7
CUE = r"(?i)iban[^0-9\n]{0,30}$"


def accepted(place: Place) -> Found | None:
    """Return the account number that begins with a country and two digits, in groups or not.

    Its letters are all capitals or all small, unless it is called an IBAN.
    """
    text, start, end, _ = place
    length = LENGTHS.get(text[start : start + 2].upper(), 0)
    written, end = _read(text, start, length) if length else ("", start)
    value = written.upper()
    if not written or not is_separate(text, start, end, b"-"):
        return None
    if written not in (value, written.lower()) and not is_announced(text, start, CUE):
        return None
    moved = value[4:] + value[:4]
    number = int("".join(str(int(letter, 36)) for letter in moved))
    return Found(start, end, value) if number % 97 == 1 else None


def _read(text: bytes, at: int, length: int) -> tuple[str, int]:
    """Return the next `length` letters and digits, and where they end; nothing if there are fewer."""
    match = pattern(rf"(?:{BETWEEN}{{0,2}}[A-Za-z0-9]){{{length}}}").match(text, at, at + _LONGEST)
    if match is None:
        return "", at
    return alphanumerics_of(match.group()), match.end()


FORMS = (Forms(accepted, ("aa99*",)),)
