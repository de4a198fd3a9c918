"""The place of an export: a folder or a prefix of its own, claimed by its first file and complete with its last one."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.exported import FILES, files_of
from pipeline_tasks.store import storage

CLAIM = "export.json"
"""The first file: what is exported there. The same export goes on where it was killed; another one is refused."""

Facts = Mapping[str, Any]


def encoded(facts: Facts) -> bytes:
    """Return facts as the JSON that is stored."""
    return json.dumps(facts, sort_keys=True, indent=1).encode() + b"\n"


def claim(to: str, facts: Facts) -> dict[str, Any] | None:
    """Claim a place for an export; return its list of files if it is there already, whole.

    RecipeError if the place has anything else.
    """
    storage.require_folder(to)
    storage.require_usable(to)
    store = storage.connect(to)
    if store.size(CLAIM) is None:
        other = next(iter(store.list("")), None)
        if other is not None:
            message = f"{to} has other files, {other.path} is one; name a folder or prefix that is empty with --to"
            raise RecipeError(message)
        storage.keep(store, CLAIM, encoded(facts))
    stored = store.read(CLAIM)
    if stored != encoded(facts):
        message = f"{to} has another export ({_shown(stored)}); name another place with --to, or remove that export"
        raise RecipeError(message)
    return _complete(to)


def _shown(stored: bytes) -> str:
    try:
        return ", ".join(f"{name} {value}" for name, value in json.loads(stored).items())
    except (ValueError, AttributeError):
        return f"its {CLAIM} cannot be read"


def _complete(to: str) -> dict[str, Any] | None:
    """Return the list of files of an export, None if it is not complete."""
    store = storage.connect(to)
    if store.size(FILES) is None:
        return None
    listed = files_of(to, store.read(FILES))
    whole = all(store.size(file["path"]) == file["bytes"] for file in listed["files"])
    return listed if whole else None
