"""Compares a text that a model wrote with the window of the source that it was given."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline_tasks.text.faith import names
from pipeline_tasks.text.faith.addressing import leaks, refuses
from pipeline_tasks.text.faith.grounding import Grounds, grounds
from pipeline_tasks.text.faith.negations import find_changed
from pipeline_tasks.text.faith.overlap import copies, repeated, units_of
from pipeline_tasks.text.faith.quantities import Date, Figure, Quantities, read
from pipeline_tasks.text.faith.units import UNITS
from pipeline_tasks.text.faith.vocabulary import plain, vocabulary

Span = tuple[int, int]

ROUNDED = 0.05
"""How far a figure that says it is rounded (`about 1,200`) may be from that of the source (1,187)."""

SAME = 1e-3
"""How far converted values may be apart: 3 miles are 4.828 km."""

_FIRST_YEAR, _LAST_YEAR = 1000, 2100


@dataclass(frozen=True, slots=True)
class Differences:
    """Where a text says what its source does not: bounds in code points of the text."""

    figures: Sequence[Span] = ()
    dates: Sequence[Span] = ()
    units: Sequence[Span] = ()
    names: Sequence[Span] = ()
    negations: Sequence[Span] = ()
    leaks: Sequence[Span] = ()
    invented: Sequence[Span] = ()
    grounded: float | None = None
    refused: bool = False
    copied: float = 0.0
    longest_copied: int = 0
    length_ratio: float = 0.0
    repeated: float = 0.0


def compare(
    source: str, written: str, language: str, written_language: str = "", prompt: Iterable[str] = ()
) -> Differences:
    """Return what a text has that its source has not; `written_language` is that of a translation.

    Names, negations and stems of another language are not compared: `grounded` is None there. Grows linearly with both
    texts, but for sentences with negations, each of which is compared with all of the other text. What was read of a
    text is remembered for the next prompts of its window.
    """
    target = written_language or language
    before, after = plain(source), plain(written)
    known, new = read(before, language), read(after, target)
    words, is_same = vocabulary(target), target.partition("-")[0] == language.partition("-")[0]
    dates = _new_dates(known, new)
    figures, units = _new_figures(known, new)
    told = leaks(before, after, words, map(plain, prompt)) if is_same else []
    found = _new_names(before, after, (language, target), new) if is_same else []
    ground = grounds(before, after, words, new.bounds()) if is_same else Grounds(None, ())
    written_units = units_of(after, words)
    copied = copies(units_of(before, vocabulary(language)), written_units)
    return Differences(
        figures=_outside(figures, told),
        dates=_outside(dates, told),
        units=_outside(units, told),
        names=_outside(found, told),
        negations=find_changed(before, after, words, is_whole=_is_whole(known, new)) if is_same else (),
        leaks=told,
        invented=ground.invented,
        grounded=ground.share,
        refused=refuses(before, after, words) if is_same else False,
        copied=copied.share,
        longest_copied=copied.longest,
        length_ratio=len(written) / max(1, len(source)),
        repeated=repeated(written_units),
    )


def _outside(found: Sequence[Span], leaked: Sequence[Span]) -> list[Span]:
    """Return the places that are in no leak: what a prompt says is no figure or name of the text."""
    return [(start, end) for start, end in found if not any(first <= start < last for first, last in leaked)]


WHOLE, FEWEST = 0.9, 3
"""Share of its source's figures and dates that a text has which leaves nothing out, and how many tell that at least."""


def _is_whole(known: Quantities, new: Quantities) -> bool:
    """Return whether a text leaves nothing out, as far as the figures and dates of its source tell."""
    before, after = _values(known), _values(new)
    return len(before) >= FEWEST and len(before & after) >= WHOLE * len(before)


