"""Coordinates behind a word that says whose they are: of a device, a photo or a person, and not of a place."""

from pipeline_tasks.text.pii.candidates import is_named, pattern
from pipeline_tasks.text.pii.forms import Forms, Found, Place

_SIGN = r"[+\-\x{2212}]?"
DECIMAL = (
    rf"^(\d{{1,2}}\.\d{{4,}})\x{{b0}}? ?[NSns]?[ ,;/]{{1,3}}"
    rf"(?:[\"']?(?:lon|lng|long|longitude)[\"']?[ :=\"']{{1,3}})?({_SIGN}\d{{1,3}}\.\d{{4,}})(?:\x{{b0}}? ?[EWOew]\b)?"
)
DEGREES = (
    r"^\d{1,2}\x{b0} ?\d{1,2}['\x{2032}\x{2019}] ?(?:\d{1,2}(?:\.\d+)?(?:\"|''|\x{2033}|\x{201d}) ?)?[NS][ ,;/]{0,3}"
    r"\d{1,3}\x{b0} ?\d{1,2}['\x{2032}\x{2019}] ?(?:\d{1,2}(?:\.\d+)?(?:\"|''|\x{2033}|\x{201d}) ?)?[EWO]\b"
)
CUE = (
    r"(?i)(?:\bgps\b|geo ?tag|geo ?loc|exif|check(?:ed)?[ \-]in|\b(?:my|his|her|your|their|user'?s?|home|current"
    r"|last known) (?:\w+ )?"
    r"(?:loc|pos|coord|house|home)\w*|\bmeine? (?:standort|position)|ma position|mi ubicaci\x{f3}n|mein standort)"
    r"[^0-9\n]{0,30}$"
)
_LONGEST = 96


def accepted(place: Place) -> Found | None:
    """Return a pair of latitude and longitude that is announced."""
    text, start, *_ = place
    begin = start - (text[max(start - 1, 0) : start] in (b"-", b"+"))
    for expression in (DECIMAL, DEGREES):
        match = pattern(expression).search(text[start : start + _LONGEST])
        if match and _is_on_earth(match.group(0)) and is_named(text, begin, CUE):
            return Found(begin, start + match.end(), text[begin : start + match.end()].decode())
    return None


def _is_on_earth(pair: bytes) -> bool:
    numbers = [float(number) for number in pattern(r"\d+\.\d{4,}").findall(pair)]
    return len(numbers) < 2 or (numbers[0] <= 90 and numbers[1] <= 180)


FORMS = (
    Forms(
        accepted,
        ("9.9999*", "99.9999*", "9\u00b0*", "99\u00b0*"),
        cues=(
            "gps ",
            "gps:",
            "gps\t",
            "gps-",
            'gps"',
            "gps'",
            "gps=",
            "gps_",
            "geot",
            "geol",
            "geo ",
            "exif",
            "check",
            "loca",
            "posi",
            "coord",
            "hous",
            "home",
            "standort",
            "ubic",
        ),
    ),
)
