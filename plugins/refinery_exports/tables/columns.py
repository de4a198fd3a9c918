"""The types that columns have in tables: those that Parquet, Iceberg and DuckLake all know."""

from collections.abc import Callable

import pyarrow as pa

WIDER: dict[pa.DataType, pa.DataType] = {
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.null(): pa.string(),
}
"""Types that Iceberg has not (version 2 of its specification, section "Primitive Types"), and those that hold them."""

ELEMENT = "element"
"""The name of the values of a list, as Parquet has it."""


def table_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema of the same columns whose types every catalog knows; all may be null."""
    return pa.schema([pa.field(column.name, table_type(column.type)) for column in schema])


def table_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of a type in tables."""
    for is_kind, made in _NESTED:
        if is_kind(kind):
            return made(kind)
    return WIDER.get(kind, kind)


def _struct(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field(field.name, table_type(field.type)) for field in kind])


def _list(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field(ELEMENT, table_type(kind.value_type)))


def _map(kind: pa.DataType) -> pa.DataType:
    return pa.map_(table_type(kind.key_type), table_type(kind.item_type))


def _values(kind: pa.DataType) -> pa.DataType:
    return table_type(kind.value_type)


_NESTED: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_struct, _struct),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_large_list, _list),
    (pa.types.is_fixed_size_list, _list),
    (pa.types.is_dictionary, _values),
)
