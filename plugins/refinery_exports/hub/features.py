"""Says the type of a column as `datasets` writes it into the head of a card: what it would infer from Parquet."""

import re
from typing import Any

import pyarrow as pa

from pipeline_tasks.errors import RecipeError

Feature = dict[str, Any]

RENAMED = {"halffloat": "float16", "float": "float32", "double": "float64", "date32[day]": "date32"}
"""Types that `datasets` names otherwise than Arrow (`_arrow_to_datasets_dtype` of its `features.py`)."""

SCALARS = re.compile(
    r"null|bool|u?int(8|16|32|64)|float(16|32|64)|(large_)?(string|binary)|date32|timestamp\[(s|ms|us|ns)(, tz=\S+)?\]"
)
"""Names of types of single values that it knows, as it writes them."""


def features(schema: pa.Schema | pa.StructType) -> list[Feature]:
    """Return the features of columns, as YAML has them; RecipeError names a column that no feature is of."""
    return [{"name": column.name, **_feature(column)} for column in schema]


def _feature(column: pa.Field) -> Feature:
    kind = column.type
    if pa.types.is_struct(kind):
        return {"struct": features(kind)}
    if pa.types.is_large_list(kind):
        return {"large_list": _values(kind)}
    if pa.types.is_fixed_size_list(kind):
        return {"list": _values(kind), "length": kind.list_size}
    if pa.types.is_list(kind):
        return {"list": _values(kind)}
    name = RENAMED.get(str(kind), str(kind))
    if SCALARS.fullmatch(name) is None:
        message = f"column {column.name!r} has the type {kind}, and the Hub has no feature for it; leave it out"
        raise RecipeError(message)
    return {"dtype": name}


def _values(kind: pa.DataType) -> object:
    """Return the feature of a list's values: of plain ones the name alone, of structs their fields."""
    feature = _feature(kind.value_field)
    return next(iter(feature.values())) if feature.keys() in ({"dtype"}, {"struct"}) else feature
