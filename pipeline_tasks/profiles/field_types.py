"""Counts the types of the fields of landed records, and says what differs from earlier snapshots.

Records with the same names and types have the same shape, and shapes are counted: at the beginning of a file those of
all records, behind it of one in `ONE_IN`, chosen by their place. What is counted adds up exactly, and is the same in
any order and for any cut of the files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline_tasks.profiles.record_schema import ANY, MOST_FIELDS, NULL, TYPES, difference, new_types

Shape = tuple[tuple[str, ...], tuple[object, ...]]
"""The names of an object's fields, and the type of each; of an object its shape, down to `DEEPEST`."""

FieldCounts = Mapping[str, Any]
"""`records`, how many were looked at, and two mappings of a field and its type to records.

`read` has the fields that become columns of a record, by our names, and `rest` all others: `{"score integer": 12}`. An
object of the rest and the fields in it are two (`meta object`, `meta.source string`); what is deeper is not counted. It
is empty where no record has fields. `version` is what the landing says of its schema.
"""

NO_FIELDS: FieldCounts = {}

FIELDS = "fields"
"""Key of these counts in a manifest's metrics."""

DEEPEST = 4
"""Levels to which a path to a field that is read may lead."""

FIRST_BYTES, FIRST_ROWS = 1 << 20, 1 << 12
"""The beginning of a file, in bytes of inflated lines or in rows of a table."""

ONE_IN = 16
"""Records behind the beginning of which one is looked at, so that looking costs a few percent of reading them."""

_SPREAD, _SHIFT = 0x9E3779B1, 12  # 2 ** 32 by the golden ratio: Knuth, TAOCP 3, section 6.4

NAME = 100
"""Characters of a name that are kept."""

MOST_SHAPES = 256
"""Shapes that are held before they are counted by field: records of a map have one each."""

SHOWN = 10
"""Fields that a fact names."""

OFTEN = 0.5
"""Share of the earlier records that have a field which must not vanish: one that few have may be absent by chance."""


def shape_at(offset: int, fields: Mapping[str, Any], *, is_row: bool) -> Shape | None:
    """Return the shape of the record at a byte of its file, or of a row by its number; None for one that is passed."""
    if offset >= (FIRST_ROWS if is_row else FIRST_BYTES) and (offset * _SPREAD >> _SHIFT) % ONE_IN:
        return None
    return shape_of(fields)


def shape_of(fields: Mapping[str, Any], depth: int = 1) -> Shape:
    """Return the shape of an object; one with more than `MOST_FIELDS` names is not looked into further."""
    kinds = tuple(map(type, fields.values()))
    if dict not in kinds or depth == DEEPEST or len(kinds) > MOST_FIELDS:
        return tuple(fields), kinds
    values = zip(kinds, fields.values(), strict=True)
    return tuple(fields), tuple(shape_of(value, depth + 1) if kind is dict else kind for kind, value in values)


class ShapeCounter:
    """Counts shapes; `names` are those by which each field that is read is looked for, in order."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        self._names = names
        self._shapes: Counter[Shape] = Counter()
        self._counts = NO_FIELDS

    def add(self, shape: Shape) -> None:
        """Count a record."""
        self._shapes[shape] += 1
        if len(self._shapes) > MOST_SHAPES:
            self._fold()

    def counts(self) -> FieldCounts:
        """Return what was counted."""
        self._fold()
        return self._counts

    def _fold(self) -> None:
        records = (_of_shape(shape, count, self._names) for shape, count in self._shapes.items())
        self._counts = summed([self._counts, *records])
        self._shapes.clear()


def _of_shape(shape: Shape, count: int, names: Mapping[str, Sequence[str]]) -> FieldCounts:
    kinds = dict(_flat(shape))
    read: dict[str, int] = {}
    for target, looked_for in names.items():
        name = next((name for name in looked_for if kinds.get(name, NULL) != NULL), None)
        if name is not None:
            read[f"{target} {kinds.pop(name)}"] = count
    rest = {f"{path} {kind}": count for path, kind in kinds.items() if path.count(".") <= 1}
    return {"records": count, "read": read, "rest": rest}


def _flat(shape: Shape, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and type of each field of a shape."""
    for name, kind in zip(*shape, strict=True):
        path = f"{above}{name[:NAME]}"
        if isinstance(kind, tuple):
            yield path, TYPES[dict]
            yield from _flat(kind, f"{path}.")
        else:
            yield path, NULL if kind is type(None) else TYPES.get(kind, TYPES[str])  # a time is stored as its text


