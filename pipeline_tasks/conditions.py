"""Conditions on columns of rows, which stages judge and people search by."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.constraints import Range
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.stage import column_of

pc: Any = pyarrow.compute

Bound = Annotated[float, Range(-inf, inf)]
"""A bound on a column of numbers, which may be below 0."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column must be: one of `any_of`, none of `none_of`, from `least` to `most`. What is left out is not asked.

    A document without a value (null, NaN for a bound) fails `any_of`, `least` and `most`, and passes `none_of`.
    Booleans are `true` and `false`.
    """

    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    least: Bound | None = None
    most: Bound | None = None

    def __post_init__(self) -> None:
        if not (self.any_of or self.none_of) and self.least is None and self.most is None:
            message = "a condition needs any_of, none_of, least or most"
            raise ValueError(message)
        if self.least is not None and self.most is not None and self.least > self.most:
            message = f"least is {self.least:g} and most is {self.most:g}; no document meets both"
            raise ValueError(message)


def columns_read(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that conditions on these names read, each once: of a field of a struct the struct."""
    return tuple(dict.fromkeys(name.split(".")[0] for name in names))


def failing(batch: pa.RecordBatch, name: str, condition: Condition, where: str) -> pa.Array:
    """Return which documents fail a condition on column `name`; RecipeError if there is no such column of its kind.

    The error says `where` the condition is written.
    """
    column = column_of(batch, name, where)
    masks = []
    if condition.any_of or condition.none_of:
        values = as_text(column, name, where)
        named = [(pc.invert, condition.any_of), (lambda mask: mask, condition.none_of)]
        masks += [failed(pc.is_in(values, pa.array(words, pa.string()))) for failed, words in named if words]
    for passes, bound in [(pc.greater_equal, condition.least), (pc.less_equal, condition.most)]:
        if bound is not None:
            if not _is_number(column.type):
                message = f"{where}: {name} is a column of {column.type}; least and most need numbers"
                raise RecipeError(message)
            masks.append(pc.invert(pc.fill_null(passes(column, bound), fill_value=False)))  # NaN passes neither
    return any_of(masks)


def as_text(column: pa.Array, name: str, where: str) -> pa.Array:
    """Return the values of a column as text; RecipeError for one of lists, structs or bytes, which have none."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        message = (
            f"{where}: {name} is a column of {column.type}; values need texts, numbers or booleans (any_of, none_of)"
        )
        raise RecipeError(message)
    return column.cast(pa.string())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def any_of(masks: list[pa.Array]) -> pa.Array:
    """Return which rows one of the masks has; there is at least one mask."""
    failed = masks[0]
    for mask in masks[1:]:
        failed = pc.or_(failed, mask)
    return failed
