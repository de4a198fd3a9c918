"""Reads the footer of a Parquet file: its leaf columns, and where the chunks of each row group are.

Format: https://github.com/apache/parquet-format (`parquet.thrift`: `FileMetaData`).
"""

from typing import Any, BinaryIO, NamedTuple

from pipeline_tasks.landing.parquet.thrift import BadThriftError, read_struct

FOOTER_CAP = 64 << 20
COLUMNS = 10_000
_TAIL = 8  # bytes behind a footer: its length, and the magic number
_REPEATED = 2
_BYTES = 6  # the physical type BYTE_ARRAY


class Leaf(NamedTuple):
    """A leaf of the schema: its names joined by dots, the width of fixed-length bytes, and if a row has many values."""

    path: str
    width: int
    repeated: bool


class Column(NamedTuple):
    """A column chunk: numbers of its physical type and codec, its first byte, and its stored bytes."""

    kind: int
    codec: int
    start: int
    stored: int


class RowGroup(NamedTuple):
    """The chunks of a row group, one per leaf, and its number of rows."""

    columns: tuple[Column, ...]
    rows: int


class Footer(NamedTuple):
    """What a footer says."""

    leaves: tuple[Leaf, ...]
    groups: tuple[RowGroup, ...]


def read_footer(file: BinaryIO, size: int) -> Footer:
    """Read the footer of a file of `size` bytes; BadThriftError if there is none that makes sense."""
    length = int.from_bytes(_read(file, max(size - _TAIL, 0), 4), "little")
    if not 0 < length <= min(size - _TAIL, FOOTER_CAP):
        message = f"a footer of {length} bytes in a file of {size}"
        raise BadThriftError(message)
    try:
        fields, _ = read_struct(_read(file, size - _TAIL - length, length))
    except IndexError as error:
        message = "a footer that is cut short"
        raise BadThriftError(message) from error
    leaves = _leaves(_structs(fields.get(2)))
    return Footer(leaves, tuple(_group(group, len(leaves)) for group in _structs(fields.get(4))))


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)


def _structs(values: object) -> list[dict[int, Any]]:
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        message = "no structs where the schema or the row groups should be"
        raise BadThriftError(message)
    return values


def _leaves(elements: list[dict[int, Any]]) -> tuple[Leaf, ...]:
    """Return the leaves of a schema, which is written in depth-first order."""
    if not elements:
        message = "no schema"
        raise BadThriftError(message)
    leaves: list[Leaf] = []
    open_groups: list[tuple[int, str, bool]] = [
        (_number(elements[0], 5), "", False)
    ]  # children to come, path, repeated
    for element in elements[1:]:
        while open_groups and not open_groups[-1][0]:
            open_groups.pop()
        if not open_groups or len(leaves) > COLUMNS:
            message = f"a schema with columns outside of its root, or with more than {COLUMNS}"
            raise BadThriftError(message)
        left, above, is_repeated = open_groups[-1]
        open_groups[-1] = (left - 1, above, is_repeated)
        path = above + _text(element)
        is_repeated = is_repeated or _number(element, 3) == _REPEATED
        if _number(element, 5):
            open_groups.append((_number(element, 5), f"{path}.", is_repeated))
        else:
            leaves.append(Leaf(path, _number(element, 2), is_repeated))
    return tuple(leaves)


def _group(fields: dict[int, Any], leaves: int) -> RowGroup:
    columns = tuple(_column(chunk.get(3)) for chunk in _structs(fields.get(1)))
    if len(columns) != leaves:
        message = f"a row group of {len(columns)} columns for a schema of {leaves}"
        raise BadThriftError(message)
    return RowGroup(columns, _number(fields, 3))


def _column(fields: object) -> Column:
    if not isinstance(fields, dict):
        message = "a column without metadata, as encrypted ones are"
        raise BadThriftError(message)
    data, dictionary = _number(fields, 9), _number(fields, 11)
    start = dictionary if 0 < dictionary < data else data
    return Column(_number(fields, 1, _BYTES), _number(fields, 4, -1), start, _number(fields, 7))


def _number(fields: dict[int, Any], place: int, absent: int = 0) -> int:
    value = fields.get(place, absent)
    if type(value) is not int or value < min(absent, 0):
        message = f"field {place} is no number that fits"
        raise BadThriftError(message)
    return value


def _text(fields: dict[int, Any]) -> str:
    value = fields.get(4)
    if not isinstance(value, bytes):
        message = "a column without a name"
        raise BadThriftError(message)
    return value.decode()
