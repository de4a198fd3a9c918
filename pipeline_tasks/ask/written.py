"""Writes the values of a column for a person, and numbers of a page: counts, shares, bytes, durations, dollars."""

from collections.abc import Callable, Mapping
from math import floor, log10
from typing import cast

from pipeline_tasks.ask.parts import Kind

MINUTE = 60

CENT = 0.01

SHORT = 1000
"""Numbers from here on are shown without decimals."""

UNITS = ("B", "kB", "MB", "GB", "TB")

SHOWN = 12
"""Digits of a digest that are shown."""

DASH = "-"
"""What stands for a value that is not there."""


def number(value: float | None) -> str:
    """Return a whole number with commas, "-" for none."""
    return DASH if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Return a share in percent, "-" for none."""
    return DASH if share is None else f"{share * 100:.1f} %"


def figure(value: float | None) -> str:
    """Return a measured number in at most four digits, large ones whole and with commas, "-" for none."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= SHORT else f"{value:.4g}"


def size(count: float | None) -> str:
    """Return bytes in the largest unit that leaves at least one, "-" for none."""
    if count is None:
        return DASH
    at = 0
    while count >= SHORT and at < len(UNITS) - 1:
        count, at = count / SHORT, at + 1
    return f"{count:,.0f} {UNITS[at]}" if at == 0 else f"{count:,.1f} {UNITS[at]}"


def seconds(value: float | None) -> str:
    """Return a duration in its largest units: `0.45 s`, `12.3 s`, `4 min 10 s`, `2 h 5 min`; "-" for none."""
    if value is None:
        return DASH
    if value < MINUTE:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def usd(value: float | None) -> str:
    """Return dollars and cents; an amount below a cent in two digits and without an exponent; "-" for none."""
    if value is None:
        return DASH
    if value == 0 or value >= CENT:
        return f"${value:,.2f}"
    return f"${value:.{1 - floor(log10(value))}f}"


def time(at: str) -> str:
    """Return a time, ISO 8601 in UTC, up to its minute."""
    return at[:16].replace("T", " ")


_NUMBERS = {"count": number, "share": percent, "figure": figure, "bytes": size, "seconds": seconds}


def written(kind: Kind, value: object) -> str:
    """Return a value of a column as a person reads it, "-" for none."""
    if value in (None, ""):
        return DASH
    if kind in _NUMBERS:
        return _NUMBERS[kind](cast("float", value))
    return _WORDS[kind](value) if kind in _WORDS else str(value)


def _tally(value: object) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in cast("Mapping[str, int]", value).items()) or DASH


def _names(value: object) -> str:
    return ", ".join(f"{name} {each}" for name, each in cast("Mapping[str, str]", value).items()) or DASH


_WORDS: Mapping[str, Callable[[object], str]] = {
    "time": lambda at: time(str(at)),
    "flag": lambda value: "yes" if value else DASH,
    "digest": lambda digest: str(digest)[:SHOWN],
    "tally": _tally,
    "names": _names,
}
