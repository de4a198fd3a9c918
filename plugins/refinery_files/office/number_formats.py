"""Shows the numbers of cells as sheets do: days, times, shares, decimals (ECMA-376, part 1, 18.8.30 and 18.8.31)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    37: "#,##0",
    38: "#,##0",
    39: "#,##0.00",
    40: "#,##0.00",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "0.0E+0",
    **dict.fromkeys((27, 28, 29, 30, 31, 36, 50, 51, 52, 53, 54, 55, 56, 57, 58), "yyyy-mm-dd"),
}
"""Formats that files name by number alone; days, which programs write as the reader's country does, as ISO 8601."""

_GENERAL_DIGITS = 11
_MOST_WHOLE = 1e15  # above, a number of 64 bits is no whole one for certain
_NOON = 12
_SHORT, _ABBREVIATED = 2, 3  # letters of a unit that mean a number, and a name of three letters
_PARTS = re.compile(
    r"""(?ix) "([^"]*)" | \\(.) | _. | \*. | \[(h+|m+|s+)\] | \[[^\]]*\]
    | (y{1,4} | m{1,5} | d{1,4} | h{1,2} | s{1,2}(?:\.0+)? | AM/PM | A/P | e+) | (.)"""
)
_LITERALS = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]')
_DATED = re.compile(r"(?i)[ymdhs]|AM/PM")
_ELAPSED = re.compile(r"(?i)\[(?:h+|m+|s+)\]")
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.[#0?]*)?,*|\.[#0?]+,*")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LAST_DAY = 2_958_465  # 9999-12-31, which may be rounded to a day that there is not
_LEAP = 60  # 29 February 1900, which Excel has and the calendar has not


class _Shape(NamedTuple):
    is_dated: bool
    before: str
    after: str
    digits: str
    is_share: bool
    is_scientific: bool


def shown(number: float, form: str, *, from_1904: bool = False) -> str:
    """Return a number as a format shows it."""
    sections = _sections(form)
    section = sections[0]
    if number < 0 and len(sections) > 1 and not _shape(section).is_dated:
        section, number = sections[1], abs(number)
    elif number == 0 and sections[2:]:
        section = sections[2]
    shape = _shape(section)
    if shape.is_dated:
        return _moment(number, section, from_1904=from_1904)
    if not shape.digits:
        return general(number) if section.strip().lower() in ("", "general", "@") else shape.before
    return f"{shape.before}{_digits(number, shape)}{shape.after}"


def general(number: float) -> str:
    """Return a number as a cell without a format shows it: with up to 11 digits."""
    if number == int(number) and abs(number) < _MOST_WHOLE:
        return str(int(number))
    return f"{number:.{_GENERAL_DIGITS}g}".replace("e", "E")


@lru_cache(1000)
def _sections(form: str) -> tuple[str, ...]:
    parts = re.findall(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[]|["\\\[])+|(?<=;)(?=;)', form)
    return tuple(parts) or ("",)


@lru_cache(1000)
def _shape(section: str) -> _Shape:
    bare = _LITERALS.sub("", section)
    if bare.strip().lower() in ("", "general", "@"):
        is_elapsed = _ELAPSED.search(section) is not None
        return _Shape(
            is_elapsed, _literal(section) if not bare.strip() else "", "", "", is_share=False, is_scientific=False
        )
    is_scientific = re.search(r"[0#]E[+-]", bare) is not None
    if not is_scientific and (_DATED.search(re.sub("(?i)general", "", bare)) or _ELAPSED.search(section)):
        return _Shape(is_dated=True, before="", after="", digits="", is_share=False, is_scientific=False)
    kept = re.sub(r"_.|\*.|\[(?!\$)[^\]]*\]", "", section)
    kept = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r'"\1"', kept)
    masked = re.sub(r'"[^"]*"|\\.', lambda found: "\0" * len(found[0]), kept)
    digits = _DIGITS.search(masked)
    if digits is None:
        return _Shape(is_dated=False, before=_literal(kept), after="", digits="", is_share=False, is_scientific=False)
    end = digits.end()
    if is_scientific:
        end = re.compile(r"E[+-]0*").search(masked, end).end()  # type: ignore[union-attr]
    return _Shape(
        is_dated=False,
        before=_literal(kept[: digits.start()]),
        after=_literal(kept[end:]),
        digits=digits[0],
        is_share="%" in masked,
        is_scientific=is_scientific,
    )


def _literal(part: str) -> str:
    return re.sub(r'"([^"]*)"|\\(.)|([#0?@])', lambda found: found[1] or found[2] or "", part)


def _digits(number: float, shape: _Shape) -> str:
    digits = shape.digits.rstrip(",")
    whole, _, decimals = digits.partition(".")
    scaled = number * 100 if shape.is_share else number
    scaled /= 1000 ** min(len(shape.digits) - len(digits), 5)
    if shape.is_scientific:
        return f"{scaled:.{len(decimals)}E}"
    most, least = min(len(decimals), 15), decimals.count("0")
    text = f"{scaled:{',' if ',' in whole else ''}.{most}f}"
    if least < most:
        head, _, tail = text.partition(".")
        tail = tail[:least] + tail[least:].rstrip("0")
        text = f"{head}.{tail}" if tail else head
    least_whole = whole.count("0")
    if least_whole > 1 and "," not in whole:  # a code, as of the post: 00742
        sign, _, rest = text.rpartition("-")
        head, dot, tail = rest.partition(".")
        text = f"{'-' if '-' in text else ''}{sign}{head.zfill(least_whole)}{dot}{tail}"
    return "0" if text == "-0" else text


def _moment(number: float, section: str, *, from_1904: bool) -> str:
    days = number + 1462 if from_1904 else number
    if not 0 <= days < _LAST_DAY:
        return general(number)
    moment = datetime(1899, 12, 31 if days < _LEAP else 30, tzinfo=UTC) + timedelta(days=int(days))
    decimals = re.search(r"s\.(0+)", section)
    seconds = round((days - int(days)) * 86_400, len(decimals[1]) if decimals else 0)
    moment += timedelta(seconds=seconds)
    is_short = re.search(r"(?i)AM/PM|A/P", section) is not None
    text, last = "", ""
    parts = list(_PARTS.finditer(section))
    for nth, part in enumerate(parts):
        quoted, escaped, elapsed, token, other = part.groups()
        if elapsed:
            text += _elapsed(number, elapsed)
            last = elapsed[0].lower()
        elif token:
            kind = token.lower()
            if kind[0] == "m" and len(kind) <= _SHORT and (last == "h" or _next_token(parts, nth) == "s"):
                text += f"{moment.minute:0{len(kind)}d}"
            else:
                text += _token(moment, kind, seconds, is_short=is_short)
            last = kind[0]
        else:
            text += quoted or escaped or (other if other and other not in "@#0?;" else "") or ""
    return text.strip()


def _next_token(parts: list["re.Match[str]"], nth: int) -> str:
    return next((part[4][0].lower() for part in parts[nth + 1 :] if part[4]), "")


def _elapsed(number: float, unit: str) -> str:
    seconds = round(number * 86_400)
    return f"{seconds // {'h': 3600, 'm': 60, 's': 1}[unit[0].lower()]:0{len(unit)}d}"


def _token(moment: datetime, token: str, seconds: float, *, is_short: bool) -> str:
    if token[0] in "ye":
        return f"{moment.year % 100:02d}" if len(token) <= _SHORT and token[0] == "y" else str(moment.year)
    if token[0] == "m":
        month = _MONTHS[moment.month - 1]
        return f"{moment.month:0{len(token)}d}" if len(token) <= _SHORT else _name(month, token)
    if token[0] == "d":
        day = _DAYS[moment.weekday()]
        return f"{moment.day:0{len(token)}d}" if len(token) <= _SHORT else _name(day, token)
    if token[0] == "h":
        hour = (moment.hour + 11) % 12 + 1 if is_short else moment.hour
        return f"{hour:0{len(token)}d}"
    if token[0] == "s":
        size = token.partition(".")[0]
        text = f"{moment.second:0{len(size)}d}"
        decimals = len(token) - len(size) - 1
        return text if decimals < 1 else f"{text}.{f'{seconds % 1:.{decimals}f}'[2:]}"
    return "AM" if moment.hour < _NOON else "PM"


def _name(name: str, token: str) -> str:
    return name[:_ABBREVIATED] if len(token) == _ABBREVIATED else name
