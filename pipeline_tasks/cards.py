"""The cards of stages: the table of those that are known, and what others ask of them."""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from itertools import takewhile
from typing import Any, TypeVar

from pipeline_tasks.binding import unknown_key
from pipeline_tasks.errors import RecipeError
from pipeline_tasks.facets import NO_COPIES, Copies
from pipeline_tasks.nearest import OR_INSTALL
from pipeline_tasks.seams import Part, part_at, parts
from pipeline_tasks.stage import Stage, always

T = TypeVar("T")

STAGES = "pipeline_tasks.stages"
"""The room of the package's own stages: it names them, and each of its modules exports one as `STAGE`."""

SEAM = "refinery.stages"
"""The entry points of stages that other distributions bring."""

RESERVED = frozenset(
    (
        *("land", "compose", "publish", "verdict", "build"),
        *("ablations", "access", "alerts", "cache", "compacted", "datasets", "earlier", "erasures", "intruders"),
        *("jobs", "ledger", "maps", "models", "quarantine", "readings", "receipts", "rejects", "requests", "runs"),
        *("statements", "takedowns", "tokenizers", "vectors"),
        *("export", "index", "publish_gate", "register", "sense", "turn", "verdict_gate"),
    )
)
"""Names that no stage may have: steps and tasks beside stages, and folders of a root that have something else."""

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""A name that a stage of another distribution may have: it is a folder, a task group and a key."""

DASHES = "--"
"""What a stage that a recipe names by `module:NAME` has in place of points and colon: its name is a part of paths."""


def stage_names() -> tuple[str, ...]:
    """Return every stage that is known: the package's own in the order of the docs, and what other distributions bring.

    What came before what is in manifests and versions alone.
    """
    return (*_own_stages(), *_brought())


def _own_stages() -> tuple[str, ...]:
    names: tuple[str, ...] = importlib.import_module(STAGES).NAMES
    return names


def _brought() -> Mapping[str, Part]:
    """Return the stages that other distributions bring; one with the name of ours, or of no stage, is none."""
    return {name: part for name, part in parts(SEAM).items() if _is_name(name) and not is_own(name)}


def _is_name(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and name not in RESERVED


def is_stage(name: str) -> bool:
    """Return whether there is a stage of a name: this package's, of another distribution, or at `module--NAME`."""
    return known_card(name) is not None


def is_own(name: str) -> bool:
    """Return whether a stage is of this package."""
    return name in _own_stages()


def known_card(name: str) -> Stage[Any] | None:
    """Return the card of a stage, None where none of the name can be had: manifests may be of another release.

    The package that brought it may be another one now, or be broken.
    """
    try:
        return stage_card(name) if is_own(name) or _part(name) else None
    except RecipeError:
        return None


def stage_card(name: str, where: str = "stage") -> Stage[Any]:
    """Return the card of a stage by its name; RecipeError, which begins with `where`, for an unknown one.

    The module `pipeline_tasks.stages.<name>` exports it as `STAGE`, or a part of another distribution is it, whose
    version is identity, as that of a library is.
    """
    if is_own(name):
        card: Stage[Any] = importlib.import_module(f"{STAGES}.{name}").STAGE
        return card
    part = _part(name)
    if part is None and name in parts(SEAM):
        message = f"{parts(SEAM)[name]}; no stage may have that name: it is no lower-case word, or means something else"
        raise RecipeError(message)
    if part is None:
        raise unknown_key(name, stage_names(), where, OR_INSTALL)
    return _brought_card(name, part)


@cache
def _brought_card(name: str, part: Part) -> Stage[Any]:
    card = part.load(Stage)
    return replace(card, name=name, libraries={**card.libraries, part.distribution: always})


def _part(name: str) -> Part | None:
    """Return the part that another distribution brings by a name, or has at `module--NAME`; None for another name."""
    module, _, variable = name.rpartition(DASHES)
    place = f"{module.replace(DASHES, '.')}:{variable}"
    return _brought().get(name) or (part_at(place) if module else None)


def known_cards() -> Iterator[Stage[Any]]:
    """Yield the card of every stage that can be had."""
    yield from filter(None, map(known_card, stage_names()))


