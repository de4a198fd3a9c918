"""Reads the figures, dates and times of a text: what they are worth, however they are written."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from pipeline_tasks.text.faith.units import SYMBOLS
from pipeline_tasks.text.faith.vocabulary import WINDOWS, Vocabulary, vocabulary


class Figure(NamedTuple):
    """A number with its unit ("" for none), and its first and last code point (exclusive).

    One that is `supporting` may say no number (`a second look`), `about` says that it is rounded.
    """

    value: float
    unit: str
    start: int
    end: int
    supporting: bool = False
    about: bool = False


class Date(NamedTuple):
    """A date with its ways to be read, as (year, month, day), 0 where it does not say; a weekday is (0, 0, -1..-7)."""

    readings: tuple[tuple[int, int, int], ...]
    start: int
    end: int


class Code(NamedTuple):
    """A word with digits, or an address: a name that must be copied."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Quantities:
    """What a text has of each, in its order."""

    figures: tuple[Figure, ...]
    dates: tuple[Date, ...]
    codes: tuple[Code, ...]

    def bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last code point (exclusive) of each."""
        for found in (self.figures, self.dates, self.codes):
            yield from ((each.start, each.end) for each in found)


@dataclass(frozen=True, slots=True)
class _Patterns:
    dates: tuple[tuple[re.Pattern[str], str], ...]
    weekdays: re.Pattern[str] | None
    scales: re.Pattern[str] | None
    units: re.Pattern[str]
    glued: re.Pattern[str] | None
    hedge: re.Pattern[str] | None


_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>\"]+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+")
_NUMERIC_DATES = (
    (re.compile(r"(?<![\d.,/-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d/-])"), "y_md"),
    (re.compile(r"(?<![\d.,/-])(\d{1,2})([-/.])(\d{1,2})\2(\d{4})(?![\d/-])"), "d_my"),
    (re.compile(r"(?<!\d)(\d{4})\s*年(?:\s*(\d{1,2})\s*月)?(?:\s*(\d{1,2})\s*[日号])?"), "ymd"),
    (re.compile(r"(?<!\d)(\d{1,2})\s*月(?!份?间)(?:\s*(\d{1,2})\s*[日号])?"), "md"),
)
_TIME = re.compile(
    r"(?<![\d.,:])(\d{1,2})(?::|[.h] ?(?=\d\d ?(?:Uhr|a\.?m|p\.?m|h\b|min))|(?<=\d)h)(\d{2})(?::\d{2})?(?![\d:])"
)
_NUMBER = re.compile(r"\d{1,3}(?:(?P<by>[., '])\d{3})(?:(?P=by)\d{3})*(?:(?!(?P=by))[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|s|er|ers|ère|ème|e|º|ª|-?й|-?го|-?е|-?я|x)(?![^\W_])")
_MONEY = re.compile(r"(US\$|[€$£¥₽₹₩￥]|\b(?:EUR|USD|GBP|CHF|JPY|CNY|RMB|RUB)) ?$")
_SHORT_SCALES = {"m": 1e6, "bn": 1e9, "b": 1e9, "k": 1e3, "tn": 1e12}
_SHORT = re.compile(r" ?(m|bn|b|k|tn)(?![^\W_])", re.IGNORECASE)
_RANGE = re.compile(r" ?(?:-|to|bis|à|a|y|e|et|und|and|or|oder|ou|o|do|до|至|到|或|~|から) ?")
_MARKER = re.compile(r"(?m)^[ ]*(?:[#>*-]+ *)?\d{1,3}[.)]\s")
_LETTERS = re.compile(r"[^\W\d_]+")

_CJK_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "二": 2}
_CJK_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "億": 100_000_000, "亿": 100_000_000}
_CJK = re.compile(r"(百分之)?([零〇一二三四五六七八九两十百千万億亿]+)(?:点([零〇一二三四五六七八九]+))?")
_CJK_DATE = re.compile(r"[零〇一二三四五六七八九十]{1,4}(?=[年月日号])")
_LONE_MAY = re.compile(
    r"\b(?:in|of|by|since|until|till|last|next|early|late|mid|this|from|to|through|and|every|before) $", re.IGNORECASE
)


@cache
def _patterns(language: str) -> _Patterns:
    words = vocabulary(language)
    return _Patterns(
        dates=_dates(words, titled=language.startswith(("en", "de"))),
        weekdays=_any_of(words.weekdays, words, titled=language.startswith(("en", "de"))),
        scales=_scales(words),
        units=_units(words),
        glued=_glued(words),
        hedge=re.compile(rf"(?:{'|'.join(map(re.escape, words.hedges))})\s*$", re.IGNORECASE) if words.hedges else None,
    )


def _forms(names: Iterable[str], *, titled: bool) -> str:
    ordered = sorted(names, key=len, reverse=True)
    return "|".join(re.escape(name.title() if titled else name) for name in ordered)


def _any_of(names: Iterable[str], words: Vocabulary, *, titled: bool) -> re.Pattern[str] | None:
    forms = _forms(names, titled=titled)
    if not forms:
        return None
    flags = 0 if titled else re.IGNORECASE
    return re.compile(rf"(?<![^\W_])(?:{forms})(?![^\W_])" if words.spaced else forms, flags)


def _dates(words: Vocabulary, *, titled: bool) -> tuple[tuple[re.Pattern[str], str], ...]:
    if not words.months or not words.spaced:
        return ()
    month, flags = rf"({_forms(words.months, titled=titled)})\.?(?![^\W_])", 0 if titled else re.IGNORECASE
    day, of, year = (
        r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|er|º|\.)?",
        r" (?:of |de |d'|do |del )?",
        r"(?:,? (?:de |del )?(\d{4}))",
    )
    return (
        (re.compile(rf"{day}{of}{month}{year}?(?!\d)", flags), "dmy"),
        (re.compile(rf"(?<![^\W_]){month} (\d{{1,2}})(?:st|nd|rd|th)?{year}?(?![\d%.,]\d|\d)", flags), "mdy"),
        (re.compile(rf"(?<![^\W_]){month}{year}(?!\d)", flags), "my"),
        (re.compile(rf"(?<![^\W_]){month}", flags), "m"),
    )


def _scales(words: Vocabulary) -> re.Pattern[str] | None:
    if not words.spaced:
        return re.compile(r"[百千万億亿]")
    names = sorted((name for name, value in words.numbers.items() if value >= 1000), key=len, reverse=True)
    return re.compile(rf"[ -]?({'|'.join(names)})\.?(?![^\W_])", re.IGNORECASE) if names else None


def _units(words: Vocabulary) -> re.Pattern[str]:
    symbols = "|".join(map(re.escape, sorted(SYMBOLS, key=len, reverse=True)))
    named = "|".join(map(re.escape, sorted(words.units, key=len, reverse=True))) or "(?!)"
    end = r"(?![^\W_])" if words.spaced else ""
    return re.compile(rf"[ -]?(?:de |d'|of )?(?:(?P<symbol>{symbols})(?![a-zA-Z0-9])|(?i:(?P<word>{named})){end})")


def _glued(words: Vocabulary) -> re.Pattern[str] | None:
    if not words.glued:
        return None
    pieces = "|".join(sorted({*words.numbers, "ein", "un"}, key=len, reverse=True))
    return re.compile(rf"(?:{pieces}|und)+")


@lru_cache(WINDOWS)
def read(text: str, language: str) -> Quantities:
    """Return the quantities of a plain text (`vocabulary.plain`)."""
    words, patterns = vocabulary(language), _patterns(language)
    taken = bytearray(len(text))
    codes = [Code(found[0].rstrip(".,;:)").casefold(), *_take(taken, found)) for found in _ADDRESS.finditer(text)]
    for found in _MARKER.finditer(text):
        _take(taken, found)
    dates = list(_read_dates(text, words, patterns, taken))
    figures = list(_read_times(text, taken))
    for number in _read_numbers(text, words, patterns, taken):
        (figures if isinstance(number, Figure) else codes).append(number)  # type: ignore[arg-type]
    figures += (
        _read_cjk(text, words, patterns, taken) if not words.spaced else _read_words(text, words, patterns, taken)
    )
    figures.sort(key=lambda figure: figure.start)
    return Quantities(tuple(_ranged(text, figures)), tuple(dates), tuple(codes))


def _take(taken: bytearray, found: re.Match[str]) -> tuple[int, int]:
    start, end = found.span()
    taken[start:end] = b"\1" * (end - start)
    return start, end


def _read_dates(text: str, words: Vocabulary, patterns: _Patterns, taken: bytearray) -> Iterator[Date]:
    readable = _CJK_DATE.sub(_digits_of, text) if not words.spaced and "年" in text + "年" else text
    if len(readable) != len(text):
        readable = text
    for pattern, parts in (*_NUMERIC_DATES, *patterns.dates):
        for found in pattern.finditer(readable):
            if any(taken[found.start() : found.end()]):
                continue
            readings = tuple(_readings(found, parts, words))
            if not readings or (parts == "m" and not _is_month(text, found)):
                continue
            yield Date(readings, *_take(taken, found))
    for found in patterns.weekdays.finditer(text) if patterns.weekdays else ():
        place = words.weekdays.get(found[0].casefold(), 0)
        yield Date(((0, 0, -place),), *_take(taken, found))


def _digits_of(found: re.Match[str]) -> str:
    """Return a Chinese numeral of a date in digits, padded by blanks to its length where it is shorter."""
    signs = found[0]
    value = "".join(str(_CJK_DIGITS[sign]) for sign in signs) if "十" not in signs else str(round(_cjk_value(signs)))
    return value.rjust(len(signs))


def _is_month(text: str, found: re.Match[str]) -> bool:
    """Return whether a month alone is one: `May` and `March` only behind a word that leads to a month."""
    return found[1] not in ("May", "March", "Mar", "Sep", "Dec", "Jan") or bool(
        _LONE_MAY.search(text, max(0, found.start() - 9), found.start())
    )


def _readings(found: re.Match[str], parts: str, words: Vocabulary) -> Iterator[tuple[int, int, int]]:
    groups = [group for group, part in zip(found.groups(), parts, strict=True) if part != "_"]
    values = {part: group for part, group in zip(parts.replace("_", ""), groups, strict=True) if group}
    numbers = {
        part: words.months.get(value.casefold(), 0) if not value.isdigit() else int(value)
        for part, value in values.items()
    }
    whole = numbers.get("y", 0), numbers.get("m", 0), numbers.get("d", 0)
    orders = [whole, (whole[0], whole[2], whole[1])] if "_" in parts and parts[0] == "d" else [whole]
    for year, month, day in dict.fromkeys(orders):
        if month <= 12 and day <= 31:
            yield year, month, day


def _read_times(text: str, taken: bytearray) -> Iterator[Figure]:
    """Yield times as minutes of half a day, so that 2:30 is 14:30."""
    for found in _TIME.finditer(text):
        hours, minutes = int(found[1]), int(found[2])
        if hours <= 24 and minutes < 60 and not any(taken[found.start() : found.end()]):
            yield Figure(float(hours % 12 * 60 + minutes), "time", *_take(taken, found))


def _read_numbers(text: str, words: Vocabulary, patterns: _Patterns, taken: bytearray) -> Iterator[Figure | Code]:
    for found in _NUMBER.finditer(text):
        start, end = found.span()
        if taken[start] or taken[end - 1]:
            continue
        value = _value(found[0], words.decimal)
        before = text[start - 1] if start else " "
        if value is None or (before.isalpha() and words.spaced) or before == "_":
            yield _code(text, start, end, taken)
            continue
        money = _MONEY.search(text, max(0, start - 4), start)
        value, end = _scaled(text, end, value, words, patterns, is_money=bool(money))
        unit, end = _unit_at(text, end, words, patterns)
        if end == found.end() and end < len(text) and text[end].isalpha() and words.spaced:
            ordinal = _ORDINAL.match(text, end)
            if not ordinal:
                yield _code(text, start, end, taken)
                continue
            end = ordinal.end()
        taken[start:end] = b"\1" * (end - start)
        yield Figure(
            value, SYMBOLS.get(money[1], "") if money else unit, start, end, about=_is_about(text, start, patterns)
        )


def _value(digits: str, decimal: str) -> float | None:
    """Return what digits with points, commas or blanks are worth; None for a version or a number of another kind."""
    marks = [sign for sign in digits if not sign.isdigit()]
    if not marks:
        return float(digits)
    last = marks[-1]
    groups = re.split(r"[., ']", digits)
    grouped = all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3 and groups[0] != "0"
    if len(marks) == 1 and (not grouped or last == decimal) and last in ".,":
        return float(f"{groups[0]}.{groups[1]}")
    if grouped and len(set(marks)) == 1:
        return float("".join(groups))
    if len(set(marks)) == 2 and len(set(marks[:-1])) == 1 and all(len(group) == 3 for group in groups[1:-1]):
        return float("".join(groups[:-1]) + "." + groups[-1])
    return None


def _code(text: str, start: int, end: int, taken: bytearray) -> Code:
    """Return the whole word that a number is in."""
    while start and (text[start - 1].isalnum() or text[start - 1] in "._"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    taken[start:end] = b"\1" * (end - start)
    return Code(text[start:end].strip(".").casefold(), start, end)


def _scaled(
    text: str, end: int, value: float, words: Vocabulary, patterns: _Patterns, *, is_money: bool
) -> tuple[float, int]:
    short = _SHORT.match(text, end) if is_money else None
    if short:
        return value * _SHORT_SCALES[short[1].lower()], short.end()
    while patterns.scales and (found := patterns.scales.match(text, end)):
        name = found[0] if not words.spaced else found[1].casefold()
        value, end = value * (_CJK_SCALES[name] if not words.spaced else words.numbers[name]), found.end()
    return value, end


def _unit_at(text: str, end: int, words: Vocabulary, patterns: _Patterns) -> tuple[str, int]:
    found = patterns.units.match(text, end)
    if not found or (found[0] == "s" and text[end - 1].isdigit()):  # the 1990s
        return "", end
    unit = SYMBOLS[found["symbol"]] if found["symbol"] else words.units[found["word"].casefold()]
    return unit, found.end()


def _is_about(text: str, start: int, patterns: _Patterns) -> bool:
    return bool(patterns.hedge and patterns.hedge.search(text, max(0, start - 16), start))


def _read_words(text: str, words: Vocabulary, patterns: _Patterns, taken: bytearray) -> Iterator[Figure]:
    """Yield the numbers that are written in words."""
    run: list[tuple[str, int, int]] = []
    for found in _LETTERS.finditer(text):
        unit = patterns.units.match(text, run[-1][2]) if run else None
        if taken[found.start()] or (unit and unit.start() <= found.start() < unit.end()):
            yield from _of_run(run, text, words, patterns)
            run = []
            continue
        word = found[0].casefold()
        if run and text[run[-1][2] : found.start()] not in (" ", "-"):
            yield from _of_run(run, text, words, patterns)
            run = []
        if (
            word in words.numbers
            or word in words.supporting
            or (run and word in words.joiners)
            or _is_glued(word, patterns)
        ):
            run.append((word, found.start(), found.end()))
        else:
            yield from _of_run(run, text, words, patterns)
            run = []
    yield from _of_run(run, text, words, patterns)


def _is_glued(word: str, patterns: _Patterns) -> bool:
    return bool(patterns.glued and patterns.glued.fullmatch(word))


def _of_run(run: list[tuple[str, int, int]], text: str, words: Vocabulary, patterns: _Patterns) -> Iterator[Figure]:
    """Yield the numbers of words in a row: one for those that belong together, and each that may say one."""
    parts: list[tuple[float, int, int]] = []
    for place, (word, start, end) in enumerate(run):
        following = run[place + 1][0] if place + 1 < len(run) else ""
        opens = words.supporting.get(word) == 1 and words.numbers.get(following, 0) >= 100
        pieces = _pieces(word, words, patterns)
        if pieces and not _fits(parts, pieces[0]):
            yield from _written(parts, text, words, patterns)
            parts = []
        if pieces:
            parts += [(piece, start, end) for piece in pieces]
        elif opens:
            yield from _written(parts, text, words, patterns)
            parts = [(1.0, start, end)]
        elif word not in words.joiners or not following:
            yield from _written(parts, text, words, patterns)
            parts = []
        if word in words.supporting and not opens:
            unit, stop = _unit_at(text, end, words, patterns)
            yield Figure(words.supporting[word], unit, start, stop, supporting=True)
    yield from _written(parts, text, words, patterns)


def _pieces(word: str, words: Vocabulary, patterns: _Patterns) -> list[float]:
    if word in words.numbers:
        return [words.numbers[word]]
    if not _is_glued(word, patterns):
        return []
    names = sorted({*words.numbers, "ein", "un", "und"}, key=len, reverse=True)
    found = re.findall("|".join(names), word)
    values = [words.numbers.get(name, 1.0) for name in found if name != "und"]
    return values if len(values) > 1 else []


def _fits(parts: list[tuple[float, int, int]], value: float) -> bool:
    """Return whether a number word goes on what stands before it: `two three` are two numbers, `twenty two` is one."""
    if not parts:
        return True
    last = parts[-1][0]
    return (
        value >= 100
        or last >= 100
        or (last >= 10 and value < 20 and last % 10 == 0 and (last > 10 or value < 10))
        or (last == 4 and value == 20)
    )


def _written(
    parts: list[tuple[float, int, int]], text: str, words: Vocabulary, patterns: _Patterns
) -> Iterator[Figure]:
    if not parts:
        return
    total, current = 0.0, 0.0
    for value, _, _ in parts:
        if value >= 1000:
            total, current = (total + max(current, 1) * value, 0.0)
        elif value == 100:
            current = current - current % 100 + (max(current % 100, 1)) * 100
        elif value == 20 and current % 100 == 4:
            current += 76  # quatre-vingts
        else:
            current += value
    start, stop = parts[0][1], parts[-1][2]
    unit, end = _unit_at(text, stop, words, patterns)
    is_vague = len(parts) == 1 and parts[0][0] >= 1000
    yield Figure(total + current, unit, start, end, supporting=is_vague, about=_is_about(text, start, patterns))


def _read_cjk(text: str, words: Vocabulary, patterns: _Patterns, taken: bytearray) -> Iterator[Figure]:
    for found in _CJK.finditer(text):
        signs = found[2]
        if any(taken[found.start() : found.end()]):
            continue
        value = _cjk_value(signs) + (
            float("0." + "".join(str(_CJK_DIGITS[sign]) for sign in found[3])) if found[3] else 0
        )
        unit, end = _unit_at(text, found.end(), words, patterns)
        following = text[found.end() : found.end() + 1]
        before = text[found.start() - 1 : found.start()]
        counts = bool(unit) or (following and following in words.counters) or bool(found[3])
        is_vague = (
            before in ("第", "几", "数", "每", "这", "那", "同", "唯", "统", "第") or signs[0] in "百千万億亿零〇"
        )
        idiom = text.startswith("十分", found.start()) and not text.startswith("十分钟", found.start())
        if found[1]:
            unit, counts, is_vague = "%", True, False
        supporting = (
            not counts or is_vague or idiom or value < 2 or (len(signs) > 1 and not set(signs) & {*_CJK_SCALES})
        )
        yield Figure(value, unit, found.start(), end, bool(supporting), _is_about(text, found.start(), patterns))


def _cjk_value(signs: str) -> float:
    """Return what a numeral of Chinese characters is worth; digits without scales are read one by one."""
    if not set(signs) & {*_CJK_SCALES}:
        return float("".join(str(_CJK_DIGITS[sign]) for sign in signs) or 0)
    total, section, digit = 0.0, 0.0, 0.0
    for sign in signs:
        scale = _CJK_SCALES.get(sign)
        if scale is None:
            digit = _CJK_DIGITS[sign]
        elif scale >= 10_000:
            total, section, digit = (total + section + digit or 1) * scale, 0.0, 0.0
        else:
            section, digit = section + (digit or 1) * scale, 0.0
    return total + section + digit


def _ranged(text: str, figures: list[Figure]) -> Iterator[Figure]:
    """Yield the figures; the first of a range has the unit of the last."""
    for place, figure in enumerate(figures):
        following = figures[place + 1] if place + 1 < len(figures) else None
        gap = text[figure.end : following.start] if following else ""
        yield (
            figure._replace(unit=following.unit) if following and not figure.unit and _RANGE.fullmatch(gap) else figure
        )
