"""Conditions on what is known of documents: read from a person's words, for Arrow and for SQL alike."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.errors import RecipeError
from pipeline_tasks.publish.datasets.vectors import FACTS

pc: Any = pyarrow.compute

_FORM = re.compile(r"\s*(\w+)\s*(>=|<=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARES = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A column of `FACTS`, a comparison, and the value, of `=` and `!=` of texts the values.

    A document of which the column is not known meets `!=` alone, as in the stage `select`.
    """

    column: str
    compares: str
    value: str | float | tuple[str, ...]

    @property
    def sql(self) -> str:
        """The condition as SQL."""
        if isinstance(self.value, tuple):
            values = ", ".join(map(_quoted, self.value))
            is_in = f"{self.column} IN ({values})"
            return is_in if self.compares == "=" else f"{self.column} IS NULL OR NOT ({is_in})"
        if isinstance(self.value, str):
            return f"{self.column} {self.compares} {_quoted(self.value)}"
        return f"{self.column} + 0.0 {self.compares} {self.value!r}"  # a number with a point, in any dialect

    def holds(self, batch: pa.RecordBatch) -> pa.Array:
        """Return whether each document of a batch of `FACTS` has it."""
        column = batch[self.column]
        if isinstance(self.value, tuple):
            is_in = pc.is_in(column, value_set=pa.array(self.value, column.type))
            return is_in if self.compares == "=" else pc.invert(is_in)
        value = pa.scalar(self.value, column.type if isinstance(self.value, str) else pa.float64())
        left = column if isinstance(self.value, str) else column.cast(pa.float64())
        return pc.fill_null(_COMPARES[self.compares](left, value), fill_value=False)


def conditions(written: Sequence[str]) -> list[Condition]:
    """Return conditions as `language=de,fr`, `chars>=500` or `score=0.2..0.8`, ends included; RecipeError for others.

    All of them have to hold. They are written as those of `inspect.conditions`, and are of `FACTS` alone.
    """
    return [condition for text in written for condition in _read(text)]


def _read(text: str) -> list[Condition]:
    match = _FORM.fullmatch(text)
    if match is None or match[1] not in FACTS.names:
        message = (
            f"--where {text[:100]!r}: write COLUMN=VALUE, with >=, <=, >, < or != in place of =; columns are "
            f"{', '.join(FACTS.names)}"
        )
        raise RecipeError(message)
    column, compares, value = match.groups()
    if pa.types.is_string(FACTS.field(column).type):
        if compares in ("=", "!="):
            return [Condition(column, compares, tuple(part.strip() for part in value.split(",")))]
        return [Condition(column, compares, value)]
    if compares == "=" and ".." in value:
        least, _, most = value.partition("..")
        return [Condition(column, ">=", _number(text, least)), Condition(column, "<=", _number(text, most))]
    return [Condition(column, compares, _number(text, value))]


def _quoted(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        message = f"--where {text[:100]!r}: {value[:50]!r} is no number"
        raise RecipeError(message)
    return number
