"""Keeps ranges of columns, of each file and of a table: DuckDB leaves out files by them that a query cannot need."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from refinery_exports.tables.ducklake.columns import DECIMAL, FLOATS, Column, Mapping, flat
from refinery_exports.tables.ducklake.database import Database
from refinery_exports.tables.ducklake.footers import Footer, bounds_of
from refinery_exports.tables.ducklake.held import Held

FILE_RANGE = (
    "data_file_id, table_id, column_id, column_size_bytes, value_count, null_count, min_value, max_value, contains_nan"
)
TABLE_RANGE = "table_id, column_id, contains_null, contains_nan, min_value, max_value"


@dataclass(frozen=True, slots=True)
class Range:
    """What a column has in a file: bytes, values that are not null, nulls, and bounds as text; None if not known."""

    file: int
    column: int
    bytes: int
    values: int | None
    nulls: int | None
    low: str | None
    high: str | None


@dataclass(frozen=True, slots=True)
class Whole:
    """What values a column has in all files of a table."""

    has_null: bool
    low: str | None
    high: str | None


def ranges(file: int, footer: Footer, mapping: Mapping) -> list[Range]:
    """Return the ranges of the columns of a file."""
    found = []
    for column, leaf in zip(mapping.leaves, footer.leaves, strict=True):
        if column is not None:
            values = None if leaf.nulls is None else leaf.values - leaf.nulls
            found.append(Range(file, column.id, leaf.bytes, values, leaf.nulls, *bounds_of(leaf, column.type)))
    return found


def keep(database: Database, held: Held, new: Sequence[Range], files: int) -> None:
    """Keep the ranges of new files of a table, so many, and widen those of the table by them."""
    leaves = [column for column, _ in flat(held.columns) if not column.children]
    floats = {column.id for column in leaves if column.type in FLOATS}
    database.insert(
        "ducklake_file_column_stats",
        FILE_RANGE,
        [
            # a footer does not say whether there is a NaN, which is greater than the greatest that it names
            (
                each.file,
                held.id,
                each.column,
                each.bytes,
                each.values,
                each.nulls,
                each.low,
                each.high,
                nan_of(each, floats),
            )
            for each in new
        ],
    )
    rows = database.rows(
        "SELECT column_id, contains_null, min_value, max_value FROM ducklake_table_column_stats WHERE table_id = ?",
        held.id,
    )
    before = {
        cast("int", id_): Whole(bool(has_null), cast("str | None", low), cast("str | None", high))
        for id_, has_null, low, high in rows
    }
    _write(database, held.id, leaves, _wholes(leaves, new, files), before)


def nan_of(each: Range, floats: Iterable[int]) -> bool | None:
    """Return whether a column may have a NaN, None for one that cannot."""
    return bool(each.values != 0) if each.column in floats else None


def _wholes(leaves: Sequence[Column], ranges: Iterable[Range], files: int) -> dict[int, Whole]:
    """Return the range of each column in files, so many, by its number."""
    by_column: dict[int, list[Range]] = {column.id: [] for column in leaves}
    for each in ranges:
        if each.column in by_column:
            by_column[each.column].append(each)
    return {column.id: _whole(column, by_column[column.id], files) for column in leaves}


def _whole(column: Column, own: Sequence[Range], files: int) -> Whole:
    """Return the range of a column in files, so many, of which `own` have it; one that lacks it has nulls."""
    filled = [each for each in own if each.values != 0]
    has_null = len(own) < files or any(each.nulls != 0 for each in own)
    if any(each.low is None for each in filled):
        return Whole(has_null, None, None)
    low = _ends(min, column, [each.low for each in filled])
    return Whole(has_null, low, _ends(max, column, [each.high for each in filled]))


def _write(
    database: Database, table: int, leaves: Sequence[Column], new: dict[int, Whole], before: dict[int, Whole]
) -> None:
    rows = []
    for column in leaves:
        own, old = new[column.id], before.get(column.id)
        if old is None and before:  # a column that has come to a table has nulls in the files that were there
            own = Whole(has_null=True, low=own.low, high=own.high)
        elif old is not None:
            known = None not in (own.low, old.low)
            low = _ends(min, column, [own.low, old.low]) if known else None
            high = _ends(max, column, [own.high, old.high]) if known else None
            own = Whole(own.has_null or old.has_null, low, high)
        may_be_nan = True if column.type in FLOATS else None
        rows.append((table, column.id, own.has_null, may_be_nan, own.low, own.high))
    database.rows("DELETE FROM ducklake_table_column_stats WHERE table_id = ?", table)
    database.insert("ducklake_table_column_stats", TABLE_RANGE, rows)


def _ends(end: Callable[..., str], column: Column, texts: Sequence[str | None]) -> str | None:
    """Return the least or the greatest of texts, by the values of a type; dates and times are in order as texts."""
    known = [text for text in texts if text is not None]
    if not known:
        return None
    if column.type in FLOATS:
        return end(known, key=float)
    return end(known, key=Decimal) if "int" in column.type or column.type.startswith(DECIMAL) else end(known)


def renew(database: Database, table: int, columns: Sequence[Column]) -> None:
    """Take the ranges of a table from the files that it has now."""
    rows = database.rows(
        "SELECT s.data_file_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count, s.min_value, "
        "s.max_value FROM ducklake_file_column_stats s JOIN ducklake_data_file f ON f.data_file_id = s.data_file_id "
        "WHERE f.table_id = ? AND f.end_snapshot IS NULL",
        table,
    )
    own = [
        Range(*cast("tuple[int, int, int, int | None, int | None, str | None, str | None]", tuple(row))) for row in rows
    ]
    [(files,)] = database.rows(
        "SELECT count(*) FROM ducklake_data_file WHERE table_id = ? AND end_snapshot IS NULL", table
    )
    leaves = [column for column, _ in flat(columns) if not column.children]
    _write(database, table, leaves, _wholes(leaves, own, cast("int", files)), {})
