"""Says what became of the files of each type in a snapshot: rows in, kept, rejected by reason, quarantined."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline_tasks.ask.answer import Answer
from pipeline_tasks.ask.parts import Column, Note, Part, Table
from pipeline_tasks.ask.question import Question
from pipeline_tasks.inspect.command import NewestSnapshot, OnlyRecipe, recipe_of
from pipeline_tasks.inspect.unpublished import committed, title_of
from pipeline_tasks.profiles.file_types import OfType
from pipeline_tasks.recipe import COMPOSE, LAND
from pipeline_tasks.report.by_type import UNKNOWN, all_types, quarantined, ranked, types_by_stage, types_of_all
from pipeline_tasks.store.reading import read_in_order

NOT_COUNTED = "types were not counted in this snapshot: its stages ran before Refinery told them; refine it again"


@dataclass(frozen=True, slots=True)
class Params:
    """Of which snapshot."""

    root: str
    recipe: OnlyRecipe = ""
    snapshot: NewestSnapshot = ""


def answer(params: Params) -> Answer:
    """Return a row for each type, and one for each type of each stage that it came into.

    Of a run that published nothing it is of the stages so far.
    """
    known = committed(params.root, recipe_of(params), params.snapshot)
    refs = {stage: ref for stage, ref in known.shown.manifests.items() if stage not in (LAND, COMPOSE)}
    stages = types_by_stage(read_in_order(params.root, refs))
    title = f"Files by type: {title_of(known.shown)}"
    if not stages:
        return Answer(title, [Note(NOT_COUNTED, "warn")], {"types": [], "stages": []})
    whole = types_of_all([*stages.values()])
    types = [_line(name, of_type) for name, of_type in whole.items()]
    by_stage = [
        {"stage": stage, **_line(name, of_type)} for stage, found in stages.items() for name, of_type in found.items()
    ]
    first, *_, last = [*stages, *stages]
    parts: list[Part] = [
        *([Note(known.note, "warn")] if known.note else []),
        Table(COLUMNS, [*_shown(types), {**_line("", all_types(whole)), "type": "all"}], f"From {first} to {last}"),
        Table((Column("stage"), *COLUMNS), [*_shown(by_stage)], "From stage to stage"),
    ]
    return Answer(title, parts, {"types": types, "stages": by_stage})


COLUMNS = (
    Column("type"),
    Column("rows_in", "in", "count"),
    Column("kept", kind="count"),
    Column("share", "kept of these", "share"),
    Column("rejected", kind="count"),
    Column("quarantined", kind="count"),
    Column("reasons", kind="tally"),
)

QUESTION = Question(Params, answer)


def _line(name: str, of_type: OfType) -> dict[str, object]:
    """Return the row of a type; that of no known type has None as its name."""
    aside = quarantined(of_type)
    return {
        "type": name or None,
        "rows_in": of_type.rows_in,
        "kept": of_type.kept,
        "share": of_type.kept / of_type.rows_in if of_type.rows_in else None,
        "rejected": of_type.rows_in - of_type.kept - aside,
        "quarantined": aside,
        "reasons": dict(ranked(of_type)),
    }


def _shown(rows: list[dict[str, object]]) -> Iterator[Mapping[str, object]]:
    return ({**row, "type": row["type"] or UNKNOWN} for row in rows)
