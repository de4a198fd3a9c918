"""How phone numbers are written: the groups of digits that each country writes, after libphonenumber's formats."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline_tasks.text.pii.candidates import pattern
from pipeline_tasks.text.pii.phone_validation import TEN_DIGITS, is_mobile, is_nanp

if TYPE_CHECKING:
    from phonenumbers import NumberFormat

BLANK = r"[ \x{a0}\x{2007}\x{2009}\x{200b}\x{202f}]"
MARK = r"[.\-/()\x{2010}-\x{2015}]"
RUN = rf"[+(]{{0,2}}\d(?:(?:{BLANK}|{BLANK}?{MARK}{{1,2}}{BLANK}?)?\d){{5,}}"
"""Six digits and more, with a blank or marks between two of them; two blanks part columns."""

EXTENSION = (
    r"(?i)^(?:[ ,;]{0,2}(?:x|ext(?:n|ension)?|poste|durchwahl|dw|\x{434}\x{43e}\x{431}|\x{432}\x{43d}|dahili|anexo"
    r"|ramal|\x{5185}\x{7dda}|\x{5206}\x{673a}|#)[ .:]{0,2}\d{1,6})?"
)
"""Behind a number: `ext. 12`."""

LAST_DIGITS = r"^(?:/\d{1,4}){1,4}"
"""Behind a number: the last digits of others that differ only there, `5000/5001`."""

NORTH_AMERICAN = (
    r"^(?:\+?1[ .\-])?(?:\(\d{3}\)[ \-]?\d{3}[ .\-\x{2010}-\x{2013}]?|\d{3}[.\-/\x{2013}]\d{3}[ .\-\x{2010}-\x{2013}])"
    r"\d{4}$"
)
"""Area, exchange and line with marks between: `212-736-5000`, `(212) 736-5000`."""

OTHER_FORMS = (
    r"^(?:(?:19|20)\d\d[ ./\-]+[0-3]?\d[ ./\-]+[0-3]?\d|[0-3]?\d[ ./\-]+[0-3]?\d[ ./\-]+(?:19|20)\d\d)(?:\D|$)"  # dates
    r"|^(?:19|20)\d\d\D{1,3}(?:19|20)\d\d$"
    r"|^[\d \-]{0,6}\d-\d{2,7}-\d{1,7}-\d$|^\d-\d{2,7}-\d{2,7}$"  # an ISBN
    r"|^\d{5}-\d{4}$"  # a postal code: 02110-1301
    r"|(?:^|\D)\d\D+\d\D+\d\D+\d(?:\D|$)"  # 0 1 2 3
    r"|^\([^)]*$"
)
"""Dates, ranges of years, numbers of books, postal codes, single digits, and an open bracket."""

FEWEST_DIGITS, MOST_DIGITS = 6, 15
"""Digits of a number: local ones have six, E.164 allows fifteen."""

_THOUSANDS = r"^\d{1,3}(?:[ .\x{a0}\x{2009}\x{202f}]\d{3})+$"
_MARKED = r"[+(]|(?:^|[ /])0|\d{3}(?:-|\.|/|\x{2013})\d{3}[ .\-\x{2010}-\x{2013}]\d{4}"
_FEWEST_AT_HOME, _FEWEST_TRUNK, _TEN = 7, 9, 10
_AS_IT_IS = r"\1"
_LONGEST_TAIL = 40
_MAY_GO_ON = r"(?i)^(?:[ ,;]{0,2}(?:[xepdar#]|[^\x00-\x7f])|/\d)"
_GROUP = r"(?:\+ ?|\(\+?)?\d+\)?"
_LOOSE = rf"{BLANK}|[/(]"

Shape = tuple[int, ...]
"""Digits of each group of a number."""


class Group(NamedTuple):
    """Digits without a mark between: where, how many, whether a blank, slash or bracket is ahead, and if a plus is."""

    start: int
    end: int
    digits: int
    loose: bool
    opens: bool


def groups_of(text: bytes, start: int, end: int) -> list[Group]:
    """Return the groups of digits of a run, with the marks `+` and `(` that belong to them."""
    groups: list[Group] = []
    last = start
    for match in pattern(_GROUP).finditer(text, start, end):
        value = match.group()
        opened, closed = value.startswith(b"("), value.endswith(b")")
        first = match.start() + (opened and not closed)  # a bracket around the whole number is no part of it
        stop = match.end() - (closed and not opened)
        loose = opened or bool(pattern(_LOOSE).search(text, last, first))
        groups.append(Group(first, stop, sum(map(_is_digit, value)), loose, b"+" in value))
        last = stop
    return groups


def _is_digit(byte: int) -> bool:
    return 0x30 <= byte <= 0x39


def extension_end(text: bytes, end: int) -> int:
    """Return where the extension or the list behind a number ends that ends at `end`."""
    if not pattern(_MAY_GO_ON).search(text[end : end + 4]):
        return end
    for expression, more in ((EXTENSION, r"^\d"), (LAST_DIGITS, r"^[.\-]?\d")):
        tail = text[end : end + _LONGEST_TAIL].decode(errors="ignore").encode()
        match = pattern(expression).search(tail)
        if match and not pattern(more).search(tail[match.end() :]):
            end += match.end()
    return end


def digits_of(value: bytes) -> str:
    """Return the ASCII digits of `value`."""
    return re.sub(rb"\D", b"", value).decode()


def is_other_form(value: bytes) -> bool:
    """Return whether digits are written as other things are, or as two numbers with a slash between."""
    first, slash, _ = value.partition(b"/")
    return bool(pattern(OTHER_FORMS).search(value)) or (bool(slash) and len(digits_of(first)) > FEWEST_DIGITS)


def is_thousands(value: bytes) -> bool:
    """Return whether a run of digits is one number with marks at the thousands."""
    return bool(pattern(_THOUSANDS).search(value))


def is_round(value: bytes) -> bool:
    """Return whether a run of digits is a number of whole thousands."""
    return value.endswith(b"000") and is_thousands(value)


# --- Forms of countries ----------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """How a number is written: in which countries so, whether figures are not, and whether they may well be."""

    regions: tuple[str, ...]
    is_marked: bool
    is_figure: bool


def may_have_form(value: bytes, regions: Sequence[str]) -> bool:
    """Return whether a run has marks of a number, or is one in a form without."""
    if pattern(_MARKED).search(value):
        return True
    shape = tuple(map(len, re.findall(rb"\d+", value)))
    return any(_is_shape(region, shape, value) or (shape == (_TEN,) and region in TEN_DIGITS) for region in regions)


def form_of(part: Sequence[Group], value: bytes, regions: Sequence[str]) -> Form | None:
    """Return the form in which countries write what may be a number of theirs; None if none writes it so.

    A form is marked by brackets, by the zero of a trunk in more groups, or by the marks of North America.
    """
    shape = tuple(group.digits for group in part)
    digits = sum(shape)
    if digits < _FEWEST_AT_HOME:
        return None
    bracketed = b")" in value
    trunk = (value[:1] == b"0" and value[1:2] != b".") or value[:2] == b"(0"
    if len(shape) > 1 and not (bracketed or is_even(value)):
        return None
    american = bool(pattern(NORTH_AMERICAN).search(value))
    countries = tuple(region for region in regions if _writes(region, shape, value, american=american, trunk=trunk))
    marked = american or bracketed or (trunk and digits >= _FEWEST_TRUNK and len(shape) > 1 and not _is_sequence(value))
    return Form(countries, marked, is_thousands(value) or _is_sequence(value)) if countries else None


def _writes(region: str, shape: Shape, value: bytes, *, american: bool, trunk: bool) -> bool:
    """Return whether a country writes numbers in such groups."""
    if is_nanp(region):
        return american
    if len(shape) == 1:
        bare = region in TEN_DIGITS and shape in ((_TEN,), (_TEN + trunk,))
        return bare or (trunk and shape[0] >= _FEWEST_TRUNK and is_mobile(value, region))
    if trunk and sum(shape) >= _FEWEST_TRUNK and (shape[0] > 2 or b"(" in value):
        return True
    if trunk and len(shape) == len(("area", "group", "group")) and _is_shape(region, (shape[0], sum(shape[1:])), value):
        return True
    joined = (1 + shape[1], *shape[2:])
    return _is_shape(region, shape, value) or (trunk and shape[0] == 1 and _is_shape(region, joined, value))


def _is_shape(region: str, shape: Shape, value: bytes) -> bool:
    """Return whether a country writes numbers in such groups, and with the trunk prefix that these begin with."""
    shapes = shapes_of(region)
    return shape in shapes.plain or (shape in shapes.dialed and digits_of(value).startswith(shapes.prefix))


def is_even(value: bytes) -> bool:
    """Return whether the same mark is between all groups behind the first two; the last may be an extension."""
    between = [mark.strip() for mark in re.findall(rb"[^0-9]+", value.strip(b"()+"))]
    inner = {mark for mark in between[1:-1] if mark != b"."} | {mark for mark in between[1:-1] if mark == b"."}
    last = {between[-1]} if len(between) > 1 and between[-1] != b"-" else set()
    dotted = b"." in between
    return len(inner | last) <= 1 and not (dotted and (len(set(between)) > 1 or len(between) == 1))


def _is_sequence(value: bytes) -> bool:
    """Return whether groups of two digits go up, as the numbers of a list do."""
    groups = re.findall(rb"\d+", value)
    return len(groups) > 2 and set(map(len, groups)) == {2} and groups == sorted(set(groups))


class Shapes(NamedTuple):
    """A country's trunk prefix, and the groups in which it writes numbers without it, and with it."""

    prefix: str
    plain: frozenset[Shape]
    dialed: frozenset[Shape]


