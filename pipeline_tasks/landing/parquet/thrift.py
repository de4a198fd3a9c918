"""Reads what Parquet writes as Thrift structs, footers and page headers, in the compact protocol.

pyarrow ends the process over some footers (a column chunk without metadata), so what it is asked is checked here first.
Specification: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from typing import Any

_DEEPEST = 16  # levels of structs and lists
_TRUE, _FALSE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)  # of 16, 32 and 64 bits
_FIXED = {3: 1, 7: 8}  # bytes of a byte and of a double
_MANY = 15  # in the head of a list: its size follows
_MORE, _LONGEST = 128, 63  # the bit of a number's byte that another follows, and the bits of a number


class BadThriftError(ValueError):
    """Bytes that are no Thrift struct."""


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Read a struct as {field id: value}, and where it ends; IndexError where it runs beyond the data."""
    if depth > _DEEPEST:
        message = "structs that nest too deeply"
        raise BadThriftError(message)
    fields: dict[int, Any] = {}
    field = 0
    while True:
        head = data[at]
        at += 1
        if not head:
            return fields, at
        if head >> 4:
            field += head >> 4
        else:
            field, at = _zigzag(data, at)
        fields[field], at = _value(data, at, head & 15, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Read a value of one of Thrift's compact types, and where it ends."""
    if kind in (_TRUE, _FALSE):  # as a field, a boolean is its type
        return kind == _TRUE, at
    if kind in _FIXED:
        end = at + _FIXED[kind]
        return data[at:end], _within(data, end)
    if kind in _NUMBERS:
        return _zigzag(data, at)
    if kind == _BINARY:
        size, at = _varint(data, at)
        return data[at : at + size], _within(data, at + size)
    if kind not in (_LIST, _SET, _STRUCT):
        message = f"a field of type {kind}"
        raise BadThriftError(message)
    return read_struct(data, at, depth + 1) if kind == _STRUCT else _list(data, at, depth + 1)


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    if depth > _DEEPEST:
        message = "lists that nest too deeply"
        raise BadThriftError(message)
    head = data[at]
    at += 1
    size, kind = head >> 4, head & 15
    if size == _MANY:
        size, at = _varint(data, at)
    values = []
    for _ in range(size):
        value, at = (data[at] == _TRUE, at + 1) if kind in (_TRUE, _FALSE) else _value(data, at, kind, depth)
        _within(data, at)
        values.append(value)
    return values, at


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise IndexError
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & ~_MORE) << shift
        shift += 7
        if byte < _MORE:
            return number, at
        if shift > _LONGEST:
            message = "an endless number"
            raise BadThriftError(message)


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at
