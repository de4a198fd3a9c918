"""The page of stages: columns, reasons and params of every stage."""

import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from typing import Any, Literal

import pyarrow as pa

from pipeline_tasks import schema
from pipeline_tasks.cards import stage_card
from pipeline_tasks.cli.reference.markdown import default, docstring, first_sentence, generated_note, names, table
from pipeline_tasks.profiles.distributions import EVERYWHERE, profiled_by
from pipeline_tasks.stage import FilePath, Stage
from pipeline_tasks.stages import NAMES

SETS = (("RECORD", schema.RECORD), ("DOCUMENT", schema.DOCUMENT), ("PAGE", schema.PAGE), ("LOCATOR", schema.LOCATOR))
"""Named sets of columns, the widest first: the columns of a stage are a set and further columns."""

HEAD = """
A stage reads the columns that it names, passes all others through in order, and appends its own. Only `extract`,
`tokenize` and `pack` write new tables. *Writes* are the columns that are always there. `filter_quality` also writes a
column of signals per profile ([filters](filters.md)).

A row is never dropped: a row with a reason goes to a shard of its own. Reasons that start with `error:` are damage and
are kept under `quarantine/` ([their meaning](failures.md)), all others under `rejects/`. *Splits* means that Airflow
maps the stage over partitions, each with its own retries. The engine is a default; `run: engines:` in a recipe or the
DAG param `engines` changes it, and the output is the same on each. Params are written under the stage's name in a
recipe. A path is identified by the content of its file, not by its name. The column profiles `origins`, `clusters` and
`similarity` belong to no column: they count the sources, sites, clusters and similarities of rejected rows
([failures.md](failures.md)). Every stage profiles `origin` and `n_generated`, too, where rows have them.

*Conserves* says what comes out as it went in: `rows`; `copies`, rows as often as their column `copies` says;
`offspring`, rows and as many more as their column `n_generated` says; or `tokens`.

Sets of columns:
"""


def stages_page() -> str:
    """Return the page as Markdown."""
    cards = [stage_card(name) for name in NAMES]
    head = ["# Stages\n", generated_note("the cards and docstrings of `pipeline_tasks/stages/`"), HEAD.strip() + "\n"]
    rows = ([f"[{card.name}](#{card.name})", _sentence(card), card.engine, _yes(card.splits)] for card in cards)
    contents = table(("stage", "what it does", "engine", "splits"), rows)
    lines = [*head, *map(_set, reversed(SETS)), "", *contents, *(line for card in cards for line in _section(card))]
    return "\n".join(lines) + "\n"


def _set(named: tuple[str, pa.Schema]) -> str:
    name, columns = named
    return f"- `{name}`: {_columns(columns, skip=name)}"


def _section(card: Stage[Any]) -> Iterator[str]:
    yield f"\n## {card.name}\n"
    yield _sentence(card) + "\n"
    yield f"- engine `{card.engine}`, splits: {_yes(card.splits)}, conserves {card.conserves}, version {card.version}"
    yield f"- reads: {_columns(card.reads)}"
    yield f"- writes: {_columns(card.writes)}"
    if card.writes_for:
        yield f"- writes for its default params: {names(card.writes_for(card.params()).names)}"
    yield f"- column profiles: {names(name for name in profiled_by(card) if name not in EVERYWHERE)}"
    if card.spread:
        yield f"- counted by shard and place: {names(card.spread)}"
    yield f"- reasons: {names(card.reasons)}\n"
    yield from table(("param", "type", "default"), (_param(card, field) for field in fields(card.params)))
    yield "\n" + docstring(card.params)


def _param(card: Stage[Any], field: Field[Any]) -> tuple[str, str, str]:
    """Return name, type and default; a field that collects keys (recipe.bind) is named by its keys."""
    keys = field.metadata.get("keys")
    if keys:
        return names(keys), "mapping", default(field)
    return f"`{field.name}`", _type(typing.get_type_hints(card.params, include_extras=True)[field.name]), default(field)


def _sentence(card: Stage[Any]) -> str:
    return first_sentence(importlib.import_module(f"pipeline_tasks.stages.{card.name}"))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _columns(columns: pa.Schema, skip: str = "") -> str:
    """Return columns as the widest set that they contain, and the others with their types."""
    sets: list[str] = []
    others = list(columns)
    for name, known in SETS:
        if name != skip and len(known) <= len(others) and all(column in others for column in known):
            sets.append(f"`{name}`")
            others = [column for column in others if column not in list(known)]
    return ", ".join([*sets, *(f"`{column.name}` {column.type}" for column in others)])


def _type(hint: object) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is FilePath or origin is typing.Annotated:
        return "path" if hint is FilePath else f"{_type(inner[0])} {inner[1]}"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(_type, inner))
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return f"mapping of {_type(inner[0])} to {_type(inner[1])}"
    return str(getattr(hint, "__name__", hint))
