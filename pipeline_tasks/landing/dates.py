"""Reads dates as archives, lines and tables write them, into one form that sorts by time.

A date that may be two days (`03/04/2026`) is none: whichever were chosen, the newest document would be the wrong one.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

_DONE = re.compile(
    r"[0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01])(?:T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](?:\.[0-9]+)?Z)?)?)?"
)
_TIME = (
    r"(?:[T,\s]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})?(?:\s?\([A-Z]{3,4}\))?)?"
)
_WEEKDAY, _NTH = r"(?:[A-Za-z]{3,9}\.?,?\s+)?", r"(?:st|nd|rd|th)?"
_MONTH, _DAY, _YEAR = r"(?P<name>[A-Za-z]{3,9})\.?", r"(?P<day>[0-9]{1,2})", r"(?P<year>[0-9]{4})"
_CLOCK = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DIGITS = r"(?P<year>[12][09][0-9]{2})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"{_YEAR}(?P<mark>[-/.])(?P<month>[0-9]{{1,2}})(?P=mark){_DAY}{_TIME}",
        rf"{_WEEKDAY}{_DAY}{_NTH}[\s-]+{_MONTH},?[\s-]+{_YEAR}{_TIME}",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY}{_NTH},?\s+{_YEAR}{_TIME}",
        rf"{_DAY}\.\s?(?P<month>[0-9]{{1,2}})\.\s?{_YEAR}{_TIME}",
        rf"[A-Za-z]{{3}}\s+(?P<name>[A-Za-z]{{3}})\s+{_DAY}\s+{_CLOCK}\s+(?P<zone>UTC|GMT)?\s*{_YEAR}",
        rf"{_DIGITS}(?:T?(?P<hour>[0-9]{{2}})(?P<minute>[0-9]{{2}})(?P<second>[0-9]{{2}})(?P<zone>Z)?)?",
    )
)
_EITHER_FIRST = re.compile(rf"(?P<one>[0-9]{{1,2}})(?P<mark>[/-])(?P<other>[0-9]{{1,2}})(?P=mark){_YEAR}{_TIME}")
_EPOCH = re.compile(r"([0-9]{9,10})(?:[0-9]{3}|[0-9]{6}|[0-9]{9})?(?:\.[0-9]+)?")
_EPOCHS = range(631_152_000, 1_900_000_000)  # 1990 to 2030; above, they look like days
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NOON, _LEAP = 12, 60
_LONGEST = 64


def iso_date(value: str) -> str | None:
    """Return a date as `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ`, None if it is none, or may be two.

    A time without a zone is UTC. A year or a month stays as it is; so does a fraction of a second in ISO 8601.
    """
    value = value.strip()
    if len(value) > _LONGEST:
        return None
    if _DONE.fullmatch(value):
        return value
    if epoch := _EPOCH.fullmatch(value):
        seconds = int(epoch[1])
        if seconds in _EPOCHS:
            return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for form in _FORMS:
        if parts := form.fullmatch(value):
            return _written(parts.groupdict())
    if parts := _EITHER_FIRST.fullmatch(value):
        return _written({**parts.groupdict(), **_ordered(int(parts["one"]), int(parts["other"]))})
    return None


def _ordered(one: int, other: int) -> dict[str, str | None]:
    """Return which of two numbers is the day and which the month; neither if both may be either."""
    if one != other and max(one, other) <= _NOON:
        return {"day": None}
    return {"day": str(max(one, other)), "month": str(min(one, other))}


def _written(parts: Mapping[str, str | None]) -> str | None:
    """Return a date of its parts, None if there is no such day or time."""
    name = parts.get("name")
    month = _MONTHS.index(name[:3].lower()) + 1 if name and name[:3].lower() in _MONTHS else parts.get("month")
    if not parts.get("day") or not month:
        return None
    hour, minute, second = (int(parts.get(unit) or 0) for unit in ("hour", "minute", "second"))
    try:
        day = datetime(int(parts["year"] or 0), int(month), int(parts["day"] or 0), tzinfo=_zone(parts.get("zone")))
        if not parts.get("hour"):
            return day.strftime("%Y-%m-%d")
        moment = day.replace(hour=_hour(hour, parts.get("half")), minute=minute, second=second - (second == _LEAP))
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return None


def _hour(hour: int, half: str | None) -> int:
    """Return an hour of 24 from one of 12 (`12 AM` is midnight)."""
    if not half:
        return hour
    return hour % _NOON + _NOON * (half[0] in "pP") if 1 <= hour <= _NOON else -1


def _zone(zone: str | None) -> timezone:
    if not zone or zone[0] not in "+-":
        return UTC
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    return timezone(-offset if zone[0] == "-" else offset)
