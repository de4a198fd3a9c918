"""Numbers that states give to persons: by their check digits and, where these say little, by what announces them.

Numbers of firms (CNPJ, VAT) are none. A number whose form and check digits leave one in thousands to chance needs no
cue; any other needs one ahead, in the country's language.
"""

import string
from collections.abc import Callable
from functools import partial

from pipeline_tasks.text.pii.candidates import context, is_named, pattern
from pipeline_tasks.text.pii.digits import alphanumerics_of, is_in_address, is_thing, mod_11_10, verhoeff, weighted
from pipeline_tasks.text.pii.forms import Forms, Found, Place

_GAP = r"[^0-9\n]{0,24}\n?[^0-9\n]{0,8}$"
"""What may be between a cue and its number: a few words, or the border of a cell."""

_LONG_CONTEXT, _GROUPS, _CAPITALS = 240, 5, 3
_ABOUT_NINO = r"(?i)national.insurance|\bnino\b"

Valid = Callable[[str], bool]
Needs = Callable[[Place], bool]


def _accepted(place: Place, *, country: str, valid: Valid, cue: str, sure: Needs) -> Found | None:
    """Return a number that is valid and announced, or sure without a cue; those of web addresses and things are not."""
    text, start, end, _ = place
    value = alphanumerics_of(text[start:end]).upper()
    if not valid(value) or is_in_address(text, start, cue):
        return None
    if not is_named(text, start, cue) and (not sure(place) or is_thing(text, start)):
        return None
    return Found(start, end, f"{country}:{value}")


def _never(_: Place) -> bool:
    return False


def _always(_: Place) -> bool:
    return True


def _is_parted(place: Place) -> bool:
    """Return whether a number is written in groups."""
    return not place.text[place.start : place.end].isalnum()


def _is_hyphenated_at_home(place: Place) -> bool:
    parts = pattern(r"[\-\x{2010}\x{2011}]").split(place.text[place.start : place.end])
    return "US" in place.limits.regions and len(parts) == len(("area", "group", "serial"))


def _is_british(place: Place) -> bool:
    """Return whether a number is in five groups, or in capitals and three, or the text ahead is about such numbers."""
    value = place.text[place.start : place.end]
    if len(value.split()) >= (_CAPITALS if value.isupper() else _GROUPS):
        return True
    return bool(pattern(_ABOUT_NINO).search(context(place.text, place.start, _LONG_CONTEXT)))


def _at_home(place: Place, *, country: str) -> bool:
    return country in place.limits.regions


# --- Rules of countries ---------------------------------------------------------------------------------------------


