"""Reads what a page states as data: the objects of its JSON-LD scripts."""

import json
import re
from collections.abc import Iterator
from typing import Any

_SCRIPT = re.compile(r"(?is)<script\b[^>]{0,200}application/ld\+json[^>]{0,200}>(.*?)(?:</script|\Z)")


def linked_objects(html: str, name: str, *, strict: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the top-level objects, and those of their graphs, of the scripts that have `"name"`, not of nested ones.

    A text search comes first, as most pages have no such script. Scripts that are no JSON are left out; texts have no
    control characters if it is `strict`.
    """
    key = f'"{name}"'
    if key not in html:
        return
    for script in _SCRIPT.finditer(html):
        if key in script[1]:
            try:
                document = json.loads(script[1], strict=strict)
            except (ValueError, RecursionError):
                continue
            for node in _objects(document):
                yield node
                yield from _objects(node.get("@graph"))


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