@lru_cache(maxsize=256)
def shapes_of(region: str) -> Shapes:
    """Return the groups in which a country writes its numbers at home.

    The last groups may be written together, all but the first.
    """
    from phonenumbers import PhoneMetadata

    metadata: Any = PhoneMetadata.metadata_for_region(region)  # its stubs say less than it has
    formats = [(each, *_rules(each, region)) for each in metadata.number_format]
    rules = {rule for _, *of_format in formats for rule in of_format}
    if metadata.national_prefix and region not in TEN_DIGITS:
        rules = {rule for rule in rules if rule != _AS_IT_IS} or rules
    formats += [(each, *rules) for each in _alternates(metadata.country_code)]
    written = [(rule, shape) for each, *of_format in formats for rule in of_format for shape in _shapes(each, rule)]
    written += [(rule, (*shape[:at], sum(shape[at:]))) for rule, shape in written for at in range(1, len(shape))]
    known = {(bool(re.search(r"(?<!\\)\d", rule)), shape) for rule, shape in written}
    plain, dialed = (
        frozenset(s for is_dialed, s in known if is_dialed is which and len(s) > 1 and sum(s) >= _FEWEST_AT_HOME)
        for which in (False, True)
    )
    return Shapes(metadata.national_prefix or "", plain, dialed)


