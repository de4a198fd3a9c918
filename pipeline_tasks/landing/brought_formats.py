"""Formats of landed files that other distributions bring: told by the endings of names, of which ours go before."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.archives.record import Row
from pipeline_tasks.landing.decompression import Reader
from pipeline_tasks.landing.json_lines import Names
from pipeline_tasks.libraries import Libraries
from pipeline_tasks.seams import Part, parts

SEAM = "refinery.formats"

PACKED = r"(?:\.(?:gz|zst|lz4))*\Z"
ARCHIVES, TABLES = ("warc", "arc", "wet", "wat"), ("jsonl", "ndjson", "json", "parquet")
"""The endings of names that our formats have."""

_ENDING = re.compile(rf"\.(\w+){PACKED}")


@dataclass(frozen=True, slots=True)
class Format:
    """The card of a format: the endings of names that its files have, in small letters, and how their rows are read.

    `read_rows` gets the inflated bytes of a file, its name, and the names by which fields are looked for, and yields a
    row for each record, as `json_lines.read_lines` does. No content raises: what cannot be read is a row of kind
    `damage` with its `error`.
    """

    endings: tuple[str, ...]
    read_rows: Callable[[Reader, str, Names], Iterator[Row]]


class Brought(NamedTuple):
    """A format, and who brings it."""

    part: Part
    format: Format


def brought_format(name: str) -> Brought | None:
    """Return the format that another distribution brings for a file of this name; None for any other file."""
    ending = _ENDING.search(name.lower())
    return _by_ending().get(ending[1]) if ending else None


def library_of(name: str) -> str:
    """Return the distribution that reads a file of this name, and its version (`name==1.0`); "" where we do."""
    brought = brought_format(name)
    return f"{brought.part.distribution}=={brought.part.version}" if brought else ""


def versions_of(library: str) -> Libraries:
    """Return the version of a `library_of` files by its name."""
    return dict(named.split("==", 1) for named in library.split())


@cache
def _by_ending() -> Mapping[str, Brought]:
    found: dict[str, Brought] = {}
    for part in parts(SEAM).values():
        brought = Brought(part, part.load(Format))
        for ending in brought.format.endings:
            if ending in (*ARCHIVES, *TABLES) or ending in found:
                other = found[ending].part if ending in found else "Refinery, too"
                message = f"{SEAM}: {part}, which reads files that end in .{ending}, and so does {other}; uninstall one"
                raise RecipeError(message)
            found[ending] = brought
    return found
