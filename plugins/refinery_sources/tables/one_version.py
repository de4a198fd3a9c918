"""What the queries of all kinds of tables have in common: each asks for one version."""

from typing import Protocol

from refinery_sources.fields import Fields, names_at_source, stated_terms
from refinery_sources.source import Terms

LATEST = "latest"

TYPICAL = 100_000_000
"""Bytes of a part, where nothing says how many it has."""


class OneVersion(Protocol):
    """A query of one version of a table, with the names of fields and the terms that its recipe states."""

    __slots__ = ()

    table: str
    version: int | str
    fields: Fields
    terms_address: str
    terms_text: str

    @property
    def cursor(self) -> str:
        return str(self.version)

    @property
    def terms(self) -> Terms:
        return stated_terms(self.table, self.terms_address, self.terms_text)

    @property
    def typical_bytes(self) -> int:
        return TYPICAL

    @property
    def read_by(self) -> dict[str, str]:
        return names_at_source(self.fields)
