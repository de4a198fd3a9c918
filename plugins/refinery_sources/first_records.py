"""Looks at the first records of a file that was received as it is: one without the text by its names is refused."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pipeline_tasks.errors import ContractError, RecipeError
from pipeline_tasks.landing import json_lines
from pipeline_tasks.landing.first_look import ROWS, missing_text
from refinery_sources.files.contents import unpacked

_LINE = 32 << 20


def require_text(partial: Path, name: str, address: str, fields: Mapping[str, str]) -> None:
    """Raise RecipeError, which names the fields that there are, for a file whose records have no field of the text.

    A field that is there and null is a field: files of a dataset may begin with records that lost their text.
    """
    missing = missing_text(str(partial), name, fields)
    if not missing:
        return
    names = json_lines.names_of(fields)
    looked_for = (*names["html"], *names["text"])
    records = islice(_objects(partial, address), ROWS)
    if any(json_lines.is_there(record, name) for record in records for name in looked_for):
        return
    message = f"{address}: {missing}"
    raise RecipeError(message)


def _objects(partial: Path, address: str) -> Iterator[dict[str, Any]]:
    """Yield the objects at the beginning of a file of JSON lines; nothing for a file of another form."""
    with partial.open("rb") as stored:
        content = unpacked(stored, address)
        try:
            for line in iter(lambda: content.readline(_LINE), b""):
                if not line.lstrip().startswith(b"{"):
                    return
                value, error, _, _ = json_lines.parse(line)
                if error is None:
                    yield value
        except ContractError:  # who reads all of it says what is damaged
            return
