"""Columns of a lake, as trees: those of Arrow as it names them, how they grow, and where those of a file belong.

A lake takes: string, large_string, binary, bool, int8 to int64, uint8 to uint64, float32, float64, decimal128, date32,
timestamp (ns without a time zone only), and lists, structs and maps of them; dictionaries as their values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from pipeline_tasks.errors import RecipeError

LIST, STRUCT, MAP, DECIMAL = "list", "struct", "map", "decimal"

FLOATS = ("float32", "float64")

PLAIN = {
    pa.string(): "varchar",
    pa.large_string(): "varchar",
    pa.string_view(): "varchar",
    pa.binary(): "blob",
    pa.large_binary(): "blob",
    pa.bool_(): "boolean",
    **{getattr(pa, f"{sign}int{bits}")(): f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.date32(): "date",
    **{pa.timestamp(unit): "timestamp" for unit in ("s", "ms", "us")},
    pa.timestamp("ns"): "timestamp_ns",
}

WIDER = {
    **{
        f"{sign}int{bits}": tuple(f"{sign}int{more}" for more in (16, 32, 64) if more > bits)
        for sign in ("", "u")
        for bits in (8, 16, 32)
    },
    "float32": ("float64",),
}
"""Types whose values fit another."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column with the columns inside it, and its number in its table, 0 for one that no lake has."""

    name: str
    type: str
    children: tuple["Column", ...] = ()
    id: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """Where the columns of a file belong: rows of `ducklake_name_mapping`, and a column for each leaf of the file.

    A row has the name in the file, the number of the column, and the rank of the row of its parent. A leaf is None
    whose column the table lacks.
    """

    rows: tuple[tuple[str, int, int | None], ...] = ()
    leaves: tuple[Column | None, ...] = ()


def columns_of(schema: pa.Schema) -> tuple[Column, ...]:
    """Return the columns of a schema; RecipeError names one that a lake cannot have."""
    return _named(schema, "")


def _named(fields: Iterable[pa.Field], within: str) -> tuple[Column, ...]:
    columns = tuple(_column(each.name, each.type, within) for each in fields)
    names = [column.name.lower() for column in columns]
    for name in names:
        if names.count(name) > 1:
            message = f"two columns are named {within}{name}, and a lake tells no case; rename one of them"
            raise RecipeError(message)
    return columns


def _column(name: str, kind: pa.DataType, within: str) -> Column:
    where = f"{within}{name}"
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind) and kind.num_fields:
        return Column(name, STRUCT, _named(kind, f"{where}."))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Column(name, LIST, (_column("element", kind.value_type, f"{where}."),))
    if pa.types.is_map(kind):
        inside = (("key", kind.key_type), ("value", kind.item_type))
        return Column(name, MAP, tuple(_column(part, type_, f"{where}.") for part, type_ in inside))
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.unit != "ns":
        return Column(name, "timestamptz")
    if pa.types.is_decimal128(kind):
        return Column(name, f"{DECIMAL}({kind.precision},{kind.scale})")
    if kind not in PLAIN:
        message = f"the column {where} has the type {kind}, which a lake does not have; convert it, or leave it out"
        raise RecipeError(message)
    return Column(name, PLAIN[kind])


def flat(columns: Iterable[Column], parent: int | None = None) -> Iterator[tuple[Column, int | None]]:
    """Yield each column with the number of its parent, parents first."""
    for column in columns:
        yield column, parent
        yield from flat(column.children, column.id)


def tree(rows: Sequence[tuple[int, str, str, int | None]], parent: int | None = None) -> tuple[Column, ...]:
    """Return the columns of rows: number, name, type and the number of the parent, in order."""
    return tuple(Column(name, type_, tree(rows, id_), id_) for id_, name, type_, above in rows if above == parent)


def grown(held: Sequence[Column], wanted: Sequence[Column], ids: Iterator[int], within: str = "") -> tuple[Column, ...]:
    """Return what a table has with what it is to have: new columns get numbers, and numbers get wider types.

    RecipeError names a column of another type, which values do not fit.
    """
    new = {column.name: column for column in wanted}
    known = {column.name for column in held}
    kept = tuple(_grown(column, new[column.name], ids, within) if column.name in new else column for column in held)
    return kept + tuple(numbered(column, ids) for column in wanted if column.name not in known)


def _grown(held: Column, wanted: Column, ids: Iterator[int], within: str) -> Column:
    where = f"{within}{held.name}"
    type_ = held.type
    if wanted.type in WIDER.get(held.type, ()):
        type_ = wanted.type
    elif not fits(wanted.type, held.type):
        message = (
            f"the column {where} is {held.type} in the table, which {wanted.type} does not fit; give it another name"
        )
        raise RecipeError(message)
    return replace(held, type=type_, children=grown(held.children, wanted.children, ids, f"{where}."))


def numbered(column: Column, ids: Iterator[int]) -> Column:
    """Return a column with the next number, and those inside it with the next ones."""
    own = next(ids)
    return replace(column, id=own, children=tuple(numbered(child, ids) for child in column.children))


def fits(type_: str, into: str) -> bool:
    """Return whether all values of a type are values of another."""
    return type_ == into or into in WIDER.get(type_, ())


def mapped(held: Sequence[Column], of_file: Sequence[Column], where: str) -> Mapping:
    """Return where the columns of a file belong in a table; RecipeError names one that does not fit."""
    rows: list[tuple[str, int, int | None]] = []
    leaves: list[Column | None] = []

    def add(within: Sequence[Column], columns: Sequence[Column], above: str, parent: int | None) -> None:
        known = {column.name: column for column in within}
        for column in columns:
            target = known.get(column.name)
            if target is None:
                leaves.extend([None] * _leaves(column))
                continue
            if not fits(column.type, target.type):
                message = f"{where}: its column {column.name} is {column.type}, and that of the table {target.type}"
                raise RecipeError(message)
            rank = len(rows)
            rows.append(
                (LIST if above == LIST else column.name, target.id, parent)
            )  # as DuckDB names what is in a list
            if not column.children:
                leaves.append(target)
            add(target.children, column.children, column.type, rank)

    add(held, of_file, "", None)
    return Mapping(tuple(rows), tuple(leaves))


def _leaves(column: Column) -> int:
    return sum(map(_leaves, column.children)) if column.children else 1