def has_sequences(stage: str) -> bool:
    """Return whether the rows of a stage are sequences of tokens, and no documents."""
    card = known_card(stage)
    return card is not None and card.conserves == "tokens"


def refines(stage: str) -> bool:
    """Return whether a stage refines a snapshot: of documents it makes documents, and no training dataset.

    Of an unknown stage of a snapshot that is so: only earlier releases had others behind it.
    """
    card = known_card(stage)
    return card is None or not card.wiring.builds


def adds(column: str, stage: str) -> bool:
    """Return whether a stage adds a column to what it reads."""
    card = known_card(stage)
    return card is not None and column in added_by(card)


def added_by(card: Stage[Any]) -> set[str]:
    """Return the columns that a stage always writes and does not need."""
    return set(card.writes.names) - set(card.reads.names)


def copies_of(stage: str) -> Copies:
    """Return how a stage removes documents for the sake of others."""
    card = known_card(stage)
    return card.copies if card else NO_COPIES


def is_by_id(stage: str) -> bool:
    """Return whether the documents of a stage come out in buckets by `id`, sorted by `id`."""
    card = known_card(stage)
    return card is not None and card.buckets is not None and card.buckets.by_id


def reads_landed(stage: str) -> bool:
    """Return whether a stage reads landed bytes: texts that it hands on without ids are read from landed files."""
    card = known_card(stage)
    return card is not None and "payload" in card.reads.names


def reads_records(stage: str) -> bool:
    """Return whether a stage reads landed records as they are: damage, redirects, images."""
    card = known_card(stage)
    return card is not None and "error" in card.reads.names


def makes_documents(stage: str) -> bool:
    """Return whether a stage makes documents of what landed: texts with ids."""
    card = known_card(stage)
    return card is not None and reads_landed(stage) and "id" in added_by(card)


def maker_of(stages: Iterable[str]) -> str:
    """Return which stage of a recipe or a version makes documents, "" if none does."""
    return next(filter(makes_documents, stages), "")


def repeats(stage: str) -> bool:
    """Return whether a stage writes each document as often as it is used: behind it documents have moved."""
    card = known_card(stage)
    return card is not None and card.conserves == "copies"


def unfolds(stage: str) -> bool:
    """Return whether a stage makes documents of the generated texts of others: behind it rows are no pages alone."""
    card = known_card(stage)
    return card is not None and card.conserves == "offspring"


def tokenizes(stage: str) -> bool:
    """Return whether a stage encodes documents as tokens: it saves the tokenizer that it did it with."""
    return _saves(stage, "tokenizer")


def plans_mixture(stage: str) -> bool:
    """Return whether a stage plans how often a build uses each document: it saves the plan."""
    return _saves(stage, "plan")


def _saves(stage: str, section: str) -> bool:
    card = known_card(stage)
    return card is not None and section in card.history


def has_param(stage: str, name: str) -> bool:
    """Return whether a stage has a param of this name."""
    card = known_card(stage)
    return card is not None and name in {declared.name for declared in fields(card.params)}


def stage_that(asked: Callable[[str], bool], stages: Iterable[str] | None = None) -> str:
    """Return the first of some stages that is what is asked for, as `repeats`, "" if none is; by default of all."""
    return next((stage for stage in (stage_names() if stages is None else stages) if asked(stage)), "")


def choosing_stages(stages: Iterable[str]) -> list[str]:
    """Return those stages of a build, given in order, that choose documents and move none: all before `repeats`."""
    return list(takewhile(lambda stage: not repeats(stage), stages))


def one_that(asked: Callable[[str], bool], by_stage: Mapping[str, T]) -> T:
    """Return what the first stage has that is what is asked for, as `repeats`; RecipeError if none is known to be."""
    stage = stage_that(asked, by_stage)
    if not stage:
        message = f"which of {', '.join(by_stage)} does it is not known here; install the package that brings its stage"
        raise RecipeError(message)
    return by_stage[stage]


def of_stage(by_stage: Mapping[str, T], asked: Callable[[str], bool]) -> T | None:
    """Return what the first stage has that is what is asked for, None if none is."""
    return by_stage.get(stage_that(asked, by_stage))