def _is_ssn(value: str) -> bool:
    """US: no area 000, 666 or from 900 on, no group 00, no serial 0000 (SSA, POMS RM 10201.035)."""
    area, group, serial = value[:3], value[3:5], value[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


_NINO_NEVER = frozenset(("BG", "GB", "NK", "KN", "TN", "NT", "ZZ"))


def _is_nino(value: str) -> bool:
    """GB: prefixes that HMRC gives (NIM39110), and a suffix from A to D."""
    first, second = value[0], value[1]
    return not (first in "DFIQUV" or second in "DFIQUVO" or value[:2] in _NINO_NEVER) and value[-1] in "ABCD"


def _is_steuer_id(value: str) -> bool:
    """DE: eleven digits, the first from 1 on, and MOD 11,10 (BZSt)."""
    return value[0] != "0" and len(set(value)) > 2 and mod_11_10(value)


def _is_nir(value: str) -> bool:
    """FR: sex, year, month (20 to 42 and from 50 on where it is unknown), department, and 97 less the rest (INSEE)."""
    month = int(value[3:5])
    number = value[:13].replace("2A", "19").replace("2B", "18") if value[5:7] in ("2A", "2B") else value[:13]
    if value[0] not in "12" or not number.isdigit() or not (1 <= month <= 12 or 20 <= month <= 42 or month >= 50):
        return False
    return value[5:7] != "00" and 97 - int(number) % 97 == int(value[13:])


_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"


def _is_dni(value: str) -> bool:
    """ES: the letter is that of the number modulo 23; X, Y and Z of foreigners are 0, 1 and 2 (Orden INT/2058/2008)."""
    number = value[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and len(set(number)) > 1 and _DNI[int(number) % 23] == value[-1]


_ODD_OF_DIGITS = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
_ODD_OF_LETTERS = (*_ODD_OF_DIGITS, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
_ODD = dict(zip(string.digits + string.ascii_uppercase, _ODD_OF_DIGITS + _ODD_OF_LETTERS, strict=True))
"""What a sign at an odd place counts."""


def _is_codice_fiscale(value: str) -> bool:
    """IT: month letter, day (a woman's is 40 more), and the control letter (D.M. 23 December 1976)."""
    if value[8] not in "ABCDEHLMPRST" or not (1 <= int(value[9:11]) <= 31 or 41 <= int(value[9:11]) <= 71):
        return False
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in value[1:15:2])
    return (even + sum(_ODD[sign] for sign in value[0:15:2])) % 26 == ord(value[15]) - ord("A")


def _is_bsn(value: str) -> bool:
    """NL: nine digits, the weights 9 to 2 and -1, and a sum that 11 divides (Rijksdienst voor Identiteitsgegevens)."""
    digits = [int(digit) for digit in value]
    return any(digits) and weighted(digits, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _is_cpf(value: str) -> bool:
    """BR: two check digits modulo 11 (Receita Federal); eleven equal digits are none."""
    digits = [int(digit) for digit in value]
    checks = [weighted(digits[:size], range(size + 1, 1, -1)) * 10 % 11 % 10 for size in (9, 10)]
    return len(set(value)) > 1 and checks == digits[9:]


def _is_aadhaar(value: str) -> bool:
    """IN: twelve digits, the first from 2 on, and Verhoeff's check digit (UIDAI)."""
    return value[0] in "23456789" and len(set(value)) > 1 and verhoeff(value)


_CHINESE_WEIGHTS = tuple(pow(2, 17 - at, 11) for at in range(17))


def _is_resident_id(value: str) -> bool:
    """CN: region, date of birth, serial, and MOD 11-2 (GB 11643-1999)."""
    year, month, day = int(value[6:10]), int(value[10:12]), int(value[12:14])
    if not (value[0] in "123456789" and 1900 <= year <= 2099 and 1 <= month <= 12 and 1 <= day <= 31):
        return False
    rest = weighted([int(digit) for digit in value[:17]], _CHINESE_WEIGHTS) % 11
    return value[:17].isdigit() and "10X98765432"[rest] == value[17]


def _is_eighteen(value: str) -> bool:
    return value[:17].isdigit() and _is_resident_id(value)


# --- Cues -----------------------------------------------------------------------------------------------------------

SSN = rf"(?i)(?:\bssn\b|\bss ?#|social.security|\bsoc\.? sec\.?|tax(?:payer)? ?id|\bitin\b|\btin\b){_GAP}"
NINO = rf"(?i)(?:\bnino\b|\bni ?(?:no\b|number|#)|national.insurance|\bni\b){_GAP}"
STEUER_ID = rf"(?i)(?:steuer(?:liche)?[\- ]?(?:id|ident)|\bidentifikationsn|\bid(?:ent)?[\-. ]?nr|\btin\b|tax id){_GAP}"
NIR = rf"(?i)(?:\bnir\b|s\x{{e9}}cu|securite sociale|\bnum\x{{e9}}ro ss\b|\binsee\b|carte vitale|social.security){_GAP}"
DNI = rf"(?i)(?:\bd\.?n\.?i\b|\bn\.?i\.?[fe]\b|documento|identidad|c\x{{e9}}dula){_GAP}"
CODICE_FISCALE = rf"(?i)(?:cod(?:ice|\.) ?fisc|\bc\.?f\b){_GAP}"
BSN = rf"(?i)(?:\bbsn\b|burgerservice|sofi[\- ]?n|persoonsnummer){_GAP}"
CPF = rf"(?i)(?:\bcpf\b){_GAP}"
AADHAAR = rf"(?i)(?:aadhaa?r|\buidai?\b|\x{{906}}\x{{927}}\x{{93e}}\x{{930}}){_GAP}"
RESIDENT_ID = rf"(?i)(?:\x{{8eab}}\x{{4efd}}|\x{{516c}}\x{{6c11}}|\x{{8bc1}}\x{{4ef6}}|resident id|id card){_GAP}"

FORMS = (
    Forms(partial(_accepted, country="us", valid=_is_ssn, cue=SSN, sure=_is_hyphenated_at_home), ("999-99-9999",)),
    Forms(
        partial(_accepted, country="us", valid=_is_ssn, cue=SSN, sure=_never),
        ("999 99 9999", "999.99.9999", "999999999"),
    ),
    Forms(
        partial(_accepted, country="gb", valid=_is_nino, cue=NINO, sure=_is_british),
        ("aa 99 99 99 a", "AA 999999 A", "AA 999 999 A", "aa999999a", "aa 999999a", "aa-99-99-99-a", "aa 999999 a"),
    ),
    Forms(
        partial(_accepted, country="de", valid=_is_steuer_id, cue=STEUER_ID, sure=_never),
        ("99 999 999 999", "99999999999", "99/999/999/999"),
    ),
    Forms(
        partial(_accepted, country="fr", valid=_is_nir, cue=NIR, sure=_is_parted),
        ("9 99 99 99 999 999 99", "9 99 99 9A 999 999 99", "999999999999999", "9999999999999 99"),
    ),
    Forms(
        partial(_accepted, country="es", valid=_is_dni, cue=DNI, sure=partial(_at_home, country="ES")),
        ("99999999A", "99999999-A", "99.999.999-A", "99999999 A", "A9999999A", "A-9999999-A"),
    ),
    Forms(partial(_accepted, country="es", valid=_is_dni, cue=DNI, sure=_never), ("99999999a", "a9999999a")),
    Forms(
        partial(_accepted, country="it", valid=_is_codice_fiscale, cue=CODICE_FISCALE, sure=_always),
        ("aaaaaa99a99a999a",),
    ),
    Forms(
        partial(_accepted, country="nl", valid=_is_bsn, cue=BSN, sure=_never),
        ("999999999", "9999.99.999", "999 999 999", "9999 99 999"),
    ),
    Forms(partial(_accepted, country="br", valid=_is_cpf, cue=CPF, sure=_is_parted), ("999.999.999-99", "99999999999")),
    Forms(partial(_accepted, country="br", valid=_is_cpf, cue=CPF, sure=_never), ("999 999 999 99", "999 999 999-99")),
    Forms(
        partial(_accepted, country="in", valid=_is_aadhaar, cue=AADHAAR, sure=_never),
        ("9999 9999 9999", "9999-9999-9999", "999999999999"),
    ),
    Forms(partial(_accepted, country="cn", valid=_is_eighteen, cue=RESIDENT_ID, sure=_always), ("99999999999999999#",)),
    Forms(
        partial(_accepted, country="cn", valid=_is_eighteen, cue=RESIDENT_ID, sure=_never),
        ("999999 99999999 999#", "999999-99999999-999#"),
    ),
)