def _values(found: Quantities) -> set[float]:
    """Return what figures are worth, in base units where there are such, and the numbers of dates."""
    figures = (_base(figure) or ("", figure.value) for figure in found.figures if not figure.supporting)
    parts = (part for date in found.dates for part in date.readings[0] if part)
    return {_rounded(value) for _, value in figures} | {float(part) for part in parts}


def _new_figures(known: Quantities, new: Quantities) -> tuple[list[Span], list[Span]]:
    """Return the figures that the source has not, and those that it has with other units alone."""
    values: dict[float, set[str]] = defaultdict(set)
    for figure in known.figures:
        values[_rounded(figure.value)].add(figure.unit)
    for date in known.dates:
        for number in (part for reading in date.readings for part in reading if part > 0):
            values[float(number)].add("")
    based = {(base[0], _rounded(base[1])) for figure in known.figures if (base := _base(figure))}
    figures: list[Span] = []
    units: list[Span] = []
    for figure in new.figures:
        if figure.supporting:
            continue
        same = values.get(_rounded(figure.value), set())
        base = _base(figure)
        if base and (base[0], _rounded(base[1])) in based:
            continue
        if same and (not figure.unit or "" in same):
            continue
        if _is_share(figure, values) or (figure.about and _is_near(figure, known.figures)):
            continue
        if base and _is_converted(base, known.figures):
            continue
        (units if same else figures).append((figure.start, figure.end))
    return figures, units


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _base(figure: Figure) -> tuple[str, float] | None:
    unit = UNITS.get(figure.unit)
    return (
        (unit.dimension, figure.value * unit.factor)
        if unit
        else ("time of day", figure.value)
        if figure.unit == "time"
        else None
    )


def _is_share(figure: Figure, values: dict[float, set[str]]) -> bool:
    """Return whether a percentage is what the source says as a fraction, or the other way round."""
    other = figure.value / 100 if figure.unit == "%" else figure.value * 100
    return (figure.unit == "%" and _rounded(other) in values) or (
        not figure.unit and "%" in values.get(_rounded(other), set())
    )


def _is_near(figure: Figure, known: Iterable[Figure]) -> bool:
    return any(
        abs(other.value - figure.value) <= ROUNDED * abs(other.value) and other.unit in ("", figure.unit)
        for other in known
        if not other.supporting
    )


def _is_converted(base: tuple[str, float], known: Iterable[Figure]) -> bool:
    bases = (_base(other) for other in known)
    return any(other and other[0] == base[0] and abs(other[1] - base[1]) <= SAME * abs(other[1]) for other in bases)


def _new_dates(known: Quantities, new: Quantities) -> list[Span]:
    """Return the dates of which the source has none that says the same, part by part.

    A year that the date of the source lacks may stand elsewhere in it.
    """
    years = {int(figure.value) for figure in known.figures if _FIRST_YEAR <= figure.value <= _LAST_YEAR}
    readings = [reading for date in known.dates for reading in date.readings]
    years |= {year for year, _, _ in readings if year}
    return [(date.start, date.end) for date in new.dates if not _is_known(date, readings, years)]


def _is_known(date: Date, readings: list[tuple[int, int, int]], years: set[int]) -> bool:
    for year, month, day in date.readings:
        for other_year, other_month, other_day in readings:
            same_day = day in (0, other_day)
            same_year = not year or other_year == year or (not other_year and year in years)
            if month == other_month and same_day and same_year:
                return True
        if year in years and not month and not day:
            return True
    return False


def _new_names(before: str, after: str, languages: tuple[str, str], new: Quantities) -> list[Span]:
    """Return the names and codes that the source has not; dates and figures are none."""
    skipped = bytearray(len(after))
    for start, end in new.bounds():
        skipped[start:end] = b"\1" * (end - start)
    source = names.known(before, languages[0])
    small = before.casefold()
    found = [(name.start, name.end) for name in names.find_new(after, languages[1], source, bytes(skipped))]
    found += [(code.start, code.end) for code in new.codes if code.value not in small]
    return sorted(set(found))
