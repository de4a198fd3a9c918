"""The names that fields have at a source, as its recipe gives them."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pipeline_tasks.binding import require_known
from pipeline_tasks.constraints import FieldName
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.schema import FIELDS
from refinery_sources.source import Terms

Fields = Mapping[str, FieldName]
"""Names of some of `schema.FIELDS` at a source, or paths to them: `{text: doc.body, url: link}`."""

UNNAMED = "The recipe of this source names no terms: they are those of whoever gave the data."

TIME = "time"
"""What recipes of sources may call `date`."""


def names_at_source(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the names by which files are read; RecipeError for a field that records do not have."""
    require_known(fields, (*FIELDS, TIME), "fields")
    if TIME in fields and "date" in fields:
        message = "fields: time and date are the same field; name it once"
        raise RecipeError(message)
    return {"date" if target == TIME else target: name for target, name in fields.items()}


def takes(path: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Return whether a path is chosen: by a pattern of `include`, if there is one, and by none of `exclude`."""
    chosen = not include or any(fnmatchcase(path, pattern) for pattern in include)
    return chosen and not any(fnmatchcase(path, pattern) for pattern in exclude)


def stated_terms(place: str, address: str, text: str) -> Terms:
    """Return the terms that a recipe states; where it states none, that is what they say."""
    return Terms(address or place, text or UNNAMED)


COMMIT = re.compile(r"[0-9a-f]{40}")
"""The name of a commit of Git: its SHA-1."""


def require_commit(name: object) -> str:
    """Return the commit that an earlier pull has noted; RecipeError for what is none, as a path in its place."""
    if not isinstance(name, str) or not COMMIT.fullmatch(name):
        message = f"{str(name)[:100]!a} is no commit, and an unfinished pull names it; remove its folder"
        raise RecipeError(message)
    return name


def asked_before(
    query: Mapping[str, Any], resolved: tuple[str, ...], *queries: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the first of some earlier queries that asked the same: it differs in `resolved` fields at most."""
    own = {name: value for name, value in query.items() if name not in resolved}
    for earlier in queries:
        if {name: value for name, value in earlier.items() if name not in resolved} == own:
            return earlier
    return None
