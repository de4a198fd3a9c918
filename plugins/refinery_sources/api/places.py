"""Finds values in records and answers by paths, such as `data.items`, `items.-1.id`, or `header:Link`."""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

HEADER = "header:"
"""How a place begins that is a header of an answer, and not a path in its body."""

MOST_NAMED = 30
"""Fields that an error names."""


class Absent(Enum):
    """The value of a field that is not there: null is there."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


def value_at(value: object, path: str) -> object:
    """Return what is at a path, ABSENT if nothing is; the empty path is the value itself.

    A field that has the whole path as its name comes first; a number is a place of a list, counted from its end if
    below 0.
    """
    if not path:
        return value
    if isinstance(value, dict) and path in value:
        return value[path]
    first, _, rest = path.partition(".")
    inner = _step(value, first)
    return inner if inner is ABSENT or not rest else value_at(inner, rest)


def _step(value: object, name: str) -> object:
    if isinstance(value, dict):
        return value.get(name, ABSENT)
    if isinstance(value, list) and name.removeprefix("-").isdecimal():
        at = int(name)
        return value[at] if -len(value) <= at < len(value) else ABSENT
    return ABSENT


def place_in(body: object, headers: Mapping[str, str], place: str) -> object:
    """Return what an answer has at a place: a header as text, or a value of its body."""
    if place.startswith(HEADER):
        return headers.get(place.removeprefix(HEADER).strip(), ABSENT)
    return value_at(body, place)


def without(record: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return a record without the values at paths; objects that become empty go with them."""
    rest = dict(record)
    for path in paths:
        _remove(rest, path)
    return rest


def _remove(rest: dict[str, Any], path: str) -> None:
    if path in rest:
        del rest[path]
        return
    first, _, below = path.partition(".")
    inner = rest.get(first)
    if below and isinstance(inner, dict):
        copy = dict(inner)
        _remove(copy, below)
        rest[first] = copy
        if not copy and inner:
            del rest[first]


def fields_of(value: object) -> str:
    """Return the names of the fields that a value has, those of objects behind a dot, for an error."""
    if not isinstance(value, dict):
        return f"it is {kind_of(value)}"
    names = list(map(printed, _paths(value)))
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"its fields are {', '.join(name[:60] for name in names[:MOST_NAMED])}{more}" if names else "it has no field"


def printed(name: str) -> str:
    """Return a name as an error shows it."""
    return name if name.isprintable() else ascii(name)


def _paths(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from (f"{name}.{inner}" for inner in value)
        else:
            yield name


def kind_of(value: object) -> str:
    """Return in words of what type a value of JSON is."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return "absent" if value is ABSENT else kinds.get(type(value), "a number")
