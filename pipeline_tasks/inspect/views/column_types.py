"""Reads the columns of committed rows, as manifests and layers write them, into a schema of Arrow."""

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa

from pipeline_tasks.errors import ContractError

_WORDS = re.compile(r"[<>,:]|\[\d+\]|[^<>,:\[\]]+")

LIST = "item"
"""The name of the values of a list: Parquet names them otherwise, and columns of two stages are to be of one type."""


def schema_of(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Return the schema of columns by their names and types, as `manifest.schema_pairs` writes them.

    ContractError for a type that no release has written.
    """
    return pa.schema([(name, type_of(kind)) for name, kind in columns])


def type_of(kind: str) -> pa.DataType:
    """Return the type that Arrow writes as `kind`, such as `list<element: struct<start: int64>>`."""
    words = (word.strip() for word in _WORDS.findall(kind))
    try:
        return _Types(words).read()
    except (ValueError, StopIteration) as error:
        message = f"{kind[:100]!r} is no type of a column that this release knows; read it with the one that wrote it"
        raise ContractError(message) from error


class _Types:
    """Reads one type from the words of its description."""

    def __init__(self, words: Iterator[str]) -> None:
        self._words = words
        self._next = next(words, "")

    def read(self) -> pa.DataType:
        name = self._take().removesuffix(" not null")
        if name == "struct":
            return pa.struct(self._fields())
        if name in ("list", "large_list", "fixed_size_list"):
            [(_, values)] = self._fields()
            if name == "fixed_size_list":
                return pa.list_(pa.field(LIST, values), int(self._take().strip("[]")))
            return pa.list_(pa.field(LIST, values))
        return pa.type_for_alias(name)

    def _fields(self) -> list[tuple[str, pa.DataType]]:
        """Read `<name: type, ...>`."""
        fields: list[tuple[str, pa.DataType]] = []
        opened = self._take()
        while opened in ("<", ","):
            name, colon = self._take(), self._take()
            if colon != ":":
                raise ValueError(name)
            fields.append((name, self.read()))
            opened = self._take()
        if opened != ">":
            raise ValueError(opened)
        if self._next == "not null":
            self._take()
        return fields

    def _take(self) -> str:
        word, self._next = self._next, next(self._words, "")
        return word


def united(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of all schemas in the order in which they come: of two types of numbers or texts the wider."""
    unified: pa.Schema = pa.unify_schemas(list(schemas) or [pa.schema([])], promote_options="permissive")
    return unified
