"""Declares what a source is: a query that gives parts, each of which becomes one file of a landing."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from refinery_sources.web import Web

UNKNOWN = -1
"""Bytes or rows of a part whose source promises none."""

RIGHTS = "_terms-"
"""How the names of files begin that say under which rights the data is: licenses, terms, archives of robots.txt."""

FLUSH = 8 * 1024 * 1024
"""Bytes after which a partial file is flushed, and its note written."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a source: its name in the landing, its place at the source, and what its source promises of it.

    `requests` are how many it takes where nothing breaks off. A part that is `beside` the data (a license, the ids of
    deleted records) lands with it and is not refined; its name begins with `_`.
    """

    name: str
    address: str
    bytes: int = UNKNOWN
    sha256: str = ""
    rows: int = UNKNOWN
    requests: int = 1

    @property
    def beside(self) -> bool:
        """Whether the part is not data."""
        return self.name.startswith("_")

    @property
    def is_rights(self) -> bool:
        """Whether it says under which rights the data is."""
        return self.name.startswith(RIGHTS)


@dataclass(frozen=True, slots=True)
class Received:
    """A whole file as it was received; `facts` are what its source proved of it, as JSON.

    A file with 0 rows is not landed; its facts are kept. One with an `address` was not received: it is read there, as
    long as its ETag is the same, and its SHA-256 is not known.
    """

    bytes: int
    sha256: str
    etag: str = ""
    rows: int = UNKNOWN
    facts: Mapping[str, Any] = field(default_factory=dict)
    address: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """How bytes are written: flushed after so many, and counted by `on_bytes` as they are written.

    `on_parts` is told all parts and the names of those that are complete before a pull begins, `on_part` each that is
    complete since, with its bytes.
    """

    flush: int = FLUSH
    on_bytes: Callable[[str, int], None] = lambda _name, _size: None
    on_parts: Callable[[Sequence[Part], Collection[str]], None] = lambda _parts, _found: None
    on_part: Callable[[str, int], None] = lambda _name, _size: None


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a source gives its data: where they are, and what of them is kept beside the data."""

    address: str
    text: str

    def block(self) -> dict[str, str]:
        """Return the terms as `snapshot.json` has them."""
        return {
            "address": self.address,
            "text": self.text,
            "sha256": hashlib.sha256(self.text.encode()).hexdigest(),
        }


@dataclass(frozen=True, slots=True)
class Occasion:
    """What a query is asked on: the client, the name of its recipe, and the moment (UTC).

    `before` is the block `source` of the newest snapshot that has landed by this recipe, and `unfinished` the query of
    a pull of it that has not ended. Both are empty where there is none.
    """

    web: Web
    name: str
    moment: datetime
    before: Mapping[str, Any] = field(default_factory=dict)
    unfinished: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Mapped(Protocol):
    """A source whose files land with the fields that they have there; `snapshot.json` says by which names to read them.

    A source that writes its files with our names has none of it.
    """

    @property
    def read_by(self) -> Mapping[str, str]:
        """Names of some of `schema.FIELDS` in the files."""


@runtime_checkable
class InPlace(Protocol):
    """A source whose files may stay where they are: `snapshot.json` then says where, and in which store."""

    @property
    def in_place(self) -> bool:
        """Whether its files stay."""

    @property
    def store(self) -> str:
        """The store that has them, "": that of the process."""


class Source(Protocol):
    """A kind of source with a query: equal queries give equal parts, unless the source has changed meanwhile.

    A kind is a frozen dataclass, whose fields are what a recipe may write.
    """

    @property
    def snapshot(self) -> str:
        """Name of the snapshot that the query lands, once it is resolved."""

    @property
    def cursor(self) -> str:
        """Name of the place in the source behind which a later pull goes on."""

    @property
    def terms(self) -> Terms:
        """Terms of the data."""

    @property
    def typical_bytes(self) -> int:
        """Bytes that a part usually has, for an estimate."""

    def query(self) -> Mapping[str, Any]:
        """Return what is asked, as JSON: `source`, the kind, and what chooses the parts; never a secret."""

    def resolved(self, occasion: Occasion) -> Self:
        """Return the query that always asks for the same: `latest` has become a name. RecipeError for no sense."""

    def parts(self, web: Web) -> Sequence[Part]:
        """Return all parts of the query, each under a name of its own; ContractError for a list that is not whole."""

    def receive(self, web: Web, part: Part, partial: Path, flow: Flow) -> Received:
        """Write a part to the local file `partial`, which may have the beginning of it, and prove that it is whole.

        SourceBusy for what may go well later; ContractError and SnapshotIncomplete for a part that is damaged or does
        not exist, which leaves the others to arrive; any other error ends the pull.
        """
