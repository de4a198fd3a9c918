"""Writes `docs/reference/stages.md`, the reference of all stages, from their cards and docstrings."""

import importlib
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from pipeline_tasks import schema
from pipeline_tasks.manifest import canonical
from pipeline_tasks.recipe import STAGES, stage_card
from pipeline_tasks.stage import FilePath, Stage

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "stages.md"

SETS = (("RECORD", schema.RECORD), ("DOCUMENT", schema.DOCUMENT), ("PAGE", schema.PAGE), ("LOCATOR", schema.LOCATOR))
"""Named columns that stages share, the widest first: a stage's columns are told as a set and what is beside it."""

HEAD = """# Stages

Written by `python -m pipeline_tasks.cli.reference` from the cards and docstrings of `pipeline_tasks/stages/`; do not
edit it by hand (a test compares the two).

A stage reads the columns that it names, passes all others through in order, and appends its own at the end; only
`extract`, `tokenize` and `pack` make new tables. *Writes* are the columns that are there for sure. A row is never
dropped: a row with a reason goes to a shard of its own. Reasons that start with `error:` are damage and are kept under
`quarantine/` (their meaning: [failures.md](failures.md)), all others under `rejects/`. *Splits* says that Airflow maps
the stage over partitions, each with its own retries. The engine is a default, which `run: engines:` in a recipe or the
param `engines` of a run changes; the output is the same on each. Params are what a recipe says under the stage's name;
a path is identity by the content of its file and not by its name. The profiles `origins`, `clusters` and `similarity`
are of no column: they tell of which sources and sites, into which clusters and on what proof rows were removed
([failures.md](failures.md)).

Sets of columns:
"""


def reference() -> str:
    """Return the whole page as Markdown."""
    cards = [stage_card(name) for name in STAGES]
    parts = [HEAD, *map(_set, reversed(SETS)), "", *_contents(cards)]
    return "\n".join(parts) + "\n" + "\n".join(part for card in cards for part in _section(card))


def _set(named: tuple[str, pa.Schema]) -> str:
    name, columns = named
    return f"- `{name}`: {_columns(columns, skip=name)}"


def _contents(cards: list[Stage[Any]]) -> Iterator[str]:
    yield "| stage | what it does | engine | splits |"
    yield "|---|---|---|---|"
    for card in cards:
        yield f"| [{card.name}](#{card.name}) | {_sentence(card)} | {card.engine} | {_yes(card.splits)} |"


def _section(card: Stage[Any]) -> Iterator[str]:
    yield f"\n## {card.name}\n"
    yield _sentence(card) + "\n"
    yield f"- engine `{card.engine}`, splits: {_yes(card.splits)}, conserves {card.conserves}, version {card.version}"
    yield f"- reads: {_columns(card.reads)}"
    yield f"- writes: {_columns(card.writes)}"
    yield f"- profiles in the manifest: {_names(card.profiled)}"
    yield f"- reasons: {_names(card.reasons)}\n"
    yield "| param | type | default |"
    yield "|---|---|---|"
    hints = typing.get_type_hints(card.params)
    for one in fields(card.params):
        keys = one.metadata.get("keys")
        names = _names(tuple(keys)) if keys else f"`{one.name}`"
        yield f"| {names} | {'mapping' if keys else _type(hints[one.name])} | {_default(one)} |"
    yield "\n" + (inspect.getdoc(card.params) or "").replace("**", r"\*\*")


def _sentence(card: Stage[Any]) -> str:
    module = importlib.import_module(f"pipeline_tasks.stages.{card.name}")
    return " ".join((module.__doc__ or "").split("\n\n")[0].split())


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _columns(columns: pa.Schema, skip: str = "") -> str:
    """Return columns as the widest set that they contain, and the others with their types."""
    told: list[str] = []
    left = list(columns)
    for name, known in SETS:
        if name != skip and len(known) <= len(left) and all(one in left for one in known):
            told.append(f"`{name}`")
            left = [one for one in left if one not in list(known)]
    return ", ".join([*told, *(f"`{one.name}` {_arrow(one.type)}" for one in left)])


def _arrow(kind: pa.DataType) -> str:
    """Return a type in words; a struct of one kind is told by that kind, because signals are many."""
    if pa.types.is_struct(kind) and len({str(one.type) for one in kind}) == 1:
        return f"struct of {kind.num_fields} {kind.field(0).type}"
    return str(kind)


def _type(hint: Any) -> str:  # noqa: ANN401 -- any annotation
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is FilePath:
        return "path"
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inner)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_type(one) for one in inner)
    if origin is tuple:
        return f"list of {_type(inner[0])}"
    if origin is not None and issubclass(origin, Mapping):
        return f"mapping of {_type(inner[0])} to {_type(inner[1])}"
    return str(getattr(hint, "__name__", hint))


def _default(one: Field[Any]) -> str:
    if one.default is not MISSING:
        value = one.default
    elif one.default_factory is not MISSING:
        value = one.default_factory()
    else:
        return "required"
    return f"`{json.dumps(json.loads(canonical(value)), ensure_ascii=False)}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
