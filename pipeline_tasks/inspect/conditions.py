"""Conditions on columns of documents as a person writes them: read into those of the stage `select`, which judges."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from pipeline_tasks.conditions import Condition, failing
from pipeline_tasks.errors import RecipeError

pc: Any = pyarrow.compute

Conditions = Mapping[str, Condition]
"""The condition on each column; a document meets all of them."""

FORM = "COLUMN=VALUE[,VALUE]"
"""What a condition looks like, in short."""

HELP = "only such documents: document_type=article,recipe, topic!=unknown, reading_ease>=50, score=0.2..0.8; repeatable"
"""What a command says of its option `--where`."""

_COMPARES = ">=|<=|!=|=|<|>"
_FORM = re.compile(rf"\s*(\w[\w.]*)\s*({_COMPARES})\s*(.*?)\s*", re.DOTALL)
_BETWEEN = re.compile(rf",(?=\s*\w[\w.]*\s*(?:{_COMPARES}))")
_RANGE = re.compile(r"(\S*)\.\.(\S*)")


def split_conditions(line: str) -> list[str]:
    """Return the conditions that are written in one line, with commas between them and between their values."""
    return [condition for part in _BETWEEN.split(line) if (condition := part.strip())]


def with_value(line: str, more: str) -> str:
    """Return a line of conditions with one more, `COLUMN=VALUE`, besides the values that the column has already."""
    name, _, value = more.partition("=")
    parts = split_conditions(line)
    for at, part in enumerate(parts):
        known = _FORM.fullmatch(part)
        if known and known[1] == name and known[2] == "=":
            values = [each.strip() for each in known[3].split(",")]
            parts[at] = f"{name}={','.join(dict.fromkeys([*values, value]))}"
            return ", ".join(parts)
    return ", ".join([*parts, more])


def conditions_of(written: Sequence[str], columns: Mapping[str, str]) -> Conditions:
    """Return the conditions that `written` lists, on columns whose types are given by name.

    `a=x,y` is one of the values, `a!=x,y` none of them; `a>=1`, `a<5` and `a=1..5` are bounds, both ends of a range
    included. Several on one column are one condition. RecipeError for what is none, for a column that there is not, and
    for two that say the same thing of a column.
    """
    parts: dict[str, dict[str, Any]] = {}
    for text in written:
        name, fields = _read(text, columns)
        condition = parts.setdefault(name, {})
        if again := sorted({*condition} & {*fields}):
            message = f"--where {text[:100]!r}: {name} has {again[0]} already; write one condition with both values"
            raise RecipeError(message)
        condition |= fields
    return {name: _condition(name, fields) for name, fields in parts.items()}


def _read(text: str, columns: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    match = _FORM.fullmatch(text)
    if match is None:
        message = f"--where {text[:100]!r}: write {FORM}, or != for none of the values, or >=, <=, >, < and a number"
        raise RecipeError(message)
    name, compares, value = match.groups()
    if name.split(".")[0] not in columns and name not in columns:
        message = f"--where {text[:100]!r}: the documents have no column {name!r}; they have {', '.join(columns)}"
        raise RecipeError(message)
    values = tuple(part.strip() for part in value.split(","))
    if compares == "!=":
        return name, {"none_of": values}
    if compares != "=":
        return name, _bound(compares, _number(text, value))
    bounds = _RANGE.fullmatch(value)
    if bounds is None:
        return name, {"any_of": values}
    return name, {"least": _number(text, bounds[1]), "most": _number(text, bounds[2])}


def _bound(compares: str, number: float) -> dict[str, float]:
    """Return a bound that has its number: of one without it the next number of its side."""
    side = "least" if compares.startswith(">") else "most"
    beyond = math.inf if side == "least" else -math.inf
    return {side: number if compares.endswith("=") else math.nextafter(number, beyond)}


def _number(text: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        message = f"--where {text[:100]!r}: {value[:50]!r} is no number"
        raise RecipeError(message)
    return number


def _condition(name: str, fields: Mapping[str, Any]) -> Condition:
    try:
        return Condition(**fields)
    except ValueError as error:
        message = f"--where {name}: {error}"
        raise RecipeError(message) from error


def columns_read(conditions: Conditions) -> list[str]:
    """Return the columns that conditions need: of a field of a struct the struct, under both of its possible names."""
    return list(dict.fromkeys(part for name in conditions for part in (name, name.split(".")[0])))


def meets(batch: pa.RecordBatch, conditions: Conditions) -> pa.Array:
    """Return whether each document meets every condition, as `select` would judge it."""
    met = pa.array([True] * batch.num_rows, pa.bool_())
    for name, condition in conditions.items():
        met = pc.and_(met, pc.invert(failing(batch, name, condition, f"--where {name}")))
    return met


def has_columns(names: Sequence[str], conditions: Conditions) -> bool:
    """Return whether documents with columns of these names can be judged."""
    return all(name in names or name.split(".")[0] in names for name in conditions)


def select_lines(conditions: Conditions) -> Iterator[str]:
    """Yield the lines of a build's recipe that keep the documents that meet the conditions."""
    yield "select:"
    yield "  where:"
    for name, condition in conditions.items():
        fields = [f"{side}: [{', '.join(map(_quoted, words))}]" for side, words in _named(condition)]
        fields += [f"{side}: {np.format_float_positional(bound, trim='-')}" for side, bound in _bounds(condition)]
        yield f"    {_quoted(name)}: {{{', '.join(fields)}}}"


def _named(condition: Condition) -> Iterator[tuple[str, Sequence[str]]]:
    yield from (
        (side, words) for side, words in (("any_of", condition.any_of), ("none_of", condition.none_of)) if words
    )


def _bounds(condition: Condition) -> Iterator[tuple[str, float]]:
    sides = (("least", condition.least), ("most", condition.most))
    yield from ((side, bound) for side, bound in sides if bound is not None)


_PLAIN = re.compile(r"[A-Za-z][\w.-]*")
_MEANS_ELSE = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def _quoted(word: str) -> str:
    """Return a word as YAML 1.1 reads it as text."""
    is_plain = _PLAIN.fullmatch(word) and word.lower() not in _MEANS_ELSE
    return word if is_plain else json.dumps(word, ensure_ascii=False)