def summed(counts: Iterable[FieldCounts]) -> FieldCounts:
    """Add counts up; an object with more than `MOST_FIELDS` names in all of them is a map, whose values are one."""
    present = [each for each in counts if each]
    if not present:
        return NO_FIELDS
    read, rest = Counter[str](), Counter[str]()
    for each in present:
        read.update(each["read"])
        rest.update(each["rest"])
    said = {"version": present[0]["version"]} if "version" in present[0] else {}
    return {"records": sum(each["records"] for each in present), "read": dict(read), "rest": _bounded(rest)} | said


def _bounded(rest: Mapping[str, int]) -> dict[str, int]:
    below: dict[str, set[str]] = {}
    for key in rest:
        first, _, second = key.rpartition(" ")[0].partition(".")
        below.setdefault(first, set()).update([second] if second else [])
    if ANY in below or len(below) > MOST_FIELDS:
        below = {ANY: set().union(*below.values())}
    maps = {first for first, seconds in below.items() if ANY in seconds or len(seconds) > MOST_FIELDS}
    bounded = Counter[str]()
    for key, count in rest.items():
        path, _, kind = key.rpartition(" ")
        first, _, second = path.partition(".")
        first = first if first in below else ANY
        second = ANY if second and first in maps else second
        bounded[f"{first}.{second} {kind}" if second else f"{first} {kind}"] += count
    return dict(bounded)


# --- Against earlier snapshots ----------------------------------------------------------------------------------------


class Differences(NamedTuple):
    """How fields differ from those of earlier snapshots, each with a line for it.

    `share` is the largest share of a field's values that have a type which it never had, and `changed` are these
    fields. `gone` are fields that are read and that no record has, `new` and `left` others that are there for the first
    time, or no more.
    """

    share: float
    changed: Sequence[str]
    gone: Sequence[str]
    new: Sequence[str]
    left: Sequence[str]


def differences_from(earlier: Sequence[FieldCounts], now: FieldCounts) -> Differences:
    """Return how the fields of a snapshot differ from those of earlier ones, the last of which is first."""
    before = summed(earlier)
    rest = {key: 0 for each in (before, now) for key in each["rest"]}  # what is a map in one of them is one in both
    read = _types(before["read"]), _types(now["read"])
    others = _types(_bounded({**rest, **before["rest"]})), _types(_bounded({**rest, **now["rest"]}))
    shares = {**_shares(*read), **_shares(*others)}
    records = earlier[0]["records"]
    last = {name: sum(kinds.values()) for name, kinds in _types(earlier[0]["read"]).items()}
    return Differences(
        max(shares.values(), default=0.0),
        sorted(shares),
        [
            f"{name} was in {count:,} of {records:,} records"
            for name, count in sorted(last.items())
            if count >= OFTEN * records and name not in read[1]
        ],
        sorted(others[1].keys() - others[0].keys()),
        sorted(others[0].keys() - others[1].keys()),
    )


def _types(counts: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return the records of each field by type, without null: a field that is null everywhere is not there."""
    fields: dict[str, dict[str, int]] = {}
    for key, count in counts.items():
        path, _, kind = key.rpartition(" ")
        if kind != NULL and count:
            fields.setdefault(path, {})[kind] = count
    return fields


def _shares(before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return the share of a field's values that have a type which it had not, by what is said of the field."""
    shares: dict[str, float] = {}
    for path, kinds in now.items():
        was = before.get(path, {})
        new = new_types(was.keys(), kinds.keys()) if was else set()
        if new:
            shares[difference(path if path.isprintable() else ascii(path), was, kinds)] = sum(
                map(kinds.__getitem__, new)
            ) / sum(kinds.values())
    return shares