def _rules(number_format: "NumberFormat", region: str) -> tuple[str, ...]:
    """Return how the first group is written: as it is, or with the trunk prefix."""
    rule = number_format.national_prefix_formatting_rule or _AS_IT_IS
    optional = number_format.national_prefix_optional_when_formatting or region in TEN_DIGITS
    return (rule, _AS_IT_IS) if optional else (rule,)


def _alternates(country_code: int) -> list["NumberFormat"]:
    """Return the formats that a country's people use beside the usual one."""
    try:
        module = import_module(f"phonenumbers.data.alt_format_{country_code}")
    except ModuleNotFoundError:
        return []
    return list(getattr(module, f"PHONE_ALT_FORMAT_{country_code}"))


def _shapes(number_format: "NumberFormat", rule: str) -> Iterator[Shape]:
    """Yield the shapes of one format: one of three and then three or four digits has two."""
    sizes = [
        range(int(low or 1), int(high or low or 1) + 1)
        for low, high in re.findall(r"\(\\d(?:\{(\d+)(?:,(\d+))?\})?\)", number_format.pattern or "")
    ]
    written = (number_format.format or "").replace(r"\1", rule, 1)
    for chosen in product(*sizes):
        digits = re.sub(r"\\(\d)", lambda group: "0" * chosen[int(group[1]) - 1], written)  # noqa: B023 -- used at once
        yield tuple(map(len, re.findall(r"\d+", digits)))
