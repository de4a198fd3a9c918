"""Hardware addresses (MAC, EUI-48): six pairs of hexadecimal digits, or three groups of four (IEEE 802, Cisco)."""

from pipeline_tasks.text.pii.candidates import is_named, is_separate, pattern
from pipeline_tasks.text.pii.digits import alphanumerics_of
from pipeline_tasks.text.pii.forms import Forms, Found, Place

CUE = r"(?i)(?:\bmacs?\b|hardware|physical|ether|bssid|\bhw)[^0-9\n]{0,30}$"
"""What announces an address that has no letter."""

PAIR_AHEAD, PAIR_BEHIND = r"\b[0-9A-Fa-f]{2,4}[:.\-](?:\r?\n\s*)?$", r"^(?:[:.\-][0-9A-Fa-f]{2}\b|:)"
"""More pairs beside an address: it is a part of a fingerprint, whose lines may be broken."""

_NOBODY = ("00" * 6, "FF" * 6)


def accepted(place: Place) -> Found | None:
    """Return an address of one device: not that of all, nor of none."""
    text, start, end, _ = place
    value = alphanumerics_of(text[start:end]).upper()
    if value.isdigit() and not is_named(text, start, CUE):
        return None  # it may be two times
    if value in _NOBODY or not is_separate(text, start, end, b":-."):
        return None
    if pattern(PAIR_AHEAD).search(text[max(start - 24, 0) : start]) or pattern(PAIR_BEHIND).search(text[end : end + 4]):
        return None
    return Found(start, end, value)


FORMS = (Forms(accepted, ("HH:HH:HH:HH:HH:HH", "HH-HH-HH-HH-HH-HH", "HHHH.HHHH.HHHH")),)
