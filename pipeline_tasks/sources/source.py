"""Declares what a source is: a query that gives parts, each of which becomes one file of a landing."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline_tasks.sources.web import Web

UNKNOWN = -1
"""Bytes of a part whose source promises no size."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a source: its name in the landing, its URL, and the size and SHA-256 that its source promises."""

    name: str
    address: str
    bytes: int = UNKNOWN
    sha256: str = ""


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


class Source(Protocol):
    """A kind of source with a query: equal queries give equal parts, unless the source has changed meanwhile."""

    @property
    def snapshot(self) -> str:
        """Name of the snapshot that the query lands."""

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
        """Return what is asked, as JSON: kind, address, and what chooses the parts."""

    def parts(self, web: Web) -> Sequence[Part]:
        """Return all parts of the query, each under a name of its own; ContractError for a list that is not whole."""
