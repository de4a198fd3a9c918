"""What is looked for: an address in any of its forms, a document by its id or the beginning of one, or words."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.landing.whole_files import address_of, is_whole
from pipeline_tasks.text.urls.takedown import DOC, URL, evidence, of_entries
from pipeline_tasks.text.urls.takedown_entries import with_scheme

pc: Any = pyarrow.compute

LEAST = 6
"""Digits of an id that tell it from others: sixteen million beginnings."""

_ID = re.compile(rf"(?=[a-f]*[0-9])[0-9a-f]{{{LEAST},7}}|[0-9a-f]{{8,32}}", re.IGNORECASE)
"""An id or its beginning. Of less than 8 digits one is a decimal: `facade` and `decade` are words."""

_MAYBE_ID = re.compile("[0-9a-f]{3,7}", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'“„«](.+)[\"'”“»]", re.DOTALL)
_SCHEME = re.compile("[a-z][a-z0-9+.-]*:/*", re.IGNORECASE)
_NO_TEXT = re.compile("[\ud800-\udfff]")

WHOLE = 32
"""Digits of an id."""

WWW = "www."

IS = {"address": "this address", "document": "this id", "text": "these words"}
BEGINS = "an id that begins so"


@dataclass(frozen=True)
class Sought:
    """What was asked for, and what it is; `value` is the address, the digits of an id, or the words."""

    kind: Literal["address", "document", "text"]
    value: str

    @property
    def words(self) -> str:
        """What it is, in words."""
        return BEGINS if self.is_beginning else IS[self.kind]

    @property
    def is_beginning(self) -> bool:
        """Whether it is the first digits of an id."""
        return self.kind == "document" and not self.is_whole_id

    @property
    def may_be_id(self) -> bool:
        """Whether words may be meant as the beginning of an id, which is too short to be one."""
        return self.kind == "text" and _MAYBE_ID.fullmatch(self.value) is not None

    @property
    def column(self) -> str:
        """The column that is looked at."""
        return URL if self.kind == "address" else "id"

    @property
    def entries(self) -> list[tuple[str, str]]:
        """What names it in lists of takedowns and datasets: forms of the address, a file's too, or a whole id."""
        if self.kind == "address":
            scheme, _, rest = self.value.partition("://")
            other = rest.removeprefix(WWW) if rest.startswith(WWW) else f"{WWW}{rest}"
            return [(URL, self.value), (URL, f"{scheme}://{other}"), (URL, address_of(rest))]
        return [(DOC, self.value)] if self.is_whole_id else []

    @property
    def is_whole_id(self) -> bool:
        """Whether it is the id of one document, with all its digits."""
        return self.kind == "document" and len(self.value) == WHOLE

    @cached_property
    def is_wanted(self) -> Callable[[Any], Any]:
        """What says which values of the column are wanted."""
        if self.kind == "address":
            listed = of_entries(self.entries)
            return lambda urls: pc.is_valid(evidence(listed, pa.record_batch({URL: urls})))
        return lambda ids: pc.fill_null(pc.starts_with(ids, self.value), fill_value=False)


def sought(asked: str) -> Sought:
    """Return what a person means: words in quotes, an id, an address with or without its scheme, else words.

    RecipeError for nothing, and for bytes that are no text.
    """
    text = asked.strip()
    if _NO_TEXT.search(text):
        message = "what is asked for has a byte that is no UTF-8; write such a byte of an address in its percent form"
        raise RecipeError(message)
    if not text:
        message = "name an address, the id of a document, or words of its text"
        raise RecipeError(message)
    if quoted := _QUOTED.fullmatch(text):
        return Sought("text", quoted[1])
    if _ID.fullmatch(text):
        return Sought("document", text.lower())
    if _SCHEME.match(text) and "://" in text and not any(map(str.isspace, text)):
        return Sought("address", text)
    address = with_scheme(text)
    if is_whole(text) and (address == text or any(map(str.isspace, text))):
        address = address_of(text)  # of a document in a folder: `first/notes.md`, `a list.pdf`
    return Sought("text" if address == text else "address", address)
