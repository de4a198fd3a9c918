"""The schema of records as they came: the types at each path, and what differs from that of an earlier snapshot.

A schema is a node: `types`, the `fields` of its objects by name, and the `items` of its lists. An object with more than
`MOST_FIELDS` names is a map, whose values are one node under `*`.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

Node = Mapping[str, Any]
"""A node of a schema, as JSON."""

MOST_FIELDS = 100
"""Names of an object from which on they are data."""

DEEPEST = 16
"""Levels below which nothing is recorded."""

ANY = "*"

NULL = "null"

TYPES: Mapping[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}
_WIDER = {"integer": "number", "number": "integer"}
"""Types that stand for each other: a number without a fraction is an integer in JSON."""


def schema_of(value: object, depth: int = 0) -> Node:
    """Return the schema of one value."""
    node: dict[str, Any] = {"types": [TYPES.get(type(value), NULL)]}
    if depth == DEEPEST:
        return node
    if isinstance(value, dict) and value:
        node["fields"] = {name: schema_of(inner, depth + 1) for name, inner in value.items()}
        return _bounded(node)
    if isinstance(value, list) and value:
        node["items"] = merged(*(schema_of(item, depth + 1) for item in value))
    return node


def merged(*schemas: Node) -> Node:
    """Return the schema of all values that have one of the schemas."""
    present = [schema for schema in schemas if schema]
    if not present[1:]:
        return present[0] if present else {}
    node: dict[str, Any] = {"types": sorted({kind for schema in present for kind in schema["types"]})}
    names = sorted({name for schema in present for name in schema.get("fields", ())})
    if names:
        fields = [schema.get("fields", {}) for schema in present]
        node["fields"] = {name: merged(*(each.get(name, {}) for each in fields)) for name in names}
    items = merged(*(schema.get("items", {}) for schema in present))
    if items:
        node["items"] = items
    return _bounded(node)


def _bounded(node: dict[str, Any]) -> Node:
    fields = node.get("fields", {})
    if len(fields) > MOST_FIELDS or (ANY in fields and len(fields) > 1):
        node["fields"] = {ANY: merged(*fields.values())}
    return node


def added(before: Node, now: Node) -> list[str]:
    """Return the paths that are new, sorted."""
    return sorted(path for path, was, _ in _pairs(before, now) if not was)


def differences(before: Node, now: Node) -> list[str]:
    """Return what breaks who reads by the schema before, sorted: a path whose values have a type that they had not.

    A new path, null, and integers beside numbers break nothing.
    """
    return sorted(
        difference(path, was, kinds)
        for path, was, kinds in ((path, _kinds(was), _kinds(kinds)) for path, was, kinds in _pairs(before, now))
        if was and new_types(was, kinds)
    )


def new_types(was: AbstractSet[str], now: AbstractSet[str]) -> set[str]:
    """Return the types that break who reads by those before: null is none of either, and numbers stand for integers."""
    return {kind for kind in now if not {kind, _WIDER.get(kind, kind)} & was}


def difference(path: str, was: Iterable[str], now: Iterable[str]) -> str:
    """Return in words which types the values at a path had, and have."""
    return f"{path} was {' or '.join(sorted(was))} and is {' or '.join(sorted(now))}"


def _kinds(node: Node) -> set[str]:
    """Return the types of a node but null."""
    return set(node.get("types", ())) - {NULL}


def _pairs(before: Node, now: Node, path: str = "") -> Iterator[tuple[str, Node, Node]]:
    """Yield each path of a schema with its nodes before, {} for a new one, and now; the values of a map are one."""
    if path:
        yield path, before, now
    was, fields = before.get("fields", {}), now.get("fields", {})
    if ANY in was or ANY in fields:
        was, fields = ({ANY: merged(*each.values())} if each else {} for each in (was, fields))
    for name, inner in fields.items():
        yield from _pairs(was.get(name, {}), inner, f"{path}.{name}" if path else name)
    if "items" in now:
        yield from _pairs(before.get("items", {}), now["items"], f"{path}[]")
