"""Hardware addresses (MAC, EUI-48): six pairs of hexadecimal digits, or three groups of four (IEEE 802, Cisco)."""

from pipeline_tasks.text.pii.candidates import is_announced, is_separate
from pipeline_tasks.text.pii.forms import Forms, Found, Place

CUE = r"(?i)(?:\bmacs?\b|hardware|physical|ether|bssid|\bhw)[^0-9\n]{0,30}$"
"""What announces an address that has no letter."""

_NOBODY = ("00" * 6, "FF" * 6)


def accepted(place: Place) -> Found | None:
    """Return an address of one device: not that of all, nor of none."""
    text, start, end, _ = place
    value = "".join(letter for letter in text[start:end].decode() if letter.isalnum()).upper()
    if value.isdigit() and not is_announced(text, start, CUE):
        return None  # it may be two times
    if value in _NOBODY or not is_separate(text, start, end, b":-.") or text[end : end + 1] == b":":
        return None
    return Found(start, end, value)


FORMS = (Forms(accepted, ("HH:HH:HH:HH:HH:HH", "HH-HH-HH-HH-HH-HH", "HHHH.HHHH.HHHH")),)
