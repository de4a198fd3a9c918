"""Addresses of Bitcoin and Ethereum, by their checksums."""

from pipeline_tasks.text.pii.base58 import bare, is_base58_check, is_bech32, is_eip55
from pipeline_tasks.text.pii.candidates import is_named, pattern
from pipeline_tasks.text.pii.forms import Forms, Found, Place

_BITCOIN = r"^[13][1-9A-HJ-NP-Za-km-z]{25,34}$"
_SEGWIT = r"^(?:bc1[02-9ac-hj-np-z]{11,71}|BC1[02-9AC-HJ-NP-Z]{11,71})$"
_ETHEREUM = r"^0x[0-9a-fA-F]{40}$"
CUE = r"(?i)(?:\beth\b|ethereum|ether\b|wallet|donat|erc-?20|metamask|\busdt\b|address)[^0-9\n]{0,30}$"
"""What announces an address of Ethereum that is in one case, which has no checksum."""

_P2PKH, _P2SH = 0x00, 0x05


def accepted(place: Place) -> Found | None:
    """Return a long word that is an address."""
    text, start, end, _ = place
    start, end = bare(text, start, end)
    value = text[start:end]
    if pattern(_BITCOIN).search(value):
        is_right = is_base58_check(value, versions=(_P2PKH, _P2SH), sizes=(21,))
    elif pattern(_SEGWIT).search(value):
        is_right = is_bech32(value)
    elif pattern(_ETHEREUM).search(value):
        digits = value[2:].decode()
        is_plain = digits in (digits.lower(), digits.upper())
        is_right = len(set(digits)) > 2 and (is_named(text, start, CUE) if is_plain else is_eip55(digits))
    else:
        return None
    return Found(start, end, value.decode()) if is_right else None


BEGINS = r"[13][1-9A-HJ-NP-Za-km-z]{25}|(?:bc|BC)1[0-9A-Za-z]{11}|0x[0-9A-Fa-f]{40}"

FORMS = (Forms(accepted, begins=BEGINS),)
